// SPDX-License-Identifier: MIT OR Apache-2.0
//! The work of the map worker: sub-regions to load and regions to drop, each at most once, in order of arrival.

use crate::ids::{IdList, RegionId, SubRegionId};

/// Linux `lh_act_srgn` and `lh_inact_rgn`.
pub(super) struct WorkLists {
    pub activate: IdList<SubRegionId>,
    pub inactivate: IdList<RegionId>,
}

impl WorkLists {
    pub(super) fn new(regions: u32, sub_regions: u32) -> Self {
        WorkLists { activate: IdList::new(sub_regions), inactivate: IdList::new(regions) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.activate.is_empty() && self.inactivate.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.activate.clear();
        self.inactivate.clear();
    }

    pub(super) fn bytes(&self) -> u64 {
        self.activate.bytes() + self.inactivate.bytes()
    }
}
