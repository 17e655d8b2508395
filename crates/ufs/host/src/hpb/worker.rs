// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worker that loads sub-regions and drops regions (Linux `ufshpb_map_work_handler`): whom it makes room for, whom it
//! takes the room from, and what it does when it cannot go on. Commands leave through a [`Port`]; what the device makes of
//! them is not known here.

use super::{HpbLu, LuState, NO_MAP, RegionState, SubRegionState};
use readpath_kit::Ns;
use readpath_proto::typed::SubRegion;

/// A command of HPB's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HpbRequest {
    /// HPB READ BUFFER: load a sub-region.
    Load {
        /// Sub-region.
        at: SubRegion,
        /// Bytes of its map.
        bytes: u32,
    },
    /// HPB WRITE BUFFER 01h: the host drops a region.
    Drop {
        /// Region.
        region: u16,
    },
}

/// The way to the device.
pub trait Port {
    /// Whether a request could be sent now.
    fn has_tag(&self) -> bool;
    /// Sends a request; false if there is no tag for it.
    fn send(&mut self, request: HpbRequest) -> bool;
    /// Calls `each` with first block and number of blocks of every write and discard of this unit that is in flight.
    fn writes_in_flight(&self, each: impl FnMut(u32, u32));
}

/// The worker in the middle of a run, waiting for a tag.
#[derive(Clone, Copy, Debug)]
pub struct Sleeper {
    pub srgn: u32,
    pub until: Ns,
    attempts_left: u8,
}

/// How often Linux asks for a tag for HPB READ BUFFER (`HPB_MAP_REQ_RETRIES`), and the pause in between (it sleeps for 3.0
/// to 3.1 ms).
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
    /// Linux ends at the first load that cannot be sent, and runs again when something else starts the worker. This host, in
    /// device control mode, tries again with every reply; in host control mode it goes on with the next.
    pub fn run_worker(&mut self, now: Ns, port: &mut impl Port) {
        if self.state != LuState::Present {
            return;
        }
        if self.manager.is_some() {
            return self.run_managed(port);
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
        if !self.options.strict_linux && self.hcm.is_none() {
            self.kick();
        }
    }

    fn drop_regions(&mut self, port: &mut impl Port) {
        for _ in 0..self.work.inactivations() {
            let Some(region) = self.work.next_inactivation() else { return };
            if self.regions[region as usize] != RegionState::Active {
                continue;
            }
            if self.is_loading(region) || !self.announce_drop(region, port) {
                self.work.defer_inactivation(region);
            } else {
                self.evict(region);
            }
        }
    }

    /// In host control mode the device is told. False if there is no tag for that.
    fn announce_drop(&mut self, region: u32, port: &mut impl Port) -> bool {
        if self.hcm.is_none() {
            return true;
        }
        let sent = port.send(HpbRequest::Drop { region: region as u16 });
        self.counters.umap_req_cnt += u64::from(sent);
        // Tags come back with replies.
        self.kicked |= !sent && !self.options.strict_linux;
        sent
    }

    fn load_regions(&mut self, now: Ns, port: &mut impl Port) {
        let mut next = self.work.next_activation();
        while let Some(srgn) = next {
            match self.load(now, srgn, port) {
                Attempt::Sent => {
                    next = self.work.after(srgn);
                    self.work.forget_activation(srgn);
                }
                Attempt::Blocked if self.hcm.is_some() && !self.options.strict_linux => next = self.work.after(srgn),
                Attempt::Blocked | Attempt::Stop => return,
                Attempt::Asleep => return self.work.forget_activation(srgn),
            }
        }
    }

    fn load(&mut self, now: Ns, srgn: u32, port: &mut impl Port) -> Attempt {
        if self.options.strict_linux {
            return self.load_as_linux(now, srgn, port);
        }
        if self.hcm.is_some() && self.is_throttled() {
            // The end of a load starts the worker again.
            return Attempt::Stop;
        }
        if !port.has_tag() {
            self.kicked = true;
            return Attempt::Stop;
        }
        // A newer map may be wanted than the one under way: again when that has come.
        if self.sub_regions[srgn as usize] == SubRegionState::Issued || !self.make_active(now, srgn, port) {
            return Attempt::Blocked;
        }
        self.begin_load(srgn);
        if !port.send(self.load_request(srgn)) {
            // The tag went to a WRITE BUFFER.
            self.sub_regions[srgn as usize] = SubRegionState::Invalid;
            self.kicked = true;
            return Attempt::Stop;
        }
        self.count_load();
        // The bitmap starts clean now, but writes that are already in flight may reach the device after it has put the
        // entries together, or before: their entries are not to be trusted. Linux clears the bitmap when the load is done.
        self.store.clean(self.map_of[srgn as usize]);
        port.writes_in_flight(|block, blocks| self.mark_dirty(block, blocks));
        Attempt::Sent
    }

    fn load_as_linux(&mut self, now: Ns, srgn: u32, port: &mut impl Port) -> Attempt {
        if !self.make_active(now, srgn, port) || self.sub_regions[srgn as usize] == SubRegionState::Issued {
            return Attempt::Blocked;
        }
        self.begin_load(srgn);
        if self.is_throttled() {
            self.sub_regions[srgn as usize] = SubRegionState::Invalid;
            return Attempt::Blocked;
        }
        if !port.send(self.load_request(srgn)) {
            self.sleeper = Some(Sleeper { srgn, until: now + TAG_PAUSE, attempts_left: TAG_ATTEMPTS - 1 });
            return Attempt::Asleep;
        }
        self.count_load();
        Attempt::Sent
    }

    /// Another attempt to get a tag.
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
    pub(super) fn give_up_waiting(&mut self, srgn: u32) {
        self.sub_regions[srgn as usize] = SubRegionState::Invalid;
        let region = u32::from(self.geometry.sub_region_at(srgn).region);
        if !self.work.is_inactivated(region) {
            self.work.activate_first(srgn);
        }
    }

    pub(super) fn begin_load(&mut self, srgn: u32) {
        if self.map_of[srgn as usize] == NO_MAP {
            self.give_memory(srgn);
        }
        self.valid_map[srgn as usize] = NO_MAP;
        self.sub_regions[srgn as usize] = SubRegionState::Issued;
    }

    pub(super) fn load_request(&self, srgn: u32) -> HpbRequest {
        let at = self.geometry.sub_region_at(srgn);
        HpbRequest::Load { at, bytes: self.geometry.map_bytes_of(at) }
    }

    fn count_load(&mut self) {
        self.counters.map_req_cnt += 1;
        if let Some(hcm) = &mut self.hcm {
            hcm.in_flight += 1;
        }
    }

    fn is_throttled(&self) -> bool {
        self.hcm.as_ref().is_some_and(|hcm| hcm.in_flight >= hcm.params.inflight_map_req)
    }

    /// A load has ended, with its entries or (`None`) an error.
    pub fn loaded(&mut self, at: SubRegion, entries: Option<&[u8]>) {
        if self.manager.is_some() {
            return self.managed_loaded(at, entries);
        }
        let srgn = self.geometry.index_of(at);
        if self.sub_regions[srgn as usize] != SubRegionState::Issued {
            return;
        }
        if let Some(hcm) = &mut self.hcm {
            hcm.in_flight = hcm.in_flight.saturating_sub(1);
        }
        let map = self.map_of[srgn as usize];
        match entries {
            Some(bytes) => self.store.fill(map, bytes),
            None if self.options.strict_linux => {}
            None => {
                self.counters.map_error_cnt += 1;
                self.sub_regions[srgn as usize] = SubRegionState::Invalid;
                let failures = &mut self.failures[srgn as usize];
                *failures += 1;
                if *failures <= LOAD_RETRIES {
                    self.work.activate(srgn);
                } else {
                    *failures = 0;
                }
                return self.kick();
            }
        }
        if let Some(hcm) = &mut self.hcm {
            hcm.clean(u32::from(at.region));
        }
        if self.options.strict_linux {
            self.store.clean(map);
        }
        self.failures[srgn as usize] = 0;
        // A region with a load under way is neither dropped nor made a victim, and what takes all back leaves nothing ISSUED.
        debug_assert_ne!(self.regions[usize::from(at.region)], RegionState::Inactive);
        self.sub_regions[srgn as usize] = SubRegionState::Valid;
        self.valid_map[srgn as usize] = map;
        if !self.options.strict_linux {
            self.kick();
        }
    }

    /// Makes the region of `srgn` active, if need be at the cost of another. False if that is not possible.
    fn make_active(&mut self, now: Ns, srgn: u32, port: &mut impl Port) -> bool {
        let region = u32::from(self.geometry.sub_region_at(srgn).region);
        match self.regions[region as usize] {
            RegionState::Pinned => return true,
            RegionState::Active => {
                self.list.touch(region);
                return true;
            }
            RegionState::Inactive => {}
        }
        if self.list.len() >= self.capacity {
            if let Some(hcm) = &self.hcm
                && hcm.reads_of(region) < hcm.params.eviction_thld_enter
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
        self.regions[region as usize] = RegionState::Active;
        self.list.push_back(region);
        if let Some(hcm) = &mut self.hcm {
            hcm.rewind(now, region);
        }
        true
    }

    /// The first region of the list that has no load under way, and that is read little in host control mode.
    fn victim(&self) -> Option<u32> {
        self.list.iter().find(|&region| {
            let keeps = self.hcm.as_ref().is_some_and(|hcm| hcm.reads_of(region) > hcm.params.eviction_thld_exit);
            !keeps && !self.is_loading(region)
        })
    }

    fn evict(&mut self, region: u32) {
        self.list.remove(region);
        self.purge(region);
        // On Linux the counters go on, far beyond the one value at which they would bring the region back.
        let sub_regions = self.sub_regions_of(region);
        if let Some(hcm) = self.hcm.as_mut().filter(|_| !self.options.strict_linux) {
            hcm.forget(region, sub_regions);
        }
    }

    /// Gives back what is held of a region.
    pub(super) fn purge(&mut self, region: u32) {
        self.regions[region as usize] = RegionState::Inactive;
        for srgn in self.sub_regions_of(region) {
            self.sub_regions[srgn as usize] = SubRegionState::Unused;
            self.valid_map[srgn as usize] = NO_MAP;
            let map = std::mem::replace(&mut self.map_of[srgn as usize], NO_MAP);
            if map != NO_MAP {
                self.store.release(map);
            }
        }
    }

    fn is_loading(&self, region: u32) -> bool {
        self.sub_regions_of(region).any(|s| self.sub_regions[s as usize] == SubRegionState::Issued)
    }
}
