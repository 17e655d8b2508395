// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host's side of HPB for one logical unit: which regions are active, the maps of their sub-regions, which entries
//! were written since, and what to load or drop next (Linux `drivers/ufs/core/ufshpb.c`). In device control mode the
//! device recommends; in host control mode reads are counted here, and old regions time out. The prototype of 2017 is a
//! host of its own kind, in [`prototype`]; [`mod@unit`] says which kind a unit has.
//!
//! It knows what the device recommended and what was read and written here; never what the device's map says. It knows
//! neither tags nor commands, and has no clock: time is passed in, and [`HpbLu::next_timer`] says when it wants to be
//! called.

#[cfg(test)]
mod conformance;
mod counters;
mod hcm;
mod lists;
mod long_reads;
mod managed;
mod map;
mod mode;
mod notify;
mod port;
mod prototype;
mod reads;
#[cfg(test)]
mod tests;
mod unit;
mod worker;

pub use counters::{HostMemory, HpbCounters};
pub(crate) use long_reads::Carries;
pub(crate) use managed::{TimedWhat, Went};
pub(crate) use port::{HpbRequest, Port};
pub use prototype::PrototypeError;
pub(crate) use prototype::{GroupLu, check_groups};
pub(crate) use unit::{UnitHpb, UnitSetup};

use crate::config::{HpbOptions, ListOrder};
use crate::ids::{Id, IdList, RegionId, SubRegionId};
use crate::params::{HpbParam, HpbParams, ParamError, ParamLimits};
use hcm::Hcm;
use lists::WorkLists;
use managed::Manager;
use map::{MapId, MapStore};
use mode::Mode;
use readpath_kit::Ns;
use readpath_proto::hpb::HpbGeometry;
use readpath_proto::typed::SubRegion;
use worker::Sleeper;

/// State of a region (Linux `enum HPB_RGN_STATE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionState {
    /// The host holds nothing of it.
    Inactive,
    /// The host holds or loads maps of it.
    Active,
    /// Active for ever.
    Pinned,
}

/// State of a sub-region (Linux `enum HPB_SRGN_STATE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubRegionState {
    /// No memory.
    Unused,
    /// Memory, but its entries must not be used.
    Invalid,
    /// A load is under way.
    Issued,
    /// Entries that are not dirty may be used.
    Valid,
}

/// State of the unit's HPB (Linux `enum UFSHPB_STATE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LuState {
    /// Found, but the device has not finished its HPB reset.
    Init,
    /// In use.
    Present,
    /// The host sleeps, or is about to: what the device recommends is noted, but nothing is sent for HPB.
    Suspend,
    /// The controller is being reset.
    Reset,
    /// Given up.
    Failed,
}

/// Longer than any read.
const NO_READ: u32 = u32::MAX;

/// HPB of one logical unit.
pub struct HpbLu {
    geometry: HpbGeometry,
    options: HpbOptions,
    /// Blocks that one HPB READ may cover with the entry of the first.
    single_blocks: u32,
    /// Blocks that one HPB READ may cover.
    max_blocks: u32,
    /// READ ID of the newest pre-request.
    read_id: u8,
    pre_requests_in_flight: u32,
    state: LuState,
    /// Length of reads about which nobody has to be asked, or told: 1, or [`NO_READ`].
    direct_blocks: u32,
    /// Entries of a sub-region, less one.
    slot_mask: u32,
    mode: Mode,
    regions: Vec<RegionState>,
    sub_regions: Vec<SubRegionState>,
    /// Map of each sub-region that has memory.
    map_of: Vec<MapId>,
    /// The same, but only while the sub-region is valid: what the read path looks at.
    valid_map: Vec<MapId>,
    failures: Vec<u8>,
    store: MapStore,
    /// Active regions that are not pinned, coldest first.
    list: IdList<RegionId>,
    capacity: u32,
    pinned: std::ops::Range<u32>,
    work: WorkLists,
    kicked: bool,
    /// The worker waits for a tag in the middle of its run.
    sleeper: Option<Sleeper>,
    queue_depth: u32,
    counters: HpbCounters,
}

impl HpbLu {
    /// HPB of a unit that was found at `now`.
    ///
    /// # Errors
    /// A parameter that this unit does not take.
    pub(crate) fn new(setup: &UnitSetup, options: HpbOptions, now: Ns) -> Result<Self, ParamError> {
        let UnitSetup { geometry, host_control, queue_depth, .. } = *setup;
        let limits =
            ParamLimits { host_control, entries_per_sub_region: geometry.entries_per_sub_region(), queue_depth };
        options.params.check(&limits)?;
        let regions = geometry.regions();
        let sub_regions = geometry.sub_regions();
        let region_bytes = u64::from(geometry.sub_regions_per_region()) * u64::from(geometry.sub_region_map_bytes());
        let affordable = options.max_map_bytes.map_or(u64::MAX, |b| b / region_bytes).min(u64::from(u32::MAX)) as u32;
        let active = setup.max_active.min(affordable).min(regions);
        let pinned = setup.pinned.start.min(regions)..setup.pinned.end.min(regions);
        let maps = active.max(pinned.len() as u32) * geometry.sub_regions_per_region();
        let mode = match options.policy {
            _ if !host_control => Mode::Dcm,
            None => Mode::Hcm(Box::new(Hcm::new(&geometry, options.params, !options.strict_linux, now))),
            Some(policy) => Mode::Managed(Box::new(Manager::new(policy, &options, regions, sub_regions))),
        };
        // What Linux keeps in lists is the policy's business.
        let is_managed = matches!(mode, Mode::Managed(_));
        let (listed_regions, listed_sub_regions) = if is_managed { (0, 0) } else { (regions, sub_regions) };
        let mut lu = HpbLu {
            geometry,
            options,
            single_blocks: u32::from(setup.single_blocks),
            max_blocks: u32::from(setup.max_blocks),
            read_id: 0,
            pre_requests_in_flight: 0,
            state: LuState::Init,
            direct_blocks: NO_READ,
            slot_mask: geometry.entries_per_sub_region() - 1,
            mode,
            regions: vec![RegionState::Inactive; regions as usize],
            sub_regions: vec![SubRegionState::Unused; sub_regions as usize],
            map_of: vec![MapId::NONE; sub_regions as usize],
            valid_map: vec![MapId::NONE; sub_regions as usize],
            failures: vec![0; sub_regions as usize],
            store: MapStore::new(maps, geometry.entries_per_sub_region()),
            list: IdList::new(listed_regions),
            capacity: active.saturating_sub(pinned.len() as u32),
            pinned,
            work: WorkLists::new(listed_regions, listed_sub_regions),
            kicked: false,
            sleeper: None,
            queue_depth,
            counters: HpbCounters::default(),
        };
        if let Some(bytes) = options.memory_bytes {
            lu.begin_with(bytes)?;
        }
        for region in lu.pinned_regions() {
            lu.regions[region] = RegionState::Pinned;
            for srgn in region.sub_regions(&geometry) {
                lu.give_memory(srgn);
                lu.sub_regions[srgn] = SubRegionState::Invalid;
                if !is_managed {
                    lu.work.activate.add(srgn);
                }
            }
        }
        if let Some(m) = lu.mode.manager_mut() {
            m.bound_maps(lu.store.maps());
            lu.want_pinned();
        }
        Ok(lu)
    }

    /// All that HPB takes on the host, maps and tables, is at most `bytes` from the start on.
    fn begin_with(&mut self, bytes: u64) -> Result<(), ParamError> {
        let (tables, per_map) = (self.memory().table_bytes, self.store.bytes_per_map());
        let per_region = self.geometry.sub_regions_per_region();
        let pinned = self.pinned.len() as u32 * per_region;
        let kept = tables + u64::from(pinned) * per_map;
        // Later pressure may leave nothing but tables; to begin so would be a run without HPB that is called one with
        // it.
        let (beside, what) = match (self.mode.manager(), pinned) {
            (Some(_), 0) => (per_map, "tables and the map of a sub-region"),
            (None, 0) => (u64::from(per_region) * per_map, "tables and the map of a region"),
            _ => (0, "tables and pinned regions"),
        };
        let least = kept + beside;
        if bytes < least {
            return Err(ParamError::TooLittleMemory { bytes, least, what });
        }
        let maps = (bytes - kept) / per_map;
        if let Some(m) = self.mode.manager_mut() {
            m.bound_maps((maps + u64::from(pinned)).min(u64::from(u32::MAX)) as u32);
        } else {
            // Linux counts regions.
            self.capacity = self.capacity.min((maps / u64::from(per_region)).min(u64::from(u32::MAX)) as u32);
        }
        Ok(())
    }

    /// The device's HPB reset is done: INIT becomes PRESENT.
    pub(crate) fn present(&mut self) {
        if self.state != LuState::Init {
            return;
        }
        self.enter(LuState::Present);
        self.kicked |= self.is_managed();
        // Linux starts its worker if the last pinned region is another than the first.
        if !self.options.strict_linux || self.pinned.len() != 1 {
            self.kick();
        }
    }

    fn enter(&mut self, state: LuState) {
        self.state = state;
        let asks = self.is_host_control() || self.options.order == ListOrder::Recency;
        let is_direct = state == LuState::Present && !asks && self.max_blocks > 0;
        self.direct_blocks = if is_direct { 1 } else { NO_READ };
    }

    /// The device never finished its HPB reset: everything is given back.
    pub(crate) fn destroy(&mut self) {
        self.enter(LuState::Failed);
        self.stop_waiting();
        self.cancel();
        self.work.clear();
        self.list.clear();
        for region in self.all_regions() {
            self.purge(region);
        }
    }

    /// The host is about to sleep: PRESENT becomes SUSPEND. Maps and what waits to be loaded or dropped are kept. Linux
    /// waits for a worker in the middle of its run (`cancel_work_sync`), which goes on to the end of it.
    pub(crate) fn suspend(&mut self) {
        if self.state == LuState::Present {
            self.enter(LuState::Suspend);
            self.cancel();
        }
    }

    /// The host is awake again: SUSPEND becomes PRESENT.
    pub(crate) fn resume(&mut self, now: Ns) {
        if self.state == LuState::Suspend {
            self.enter(LuState::Present);
            self.kicked |= self.is_managed();
            self.kick();
            if let Some(hcm) = self.mode.hcm_mut() {
                hcm.poll_again(now);
            }
        }
    }

    /// The controller begins a reset. PRESENT becomes RESET, and what waits to be loaded or dropped is forgotten; maps
    /// are kept (Linux `ufshpb_toggle_state`). Loads in flight will never be answered, but on Linux, which sends them
    /// again: there nothing changes for them.
    pub(crate) fn reset(&mut self) {
        let present = self.state == LuState::Present;
        self.stop_waiting();
        if present {
            self.enter(LuState::Reset);
            self.cancel();
            self.forget_work();
        }
        self.pre_requests_in_flight = 0;
        if self.is_managed() {
            return self.managed_reset();
        }
        if self.options.strict_linux {
            return;
        }
        for srgn in self.all_sub_regions() {
            if self.sub_regions[srgn] == SubRegionState::Issued {
                self.sub_regions[srgn] = SubRegionState::Invalid;
                self.load_later(srgn);
            }
        }
        if let Some(hcm) = self.mode.hcm_mut() {
            hcm.in_flight = 0;
        }
    }

    /// The controller's reset is over: RESET becomes PRESENT.
    pub(crate) fn restored(&mut self, now: Ns) {
        if self.state != LuState::Reset {
            return;
        }
        self.enter(LuState::Present);
        self.kicked |= self.is_managed();
        // On Linux nobody looks at timers any more before the next suspend and resume.
        if let Some(hcm) = self.mode.hcm_mut().filter(|_| !self.options.strict_linux) {
            hcm.poll_again(now);
        }
    }

    /// There will be no tag for a worker that waits for one.
    fn stop_waiting(&mut self) {
        if let Some(sleeper) = self.sleeper.take() {
            self.give_up_waiting(sleeper.srgn);
        }
    }

    /// The worker is not started any more, and timers stop.
    fn cancel(&mut self) {
        self.kicked = false;
        if let Some(hcm) = self.mode.hcm_mut() {
            hcm.stop_polling();
        }
    }

    /// Forgets what waits to be loaded or dropped.
    fn forget_work(&mut self) {
        while let Some(srgn) = self.work.activate.front() {
            self.work.activate.remove(srgn);
            if !self.options.strict_linux {
                self.load_later(srgn);
            }
        }
        self.work.clear();
    }

    /// What the host itself had decided to load is loaded when it is touched next.
    fn load_later(&mut self, srgn: SubRegionId) {
        let region = srgn.region(&self.geometry);
        if let Some(hcm) = self.mode.hcm_mut() {
            hcm.mark(region, srgn);
        }
    }

    /// When [`HpbLu::advance`] has something to do; [`Ns::NEVER`] unless the unit is in host control mode, or its
    /// worker waits for a tag as Linux's does.
    pub(crate) fn next_timer(&self) -> Ns {
        let poll = match &self.mode {
            Mode::Hcm(hcm) => hcm.poll_at,
            Mode::Managed(m) if self.state == LuState::Present => m.next_timer(),
            Mode::Managed(_) | Mode::Dcm => Ns::NEVER,
        };
        self.sleeper.as_ref().map_or(poll, |sleeper| poll.min(sleeper.until))
    }

    /// Handles timers that are due. The worker may have something to do afterwards.
    pub(crate) fn advance(&mut self, now: Ns) {
        if self.mode.hcm().is_some_and(|hcm| hcm.poll_at <= now) {
            self.poll(now);
        }
        self.kicked |= self.mode.manager_mut().is_some_and(|m| m.timer_is_over(now));
    }

    /// Looks for active regions whose time is up, and starts the worker (Linux `ufshpb_read_to_handler`).
    pub(crate) fn poll(&mut self, now: Ns) {
        let Some(hcm) = self.mode.hcm_mut() else { return };
        let over: Vec<RegionId> = self.list.iter().filter(|&region| hcm.is_over(now, region)).collect();
        hcm.poll_again(now);
        // Linux puts each before those found earlier.
        over.into_iter().rev().for_each(|region| self.queue_inactivation(region));
        self.kick();
    }

    /// The worker has to run if there is something in its lists.
    fn kick(&mut self) {
        self.kicked |= self.state == LuState::Present && !self.work.is_empty();
    }

    pub(crate) fn is_kicked(&self) -> bool {
        self.kicked
    }

    /// Changes a parameter, as a write to its file in `hpb_params` does.
    ///
    /// # Errors
    /// As [`HpbParams::store`]; EOPNOTSUPP also for what a policy of this host's own does not heed.
    pub(crate) fn store_param(&mut self, param: HpbParam, value: u32) -> Result<(), ParamError> {
        let limits = ParamLimits {
            host_control: self.is_host_control(),
            entries_per_sub_region: self.geometry.entries_per_sub_region(),
            queue_depth: self.queue_depth,
        };
        if let Some(policy) = self.options.policy.filter(|_| self.is_managed() && !self.takes_param(param)) {
            return Err(ParamError::NotOfPolicy { param, policy: policy.name() });
        }
        self.options.params.store(param, value, &limits)?;
        if let Some(hcm) = self.mode.hcm_mut() {
            hcm.params = self.options.params;
        }
        Ok(())
    }

    /// Whether the unit heeds a parameter: all of them in Linux's host control mode, else few.
    pub fn takes_param(&self, param: HpbParam) -> bool {
        match self.mode {
            Mode::Hcm(_) => true,
            Mode::Managed(_) => HpbParam::MANAGED.contains(&param),
            Mode::Dcm => param == HpbParam::RequeueTimeoutMs,
        }
    }

    /// Parameters as they are now.
    pub fn params(&self) -> &HpbParams {
        &self.options.params
    }

    fn give_memory(&mut self, srgn: SubRegionId) {
        self.map_of[srgn] = self.store.take().expect("as many maps as active regions can need");
    }

    fn all_regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        (0..self.geometry.regions()).map(RegionId::new)
    }

    fn all_sub_regions(&self) -> impl Iterator<Item = SubRegionId> + use<> {
        (0..self.geometry.sub_regions()).map(SubRegionId::new)
    }

    fn pinned_regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        self.pinned.clone().map(RegionId::new)
    }

    fn is_pinned(&self, region: RegionId) -> bool {
        self.pinned.contains(&region.index())
    }

    #[inline]
    fn slot_of(&self, block: u32) -> u32 {
        block & self.slot_mask
    }

    /// Counters so far.
    pub fn counters(&self) -> &HpbCounters {
        &self.counters
    }

    /// Memory in use.
    pub fn memory(&self) -> HostMemory {
        let tables = self.regions.len() + self.sub_regions.len() * (1 + 4 + 4 + 1);
        let hcm = self.mode.hcm().map_or(0, |hcm| hcm.bytes());
        let free = u64::from(self.store.maps()) * MapStore::bytes_per_free_map();
        let managed = self.mode.manager().map_or(0, |m| m.bytes() + free);
        let tables = tables as u64 + self.list.bytes() + self.work.bytes() + hcm + managed;
        HostMemory { table_bytes: tables, ..self.store.memory() }
    }

    /// Whether the host decides what is active.
    pub fn is_host_control(&self) -> bool {
        !matches!(self.mode, Mode::Dcm)
    }

    /// Whether a policy of this host's own decides.
    fn is_managed(&self) -> bool {
        matches!(self.mode, Mode::Managed(_))
    }

    /// State of the unit.
    pub fn state(&self) -> LuState {
        self.state
    }

    /// State of a region.
    pub fn region_state(&self, region: u16) -> RegionState {
        self.regions[usize::from(region)]
    }

    /// State of a sub-region.
    pub fn sub_region_state(&self, at: SubRegion) -> SubRegionState {
        self.sub_regions[SubRegionId::named(&self.geometry, at)]
    }

    /// States of all sub-regions, in the order of their addresses.
    pub fn sub_region_states(&self) -> &[SubRegionState] {
        &self.sub_regions
    }

    /// Blocks whose entries are in the map of a sub-region.
    pub fn blocks_per_sub_region(&self) -> u32 {
        self.geometry.entries_per_sub_region()
    }

    /// Reads of a region, as host control mode counts them; 0 in device control mode.
    #[cfg(test)]
    fn region_reads(&self, region: u16) -> u32 {
        self.mode.hcm().map_or(0, |hcm| hcm.reads_of(region.into()))
    }
}
