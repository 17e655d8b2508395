// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that loads sub-regions and drops regions (Linux `ufshpb_map_work_handler`): which regions become active,
//! which are evicted for them, and what it does when it cannot go on. Commands leave through a [`Port`]; what the
//! device does with them is not known here.

use super::LinuxDriver;
use super::hcm::Hcm;
use crate::hpb::{Common, HpbRequest, LuState, Port, RegionState, SubRegionState};
use crate::ids::{RegionId, SubRegionId};
use readpath_kit::Ns;
use readpath_proto::typed::SubRegion;

/// The worker in the middle of a run, waiting for a tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleeper {
    pub srgn: SubRegionId,
    pub until: Ns,
    attempts_left: u8,
}

/// How often Linux asks for a tag for HPB READ BUFFER (`HPB_MAP_REQ_RETRIES`), and the pause in between (it sleeps for
/// 3.0 to 3.1 ms). With an I/O scheduler that would be a tag of the scheduler's; this host has none.
const TAG_ATTEMPTS: u8 = 5;
const TAG_PAUSE: Ns = Ns::from_ms(3);
/// Failed loads of a sub-region before it is left alone until it is wanted again.
const LOAD_RETRIES: u8 = 3;

/// What came of an attempt to load a sub-region.
#[derive(PartialEq, Eq)]
enum Attempt {
    Sent,
    /// This one has to wait; another may not.
    Blocked,
    /// Nothing more can be sent in this run.
    Stop,
    /// The run goes on when there is a tag.
    Asleep,
}

impl LinuxDriver {
    /// Runs the worker if it has to: drops first, then loads, in the order of the lists.
    ///
    /// Linux ends at the first load that cannot be sent, and runs again when something else starts the worker. This
    /// host, in device control mode, tries again with every reply; in host control mode it goes on with the next.
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

    /// In host control mode a drop is announced to the device. False if there is no tag for that.
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
        // A newer map may be wanted than the one under way: again when that has come.
        if common.table.is_loading(srgn) || !self.make_active(common, now, srgn, port) {
            return Attempt::Blocked;
        }
        common.table.begin_load(srgn);
        if !port.send(common.load_request(srgn)) {
            // The tag went to a WRITE BUFFER.
            common.table.stop_use(srgn);
            common.kicked = true;
            return Attempt::Stop;
        }
        self.count_load(common);
        common.clean_for_load(srgn, port);
        Attempt::Sent
    }

    /// As Linux loads: the region becomes active and the sub-region ISSUED before it is known whether a load may be
    /// sent.
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

    /// There was no tag for a load that had begun: it is the first of the next run.
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
        // A region with a load under way is neither dropped nor evicted, and what takes all back leaves nothing ISSUED.
        debug_assert_ne!(common.table.region(at.region.into()), RegionState::Inactive);
        common.table.end_load(srgn, entries);
        if !common.quirks.worker_waits_for_notices {
            self.kick(common);
        }
    }

    /// Makes the region of `srgn` active, if need be at the cost of another. False if that is not possible.
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

    /// The first region of the list that has no load under way, and that is read little in host control mode.
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
