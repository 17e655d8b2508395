// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables `[ftl]` and `[faults]` of a device file: reading them, and writing them as a file would say them. Every key
//! has a default; which values are possible is the device's business. It knows nothing of the rest of the file.

use super::error::ConfigFileError;
use super::section::Section;
use readpath_device::{FaultConfig, FtlConfig, VictimPolicy};
use readpath_kit::BLOCK_BYTES;
use serde::{Deserialize, Serialize};

type Result<T> = std::result::Result<T, ConfigFileError>;

const VICTIMS: [(&str, VictimPolicy); 2] =
    [("greedy", VictimPolicy::Greedy), ("cost-benefit", VictimPolicy::CostBenefit)];

const KEYS: [&str; 16] = [
    "victim",
    "collect_below",
    "collect_together",
    "superblock_tables",
    "collect_idle_below",
    "idle_after_ms",
    "move_buffer_kib",
    "separate_moved",
    "hot_table_entries",
    "wear_threshold_percent",
    "wear_least_erases",
    "map_changes",
    "map_write_pages",
    "spare_map_superblocks",
    "checkpoint_after_units",
    "read_disturb_limit",
];

/// Numbers in TOML are signed, and a file that is written has to be readable.
const MOST_SEED: u64 = i64::MAX as u64;

/// Reads both tables; what they leave out is [`FtlConfig::DEFAULT`].
pub(crate) fn ftl(root: &Section) -> Result<FtlConfig> {
    let default = FtlConfig { faults: faults(root)?, ..FtlConfig::DEFAULT };
    let Some(s) = root.optional("ftl", &KEYS)? else {
        return Ok(default);
    };
    let count = |key: &str, default: u32| if s.has(key) { s.any_u32(key) } else { Ok(default) };
    Ok(FtlConfig {
        victim: if s.has("victim") { s.word("victim", &VICTIMS)? } else { default.victim },
        collect_below: count("collect_below", default.collect_below)?,
        collect_together: count("collect_together", default.collect_together)?,
        superblock_tables: s.flag_or("superblock_tables", default.superblock_tables)?,
        collect_idle_below: count("collect_idle_below", default.collect_idle_below)?,
        idle_after: if s.has("idle_after_ms") { s.ms("idle_after_ms")? } else { default.idle_after },
        move_buffer_blocks: if s.has("move_buffer_kib") {
            s.blocks_of_kib("move_buffer_kib", u64::from(u32::MAX))?
        } else {
            default.move_buffer_blocks
        },
        separate_moved: s.flag_or("separate_moved", default.separate_moved)?,
        hot_table_entries: count("hot_table_entries", default.hot_table_entries)?,
        wear_threshold_percent: count("wear_threshold_percent", default.wear_threshold_percent)?,
        wear_least_erases: count("wear_least_erases", default.wear_least_erases)?,
        map_changes: count("map_changes", default.map_changes)?,
        map_write_pages: count("map_write_pages", default.map_write_pages)?,
        spare_map_superblocks: count("spare_map_superblocks", default.spare_map_superblocks)?,
        checkpoint_after_units: count("checkpoint_after_units", default.checkpoint_after_units)?,
        read_disturb_limit: count("read_disturb_limit", default.read_disturb_limit)?,
        ..default
    })
}

fn faults(root: &Section) -> Result<FaultConfig> {
    let keys = ["program_failures_ppm", "erase_failures_ppm", "read_retries_ppm", "seed"];
    let default = FaultConfig::NONE;
    let Some(s) = root.optional("faults", &keys)? else {
        return Ok(default);
    };
    let ppm = |key: &str, default: u32| if s.has(key) { s.any_u32(key) } else { Ok(default) };
    Ok(FaultConfig {
        program_failures_ppm: ppm("program_failures_ppm", default.program_failures_ppm)?,
        erase_failures_ppm: ppm("erase_failures_ppm", default.erase_failures_ppm)?,
        read_retries_ppm: ppm("read_retries_ppm", default.read_retries_ppm)?,
        seed: if s.has("seed") { s.integer("seed", 0..=MOST_SEED)? } else { default.seed },
    })
}

/// `[ftl]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct FtlEcho {
    victim: String,
    collect_below: u32,
    /// Documents that are older than the key come from devices that collected one at a time.
    #[serde(default = "one")]
    collect_together: u32,
    #[serde(default)]
    superblock_tables: bool,
    collect_idle_below: u32,
    idle_after_ms: f64,
    move_buffer_kib: u64,
    separate_moved: bool,
    hot_table_entries: u32,
    wear_threshold_percent: u32,
    wear_least_erases: u32,
    map_changes: u32,
    map_write_pages: u32,
    spare_map_superblocks: u32,
    checkpoint_after_units: u32,
    read_disturb_limit: u32,
}

fn one() -> u32 {
    1
}

impl FtlEcho {
    pub fn of(ftl: &FtlConfig) -> FtlEcho {
        let victim = VICTIMS.iter().find(|(_, v)| *v == ftl.victim).map_or("greedy", |(word, _)| *word);
        FtlEcho {
            victim: victim.to_owned(),
            collect_below: ftl.collect_below,
            collect_together: ftl.collect_together,
            superblock_tables: ftl.superblock_tables,
            collect_idle_below: ftl.collect_idle_below,
            idle_after_ms: ftl.idle_after.0 as f64 / 1e6,
            move_buffer_kib: u64::from(ftl.move_buffer_blocks) * u64::from(BLOCK_BYTES >> 10),
            separate_moved: ftl.separate_moved,
            hot_table_entries: ftl.hot_table_entries,
            wear_threshold_percent: ftl.wear_threshold_percent,
            wear_least_erases: ftl.wear_least_erases,
            map_changes: ftl.map_changes,
            map_write_pages: ftl.map_write_pages,
            spare_map_superblocks: ftl.spare_map_superblocks,
            checkpoint_after_units: ftl.checkpoint_after_units,
            read_disturb_limit: ftl.read_disturb_limit,
        }
    }
}

/// What a document that is older than the table means.
impl Default for FtlEcho {
    fn default() -> Self {
        FtlEcho::of(&FtlConfig::DEFAULT)
    }
}

/// `[faults]`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct FaultsEcho {
    program_failures_ppm: u32,
    erase_failures_ppm: u32,
    read_retries_ppm: u32,
    seed: u64,
}

impl FaultsEcho {
    pub fn of(faults: &FaultConfig) -> FaultsEcho {
        FaultsEcho {
            program_failures_ppm: faults.program_failures_ppm,
            erase_failures_ppm: faults.erase_failures_ppm,
            read_retries_ppm: faults.read_retries_ppm,
            seed: faults.seed,
        }
    }
}

/// What a document that is older than the table means.
impl Default for FaultsEcho {
    fn default() -> Self {
        FaultsEcho::of(&FaultConfig::NONE)
    }
}
