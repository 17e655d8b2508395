// SPDX-License-Identifier: MIT OR Apache-2.0
//! A unit whose maps are managed by a policy of this host's own ([`crate::policy`]), in host control mode: what it asks for is
//! loaded as tags and memory allow, what it names makes room, and memory never exceeds its limit, which may change at any
//! time. Every sub-region is loaded and dropped by itself; the device hears of a region when nothing of it is left.

use super::{HpbLu, HpbRequest, LuState, NO_MAP, ParamError, Port, RegionState, SubRegionState};
use crate::policy::{ManagedPolicy, MapPolicy, Policy, Timed, Touch};
use fixedbitset::FixedBitSet;
use readpath_kit::Ns;
use readpath_proto::typed::SubRegion;
use std::collections::VecDeque;

/// Wishes that wait. More are refused: what could not be loaded for so long is asked for again by the next read.
const MOST_WANTED: usize = 64;
/// Wishes that wait when a policy is asked what to load ahead: what a read asks for does not wait behind a long list.
const MOST_AHEAD: usize = 16;

/// What a managed unit keeps beside maps and states.
pub struct Manager {
    policy: Policy,
    /// Sub-regions to be loaded, in order, and the same as bits.
    wanted: VecDeque<u32>,
    is_wanted: FixedBitSet,
    /// Regions that were dropped and not announced to the device yet.
    unannounced: FixedBitSet,
    unannounced_count: u32,
    /// Active regions, pinned ones apart.
    active: u32,
    /// Maps that may be held.
    pub(super) most_maps: u32,
    in_flight: u32,
    /// When the last load ended.
    loaded_at: Ns,
    /// Sub-regions that were dropped while their load was under way, and are not to be loaded before it ends.
    pub(super) abandoned: Vec<u32>,
}

impl Manager {
    pub fn new(policy: ManagedPolicy, regions: u32, sub_regions: u32) -> Self {
        Manager {
            policy: Policy::new(policy, sub_regions),
            wanted: VecDeque::with_capacity(MOST_WANTED),
            is_wanted: FixedBitSet::with_capacity(sub_regions as usize),
            unannounced: FixedBitSet::with_capacity(regions as usize),
            unannounced_count: 0,
            active: 0,
            most_maps: u32::MAX,
            in_flight: 0,
            loaded_at: Ns::ZERO,
            abandoned: Vec::with_capacity(64),
        }
    }

    /// Bytes of everything here.
    pub fn bytes(&self) -> u64 {
        let lists = self.wanted.capacity() * 4 + self.abandoned.capacity() * 4;
        let bits = self.is_wanted.len().div_ceil(8) + self.unannounced.len().div_ceil(8);
        (size_of::<Manager>() - size_of::<Policy>() + lists + bits) as u64 + self.policy.bytes()
    }

    /// Queues a sub-region. False if there are too many.
    pub(super) fn want(&mut self, srgn: u32) -> bool {
        if self.is_wanted.contains(srgn as usize) {
            return true;
        }
        if self.wanted.len() >= MOST_WANTED {
            return false;
        }
        self.is_wanted.insert(srgn as usize);
        self.wanted.push_back(srgn);
        true
    }

    fn next(&mut self) -> Option<u32> {
        let srgn = self.wanted.pop_front()?;
        self.is_wanted.set(srgn as usize, false);
        Some(srgn)
    }

    pub(super) fn forget_wishes(&mut self) {
        while self.next().is_some() {}
    }

    fn announce_later(&mut self, region: u32) {
        self.unannounced_count += u32::from(!self.unannounced.put(region as usize));
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
        let (mut plain, mut usable) = (false, eligible);
        let end = self.end_of(block, blocks);
        let mut at = block;
        while at < end {
            let srgn = self.geometry.index_of_lba(at);
            let slot = self.slot_of(at);
            let n = (end - at).min(self.geometry.entries_per_sub_region() - slot);
            let map = self.valid_map[srgn as usize];
            let held = map != NO_MAP;
            let clean = held && !self.store.any_dirty(map, slot, n);
            let loading = self.sub_regions[srgn as usize] == SubRegionState::Issued;
            let Some(m) = &mut self.manager else { return false };
            let wish = m.policy.read(&Touch { sub_region: srgn, held, clean, eligible, timed: blocks == 1 });
            if wish.load && !loading {
                self.kicked = true;
                self.counters.refuse_cnt += u64::from(!m.want(srgn));
            }
            plain |= wish.plain;
            usable &= clean;
            at += n;
        }
        self.ask_for_more();
        self.counters.plain_cnt += u64::from(plain && usable);
        plain
    }

    /// Takes what the policy wants loaded ahead.
    fn ask_for_more(&mut self) {
        let HpbLu { manager: Some(m), sub_regions, kicked, .. } = self else { return };
        let held = |s: u32| matches!(sub_regions[s as usize], SubRegionState::Valid | SubRegionState::Issued);
        while m.wanted.len() < MOST_AHEAD {
            let Some(srgn) = m.policy.more(held) else { return };
            m.want(srgn);
            *kicked = true;
        }
    }

    /// The system says which application comes to the foreground.
    pub(crate) fn foreground(&mut self, app: u32) {
        let Some(m) = &mut self.manager else { return };
        m.policy.foreground(app);
        if self.state == LuState::Present {
            self.ask_for_more();
        }
    }

    /// A command took so long.
    pub(crate) fn timed(&mut self, now: Ns, block_or_srgn: TimedWhat, took: Ns) {
        let (srgn, what) = match block_or_srgn {
            TimedWhat::Read { block, with_entry } => {
                (self.geometry.index_of_lba(block), if with_entry { Timed::HpbRead } else { Timed::Read })
            }
            TimedWhat::Load(at) => (self.geometry.index_of(at), Timed::Load),
        };
        if let Some(m) = &mut self.manager {
            let sent = now.saturating_sub(took);
            let beside_load = m.in_flight > 0 || m.loaded_at > sent;
            if what == Timed::Load {
                m.loaded_at = now;
            }
            m.policy.timed(srgn, what, took, beside_load);
        }
    }

    /// The worker of a managed unit: announces what was dropped, then loads what is wanted.
    pub(super) fn run_managed(&mut self, port: &mut impl Port) {
        if !self.kicked {
            return;
        }
        self.kicked = false;
        self.announce_drops(port);
        loop {
            let Some(m) = &mut self.manager else { return };
            // The end of a load starts the worker again.
            if m.in_flight >= self.options.params.inflight_map_req {
                return;
            }
            if !port.has_tag() {
                // Tags come back with replies.
                self.kicked |= !m.wanted.is_empty();
                return;
            }
            if m.wanted.is_empty() {
                // There may be more to a list than was asked for when the last read came.
                self.ask_for_more();
            }
            let Some(m) = &mut self.manager else { return };
            let Some(srgn) = m.next() else { return };
            let state = self.sub_regions[srgn as usize];
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

    fn begin_managed_load(&mut self, srgn: u32, port: &mut impl Port) -> bool {
        if !port.has_tag() {
            if let Some(m) = &mut self.manager {
                m.want(srgn);
            }
            return false;
        }
        self.activate_managed(srgn);
        self.begin_load(srgn);
        debug_assert!(self.manager.as_ref().is_none_or(|m| self.store.used() <= m.most_maps), "the limit of memory");
        // There was a tag, and nobody else has taken it.
        port.send(self.load_request(srgn));
        self.counters.map_req_cnt += 1;
        if let Some(m) = &mut self.manager {
            m.in_flight += 1;
        }
        // As in `load`: of what is being written the entry is not to be trusted.
        self.store.clean(self.map_of[srgn as usize]);
        port.writes_in_flight(|block, blocks| self.mark_dirty(block, blocks));
        true
    }

    /// Tells the device of dropped regions, as long as there are tags.
    fn announce_drops(&mut self, port: &mut impl Port) {
        let Some(m) = &mut self.manager else { return };
        while m.unannounced_count > 0 {
            let Some(region) = m.unannounced.ones().next() else { return };
            if !port.send(HpbRequest::Drop { region: region as u16 }) {
                self.kicked = true;
                return;
            }
            m.unannounced.set(region, false);
            m.unannounced_count -= 1;
            self.counters.umap_req_cnt += 1;
        }
    }

    /// Makes room for a map, if that is worth it. False if there is none.
    fn make_room_for(&mut self, srgn: u32) -> bool {
        if self.map_of[srgn as usize] != NO_MAP {
            return true;
        }
        let region = u32::from(self.geometry.sub_region_at(srgn).region);
        loop {
            let Some(m) = &self.manager else { return false };
            let new = self.regions[region as usize] == RegionState::Inactive;
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
                let region = u32::from(self.geometry.sub_region_at(victim).region);
                self.sub_regions_of(region).for_each(|s| self.drop_sub_region(s));
            } else {
                self.drop_sub_region(victim);
            }
        }
    }

    fn victim_for(&mut self, candidate: Option<u32>) -> Option<u32> {
        let HpbLu { manager: Some(m), sub_regions, .. } = self else { return None };
        let free = |s: u32| Some(s) != candidate && sub_regions[s as usize] != SubRegionState::Issued;
        m.policy.victim(candidate, free)
    }

    fn activate_managed(&mut self, srgn: u32) {
        let region = u32::from(self.geometry.sub_region_at(srgn).region);
        let Some(m) = &mut self.manager else { return };
        if self.regions[region as usize] == RegionState::Inactive {
            self.regions[region as usize] = RegionState::Active;
            m.active += 1;
            if m.unannounced.contains(region as usize) {
                m.unannounced.set(region as usize, false);
                m.unannounced_count -= 1;
            }
        }
    }

    /// Gives back the map of a sub-region at once, also if its load is under way.
    fn drop_sub_region(&mut self, srgn: u32) {
        let map = std::mem::replace(&mut self.map_of[srgn as usize], NO_MAP);
        if map == NO_MAP {
            return;
        }
        self.store.release(map);
        self.valid_map[srgn as usize] = NO_MAP;
        let state = std::mem::replace(&mut self.sub_regions[srgn as usize], SubRegionState::Unused);
        let region = u32::from(self.geometry.sub_region_at(srgn).region);
        let empty = self.sub_regions_of(region).all(|s| self.map_of[s as usize] == NO_MAP);
        let Some(m) = &mut self.manager else { return };
        if state == SubRegionState::Issued {
            m.abandoned.push(srgn);
        }
        m.policy.dropped(srgn);
        if empty && self.regions[region as usize] == RegionState::Active {
            self.regions[region as usize] = RegionState::Inactive;
            m.active -= 1;
            m.announce_later(region);
            self.kicked |= self.state == LuState::Present;
        }
    }

    /// A load has ended.
    pub(super) fn managed_loaded(&mut self, at: SubRegion, entries: Option<&[u8]>) {
        let srgn = self.geometry.index_of(at);
        self.kicked |= self.state == LuState::Present;
        let Some(m) = &mut self.manager else { return };
        m.in_flight = m.in_flight.saturating_sub(1);
        if let Some(i) = m.abandoned.iter().position(|&s| s == srgn) {
            m.abandoned.swap_remove(i);
            if self.regions[usize::from(at.region)] == RegionState::Inactive {
                // The device has just handed it out, whatever it was told before.
                m.announce_later(u32::from(at.region));
            }
            return;
        }
        if self.sub_regions[srgn as usize] != SubRegionState::Issued {
            return;
        }
        let Some(bytes) = entries else {
            // The next read asks again.
            self.counters.map_error_cnt += 1;
            self.sub_regions[srgn as usize] = SubRegionState::Invalid;
            return self.drop_managed(srgn);
        };
        let map = self.map_of[srgn as usize];
        self.store.fill(map, bytes);
        self.sub_regions[srgn as usize] = SubRegionState::Valid;
        self.valid_map[srgn as usize] = map;
        if !self.pinned.contains(&u32::from(at.region)) {
            m.policy.loaded(srgn);
        }
    }

    /// Drops a sub-region; one of a pinned region keeps its memory, and is loaded again when it is read.
    fn drop_managed(&mut self, srgn: u32) {
        let region = u32::from(self.geometry.sub_region_at(srgn).region);
        if self.pinned.contains(&region) {
            let state = std::mem::replace(&mut self.sub_regions[srgn as usize], SubRegionState::Invalid);
            if state == SubRegionState::Issued
                && let Some(m) = &mut self.manager
            {
                m.abandoned.push(srgn);
            }
            self.valid_map[srgn as usize] = NO_MAP;
        } else {
            self.drop_sub_region(srgn);
        }
    }

    /// The device would like a sub-region to be loaded again. What is not held is the host's own business, and of what was
    /// not written since the device only missed reads that went without an entry on purpose.
    pub(super) fn advised(&mut self, srgn: u32) {
        let map = self.valid_map[srgn as usize];
        if let Some(m) = &mut self.manager
            && map != NO_MAP
            && self.store.any_dirty(map, 0, self.geometry.entries_per_sub_region())
        {
            self.counters.rcmd_active_cnt += 1;
            self.kicked = true;
            self.counters.refuse_cnt += u64::from(!m.want(srgn));
        }
    }

    /// The device has lost its HPB state: no entry is worth anything.
    pub(super) fn managed_device_reset(&mut self) {
        (0..self.geometry.sub_regions()).for_each(|s| self.drop_managed(s));
        if let Some(m) = &mut self.manager {
            m.forget_wishes();
            // It does not hold any of them either.
            m.unannounced.clear();
            m.unannounced_count = 0;
        }
        self.want_pinned();
    }

    /// The controller is being reset: what was under way will not be answered.
    pub(super) fn managed_reset(&mut self) {
        for srgn in 0..self.geometry.sub_regions() {
            if self.sub_regions[srgn as usize] == SubRegionState::Issued {
                self.drop_managed(srgn);
            }
        }
        if let Some(m) = &mut self.manager {
            m.forget_wishes();
            m.commands_lost();
        }
        self.want_pinned();
    }

    /// Pinned regions are always held.
    pub(super) fn want_pinned(&mut self) {
        for region in self.pinned.clone() {
            for srgn in self.sub_regions_of(region) {
                if let Some(m) = &mut self.manager {
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
        if self.manager.is_none() {
            return Err(ParamError::CannotShrink);
        }
        let pinned: usize = self.pinned.clone().map(|r| self.sub_regions_of(r).len()).sum();
        Ok(self.memory().table_bytes + pinned as u64 * self.store.bytes_per_map())
    }

    /// Whether so many bytes are enough for [`HpbLu::limit_memory`].
    ///
    /// # Errors
    /// As there.
    pub fn check_limit(&self, bytes: u64) -> Result<(), ParamError> {
        let least = self.least_memory()?;
        let what = if self.pinned.is_empty() { "tables alone" } else { "tables and pinned regions" };
        if bytes < least { Err(ParamError::TooLittleMemory { bytes, least, what }) } else { Ok(()) }
    }

    /// Sets the most bytes that may be used. What does not fit any more is dropped at once; requests on their way go on.
    ///
    /// # Errors
    /// The unit follows Linux, which cannot shrink; or the limit has no room for the tables (and pinned regions).
    pub fn limit_memory(&mut self, bytes: u64) -> Result<(), ParamError> {
        self.check_limit(bytes)?;
        let maps = (bytes - self.memory().table_bytes) / self.store.bytes_per_map();
        let most = maps.min(u64::from(self.store.maps())) as u32;
        if let Some(m) = &mut self.manager {
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
    fn loading_victim(&self) -> Option<u32> {
        (0..self.geometry.sub_regions()).find(|&s| {
            self.map_of[s as usize] != NO_MAP
                && !self.pinned.contains(&u32::from(self.geometry.sub_region_at(s).region))
        })
    }
}

/// A command whose time was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TimedWhat {
    /// A read of one block.
    Read {
        /// The block.
        block: u32,
        /// It was an HPB READ.
        with_entry: bool,
    },
    /// An HPB READ BUFFER.
    Load(SubRegion),
}
