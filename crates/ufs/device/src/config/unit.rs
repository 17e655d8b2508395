// SPDX-License-Identifier: MIT OR Apache-2.0
//! A logical unit as part of a device's configuration.

/// A logical unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LuConfig {
    /// Logical blocks of 4 KiB.
    pub blocks: u32,
    /// bLUEnable = 02h: HPB.
    pub hpb: bool,
    /// wLUMaxActiveHPBRegions, pinned regions included.
    pub max_active_regions: u16,
    /// wHPBPinnedRegionStartIdx.
    pub pinned_start: u16,
    /// wNumHPBPinnedRegions.
    pub pinned_regions: u16,
}
