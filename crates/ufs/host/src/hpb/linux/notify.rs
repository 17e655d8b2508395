// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the device asks for in responses, and how it gets into the worker's lists (Linux `ufshpb_rsp_upiu`). Nothing is
//! loaded or dropped here.

use super::LinuxDriver;
use crate::hpb::{Common, RegionState};
use crate::ids::{Id, RegionId, SubRegionId};
use readpath_proto::typed::SubRegion;

impl LinuxDriver {
    /// The device recommends sub-regions, and regions to be dropped; the unit has all of them.
    pub(in crate::hpb) fn region_update(&mut self, common: &mut Common, active: &[SubRegion], inactive: &[u16]) {
        for &at in active {
            let region = RegionId::from(at.region);
            // In host control mode the device may only ask that what is active be loaded again; regions that were
            // written are left to the host.
            if let Some(hcm) = &self.hcm
                && (common.table.region(region) != RegionState::Active || hcm.is_dirty(region))
            {
                continue;
            }
            let srgn = SubRegionId::named(common.table.geometry(), at);
            self.queue_activation(common, srgn);
            common.table.forget_failures(srgn);
            common.table.invalidate(srgn);
        }
        if self.hcm.is_none() {
            inactive.iter().for_each(|&region| self.inactivate(common, region.into()));
        }
        self.kick(common);
    }

    /// HPB operation 02h: the device has lost its HPB state. In device control mode everything that is not pinned is
    /// dropped; in host control mode it is loaded again when it is touched next.
    pub(in crate::hpb) fn device_reset(&mut self, common: &mut Common) {
        let Some(hcm) = &mut self.hcm else {
            let active: Vec<RegionId> = self.list.iter().collect();
            active.into_iter().for_each(|region| self.inactivate(common, region));
            return self.kick(common);
        };
        if common.quirks.one_update_mark_per_region {
            // The first touched of its sub-regions takes the mark.
            self.list.iter().for_each(|region| hcm.mark(region, SubRegionId::new(0)));
            return;
        }
        for srgn in common.table.all_sub_regions().filter(|&srgn| common.table.has_memory(srgn)) {
            hcm.mark(common.table.region_of(srgn), srgn);
        }
    }

    /// The sub-region is to be loaded, and its region is not to be dropped.
    pub(super) fn queue_activation(&mut self, common: &mut Common, srgn: SubRegionId) {
        self.work.inactivate.remove(common.table.region_of(srgn));
        let new = self.work.activate.add(srgn);
        common.counters.rcmd_active_cnt += u64::from(new || common.quirks.counts_queued_again);
    }

    /// The region is to be dropped, and none of its sub-regions to be loaded. Its entries are used until then.
    pub(super) fn queue_inactivation(&mut self, common: &mut Common, region: RegionId) {
        common.table.sub_regions_of(region).for_each(|srgn| self.work.activate.remove(srgn));
        let new = self.work.inactivate.add(region);
        common.counters.rcmd_inactive_cnt += u64::from(new || common.quirks.counts_queued_again);
    }

    /// The device wants the region to be dropped: its entries must not be used any more.
    fn inactivate(&mut self, common: &mut Common, region: RegionId) {
        self.queue_inactivation(common, region);
        common.table.sub_regions_of(region).for_each(|srgn| common.table.invalidate(srgn));
    }
}
