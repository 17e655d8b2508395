// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often a map cache of any size would hit under a trace: least recently used, filled on demand. It sees requests
//! one by one, knows no device and no time. A map page is a span of addresses; its size in memory is not known here.

use super::reuse::{Curve, Distances};
use super::{Reason, Request, TraceError};
use crate::IoKind;
use readpath_kit::BLOCK_BYTES;

readpath_kit::named! {
    /// Whose accesses a cache sees.
    #[derive(PartialOrd, Ord)]
    pub enum Of {
        /// A map for reads alone.
        Reads = "reads",
        /// A map for writes alone.
        Writes = "writes",
        /// Reads and writes together.
        All = "all",
    }
}

impl Of {}

/// The curves for one size of map pages.
#[derive(Clone, PartialEq, Debug)]
pub struct SpanCurves {
    /// Bytes of address space that a page translates.
    pub span_bytes: u64,
    /// Curves in the order of [`Of::ALL`]. A request is an access to each page that it touches.
    pub curves: [Curve; 3],
    /// The share of pages that was followed for each, 0 to 1: 1 without a sample.
    pub shares: [f64; 3],
}

impl SpanCurves {
    /// The smallest number of pages for which a curve is valid: a sample says nothing of a cache that holds fewer than
    /// some dozens of its pages.
    pub fn least(&self, of: Of) -> u64 {
        let share = self.shares[of as usize];
        if share < 1.0 { (SAMPLED_PAGES / share).ceil() as u64 } else { 1 }
    }

    /// The curve of one kind of accesses.
    pub fn of(&self, of: Of) -> &Curve {
        &self.curves[of as usize]
    }
}

/// Pages of a sample that a cache has to hold before its hits are believed.
const SAMPLED_PAGES: f64 = 64.0;

/// Bytes that a map page translates.
#[derive(Clone, Copy)]
struct Span {
    bytes: u64,
    /// Its logarithm, if it is a power of two: a division would take longer than all other work for a request.
    shift: Option<u32>,
}

impl Span {
    fn new(bytes: u64) -> Span {
        Span { bytes, shift: bytes.is_power_of_two().then(|| bytes.trailing_zeros()) }
    }

    #[inline]
    fn page(self, address: u64) -> u64 {
        match self.shift {
            Some(shift) => address >> shift,
            None => address / self.bytes,
        }
    }
}

struct Tracker {
    span: Span,
    reads: Distances,
    writes: Distances,
    /// Distances of all accesses, once there are reads and writes; until then they equal those of the only kind.
    all: Option<Distances>,
}

impl Tracker {
    #[inline]
    fn access(&mut self, of: Of, page: u64) {
        match of {
            Of::Reads => self.reads.access(page),
            _ => self.writes.access(page),
        }
        if let Some(all) = &mut self.all {
            all.access(page);
        }
    }

    /// From now on there are reads and writes: their common curve begins with the accesses so far, all of which were
    /// `before`.
    fn mix(&mut self, before: Of) {
        self.all = Some(if before == Of::Reads { &self.reads } else { &self.writes }.clone());
    }

    fn curves(&self) -> SpanCurves {
        let curves = [&self.reads, &self.writes].map(Distances::curve);
        let all = match &self.all {
            Some(all) => all.curve(),
            None => curves[usize::from(curves[0].accesses == 0)].clone(),
        };
        let [reads, writes] = curves;
        let shares = [&self.reads, &self.writes].map(Distances::share);
        let only = shares[usize::from(reads.accesses == 0)];
        let share = self.all.as_ref().map_or(only, Distances::share);
        let shares = [shares[0], shares[1], share];
        SpanCurves { span_bytes: self.span.bytes, curves: [reads, writes, all], shares }
    }

    fn bytes(&self) -> u64 {
        self.reads.bytes() + self.writes.bytes() + self.all.as_ref().map_or(0, Distances::bytes)
    }
}

/// Collects the curves of a trace.
pub struct MapReuse {
    trackers: Vec<Tracker>,
    /// The only kind so far, until there are both reads and writes.
    alone: Option<Of>,
    is_mixed: bool,
    limit_bytes: u64,
    since_check: u32,
}

/// Requests between two looks at the memory in use.
const CHECK_EVERY: u32 = 1 << 12;

impl MapReuse {
    /// Curves for map pages of these spans in bytes, multiples of 4 KiB; from a sample of `sample_pages` pages each if
    /// given. If memory would exceed `limit_bytes`, [`MapReuse::add`] fails.
    pub fn new(spans: &[u64], sample_pages: Option<usize>, limit_bytes: u64) -> MapReuse {
        let tracker = |&span: &u64| Tracker {
            span: Span::new(span.max(BLOCK_BYTES.into())),
            reads: Distances::new(sample_pages),
            writes: Distances::new(sample_pages),
            all: None,
        };
        let trackers = spans.iter().map(tracker).collect();
        MapReuse { trackers, alone: None, is_mixed: false, limit_bytes, since_check: 0 }
    }

    /// A request of the trace. The name of the file is left empty in an error.
    ///
    /// # Errors
    /// Memory would exceed the limit.
    pub fn add(&mut self, request: &Request) -> Result<(), TraceError> {
        let of = match request.kind {
            IoKind::Read => Of::Reads,
            IoKind::Write => Of::Writes,
            // A device can free whole map pages without reading them.
            IoKind::Trim | IoKind::Flush => return Ok(()),
        };
        if request.bytes == 0 {
            return Ok(());
        }
        let last = request.offset.saturating_add(request.bytes - 1);
        if !self.is_mixed && *self.alone.get_or_insert(of) != of {
            self.is_mixed = true;
            let before = if of == Of::Reads { Of::Writes } else { Of::Reads };
            self.trackers.iter_mut().for_each(|tracker| tracker.mix(before));
        }
        for tracker in &mut self.trackers {
            for page in tracker.span.page(request.offset)..=tracker.span.page(last) {
                tracker.access(of, page);
            }
        }
        self.since_check += 1;
        if self.since_check >= CHECK_EVERY {
            self.since_check = 0;
            self.check()?;
        }
        Ok(())
    }

    /// Memory in use.
    pub fn bytes(&self) -> u64 {
        self.trackers.iter().map(Tracker::bytes).sum()
    }

    fn check(&self) -> Result<(), TraceError> {
        let bytes = self.bytes();
        if bytes <= self.limit_bytes {
            return Ok(());
        }
        let message = format!(
            "touches so many map pages that their order takes {} MiB of memory, more than {}; a sample takes little",
            bytes >> 20,
            self.limit_bytes >> 20
        );
        Err(TraceError::of_file("", Reason::Limit, message))
    }

    /// The curves of the spans, in their order.
    pub fn finish(&self) -> Vec<SpanCurves> {
        self.trackers.iter().map(Tracker::curves).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(kind: IoKind, offset: u64, bytes: u64) -> Request {
        Request { kind, offset, bytes, ..Request::NONE }
    }

    /// The curves of all accesses equal those of a single map that sees all from the start.
    #[test]
    fn all_is_what_one_map_sees_from_the_start() {
        for first in [IoKind::Read, IoKind::Write] {
            let mut reuse = MapReuse::new(&[4 << 20], None, u64::MAX);
            let mut only = MapReuse::new(&[4 << 20], None, u64::MAX);
            for i in 0..500u64 {
                let kind = match i {
                    0..50 => first,
                    _ if i % 3 == 0 => IoKind::Write,
                    _ => IoKind::Read,
                };
                let at = (i * i % 37) << 21;
                reuse.add(&request(kind, at, 5 << 20)).unwrap();
                only.add(&request(IoKind::Read, at, 5 << 20)).unwrap();
                reuse.add(&request(IoKind::Trim, at, 9 << 20)).unwrap();
            }
            let (reuse, only) = (&reuse.finish()[0], &only.finish()[0]);
            assert_eq!(reuse.of(Of::All), only.of(Of::Reads));
            assert_eq!(only.of(Of::All), only.of(Of::Reads));
            assert_eq!(only.of(Of::Writes).accesses, 0);
            assert_eq!(reuse.of(Of::Reads).accesses + reuse.of(Of::Writes).accesses, reuse.of(Of::All).accesses);
        }
    }

    #[test]
    fn too_many_pages_are_refused() {
        let mut reuse = MapReuse::new(&[4096], None, 1 << 20);
        let error = (0..200_000).find_map(|i| reuse.add(&request(IoKind::Read, i << 12, 4096)).err()).unwrap();
        assert_eq!(error.reason, Reason::Limit);
        assert!(error.message.ends_with("MiB of memory, more than 1; a sample takes little"), "{}", error.message);
        let mut sampled = MapReuse::new(&[4096], Some(1000), 1 << 20);
        (0..200_000).for_each(|i| sampled.add(&request(IoKind::Read, i << 12, 4096)).unwrap());
    }
}
