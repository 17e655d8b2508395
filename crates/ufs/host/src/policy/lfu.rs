// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lfu`: of the eight held sub-regions that were read longest ago, the one that is read least often makes room, and
//! only for one that is read more often. What is read often lately stays, however many others are read once.

use super::lru::Lru;
use super::reads::Reads;
use super::{MapPolicy, Touch, Wish};
use crate::ids::SubRegionId;

/// Sub-regions looked at for a victim. All of them would be exact, and take as long as the list.
pub(super) const CANDIDATES: usize = 8;

pub(crate) struct Lfu {
    lru: Lru,
    reads: Reads,
}

impl Lfu {
    pub(crate) fn new(sub_regions: u32) -> Self {
        Lfu { lru: Lru::new(sub_regions), reads: Reads::new(sub_regions) }
    }
}

impl MapPolicy for Lfu {
    fn read(&mut self, touch: &Touch) -> Wish {
        if touch.eligible {
            self.reads.count(touch.sub_region, self.lru.held());
        }
        self.lru.read(touch)
    }

    fn loaded(&mut self, sub_region: SubRegionId) {
        self.lru.loaded(sub_region);
    }

    fn dropped(&mut self, sub_region: SubRegionId) {
        self.lru.dropped(sub_region);
    }

    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        let free = self.lru.coldest().filter(|&s| free(s)).take(CANDIDATES);
        let victim = free.min_by_key(|&s| self.reads.of(s))?;
        let worth = candidate.is_none_or(|c| self.reads.of(c) > self.reads.of(victim));
        worth.then_some(victim)
    }

    fn bytes(&self) -> u64 {
        self.lru.bytes() + self.reads.bytes()
    }
}
