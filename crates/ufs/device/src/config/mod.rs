// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of a device, and the checks that such a device can exist. It does not read files: errors name
//! the field; the reader of the file knows its line.

mod bounds;
mod cells;
mod check;
mod entries;
mod error;
mod ftl;
mod hpb;
mod map_memory;
mod slc_cache;
mod timing;
mod zones;

pub use cells::{CacheCells, CellMode, SlcConfig};
pub(crate) use cells::{CellTimes, OwnCells};
pub use entries::{CheckOn, EntryConfig, Protection, Verification};
pub use error::ConfigError;
pub use ftl::{FaultConfig, FtlConfig, VictimPolicy, Without};
pub(crate) use hpb::ADDRESS_BITS;
pub use hpb::{Hpb2Config, HpbConfig, MOST_ENTRIES, PrototypeConfig};
pub use map_memory::{HostMap, LineCheck, MapMemory, Protocol};
pub use slc_cache::{CacheOwner, SlcCacheConfig};
pub use timing::{FirmwareTiming, FlashTiming, LinkTiming};
pub use zones::{ZoneConfig, ZoneLayout, ZoneRule};

use readpath_flash::{Geometry, Scheduler, SuspendTiming};
use readpath_kit::BLOCK_BYTES;
use readpath_proto::desc::UfsVersion;
use readpath_proto::groups::GroupEntry;
use readpath_proto::typed::HpbEntry;

/// A whole device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceConfig {
    /// iProductName, up to 16 ASCII characters.
    pub product_name: String,
    /// The version of UFS that it claims.
    pub ufs_version: UfsVersion,
    /// Shape of the flash array.
    pub geometry: Geometry,
    /// Times of the flash array.
    pub flash: FlashTiming,
    /// Die scheduler.
    pub scheduler: Scheduler,
    /// Suspension of programs and erases, if the die scheduler offers it.
    pub suspend: SuspendTiming,
    /// Times of the firmware core.
    pub firmware: FirmwareTiming,
    /// Times of the link.
    pub link: LinkTiming,
    /// SRAM for the map cache, in bytes.
    pub map_cache_bytes: u32,
    /// Bytes of a map page: 4096 or 16384; 4 bytes an entry.
    pub map_page_bytes: u32,
    /// SRAM for runs of the map, 12 bytes each; 0 for none.
    pub map_runs_bytes: u32,
    /// Map pages behind one that reads missed which are loaded ahead, if SRAM holds the page before it.
    pub map_read_ahead: u32,
    /// SRAM for the write buffer, in blocks of 4 KiB.
    pub write_buffer_blocks: u32,
    /// Commands the device accepts at once (bQueueDepth), at most 64.
    pub queue_depth: u32,
    /// Logical units, at most 8.
    pub lus: Vec<LuConfig>,
    /// Settings of flash translation.
    pub ftl: FtlConfig,
    /// Cells in SLC mode, if the device has them.
    pub slc: Option<SlcConfig>,
    /// The cache in SLC mode, if the device has one: WriteBooster's buffer, or its own.
    pub slc_cache: Option<SlcCacheConfig>,
    /// Where the map is kept besides flash and SRAM, if anywhere.
    pub map_memory: Option<MapMemory>,
    /// HPB, if the device has it.
    pub hpb: Option<HpbConfig>,
    /// Key of the entries' authentication. A real device draws it at manufacture; here it is part of the configuration
    /// so that runs can be repeated.
    pub entry_key: [u64; 2],
}

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
    /// Zones, if it is a zoned unit; `blocks` then counts the gaps between them too.
    pub zones: Option<ZoneConfig>,
}

/// Number of superblocks that hold anchors, at the start of the array.
pub const ANCHORS: u32 = 2;

/// Superblocks that are open for data or erased even when space is shortest: one open for each kind of data (host,
/// hot, moved, cold), and one to move data to. The cache in SLC mode borrows one only while there are more.
pub(crate) const KEPT_ERASED: u32 = 5;

/// Bytes of one map entry in flash and in the map cache.
pub(crate) const MAP_ENTRY_BYTES: u32 = 4;
/// Bytes of SRAM of a run of the map: its first block and slice, and its length, aligned.
pub(crate) const MAP_RUN_BYTES: u32 = 12;
/// Bytes of SRAM that a change of the map takes: logical page, slice, and links by map page and by hash.
pub(crate) const CHANGE_BYTES: u64 = 12;

impl DeviceConfig {
    /// Logical blocks of all units that can hold data.
    pub fn logical_blocks(&self) -> u64 {
        self.lus.iter().map(|lu| u64::from(lu.data_blocks())).sum()
    }

    /// Map entries of one map page.
    pub fn map_page_entries(&self) -> u32 {
        self.map_page_bytes / MAP_ENTRY_BYTES
    }

    /// Map pages of the device.
    pub fn map_pages(&self) -> u32 {
        (self.mapped_blocks() as u32).div_ceil(self.map_page_entries())
    }

    /// Superblocks that the map fills.
    pub fn map_superblocks(&self) -> u32 {
        let slices = u64::from(self.map_pages()) * u64::from(self.map_page_bytes / BLOCK_BYTES);
        let each = self.units_in(self.map_cells()) * self.geometry.slices_per_unit();
        slices.div_ceil(u64::from(each)) as u32
    }

    /// Units at the end of a superblock of data that hold the table of its logical pages: 4 bytes for each slice.
    pub fn table_units(&self) -> u32 {
        let bytes = self.geometry.slices_per_superblock() * 4;
        let unit = self.geometry.slices_per_unit() * BLOCK_BYTES;
        if self.ftl.superblock_tables { bytes.div_ceil(unit) } else { 0 }
    }

    /// Slices of a superblock that can hold data.
    pub fn data_slices(&self) -> u32 {
        self.geometry.slices_per_superblock().saturating_sub(self.table_units() * self.geometry.slices_per_unit())
    }

    /// Superblocks that map pages, journal and checkpoints may take.
    pub fn meta_superblocks(&self) -> u32 {
        self.map_superblocks() + self.ftl.spare_map_superblocks
    }

    /// Superblocks that can be full of data of the page map: all but those of the anchors ([`ANCHORS`]), those that map
    /// pages, journal and checkpoints may take, those of the static cache and of zones, and those that stay erased even
    /// when space is shortest.
    pub fn data_superblocks(&self) -> u32 {
        let others = ANCHORS + self.meta_superblocks() + self.kept_erased() + self.kept_for_zones();
        self.geometry.superblocks().saturating_sub(others.saturating_add(self.static_superblocks()))
    }

    /// Superblocks that are open for data or erased even when space is shortest; with zones, one for their rests too.
    pub(crate) fn kept_erased(&self) -> u32 {
        KEPT_ERASED + u32::from(self.has_zones())
    }

    /// Blocks that the page map or, of the rests of zones, a table in SRAM places one by one.
    pub(crate) fn placed_blocks(&self) -> u64 {
        self.mapped_blocks() + u64::from(self.zone_rests())
    }

    /// Whether the device may begin work by itself when it has been idle for a while.
    pub fn works_when_idle(&self) -> bool {
        self.ftl.collect_idle_below > 0 || self.slc_cache.is_some()
    }

    /// Slices beyond the logical capacity that may hold garbage while collection runs beside the host's writes: all
    /// but the anchors, the superblocks for map, journal, checkpoints and the static cache, and `ftl.collect_below`
    /// erased superblocks.
    /// Divided by the logical capacity it is the over-provisioning of write amplification formulas.
    ///
    /// It is exact to about one superblock as long as `collect_below` is small: there may be fewer erased
    /// superblocks, down to two, because the host may use all that collection frees; and superblocks that are being
    /// written or emptied are about half full.
    pub fn spare_slices(&self) -> u64 {
        let others = ANCHORS + self.meta_superblocks() + self.static_superblocks() + self.ftl.collect_below;
        let superblocks = self.geometry.superblocks().saturating_sub(others + self.kept_for_zones());
        (u64::from(superblocks) * u64::from(self.data_slices())).saturating_sub(self.placed_blocks())
    }

    /// SRAM that serves one HPB READ BUFFER: the map pages that a sub-region touches, and its entries of 8 bytes (of
    /// the prototype: a group, and entries of 4 bytes).
    pub fn read_buffer_bytes(&self) -> u64 {
        let Some(hpb) = &self.hpb else { return 0 };
        let entries = hpb.prototype.map_or(1 << (hpb.sub_region_size - 3), |prototype| prototype.group_entries);
        // Both are powers of two, so they are aligned to each other unless a unit begins inside one.
        let piece = entries.min(self.map_page_entries());
        let mut base = 0u64;
        let mut fits = true;
        for lu in &self.lus {
            fits &= !lu.hpb || base.is_multiple_of(u64::from(piece));
            base += u64::from(lu.data_blocks());
        }
        let pages = entries.div_ceil(self.map_page_entries()) + u32::from(!fits);
        u64::from(pages) * u64::from(self.map_page_bytes) + u64::from(entries) * self.entry_bytes() as u64
    }

    /// Parameters of the prototype, if this device is one.
    pub fn prototype(&self) -> Option<&PrototypeConfig> {
        self.hpb.as_ref()?.prototype.as_ref()
    }

    /// HPB of JESD220-3, if the device has it. Its descriptors describe this.
    pub fn standard_hpb(&self) -> Option<&HpbConfig> {
        self.hpb.as_ref().filter(|hpb| hpb.prototype.is_none())
    }

    /// Bytes of an entry as the host holds it.
    pub(crate) fn entry_bytes(&self) -> usize {
        if self.prototype().is_some() { GroupEntry::BYTES } else { HpbEntry::BYTES }
    }
}
