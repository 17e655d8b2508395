// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the host driver. Which options are compatible is not known here.

use crate::host_memory::HostMemoryLimit;
use crate::params::HpbParams;
use crate::policy::ManagedPolicy;
use readpath_kit::Ns;
use readpath_proto::groups::GroupUpdate;
use readpath_proto::hpb::Control;

readpath_kit::named! {
    /// Order in which active regions are kept and evicted.
    pub enum ListOrder {
        /// By activation, as Linux does: a region moves to the tail only when one of its sub-regions is (re)activated.
        Activation = "activation",
        /// By use: every HPB READ moves its region to the tail.
        Recency = "recency",
    }
}

readpath_kit::named! {
    /// Which entries are sent with reads of more than one block, if the device has HPB 2.0.
    pub enum LongReads {
        /// As Linux 6.1: up to bMAX_DATA_SIZE_FOR_HPB_SINGLE_CMD + 1 blocks, with the entry of the first.
        First = "first",
        /// As Linux 5.15-rc: also longer reads, up to 255 blocks, with all entries in a preceding command (HPB WRITE
        /// BUFFER 02h).
        PreRequest = "pre-request",
        /// As `pre-request` where that pays, which a managed unit measures; other reads go without entries.
        Measured = "measured",
        /// All entries in an extra header segment, for 2 to 255 blocks. An extension of this program's device.
        Ehs = "ehs",
    }
}

/// Constants of the policy [`ManagedPolicy::Exclusive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExclusiveOptions {
    /// Misses that justify a load.
    pub misses: u8,
    /// The device counts as idle this long after the last request has ended.
    pub quiet: Ns,
}

impl ExclusiveOptions {
    /// Values chosen by the study in `docs/policies.md`.
    pub const DEFAULT: ExclusiveOptions = ExclusiveOptions { misses: 2, quiet: Ns::from_ms(1) };
}

/// HPB options of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpbOptions {
    /// Order of eviction.
    pub order: ListOrder,
    /// Behave as Linux 6.1 with the I/O scheduler `none`, faults included. `docs/hpb-modes.md` lists how this host
    /// differs otherwise, and what it cannot do as Linux does.
    pub strict_linux: bool,
    /// Whether writes make entries dirty. Off only in tests that prove the need of the dirty bitmap.
    pub dirty_bitmap: bool,
    /// Upper bound on the bytes of maps held, if below what the device allows.
    pub max_map_bytes: Option<u64>,
    /// Upper bound on the bytes of everything that HPB keeps on the host: maps, dirty bitmaps and all tables.
    pub memory_bytes: Option<u64>,
    /// In host control mode: a policy of this host instead of Linux's.
    pub policy: Option<ManagedPolicy>,
    /// Constants of that policy, if it is [`ManagedPolicy::Exclusive`].
    pub exclusive: ExclusiveOptions,
    /// The control mode that the device must have; `None` accepts either, as Linux does.
    pub mode: Option<Control>,
    /// Entries of reads of more than one block; all but [`LongReads::First`] need support by the device.
    pub long_reads: LongReads,
    /// The prototype of HPB instead of JESD220-3. The device must be configured for it, with the same side beginning
    /// updates.
    pub prototype: Option<GroupUpdate>,
    /// Parameters of host control mode.
    pub params: HpbParams,
}

impl HpbOptions {
    /// As Linux, without its faults and without memory limits.
    pub const DEFAULT: HpbOptions = HpbOptions {
        order: ListOrder::Activation,
        strict_linux: false,
        dirty_bitmap: true,
        max_map_bytes: None,
        memory_bytes: None,
        policy: None,
        exclusive: ExclusiveOptions::DEFAULT,
        mode: None,
        long_reads: LongReads::First,
        prototype: None,
        params: HpbParams::LINUX,
    };
}

impl Default for HpbOptions {
    fn default() -> Self {
        HpbOptions::DEFAULT
    }
}

/// CPU that requests cost the host. The work of a core is serial; cores work side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostCores {
    /// Cores that submit. Each thread of a workload stays on one: thread *t* on core *t* mod `count`.
    pub count: u16,
    /// Clock.
    pub mhz: u32,
    /// Cycles from a thread's decision to the device's doorbell.
    pub submit_cycles: u32,
    /// Cycles on top for each block of 4 KiB that it moves: pages are pinned and mapped for the device.
    pub page_cycles: u32,
    /// Cycles to complete a request, on the core that submitted it.
    pub complete_cycles: u32,
    /// Cycles of an interrupt. A completion that comes while its core still completes others joins theirs.
    pub interrupt_cycles: u32,
}

impl HostCores {
    /// One core of 1 GHz on which requests cost nothing.
    pub const FREE: HostCores =
        HostCores { count: 1, mhz: 1000, submit_cycles: 0, page_cycles: 0, complete_cycles: 0, interrupt_cycles: 0 };

    /// Time of so many cycles, rounded up.
    pub fn time(&self, cycles: u64) -> Ns {
        Ns((cycles * 1000).div_ceil(u64::from(self.mhz)))
    }

    /// Cycles to submit a request that moves so many blocks.
    pub fn to_submit(&self, blocks: u32) -> u64 {
        u64::from(self.submit_cycles) + u64::from(self.page_cycles) * u64::from(blocks)
    }

    /// Time of a request of one block that is alone.
    pub fn time_alone(&self) -> Ns {
        self.time(self.to_submit(1)) + self.time(u64::from(self.complete_cycles) + u64::from(self.interrupt_cycles))
    }
}

readpath_kit::named! {
    /// What stands between workloads and units with zones.
    pub enum ZoneMapping {
        /// Nothing: workloads have to write at write pointers.
        None = "none",
        /// A log-structured mapper: workloads may write anywhere.
        Log = "log",
    }
}

/// How workloads use units with zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneMapper {
    /// What stands in between.
    pub mapper: ZoneMapping,
    /// Share of the zones that workloads do not see.
    pub spare_percent: u8,
    /// Free zones below which it cleans, at least 2.
    pub keep_free: u16,
}

impl ZoneMapper {
    /// Logs of the mapper, each with a zone that may be open.
    pub const LOGS: u32 = 3;

    /// Zones of so many that workloads do not see: cleaning needs some.
    pub fn spare_zones(&self, zones: u32) -> u32 {
        let share = (u64::from(zones) * u64::from(self.spare_percent)).div_ceil(100) as u32;
        share.max(ZoneMapper::LOGS + u32::from(self.keep_free) + 1)
    }

    /// Blocks that workloads see of so many zones, each of `capacity` blocks.
    pub fn logical_blocks(&self, zones: u32, capacity: u32) -> u32 {
        zones.saturating_sub(self.spare_zones(zones)) * capacity
    }
}

/// Options of the host driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostConfig {
    /// Transfer request slots of the controller (NUTRS), 2 to 64; the last is kept for queries, as Linux does.
    pub slots: u8,
    /// Longest transfer of one command in blocks of 4 KiB, 1 to 65535; longer requests are split.
    pub max_transfer_blocks: u16,
    /// HPB options; `None` disables HPB.
    pub hpb: Option<HpbOptions>,
    /// Whether WriteBooster is enabled if the device has it.
    pub write_booster: bool,
    /// Host memory for a device that asks for some.
    pub host_memory: HostMemoryLimit,
    /// CPU time of requests, for who drives the host; `None` costs none.
    pub cores: Option<HostCores>,
    /// How workloads use units with zones, for who drives the host.
    pub zones: Option<ZoneMapper>,
}

impl HostConfig {
    /// Linux's limits, 32 slots and 128 segments of a page each (up to 1 MiB if pages are contiguous), and
    /// WriteBooster.
    pub const LINUX: HostConfig = HostConfig {
        slots: 32,
        max_transfer_blocks: 128,
        hpb: None,
        write_booster: true,
        host_memory: HostMemoryLimit::LINUX,
        cores: None,
        zones: None,
    };

    /// The mapper, if there is one.
    pub fn mapper(&self) -> Option<ZoneMapper> {
        self.zones.filter(|zones| zones.mapper == ZoneMapping::Log)
    }
}
