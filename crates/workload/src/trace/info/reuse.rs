// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reuse distances of map pages, exact: how many different pages were read since this page was read last. From them
//! follow the hits of a least-recently-used cache of any size (Mattson's stack algorithm, over a Fenwick tree).
//! Knows addresses, not times.

use std::collections::HashMap;

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

const SLOTS: usize = 1 << 12;

pub(super) struct Tracker {
    span: u64,
    /// Page to the slot of its last access. Walked only to renumber, in order of slots.
    slot_of: HashMap<u64, u32>,
    /// Fenwick tree: a one for each slot that is some page's last.
    tree: Vec<u32>,
    next: usize,
    newest: Option<u64>,
    accesses: u64,
    /// Accesses by distance: `0`, then by power of two (1, 2 to 3, 4 to 7, ...).
    distances: Vec<u64>,
}

impl Tracker {
    pub(super) fn new(span: u64) -> Tracker {
        Tracker {
            span,
            slot_of: HashMap::new(),
            tree: vec![0; SLOTS + 1],
            next: 0,
            newest: None,
            accesses: 0,
            distances: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, offset: u64, bytes: u64) {
        for page in offset / self.span..=(offset + bytes - 1) / self.span {
            self.access(page);
        }
    }

    fn access(&mut self, page: u64) {
        self.accesses += 1;
        if self.newest == Some(page) {
            return self.count(0);
        }
        self.newest = Some(page);
        if self.next + 1 == self.tree.len() {
            self.renumber();
        }
        let slot = self.next as u32;
        self.next += 1;
        if let Some(old) = self.slot_of.insert(page, slot) {
            // Live slots up to and with the old one are pages whose last access is not later.
            let distance = self.slot_of.len() as u64 - u64::from(self.sum(old as usize));
            self.count(distance);
            self.change(old as usize, false);
        }
        self.change(slot as usize, true);
    }

    fn count(&mut self, distance: u64) {
        let class = (u64::BITS - distance.leading_zeros()) as usize;
        if self.distances.len() <= class {
            self.distances.resize(class + 1, 0);
        }
        self.distances[class] += 1;
    }

    fn change(&mut self, slot: usize, add: bool) {
        let mut i = slot + 1;
        while i < self.tree.len() {
            self.tree[i] = if add { self.tree[i] + 1 } else { self.tree[i] - 1 };
            i += i & i.wrapping_neg();
        }
    }

    /// Ones in the slots up to and with this one.
    fn sum(&self, slot: usize) -> u32 {
        let (mut i, mut sum) = (slot + 1, 0);
        while i > 0 {
            sum += self.tree[i];
            i &= i - 1;
        }
        sum
    }

    /// Live slots move together at the front; the tree doubles when they fill more than half of it.
    fn renumber(&mut self) {
        let mut live: Vec<(u32, u64)> = self.slot_of.iter().map(|(&page, &slot)| (slot, page)).collect();
        live.sort_unstable();
        let slots = if live.len() * 2 > self.next { self.next * 2 } else { self.next };
        self.tree.clear();
        self.tree.resize(slots + 1, 0);
        for (i, (_, page)) in live.iter().enumerate() {
            self.slot_of.insert(*page, i as u32);
            self.tree[i + 1] += 1;
        }
        for i in 1..self.tree.len() {
            let parent = i + (i & i.wrapping_neg());
            if parent < self.tree.len() {
                self.tree[parent] += self.tree[i];
            }
        }
        self.next = live.len();
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.tree.len() * 4 + self.slot_of.len() * 32) as u64
    }

    pub(super) fn finish(self) -> Reuse {
        let mut sum = 0;
        let hits = self.distances.iter().map(|n| {
            sum += n;
            sum
        });
        Reuse { span_bytes: self.span, accesses: self.accesses, pages: self.slot_of.len() as u64, hits: hits.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_stack(pages: &[u64]) -> Vec<Option<usize>> {
        let mut stack: Vec<u64> = Vec::new();
        let mut access = |p: u64| {
            let at = stack.iter().position(|&x| x == p);
            at.map(|i| stack.remove(i));
            stack.insert(0, p);
            at
        };
        pages.iter().map(|&p| access(p)).collect()
    }

    fn check(pages: &[u64]) {
        let mut tracker = Tracker::new(4096);
        pages.iter().for_each(|p| tracker.add(p * 4096, 4096));
        let reuse = tracker.finish();
        let distances = by_stack(pages);
        assert_eq!(reuse.accesses, pages.len() as u64);
        assert_eq!(reuse.pages, distances.iter().filter(|d| d.is_none()).count() as u64);
        for (k, &hits) in reuse.hits.iter().enumerate() {
            let expected = distances.iter().flatten().filter(|&&d| d < 1 << k).count();
            assert_eq!(hits, expected as u64, "cache of {} pages", 1 << k);
        }
        assert_eq!(reuse.hits.last().copied().unwrap_or(0), reuse.accesses - reuse.pages);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn distances_are_those_of_an_lru_stack(pages in proptest::collection::vec(0u64..40, 0..400)) {
            check(&pages);
        }
    }

    #[test]
    fn renumbering_changes_nothing() {
        // Many times the slots of the first tree, with few and with many live pages.
        for distinct in [7u64, 3000, 9000] {
            let pages: Vec<u64> = (0..20_000u64).map(|i| (i * i + i / 3) % distinct).collect();
            check(&pages);
        }
    }

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
