// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the device asks for in responses, and how it gets into the worker's lists (Linux `ufshpb_rsp_upiu`). Nothing is
//! loaded or dropped here.

use super::{HpbLu, LuState, MapId, RegionState, SubRegionState};
use crate::ids::{Id, RegionId, SubRegionId};
use readpath_proto::typed::HpbNotification;

impl HpbLu {
    /// A GOOD response brought a notification for this unit. False if it was refused.
    pub(crate) fn notified(&mut self, n: &HpbNotification) -> bool {
        if !self.listens() {
            return false;
        }
        if n.operation == HpbNotification::REGION_UPDATE {
            return self.region_update(n);
        }
        self.counters.rcmd_noti_cnt += 1;
        true
    }

    /// Whether notifications count in this state.
    pub(crate) fn listens(&self) -> bool {
        matches!(self.state, LuState::Present | LuState::Suspend)
    }

    fn region_update(&mut self, n: &HpbNotification) -> bool {
        let (active, inactive) = (usize::from(n.active_count), usize::from(n.inactive_count));
        let in_range = active <= 2
            && inactive <= 2
            && active + inactive > 0
            && n.active[..active.min(2)].iter().all(|&at| self.geometry.contains(at))
            && n.inactive[..inactive.min(2)].iter().all(|&r| u32::from(r) < self.geometry.regions());
        if !in_range {
            self.counters.rejected_noti_cnt += 1;
            return false;
        }
        self.counters.rcmd_noti_cnt += 1;
        for &at in &n.active[..active] {
            let region = RegionId::from(at.region);
            if self.is_managed() {
                self.advised(SubRegionId::named(&self.geometry, at));
                continue;
            }
            // In host control mode the device may only ask that what is active be loaded again; regions that were
            // written are the host's own business.
            if let Some(hcm) = self.mode.hcm()
                && (self.regions[region] != RegionState::Active || hcm.is_dirty(region))
            {
                continue;
            }
            let srgn = SubRegionId::named(&self.geometry, at);
            self.queue_activation(srgn);
            self.failures[srgn] = 0;
            self.invalidate(srgn);
        }
        if !self.is_host_control() {
            for &region in &n.inactive[..inactive] {
                self.inactivate(region.into());
            }
        }
        self.kick();
        true
    }

    /// HPB operation 02h: the device has lost what it knew. In device control mode everything that is not pinned is
    /// dropped; in host control mode it is loaded again when it is touched next, or as the policy has it.
    pub(crate) fn device_reset(&mut self) {
        if self.is_managed() {
            return self.managed_device_reset();
        }
        let Some(hcm) = self.mode.hcm_mut() else {
            let active: Vec<RegionId> = self.list.iter().collect();
            active.into_iter().for_each(|region| self.inactivate(region));
            return self.kick();
        };
        if self.options.strict_linux {
            // The one mark of a region is taken by the first of its sub-regions; pinned regions have none.
            self.list.iter().for_each(|region| hcm.mark(region, SubRegionId::new(0)));
            return;
        }
        for srgn in (0..self.geometry.sub_regions()).map(SubRegionId::new) {
            if self.map_of[srgn] != MapId::NONE {
                hcm.mark(srgn.region(&self.geometry), srgn);
            }
        }
    }

    /// The sub-region is to be loaded, and its region is not to be dropped.
    pub(super) fn queue_activation(&mut self, srgn: SubRegionId) {
        self.work.inactivate.remove(srgn.region(&self.geometry));
        let new = self.work.activate.add(srgn);
        self.counters.rcmd_active_cnt += u64::from(new || self.options.strict_linux);
    }

    /// The region is to be dropped, and none of its sub-regions to be loaded. Its entries are used until then.
    pub(super) fn queue_inactivation(&mut self, region: RegionId) {
        for srgn in region.sub_regions(&self.geometry) {
            self.work.activate.remove(srgn);
        }
        let new = self.work.inactivate.add(region);
        self.counters.rcmd_inactive_cnt += u64::from(new || self.options.strict_linux);
    }

    /// The device wants the region to be dropped: its entries must not be used any more.
    fn inactivate(&mut self, region: RegionId) {
        self.queue_inactivation(region);
        for srgn in region.sub_regions(&self.geometry) {
            self.invalidate(srgn);
        }
    }

    pub(super) fn invalidate(&mut self, srgn: SubRegionId) {
        if self.sub_regions[srgn] == SubRegionState::Valid {
            self.sub_regions[srgn] = SubRegionState::Invalid;
            self.valid_map[srgn] = MapId::NONE;
        }
    }
}
