// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes and index arithmetic of Host Performance Booster (JESD220-3): regions, sub-regions and slots of one logical
//! unit.
//!
//! It knows the limits of descriptors and the mapping of addresses to indices. It does not know which regions are
//! active or what an entry means.

use crate::typed::{HpbEntry, HpbNotification, SubRegion};

/// wHPBVersion of HPB 1.0 (Linux `HPB_SUPPORT_LEGACY_VERSION`).
pub const VERSION_1_0: u16 = 0x0100;
/// wHPBVersion of HPB 2.0 (Linux `HPB_SUPPORT_VERSION`).
pub const VERSION_2_0: u16 = 0x0200;
/// bHPBControl: host control mode (Linux `HPB_HOST_CONTROL`).
pub const CONTROL_HOST: u8 = 0;
/// bHPBControl: device control mode (Linux `HPB_DEVICE_CONTROL`).
pub const CONTROL_DEVICE: u8 = 1;
readpath_kit::named! {
    /// Control mode of HPB (bHPBControl).
    pub enum Control {
        /// The device recommends, and the host follows.
        Device = "device",
        /// The host decides, and reports to the device what it drops.
        Host = "host",
    }
}

impl Control {
    /// From bHPBControl. Linux takes everything but 0 for device control mode.
    pub const fn from_byte(byte: u8) -> Control {
        if byte == CONTROL_HOST { Control::Host } else { Control::Device }
    }

    /// bHPBControl.
    pub const fn byte(self) -> u8 {
        match self {
            Control::Host => CONTROL_HOST,
            Control::Device => CONTROL_DEVICE,
        }
    }
}

/// bLUEnable of a logical unit with HPB (Linux `LU_ENABLED_HPB_FUNC`).
pub const LU_ENABLED_HPB: u8 = 2;
/// HPB in bUFSFeaturesSupport and dExtendedUFSFeaturesSupport (Linux `UFS_DEV_HPB_SUPPORT`).
pub const FEATURE_HPB: u8 = 0x80;

/// Both sizes count in 512 bytes, of which a block has 2^3: a region of bHPBRegionSize r has 2^(r - 3) entries.
const ENTRY_SHIFT: u8 = 3;

/// Most logical blocks that one HPB READ carries without a pre-request: 1 with HPB 1.0; with HPB 2.0
/// bMAX_DATA_SIZE_FOR_HPB_SINGLE_CMD + 1, but never more than the 255 that CDB byte 14 can say (Linux
/// `ufshpb_get_dev_info`).
pub const fn max_single_blocks(version: u16, attribute: u8) -> u8 {
    if version == VERSION_2_0 { attribute.saturating_add(1) } else { 1 }
}

/// Whether a host examines the lists of `notification`, as Linux `ufshpb_is_hpb_rsp_valid` decides: there is an
/// operation, a region update has entries, and the LUN is a general one (below 7Fh, `ufshpb_is_general_lun`). Counts
/// above 2 and indices are not checked here.
pub const fn is_acceptable(notification: &HpbNotification) -> bool {
    let n = notification;
    let empty = n.operation == HpbNotification::REGION_UPDATE && n.active_count == 0 && n.inactive_count == 0;
    n.operation != 0 && !empty && n.lun < 0x7F
}

/// Why a [`HpbGeometry`] is impossible.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HpbGeometryError {
    /// bHPBSubRegionSize outside 3..=19: below 3 a sub-region has no entry, above 19 its map exceeds the 128 pages that
    /// Linux can read with one command.
    #[error("bHPBSubRegionSize is {0}; it must be 3 (4 KiB of data) to 19 (256 MiB of data, 512 KiB of map)")]
    SubRegionSize(u8),
    /// A sub-region larger than its region.
    #[error("bHPBSubRegionSize {ss} exceeds bHPBRegionSize {rs}: a sub-region is a part of a region")]
    SubRegionOverRegion {
        /// bHPBRegionSize.
        rs: u8,
        /// bHPBSubRegionSize.
        ss: u8,
    },
    /// More sub-regions in a region than the 16-bit sub-region index can name, or more entries than 31 bits count.
    #[error(
        "bHPBRegionSize {rs} is too large: it may be at most 34, and at most 16 above bHPBSubRegionSize {ss}, \
         because a sub-region index has 16 bits"
    )]
    RegionSize {
        /// bHPBRegionSize.
        rs: u8,
        /// bHPBSubRegionSize.
        ss: u8,
    },
    /// qLogicalBlockCount outside 1..2^31. Linux holds it in a signed 32-bit integer.
    #[error("a logical unit with HPB has 1 to 2^31 - 1 logical blocks, not {0}")]
    BlockCount(u64),
    /// More regions than the 16-bit region index can name.
    #[error(
        "{blocks} logical blocks need {regions} regions of bHPBRegionSize {rs}; a region index names at most 65536"
    )]
    Regions {
        /// qLogicalBlockCount.
        blocks: u32,
        /// Regions that this would need.
        regions: u32,
        /// bHPBRegionSize.
        rs: u8,
    },
}

/// Division of a logical unit of 4 KiB blocks into regions, sub-regions and entries (Linux
/// `ufshpb_lu_parameter_init`, `ufshpb_alloc_region_tbl`, `ufshpb_get_pos_from_lpn`).
///
/// Regions are counted from 0 to [`regions`](Self::regions) - 1; the last region and the last sub-region may be short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpbGeometry {
    rs: u8,
    ss: u8,
    /// log2 of entries per region.
    region_shift: u8,
    /// log2 of entries per sub-region.
    sub_region_shift: u8,
    logical_blocks: u32,
    regions: u32,
    sub_regions: u32,
}

impl HpbGeometry {
    /// The geometry of a logical unit of `logical_blocks` (qLogicalBlockCount) with bHPBRegionSize `rs` and
    /// bHPBSubRegionSize `ss`, both log2 of multiples of 512 bytes.
    ///
    /// # Errors
    /// Any value outside the ranges that [`HpbGeometryError`] describes.
    pub const fn new(rs: u8, ss: u8, logical_blocks: u64) -> Result<HpbGeometry, HpbGeometryError> {
        if ss < ENTRY_SHIFT || ss > 19 {
            return Err(HpbGeometryError::SubRegionSize(ss));
        }
        if ss > rs {
            return Err(HpbGeometryError::SubRegionOverRegion { rs, ss });
        }
        if rs > 34 || rs - ss > 16 {
            return Err(HpbGeometryError::RegionSize { rs, ss });
        }
        if logical_blocks == 0 || logical_blocks >= 1 << 31 {
            return Err(HpbGeometryError::BlockCount(logical_blocks));
        }
        let blocks = logical_blocks as u32;
        let region_shift = rs - ENTRY_SHIFT;
        let sub_region_shift = ss - ENTRY_SHIFT;
        let regions = ((blocks - 1) >> region_shift) + 1;
        if regions > 1 << 16 {
            return Err(HpbGeometryError::Regions { blocks, regions, rs });
        }
        let sub_regions = ((blocks - 1) >> sub_region_shift) + 1;
        Ok(HpbGeometry { rs, ss, region_shift, sub_region_shift, logical_blocks: blocks, regions, sub_regions })
    }

    /// Logical blocks (4 KiB each) of the logical unit.
    #[inline]
    pub const fn logical_blocks(&self) -> u32 {
        self.logical_blocks
    }

    /// Regions of the logical unit, 1 to 65536; the last may be short.
    #[inline]
    pub const fn regions(&self) -> u32 {
        self.regions
    }

    /// Sub-regions of the logical unit; the last may be short.
    #[inline]
    pub const fn sub_regions(&self) -> u32 {
        self.sub_regions
    }

    /// Entries (logical blocks) of a full region.
    #[inline]
    const fn entries_per_region(&self) -> u32 {
        1 << self.region_shift
    }

    /// Entries (logical blocks) of a full sub-region.
    #[inline]
    pub const fn entries_per_sub_region(&self) -> u32 {
        1 << self.sub_region_shift
    }

    /// Sub-regions of a full region, 1 to 65536.
    #[inline]
    pub const fn sub_regions_per_region(&self) -> u32 {
        1 << (self.rs - self.ss)
    }

    /// Bytes of the map of a full sub-region: 2^bHPBSubRegionSize (Linux `srgn_mem_size`).
    #[inline]
    pub const fn sub_region_map_bytes(&self) -> u32 {
        1 << self.ss
    }

    /// Whole 4 KiB host pages that hold the map of a sub-region (Linux `pages_per_srgn`).
    pub const fn pages_per_sub_region(&self) -> u32 {
        self.sub_region_map_bytes().div_ceil(4096)
    }

    /// Bytes of host memory for the maps of `active` regions: active * 2^bHPBRegionSize, 1 MiB per 512 MiB of data.
    pub const fn map_bytes(&self, active: u32) -> u64 {
        (active as u64) << self.rs
    }

    /// Sub-regions of `region`: fewer in a short last region, 0 if there is no such region.
    #[inline]
    const fn sub_regions_of(&self, region: u16) -> u32 {
        let region = region as u32;
        if region + 1 < self.regions {
            self.sub_regions_per_region()
        } else if region < self.regions {
            self.sub_regions - (region << (self.rs - self.ss))
        } else {
            0
        }
    }

    /// Whether the logical unit has this sub-region.
    #[inline]
    pub const fn contains(&self, at: SubRegion) -> bool {
        (at.index as u32) < self.sub_regions_of(at.region)
    }

    /// Entries of the last sub-region of the logical unit, 1 to
    /// [`entries_per_sub_region`](Self::entries_per_sub_region).
    #[inline]
    const fn last_sub_region_entries(&self) -> u32 {
        self.logical_blocks - ((self.sub_regions - 1) << self.sub_region_shift)
    }

    /// Entries of the sub-region `at`: fewer in a short last one, 0 if there is no such sub-region.
    #[inline]
    const fn entries_of(&self, at: SubRegion) -> u32 {
        if !self.contains(at) {
            0
        } else if self.index_of(at) + 1 == self.sub_regions {
            self.last_sub_region_entries()
        } else {
            self.entries_per_sub_region()
        }
    }

    /// Bytes of the map of the sub-region `at`, the most that HPB READ BUFFER returns; 0 if there is no such
    /// sub-region.
    #[inline]
    pub const fn map_bytes_of(&self, at: SubRegion) -> u32 {
        self.entries_of(at) * HpbEntry::BYTES as u32
    }

    /// Region of the logical block `lba`, which must be below [`logical_blocks`](Self::logical_blocks).
    #[inline]
    pub const fn region_of(&self, lba: u32) -> u16 {
        debug_assert!(lba < self.logical_blocks);
        (lba >> self.region_shift) as u16
    }

    /// Sub-region of `lba` and the slot of its entry within that sub-region. `lba` must be below
    /// [`logical_blocks`](Self::logical_blocks).
    #[inline]
    pub const fn locate(&self, lba: u32) -> (SubRegion, u32) {
        let in_region = lba & (self.entries_per_region() - 1);
        let index = (in_region >> self.sub_region_shift) as u16;
        (SubRegion { region: self.region_of(lba), index }, lba & (self.entries_per_sub_region() - 1))
    }

    /// Index of the sub-region `at` among all of the logical unit, for flat tables. `at` must exist
    /// ([`contains`](Self::contains)).
    #[inline]
    pub const fn index_of(&self, at: SubRegion) -> u32 {
        debug_assert!(self.contains(at));
        ((at.region as u32) << (self.rs - self.ss)) | at.index as u32
    }

    /// Index of the sub-region of `lba` among all of the logical unit: `index_of(locate(lba).0)`. `lba` must be below
    /// [`logical_blocks`](Self::logical_blocks).
    #[inline]
    pub const fn index_of_lba(&self, lba: u32) -> u32 {
        debug_assert!(lba < self.logical_blocks);
        lba >> self.sub_region_shift
    }

    /// The sub-region with this flat index, the inverse of [`index_of`](Self::index_of). `index` must be below
    /// [`sub_regions`](Self::sub_regions).
    #[inline]
    pub const fn sub_region_at(&self, index: u32) -> SubRegion {
        debug_assert!(index < self.sub_regions);
        let shift = self.rs - self.ss;
        SubRegion { region: (index >> shift) as u16, index: (index & ((1 << shift) - 1)) as u16 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXAMPLE: HpbGeometry = match HpbGeometry::new(0x0F, 0x0D, 16_777_216) {
        Ok(geometry) => geometry,
        Err(_) => panic!("the example is valid"),
    };

    #[test]
    fn worked_example() {
        let g = EXAMPLE;
        assert_eq!(512_u64 << g.rs, 16 << 20);
        assert_eq!(512_u64 << g.ss, 4 << 20);
        assert_eq!(g.entries_per_region(), 4096);
        assert_eq!(g.map_bytes(1), 32 << 10);
        assert_eq!(g.entries_per_sub_region(), 1024);
        assert_eq!(g.entries_per_sub_region() * 4096, 4 << 20);
        assert_eq!(g.sub_region_map_bytes(), 8 << 10);
        assert_eq!(g.pages_per_sub_region(), 2);
        assert_eq!(g.sub_regions_per_region(), 4);
        assert_eq!(g.regions(), 4096);
        assert_eq!(g.sub_regions(), 16_384);
        assert_eq!(g.last_sub_region_entries(), 1024);
        assert_eq!(g.locate(0x12345), (SubRegion { region: 0x12, index: 0 }, 0x345));
        // 64 GiB of data, 1 MiB of map per 512 MiB.
        assert_eq!(g.map_bytes(g.regions()), 128 << 20);
    }

    #[test]
    fn short_last_region_and_sub_region() {
        // One full region, then one full sub-region and 5 blocks.
        let g = HpbGeometry::new(0x0F, 0x0D, 4096 + 1024 + 5).unwrap();
        assert_eq!((g.regions(), g.sub_regions()), (2, 6));
        assert_eq!((g.sub_regions_of(0), g.sub_regions_of(1), g.sub_regions_of(2)), (4, 2, 0));
        let at = |region, index| SubRegion { region, index };
        assert_eq!(g.entries_of(at(1, 0)), 1024);
        assert_eq!(g.entries_of(at(1, 1)), 5);
        assert_eq!(g.map_bytes_of(at(1, 1)), 40);
        for missing in [at(1, 2), at(0, 4), at(2, 0), at(0xFFFF, 0), at(0, 0xFFFF)] {
            assert!(!g.contains(missing), "{missing:?}");
            assert_eq!(g.entries_of(missing), 0);
        }
    }

    #[test]
    fn small_maps_take_a_whole_page() {
        let g = HpbGeometry::new(10, 3, 1000).unwrap();
        assert_eq!((g.entries_per_sub_region(), g.sub_region_map_bytes(), g.pages_per_sub_region()), (1, 8, 1));
        assert_eq!(HpbGeometry::new(19, 19, 1 << 16).unwrap().pages_per_sub_region(), 128);
    }

    #[test]
    fn limits() {
        use HpbGeometryError::*;
        assert_eq!(HpbGeometry::new(15, 2, 4096), Err(SubRegionSize(2)));
        assert_eq!(HpbGeometry::new(25, 20, 4096), Err(SubRegionSize(20)));
        assert_eq!(HpbGeometry::new(0, 0, 4096), Err(SubRegionSize(0)));
        assert_eq!(HpbGeometry::new(12, 13, 4096), Err(SubRegionOverRegion { rs: 12, ss: 13 }));
        assert_eq!(HpbGeometry::new(35, 19, 4096), Err(RegionSize { rs: 35, ss: 19 }));
        assert_eq!(HpbGeometry::new(30, 13, 4096), Err(RegionSize { rs: 30, ss: 13 }));
        assert_eq!(HpbGeometry::new(255, 13, 4096), Err(RegionSize { rs: 255, ss: 13 }));
        assert_eq!(HpbGeometry::new(15, 13, 0), Err(BlockCount(0)));
        assert_eq!(HpbGeometry::new(15, 13, 1 << 31), Err(BlockCount(1 << 31)));
        assert_eq!(HpbGeometry::new(15, 13, u64::MAX), Err(BlockCount(u64::MAX)));
        assert!(HpbGeometry::new(18, 13, (1 << 31) - 1).is_ok());
        // 65536 regions are the most; one block more is too much.
        assert_eq!(HpbGeometry::new(15, 13, 1 << 28).unwrap().regions(), 1 << 16);
        assert_eq!(
            HpbGeometry::new(15, 13, (1 << 28) + 1),
            Err(Regions { blocks: (1 << 28) + 1, regions: 65_537, rs: 15 })
        );
        let text = HpbGeometry::new(12, 13, 4096).unwrap_err().to_string();
        assert!(text.contains("13") && text.contains("12"), "{text}");
    }

    #[test]
    fn everything_but_0_is_device_control() {
        assert_eq!(Control::from_byte(0), Control::Host);
        for byte in 1..=255 {
            assert_eq!(Control::from_byte(byte), Control::Device);
        }
        for control in [Control::Host, Control::Device] {
            assert_eq!(Control::from_byte(control.byte()), control);
        }
    }

    #[test]
    fn blocks_of_one_hpb_read() {
        assert_eq!(max_single_blocks(VERSION_1_0, 7), 1);
        assert_eq!(max_single_blocks(VERSION_2_0, 0), 1);
        assert_eq!(max_single_blocks(VERSION_2_0, 7), 8);
        assert_eq!(max_single_blocks(VERSION_2_0, 0xFF), 255);
    }

    #[test]
    fn acceptable_notifications() {
        let update = HpbNotification { operation: 1, active_count: 1, ..Default::default() };
        assert!(is_acceptable(&update));
        assert!(is_acceptable(&HpbNotification { active_count: 0, inactive_count: 1, ..update }));
        assert!(!is_acceptable(&HpbNotification { active_count: 0, ..update }));
        assert!(is_acceptable(&HpbNotification { operation: 2, active_count: 0, ..update }));
        assert!(!is_acceptable(&HpbNotification { operation: 0, ..update }));
        assert!(is_acceptable(&HpbNotification { lun: 0x7E, ..update }));
        assert!(!is_acceptable(&HpbNotification { lun: 0x7F, ..update }));
    }

    proptest! {
        #[test]
        fn new_never_panics(rs: u8, ss: u8, blocks: u64) {
            let _ = HpbGeometry::new(rs, ss, blocks);
        }

        #[test]
        fn new_accepts_exactly_the_range(rs in 0u32..40, ss in 0u32..24, bits in 0u32..34, below: u64) {
            let blocks = (1u64 << bits) - below % (1 << bits);
            let fits = (3..=19).contains(&ss)
                && (ss..=34).contains(&rs)
                && rs - ss <= 16
                && blocks < 1 << 31
                && blocks.div_ceil(1 << (rs - 3)) <= 65_536;
            prop_assert_eq!(HpbGeometry::new(rs as u8, ss as u8, blocks).is_ok(), fits);
        }

        #[test]
        fn indices_agree(ss in 3u8..=19, more in 0u8..=15, blocks in 1u64..1 << 31, pick: u32) {
            let Ok(g) = HpbGeometry::new(ss + more, ss, blocks) else { return Ok(()) };
            let n = g.logical_blocks();
            let lba = pick % n;
            let (at, slot) = g.locate(lba);
            prop_assert!(g.contains(at));
            prop_assert_eq!(u32::from(at.region), lba / g.entries_per_region());
            prop_assert_eq!(u32::from(at.index), lba % g.entries_per_region() / g.entries_per_sub_region());
            prop_assert!(slot < g.entries_of(at));
            prop_assert_eq!(g.index_of(at) * g.entries_per_sub_region() + slot, lba);
            prop_assert_eq!(g.sub_region_at(g.index_of(at)), at);
            prop_assert_eq!(g.index_of_lba(lba), g.index_of(at));
            // The last block is in the last slot of the last sub-region.
            let (last, last_slot) = g.locate(n - 1);
            prop_assert_eq!(g.index_of(last) + 1, g.sub_regions());
            prop_assert_eq!(u32::from(last.region) + 1, g.regions());
            prop_assert_eq!(last_slot + 1, g.last_sub_region_entries());
            prop_assert_eq!(u32::from(last.index) + 1, g.sub_regions_of(last.region));
        }
    }
}
