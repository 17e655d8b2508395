// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration of a device with the prototype of HPB (HotStorage 2017) instead of JESD220-3, and the checks that it
//! can exist.

use crate::config::error::{ConfigError, bad, bad_unit, bad_value};
use crate::hpb::entry_config::{EntryConfig, Protection};
use readpath_proto::groups::GroupUpdate;

/// The prototype: unprotected entries of 4 bytes in groups, with one dirty bit a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrototypeConfig {
    /// Whether host or device begins an update.
    pub update: GroupUpdate,
    /// Entries of a group, a power of two from 64 to 65,536; 4096 are a map page of 16 KiB, for 16 MiB of data.
    pub group_entries: u32,
    /// With [`GroupUpdate::Device`]: changed entries that the device remembers until the host has them, 1 to 4096. A
    /// change that finds no room makes its group dirty.
    pub listed_changes: u16,
}

impl PrototypeConfig {
    /// SRAM of a remembered change: its logical page, whether it was sent, and in which update.
    pub(crate) const CHANGE_BYTES: u64 = 6;

    /// Checks the settings against the rest of the configuration of HPB.
    pub(crate) fn check(&self, entries: &EntryConfig, has_v2: bool) -> Result<(), ConfigError> {
        let group_entries = self.group_entries;
        if !group_entries.is_power_of_two() {
            return bad_value("hpb.prototype.group_entries", format!("is {group_entries}; it must be a power of two"));
        }
        if has_v2 {
            return bad("hpb.v2", "is there, but the prototype is older than HPB 2.0; remove one of the two tables");
        }
        if *entries != EntryConfig::DEFAULT && entries.protection != Protection::None {
            let word = entries.protection.name();
            return bad_value(
                "hpb.entries.protection",
                format!("is {word:?}, but entries of the prototype are plain addresses; remove [hpb.entries]"),
            );
        }
        Ok(())
    }

    /// Checks the settings against the rest of the device: whether the map is in host memory, and the first unit that
    /// pins regions.
    pub(crate) fn check_device(&self, has_host_map: bool, pinned: Option<usize>) -> Result<(), ConfigError> {
        if has_host_map {
            return bad(
                "map_memory",
                "puts the map into host memory, which the prototype's host does itself; keep one",
            );
        }
        match pinned {
            Some(i) => bad_unit(i, "lus[].pinned_regions", "is not 0, but the prototype pins nothing"),
            None => Ok(()),
        }
    }
}
