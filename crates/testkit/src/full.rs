// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices for power cuts: everything that flash translation does happens within a few hundred writes.

use crate::{any_booster, give_little_room};
use readpath_device::{DeviceConfig, FaultConfig, FtlConfig, VictimPolicy, Without};
use readpath_flash::Geometry;
use readpath_kit::{Ns, Prng};

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
    // From streams of their own, so that all else is drawn as it was before they were there.
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
        any_booster(&mut config, rng);
    }
    config
}
