// SPDX-License-Identifier: MIT OR Apache-2.0
//! HPB of JESD220-3 for one logical unit: its states, and which of two drivers fills the table of maps. It knows
//! neither tags nor commands, and has no clock: time is passed in, and [`HpbLu::next_timer`] says when the unit has
//! to be called. The drivers decide what is loaded and dropped.

mod limits;
mod long_reads;
mod notify;
mod reads;
#[cfg(test)]
mod tests;

pub(crate) use long_reads::Carries;

use super::linux::LinuxDriver;
use super::managed::ManagedDriver;
use super::table::MapTable;
use super::{Common, HostMemory, HpbCounters, LuState, Port, RegionState, SubRegionState, UnitSetup};
use crate::config::{HpbOptions, ListOrder};
use crate::ids::SubRegionId;
use crate::params::{HpbParam, HpbParams, ParamError, ParamLimits};
use crate::quirks::Quirks;
use long_reads::PreRequests;
use readpath_kit::Ns;
use readpath_proto::typed::SubRegion;

/// Longer than any read.
const NO_READ: u32 = u32::MAX;

/// The driver that manages the maps of a unit.
enum MapDriver {
    /// Linux's, in device or host control mode.
    Linux(Box<LinuxDriver>),
    /// A policy of this host, in host control mode.
    Managed(Box<ManagedDriver>),
}

/// Calls a method that both drivers have.
macro_rules! each {
    ($driver:expr, $d:ident => $what:expr) => {
        match $driver {
            MapDriver::Linux($d) => $what,
            MapDriver::Managed($d) => $what,
        }
    };
}
use each;

/// HPB of one logical unit.
pub struct HpbLu {
    common: Common,
    driver: MapDriver,
    /// Reads up to this length need no call of the driver: 1, or [`NO_READ`].
    direct_blocks: u32,
    /// Every HPB READ moves its region in Linux's list.
    order_by_use: bool,
    pre_requests: PreRequests,
    queue_depth: u32,
}

impl HpbLu {
    /// HPB of a unit found at `now`.
    ///
    /// # Errors
    /// A parameter that this unit does not accept, or too little memory.
    pub(crate) fn new(setup: &UnitSetup, options: HpbOptions, now: Ns) -> Result<Self, ParamError> {
        let UnitSetup { geometry, host_control, queue_depth, .. } = *setup;
        let limits =
            ParamLimits { host_control, entries_per_sub_region: geometry.entries_per_sub_region(), queue_depth };
        options.params.check(&limits)?;
        let (regions, per_region) = (geometry.regions(), geometry.sub_regions_per_region());
        let region_bytes = u64::from(per_region) * u64::from(geometry.sub_region_map_bytes());
        let affordable = options.max_map_bytes.map_or(u64::MAX, |b| b / region_bytes).min(u64::from(u32::MAX)) as u32;
        let active = setup.max_active.min(affordable).min(regions);
        let pinned = setup.pinned.start.min(regions)..setup.pinned.end.min(regions);
        let capacity = active.saturating_sub(pinned.len() as u32);
        let maps = active.max(pinned.len() as u32) * per_region;
        let common = Common {
            table: MapTable::new(geometry, pinned, maps),
            state: LuState::Init,
            kicked: false,
            counters: HpbCounters::default(),
            params: options.params,
            quirks: Quirks::of(Some(&options)),
            dirty_bitmap: options.dirty_bitmap,
            single_blocks: u32::from(setup.single_blocks),
            max_blocks: u32::from(setup.max_blocks),
        };
        let driver = match options.policy.filter(|_| host_control) {
            None => MapDriver::Linux(Box::new(LinuxDriver::new(&common, setup, capacity, now))),
            Some(policy) => MapDriver::Managed(Box::new(ManagedDriver::new(policy, &options, &common.table, capacity))),
        };
        let is_linux = matches!(driver, MapDriver::Linux(_));
        let mut lu = HpbLu {
            common,
            driver,
            direct_blocks: NO_READ,
            order_by_use: is_linux && options.order == ListOrder::Recency,
            pre_requests: PreRequests::new(options.long_reads, queue_depth / 2),
            queue_depth,
        };
        if let Some(bytes) = options.memory_bytes {
            lu.begin_with(bytes)?;
        }
        Ok(lu)
    }

    /// The device's HPB reset is done: INIT becomes PRESENT.
    pub(crate) fn present(&mut self) {
        if self.common.state == LuState::Init {
            self.enter(LuState::Present);
            each!(&mut self.driver, d => d.present(&mut self.common));
        }
    }

    fn enter(&mut self, state: LuState) {
        self.common.state = state;
        let asks = self.is_host_control() || self.order_by_use;
        let is_direct = state == LuState::Present && !asks && self.common.max_blocks > 0;
        self.direct_blocks = if is_direct { 1 } else { NO_READ };
    }

    /// The device never finished its HPB reset: releases all memory.
    pub(crate) fn destroy(&mut self) {
        self.enter(LuState::Failed);
        self.common.kicked = false;
        self.common.table.all_regions().for_each(|region| self.common.table.release_region(region));
        each!(&mut self.driver, d => d.destroy());
    }

    /// Before the host sleeps: PRESENT becomes SUSPEND. Maps and queued loads and drops are kept.
    pub(crate) fn suspend(&mut self) {
        if self.common.state == LuState::Present {
            self.enter(LuState::Suspend);
            self.common.kicked = false;
            each!(&mut self.driver, d => d.suspend());
        }
    }

    /// The host is awake again: SUSPEND becomes PRESENT.
    pub(crate) fn resume(&mut self, now: Ns) {
        if self.common.state == LuState::Suspend {
            self.enter(LuState::Present);
            each!(&mut self.driver, d => d.resume(&mut self.common, now));
        }
    }

    /// The controller begins a reset. PRESENT becomes RESET, and queued loads and drops are forgotten; maps are kept
    /// (Linux `ufshpb_toggle_state`).
    pub(crate) fn reset(&mut self) {
        let was_present = self.common.state == LuState::Present;
        if was_present {
            self.enter(LuState::Reset);
            self.common.kicked = false;
        }
        self.pre_requests.lost();
        each!(&mut self.driver, d => d.reset(&mut self.common, was_present));
    }

    /// The controller's reset is over: RESET becomes PRESENT.
    pub(crate) fn restored(&mut self, now: Ns) {
        if self.common.state == LuState::Reset {
            self.enter(LuState::Present);
            each!(&mut self.driver, d => d.restored(&mut self.common, now));
        }
    }

    /// The next deadline for [`HpbLu::advance`]; [`Ns::NEVER`] unless the unit is in host control mode, or its worker
    /// waits for a tag as Linux's does.
    pub(crate) fn next_timer(&self) -> Ns {
        each!(&self.driver, d => d.next_timer(&self.common))
    }

    /// Handles timers that are due. It may kick the worker.
    pub(crate) fn advance(&mut self, now: Ns) {
        each!(&mut self.driver, d => d.advance(&mut self.common, now));
    }

    /// Runs the timer of Linux's host control mode, whenever it is due.
    pub(crate) fn poll(&mut self, now: Ns) {
        if let MapDriver::Linux(linux) = &mut self.driver {
            linux.poll(&mut self.common, now);
        }
    }

    pub(crate) fn is_kicked(&self) -> bool {
        self.common.kicked
    }

    /// Lets the worker send what it has to.
    pub(crate) fn run_worker(&mut self, now: Ns, port: &mut impl Port) {
        each!(&mut self.driver, d => d.run_worker(&mut self.common, now, port));
    }

    /// A load has ended, with its entries or (`None`) an error.
    pub(crate) fn loaded(&mut self, at: SubRegion, entries: Option<&[u8]>) {
        each!(&mut self.driver, d => d.loaded(&mut self.common, at, entries));
    }

    /// Changes a parameter, as a write to its file in `hpb_params` does.
    ///
    /// # Errors
    /// As [`HpbParams::store`]; EOPNOTSUPP also for a parameter that a policy of this host does not use.
    pub(crate) fn store_param(&mut self, param: HpbParam, value: u32) -> Result<(), ParamError> {
        let limits = ParamLimits {
            host_control: self.is_host_control(),
            entries_per_sub_region: self.blocks_per_sub_region(),
            queue_depth: self.queue_depth,
        };
        if let MapDriver::Managed(managed) = &self.driver
            && !self.takes_param(param)
        {
            return Err(ParamError::NotOfPolicy { param, policy: managed.policy_name() });
        }
        self.common.params.store(param, value, &limits)?;
        if let MapDriver::Linux(linux) = &mut self.driver {
            linux.set_params(self.common.params);
        }
        Ok(())
    }

    /// Whether the unit uses a parameter: all of them in Linux's host control mode, otherwise few.
    pub fn takes_param(&self, param: HpbParam) -> bool {
        match &self.driver {
            MapDriver::Linux(linux) => linux.is_host_control() || param == HpbParam::RequeueTimeoutMs,
            MapDriver::Managed(_) => HpbParam::MANAGED.contains(&param),
        }
    }

    /// Current parameters.
    pub fn params(&self) -> &HpbParams {
        &self.common.params
    }

    /// Counters so far.
    pub fn counters(&self) -> &HpbCounters {
        &self.common.counters
    }

    /// Memory in use.
    pub fn memory(&self) -> HostMemory {
        let table = self.common.table.memory();
        let driver = each!(&self.driver, d => d.bytes(&self.common.table));
        HostMemory { table_bytes: table.table_bytes + driver, ..table }
    }

    /// Whether the unit is in host control mode.
    pub fn is_host_control(&self) -> bool {
        match &self.driver {
            MapDriver::Linux(linux) => linux.is_host_control(),
            MapDriver::Managed(_) => true,
        }
    }

    /// State of the unit.
    pub fn state(&self) -> LuState {
        self.common.state
    }

    /// State of a region.
    pub fn region_state(&self, region: u16) -> RegionState {
        self.common.table.region(region.into())
    }

    /// State of a sub-region.
    pub fn sub_region_state(&self, at: SubRegion) -> SubRegionState {
        self.common.table.sub_region(SubRegionId::named(self.common.table.geometry(), at))
    }

    /// States of all sub-regions, in the order of their addresses.
    pub fn sub_region_states(&self) -> &[SubRegionState] {
        self.common.table.sub_region_states()
    }

    /// Linux's driver, and the shared state.
    #[cfg(test)]
    pub(super) fn linux(&mut self) -> (&mut LinuxDriver, &mut Common) {
        let MapDriver::Linux(linux) = &mut self.driver else { panic!("a unit with a policy") };
        (linux, &mut self.common)
    }

    /// The managed driver, and the shared state.
    #[cfg(test)]
    pub(super) fn managed(&mut self) -> (&mut ManagedDriver, &mut Common) {
        let MapDriver::Managed(managed) = &mut self.driver else { panic!("a unit without a policy") };
        (managed, &mut self.common)
    }

    /// Blocks whose entries are in the map of a sub-region.
    pub fn blocks_per_sub_region(&self) -> u32 {
        self.common.table.geometry().entries_per_sub_region()
    }
}
