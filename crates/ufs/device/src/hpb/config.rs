// SPDX-License-Identifier: MIT OR Apache-2.0
//! HPB as part of a device's configuration.

use super::entry_config::{EntryConfig, Verification};
use super::prototype::config::PrototypeConfig;
use super::v2_config::Hpb2Config;
use readpath_kit::Ns;
use readpath_proto::hpb::Control;

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
    /// SRAM for the map pages and the entries of a sub-region ([`crate::DeviceConfig::read_buffer_bytes`]).
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
