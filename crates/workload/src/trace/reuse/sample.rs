// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reuse distances of a sample of pages, in memory that does not grow: SHARDS with a fixed number of pages. A page
//! belongs to the sample if its hash is below a limit, so all of its accesses do. When the sample is full, the page
//! with the highest hash leaves it, and the limit comes down to there.

use super::{Curve, Order};
use std::collections::BinaryHeap;

/// Classes of distances: exact below this many, so many to each power of two above.
const CLASSES: u64 = 128;

/// Reuse distances of a sample.
#[derive(Clone)]
pub struct Sampled {
    order: Order,
    most: usize,
    /// Hashes of the sample, highest first, each with its page.
    by_hash: BinaryHeap<(u64, u64)>,
    /// Hashes below this belong to the sample.
    limit: u64,
    accesses: u64,
    /// Accesses by class of distance, scaled to the current limit.
    distances: Vec<f64>,
    /// Accesses of the sample, scaled in the same way.
    sampled: f64,
}

impl Sampled {
    /// A sample of at most `most_pages` pages, at least one.
    pub fn new(most_pages: usize) -> Sampled {
        Sampled {
            order: Order::new(0),
            most: most_pages.max(1),
            by_hash: BinaryHeap::new(),
            limit: u64::MAX,
            accesses: 0,
            distances: Vec::new(),
            sampled: 0.0,
        }
    }

    fn rate(&self) -> f64 {
        self.limit as f64 / u64::MAX as f64
    }

    /// Adds an access to a page.
    #[inline]
    pub fn access(&mut self, page: u64) {
        self.accesses += 1;
        let hash = mixed(page);
        if hash > self.limit {
            return;
        }
        self.sampled += 1.0;
        let rate = self.rate();
        match self.order.access(page) {
            Some(distance) => {
                let class = class_of((f64::from(distance) / rate) as u64);
                if class >= self.distances.len() {
                    self.distances.resize(class + 1, 0.0);
                }
                self.distances[class] += 1.0;
            }
            None => {
                self.by_hash.push((hash, page));
                if self.by_hash.len() > self.most {
                    self.drop_one();
                }
            }
        }
    }

    #[cold]
    fn drop_one(&mut self) {
        let Some((hash, page)) = self.by_hash.pop() else { return };
        self.order.forget(page);
        let before = self.rate();
        self.limit = hash - 1;
        let scale = self.rate() / before;
        self.distances.iter_mut().for_each(|n| *n *= scale);
        self.sampled *= scale;
    }

    /// Memory in use.
    pub fn bytes(&self) -> u64 {
        self.order.bytes() + (self.distances.len() * 8 + self.by_hash.capacity() * 16) as u64
    }

    /// The share of pages that is in the sample, 0 to 1.
    pub fn share(&self) -> f64 {
        self.rate()
    }

    /// The curve for caches of all pages.
    pub fn curve(&self) -> Curve {
        let rate = self.rate();
        // A sample with too many or too few accesses has them on hot pages (SHARDS-adj).
        let mut sum = self.accesses as f64 * rate - self.sampled;
        let (mut steps, mut hits) = (Vec::new(), 0.0_f64);
        for (class, n) in self.distances.iter().enumerate() {
            sum += n;
            // A negative correction reduces the smallest sizes first, since a curve does not fall.
            let now = (sum / rate).clamp(hits, self.accesses as f64);
            if now > hits {
                hits = now;
                steps.push((largest_of(class) + 1, hits));
            }
        }
        Curve { accesses: self.accesses, pages: (f64::from(self.order.live) / rate).round() as u64, steps }
    }
}

/// A hash that is different for every page (the finalizer of SplitMix64).
fn mixed(page: u64) -> u64 {
    let mut z = page.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn class_of(distance: u64) -> usize {
    if distance < CLASSES {
        return distance as usize;
    }
    let shift = distance.ilog2() - CLASSES.ilog2();
    (u64::from(shift) * CLASSES + (distance >> shift)) as usize
}

fn largest_of(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * CLASSES {
        return class;
    }
    let shift = class / CLASSES - 1;
    (((CLASSES + class % CLASSES) + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_one_behind_the_other() {
        let mut from = 0;
        for class in 0..5000 {
            assert_eq!((class_of(from), class_of(largest_of(class))), (class, class));
            from = largest_of(class) + 1;
        }
        assert!(from > 1 << 40);
    }
}
