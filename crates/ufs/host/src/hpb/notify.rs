// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the device asks for in responses, and how it gets into the worker's lists (Linux `ufshpb_rsp_upiu`).

use super::{HpbLu, LuState, NO_MAP, RegionState, SubRegionState};
use readpath_proto::typed::HpbNotification;

impl HpbLu {
    /// A GOOD response brought a notification for this unit. False if it was refused.
    pub fn notified(&mut self, n: &HpbNotification) -> bool {
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
    pub fn listens(&self) -> bool {
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
            let region = u32::from(at.region);
            if self.manager.is_some() {
                self.advised(self.geometry.index_of(at));
                continue;
            }
            // In host control mode the device may only ask that what is active be loaded again; regions that were written
            // are the host's own business.
            if let Some(hcm) = &self.hcm
                && (self.regions[region as usize] != RegionState::Active || hcm.is_dirty(region))
            {
                continue;
            }
            let srgn = self.geometry.index_of(at);
            self.queue_activation(srgn);
            self.failures[srgn as usize] = 0;
            self.invalidate(srgn);
        }
        if !self.is_host_control() {
            for &region in &n.inactive[..inactive] {
                self.inactivate(u32::from(region));
            }
        }
        self.kick();
        true
    }

    /// HPB operation 02h: the device has lost what it knew. In device control mode everything that is not pinned is
    /// dropped; in host control mode it is loaded again when it is touched next, or as the policy has it.
    pub fn device_reset(&mut self) {
        if self.manager.is_some() {
            return self.managed_device_reset();
        }
        let Some(hcm) = &mut self.hcm else {
            let active: Vec<u32> = self.list.iter().collect();
            active.into_iter().for_each(|region| self.inactivate(region));
            return self.kick();
        };
        if self.options.strict_linux {
            // The one mark of a region is taken by the first of its sub-regions; pinned regions have none.
            self.list.iter().for_each(|region| hcm.mark(region, 0));
            return;
        }
        for srgn in 0..self.geometry.sub_regions() {
            if self.map_of[srgn as usize] != NO_MAP {
                hcm.mark(u32::from(self.geometry.sub_region_at(srgn).region), srgn);
            }
        }
    }

    /// The sub-region is to be loaded, and its region is not to be dropped.
    pub(super) fn queue_activation(&mut self, srgn: u32) {
        self.work.keep_region(u32::from(self.geometry.sub_region_at(srgn).region));
        let new = self.work.activate(srgn);
        self.counters.rcmd_active_cnt += u64::from(new || self.options.strict_linux);
    }

    /// The region is to be dropped, and none of its sub-regions to be loaded. Its entries are used until then.
    pub(super) fn queue_inactivation(&mut self, region: u32) {
        for srgn in self.sub_regions_of(region) {
            self.work.forget_activation(srgn);
        }
        let new = self.work.inactivate(region);
        self.counters.rcmd_inactive_cnt += u64::from(new || self.options.strict_linux);
    }

    /// The device wants the region to be dropped: its entries must not be used any more.
    fn inactivate(&mut self, region: u32) {
        self.queue_inactivation(region);
        for srgn in self.sub_regions_of(region) {
            self.invalidate(srgn);
        }
    }

    pub(super) fn invalidate(&mut self, srgn: u32) {
        if self.sub_regions[srgn as usize] == SubRegionState::Valid {
            self.sub_regions[srgn as usize] = SubRegionState::Invalid;
            self.valid_map[srgn as usize] = NO_MAP;
        }
    }
}
