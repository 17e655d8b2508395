// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often each sub-region was read recently: counters that are halved periodically, so that old popularity fades
//! (as in the frequency sketch of TinyLFU, Einziger et al., ACM Transactions on Storage 2017).

use crate::ids::SubRegionId;

/// Counters of 16 bits, one a sub-region.
pub(super) struct Reads {
    counts: Vec<u16>,
    left: u64,
}

/// Reads between two halvings, for each held sub-region (TinyLFU: "sample size" of ten times the cache).
const READS_PER_HELD: u64 = 10;
/// The least number of reads between two halvings.
const LEAST_READS: u64 = 1024;

impl Reads {
    pub(super) fn new(sub_regions: u32) -> Self {
        Reads { counts: vec![0; sub_regions as usize], left: LEAST_READS }
    }

    /// Counts a read while `held` sub-regions are held; returns whether all counters were halved.
    pub(super) fn count(&mut self, sub_region: SubRegionId, held: u32) -> bool {
        let count = &mut self.counts[sub_region];
        *count = count.saturating_add(1);
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        // Walks the table once in at least 1024 reads and ten reads for each held map.
        self.counts.iter_mut().for_each(|c| *c /= 2);
        self.left = (u64::from(held) * READS_PER_HELD).max(LEAST_READS);
        true
    }

    pub(super) fn of(&self, sub_region: SubRegionId) -> u32 {
        u32::from(self.counts[sub_region])
    }

    pub(super) fn bytes(&self) -> u64 {
        self.counts.len() as u64 * 2
    }
}
