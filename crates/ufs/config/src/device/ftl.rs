// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of flash translation and of the flash's faults. Every key has a default.

use super::bounds;
use super::preset::DevicePreset;
use crate::error::Result;
use crate::keys::{Key, Keys, blocks_of_kib, flag, keys, ms, table, whole, words};
use readpath_device::{FaultConfig, FtlConfig, VictimPolicy, Without};

/// TOML numbers are signed, and a written file must be readable.
const MOST_SEED: u64 = i64::MAX as u64;

/// Reads both tables.
pub(super) fn read(k: &mut Keys<DevicePreset>) -> Result<FtlConfig> {
    let ftl = Key::new("ftl", "how flash translation does its work");
    let ftl = k.key(ftl, table(keys_of_ftl).or(FtlConfig::DEFAULT), |preset| preset.device.ftl)?;
    let faults = Key::new("faults", "faults of the flash").of("ftl.faults");
    let faults = k.key(faults, table(keys_of_faults).or(FaultConfig::NONE), |preset| preset.device.ftl.faults)?;
    Ok(FtlConfig { faults, ..ftl })
}

fn keys_of_ftl(k: &mut Keys<FtlConfig>) -> Result<FtlConfig> {
    let default = FtlConfig::DEFAULT;
    Ok(keys!(k => FtlConfig {
        /// superblock that garbage collection empties: the one with the fewest references, or with the greatest benefit
        /// for its cost and age (Kawaguchi et al., 1995)
        victim: words(VictimPolicy::WORDS).or(default.victim);
        /// garbage collection runs beside the host's writes while fewer superblocks are erased, beyond those reserved
        /// for the map. At most the number that can be erased when all logical blocks are written
        collect_below: whole(bounds("ftl.collect_below")).or(default.collect_below);
        /// superblocks that are looked up in the map together when space is short and `victim` is `greedy`: each map
        /// page that covers some of their slices is read once for all of them. SRAM for each: 4 bytes a slice
        collect_together: whole(bounds("ftl.collect_together")).or(default.collect_together);
        /// the last units of a superblock of data, at most a quarter, hold a table of its logical pages, so garbage
        /// collection need not read all its spare areas. SRAM for each stream of data: 4 bytes for each slice of a
        /// superblock
        superblock_tables: flag().or(default.superblock_tables);
        /// as `collect_below` while the host is idle, if a superblock is at least a quarter garbage; 0 = never
        collect_idle_below: whole(bounds("ftl.collect_idle_below")).or(default.collect_idle_below);
        /// time without a command after which the host counts as idle
        idle_after = "idle_after_ms": ms(bounds("ftl.idle_after")).or(default.idle_after);
        /// buffer through which valid data moves, two units or more. SRAM: as much
        move_buffer_blocks = "move_buffer_kib":
            blocks_of_kib(bounds("ftl.move_buffer_blocks")).or(default.move_buffer_blocks);
        /// moved data is kept apart from data of the host
        separate_moved: flag().or(default.separate_moved);
        /// recently written blocks that are remembered, a power of two; blocks written again meanwhile go to
        /// superblocks of their own. 0 = none. SRAM: 4 bytes each
        hot_table_entries: whole(bounds("ftl.hot_table_entries")).or(default.hot_table_entries);
        /// wear leveling keeps the erase counts of superblocks within this share of their mean; 0 = no leveling
        wear_threshold_percent: whole(bounds("ftl.wear_threshold_percent")).or(default.wear_threshold_percent);
        /// wear leveling always lets erase counts differ from the mean by so many erases
        wear_least_erases: whole(bounds("ftl.wear_least_erases")).or(default.wear_least_erases);
        /// entries of the dirty-mapping table: 16 units or more, and so few that a checkpoint fits a superblock. SRAM:
        /// 12 bytes each, 4 bytes a map page
        map_changes: whole(bounds("ftl.map_changes")).or(default.map_changes);
        /// map pages that may be in transit to flash at once. SRAM: a map page each
        map_write_pages: whole(bounds("ftl.map_write_pages")).or(default.map_write_pages);
        /// superblocks for journal, checkpoints and garbage collection of the map, beyond those that the map fills
        spare_map_superblocks: whole(bounds("ftl.spare_map_superblocks")).or(default.spare_map_superblocks);
        /// units programmed from one checkpoint to the next; limits the recovery time
        checkpoint_after_units: whole(bounds("ftl.checkpoint_after_units")).or(default.checkpoint_after_units);
        /// reads of a superblock, as a mean for each page of a die, before its data is moved; 0 = never
        read_disturb_limit: whole(bounds("ftl.read_disturb_limit")).or(default.read_disturb_limit);
        .. faults: FaultConfig::NONE, without: Without::NOTHING
    }))
}

fn keys_of_faults(k: &mut Keys<FaultConfig>) -> Result<FaultConfig> {
    let default = FaultConfig::NONE;
    Ok(keys!(k => FaultConfig {
        /// failed programs in a million. The block is not written again; its data is programmed elsewhere
        program_failures_ppm: whole(bounds("ftl.faults.program_failures_ppm")).or(default.program_failures_ppm);
        /// failed erases in a million. The block is not written again
        erase_failures_ppm: whole(bounds("ftl.faults.erase_failures_ppm")).or(default.erase_failures_ppm);
        /// reads in a million that must be repeated; each further try is as likely to fail, up to 8
        read_retries_ppm: whole(bounds("ftl.faults.read_retries_ppm")).or(default.read_retries_ppm);
        /// seed of the random stream
        seed: whole(0..=MOST_SEED).or(default.seed);
    }))
}
