// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace made into requests for a device of a given size: whole blocks, at most so long, on the device, at times that
//! may be scaled and whose pauses may be cut. It knows sizes and times; when a request is sent is up to the runner.

mod timed;

use super::{Reason, Request, SECTOR_BYTES, TraceError};
use crate::IoKind;
use fixedbitset::FixedBitSet;
use readpath_kit::{BLOCK_BYTES, Ns};
use timed::{ranges, spread};

pub use timed::{Prepared, Speed, TimedIo};

/// What to do with addresses beyond the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fit {
    /// An error that says how large the device has to be.
    #[default]
    Refuse,
    /// Take the address modulo the device: different blocks of the trace become one. The result is no longer that
    /// trace; [`Prepared::warnings`] says so.
    Fold,
}

/// A device that requests have to lie on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Within {
    /// Its blocks of 4 KiB.
    pub device_blocks: u32,
    /// Sectors of 512 bytes added to every address, 0 to 7.
    pub shift_sectors: u8,
}

impl Within {
    /// Whether a request lies on the device.
    #[inline]
    pub(super) fn holds(self, kind: IoKind, offset: u64, bytes: u64) -> bool {
        kind == IoKind::Flush
            || self.end(kind, offset, bytes).is_some_and(|(_, block)| block <= u64::from(self.device_blocks))
    }

    /// End of a request: the byte, and the whole block of the device. None beyond 2^64 bytes.
    #[inline]
    fn end(self, kind: IoKind, offset: u64, bytes: u64) -> Option<(u64, u64)> {
        let shift = u64::from(self.shift_sectors) * SECTOR_BYTES;
        let to = offset.checked_add(bytes)?.checked_add(shift)?;
        let size = u64::from(BLOCK_BYTES);
        // A trim reaches only the whole blocks that it contains; one without any reaches nothing.
        let trimmed = if (to - bytes).div_ceil(size) < to / size { to / size } else { 0 };
        Some((to, if kind == IoKind::Trim { trimmed } else { to.div_ceil(size) }))
    }

    /// The message on a request outside of the device.
    pub(super) fn message(self, kind: IoKind, offset: u64, bytes: u64) -> String {
        let device = u64::from(self.device_blocks) * u64::from(BLOCK_BYTES);
        match self.end(kind, offset, bytes) {
            Some((to, _)) => format!("it ends at byte {to}, beyond the device of {device} bytes"),
            None => "it ends beyond 2^64 bytes".into(),
        }
    }

    /// Bytes of the smallest device that the request lies on, or [`NO_DEVICE`].
    pub(super) fn needed(self, kind: IoKind, offset: u64, bytes: u64) -> u64 {
        let blocks = self.end(kind, offset, bytes).map_or(u64::MAX, |(_, block)| block);
        if blocks > u64::from(u32::MAX) { NO_DEVICE } else { blocks * u64::from(BLOCK_BYTES) }
    }
}

/// Means that no device is large enough: blocks of 4 KiB have numbers of 32 bits.
pub const NO_DEVICE: u64 = u64::MAX;

/// Advice about `requests` requests that do not lie on the device, all of which lie on one of `needed` bytes. If not
/// all of the trace could be read, its rest may need more.
pub(super) fn advice(requests: u64, needed: u64, all_were_read: bool) -> String {
    let others = match requests {
        ..=1 => String::new(),
        n => format!("; {n} requests of the trace lie beyond it"),
    };
    if needed == NO_DEVICE {
        return format!("{others}; no device is that large, so have addresses folded");
    }
    let known = if all_were_read { "" } else { " for what can be read of the trace" };
    let (gib, blocks) = (needed as f64 / (1u64 << 30) as f64, needed / u64::from(BLOCK_BYTES));
    format!(
        "{others}; take a device of at least {needed} bytes ({gib:.1} GiB, {blocks} blocks){known}, or have addresses \
         folded"
    )
}

/// How a trace is prepared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prepare {
    /// Blocks of 4 KiB on the device, at least 1.
    pub device_blocks: u32,
    /// Sectors of 512 bytes added to every address, 0 to 7. Puts right what was recorded behind a partition table that
    /// is not aligned to 4 KiB: see [`super::Info::phases`].
    pub shift_sectors: u8,
    /// What to do with addresses beyond.
    pub fit: Fit,
    /// Longer pauses between two requests are cut to this, before [`Prepare::speed`] applies.
    pub max_idle: Option<Ns>,
    /// Change of speed.
    pub speed: Speed,
    /// Longest request in blocks, at least 1; longer ones become several at the same time.
    pub max_blocks: u16,
}

impl Prepare {
    /// For a device of this size: nothing folded, times as recorded, requests of up to 512 KiB.
    pub fn new(device_blocks: u32) -> Prepare {
        Prepare {
            device_blocks,
            shift_sectors: 0,
            fit: Fit::Refuse,
            max_idle: None,
            speed: Speed::RECORDED,
            max_blocks: 128,
        }
    }

    /// The device that requests have to lie on; none if they are folded onto it.
    pub fn within(&self) -> Option<Within> {
        let Prepare { device_blocks, shift_sectors, .. } = *self;
        (self.fit == Fit::Refuse).then_some(Within { device_blocks, shift_sectors })
    }

    /// Prepares `requests` (such as a [`super::Reader`]) one by one. `file` is named in errors.
    ///
    /// # Errors
    /// A device or a longest request of no blocks, a shift of a block or more.
    pub fn requests<I>(self, file: &str, requests: I) -> Result<Replay<I::IntoIter>, TraceError>
    where
        I: IntoIterator<Item = Result<Request, TraceError>>,
    {
        if self.device_blocks == 0 || self.max_blocks == 0 {
            let message = "the device and the longest request must have at least one block of 4 KiB";
            return Err(TraceError::of_file(file, Reason::Options, message));
        }
        if u64::from(self.shift_sectors) * SECTOR_BYTES >= u64::from(BLOCK_BYTES) {
            let message = format!("addresses can be shifted by 0 to 7 sectors, not by {}", self.shift_sectors);
            return Err(TraceError::of_file(file, Reason::Options, message));
        }
        let none = FixedBitSet::with_capacity(self.device_blocks as usize);
        Ok(Replay {
            file: file.into(),
            requests: requests.into_iter(),
            how: self,
            rest: None,
            clock: 0,
            last: Ns::ZERO,
            known: none.clone(),
            preload: none,
            prepared: Prepared::default(),
            failed: false,
        })
    }
}

/// The rest of a request.
struct Rest {
    time: Ns,
    /// Blocks of the trace's address space.
    block: u64,
    blocks: u64,
    kind: IoKind,
    flags: u8,
    /// Flag of the last piece.
    last: u8,
}

/// Requests to the device, made one at a time from those of a trace.
pub struct Replay<I> {
    file: String,
    requests: I,
    how: Prepare,
    rest: Option<Rest>,
    /// Time of the trace with pauses cut.
    clock: u64,
    /// Time of the request before, as recorded.
    last: Ns,
    /// Blocks whose content the trace decides from now on, or which are in `preload`.
    known: FixedBitSet,
    preload: FixedBitSet,
    prepared: Prepared,
    failed: bool,
}

impl<I: Iterator<Item = Result<Request, TraceError>>> Replay<I> {
    /// Counts of the preparation so far.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// Blocks that were read (or written in part) before they were written or discarded as a whole, as ranges (first
    /// block, blocks) in order: what the device has to hold before the replay begins. Complete at the end.
    pub fn preload(&self) -> Vec<(u32, u32)> {
        ranges(&self.preload)
    }

    /// The requests that this part was made from.
    pub fn into_inner(self) -> I {
        self.requests
    }

    fn error(&self, reason: Reason, message: String) -> TraceError {
        TraceError::of_file(&self.file, reason, format!("request {}: {message}", self.prepared.requests))
    }

    /// Times, blocks and flags of a request; nothing when it is left out.
    fn begin(&mut self, r: &Request) -> Result<Option<Rest>, TraceError> {
        self.prepared.requests += 1;
        if let Some(fault) = r.fault(self.last) {
            return Err(self.error(Reason::Range, fault.into()));
        }
        let p = &mut self.prepared;
        let mut gap = r.time.saturating_sub(self.last);
        self.last = r.time;
        if let Some(most) = self.how.max_idle.filter(|&most| gap > most) {
            p.cut_pauses += 1;
            p.cut_time += gap - most;
            gap = most;
        }
        self.clock += gap.0;
        let Some(time) = self.how.speed.apply(self.clock).map(Ns) else {
            return Err(self.error(Reason::Range, "its time at this speed is beyond 2^64 ns; cut pauses".into()));
        };
        p.end = time;
        let size = u64::from(BLOCK_BYTES);
        let shift = u64::from(self.how.shift_sectors) * SECTOR_BYTES;
        let Some(to) = r.offset.saturating_add(r.bytes).checked_add(shift) else {
            return Err(self.error(Reason::Range, "it ends beyond 2^64 bytes".into()));
        };
        let from = to - r.bytes;
        let (first_partial, last_partial) = (!from.is_multiple_of(size), !to.is_multiple_of(size));
        let (start, end) = (from / size, to.div_ceil(size));
        let mut rest = Rest { time, block: start, blocks: end - start, kind: r.kind, flags: 0, last: 0 };
        rest.flags |= if r.fua { TimedIo::FUA } else { 0 } | if r.preflush { TimedIo::PREFLUSH } else { 0 };
        match r.kind {
            IoKind::Flush => return Ok(Some(Rest { block: 0, blocks: 0, ..rest })),
            IoKind::Read => p.rounded_reads += u64::from(first_partial || last_partial),
            IoKind::Write if first_partial || last_partial => {
                rest.flags |= if first_partial { TimedIo::PARTIAL_FIRST } else { 0 };
                rest.last = if last_partial { TimedIo::PARTIAL_LAST } else { 0 };
                p.partial_writes += 1;
                p.partial_blocks +=
                    if rest.blocks == 1 { 1 } else { u64::from(first_partial) + u64::from(last_partial) };
            }
            IoKind::Write => {}
            IoKind::Trim => {
                let (start, end) = (from.div_ceil(size), to / size);
                if start >= end {
                    p.dropped_trims += 1;
                    return Ok(None);
                }
                p.rounded_trims += u64::from(first_partial || last_partial);
                (rest.block, rest.blocks) = (start, end - start);
            }
        }
        let device = u64::from(self.how.device_blocks);
        if rest.block + rest.blocks > device {
            if let Some(within) = self.how.within() {
                return Err(self.beyond(within, r));
            }
            p.folded += 1;
            rest.flags |= TimedIo::FOLDED;
            if rest.blocks > device {
                if r.kind != IoKind::Trim {
                    let message = format!("its {} bytes are more than the device has", r.bytes);
                    return Err(self.error(Reason::Range, message));
                }
                p.shortened_trims += 1;
                rest.blocks = device;
            }
        }
        Ok(Some(rest))
    }

    /// The error of a request that does not lie on the device; those behind it may need a larger one.
    #[cold]
    fn beyond(&mut self, within: Within, first: &Request) -> TraceError {
        let mut error = self.error(Reason::Beyond, within.message(first.kind, first.offset, first.bytes));
        let (mut count, mut needed) = (1, within.needed(first.kind, first.offset, first.bytes));
        let mut all_were_read = true;
        for r in self.requests.by_ref() {
            let Ok(r) = r else {
                all_were_read = false;
                break;
            };
            if !within.holds(r.kind, r.offset, r.bytes) {
                count += 1;
                needed = needed.max(within.needed(r.kind, r.offset, r.bytes));
            }
        }
        error.needed_bytes = Some(needed);
        error.message += &advice(count, needed, all_were_read);
        error
    }

    /// The next piece of a request, and the rest.
    fn piece(&mut self, mut rest: Rest) -> TimedIo {
        let device = u64::from(self.how.device_blocks);
        let block = rest.block % device;
        let blocks = rest.blocks.min(u64::from(self.how.max_blocks)).min(device - block);
        rest.blocks -= blocks;
        rest.block += blocks;
        let mut flags = rest.flags;
        if rest.blocks == 0 {
            flags |= rest.last;
        }
        self.prepared.ios += 1;
        let io = TimedIo { time: rest.time, block: block as u32, blocks: blocks as u16, kind: rest.kind, flags };
        self.note_content(&io);
        if rest.blocks > 0 {
            self.prepared.split += u64::from(flags & TimedIo::CONTINUED == 0);
            let once = TimedIo::PREFLUSH | TimedIo::PARTIAL_FIRST;
            rest.flags = rest.flags & !once | TimedIo::CONTINUED;
            self.rest = Some(rest);
        }
        io
    }

    /// Tracks blocks that are read before the trace writes them.
    fn note_content(&mut self, io: &TimedIo) {
        let (first, end) = (io.block as usize, io.block as usize + usize::from(io.blocks));
        for block in first..end {
            let partial = (block == first && io.partial_first()) || (block + 1 == end && io.partial_last());
            if !self.known.put(block) && (io.kind == IoKind::Read || partial) {
                self.preload.insert(block);
            }
        }
    }
}

impl<I: Iterator<Item = Result<Request, TraceError>>> Iterator for Replay<I> {
    type Item = Result<TimedIo, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(rest) = self.rest.take() {
            return Some(Ok(self.piece(rest)));
        }
        while !self.failed {
            let request = match self.requests.next()? {
                Ok(request) => request,
                Err(e) => {
                    self.failed = true;
                    return Some(Err(e));
                }
            };
            match self.begin(&request) {
                Ok(Some(rest)) => return Some(Ok(self.piece(rest))),
                Ok(None) => {}
                Err(e) => {
                    self.failed = true;
                    return Some(Err(e));
                }
            }
        }
        None
    }
}

/// Requests for which memory is taken at first, and at a time later: 1 and 256 MiB.
const FIRST_STEP: usize = 1 << 16;
const LARGEST_STEP: usize = 1 << 24;

fn no_memory(loaded: usize, why: &str) -> String {
    format!(
        "there is no memory for more than the first {loaded} requests to the device ({} bytes each): {why}; split the \
         trace, or replay it on a machine with more memory",
        size_of::<TimedIo>()
    )
}

/// A prepared trace in memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The requests, in order of time.
    pub ios: Vec<TimedIo>,
    /// Blocks that the device has to hold before the replay begins: first block and how many, in order.
    pub preload: Vec<(u32, u32)>,
    /// Counts of the preparation.
    pub prepared: Prepared,
}

impl Loaded {
    /// Takes all of `replay`, which is left empty so that its reader can still be asked for its summary.
    ///
    /// # Errors
    /// Those of the trace, more than `max_ios` requests (16 bytes each), and memory that cannot be had.
    pub fn load<I>(replay: &mut Replay<I>, max_ios: usize) -> Result<Loaded, TraceError>
    where
        I: Iterator<Item = Result<Request, TraceError>>,
    {
        Loaded::load_if(replay, max_ios, |_| Ok(()))
    }

    /// As [`Loaded::load`], asking `may_take` before more bytes are taken, 256 MiB at a time at most: an allocation may
    /// succeed although its memory is missing when it is written to.
    ///
    /// # Errors
    /// Those of [`Loaded::load`], and the error of `may_take`.
    pub fn load_if<I>(
        replay: &mut Replay<I>,
        max_ios: usize,
        may_take: impl Fn(u64) -> Result<(), String>,
    ) -> Result<Loaded, TraceError>
    where
        I: Iterator<Item = Result<Request, TraceError>>,
    {
        let mut ios: Vec<TimedIo> = Vec::new();
        while let Some(io) = replay.next() {
            let io = io?;
            if ios.len() == max_ios {
                let message = format!(
                    "the trace has more than {max_ios} requests to the device, as many as are loaded; split it"
                );
                return Err(replay.error(Reason::Limit, message));
            }
            if ios.len() == ios.capacity() {
                let more = ios.len().clamp(FIRST_STEP, LARGEST_STEP).min(max_ios - ios.len());
                may_take((more * size_of::<TimedIo>()) as u64)
                    .and_then(|()| ios.try_reserve_exact(more).map_err(|e| e.to_string()))
                    .map_err(|why| replay.error(Reason::Limit, no_memory(ios.len(), &why)))?;
            }
            ios.push(io);
        }
        Ok(Loaded { ios, preload: replay.preload(), prepared: replay.prepared })
    }

    /// Gives requests that share a time times of their own: spread evenly until the next one, but at most over `most`
    /// of the times as recorded. It assumes that they came at even distances.
    pub fn spread_ties(&mut self, most: Ns, speed: Speed) {
        let most = speed.apply(most.0).map_or(most, Ns);
        self.prepared.spread = spread(&mut self.ios, most);
        self.prepared.spread_over = most;
        self.prepared.end = self.ios.last().map_or(Ns::ZERO, |io| io.time);
    }

    /// Blocks to preload in all.
    pub fn preload_blocks(&self) -> u64 {
        self.preload.iter().map(|r| u64::from(r.1)).sum()
    }
}
