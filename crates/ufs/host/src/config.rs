// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be chosen about the host driver. Which choices go together is not known here.

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
    /// Which entries go with reads of more than one block, if the device has HPB 2.0.
    pub enum LongReads {
        /// As Linux 6.1: up to bMAX_DATA_SIZE_FOR_HPB_SINGLE_CMD + 1 blocks, with the entry of the first.
        First = "first",
        /// As Linux 5.15-rc did: longer ones, up to 255 blocks, too, with all entries in a command before (HPB WRITE
        /// BUFFER 02h).
        PreRequest = "pre-request",
        /// As `pre-request` where that pays, which a managed unit measures; elsewhere without entries.
        Measured = "measured",
        /// All entries in an extra header segment, for 2 to 255 blocks. An extension of this program's device.
        Ehs = "ehs",
    }
}

/// Constants of the policy [`ManagedPolicy::Exclusive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExclusiveOptions {
    /// Misses that are worth a load.
    pub misses: u8,
    /// The device counts as idle so long after the last request has ended.
    pub quiet: Ns,
}

impl ExclusiveOptions {
    /// What was chosen: see the study in `docs/policies.md`.
    pub const DEFAULT: ExclusiveOptions = ExclusiveOptions { misses: 2, quiet: Ns::from_ms(1) };
}

/// HPB of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpbOptions {
    /// Order of eviction.
    pub order: ListOrder,
    /// Do as Linux 6.1 with the I/O scheduler `none`, faults included. `docs/hpb-modes.md` lists what this host does
    /// otherwise, and what it cannot do as Linux does.
    pub strict_linux: bool,
    /// Whether writes make entries dirty. Off only in tests that show what the dirty bitmap is good for.
    pub dirty_bitmap: bool,
    /// Upper bound on the bytes of maps held, if below what the device allows.
    pub max_map_bytes: Option<u64>,
    /// Upper bound on the bytes of everything that HPB keeps on the host: maps, dirty bitmaps and all tables.
    pub memory_bytes: Option<u64>,
    /// In host control mode: a policy of this host's own in the place of Linux's.
    pub policy: Option<ManagedPolicy>,
    /// Constants of that policy, if it is [`ManagedPolicy::Exclusive`].
    pub exclusive: ExclusiveOptions,
    /// The control mode for which the device has to be configured; `None` takes either, as Linux does.
    pub mode: Option<Control>,
    /// Entries of reads of more than one block; all but [`LongReads::First`] need a device that takes them.
    pub long_reads: LongReads,
    /// The prototype of HPB in the place of that of JESD220-3; the device has to be one. Who begins an update is a
    /// setting of the device, which has to be configured for it.
    pub prototype: Option<GroupUpdate>,
    /// Parameters of host control mode.
    pub params: HpbParams,
}

impl HpbOptions {
    /// As Linux, without its faults and without bounds of memory.
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

/// The host driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostConfig {
    /// Transfer request slots of the controller (NUTRS), 2 to 64; the last is kept for queries, as Linux does.
    pub slots: u8,
    /// Longest transfer of one command in blocks of 4 KiB, 1 to 65535; longer requests are split.
    pub max_transfer_blocks: u16,
    /// HPB, if it is to be used.
    pub hpb: Option<HpbOptions>,
    /// Whether WriteBooster is switched on if the device has it.
    pub write_booster: bool,
    /// Memory for a device that asks for some of the host's.
    pub host_memory: HostMemoryLimit,
}

impl HostConfig {
    /// Linux's limits, 32 slots and 128 segments of a page each (up to 1 MiB if pages lie in a row), and WriteBooster.
    pub const LINUX: HostConfig = HostConfig {
        slots: 32,
        max_transfer_blocks: 128,
        hpb: None,
        write_booster: true,
        host_memory: HostMemoryLimit::LINUX,
    };
}
