// SPDX-License-Identifier: MIT OR Apache-2.0
//! HPB as part of a device's configuration, what HPB 2.0 adds or what its prototype of 2017 is instead, and whether the
//! device can have it.

use super::DeviceConfig;
use super::entries::{EntryConfig, Protection, Verification};
use super::error::{ConfigError, bad, bad_unit, bad_value};
use readpath_kit::Ns;
use readpath_proto::groups::GroupUpdate;
use readpath_proto::hpb::Control;
use readpath_proto::typed::HpbEntry;

/// Bits of an address in an entry of HPB 2.0, which leave room for the length of a run.
pub(crate) const ADDRESS_BITS: u32 = 28;

/// HPB of the device (JESD220-3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpbConfig {
    /// bHPBControl: host control mode or device control mode.
    pub control: Control,
    /// bHPBRegionSize: a region is 512 << this bytes.
    pub region_size: u8,
    /// bHPBSubRegionSize: a sub-region is 512 << this bytes.
    pub sub_region_size: u8,
    /// wDeviceMaxActiveHPBRegions.
    pub max_active_regions: u16,
    /// Misses of a sub-region before it is recommended.
    pub activate_after: u8,
    /// Misses of a loaded sub-region before it is recommended again.
    pub refresh_after: u8,
    /// At the limit of active regions: reads of an inactive sub-region before its region replaces one that is read
    /// little. Small values adapt fast, but load maps in vain when reads are spread evenly.
    pub replace_after: u8,
    /// A recommendation that the host did not follow is repeated after this time, if the sub-region is still read.
    pub repeat_after: Ns,
    /// Entries that share one bit of the freshness table; a power of two.
    pub freshness_chunk_entries: u32,
    /// HPB READ BUFFER commands served at the same time, at most 64; further ones wait in order of arrival. Each has
    /// SRAM for the map pages and the entries of a sub-region ([`DeviceConfig::read_buffer_bytes`]).
    pub read_buffers: u8,
    /// Whether entries are checked.
    pub verification: Verification,
    /// How entries are protected.
    pub entries: EntryConfig,
    /// What HPB 2.0 adds; `None` for HPB 1.0.
    pub v2: Option<Hpb2Config>,
    /// The prototype of HPB instead of JESD220-3. Of the fields before this one only `read_buffers` and
    /// `verification` then have an effect.
    pub prototype: Option<PrototypeConfig>,
}

/// Most entries that one command carries: CDB byte 14 of HPB READ counts up to 255 blocks.
pub const MOST_ENTRIES: u8 = u8::MAX;

/// HPB 2.0 (JESD220-3A): longer HPB READs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hpb2Config {
    /// fHPBEn as shipped. The host can change it, and it is non-volatile.
    pub enabled: bool,
    /// The most blocks of an HPB READ without a pre-request: bMAX_DATA_SIZE_FOR_HPB_SINGLE_CMD + 1.
    pub single_blocks: u8,
    /// Pre-requests (HPB WRITE BUFFER 02h) stored until their HPB READ comes, 1 to 126; one more displaces the
    /// oldest. READ IDs go from 1 to 126.
    pub pre_requests: u8,
    /// Not in JESD220-3A: an HPB READ may carry an entry for each block in an extra header segment.
    pub entries_in_ehs: bool,
}

impl Hpb2Config {
    /// SRAM of one pre-request: its entries, and unit, READ ID, block and age.
    pub(crate) const PRE_REQUEST_BYTES: u64 = MOST_ENTRIES as u64 * HpbEntry::BYTES as u64 + 8;
}

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
}

impl DeviceConfig {
    pub(super) fn check_hpb(&self, hpb: &HpbConfig) -> Result<(), ConfigError> {
        // A region's sub-regions are counted in 16 bits (JESD220-3).
        let largest = 30.min(hpb.sub_region_size + 16);
        if !(hpb.sub_region_size..=largest).contains(&hpb.region_size) {
            return bad_value(
                "hpb.region_size",
                format!(
                    "is {}; a region is at least a sub-region ({}) and at most {largest}",
                    hpb.region_size, hpb.sub_region_size
                ),
            );
        }
        let entries = 1u32 << (hpb.sub_region_size - 3);
        if !hpb.freshness_chunk_entries.is_power_of_two() || hpb.freshness_chunk_entries > entries {
            return bad_value(
                "hpb.freshness_chunk_entries",
                format!(
                    "is {}; it must be a power of two and at most the {entries} entries of a sub-region",
                    hpb.freshness_chunk_entries
                ),
            );
        }
        hpb.entries.check(hpb.verification)?;
        if let Some(prototype) = &hpb.prototype {
            self.check_prototype(hpb, prototype)?;
        }
        let (slices, most) = (self.geometry.slices(), 1 << ADDRESS_BITS);
        if hpb.v2.is_some() && slices > most {
            return bad(
                "hpb.v2",
                format!(
                    "needs the upper bits of addresses; the array has {slices} slices of 4 KiB, at most {most} are \
                     possible"
                ),
            );
        }
        for (i, lu) in self.lus.iter().enumerate().filter(|(_, lu)| lu.hpb) {
            let regions = u64::from(lu.blocks).div_ceil(1 << (hpb.region_size - 3));
            if regions > 1 << 16 {
                return bad(
                    "hpb.region_size",
                    format!("makes {regions} regions of lus[{i}]; the wire has 16 bits for them (65,536)"),
                );
            }
            if lu.max_active_regions == 0 {
                return bad_unit(i, "lus[].max_active_regions", "is 0; an HPB unit needs at least 1");
            }
            if lu.max_active_regions > hpb.max_active_regions {
                return bad_unit(
                    i,
                    "lus[].max_active_regions",
                    format!("is {}, more than the device's {}", lu.max_active_regions, hpb.max_active_regions),
                );
            }
            if lu.pinned_regions >= lu.max_active_regions {
                return bad_unit(
                    i,
                    "lus[].pinned_regions",
                    format!(
                        "is {}; it must be below max_active_regions ({})",
                        lu.pinned_regions, lu.max_active_regions
                    ),
                );
            }
            if lu.pinned_regions > 0 && u64::from(lu.pinned_start) + u64::from(lu.pinned_regions) > regions {
                return bad_unit(
                    i,
                    "lus[].pinned_start",
                    format!("puts the pinned range beyond the last of {regions} regions"),
                );
            }
        }
        Ok(())
    }

    fn check_prototype(&self, hpb: &HpbConfig, prototype: &PrototypeConfig) -> Result<(), ConfigError> {
        let (group_entries, protection) = (prototype.group_entries, hpb.entries.protection);
        if !group_entries.is_power_of_two() {
            return bad_value("hpb.prototype.group_entries", format!("is {group_entries}; it must be a power of two"));
        }
        if hpb.v2.is_some() {
            return bad("hpb.v2", "is there, but the prototype is older than HPB 2.0; remove one of the two tables");
        }
        if hpb.entries != EntryConfig::DEFAULT && protection != Protection::None {
            return bad_value(
                "hpb.entries.protection",
                format!(
                    "is {:?}, but entries of the prototype are plain addresses; remove [hpb.entries]",
                    protection.name()
                ),
            );
        }
        if self.host_map().is_some() {
            let message = "puts the map into host memory, which the prototype's host does itself; keep one";
            return bad("map_memory", message);
        }
        match self.lus.iter().position(|lu| lu.hpb && lu.pinned_regions > 0) {
            Some(i) => bad_unit(i, "lus[].pinned_regions", "is not 0, but the prototype pins nothing"),
            None => Ok(()),
        }
    }
}
