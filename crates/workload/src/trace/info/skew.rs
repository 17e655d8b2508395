// SPDX-License-Identifier: MIT OR Apache-2.0
//! How unevenly accesses spread over map pages: the share of the hottest. Knows addresses, not times.

use std::collections::HashMap;

/// Accesses to map pages, in any order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skew {
    /// Bytes of address space that a page translates.
    pub span_bytes: u64,
    /// Different pages that reads or writes touch.
    pub pages: u64,
    /// Different pages that reads touch.
    pub pages_read: u64,
    /// Accesses of reads: one for each page of each read.
    pub accesses: u64,
    /// Accesses of reads to the hottest of the pages that reads touch, by the shares of [`Skew::PERCENT`], rounded up
    /// to whole pages.
    pub hottest: [u64; 3],
}

impl Skew {
    /// How many of the pages count as the hottest, in percent.
    pub const PERCENT: [u64; 3] = [1, 10, 20];

    /// The share of accesses that goes to the hottest pages, 0 to 1, for each of [`Skew::PERCENT`]; `None` without
    /// accesses.
    pub fn shares(&self) -> Option<[f64; 3]> {
        (self.accesses > 0).then(|| self.hottest.map(|n| n as f64 / self.accesses as f64))
    }
}

#[derive(Default)]
pub(super) struct Tracker {
    span: u64,
    /// Only looked up, never walked, so that the order of its entries does not matter.
    index: HashMap<u64, u32>,
    /// Accesses of reads by page; 0 for a page that is only written.
    reads: Vec<u64>,
    /// Nearly always the page that is touched next.
    last: Option<(u64, u32)>,
}

impl Tracker {
    pub(super) fn new(span: u64) -> Tracker {
        Tracker { span, ..Tracker::default() }
    }

    /// Takes a read or a write of at least a byte.
    pub(super) fn add(&mut self, offset: u64, bytes: u64, is_read: bool) {
        for page in offset / self.span..=(offset + (bytes - 1)) / self.span {
            let place = match self.last {
                Some((last, place)) if last == page => place,
                _ => *self.index.entry(page).or_insert_with(|| {
                    self.reads.push(0);
                    self.reads.len() as u32 - 1
                }),
            };
            self.last = Some((page, place));
            self.reads[place as usize] += u64::from(is_read);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        // An entry of the index takes 16 bytes, and up to half of its slots are free.
        self.reads.len() as u64 * (32 + 16)
    }

    pub(super) fn finish(mut self) -> Skew {
        self.reads.sort_unstable_by(|a, b| b.cmp(a));
        let pages_read = self.reads.iter().take_while(|&&n| n > 0).count();
        let hottest = Skew::PERCENT.map(|percent| {
            let pages = (pages_read as u64 * percent).div_ceil(100) as usize;
            self.reads[..pages].iter().sum()
        });
        Skew {
            span_bytes: self.span,
            pages: self.reads.len() as u64,
            pages_read: pages_read as u64,
            accesses: self.reads.iter().sum(),
            hottest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_hottest_of_a_hundred() {
        let mut tracker = Tracker::new(4096);
        // Page 7 is read 100 times more than the others, pages 10 to 19 five times more, in no order.
        for i in 0..100u64 {
            let page = i * 37 % 100;
            let times = match page {
                7 => 101,
                10..20 => 6,
                _ => 1,
            };
            (0..times).for_each(|_| tracker.add(page * 4096, 4096, true));
        }
        tracker.add(500 * 4096, 1, false);
        let skew = tracker.finish();
        assert_eq!((skew.pages, skew.pages_read, skew.accesses), (101, 100, 250));
        assert_eq!(skew.hottest, [101, 101 + 9 * 6, 101 + 10 * 6 + 9]);
        assert_eq!(skew.shares(), Some([101.0 / 250.0, 155.0 / 250.0, 170.0 / 250.0]));
        let mut written = Tracker::new(4096);
        written.add(4095, 2, false);
        let skew = written.finish();
        assert_eq!((skew.pages, skew.pages_read, skew.shares()), (2, 0, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn against_counts_of_each_page(
            requests in proptest::collection::vec((0u64..2000, 1u64..300, any::<bool>()), 0..200),
        ) {
            let mut tracker = Tracker::new(100);
            let (mut reads, mut touched) = (vec![0u64; 30], vec![false; 30]);
            for &(offset, bytes, is_read) in &requests {
                tracker.add(offset, bytes, is_read);
                let pages: std::collections::BTreeSet<u64> = (offset..offset + bytes).map(|byte| byte / 100).collect();
                for page in pages {
                    reads[page as usize] += u64::from(is_read);
                    touched[page as usize] = true;
                }
            }
            let skew = tracker.finish();
            prop_assert_eq!(skew.pages, touched.iter().filter(|t| **t).count() as u64);
            prop_assert_eq!(skew.accesses, reads.iter().sum::<u64>());
            reads.retain(|n| *n > 0);
            prop_assert_eq!(skew.pages_read, reads.len() as u64);
            reads.sort_unstable();
            for (percent, hottest) in Skew::PERCENT.into_iter().zip(skew.hottest) {
                let pages = (1..=reads.len()).find(|n| (n * 100) as u64 >= percent * reads.len() as u64);
                prop_assert_eq!(hottest, reads.iter().rev().take(pages.unwrap_or(0)).sum::<u64>());
            }
        }
    }
}
