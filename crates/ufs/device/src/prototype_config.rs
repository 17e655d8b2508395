// SPDX-License-Identifier: MIT OR Apache-2.0
//! What makes a device one of the prototype of HPB (HotStorage 2017) instead of one of JESD220-3, and the checks that it can
//! exist. It knows nothing of commands.

use crate::config::{ConfigError, DeviceConfig, HpbConfig, bad};
use crate::entry_config::{EntryConfig, Protection};
use readpath_proto::groups::{GroupEntry, GroupUpdate};

/// The prototype: entries of 4 bytes that nothing protects, groups of them, one dirty bit a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrototypeConfig {
    /// Who begins an update.
    pub update: GroupUpdate,
    /// Entries of a group, a power of two from 64 to 65,536; 4096 are a map page of 16 KiB, and 16 MiB of data.
    pub group_entries: u32,
    /// With [`GroupUpdate::Device`]: changed entries that the device remembers until the host has them, 1 to 4096. A change
    /// for which there is no room makes its group dirty.
    pub listed_changes: u16,
}

impl PrototypeConfig {
    /// SRAM of a remembered change: its logical page, whether it was sent, and in which update.
    pub const CHANGE_BYTES: u64 = 6;
}

impl DeviceConfig {
    /// The prototype that this device is, if it is one.
    pub fn prototype(&self) -> Option<&PrototypeConfig> {
        self.hpb.as_ref()?.prototype.as_ref()
    }

    /// HPB of JESD220-3, if the device has it: what its descriptors speak of.
    pub fn standard_hpb(&self) -> Option<&HpbConfig> {
        self.hpb.as_ref().filter(|hpb| hpb.prototype.is_none())
    }

    pub(crate) fn check_prototype(&self, hpb: &HpbConfig, prototype: &PrototypeConfig) -> Result<(), ConfigError> {
        let entries = prototype.group_entries;
        if !entries.is_power_of_two() || !(64..=65_536).contains(&entries) {
            return bad(
                "hpb.prototype.group_entries",
                format!("is {entries}; it must be a power of two, 64 to 65,536"),
            );
        }
        if !(1..=4096).contains(&prototype.listed_changes) {
            return bad(
                "hpb.prototype.listed_changes",
                format!("is {}; it must be 1 to 4096", prototype.listed_changes),
            );
        }
        if hpb.v2.is_some() {
            return bad("hpb.v2", "is there, but the prototype is older than HPB 2.0; remove one of the two tables");
        }
        if hpb.entries != EntryConfig::DEFAULT && hpb.entries.protection != Protection::None {
            let word = hpb.entries.protection.name();
            return bad(
                "hpb.entries.protection",
                format!("is {word:?}, but entries of the prototype are plain addresses; remove [hpb.entries]"),
            );
        }
        if self.host_map().is_some() {
            return bad(
                "map_memory",
                "puts the map into host memory, which the prototype's host does itself; keep one",
            );
        }
        match self.lus.iter().position(|lu| lu.hpb && lu.pinned_regions > 0) {
            Some(i) => bad(format!("lus[{i}].pinned_regions"), "is not 0, but the prototype pins nothing"),
            None => Ok(()),
        }
    }

    /// Bytes of an entry as the host holds it.
    pub(crate) fn entry_bytes(&self) -> usize {
        if self.prototype().is_some() { GroupEntry::BYTES } else { readpath_proto::typed::HpbEntry::BYTES }
    }
}
