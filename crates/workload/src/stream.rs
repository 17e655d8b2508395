// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generators of requests. A [`Stream`] is made from a [`StreamSpec`] and a seed and may be asked for any number of
//! requests ahead of time: it knows nothing of completions, clocks or limits other than its own length.

use std::sync::Arc;

use readpath_kit::{Permutation, Prng};

use crate::dist::{Pareto, Zipf, Zoned};
use crate::spec::{Kinds, Offsets, ReadBack, Sizes, StreamError, StreamSpec, Stride, check, used};
use crate::{Io, IoKind};

#[derive(Clone, Debug)]
enum Length {
    Fixed(u16),
    /// Unit and number of multiples.
    Range(u16, u16),
    /// Running sums of the weights.
    Split(Arc<[(u64, u16)]>),
}

impl Length {
    fn new(sizes: &Sizes) -> Length {
        match sizes {
            Sizes::Fixed(n) => Length::Fixed(*n),
            Sizes::Range { min, max } => Length::Range(*min, max / min),
            Sizes::Split(list) => {
                let mut sum = 0u64;
                let weighted = list.iter().filter(|e| e.1 > 0);
                let sums = weighted.map(|&(n, w)| {
                    sum += u64::from(w);
                    (sum, n)
                });
                Length::Split(sums.collect())
            }
        }
    }

    #[inline]
    fn draw(&self, rng: &mut Prng) -> u16 {
        match self {
            Length::Fixed(n) => *n,
            Length::Range(unit, count) => unit * (1 + rng.below(u64::from(*count)) as u16),
            Length::Split(sums) => {
                let last = sums[sums.len() - 1];
                let x = rng.below(last.0);
                sums.iter().find(|e| x < e.0).unwrap_or(&last).1
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Place {
    Sequential,
    Uniform,
    /// Index into the passes.
    Once(usize),
    Zipf(Zipf),
    Pareto(Pareto),
    Zoned(Zoned),
}

#[derive(Clone, Debug)]
struct Lane {
    length: Length,
    place: Place,
    /// Scatters ranks over the region.
    scatter: Permutation,
    /// Shortest length, and how many such units the region holds.
    unit: u32,
    units: u32,
    random_percent: u8,
    /// Offset of the next sequential request in the region.
    next: u64,
}

/// A pass in random order: a permutation of the next power of two of which the images beyond the region are skipped.
/// Walking a permutation of the exact number would mispredict a branch at every other place.
#[derive(Clone, Debug)]
struct Pass {
    order: Permutation,
    seed: u64,
    units: u32,
    at: u64,
    end: u64,
    number: u64,
}

impl Pass {
    fn new(units: u32, seed: u64) -> Pass {
        let end = u64::from(units).next_power_of_two();
        Pass { order: Pass::order(end, seed, 0), seed, units, at: 0, end, number: 0 }
    }

    fn order(end: u64, seed: u64, number: u64) -> Permutation {
        Permutation::new(end, Prng::stream(seed, "pass", number).next_u64())
    }

    #[inline]
    fn turn(&mut self) {
        if self.at == self.end {
            self.at = 0;
            self.number += 1;
            self.order = Pass::order(self.end, self.seed, self.number);
        }
    }

    #[inline]
    fn next(&mut self) -> u32 {
        loop {
            self.turn();
            let unit = self.order.get(self.at);
            self.at += 1;
            if unit < u64::from(self.units) {
                return unit as u32;
            }
        }
    }

    /// Writes as many places as fit to `out`, which is not empty; each goes through `make`.
    #[inline]
    fn fill(&mut self, out: &mut [Io], make: impl Fn(u32) -> Io) {
        let mut n = 0;
        while n < out.len() {
            self.turn();
            while n < out.len() && self.at < self.end {
                let unit = self.order.get(self.at);
                self.at += 1;
                // A place beyond the region is written over by the next one.
                out[n] = make(unit as u32);
                n += usize::from(unit < u64::from(self.units));
            }
        }
    }
}

/// What was written and is to be read back.
#[derive(Clone, Debug)]
struct Written {
    after: ReadBack,
    /// Blocks of requests at which it is due.
    due: u64,
    /// Writes that were not read back, and how many of them are being read back now.
    unread: u64,
    reading: u64,
    /// The same stream at the first of these writes, without limit and flushes.
    again: Box<Stream>,
}

/// Zones of sequential requests.
#[derive(Clone, Debug)]
struct Zones {
    of: Stride,
    /// Blocks that were used of the present zone.
    used: u64,
}

/// A deterministic sequence of requests: the same specification and seed give the same requests on every machine.
#[derive(Clone, Debug)]
pub struct Stream {
    rng: Prng,
    start: u32,
    blocks: u32,
    kinds: Kinds,
    /// One kind and length, every offset drawn independently: most streams are such, and a tight loop makes them.
    plain: Option<(IoKind, u16)>,
    lanes: [Lane; 3],
    passes: [Pass; 3],
    run: u32,
    run_left: u32,
    skip: i64,
    zones: Option<Zones>,
    written: Option<Written>,
    fua: bool,
    flush_every: [u32; 2],
    flush_in: [u32; 2],
    limit: u64,
    issued: u64,
    end_flush: bool,
    ended: bool,
    /// A request that must come next: the flush after a write or the write after a trim.
    pending: Option<Io>,
}

/// What a stream asks for next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// This request.
    Ready(Io),
    /// A request of this kind; in a mix, the caller may ask for the other kind instead.
    Of {
        /// The kind that was drawn: read, write or trim.
        kind: IoKind,
        /// The other kind of the mix.
        other: Option<IoKind>,
    },
    /// The stream has ended.
    End,
}

const FLUSH: Io = Io { block: 0, blocks: 0, kind: IoKind::Flush, fua: false };

impl Stream {
    /// The stream that `seed` chooses.
    ///
    /// # Errors
    /// Says which value of the specification cannot be run.
    pub fn new(spec: &StreamSpec, seed: u64) -> Result<Stream, StreamError> {
        check(spec)?;
        let mut units = [0u32; 3];
        for (i, sizes) in spec.sizes.iter().enumerate() {
            // Kinds that are never made may have any length.
            units[i] = if used(spec.kinds, i) { u32::from(sizes.min()) } else { 1 };
        }
        let lanes: [Lane; 3] = std::array::from_fn(|i| {
            let count = (spec.blocks / units[i]).max(1);
            let place = if used(spec.kinds, i) { &spec.offsets[i] } else { &Offsets::Sequential };
            let place = match place {
                Offsets::Sequential => Place::Sequential,
                Offsets::Uniform => Place::Uniform,
                // The first used kind of the same unit leads the passes.
                Offsets::Once => {
                    Place::Once((0..i).find(|&j| used(spec.kinds, j) && units[j] == units[i]).unwrap_or(i))
                }
                Offsets::Zipf(theta) => Place::Zipf(Zipf::new(count, *theta)),
                Offsets::Pareto(h) => Place::Pareto(Pareto::new(count, *h)),
                Offsets::Zoned(zones) => Place::Zoned(Zoned::new(count, zones)),
            };
            let length = if used(spec.kinds, i) { Length::new(&spec.sizes[i]) } else { Length::Fixed(1) };
            let sequential = matches!(place, Place::Sequential);
            Lane {
                length,
                place,
                scatter: Permutation::new(u64::from(count), 0),
                unit: units[i],
                units: count,
                random_percent: if sequential { 0 } else { spec.random_percent[i] },
                next: 0,
            }
        });
        let plain = match (spec.kinds, &lanes) {
            (Kinds::Only(kind), lanes) => match &lanes[kind as usize] {
                Lane { length: Length::Fixed(n), random_percent: 100, .. }
                    if spec.run == 1
                        && spec.read_back.is_none()
                        && (kind != IoKind::Write || spec.flush_every == [0; 2]) =>
                {
                    Some((kind, *n))
                }
                _ => None,
            },
            _ => None,
        };
        let pass = Pass::new(1, 0);
        let mut stream = Stream {
            rng: Prng::new(0),
            start: 0,
            blocks: spec.blocks,
            kinds: spec.kinds,
            plain,
            lanes,
            passes: [pass.clone(), pass.clone(), pass],
            run: spec.run,
            run_left: 0,
            skip: spec.skip_blocks,
            zones: spec.stride.map(|of| Zones { of, used: 0 }),
            written: None,
            fua: spec.fua,
            flush_every: spec.flush_every,
            flush_in: spec.flush_every,
            limit: spec.limit_blocks.unwrap_or(u64::MAX),
            issued: 0,
            end_flush: spec.end_flush,
            ended: false,
            pending: None,
        };
        stream.restart(spec.start_block, seed);
        stream.written = spec.read_back.map(|after| {
            let unlimited = Stream { limit: u64::MAX, flush_every: [0; 2], ..stream.clone() };
            Written { after, due: after.blocks, unread: 0, reading: 0, again: Box::new(unlimited) }
        });
        Ok(stream)
    }

    /// Reads of `blocks_per_io` blocks at random places, with replacement, without end.
    pub fn uniform_reads(start: u32, blocks: u32, blocks_per_io: u16, seed: u64) -> Result<Stream, StreamError> {
        Stream::new(&StreamSpec::plain(IoKind::Read, start, blocks, blocks_per_io, Offsets::Uniform), seed)
    }

    /// Requests of one kind one after another, from the start again at the end.
    pub fn sequential(kind: IoKind, start: u32, blocks: u32, blocks_per_io: u16) -> Result<Stream, StreamError> {
        Stream::new(&StreamSpec::plain(kind, start, blocks, blocks_per_io, Offsets::Sequential), 0)
    }

    /// Each place once per pass, every pass in a new random order, without end.
    pub fn once(kind: IoKind, start: u32, blocks: u32, blocks_per_io: u16, seed: u64) -> Result<Stream, StreamError> {
        Stream::new(&StreamSpec::plain(kind, start, blocks, blocks_per_io, Offsets::Once), seed)
    }

    /// A fresh stream of the same specification at another place with another seed; shares the tables of this one.
    ///
    /// # Errors
    /// The region at `start_block` may end beyond the last block number.
    pub fn sibling(&self, start_block: u32, seed: u64) -> Result<Stream, StreamError> {
        if u64::from(start_block) + u64::from(self.blocks) > 1 << 32 {
            return Err(StreamError::RegionTooFar);
        }
        let mut other = self.clone();
        other.restart(start_block, seed);
        Ok(other)
    }

    /// Whether it makes other requests than reads.
    pub fn writes(&self) -> bool {
        self.kinds != Kinds::Only(IoKind::Read) && self.kinds != Kinds::Mix(100)
    }

    /// First block and length of the region that the requests stay in.
    pub fn region(&self) -> (u32, u32) {
        (self.start, self.blocks)
    }

    /// Blocks after which the stream ends, if it does. The last request may go beyond.
    pub fn total_blocks(&self) -> Option<u64> {
        (self.limit != u64::MAX).then_some(self.limit)
    }

    /// Requests that the stream makes from now on, if it ends: counted, or if they are many, judged by the first of
    /// them.
    pub fn expected_requests(&self) -> Option<u64> {
        const MOST: usize = 1024;
        let total = self.total_blocks()?;
        let mut first = [FLUSH; MOST];
        let mut stream = Stream { written: None, ..self.clone() };
        let requests = stream.fill(&mut first) as u64;
        let writes = first.iter().filter(|io| io.kind == IoKind::Write).count() as u64;
        let read_back = if self.written.is_some() { writes } else { 0 };
        let (seen, left) = (stream.issued - self.issued, total.saturating_sub(self.issued));
        match requests < MOST as u64 || seen >= left {
            true => Some(requests + read_back),
            false => Some((u128::from(left) * u128::from(requests + read_back) / u128::from(seen)) as u64),
        }
    }

    /// Writes the next requests to the front of `out` and returns how many. 0 = ended (or `out` is empty); a stream
    /// that has ended stays so. The requests do not depend on how they are cut into batches.
    pub fn fill(&mut self, out: &mut [Io]) -> usize {
        if let Some((kind, length)) = self.plain {
            return self.fill_plain(out, kind, length);
        }
        let mut rng = self.rng.clone();
        let mut n = 0;
        for slot in out {
            match self.next(&mut rng) {
                Some(io) => *slot = io,
                None => break,
            }
            n += 1;
        }
        self.rng = rng;
        n
    }

    fn fill_plain(&mut self, out: &mut [Io], kind: IoKind, blocks: u16) -> usize {
        let left = self.limit.saturating_sub(self.issued).div_ceil(u64::from(blocks));
        let n = out.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.issued += n as u64 * u64::from(blocks);
        let lane = &self.lanes[kind as usize];
        let (start, unit, units) = (self.start, lane.unit, lane.units);
        let fua = self.fua && kind == IoKind::Write;
        // The length is the unit, so every place has room for it. Wrapping: a place that is skipped may lie anywhere.
        let make = |place: u32| Io { block: start.wrapping_add(place.wrapping_mul(unit)), blocks, kind, fua };
        let mut rng = self.rng.clone();
        let slots = &mut out[..n];
        match &lane.place {
            Place::Uniform | Place::Sequential => {
                slots.iter_mut().for_each(|io| *io = make(rng.below(u64::from(units)) as u32));
            }
            Place::Once(pass) => self.passes[*pass].fill(slots, make),
            Place::Zipf(zipf) => {
                let place = |rank: u32| lane.scatter.get(u64::from(rank)) as u32;
                slots.iter_mut().for_each(|io| *io = make(place(zipf.sample(&mut rng))));
            }
            Place::Pareto(pareto) => {
                let place = |rank: u32| lane.scatter.get(u64::from(rank)) as u32;
                slots.iter_mut().for_each(|io| *io = make(place(pareto.sample(&mut rng))));
            }
            Place::Zoned(zoned) => slots.iter_mut().for_each(|io| *io = make(zoned.sample(&mut rng))),
        }
        self.rng = rng;
        // Room is left only when the limit has been reached.
        if n < out.len() && !std::mem::replace(&mut self.ended, true) && self.end_flush {
            out[n] = FLUSH;
            return n + 1;
        }
        n
    }

    fn restart(&mut self, start_block: u32, seed: u64) {
        self.start = start_block;
        self.rng = Prng::stream(seed, "requests", 0);
        for (i, lane) in self.lanes.iter_mut().enumerate() {
            let key = Prng::stream(seed, "scatter", i as u64).next_u64();
            lane.scatter = Permutation::new(u64::from(lane.units), key);
            lane.next = 0;
            self.passes[i] = Pass::new(lane.units, seed);
        }
        self.run_left = 0;
        if let Some(zones) = &mut self.zones {
            zones.used = 0;
        }
        if let Some(written) = &mut self.written {
            (written.due, written.unread, written.reading) = (written.after.blocks, 0, 0);
            written.again.restart(start_block, seed);
        }
        self.flush_in = self.flush_every;
        self.issued = 0;
        self.ended = false;
        self.pending = None;
    }

    #[inline]
    fn next(&mut self, rng: &mut Prng) -> Option<Io> {
        match self.draw(rng) {
            Turn::Ready(io) => Some(io),
            Turn::Of { kind, .. } => Some(self.place_one(kind, rng)),
            Turn::End => None,
        }
    }

    /// The next request, its place not yet drawn: for a caller that paces each kind separately. After [`Turn::Of`] it
    /// calls [`Stream::request`]; with the drawn kinds, the requests are those of [`Stream::fill`].
    pub fn turn(&mut self) -> Turn {
        let mut rng = self.rng.clone();
        let turn = self.draw(&mut rng);
        self.rng = rng;
        turn
    }

    /// The request of a [`Turn::Of`], of the kind that was drawn or of the other one.
    pub fn request(&mut self, kind: IoKind) -> Io {
        let mut rng = self.rng.clone();
        let io = self.place_one(kind, &mut rng);
        self.rng = rng;
        io
    }

    #[inline]
    fn draw(&mut self, rng: &mut Prng) -> Turn {
        if let Some(io) = self.pending.take() {
            if io.kind != IoKind::Flush {
                self.issued += u64::from(io.blocks);
                self.count_write();
                return Turn::Ready(io);
            }
            // As in fio, the end of the job comes before a flush that is due.
            if self.issued < self.limit {
                return Turn::Ready(io);
            }
        }
        if self.issued >= self.limit {
            let first = !std::mem::replace(&mut self.ended, true);
            if first && self.end_flush {
                return Turn::Ready(FLUSH);
            }
            return self.read_back().map_or(Turn::End, Turn::Ready);
        }
        if self.written.is_some()
            && let Some(io) = self.read_back()
        {
            return Turn::Ready(io);
        }
        match self.kinds {
            Kinds::Only(kind) => Turn::Of { kind, other: None },
            Kinds::Mix(reads) => {
                let pair = [IoKind::Write, IoKind::Read];
                let read = rng.below(100) < u64::from(reads);
                let mixed = (1..100).contains(&reads);
                Turn::Of { kind: pair[usize::from(read)], other: mixed.then_some(pair[usize::from(!read)]) }
            }
            Kinds::TrimWrite => Turn::Of { kind: IoKind::Trim, other: None },
        }
    }

    /// The next read of what was written, if one is due.
    #[inline(never)]
    fn read_back(&mut self) -> Option<Io> {
        let written = self.written.as_mut()?;
        if written.reading == 0 {
            let due = self.issued >= written.due || written.unread >= written.after.writes || self.issued >= self.limit;
            if !due {
                return None;
            }
            while written.due <= self.issued {
                written.due = written.due.saturating_add(written.after.blocks);
            }
            written.reading = std::mem::take(&mut written.unread);
        }
        written.reading = written.reading.checked_sub(1)?;
        let mut one = [FLUSH];
        while one[0].kind != IoKind::Write {
            written.again.fill(&mut one);
        }
        Some(Io { kind: IoKind::Read, fua: false, ..one[0] })
    }

    #[inline]
    fn place_one(&mut self, kind: IoKind, rng: &mut Prng) -> Io {
        let lane = kind as usize;
        let length = self.lanes[lane].length.draw(rng);
        let (at, blocks) = self.place(lane, length, rng);
        self.issued += u64::from(blocks);
        let block = self.start + at;
        if self.kinds == Kinds::TrimWrite {
            self.pending = Some(Io { block, blocks, kind: IoKind::Write, fua: self.fua });
        } else if kind == IoKind::Write {
            self.count_write();
        }
        Io { block, blocks, kind, fua: self.fua && kind == IoKind::Write }
    }

    /// Offset of a request of `length` blocks in the region, and how many of its blocks fit there.
    #[inline]
    fn place(&mut self, lane: usize, length: u16, rng: &mut Prng) -> (u32, u16) {
        let l = &mut self.lanes[lane];
        let percent = l.random_percent;
        let random = if percent == 100 { true } else { percent > 0 && rng.below(100) < u64::from(percent) };
        let within = l.next + u64::from(length) <= u64::from(self.blocks);
        if !random || (self.run_left > 0 && within) {
            let at = if within { l.next } else { 0 };
            let fits = u64::from(length).min(u64::from(self.blocks));
            // Only wholly sequential lanes leave gaps.
            let mut gap = if percent == 0 { self.skip } else { 0 };
            if let Some(Zones { of, used }) = &mut self.zones {
                *used = if within { *used + fits } else { fits };
                if *used >= u64::from(of.used) {
                    gap += i64::from(of.step) - *used as i64;
                    *used = 0;
                }
            }
            let end = u64::from(self.blocks);
            l.next = (at + fits).checked_add_signed(gap).unwrap_or_else(|| end.saturating_add_signed(gap));
            self.run_left = self.run_left.saturating_sub(1);
            return (at as u32, fits as u16);
        }
        let unit = match &l.place {
            Place::Uniform | Place::Sequential => rng.below(u64::from(l.units)) as u32,
            Place::Once(pass) => self.passes[*pass].next(),
            Place::Zipf(zipf) => l.scatter.get(u64::from(zipf.sample(rng))) as u32,
            Place::Pareto(pareto) => l.scatter.get(u64::from(pareto.sample(rng))) as u32,
            Place::Zoned(zoned) => zoned.sample(rng),
        };
        let l = &mut self.lanes[lane];
        let at = unit * l.unit;
        let fits = u32::from(length).min(self.blocks - at);
        l.next = u64::from(at) + u64::from(fits);
        self.run_left = self.run - 1;
        (at, fits as u16)
    }

    /// Counts a write and puts a flush next when one is due.
    #[inline]
    fn count_write(&mut self) {
        if let Some(written) = &mut self.written {
            written.unread += 1;
        }
        if self.flush_every == [0; 2] {
            return;
        }
        for (left, every) in self.flush_in.iter_mut().zip(self.flush_every) {
            if every > 0 {
                *left -= 1;
                if *left == 0 {
                    *left = every;
                    self.pending = Some(FLUSH);
                }
            }
        }
    }
}
