// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reuse distances: how many different pages were accessed since this page was accessed last. From them follow the hits
//! of a least-recently-used cache of every size at once (R. Mattson et al., "Evaluation techniques for storage
//! hierarchies", IBM Systems Journal 1970). Exact, or from a sample of pages in bounded memory (C. Waldspurger et al.,
//! "Efficient MRC construction with SHARDS", FAST 2015). Knows numbers of pages, not times and not what they are.

mod ranks;
mod sample;

use ranks::Ranks;
use std::collections::HashMap;

pub use sample::Sampled;

/// How often an LRU cache of any size would hit.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Curve {
    /// Accesses.
    pub accesses: u64,
    /// Different pages; with a sample, about.
    pub pages: u64,
    /// Where the curve rises: a size in pages, and the accesses that hit a cache of that size. In order of size; whole
    /// numbers where it is exact.
    pub steps: Vec<(u64, f64)>,
}

impl Curve {
    /// Accesses that hit a cache of `pages` pages.
    pub fn hits(&self, pages: u64) -> f64 {
        match self.steps.partition_point(|(size, _)| *size <= pages) {
            0 => 0.0,
            n => self.steps[n - 1].1,
        }
    }

    /// Hits as a share of all accesses, 0 to 1; `None` without accesses.
    pub fn hit_ratio(&self, pages: u64) -> Option<f64> {
        (self.accesses > 0).then(|| self.hits(pages) / self.accesses as f64)
    }

    /// Pages of the smallest cache that hits whenever a larger one does.
    pub fn enough(&self) -> u64 {
        self.steps.last().map_or(0, |(size, _)| *size)
    }
}

/// The slot of each page's last access. Low numbers are looked up without hashing.
#[derive(Clone)]
struct Table {
    low: Vec<u32>,
    /// Numbers below this are low.
    end: u64,
    high: HashMap<u64, u32>,
}

const NOWHERE: u32 = u32::MAX;
/// Pages that [`Exact`] looks up without hashing: 16 MiB of memory at most.
const LOW: u64 = 1 << 22;

impl Table {
    /// Puts the page at `slot` and returns its former slot.
    #[inline]
    fn put(&mut self, page: u64, slot: u32) -> Option<u32> {
        if page >= self.end {
            return self.high.insert(page, slot);
        }
        let at = page as usize;
        if at >= self.low.len() {
            self.low.resize((at + 1).next_power_of_two(), NOWHERE);
        }
        let old = std::mem::replace(&mut self.low[at], slot);
        (old != NOWHERE).then_some(old)
    }

    fn take(&mut self, page: u64) -> Option<u32> {
        if page >= self.end {
            return self.high.remove(&page);
        }
        let slot = self.low.get_mut(page as usize)?;
        let old = std::mem::replace(slot, NOWHERE);
        (old != NOWHERE).then_some(old)
    }

    fn bytes(&self) -> u64 {
        // A hash map keeps a byte of its own for each place, and an eighth of the places empty.
        (self.low.capacity() * 4 + self.high.capacity() * 18) as u64
    }
}

/// Pages in order of their last access.
#[derive(Clone)]
struct Order {
    slot_of: Table,
    /// The page in each slot that is taken.
    page_of: Vec<u64>,
    ranks: Ranks,
    next: usize,
    live: u32,
    newest: Option<u64>,
}

/// Slots at the start.
const SLOTS: usize = 1 << 12;

impl Order {
    fn new(low: u64) -> Order {
        let ranks = Ranks::new(SLOTS);
        let page_of = vec![0; ranks.slots()];
        let slot_of = Table { low: Vec::new(), end: low, high: HashMap::new() };
        Order { slot_of, page_of, ranks, next: 0, live: 0, newest: None }
    }

    /// Adds an access to the page. Returns how many other pages were accessed since its last access; `None` at the
    /// first.
    #[inline]
    fn access(&mut self, page: u64) -> Option<u32> {
        if self.newest == Some(page) {
            return Some(0);
        }
        self.newest = Some(page);
        if self.next == self.page_of.len() {
            self.renumber();
        }
        let slot = self.next;
        self.next += 1;
        self.page_of[slot] = page;
        let distance = self.slot_of.put(page, slot as u32).map(|old| {
            let behind = self.ranks.behind(old as usize);
            self.ranks.free(old as usize);
            behind
        });
        self.live += u32::from(distance.is_none());
        self.ranks.take(slot);
        distance
    }

    /// Forgets all accesses to the page.
    fn forget(&mut self, page: u64) {
        if let Some(slot) = self.slot_of.take(page) {
            self.ranks.free(slot as usize);
            self.live -= 1;
            self.newest = self.newest.filter(|newest| *newest != page);
        }
    }

    /// Moves the taken slots together at the front; doubles the slots when more than half are taken.
    #[cold]
    fn renumber(&mut self) {
        let pages: Vec<u64> = self.ranks.taken().map(|slot| self.page_of[slot]).collect();
        if pages.len() * 2 > self.page_of.len() {
            self.ranks = Ranks::new(self.page_of.len() * 2);
            self.page_of.resize(self.ranks.slots(), 0);
        } else {
            self.ranks.clear();
        }
        for (slot, page) in pages.iter().enumerate() {
            self.slot_of.put(*page, slot as u32);
            self.page_of[slot] = *page;
            self.ranks.take(slot);
        }
        self.next = pages.len();
    }

    fn bytes(&self) -> u64 {
        self.slot_of.bytes() + self.ranks.bytes() + (self.page_of.len() * 8) as u64
    }
}

/// Exact, or from a sample.
#[derive(Clone)]
pub enum Distances {
    /// Distances of all accesses.
    Exact(Exact),
    /// Distances of a sample of the accesses.
    Sampled(Sampled),
}

impl Distances {
    /// Distances of all pages, or of a sample of at most `most_pages`.
    pub fn new(most_pages: Option<usize>) -> Distances {
        match most_pages {
            None => Distances::Exact(Exact::default()),
            Some(most) => Distances::Sampled(Sampled::new(most)),
        }
    }

    /// Adds an access to a page.
    #[inline]
    pub fn access(&mut self, page: u64) {
        match self {
            Distances::Exact(exact) => exact.access(page),
            Distances::Sampled(sampled) => sampled.access(page),
        }
    }

    /// Memory in use.
    pub fn bytes(&self) -> u64 {
        match self {
            Distances::Exact(exact) => exact.bytes(),
            Distances::Sampled(sampled) => sampled.bytes(),
        }
    }

    /// The share of pages that was followed, 0 to 1.
    pub fn share(&self) -> f64 {
        match self {
            Distances::Exact(_) => 1.0,
            Distances::Sampled(sampled) => sampled.share(),
        }
    }

    /// The curve for caches of all pages.
    pub fn curve(&self) -> Curve {
        match self {
            Distances::Exact(exact) => exact.curve(),
            Distances::Sampled(sampled) => sampled.curve(),
        }
    }
}

/// Reuse distances of all pages. Memory grows with the number of different pages, by about 30 bytes for each.
#[derive(Clone)]
pub struct Exact {
    order: Order,
    accesses: u64,
    /// Accesses by their distance.
    distances: Vec<u64>,
}

impl Default for Exact {
    fn default() -> Self {
        Exact { order: Order::new(LOW), accesses: 0, distances: Vec::new() }
    }
}

impl Exact {
    /// Adds an access to a page.
    #[inline]
    pub fn access(&mut self, page: u64) {
        self.accesses += 1;
        let Some(distance) = self.order.access(page) else { return };
        let at = distance as usize;
        if at >= self.distances.len() {
            self.distances.resize((at + 1).next_power_of_two(), 0);
        }
        self.distances[at] += 1;
    }

    /// Memory in use.
    pub fn bytes(&self) -> u64 {
        self.order.bytes() + (self.distances.len() * 8) as u64
    }

    /// The curve for caches.
    pub fn curve(&self) -> Curve {
        let mut hits = 0;
        let steps = self.distances.iter().zip(1..).filter(|(n, _)| **n > 0).map(|(n, size)| {
            hits += n;
            (size, hits as f64)
        });
        Curve { accesses: self.accesses, pages: self.order.live.into(), steps: steps.collect() }
    }
}

#[cfg(test)]
mod tests;
