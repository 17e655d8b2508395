// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices for power cuts: everything that flash translation does happens within a few hundred writes. And requests for
//! them.

use crate::{any_read_path, any_slc, give_little_room, next_event, toggle_booster};
use readpath_device::{DeviceConfig, FaultConfig, FtlConfig, VictimPolicy, Without};
use readpath_flash::{DieSched, Geometry};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};
use readpath_stack::{Payload, Stack, Typed};

/// Logical blocks of [`full_device`].
pub const FULL_DEVICE_BLOCKS: u32 = 600;

/// A device so small and so full that a few hundred writes collect garbage, write map pages back, and make checkpoints.
pub fn full_device(without: Without) -> DeviceConfig {
    let mut config = crate::device(FULL_DEVICE_BLOCKS);
    config.geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes: 1,
        blocks_per_plane: 0,
        pages_per_block: 12,
        page_bytes: 8192,
    };
    config.write_buffer_blocks = 12;
    config.map_cache_bytes = 4096;
    config.ftl = FtlConfig {
        collect_below: 3,
        move_buffer_blocks: 8,
        hot_table_entries: 16,
        map_changes: 96,
        map_write_pages: 2,
        spare_map_superblocks: 5,
        checkpoint_after_units: 40,
        without,
        ..FtlConfig::DEFAULT
    };
    give_little_room(&mut config, 1);
    config
}

/// Another of those, with or without WriteBooster, faults, and tables of superblocks.
pub fn any_full_device(seed: u64) -> DeviceConfig {
    let rng = &mut Prng::stream(seed, "device", 0);
    let mut config = full_device(Without::NOTHING);
    config.lus[0].blocks = 200 + rng.below(2000) as u32;
    config.geometry.channels = 1 + rng.below(2) as u32;
    config.geometry.dies_per_channel = 1 + rng.below(3) as u32;
    config.geometry.planes = 1 + rng.below(2) as u32;
    config.geometry.pages_per_block = 8 + rng.below(12) as u32;
    let unit = config.geometry.slices_per_unit();
    config.write_buffer_blocks = unit * (2 + rng.below(6) as u32);
    config.ftl.victim = if rng.below(2) == 0 { VictimPolicy::Greedy } else { VictimPolicy::CostBenefit };
    config.ftl.separate_moved = rng.below(2) == 0;
    config.ftl.hot_table_entries = if rng.below(2) == 0 { 0 } else { 64 };
    config.ftl.collect_together = 1 + rng.below(4) as u32;
    config.ftl.superblock_tables = rng.below(2) == 0;
    config.ftl.move_buffer_blocks = unit * (2 + rng.below(4) as u32);
    config.ftl.map_changes = unit * (16 + rng.below(30) as u32);
    config.ftl.checkpoint_after_units = 16 + rng.below(150) as u32;
    config.ftl.wear_threshold_percent = if rng.below(2) == 0 { 0 } else { 10 };
    config.ftl.wear_least_erases = 1 + rng.below(3) as u32;
    let mut more = 1 + rng.below(4) as u32;
    any_read_path(&mut config, seed);
    // From streams of their own, so that the other settings of a seed do not change.
    config.ftl.without.spare_refs = Prng::stream(seed, "spare refs", 0).below(2) == 0;
    if Prng::stream(seed, "faults", 0).below(3) == 0 {
        config.ftl.faults =
            FaultConfig { program_failures_ppm: 4_000, erase_failures_ppm: 10_000, seed, ..FaultConfig::NONE };
        // Blocks that go bad take room away.
        more += 60;
    }
    give_little_room(&mut config, more);
    if seed % 2 == 1 {
        config.ftl.idle_after = Ns(200_000);
        any_slc(&mut config, rng);
    }
    config
}

/// Keeps some requests in flight, one event after another.
pub struct Load {
    rng: Prng,
    /// Requests that may be in flight.
    depth: u32,
    /// Requests in flight.
    outstanding: u32,
    /// Requests to come.
    left: u32,
    /// Reads of a hundred requests.
    reads: u64,
}

impl Load {
    /// A load of `requests` requests, a tenth of them reads.
    pub fn new(seed: u64, requests: u32) -> Self {
        let mut rng = Prng::stream(seed, "load", 0);
        let depth = 1 + rng.below(12) as u32;
        Load { rng, depth, outstanding: 0, left: requests, reads: 10 }
    }

    /// Sets the number of reads in a hundred requests.
    #[must_use]
    pub fn with_reads(self, reads: u64) -> Self {
        Load { reads, ..self }
    }

    /// Sets the number of requests in flight.
    #[must_use]
    pub fn with_depth(self, depth: u32) -> Self {
        Load { depth, ..self }
    }

    /// Advances to the next event; false when nothing is left to do.
    pub fn step<S: DieSched, X: Payload>(&mut self, stack: &mut Stack<S, X, (), Typed>, now: &mut Ns) -> bool {
        let blocks = stack.device.config().lus[0].blocks;
        while self.outstanding < self.depth && self.left > 0 {
            let op = match self.rng.below(100) {
                0..4 => BlockOp::Flush,
                4..9 => BlockOp::WriteFua,
                9..17 => BlockOp::Discard,
                n if n < 17 + self.reads => BlockOp::Read,
                _ => BlockOp::Write,
            };
            let most = match op {
                BlockOp::Discard => 40,
                // Reads of one block are those that HPB serves.
                BlockOp::Read if self.reads > 10 => 1,
                _ => 6,
            };
            let n = if op == BlockOp::Flush { 0 } else { 1 + self.rng.below(most) as u32 };
            let range = if self.rng.below(2) == 0 { 40 } else { blocks };
            let block = if n == 0 { 0 } else { (self.rng.below(u64::from(range)) as u32).min(blocks - n) };
            stack.submit(*now, &BlockRequest { cookie: 0, lun: 0, op, block, blocks: n });
            self.outstanding += 1;
            self.left -= 1;
        }
        if stack.device.config().write_booster().is_some() && self.rng.below(100) == 0 {
            toggle_booster(stack, *now, &mut self.rng);
        }
        if stack.next_deadline() == Ns::NEVER {
            assert_eq!((self.outstanding, self.left), (0, 0), "every request ends");
            return false;
        }
        self.outstanding -= next_event(stack, now);
        true
    }

    /// Submits nothing more, and runs until all requests have ended.
    pub fn finish<S: DieSched, X: Payload>(&mut self, stack: &mut Stack<S, X, (), Typed>, now: &mut Ns) {
        self.left = 0;
        while self.outstanding > 0 {
            self.step(stack, now);
        }
    }
}

/// Reads all blocks, for a payload that checks them.
pub fn read_everything<S: DieSched, X: Payload>(stack: &mut Stack<S, X, (), Typed>, now: &mut Ns) {
    let units: Vec<u32> = stack.device.config().lus.iter().map(|lu| lu.blocks).collect();
    let mut left = 0;
    for (lun, blocks) in (0..).zip(units) {
        for block in (0..blocks).step_by(50) {
            let n = (blocks - block).min(50);
            stack.submit(*now, &BlockRequest { cookie: 0, lun, op: BlockOp::Read, block, blocks: n });
            left += 1;
        }
    }
    while left > 0 {
        assert_ne!(stack.next_deadline(), Ns::NEVER, "every read ends");
        left -= next_event(stack, now);
    }
}
