// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the map worker has to do: sub-regions to load and regions to drop, each at most once, in order of arrival.

use readpath_kit::IndexLru;

/// Linux `lh_act_srgn` and `lh_inact_rgn`.
pub struct WorkLists {
    activate: IndexLru,
    inactivate: IndexLru,
}

impl WorkLists {
    pub fn new(regions: u32, sub_regions: u32) -> Self {
        WorkLists { activate: IndexLru::new(sub_regions as usize), inactivate: IndexLru::new(regions as usize) }
    }

    /// Queues a sub-region for loading. Counted by the caller if it was not queued already.
    pub fn activate(&mut self, srgn: u32) -> bool {
        let new = !self.activate.contains(srgn);
        if new {
            self.activate.push_back(srgn);
        }
        new
    }

    /// Queues a region to be dropped.
    pub fn inactivate(&mut self, region: u32) -> bool {
        let new = !self.inactivate.contains(region);
        if new {
            self.inactivate.push_back(region);
        }
        new
    }

    /// The region is not to be dropped after all.
    pub fn keep_region(&mut self, region: u32) {
        if self.inactivate.contains(region) {
            self.inactivate.remove(region);
        }
    }

    /// The sub-region is not to be loaded any more, or is being loaded.
    pub fn forget_activation(&mut self, srgn: u32) {
        if self.activate.contains(srgn) {
            self.activate.remove(srgn);
        }
    }

    /// Queues a sub-region before all others.
    pub fn activate_first(&mut self, srgn: u32) {
        self.forget_activation(srgn);
        self.activate.push_front(srgn);
    }

    /// Whether the region is to be dropped.
    pub fn is_inactivated(&self, region: u32) -> bool {
        self.inactivate.contains(region)
    }

    /// The sub-region to load after `srgn`, which is queued.
    pub fn after(&self, srgn: u32) -> Option<u32> {
        self.activate.after(srgn)
    }

    /// The sub-region to load next; it stays queued.
    pub fn next_activation(&self) -> Option<u32> {
        self.activate.front()
    }

    /// The region to drop next; it leaves the queue.
    pub fn next_inactivation(&mut self) -> Option<u32> {
        self.inactivate.pop_front()
    }

    /// The region cannot be dropped yet.
    pub fn defer_inactivation(&mut self, region: u32) {
        self.inactivate.push_back(region);
    }

    pub fn inactivations(&self) -> u32 {
        self.inactivate.len()
    }

    pub fn is_empty(&self) -> bool {
        self.activate.is_empty() && self.inactivate.is_empty()
    }

    pub fn clear(&mut self) {
        while self.activate.pop_front().is_some() {}
        while self.inactivate.pop_front().is_some() {}
    }

    pub fn bytes(&self) -> u64 {
        self.activate.bytes() + self.inactivate.bytes()
    }
}
