// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that loads sub-regions and drops regions (Linux `ufshpb_map_work_handler`): whom it makes room for, whom
//! it takes the room from, and what it does when it cannot go on. Commands leave through a [`Port`]; what the device
//! makes of them is not known here.

use super::hcm::Hcm;
use super::{HpbLu, HpbRequest, LuState, MapId, Port, RegionState, SubRegionState};
use crate::ids::{RegionId, SubRegionId};
use readpath_kit::{BLOCK_BYTES, Ns};
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

impl HpbLu {
    /// Runs the worker if it has to: drops first, then loads, in the order of the lists.
    ///
    /// Linux ends at the first load that cannot be sent, and runs again when something else starts the worker. This
    /// host, in device control mode, tries again with every reply; in host control mode it goes on with the next.
    pub(crate) fn run_worker(&mut self, now: Ns, port: &mut impl Port) {
        if self.state != LuState::Present && self.sleeper.is_none() {
            return;
        }
        if self.is_managed() {
            return self.run_managed(now, port);
        }
        if let Some(sleeper) = self.sleeper {
            if now < sleeper.until {
                return;
            }
            if self.wake(now, sleeper, port) == Attempt::Sent {
                self.load_regions(now, port);
            }
        }
        if !self.kicked || self.sleeper.is_some() {
            return;
        }
        self.kicked = false;
        self.drop_regions(port);
        self.load_regions(now, port);
        if !self.options.strict_linux && self.mode.hcm().is_none() {
            self.kick();
        }
    }

    fn drop_regions(&mut self, port: &mut impl Port) {
        for _ in 0..self.work.inactivate.len() {
            let Some(region) = self.work.inactivate.pop_front() else { return };
            if self.regions[region] != RegionState::Active {
                continue;
            }
            if self.is_loading(region) || !self.announce_drop(region, port) {
                self.work.inactivate.add(region);
            } else {
                self.evict(region);
            }
        }
    }

    /// In host control mode the device is told. False if there is no tag for that.
    fn announce_drop(&mut self, region: RegionId, port: &mut impl Port) -> bool {
        if self.mode.hcm().is_none() {
            return true;
        }
        let sent = port.send(HpbRequest::Drop { region: region.number() });
        self.counters.umap_req_cnt += u64::from(sent);
        // Tags come back with replies.
        self.kicked |= !sent && !self.options.strict_linux;
        sent
    }

    fn load_regions(&mut self, now: Ns, port: &mut impl Port) {
        let mut next = self.work.activate.front();
        while let Some(srgn) = next {
            match self.load(now, srgn, port) {
                Attempt::Sent => {
                    next = self.work.activate.after(srgn);
                    self.work.activate.remove(srgn);
                }
                Attempt::Blocked if self.mode.hcm().is_some() && !self.options.strict_linux => {
                    next = self.work.activate.after(srgn)
                }
                Attempt::Blocked | Attempt::Stop => return,
                Attempt::Asleep => return self.work.activate.remove(srgn),
            }
        }
    }

    fn load(&mut self, now: Ns, srgn: SubRegionId, port: &mut impl Port) -> Attempt {
        if self.options.strict_linux {
            return self.load_as_linux(now, srgn, port);
        }
        if self.mode.hcm().is_some() && self.is_throttled() {
            // The end of a load starts the worker again.
            return Attempt::Stop;
        }
        if !port.has_tag() {
            self.kicked = true;
            return Attempt::Stop;
        }
        // A newer map may be wanted than the one under way: again when that has come.
        if self.sub_regions[srgn] == SubRegionState::Issued || !self.make_active(now, srgn, port) {
            return Attempt::Blocked;
        }
        self.begin_load(srgn);
        if !port.send(self.load_request(srgn)) {
            // The tag went to a WRITE BUFFER.
            self.sub_regions[srgn] = SubRegionState::Invalid;
            self.kicked = true;
            return Attempt::Stop;
        }
        self.count_load();
        // The bitmap starts clean now, but writes that are already in flight may reach the device after it has put the
        // entries together, or before: their entries are not to be trusted. Linux clears the bitmap when the load is
        // done.
        self.store.clean(self.map_of[srgn]);
        port.writes_in_flight(|block, blocks| self.mark_dirty(block, blocks));
        Attempt::Sent
    }

    fn load_as_linux(&mut self, now: Ns, srgn: SubRegionId, port: &mut impl Port) -> Attempt {
        if !self.make_active(now, srgn, port) || self.sub_regions[srgn] == SubRegionState::Issued {
            return Attempt::Blocked;
        }
        self.begin_load(srgn);
        if self.is_throttled() {
            self.sub_regions[srgn] = SubRegionState::Invalid;
            return Attempt::Blocked;
        }
        if !port.send(self.load_request(srgn)) {
            self.sleeper = Some(Sleeper { srgn, until: now + TAG_PAUSE, attempts_left: TAG_ATTEMPTS - 1 });
            return Attempt::Asleep;
        }
        self.count_load();
        Attempt::Sent
    }

    fn wake(&mut self, now: Ns, sleeper: Sleeper, port: &mut impl Port) -> Attempt {
        if port.send(self.load_request(sleeper.srgn)) {
            self.sleeper = None;
            self.count_load();
            return Attempt::Sent;
        }
        if sleeper.attempts_left > 1 {
            self.sleeper =
                Some(Sleeper { until: now + TAG_PAUSE, attempts_left: sleeper.attempts_left - 1, ..sleeper });
            return Attempt::Asleep;
        }
        self.sleeper = None;
        self.give_up_waiting(sleeper.srgn);
        Attempt::Blocked
    }

    /// There was no tag for a load that had begun: it is the first of the next run.
    pub(super) fn give_up_waiting(&mut self, srgn: SubRegionId) {
        self.sub_regions[srgn] = SubRegionState::Invalid;
        let region = srgn.region(&self.geometry);
        if !self.work.inactivate.contains(region) {
            self.work.activate.put_first(srgn);
        }
    }

    pub(super) fn begin_load(&mut self, srgn: SubRegionId) {
        if self.map_of[srgn] == MapId::NONE {
            self.give_memory(srgn);
        }
        self.valid_map[srgn] = MapId::NONE;
        self.sub_regions[srgn] = SubRegionState::Issued;
    }

    pub(super) fn load_request(&self, srgn: SubRegionId) -> HpbRequest {
        let at = srgn.name(&self.geometry);
        HpbRequest::Load {
            at,
            bytes: self.geometry.map_bytes_of(at),
            // Linux gives every sub-region as many pages, a short last one too (`ufshpb_execute_map_req`).
            room_bytes: self.geometry.pages_per_sub_region() * BLOCK_BYTES,
        }
    }

    fn count_load(&mut self) {
        self.counters.map_req_cnt += 1;
        if let Some(hcm) = self.mode.hcm_mut() {
            hcm.in_flight += 1;
        }
    }

    fn is_throttled(&self) -> bool {
        self.mode.hcm().is_some_and(Hcm::is_throttled)
    }

    /// A load has ended, with its entries or (`None`) an error.
    pub(crate) fn loaded(&mut self, at: SubRegion, entries: Option<&[u8]>) {
        if self.is_managed() {
            return self.managed_loaded(at, entries);
        }
        let srgn = SubRegionId::named(&self.geometry, at);
        if self.sub_regions[srgn] != SubRegionState::Issued {
            return;
        }
        if let Some(hcm) = self.mode.hcm_mut() {
            hcm.load_ends();
        }
        let map = self.map_of[srgn];
        match entries {
            Some(bytes) => self.store.fill(map, bytes),
            None if self.options.strict_linux => {}
            None => {
                self.counters.map_error_cnt += 1;
                self.sub_regions[srgn] = SubRegionState::Invalid;
                let failures = &mut self.failures[srgn];
                *failures += 1;
                if *failures <= LOAD_RETRIES {
                    self.work.activate.add(srgn);
                } else {
                    *failures = 0;
                }
                return self.kick();
            }
        }
        if let Some(hcm) = self.mode.hcm_mut() {
            hcm.clean(RegionId::from(at.region));
        }
        if self.options.strict_linux {
            self.store.clean(map);
        }
        self.failures[srgn] = 0;
        // A region with a load under way is neither dropped nor made a victim, and what takes all back leaves nothing
        // ISSUED.
        debug_assert_ne!(self.regions[RegionId::from(at.region)], RegionState::Inactive);
        self.sub_regions[srgn] = SubRegionState::Valid;
        self.valid_map[srgn] = map;
        if !self.options.strict_linux {
            self.kick();
        }
    }

    /// Makes the region of `srgn` active, if need be at the cost of another. False if that is not possible.
    fn make_active(&mut self, now: Ns, srgn: SubRegionId, port: &mut impl Port) -> bool {
        let region = srgn.region(&self.geometry);
        match self.regions[region] {
            RegionState::Pinned => return true,
            RegionState::Active => {
                self.list.touch(region);
                return true;
            }
            RegionState::Inactive => {}
        }
        if self.list.len() >= self.capacity {
            if let Some(hcm) = self.mode.hcm()
                && !hcm.may_displace(region)
            {
                return false;
            }
            let Some(victim) = self.victim() else { return false };
            if !self.announce_drop(victim, port) {
                return false;
            }
            self.evict(victim);
            self.counters.evict_cnt += 1;
        }
        self.regions[region] = RegionState::Active;
        self.list.add(region);
        if let Some(hcm) = self.mode.hcm_mut() {
            hcm.rewind(now, region);
        }
        true
    }

    /// The first region of the list that has no load under way, and that is read little in host control mode.
    fn victim(&self) -> Option<RegionId> {
        self.list.iter().find(|&region| {
            let keeps = self.mode.hcm().is_some_and(|hcm| hcm.keeps(region));
            !keeps && !self.is_loading(region)
        })
    }

    fn evict(&mut self, region: RegionId) {
        self.list.remove(region);
        self.purge(region);
        // On Linux the counters go on, far beyond the one value at which they would bring the region back.
        if let Some(hcm) = self.mode.hcm_mut().filter(|_| !self.options.strict_linux) {
            hcm.forget(region, &self.geometry);
        }
    }

    /// Gives back what is held of a region.
    pub(super) fn purge(&mut self, region: RegionId) {
        self.regions[region] = RegionState::Inactive;
        for srgn in region.sub_regions(&self.geometry) {
            self.sub_regions[srgn] = SubRegionState::Unused;
            self.valid_map[srgn] = MapId::NONE;
            let map = std::mem::replace(&mut self.map_of[srgn], MapId::NONE);
            if map != MapId::NONE {
                self.store.release(map);
            }
        }
    }

    fn is_loading(&self, region: RegionId) -> bool {
        region.sub_regions(&self.geometry).any(|s| self.sub_regions[s] == SubRegionState::Issued)
    }
}
