// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit whose maps are managed by a policy of this host's own ([`crate::policy`]), in host control mode: what it asks
//! for is loaded as tags and memory allow, what it names makes room, and memory never exceeds its limit, which may
//! change at any time. Every sub-region is loaded and dropped by itself; the device hears of a region when nothing of
//! it is left.

mod beside;
mod pays;
mod written;

use super::{HpbLu, HpbRequest, LuState, MapId, Mode, Port, RegionState, SubRegionState};
use crate::config::{HpbOptions, LongReads};
use crate::ids::{Id, RegionId, SubRegionId};
use crate::params::ParamError;
use crate::policy::{Age, ManagedPolicy, MapPolicy, Policy, Timed, Touch};
use beside::{Beside, Idle};
use fixedbitset::FixedBitSet;
use readpath_kit::Ns;
use readpath_proto::typed::SubRegion;
use std::collections::VecDeque;

pub(crate) use pays::Went;

/// Wishes that wait. More are refused: what could not be loaded for so long is asked for again by the next read.
const MOST_WANTED: usize = 64;

/// Host memory that a managed unit takes for counters and constants of its own and of its policy, whichever that is.
/// Stated, not measured: results must not depend on how a compiler lays out structs.
const STATE_BYTES: u64 = 824;

/// What a managed unit keeps beside maps and states.
pub(super) struct Manager {
    policy: Policy,
    /// Sub-regions to be loaded, in order, and the same as bits.
    wanted: VecDeque<SubRegionId>,
    is_wanted: FixedBitSet,
    /// There if the policy or long reads ask for it.
    beside: Option<Box<Beside>>,
    /// Regions that were dropped and not announced to the device yet.
    unannounced: FixedBitSet,
    unannounced_count: u32,
    /// Active regions, pinned ones apart.
    active: u32,
    most_maps: u32,
    in_flight: u32,
    loaded_at: Ns,
    /// Sub-regions that were dropped while their load was under way, and are not to be loaded before it ends.
    abandoned: Vec<SubRegionId>,
}

impl Manager {
    pub(super) fn new(policy: ManagedPolicy, options: &HpbOptions, regions: u32, sub_regions: u32) -> Self {
        let measures = options.long_reads == LongReads::Measured;
        let asks = measures || policy == ManagedPolicy::Exclusive;
        let beside = asks.then(|| Box::new(Beside::new(sub_regions, measures, options.exclusive.quiet)));
        Manager {
            policy: Policy::new(policy, options, sub_regions),
            wanted: VecDeque::with_capacity(MOST_WANTED),
            is_wanted: FixedBitSet::with_capacity(sub_regions as usize),
            beside,
            unannounced: FixedBitSet::with_capacity(regions as usize),
            unannounced_count: 0,
            active: 0,
            most_maps: u32::MAX,
            in_flight: 0,
            loaded_at: Ns::ZERO,
            abandoned: Vec::with_capacity(64),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let lists = self.wanted.capacity() * 4 + self.abandoned.capacity() * 4;
        let bits = self.is_wanted.len().div_ceil(8) + self.unannounced.len().div_ceil(8);
        let beside = self.beside.as_ref().map_or(0, |b| b.bytes());
        STATE_BYTES + (lists + bits) as u64 + beside + self.policy.bytes()
    }

    /// No more maps than that are held, nor than before.
    pub(super) fn bound_maps(&mut self, most: u32) {
        self.most_maps = self.most_maps.min(most);
    }

    /// Queues a sub-region. False if there are too many.
    pub(super) fn want(&mut self, srgn: SubRegionId) -> bool {
        if self.is_wanted.contains(srgn.row()) {
            return true;
        }
        if self.wanted.len() >= MOST_WANTED {
            return false;
        }
        self.is_wanted.insert(srgn.row());
        self.wanted.push_back(srgn);
        true
    }

    fn next(&mut self) -> Option<SubRegionId> {
        let srgn = self.wanted.pop_front()?;
        self.is_wanted.set(srgn.row(), false);
        Some(srgn)
    }

    pub(super) fn forget_wishes(&mut self) {
        while self.next().is_some() {}
        self.forget_later();
    }

    pub(super) fn note_written(&mut self, block: u32, blocks: u32) {
        if let Some(beside) = &mut self.beside {
            beside.note_written(block, blocks);
        }
    }

    pub(super) fn next_timer(&self) -> Ns {
        self.beside.as_ref().map_or(Ns::NEVER, |b| b.next_timer())
    }

    fn announce_later(&mut self, region: RegionId) {
        self.unannounced_count += u32::from(!self.unannounced.put(region.row()));
    }

    /// A controller's reset has ended all commands.
    fn commands_lost(&mut self) {
        self.in_flight = 0;
        self.abandoned.clear();
    }
}

impl HpbLu {
    /// Asks the policy about a read that is about to be sent. Whether it is to go without an entry.
    #[inline(never)]
    pub(super) fn asks_policy(&mut self, block: u32, blocks: u32) -> bool {
        if self.state != LuState::Present || blocks == 0 {
            return false;
        }
        let eligible = blocks <= self.max_blocks;
        let mut usable = eligible;
        let mut oldest = None;
        let end = self.end_of(block, blocks);
        let mut at = block;
        while at < end {
            let srgn = SubRegionId::of_block(&self.geometry, at);
            let slot = self.slot_of(at);
            let n = (end - at).min(self.geometry.entries_per_sub_region() - slot);
            let map = self.valid_map[srgn];
            let held = map != MapId::NONE;
            let clean = held && !self.store.any_dirty(map, slot, n);
            let loading = self.sub_regions[srgn] == SubRegionState::Issued;
            let Some(m) = self.mode.manager_mut() else { return false };
            let age = m.beside.as_ref().map(|b| b.age(srgn, at, n));
            oldest = oldest.max(age.flatten());
            let recent = age.is_some_and(|age| age.is_none_or(|age| age == Age::IN_WINDOW));
            let wanted = m.policy.read(&Touch { sub_region: srgn, held, clean, eligible, timed: blocks == 1, recent });
            if wanted && !loading {
                self.kicked = true;
                self.counters.refuse_cnt += u64::from(!m.want(srgn));
            }
            usable &= clean;
            at += n;
        }
        let behind = usable && blocks > self.single_blocks;
        let plain = behind && self.mode.manager_mut().is_some_and(|m| m.avoids_pre_request(oldest));
        self.note_way(block, end, !plain && usable, oldest);
        self.counters.plain_cnt += u64::from(plain);
        plain
    }

    /// A read of the blocks up to `end` goes with entries or without, and the device needed its oldest map so long ago.
    fn note_way(&mut self, block: u32, end: u32, with_entries: bool, oldest: Option<Age>) {
        let Some(m) = self.mode.manager_mut().filter(|m| m.beside.is_some()) else { return };
        if with_entries {
            let behind = end - block > self.single_blocks;
            return m.goes(if behind { Went::PreRequest } else { Went::Other });
        }
        m.goes(oldest.map_or(Went::Other, Went::Plain));
        let mut at = block;
        while at < end {
            let srgn = SubRegionId::of_block(&self.geometry, at);
            let n = (end - at).min(self.geometry.entries_per_sub_region() - (at & self.slot_mask));
            self.kicked |= m.device_reads(srgn, at, n);
            at += n;
        }
    }

    /// A command took so long, with so many others in flight or waiting at its end.
    pub(crate) fn timed(&mut self, now: Ns, block_or_srgn: TimedWhat, took: Ns, others: u32) {
        let (srgn, what) = match block_or_srgn {
            TimedWhat::Read { block, blocks, with_entry, went } => {
                if let Some(beside) = self.mode.manager_mut().and_then(|m| m.beside.as_mut()) {
                    beside.timed(went, blocks, took, others);
                }
                // A device that answers for a block that it does not have says nothing of its maps.
                if blocks > 1 || block >= self.geometry.logical_blocks() {
                    return;
                }
                (SubRegionId::of_block(&self.geometry, block), if with_entry { Timed::HpbRead } else { Timed::Read })
            }
            TimedWhat::Load(at) => (SubRegionId::named(&self.geometry, at), Timed::Load),
        };
        if let Some(m) = self.mode.manager_mut() {
            let sent = now.saturating_sub(took);
            let beside_load = m.in_flight > 0 || m.loaded_at > sent;
            if what == Timed::Load {
                m.loaded_at = now;
            }
            m.policy.timed(srgn, what, took, beside_load);
        }
    }

    /// The worker of a managed unit: announces what was dropped, then loads what is wanted.
    pub(super) fn run_managed(&mut self, now: Ns, port: &mut impl Port) {
        if !self.kicked {
            return;
        }
        self.kicked = false;
        self.announce_drops(port);
        loop {
            let Some(m) = self.mode.manager_mut() else { return };
            m.sees_others(port.in_flight());
            // The end of a load starts the worker again.
            if m.in_flight >= self.options.params.inflight_map_req {
                return;
            }
            if !port.has_tag() {
                // Tags come back with replies.
                self.kicked |= !m.wanted.is_empty();
                return;
            }
            let srgn = match m.next() {
                Some(srgn) => srgn,
                None => match m.when_idle(now) {
                    Idle::Load(srgn) => srgn,
                    Idle::Busy => return self.kicked = true,
                    Idle::Nothing => return,
                },
            };
            let state = self.sub_regions[srgn];
            if state == SubRegionState::Issued {
                continue;
            }
            if m.abandoned.contains(&srgn) || !self.make_room_for(srgn) {
                self.counters.refuse_cnt += 1;
                continue;
            }
            // The device has to hear of the old region before it hands out the new one.
            self.announce_drops(port);
            if !self.begin_managed_load(srgn, port) {
                self.kicked = true;
                return;
            }
        }
    }

    fn begin_managed_load(&mut self, srgn: SubRegionId, port: &mut impl Port) -> bool {
        if !port.has_tag() {
            if let Some(m) = self.mode.manager_mut() {
                m.want(srgn);
            }
            return false;
        }
        self.activate_managed(srgn);
        self.begin_load(srgn);
        debug_assert!(self.mode.manager().is_none_or(|m| self.store.used() <= m.most_maps), "the limit of memory");
        // There was a tag, and nobody else has taken it.
        port.send(self.load_request(srgn));
        self.counters.map_req_cnt += 1;
        if let Some(m) = self.mode.manager_mut() {
            m.in_flight += 1;
        }
        // As in `load`: of what is being written the entry is not to be trusted.
        self.store.clean(self.map_of[srgn]);
        port.writes_in_flight(|block, blocks| self.mark_dirty(block, blocks));
        true
    }

    /// Tells the device of dropped regions, as long as there are tags.
    fn announce_drops(&mut self, port: &mut impl Port) {
        let Some(m) = self.mode.manager_mut() else { return };
        while m.unannounced_count > 0 {
            let Some(region) = m.unannounced.ones().next() else { return };
            if !port.send(HpbRequest::Drop { region: RegionId::new(region as u32).number() }) {
                self.kicked = true;
                return;
            }
            m.unannounced.set(region, false);
            m.unannounced_count -= 1;
            self.counters.umap_req_cnt += 1;
        }
    }

    /// Makes room for a map, if that is worth it. False if there is none.
    fn make_room_for(&mut self, srgn: SubRegionId) -> bool {
        if self.map_of[srgn] != MapId::NONE {
            return true;
        }
        let region = srgn.region(&self.geometry);
        loop {
            let Some(m) = self.mode.manager() else { return false };
            let new = self.regions[region] == RegionState::Inactive;
            let too_many_regions = new && m.active >= self.capacity;
            if self.store.used() < m.most_maps && !too_many_regions {
                return true;
            }
            if m.most_maps == 0 {
                return false;
            }
            let Some(victim) = self.victim_for(Some(srgn)) else { return false };
            self.counters.evict_cnt += 1;
            if too_many_regions {
                let region = victim.region(&self.geometry);
                region.sub_regions(&self.geometry).for_each(|s| self.drop_sub_region(s));
            } else {
                self.drop_sub_region(victim);
            }
        }
    }

    fn victim_for(&mut self, candidate: Option<SubRegionId>) -> Option<SubRegionId> {
        let HpbLu { mode: Mode::Managed(m), sub_regions, .. } = self else { return None };
        let free = |s: SubRegionId| Some(s) != candidate && sub_regions[s] != SubRegionState::Issued;
        m.policy.victim(candidate, free)
    }

    fn activate_managed(&mut self, srgn: SubRegionId) {
        let region = srgn.region(&self.geometry);
        let Some(m) = self.mode.manager_mut() else { return };
        if self.regions[region] == RegionState::Inactive {
            self.regions[region] = RegionState::Active;
            m.active += 1;
            if m.unannounced.contains(region.row()) {
                m.unannounced.set(region.row(), false);
                m.unannounced_count -= 1;
            }
        }
    }

    /// Gives back the map of a sub-region at once, also if its load is under way.
    fn drop_sub_region(&mut self, srgn: SubRegionId) {
        let map = std::mem::replace(&mut self.map_of[srgn], MapId::NONE);
        if map == MapId::NONE {
            return;
        }
        self.store.release(map);
        self.valid_map[srgn] = MapId::NONE;
        let state = std::mem::replace(&mut self.sub_regions[srgn], SubRegionState::Unused);
        let region = srgn.region(&self.geometry);
        let empty = region.sub_regions(&self.geometry).all(|s| self.map_of[s] == MapId::NONE);
        let Some(m) = self.mode.manager_mut() else { return };
        if state == SubRegionState::Issued {
            m.abandoned.push(srgn);
        }
        m.policy.dropped(srgn);
        if empty && self.regions[region] == RegionState::Active {
            self.regions[region] = RegionState::Inactive;
            m.active -= 1;
            m.announce_later(region);
            self.kicked |= self.state == LuState::Present;
        }
    }

    pub(super) fn managed_loaded(&mut self, at: SubRegion, entries: Option<&[u8]>) {
        let srgn = SubRegionId::named(&self.geometry, at);
        let is_pinned = self.is_pinned(at.region.into());
        self.kicked |= self.state == LuState::Present;
        let Some(m) = self.mode.manager_mut() else { return };
        m.in_flight = m.in_flight.saturating_sub(1);
        if let Some(i) = m.abandoned.iter().position(|&s| s == srgn) {
            m.abandoned.swap_remove(i);
            if self.regions[RegionId::from(at.region)] == RegionState::Inactive {
                // The device has just handed it out, whatever it was told before.
                m.announce_later(RegionId::from(at.region));
            }
            return;
        }
        if self.sub_regions[srgn] != SubRegionState::Issued {
            return;
        }
        let Some(bytes) = entries else {
            // The next read asks again.
            self.counters.map_error_cnt += 1;
            self.sub_regions[srgn] = SubRegionState::Invalid;
            return self.drop_managed(srgn);
        };
        let map = self.map_of[srgn];
        self.store.fill(map, bytes);
        self.sub_regions[srgn] = SubRegionState::Valid;
        self.valid_map[srgn] = map;
        if !is_pinned {
            m.policy.loaded(srgn);
        }
    }

    /// Drops a sub-region; one of a pinned region keeps its memory, and is loaded again when it is read.
    fn drop_managed(&mut self, srgn: SubRegionId) {
        let region = srgn.region(&self.geometry);
        if self.is_pinned(region) {
            let state = std::mem::replace(&mut self.sub_regions[srgn], SubRegionState::Invalid);
            if state == SubRegionState::Issued
                && let Some(m) = self.mode.manager_mut()
            {
                m.abandoned.push(srgn);
            }
            self.valid_map[srgn] = MapId::NONE;
        } else {
            self.drop_sub_region(srgn);
        }
    }

    /// The device would like a sub-region to be loaded again. What is not held is the host's own business, and of what
    /// was not written since the device only missed reads that went without an entry on purpose.
    pub(super) fn advised(&mut self, srgn: SubRegionId) {
        let map = self.valid_map[srgn];
        if let Some(m) = self.mode.manager_mut()
            && map != MapId::NONE
            && m.policy.heeds_advice()
            && self.store.any_dirty(map, 0, self.geometry.entries_per_sub_region())
        {
            self.counters.rcmd_active_cnt += 1;
            self.kicked = true;
            self.counters.refuse_cnt += u64::from(!m.want(srgn));
        }
    }

    /// The device has lost its HPB state: no entry is worth anything.
    pub(super) fn managed_device_reset(&mut self) {
        self.all_sub_regions().for_each(|s| self.drop_managed(s));
        if let Some(m) = self.mode.manager_mut() {
            m.forget_wishes();
            // It does not hold any of them either.
            m.unannounced.clear();
            m.unannounced_count = 0;
        }
        self.want_pinned();
    }

    /// The controller is being reset: what was under way will not be answered.
    pub(super) fn managed_reset(&mut self) {
        for srgn in self.all_sub_regions() {
            if self.sub_regions[srgn] == SubRegionState::Issued {
                self.drop_managed(srgn);
            }
        }
        if let Some(m) = self.mode.manager_mut() {
            m.forget_wishes();
            m.commands_lost();
        }
        self.want_pinned();
    }

    /// Pinned regions are always held.
    pub(super) fn want_pinned(&mut self) {
        for region in self.pinned_regions() {
            for srgn in region.sub_regions(&self.geometry) {
                if let Some(m) = self.mode.manager_mut() {
                    m.want(srgn);
                }
            }
        }
    }

    /// The least limit of memory that is possible: tables and pinned regions.
    ///
    /// # Errors
    /// The unit follows Linux, which cannot shrink.
    pub fn least_memory(&self) -> Result<u64, ParamError> {
        if !self.is_managed() {
            return Err(ParamError::CannotShrink);
        }
        let pinned: usize = self.pinned_regions().map(|r| r.sub_regions(&self.geometry).count()).sum();
        Ok(self.memory().table_bytes + pinned as u64 * self.store.bytes_per_map())
    }

    /// Whether so many bytes are enough for [`crate::Driver::limit_memory`].
    pub fn check_limit(&self, bytes: u64) -> Result<(), ParamError> {
        let least = self.least_memory()?;
        let what = if self.pinned.is_empty() { "tables alone" } else { "tables and pinned regions" };
        if bytes < least { Err(ParamError::TooLittleMemory { bytes, least, what }) } else { Ok(()) }
    }

    /// Sets the most bytes that may be used. What does not fit any more is dropped at once; requests on their way go
    /// on.
    ///
    /// # Errors
    /// The unit follows Linux, which cannot shrink; or the limit has no room for the tables (and pinned regions).
    pub(crate) fn limit_memory(&mut self, bytes: u64) -> Result<(), ParamError> {
        self.check_limit(bytes)?;
        let maps = (bytes - self.memory().table_bytes) / self.store.bytes_per_map();
        let most = maps.min(u64::from(self.store.maps())) as u32;
        if let Some(m) = self.mode.manager_mut() {
            m.most_maps = most;
        }
        while self.store.used() > most {
            let victim = self.victim_for(None).or_else(|| self.loading_victim());
            let Some(victim) = victim else { break };
            self.drop_sub_region(victim);
            self.counters.shrink_cnt += 1;
        }
        Ok(())
    }

    /// A sub-region whose load is under way, if nothing else is left.
    fn loading_victim(&self) -> Option<SubRegionId> {
        self.all_sub_regions().find(|&s| self.map_of[s] != MapId::NONE && !self.is_pinned(s.region(&self.geometry)))
    }
}

/// A command whose time was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimedWhat {
    /// A read.
    Read {
        block: u32,
        blocks: u32,
        went: Went,
        /// It was an HPB READ.
        with_entry: bool,
    },
    /// An HPB READ BUFFER.
    Load(SubRegion),
}

#[cfg(test)]
mod tests;
