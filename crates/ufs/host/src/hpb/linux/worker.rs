// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that loads sub-regions and drops regions (Linux `ufshpb_map_work_handler`): which regions become
//! active, which are evicted for them, and what happens when a command cannot be sent. It sends commands through a
//! [`Port`].

use super::LinuxDriver;
use super::hcm::Hcm;
use crate::hpb::{Common, HpbRequest, LuState, Port, RegionState, SubRegionState};
use crate::ids::{RegionId, SubRegionId};
use readpath_kit::Ns;
use readpath_proto::typed::SubRegion;

/// A worker that waits for a tag in the middle of its run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleeper {
    pub srgn: SubRegionId,
    pub until: Ns,
    attempts_left: u8,
}

/// How often Linux asks for a tag for HPB READ BUFFER (`HPB_MAP_REQ_RETRIES`), and the pause between (it sleeps for
/// 3.0 to 3.1 ms). With an I/O scheduler it would be a tag of the scheduler; this host has none.
const TAG_ATTEMPTS: u8 = 5;
const TAG_PAUSE: Ns = Ns::from_ms(3);
/// Failed loads of a sub-region before the worker stops retrying, until it is queued again.
const LOAD_RETRIES: u8 = 3;

/// Result of an attempt to load a sub-region.
#[derive(PartialEq, Eq)]
enum Attempt {
    Sent,
    /// This load has to wait; others may be possible.
    Blocked,
    /// Nothing more can be sent in this run.
    Stop,
    /// The run continues when there is a tag.
    Asleep,
}

impl LinuxDriver {
    /// Runs the worker if it is kicked: drops first, then loads, in the order of the lists.
    ///
    /// Linux ends the run at the first load that cannot be sent, and runs again when another event starts the worker.
    /// This host retries with every reply in device control mode, and continues with the next load in host control
    /// mode.
    pub(in crate::hpb) fn run_worker(&mut self, common: &mut Common, now: Ns, port: &mut impl Port) {
        if common.state != LuState::Present && self.sleeper.is_none() {
            return;
        }
        if let Some(sleeper) = self.sleeper {
            if now < sleeper.until {
                return;
            }
            if self.wake(common, now, sleeper, port) == Attempt::Sent {
                self.load_regions(common, now, port);
            }
        }
        if !common.kicked || self.sleeper.is_some() {
            return;
        }
        common.kicked = false;
        self.drop_regions(common, port);
        self.load_regions(common, now, port);
        if !common.quirks.worker_waits_for_notices && self.hcm.is_none() {
            self.kick(common);
        }
    }

    fn drop_regions(&mut self, common: &mut Common, port: &mut impl Port) {
        for _ in 0..self.work.inactivate.len() {
            let Some(region) = self.work.inactivate.pop_front() else { return };
            if common.table.region(region) != RegionState::Active {
                continue;
            }
            if common.table.is_loading_any(region) || !self.announce_drop(common, region, port) {
                self.work.inactivate.add(region);
            } else {
                self.evict(common, region);
            }
        }
    }

    /// Announces a drop to the device in host control mode. False if there is no tag for it.
    fn announce_drop(&mut self, common: &mut Common, region: RegionId, port: &mut impl Port) -> bool {
        if self.hcm.is_none() {
            return true;
        }
        let sent = port.send(HpbRequest::Drop { region: region.number() });
        common.counters.umap_req_cnt += u64::from(sent);
        // Tags come back with replies.
        common.kicked |= !sent && !common.quirks.worker_waits_for_notices;
        sent
    }

    fn load_regions(&mut self, common: &mut Common, now: Ns, port: &mut impl Port) {
        let skips_blocked = self.hcm.is_some() && !common.quirks.first_blocked_load_ends_run;
        let mut next = self.work.activate.front();
        while let Some(srgn) = next {
            match self.load(common, now, srgn, port) {
                Attempt::Sent => {
                    next = self.work.activate.after(srgn);
                    self.work.activate.remove(srgn);
                }
                Attempt::Blocked if skips_blocked => next = self.work.activate.after(srgn),
                Attempt::Blocked | Attempt::Stop => return,
                Attempt::Asleep => return self.work.activate.remove(srgn),
            }
        }
    }

    fn load(&mut self, common: &mut Common, now: Ns, srgn: SubRegionId, port: &mut impl Port) -> Attempt {
        if common.quirks.worker_sleeps_for_tags {
            return self.load_or_sleep(common, now, srgn, port);
        }
        if self.is_throttled() {
            // The end of a load starts the worker again.
            return Attempt::Stop;
        }
        if !port.has_tag() {
            common.kicked = true;
            return Attempt::Stop;
        }
        // The load in progress may be outdated: load again when it has ended.
        if common.table.is_loading(srgn) || !self.make_active(common, now, srgn, port) {
            return Attempt::Blocked;
        }
        common.table.begin_load(srgn);
        if !port.send(common.load_request(srgn)) {
            // The tag was used for a WRITE BUFFER.
            common.table.stop_use(srgn);
            common.kicked = true;
            return Attempt::Stop;
        }
        self.count_load(common);
        common.clean_for_load(srgn, port);
        Attempt::Sent
    }

    /// Loads as Linux does: the region becomes active and the sub-region ISSUED before it is known whether the load
    /// can be sent.
    fn load_or_sleep(&mut self, common: &mut Common, now: Ns, srgn: SubRegionId, port: &mut impl Port) -> Attempt {
        if !self.make_active(common, now, srgn, port) || common.table.is_loading(srgn) {
            return Attempt::Blocked;
        }
        common.table.begin_load(srgn);
        if self.is_throttled() {
            common.table.stop_use(srgn);
            return Attempt::Blocked;
        }
        if !port.send(common.load_request(srgn)) {
            self.sleeper = Some(Sleeper { srgn, until: now + TAG_PAUSE, attempts_left: TAG_ATTEMPTS - 1 });
            return Attempt::Asleep;
        }
        self.count_load(common);
        Attempt::Sent
    }

    fn wake(&mut self, common: &mut Common, now: Ns, sleeper: Sleeper, port: &mut impl Port) -> Attempt {
        if port.send(common.load_request(sleeper.srgn)) {
            self.sleeper = None;
            self.count_load(common);
            return Attempt::Sent;
        }
        if sleeper.attempts_left > 1 {
            self.sleeper =
                Some(Sleeper { until: now + TAG_PAUSE, attempts_left: sleeper.attempts_left - 1, ..sleeper });
            return Attempt::Asleep;
        }
        self.sleeper = None;
        self.give_up_waiting(common, sleeper.srgn);
        Attempt::Blocked
    }

    /// No tag was found for a started load: it is the first of the next run.
    pub(super) fn give_up_waiting(&mut self, common: &mut Common, srgn: SubRegionId) {
        common.table.stop_use(srgn);
        if !self.work.inactivate.contains(common.table.region_of(srgn)) {
            self.work.activate.put_first(srgn);
        }
    }

    fn count_load(&mut self, common: &mut Common) {
        common.counters.map_req_cnt += 1;
        self.hcm.iter_mut().for_each(|hcm| hcm.in_flight += 1);
    }

    /// Whether as many loads are in flight as host control mode allows.
    fn is_throttled(&self) -> bool {
        self.hcm.as_ref().is_some_and(Hcm::is_throttled)
    }

    /// A load has ended, with its entries or (`None`) an error.
    pub(in crate::hpb) fn loaded(&mut self, common: &mut Common, at: SubRegion, entries: Option<&[u8]>) {
        let srgn = SubRegionId::named(common.table.geometry(), at);
        if common.table.sub_region(srgn) != SubRegionState::Issued {
            return;
        }
        self.hcm.iter_mut().for_each(Hcm::load_ends);
        if entries.is_none() && !common.quirks.trusts_failed_loads {
            common.counters.map_error_cnt += 1;
            if common.table.load_failed(srgn, LOAD_RETRIES) {
                self.work.activate.add(srgn);
            }
            return self.kick(common);
        }
        self.hcm.iter_mut().for_each(|hcm| hcm.clean(at.region.into()));
        if common.quirks.ignores_writes_during_loads {
            common.table.clean(srgn);
        }
        // A region with a load in progress is neither dropped nor evicted, and destroying a unit leaves nothing
        // ISSUED.
        debug_assert_ne!(common.table.region(at.region.into()), RegionState::Inactive);
        common.table.end_load(srgn, entries);
        if !common.quirks.worker_waits_for_notices {
            self.kick(common);
        }
    }

    /// Makes the region of `srgn` active, evicting another if need be. False if that is not possible.
    fn make_active(&mut self, common: &mut Common, now: Ns, srgn: SubRegionId, port: &mut impl Port) -> bool {
        let region = common.table.region_of(srgn);
        match common.table.region(region) {
            RegionState::Pinned => return true,
            RegionState::Active => {
                self.list.touch(region);
                return true;
            }
            RegionState::Inactive => {}
        }
        if self.list.len() >= self.capacity {
            if let Some(hcm) = &self.hcm
                && !hcm.may_displace(region)
            {
                return false;
            }
            let Some(victim) = self.victim(common) else { return false };
            if !self.announce_drop(common, victim, port) {
                return false;
            }
            self.evict(common, victim);
            common.counters.evict_cnt += 1;
        }
        common.table.activate(region);
        self.list.add(region);
        self.hcm.iter_mut().for_each(|hcm| hcm.rewind(now, region));
        true
    }

    /// The first region of the list without a load in progress, and in host control mode with few reads.
    fn victim(&self, common: &Common) -> Option<RegionId> {
        self.list.iter().find(|&region| {
            let keeps = self.hcm.as_ref().is_some_and(|hcm| hcm.keeps(region));
            !keeps && !common.table.is_loading_any(region)
        })
    }

    fn evict(&mut self, common: &mut Common, region: RegionId) {
        self.list.remove(region);
        common.table.release_region(region);
        if let Some(hcm) = self.hcm.as_mut().filter(|_| !common.quirks.counters_outlive_eviction) {
            hcm.forget(region, common.table.geometry());
        }
    }
}
