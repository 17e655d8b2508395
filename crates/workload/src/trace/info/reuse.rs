// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reuse of map pages by reads, for caches of powers of two. Knows addresses, not times.

use crate::trace::reuse::Exact;

/// Reuse of map pages by reads, in order of time. Writes and trims do not count: they need not read the map page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reuse {
    /// Bytes of address space that a page translates.
    pub span_bytes: u64,
    /// Accesses: one for each page of each read.
    pub accesses: u64,
    /// Different pages.
    pub pages: u64,
    /// Entry `k`: accesses that would hit an LRU cache of `2^k` pages; up to the size at which only first accesses
    /// miss.
    pub hits: Vec<u64>,
}

impl Reuse {
    /// Share of accesses that would hit an LRU cache of `2^log2_pages` pages, 0 to 1; `None` without accesses.
    pub fn hit_ratio(&self, log2_pages: usize) -> Option<f64> {
        let hits = self.hits.get(log2_pages).or(self.hits.last()).copied().unwrap_or(0);
        (self.accesses > 0).then(|| hits as f64 / self.accesses as f64)
    }
}

pub(super) struct Tracker {
    span: u64,
    distances: Exact,
}

impl Tracker {
    pub(super) fn new(span: u64) -> Tracker {
        Tracker { span, distances: Exact::default() }
    }

    pub(super) fn add(&mut self, offset: u64, bytes: u64) {
        (offset / self.span..=(offset + (bytes - 1)) / self.span).for_each(|page| self.distances.access(page));
    }

    pub(super) fn bytes(&self) -> u64 {
        self.distances.bytes()
    }

    pub(super) fn finish(self) -> Reuse {
        let curve = self.distances.curve();
        // The smallest that hits whenever a larger one does is the last.
        let sizes = (0..64).map(|k| 1u64 << k);
        let needed = sizes.clone().take_while(|size| *size < curve.enough()).count() + usize::from(curve.enough() > 0);
        let hits = sizes.take(needed).map(|size| curve.hits(size) as u64).collect();
        Reuse { span_bytes: self.span, accesses: curve.accesses, pages: curve.pages, hits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_across_pages_is_an_access_to_each() {
        let mut tracker = Tracker::new(4 << 20);
        tracker.add((4 << 20) - 1, 2);
        tracker.add(0, 9 << 20);
        let reuse = tracker.finish();
        assert_eq!((reuse.accesses, reuse.pages), (5, 3));
        // Page 0 had page 1 after it, then page 1 had page 0 after it: distance 1 each.
        assert_eq!(reuse.hits, [0, 2]);
    }
}
