// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace is like: requests, sizes, footprint, sequentiality, reuse, skew, load over time, pauses. It sees
//! requests one by one and knows no device; map pages are only a span of addresses.
//!
//! Memory: 512 bytes for each 4 MiB of address space that is touched, about 90 bytes for each map page, 8 bytes for
//! each request in progress; nothing grows with the number of requests. [`Analysis::new`] takes a limit.

mod footprint;
mod load;
mod reuse;
mod skew;

use super::{Reason, Request, SECTOR_BYTES, TraceError};
use crate::IoKind;
use readpath_kit::{BLOCK_BYTES, Ns};

pub use footprint::Footprint;
pub use load::{Depth, GapClass, Gaps, Slot, Timeline};
pub use reuse::Reuse;
pub use skew::Skew;

/// Size classes: up to 512 bytes, then doubling; the last is everything above 4 MiB.
pub const SIZE_CLASSES: usize = 15;
/// How many ends of requests are remembered to recognise interleaved sequential streams.
const STREAMS: usize = 32;

/// The span of addresses in bytes that one map page of `page_bytes` translates, at 4 bytes for each block of 4 KiB.
const fn map_page_span(page_bytes: u32) -> u64 {
    (page_bytes as u64 / 4) * BLOCK_BYTES as u64
}

/// Requests of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindInfo {
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the smallest.
    pub smallest: u64,
    /// Bytes of the largest.
    pub largest: u64,
    /// How many of each size class; [`class_limit`] has the bounds.
    pub sizes: [u64; SIZE_CLASSES],
    /// Requests that do not begin and end at a multiple of 4 KiB.
    pub unaligned: u64,
    /// Requests that begin where the previous one of this kind ended.
    pub sequential: u64,
    /// Requests that begin where one of the previous 32 of this kind ended: interleaved sequential streams.
    pub in_streams: u64,
    /// Requests with force unit access.
    pub fua: u64,
}

/// Largest size in bytes of a class; `None` for the last.
pub fn class_limit(class: usize) -> Option<u64> {
    (class + 1 < SIZE_CLASSES).then(|| 512 << class)
}

fn class_of(bytes: u64) -> usize {
    (bytes.div_ceil(512).next_power_of_two().trailing_zeros() as usize).min(SIZE_CLASSES - 1)
}

/// Everything about a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Info {
    /// Figures by kind: read, write, trim, flush.
    pub kinds: [KindInfo; 4],
    /// Time of the last request.
    pub span: Ns,
    /// Writes with a flush before them.
    pub preflushes: u64,
    /// Reads and writes by where in a block of 4 KiB they begin: at sector 0, 1, ... 7. If most begin at one that is
    /// not 0, the trace was recorded behind a partition that is not aligned, and a shift puts it right.
    pub phases: [u64; 8],
    /// Blocks touched.
    pub footprint: Footprint,
    /// Reuse of map pages by reads, for each span asked for.
    pub reuse: Vec<Reuse>,
    /// How unevenly accesses spread over map pages, for each span asked for.
    pub skew: Vec<Skew>,
    /// Pauses between requests.
    pub gaps: Gaps,
    /// Load over time.
    pub timeline: Timeline,
    /// Requests in progress; `None` where the trace has no latency.
    pub depth: Option<Depth>,
}

impl Info {
    /// Requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.kinds.iter().map(|k| k.requests).sum()
    }

    /// Share of reads among reads and writes, 0 to 1; `None` without either.
    pub fn read_ratio(&self) -> Option<f64> {
        let [r, w] = [IoKind::Read, IoKind::Write].map(|k| self.kinds[k as usize].requests);
        (r + w > 0).then(|| r as f64 / (r + w) as f64)
    }
}

/// Collects an [`Info`].
#[derive(Default)]
pub struct Analysis {
    kinds: [KindInfo; 4],
    ends: [[u64; STREAMS]; 3],
    next_end: [usize; 3],
    preflushes: u64,
    phases: [u64; 8],
    last: Ns,
    footprint: footprint::Tracker,
    reuse: Vec<reuse::Tracker>,
    skew: Vec<skew::Tracker>,
    gaps: load::GapTracker,
    timeline: Timeline,
    depth: load::DepthTracker,
    limit_bytes: u64,
}

impl Analysis {
    /// Spans of 4 MiB and 16 MiB: map pages of 4 KiB and 16 KiB.
    pub const MAP_SPANS: [u64; 2] = [map_page_span(4 << 10), map_page_span(16 << 10)];
    /// Memory that is enough for a footprint of 4 TiB.
    pub const LIMIT_BYTES: u64 = 1 << 30;

    /// An analysis with reuse and skew of each of `spans` (bytes of address space, at least one block), in at most
    /// `limit_bytes` of memory.
    ///
    /// # Errors
    /// A span below 4 KiB.
    pub fn new(spans: &[u64], limit_bytes: u64) -> Result<Analysis, TraceError> {
        if let Some(span) = spans.iter().find(|&&s| s < u64::from(BLOCK_BYTES)) {
            let message = format!("a map page spans at least {BLOCK_BYTES} bytes, not {span}");
            return Err(TraceError::of_file("trace", Reason::Options, message));
        }
        Ok(Analysis {
            ends: [[u64::MAX; STREAMS]; 3],
            reuse: spans.iter().map(|&s| reuse::Tracker::new(s)).collect(),
            skew: spans.iter().map(|&s| skew::Tracker::new(s)).collect(),
            limit_bytes,
            ..Analysis::default()
        })
    }

    /// Takes the next request.
    ///
    /// # Errors
    /// A request that no [`super::Reader`] gives: earlier than the one before, beyond 2^64 bytes, or a read of nothing.
    /// When the footprint or the number of requests in progress needs more memory than allowed.
    pub fn add(&mut self, r: &Request) -> Result<(), TraceError> {
        if let Some(fault) = r.fault(self.last) {
            return Err(TraceError::of_file("trace", Reason::Range, fault));
        }
        self.gaps.add(r.time);
        self.last = r.time;
        self.depth.add(r);
        self.timeline.add(r, self.depth.now());
        self.preflushes += u64::from(r.preflush);
        let kind = &mut self.kinds[r.kind as usize];
        kind.requests += 1;
        kind.fua += u64::from(r.fua);
        if r.kind != IoKind::Flush {
            let block = u64::from(BLOCK_BYTES);
            kind.smallest = if kind.requests == 1 { r.bytes } else { kind.smallest.min(r.bytes) };
            kind.largest = kind.largest.max(r.bytes);
            kind.bytes = kind.bytes.saturating_add(r.bytes);
            kind.sizes[class_of(r.bytes)] += 1;
            kind.unaligned += u64::from(!r.offset.is_multiple_of(block) || !r.bytes.is_multiple_of(block));
            self.sequence(r);
        }
        if matches!(r.kind, IoKind::Read | IoKind::Write) {
            self.footprint.add(r);
            self.skew.iter_mut().for_each(|t| t.add(r.offset, r.bytes, r.kind == IoKind::Read));
            self.phases[(r.offset / SECTOR_BYTES % 8) as usize] += 1;
        }
        if r.kind == IoKind::Read {
            self.reuse.iter_mut().for_each(|t| t.add(r.offset, r.bytes));
        }
        let bytes = self.bytes();
        if bytes > self.limit_bytes {
            let message = format!(
                "the analysis needs more than {} bytes of memory: {} of footprint, {} requests in progress",
                self.limit_bytes,
                self.footprint.bytes(),
                self.depth.now()
            );
            return Err(TraceError::of_file("trace", Reason::Limit, message));
        }
        Ok(())
    }

    fn sequence(&mut self, r: &Request) {
        let i = r.kind as usize;
        let (ends, next) = (&mut self.ends[i], &mut self.next_end[i]);
        let kind = &mut self.kinds[i];
        let before = (*next + STREAMS - 1) % STREAMS;
        let end = r.offset.saturating_add(r.bytes);
        if ends[before] == r.offset {
            kind.sequential += 1;
            kind.in_streams += 1;
            ends[before] = end;
            return;
        }
        if let Some(stream) = ends.iter().position(|&e| e == r.offset) {
            kind.in_streams += 1;
            ends[stream] = ends[before];
            ends[before] = end;
            return;
        }
        ends[*next] = end;
        *next = (*next + 1) % STREAMS;
    }

    /// Memory in use.
    pub fn bytes(&self) -> u64 {
        let reuse: u64 = self.reuse.iter().map(reuse::Tracker::bytes).sum();
        let skew: u64 = self.skew.iter().map(skew::Tracker::bytes).sum();
        self.footprint.bytes() + self.depth.bytes() + reuse + skew
    }

    /// The result.
    pub fn finish(self) -> Info {
        Info {
            kinds: self.kinds,
            span: self.last,
            preflushes: self.preflushes,
            phases: self.phases,
            footprint: self.footprint.finish(),
            reuse: self.reuse.into_iter().map(reuse::Tracker::finish).collect(),
            skew: self.skew.into_iter().map(skew::Tracker::finish).collect(),
            gaps: self.gaps.finish(),
            timeline: self.timeline,
            depth: self.depth.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_end_where_they_say() {
        for (bytes, class) in [(1, 0), (512, 0), (513, 1), (4096, 3), (4097, 4), (4 << 20, 13), ((4 << 20) + 1, 14)] {
            assert_eq!(class_of(bytes), class, "{bytes}");
        }
        assert_eq!(class_of(u64::MAX), 14);
        assert_eq!((class_limit(3), class_limit(13), class_limit(14)), (Some(4096), Some(4 << 20), None));
        assert_eq!(Analysis::MAP_SPANS, [4 << 20, 16 << 20]);
    }
}
