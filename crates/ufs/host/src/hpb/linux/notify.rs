// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recommendations in responses, and how they enter the worker's lists (Linux `ufshpb_rsp_upiu`). Nothing is loaded
//! or dropped here.

use super::LinuxDriver;
use crate::hpb::{Common, RegionState};
use crate::ids::{Id, RegionId, SubRegionId};
use readpath_proto::typed::SubRegion;

impl LinuxDriver {
    /// Handles recommended sub-regions, and regions to be dropped; all of them exist in the unit.
    pub(in crate::hpb) fn region_update(&mut self, common: &mut Common, active: &[SubRegion], inactive: &[u16]) {
        for &at in active {
            let region = RegionId::from(at.region);
            // In host control mode the device may only recommend to reload active sub-regions; written regions are
            // left to the host.
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

    /// HPB operation 02h: the device has lost its HPB state. In device control mode all regions but pinned ones are
    /// dropped; in host control mode they are loaded again at the next access.
    pub(in crate::hpb) fn device_reset(&mut self, common: &mut Common) {
        let Some(hcm) = &mut self.hcm else {
            let active: Vec<RegionId> = self.list.iter().collect();
            active.into_iter().for_each(|region| self.inactivate(common, region));
            return self.kick(common);
        };
        if common.quirks.one_update_mark_per_region {
            // The mark belongs to the region; its first touched sub-region takes it.
            self.list.iter().for_each(|region| hcm.mark(region, SubRegionId::new(0)));
            return;
        }
        for srgn in common.table.all_sub_regions().filter(|&srgn| common.table.has_memory(srgn)) {
            hcm.mark(common.table.region_of(srgn), srgn);
        }
    }

    /// Queues the sub-region to be loaded; its region is no longer queued to be dropped.
    pub(super) fn queue_activation(&mut self, common: &mut Common, srgn: SubRegionId) {
        self.work.inactivate.remove(common.table.region_of(srgn));
        let new = self.work.activate.add(srgn);
        common.counters.rcmd_active_cnt += u64::from(new || common.quirks.counts_queued_again);
    }

    /// Queues the region to be dropped; its sub-regions are no longer queued to be loaded. Its entries are used until
    /// then.
    pub(super) fn queue_inactivation(&mut self, common: &mut Common, region: RegionId) {
        common.table.sub_regions_of(region).for_each(|srgn| self.work.activate.remove(srgn));
        let new = self.work.inactivate.add(region);
        common.counters.rcmd_inactive_cnt += u64::from(new || common.quirks.counts_queued_again);
    }

    /// Drops the region for the device: its entries must not be used any more.
    fn inactivate(&mut self, common: &mut Common, region: RegionId) {
        self.queue_inactivation(common, region);
        common.table.sub_regions_of(region).for_each(|srgn| common.table.invalidate(srgn));
    }
}
