// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of flash translation: collection, wear, the table of changes, checkpoints; and the faults of the flash.

use readpath_kit::Ns;

readpath_kit::named! {
    /// How a superblock to be collected is chosen.
    pub enum VictimPolicy {
        /// The one with the fewest references.
        Greedy = "greedy",
        /// The greatest (1 - u) * age / 2u, where u is the share referenced: the benefit is space and how long it is
        /// likely to stay free, the cost is to read and to write what is current (Kawaguchi, Nishioka and Motoda, A
        /// Flash-Memory Based File System, USENIX 1995; after Rosenblum and Ousterhout, who have 1 + u instead of 2u,
        /// because their cleaner reads whole segments). Age is counted in writes of the host since the superblock was
        /// closed.
        CostBenefit = "cost-benefit",
    }
}

/// Settings of flash translation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FtlConfig {
    /// How garbage collection chooses.
    pub victim: VictimPolicy,
    /// Erased superblocks, beyond those kept for the map, below which collection goes on beside the host's writes.
    pub collect_below: u32,
    /// Whether the last units of a full superblock of data hold a table of the logical pages in it, so that collection
    /// need not read the spare areas of all units.
    pub superblock_tables: bool,
    /// Superblocks that are emptied in one round, when space is short and victims are greedy: each map page that
    /// covers some of their slices is read once for all of them.
    pub collect_together: u32,
    /// Erased superblocks below which collection goes on while the host is idle; 0 = never.
    pub collect_idle_below: u32,
    /// How long the host has to be idle for that.
    pub idle_after: Ns,
    /// SRAM through which valid data moves, in blocks of 4 KiB.
    pub move_buffer_blocks: u32,
    /// Whether moved data is kept apart from the host's.
    pub separate_moved: bool,
    /// Logical pages remembered as recently written, to keep data that is soon overwritten apart; 0 = none.
    pub hot_table_entries: u32,
    /// Wear levelling keeps erase counts within this many percent of their mean; 0 = no levelling.
    pub wear_threshold_percent: u32,
    /// The least difference from the mean, in erases, at which wear levelling acts.
    pub wear_least_erases: u32,
    /// Changed map entries that SRAM holds, 12 bytes each.
    pub map_changes: u32,
    /// Map pages that may be written back at the same time, each in SRAM of its own.
    pub map_write_pages: u32,
    /// Superblocks for map pages, journal and checkpoints beyond those that the map fills.
    pub spare_map_superblocks: u32,
    /// Units programmed from one checkpoint to the next.
    pub checkpoint_after_units: u32,
    /// Reads of a superblock, as a mean for each of its pages, before its data is moved; 0 = never.
    pub read_disturb_limit: u32,
    /// Faults of the flash.
    pub faults: FaultConfig,
    /// Safeguards that are left out, for tests that prove their need.
    pub without: Without,
}

impl FtlConfig {
    /// Settings that suit devices of any size.
    pub const DEFAULT: FtlConfig = FtlConfig {
        victim: VictimPolicy::Greedy,
        collect_below: 4,
        collect_together: 1,
        superblock_tables: false,
        collect_idle_below: 0,
        idle_after: Ns(10_000_000),
        move_buffer_blocks: 64,
        separate_moved: true,
        hot_table_entries: 0,
        wear_threshold_percent: 5,
        wear_least_erases: 16,
        map_changes: 16_384,
        map_write_pages: 8,
        spare_map_superblocks: 6,
        checkpoint_after_units: 4096,
        read_disturb_limit: 0,
        faults: FaultConfig::NONE,
        without: Without::NOTHING,
    };
}

/// Faults of the flash, drawn from a stream of their own so that runs can be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultConfig {
    /// Programs that fail, in a million; the block is then not written again.
    pub program_failures_ppm: u32,
    /// Erases that fail, in a million; the block is then not written again.
    pub erase_failures_ppm: u32,
    /// Reads whose first sensing cannot be corrected, in a million; each is retried, once or several times.
    pub read_retries_ppm: u32,
    /// Seed of the stream.
    pub seed: u64,
}

impl FaultConfig {
    /// Flash without faults.
    pub const NONE: FaultConfig =
        FaultConfig { program_failures_ppm: 0, erase_failures_ppm: 0, read_retries_ppm: 0, seed: 0 };
}

/// Safeguards that can be left out, so that tests prove their need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Without {
    /// The journal is not read.
    pub journal: bool,
    /// Spare areas of torn units are believed.
    pub spare_check: bool,
    /// A checkpoint is put together while programs are in progress, and its anchor is programmed before its parts are
    /// in flash.
    pub checkpoint_order: bool,
    /// Copies of map pages in host memory are not renewed when the page is written back.
    pub renewed_copies: bool,
    /// Spare areas of map pages hold no changes of references, so recovery always reads the whole map.
    pub spare_refs: bool,
}

impl Without {
    /// All safeguards are in place.
    pub const NOTHING: Without = Without {
        journal: false,
        spare_check: false,
        checkpoint_order: false,
        renewed_copies: false,
        spare_refs: false,
    };
}
