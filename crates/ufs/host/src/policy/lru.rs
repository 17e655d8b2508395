// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lru`: a sub-region is loaded as soon as a read misses it, and the least recently read is evicted. Every read
//! counts, also those without an entry. Linux moves a region only when it is activated.

use super::{MapPolicy, Touch};
use crate::ids::{IdList, SubRegionId};

/// Held sub-regions, the least recently read first. Other policies build on it.
pub(crate) struct Lru {
    order: IdList<SubRegionId>,
}

impl Lru {
    pub(crate) fn new(sub_regions: u32) -> Self {
        Lru { order: IdList::new(sub_regions) }
    }

    /// Notes a read of a sub-region, held or not.
    pub(crate) fn touch(&mut self, sub_region: SubRegionId) {
        self.order.touch(sub_region);
    }

    /// Held sub-regions, the least recently read first.
    pub(crate) fn coldest(&self) -> impl Iterator<Item = SubRegionId> + '_ {
        self.order.iter()
    }

    pub(crate) fn held(&self) -> u32 {
        self.order.len()
    }
}

impl MapPolicy for Lru {
    fn read(&mut self, touch: &Touch) -> bool {
        self.touch(touch.sub_region);
        touch.eligible && !touch.held
    }

    fn loaded(&mut self, sub_region: SubRegionId) {
        self.order.add(sub_region);
    }

    fn dropped(&mut self, sub_region: SubRegionId) {
        self.order.remove(sub_region);
    }

    fn victim(&mut self, _: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        self.coldest().find(|&s| free(s))
    }

    fn bytes(&self) -> u64 {
        self.order.bytes()
    }
}
