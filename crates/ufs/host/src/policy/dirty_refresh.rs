// SPDX-License-Identifier: MIT OR Apache-2.0
//! `dirty-refresh`: `lru`, and a map that is held is loaded again when reads of entries that were written since have
//! cost as much as the load will. Until then the rest of the map stays in use. Linux in device control mode waits for
//! the device's advice, and in host control mode drops the region.

use super::costs::Costs;
use super::lru::Lru;
use super::{MapPolicy, Timed, Touch, Wish};
use crate::ids::SubRegionId;
use readpath_kit::Ns;

pub(crate) struct DirtyRefresh {
    lru: Lru,
    costs: Costs,
    /// Reads of each sub-region that found a dirty entry since it was loaded.
    dirty: Vec<u8>,
}

impl DirtyRefresh {
    pub(crate) fn new(sub_regions: u32) -> Self {
        DirtyRefresh { lru: Lru::new(sub_regions), costs: Costs::default(), dirty: vec![0; sub_regions as usize] }
    }
}

impl MapPolicy for DirtyRefresh {
    fn read(&mut self, touch: &Touch) -> Wish {
        let wish = self.lru.read(touch);
        if !touch.eligible || !touch.held || touch.clean {
            return wish;
        }
        let dirty = &mut self.dirty[touch.sub_region];
        *dirty = dirty.saturating_add(1);
        Wish::load_if(u32::from(*dirty) >= self.costs.break_even())
    }

    fn timed(&mut self, _: SubRegionId, what: Timed, took: Ns, beside_load: bool) {
        self.costs.timed(what, took, beside_load);
    }

    fn loaded(&mut self, sub_region: SubRegionId) {
        self.dirty[sub_region] = 0;
        self.lru.loaded(sub_region);
    }

    fn dropped(&mut self, sub_region: SubRegionId) {
        self.lru.dropped(sub_region);
    }

    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        self.lru.victim(candidate, free)
    }

    fn bytes(&self) -> u64 {
        self.lru.bytes() + self.dirty.len() as u64
    }
}
