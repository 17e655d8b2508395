// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver of Linux 6.1 (`drivers/ufs/core/ufshpb.c`) over the table of maps. In device control mode the device
//! recommends what is loaded; in host control mode reads are counted ([`hcm`]), and old regions time out. Where this
//! host improves on Linux, the code names a difference in [`crate::quirks`].
//!
//! It knows recommendations, reads and writes; neither tags and commands in flight nor policies.

#[cfg(test)]
mod conformance;
mod hcm;
mod lists;
mod notify;
mod worker;

use super::table::MapTable;
use super::{Common, LuState, RegionState, UnitSetup};
use crate::ids::{IdList, RegionId, SubRegionId};
use crate::params::HpbParams;
use hcm::Hcm;
use lists::WorkLists;
use readpath_kit::Ns;
use worker::Sleeper;

pub(super) struct LinuxDriver {
    /// Exists in host control mode.
    hcm: Option<Hcm>,
    /// Active regions that are not pinned, the next victim first.
    list: IdList<RegionId>,
    /// The most regions in the list.
    capacity: u32,
    work: WorkLists,
    /// The worker waits for a tag in the middle of its run.
    sleeper: Option<Sleeper>,
}

impl LinuxDriver {
    /// A driver of a unit found at `now`, which keeps at most `capacity` regions active besides pinned ones.
    pub(super) fn new(common: &Common, setup: &UnitSetup, capacity: u32, now: Ns) -> Self {
        let geometry = common.table.geometry();
        let (regions, sub_regions) = (geometry.regions(), geometry.sub_regions());
        let marks_are_fine = !common.quirks.one_update_mark_per_region;
        let hcm = setup.host_control.then(|| Hcm::new(geometry, common.params, marks_are_fine, now));
        let mut work = WorkLists::new(regions, sub_regions);
        common.table.pinned_sub_regions().for_each(|srgn| {
            work.activate.add(srgn);
        });
        LinuxDriver { hcm, list: IdList::new(regions), capacity, work, sleeper: None }
    }

    /// Lowers the capacity so that at most `maps` maps are held.
    pub(super) fn bound_maps(&mut self, maps: u64, maps_per_region: u32) {
        let regions = maps / u64::from(maps_per_region);
        self.capacity = self.capacity.min(regions.min(u64::from(u32::MAX)) as u32);
    }

    pub(super) fn present(&mut self, common: &mut Common) {
        if !common.quirks.single_pinned_region_waits || common.table.pinned_regions().count() != 1 {
            self.kick(common);
        }
    }

    /// Forgets all work: the unit has released its memory.
    pub(super) fn destroy(&mut self) {
        self.sleeper = None;
        self.stop_timers();
        self.work.clear();
        self.list.clear();
    }

    /// Before the host sleeps. A worker in the middle of its run finishes it; Linux waits for that
    /// (`cancel_work_sync`).
    pub(super) fn suspend(&mut self) {
        self.stop_timers();
    }

    pub(super) fn resume(&mut self, common: &mut Common, now: Ns) {
        self.kick(common);
        self.hcm.iter_mut().for_each(|hcm| hcm.poll_again(now));
    }

    /// The controller begins a reset; `was_present`: the unit leaves the state PRESENT. Linux sends loads in flight
    /// again; here they are never answered.
    pub(super) fn reset(&mut self, common: &mut Common, was_present: bool) {
        if let Some(sleeper) = self.sleeper.take() {
            self.give_up_waiting(common, sleeper.srgn);
        }
        if was_present {
            self.stop_timers();
            self.forget_work(common);
        }
        if common.quirks.resends_at_reset {
            return;
        }
        for srgn in common.table.all_sub_regions() {
            if common.table.is_loading(srgn) {
                common.table.stop_use(srgn);
                self.load_when_touched(common, srgn);
            }
        }
        self.hcm.iter_mut().for_each(|hcm| hcm.in_flight = 0);
    }

    /// The controller's reset is over.
    pub(super) fn restored(&mut self, common: &mut Common, now: Ns) {
        if !common.quirks.timers_stop_at_reset {
            self.hcm.iter_mut().for_each(|hcm| hcm.poll_again(now));
        }
    }

    fn stop_timers(&mut self) {
        self.hcm.iter_mut().for_each(Hcm::stop_polling);
    }

    /// Forgets queued loads and drops.
    fn forget_work(&mut self, common: &Common) {
        while let Some(srgn) = self.work.activate.pop_front() {
            if !common.quirks.forgets_queue_at_reset {
                self.load_when_touched(common, srgn);
            }
        }
        self.work.clear();
    }

    /// Marks the sub-region for host control mode to be loaded at the next read or write.
    fn load_when_touched(&mut self, common: &Common, srgn: SubRegionId) {
        let region = common.table.region_of(srgn);
        self.hcm.iter_mut().for_each(|hcm| hcm.mark(region, srgn));
    }

    /// When a timer of host control mode is due, or the worker retries to get a tag.
    pub(super) fn next_timer(&self, _: &Common) -> Ns {
        let poll = self.hcm.as_ref().map_or(Ns::NEVER, |hcm| hcm.poll_at);
        self.sleeper.as_ref().map_or(poll, |sleeper| poll.min(sleeper.until))
    }

    pub(super) fn advance(&mut self, common: &mut Common, now: Ns) {
        if self.hcm.as_ref().is_some_and(|hcm| hcm.poll_at <= now) {
            self.poll(common, now);
        }
    }

    /// Host control mode: queues active regions whose read timeouts have run out, and starts the worker (Linux
    /// `ufshpb_read_to_handler`).
    pub(super) fn poll(&mut self, common: &mut Common, now: Ns) {
        let Some(hcm) = &mut self.hcm else { return };
        let over: Vec<RegionId> = self.list.iter().filter(|&region| hcm.is_over(now, region)).collect();
        hcm.poll_again(now);
        // Linux puts each before those found earlier.
        over.into_iter().rev().for_each(|region| self.queue_inactivation(common, region));
        self.kick(common);
    }

    /// Starts the worker if its lists are not empty.
    fn kick(&self, common: &mut Common) {
        common.kicked |= common.state == LuState::Present && !self.work.is_empty();
    }

    pub(super) fn is_host_control(&self) -> bool {
        self.hcm.is_some()
    }

    pub(super) fn set_params(&mut self, params: HpbParams) {
        self.hcm.iter_mut().for_each(|hcm| hcm.params = params);
    }

    pub(super) fn bytes(&self, _: &MapTable) -> u64 {
        self.list.bytes() + self.work.bytes() + self.hcm.as_ref().map_or(0, Hcm::bytes)
    }

    /// Moves the region of an HPB READ in a list that is kept in order of use.
    pub(super) fn touch(&mut self, region: RegionId) {
        self.list.touch(region);
    }

    /// Counts a read in host control mode, with or without an entry.
    pub(super) fn note_read(&mut self, common: &mut Common, now: Ns, block: u32, blocks: u32) {
        if self.hcm.is_none() {
            return;
        }
        for part in common.table.parts(block, blocks) {
            let (srgn, region) = (part.sub_region, common.table.region_of(part.sub_region));
            let Some(hcm) = &mut self.hcm else { return };
            if common.table.region(region) != RegionState::Inactive {
                hcm.rewind(now, region);
            }
            if hcm.read(region, srgn) {
                self.queue_activation(common, srgn);
            }
        }
        let first = RegionId::from(common.table.geometry().region_of(block));
        if self.hcm.as_ref().is_some_and(|hcm| hcm.is_too_high(first, common.table.geometry())) {
            self.normalize(common);
        }
    }

    /// Resets the read count of a sub-region at a write in host control mode.
    pub(super) fn note_written(&mut self, common: &mut Common, block: u32, blocks: u32) {
        if common.state != LuState::Present || self.hcm.is_none() {
            return;
        }
        for part in common.table.parts(block, blocks) {
            let (srgn, region) = (part.sub_region, common.table.region_of(part.sub_region));
            if self.hcm.as_mut().is_some_and(|hcm| hcm.write(region, srgn)) {
                self.queue_activation(common, srgn);
            }
        }
    }

    #[cold]
    fn normalize(&mut self, common: &mut Common) {
        let Some(hcm) = &mut self.hcm else { return };
        hcm.normalize(common.table.geometry());
        for region in common.table.all_regions() {
            let unread = self.hcm.as_ref().is_some_and(|hcm| hcm.reads_of(region) == 0);
            if unread && common.table.region(region) == RegionState::Active {
                self.queue_inactivation(common, region);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Reads of a region, as host control mode counts them; 0 in device control mode.
    #[cfg(test)]
    fn region_reads(&self, region: u16) -> u32 {
        self.hcm.as_ref().map_or(0, |hcm| hcm.reads_of(region.into()))
    }
}
