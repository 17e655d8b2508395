// SPDX-License-Identifier: MIT OR Apache-2.0
//! Learns, while the cache runs, how likely a page is to be touched again soon. The features of a page select weights
//! in six small tables, which are averaged. Pages drawn at random are watched, and their outcome corrects the
//! weights. The tables begin as an estimate by age alone, which orders pages by recency. Integers only.

use super::cursors::{Cursors, PLACES};
use crate::cache::Page;

const TABLES: usize = 6;
/// Certainty, in the unit of weights.
const ONE: i32 = 1 << 14;
/// A 32nd of the error is corrected at a time, in steps of a sixth of it, because six weights change.
const RATE: i32 = 32 * TABLES as i32;
/// Buckets: ages in half octaves, sizes of reads, parts of the page, distances, octaves.
const AGES: usize = 32;
pub(super) const SIZES: usize = 8;
const PARTS: usize = 16;
const DISTANCES: usize = 32;
const OCTAVES: usize = 16;
const SPANS: usize = 24;
/// Offset of each table.
const BEGIN: [usize; TABLES + 1] = {
    let lengths = [
        AGES * SIZES,
        PARTS * SIZES,
        DISTANCES * SIZES,
        PLACES * SPANS * SIZES,
        PLACES * SPANS * SIZES,
        OCTAVES * AGES,
    ];
    let mut begin = [0; TABLES + 1];
    let mut i = 0;
    while i < TABLES {
        begin[i + 1] = begin[i] + lengths[i];
        i += 1;
    }
    begin
};
/// Pages watched at the same time.
const WATCHED: usize = 256;
/// The least number of touches between two watches: learning from each touch would take longer than serving it.
const APART: u32 = 4;
/// No watch.
pub(super) const UNWATCHED: u32 = 0;

/// History of a page that was touched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Time of the last touch, counted in touches.
    pub(super) last: u32,
    /// Time of the touch before it.
    pub(super) before: u32,
    /// Bytes read of it so far.
    pub(super) bytes: u32,
    /// Class of the last read's size.
    pub(super) size: u8,
    /// Newest watch of the page, or [`UNWATCHED`].
    pub(super) watch: u32,
}

/// Class of a read by its size. Index nodes of UBIFS have 28 bytes and 20 for each child, inodes 160; shorter reads
/// are directory entries, longer ones data.
pub(super) fn size_class(bytes: u32) -> u8 {
    match bytes {
        0..=64 => 0,
        65..=188 if (bytes - 28).is_multiple_of(20) => 1,
        160 => 2,
        65..=159 => 0,
        161..=255 => 3,
        256..=1023 => 4,
        1024..=2047 => 5,
        _ => 6,
    }
}

/// The class of index nodes.
pub(super) const INDEX: u8 = 1;

/// Selected weight in each table.
type Features = [u16; TABLES];

#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    features: Features,
    since: u32,
    /// The previous watch of the same page.
    before: u32,
    open: bool,
}

/// Tables, watches and cursors.
#[derive(Clone, Debug)]
pub(super) struct Reuse {
    weights: Vec<i16>,
    /// Ring of watches by number; those from `oldest` to `next` may be open.
    ring: Vec<Watch>,
    oldest: u32,
    next: u32,
    /// Touches until the next watch.
    until_next: u32,
    /// Cursors moved by reads of another size than the page's last; and by reads of pages not touched for long.
    cursors: [Cursors; 2],
    /// Mean time without a touch after which pages lose their line, in 256ths of a touch.
    stay: u64,
    page_shift: u32,
}

fn octave(n: u32) -> usize {
    (32 - n.leading_zeros()) as usize
}

fn half_octave(n: u32) -> usize {
    match n {
        0 | 1 => n as usize,
        _ => {
            let log = 31 - n.leading_zeros();
            (log * 2 + ((n >> (log - 1)) & 1)) as usize
        }
    }
}

/// Touches beyond which a page counts as not touched for long.
const LONG: u32 = 64;

impl Reuse {
    /// For a cache of `lines` lines and pages of `page_bytes`.
    pub(super) fn new(lines: u32, page_bytes: u32) -> Reuse {
        let mut weights = vec![0; BEGIN[TABLES]];
        let by_age = |age: usize| (ONE / 2 - age as i32 * ONE / 50) as i16;
        for age in 0..AGES {
            weights[BEGIN[0] + age * SIZES..][..SIZES].fill(by_age(age));
            for octave in 0..OCTAVES {
                weights[BEGIN[5] + octave * AGES + age] = by_age(age);
            }
        }
        Reuse {
            weights,
            ring: vec![Watch::default(); WATCHED],
            oldest: 1,
            next: 1,
            until_next: 1,
            cursors: [Cursors::new(), Cursors::new()],
            stay: u64::from(lines) * 2 * 256,
            page_shift: page_bytes.trailing_zeros(),
        }
    }

    /// Times restart: forgets what depends on them.
    pub(super) fn restart(&mut self) {
        (self.oldest, self.next) = (1, 1);
        self.ring.fill(Watch::default());
        self.cursors.iter_mut().for_each(Cursors::clear);
    }

    /// Limit of "soon": half of the mean time after which pages lose their line.
    fn soon(&self) -> u32 {
        u32::try_from(self.stay >> 9).unwrap_or(u32::MAX / 4).min(u32::MAX / 4) + 1
    }

    fn features(&self, page: Page, known: &Known, current: Page, now: u32) -> Features {
        let age = half_octave(now - known.last).min(AGES - 1);
        let size = usize::from(known.size);
        let part = ((u64::from(known.bytes) * PARTS as u64) >> self.page_shift).min(PARTS as u64 - 1) as usize;
        let ahead = usize::from(page > current);
        let distance = if page.peb() == current.peb() {
            octave(page.number().abs_diff(current.number())).min(9) * 2 + ahead
        } else {
            20 + octave(page.peb().abs_diff(current.peb())).min(5) * 2 + ahead
        };
        let gap = octave(known.last - known.before).min(OCTAVES - 1);
        let place = |cursors: &Cursors| {
            let (place, span) = cursors.place(known.last, now);
            (place * SPANS + half_octave(span).min(SPANS - 1)) * SIZES + size
        };
        let at = [
            age * SIZES + size,
            part * SIZES + size,
            distance * SIZES + size,
            place(&self.cursors[0]),
            place(&self.cursors[1]),
            gap * AGES + age,
        ];
        std::array::from_fn(|i| (BEGIN[i] + at[i]) as u16)
    }

    fn sum(&self, features: &Features) -> i32 {
        features.iter().map(|&f| i32::from(self.weights[f as usize])).sum()
    }

    fn correct(&mut self, features: &Features, touched: bool) {
        let wanted = if touched { ONE * TABLES as i32 } else { 0 };
        let step = (wanted - self.sum(features)) / RATE;
        for &f in features {
            let weight = &mut self.weights[f as usize];
            *weight = (i32::from(*weight) + step).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        }
    }

    /// How likely `page` is to be touched again soon, in sixths of a 16384th; `current` is the page being touched.
    #[inline]
    pub(super) fn estimate(&self, page: Page, known: &Known, current: Page, now: u32) -> i32 {
        self.sum(&self.features(page, known, current, now))
    }

    /// Notes a touch of a known page, and closes its watches.
    #[inline]
    pub(super) fn touched(&mut self, known: &mut Known, bytes: u32, now: u32) {
        if known.watch != UNWATCHED {
            self.close(known, now);
        }
        let size = size_class(bytes);
        if size != INDEX {
            if size != known.size {
                self.cursors[0].moved(known.last, now);
            }
            if now - known.last > LONG {
                self.cursors[1].moved(known.last, now);
            }
        }
        known.before = known.last;
        known.last = now;
        known.size = size;
        known.bytes = known.bytes.saturating_add(bytes);
    }

    fn close(&mut self, known: &mut Known, now: u32) {
        let mut number = std::mem::replace(&mut known.watch, UNWATCHED);
        let soon = self.soon();
        // Watches below `oldest` are closed, and their places in the ring may be reused.
        while number != UNWATCHED && number >= self.oldest {
            let watch = self.ring[number as usize % WATCHED];
            if watch.open {
                self.ring[number as usize % WATCHED].open = false;
                self.correct(&watch.features, now - watch.since <= soon);
            }
            number = watch.before;
        }
    }

    /// Whether a page is drawn to be watched from now on.
    #[inline]
    pub(super) fn wants_watch(&mut self) -> bool {
        self.until_next -= 1;
        self.until_next == 0
    }

    /// Watches a page; closes watches that are old enough.
    pub(super) fn watch(&mut self, page: Page, known: &mut Known, current: Page, now: u32) {
        let long = 2 * self.soon();
        while self.oldest < self.next {
            let watch = self.ring[self.oldest as usize % WATCHED];
            let full = self.next - self.oldest >= WATCHED as u32;
            if watch.open && now - watch.since <= long && !full {
                break;
            }
            if watch.open {
                self.correct(&watch.features, false);
            }
            self.oldest += 1;
        }
        let features = self.features(page, known, current, now);
        self.ring[self.next as usize % WATCHED] = Watch { features, since: now, before: known.watch, open: true };
        known.watch = self.next;
        self.next += 1;
        // So that the ring has room for all open watches.
        self.until_next = APART + long / (WATCHED as u32 - 1);
    }

    /// A page that had not been touched for `age` has lost its line.
    pub(super) fn left(&mut self, age: u32) {
        self.stay = self.stay - (self.stay >> 8) + u64::from(age);
    }

    /// Bytes of memory.
    pub(super) const BYTES: u64 =
        (BEGIN[TABLES] * size_of::<i16>() + WATCHED * size_of::<Watch>()) as u64 + 2 * Cursors::BYTES;
}
