// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that makes one device different from another, and the checks that it can exist. It knows nothing of files:
//! errors name the field, and whoever read the file knows its line.

use crate::booster_config::WriteBoosterConfig;
use crate::entry_config::EntryConfig;
use crate::ftl::{ANCHORS, Changes};
use crate::ftl_config::FtlConfig;
use crate::hpb2_config::Hpb2Config;
use crate::map_memory::MapMemory;
use crate::prototype_config::PrototypeConfig;
use readpath_flash::{Geometry, SuspendTiming};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::hpb::Control;

/// Array and channel times of the flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashTiming {
    /// tR of a page that holds data.
    pub read: Ns,
    /// tR of a page that holds part of the map (shorter if the map lives in SLC blocks).
    pub map_read: Ns,
    /// tPROG of a multi-plane page.
    pub program: Ns,
    /// tBERS of a block.
    pub erase: Ns,
    /// Channel time of 4 KiB of data.
    pub transfer_block: Ns,
    /// Channel time of a map page, all of it: the map cache holds whole pages.
    pub map_transfer: Ns,
}

/// Times of the one firmware core, a first-in-first-out server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirmwareTiming {
    /// Per flash operation: a page of data, a map page, a program, an erase.
    pub flash_op: Ns,
    /// What an HPB READ costs more than a READ: the check of its entry.
    pub hpb_read_extra: Ns,
    /// Per write command, before its data is in the write buffer.
    pub write_command: Ns,
    /// Per read of blocks that need no flash operation: buffered or unmapped.
    pub buffer_read: Ns,
    /// Per entry that HPB READ BUFFER returns: its lookup and its authentication.
    pub make_entry: Ns,
    /// Per query, and per SCSI command without media access.
    pub control: Ns,
    /// Per map page that a range of UNMAP covers, or a part of which it covers, on top of [`FirmwareTiming::control`].
    pub trim_map_page: Ns,
}

/// Times of the link, one server in each direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkTiming {
    /// A request UPIU.
    pub request: Ns,
    /// A response UPIU.
    pub response: Ns,
    /// 4 KiB of data.
    pub block: Ns,
}

impl LinkTiming {
    /// Bytes that travel with a request, other than blocks of data.
    pub fn bytes(&self, bytes: usize) -> Ns {
        Ns((self.block.0 * bytes as u64).div_ceil(u64::from(BLOCK_BYTES)))
    }
}

/// How the device treats the entry of an HPB READ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verification {
    /// Only an authentic and fresh entry is used.
    On,
    /// Any entry whose address exists is used. For tests of what verification is good for.
    Off,
}

/// HPB of the device (JESD220-3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HpbConfig {
    /// bHPBControl: who decides what is active.
    pub control: Control,
    /// bHPBRegionSize: a region is 512 << this bytes.
    pub region_size: u8,
    /// bHPBSubRegionSize: a sub-region is 512 << this bytes.
    pub sub_region_size: u8,
    /// wDeviceMaxActiveHPBRegions.
    pub max_active_regions: u16,
    /// Reads that found no good entry before a sub-region is recommended.
    pub activate_after: u8,
    /// Reads that found no good entry before a loaded sub-region is recommended again.
    pub refresh_after: u8,
    /// When as many regions are active as may be: reads of an inactive sub-region before its region takes the place of one
    /// that is read little. Small values follow change quickly, and load maps in vain when reads are spread evenly.
    pub replace_after: u8,
    /// A recommendation that was not followed is repeated after this time, if the sub-region is still read.
    pub repeat_after: Ns,
    /// Entries that share one bit of the freshness table; a power of two.
    pub freshness_chunk_entries: u32,
    /// HPB READ BUFFER commands that are served at the same time, at most 64; more wait in order of arrival. Each has SRAM
    /// for the map pages and the entries of a sub-region ([`DeviceConfig::read_buffer_bytes`]).
    pub read_buffers: u8,
    /// Whether entries are checked.
    pub verification: Verification,
    /// How they are protected.
    pub entries: EntryConfig,
    /// What HPB 2.0 adds; `None` for HPB 1.0.
    pub v2: Option<Hpb2Config>,
    /// Not HPB of JESD220-3, but its prototype. Of the fields before this one only `read_buffers` and `verification` then mean
    /// anything.
    pub prototype: Option<PrototypeConfig>,
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
}

/// A whole device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceConfig {
    /// iProductName, up to 16 ASCII characters.
    pub product_name: String,
    /// Shape of the flash array.
    pub geometry: Geometry,
    /// Times of the flash array.
    pub flash: FlashTiming,
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
    /// SRAM for the write buffer, in blocks of 4 KiB.
    pub write_buffer_blocks: u32,
    /// Commands the device accepts at once (bQueueDepth), at most 64.
    pub queue_depth: u32,
    /// Logical units, at most 8.
    pub lus: Vec<LuConfig>,
    /// How flash translation does its work.
    pub ftl: FtlConfig,
    /// WriteBooster, if the device has it.
    pub write_booster: Option<WriteBoosterConfig>,
    /// Where the map is held beside flash and SRAM, if anywhere.
    pub map_memory: Option<MapMemory>,
    /// HPB, if the device has it.
    pub hpb: Option<HpbConfig>,
    /// Key of the entries' authentication. A real device draws it at manufacture; here it is part of the configuration
    /// so that runs can be repeated.
    pub entry_key: [u64; 2],
}

/// Why a device cannot exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The field at fault, as a path of [`DeviceConfig`] (`hpb.sub_region_size`, `lus[0].blocks`).
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.field, self.message)
    }
}

impl std::error::Error for ConfigError {}

pub(crate) fn bad<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError { field: field.into(), message: message.into() })
}

/// Superblocks that are open for data or erased even when space is shortest: one open for each kind of data (host, hot,
/// moved, cold), and one to move data to. One is opened for the WriteBooster buffer only while there are more.
pub(crate) const KEPT_ERASED: u32 = 5;

/// Bytes of one map entry in flash and in the map cache.
pub const MAP_ENTRY_BYTES: u32 = 4;

impl DeviceConfig {
    /// Logical blocks of all units.
    pub fn logical_blocks(&self) -> u64 {
        self.lus.iter().map(|lu| u64::from(lu.blocks)).sum()
    }

    /// Map entries of one map page.
    pub fn map_page_entries(&self) -> u32 {
        self.map_page_bytes / MAP_ENTRY_BYTES
    }

    /// Map pages of the device.
    pub fn map_pages(&self) -> u32 {
        (self.logical_blocks() as u32).div_ceil(self.map_page_entries())
    }

    /// Superblocks that the map fills.
    pub fn map_superblocks(&self) -> u32 {
        let slices = u64::from(self.map_pages()) * u64::from(self.map_page_bytes / BLOCK_BYTES);
        slices.div_ceil(u64::from(self.geometry.slices_per_superblock())) as u32
    }

    /// Units at the end of a superblock of data that hold the table of what is in it: 4 bytes for each slice.
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

    /// Superblocks that can be full of data: all but those of the anchors ([`ANCHORS`]), those that map pages, journal
    /// and checkpoints may take, and those that stay erased even when space is shortest.
    pub fn data_superblocks(&self) -> u32 {
        self.geometry.superblocks().saturating_sub(ANCHORS + self.meta_superblocks() + KEPT_ERASED)
    }

    /// Whether the device may begin work by itself when it has been idle for a while.
    pub fn works_when_idle(&self) -> bool {
        self.ftl.collect_idle_below > 0 || self.write_booster.is_some()
    }

    /// Slices beyond the logical capacity that garbage has for itself while collection goes on beside the host's writes:
    /// all but the anchors, what the map, journal and checkpoints may take, and `ftl.collect_below` erased superblocks.
    /// Divided by the logical capacity it is the over-provisioning that formulas of write amplification speak of.
    ///
    /// It is right to about one superblock as long as `collect_below` is small: there may be fewer erased ones, down to
    /// two, because the host is let have all that collection frees; and those that are being written, or emptied, are
    /// about half full.
    pub fn spare_slices(&self) -> u64 {
        let others = ANCHORS + self.meta_superblocks() + self.ftl.collect_below;
        let superblocks = self.geometry.superblocks().saturating_sub(others);
        (u64::from(superblocks) * u64::from(self.data_slices())).saturating_sub(self.logical_blocks())
    }

    /// SRAM that serves one HPB READ BUFFER: the map pages that a sub-region touches, and its entries of 8 bytes (or a group,
    /// and 4 bytes).
    pub fn read_buffer_bytes(&self) -> u64 {
        let Some(hpb) = &self.hpb else { return 0 };
        let entries = hpb.prototype.map_or(1 << (hpb.sub_region_size - 3), |prototype| prototype.group_entries);
        // Both are powers of two, so sub-regions and map pages fit each other unless a unit begins within one of them.
        let piece = entries.min(self.map_page_entries());
        let mut base = 0u64;
        let mut fits = true;
        for lu in &self.lus {
            fits &= !lu.hpb || base.is_multiple_of(u64::from(piece));
            base += u64::from(lu.blocks);
        }
        let pages = entries.div_ceil(self.map_page_entries()) + u32::from(!fits);
        u64::from(pages) * u64::from(self.map_page_bytes) + u64::from(entries) * self.entry_bytes() as u64
    }

    /// Checks that the device can exist; the first thing found wrong is returned.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.geometry
            .check()
            .map_err(|e| ConfigError { field: format!("geometry.{}", e.field), message: e.message })?;
        if self.geometry.dies() > 256 {
            return bad(
                "geometry.dies_per_channel",
                format!("makes {} dies; at most 256 are possible", self.geometry.dies()),
            );
        }
        if self.product_name.is_empty() || self.product_name.len() > 16 || !self.product_name.is_ascii() {
            return bad("product_name", "must be 1 to 16 ASCII characters");
        }
        if !(1..=64).contains(&self.queue_depth) {
            return bad("queue_depth", format!("is {}; it must be 1 to 64", self.queue_depth));
        }
        self.check_times()?;
        self.check_lus()?;
        self.check_map()?;
        self.check_map_memory()?;
        self.check_booster()?;
        match &self.hpb {
            Some(hpb) => self.check_hpb(hpb),
            None if self.lus.iter().any(|lu| lu.hpb) => {
                bad("lus[0].hpb", "is on, but the device has no HPB: add an [hpb] table or switch it off")
            }
            None => Ok(()),
        }
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let longest = Ns::from_secs(1);
        for (field, value) in [
            ("flash.read", self.flash.read),
            ("flash.map_read", self.flash.map_read),
            ("flash.program", self.flash.program),
            ("flash.erase", self.flash.erase),
            ("flash.transfer_block", self.flash.transfer_block),
            ("flash.map_transfer", self.flash.map_transfer),
            ("firmware.flash_op", self.firmware.flash_op),
            ("firmware.hpb_read_extra", self.firmware.hpb_read_extra),
            ("firmware.write_command", self.firmware.write_command),
            ("firmware.buffer_read", self.firmware.buffer_read),
            ("firmware.make_entry", self.firmware.make_entry),
            ("firmware.control", self.firmware.control),
            ("firmware.trim_map_page", self.firmware.trim_map_page),
            ("link.request", self.link.request),
            ("link.response", self.link.response),
            ("link.block", self.link.block),
            ("suspend.suspend", self.suspend.suspend),
            ("suspend.resume", self.suspend.resume),
        ] {
            if value > longest {
                return bad(field, format!("is {value}; it must be at most 1 s"));
            }
        }
        if self.flash.read == Ns::ZERO || self.flash.program == Ns::ZERO || self.flash.erase == Ns::ZERO {
            return bad("flash.read", "and program and erase times must be greater than zero");
        }
        Ok(())
    }

    fn check_lus(&self) -> Result<(), ConfigError> {
        if self.lus.is_empty() || self.lus.len() > 8 {
            return bad("lus", format!("has {} logical units; 1 to 8 are possible", self.lus.len()));
        }
        for (i, lu) in self.lus.iter().enumerate() {
            if lu.blocks == 0 || lu.blocks >= 1 << 31 {
                return bad(
                    format!("lus[{i}].blocks"),
                    format!("is {}; a logical unit has 1 to 2^31 - 1 blocks of 4 KiB (below 8 TiB)", lu.blocks),
                );
            }
        }
        Ok(())
    }

    fn check_map(&self) -> Result<(), ConfigError> {
        if self.map_page_bytes != 4096 && self.map_page_bytes != 16384 {
            return bad("map_page_bytes", format!("is {}; it must be 4096 or 16384", self.map_page_bytes));
        }
        if self.map_page_bytes > self.geometry.page_bytes {
            let message =
                format!("is {}, more than the flash page of {}", self.map_page_bytes, self.geometry.page_bytes);
            return bad("map_page_bytes", message);
        }
        if self.map_cache_bytes < self.map_page_bytes {
            return bad(
                "map_cache_bytes",
                format!(
                    "is {}; the map cache must hold at least one map page of {} bytes",
                    self.map_cache_bytes, self.map_page_bytes
                ),
            );
        }
        let unit = self.geometry.slices_per_unit();
        if self.write_buffer_blocks < unit || self.write_buffer_blocks > 1 << 16 {
            return bad(
                "write_buffer_blocks",
                format!(
                    "is {}; it must hold at least one multi-plane page of {unit} blocks and at most 65536 blocks",
                    self.write_buffer_blocks
                ),
            );
        }
        self.check_ftl()
    }

    fn check_ftl(&self) -> Result<(), ConfigError> {
        let ftl = &self.ftl;
        let unit = self.geometry.slices_per_unit();
        for (field, value, least, most) in [
            ("ftl.collect_below", ftl.collect_below, 2, 1 << 16),
            ("ftl.collect_together", ftl.collect_together, 1, 64),
            ("ftl.collect_idle_below", ftl.collect_idle_below, 0, 1 << 16),
            ("ftl.move_buffer_blocks", ftl.move_buffer_blocks, 2 * unit, 1 << 15),
            ("ftl.map_changes", ftl.map_changes, 16 * unit, 1 << 24),
            ("ftl.map_write_pages", ftl.map_write_pages, 1, 256),
            ("ftl.spare_map_superblocks", ftl.spare_map_superblocks, 5, 1 << 16),
            ("ftl.checkpoint_after_units", ftl.checkpoint_after_units, 16, 1 << 24),
            ("ftl.wear_threshold_percent", ftl.wear_threshold_percent, 0, 100),
            ("ftl.wear_least_erases", ftl.wear_least_erases, 1, 1 << 16),
            ("ftl.faults.program_failures_ppm", ftl.faults.program_failures_ppm, 0, 100_000),
            ("ftl.faults.erase_failures_ppm", ftl.faults.erase_failures_ppm, 0, 100_000),
            ("ftl.faults.read_retries_ppm", ftl.faults.read_retries_ppm, 0, 900_000),
        ] {
            if value < least || value > most {
                return bad(field, format!("is {value}; it must be {least} to {most}"));
            }
        }
        let hot = ftl.hot_table_entries;
        if hot != 0 && (!hot.is_power_of_two() || !(2..=1 << 24).contains(&hot)) {
            return bad(
                "ftl.hot_table_entries",
                format!("is {hot}; it must be 0 or a power of two from 2 to 16,777,216"),
            );
        }
        // Idle time is looked at anew after as long; without any time between, that would never end.
        if !(Ns(1_000)..=Ns::from_secs(1_000)).contains(&ftl.idle_after) {
            return bad("ftl.idle_after", format!("is {}; it must be 1 us to 1000 s", ftl.idle_after));
        }
        let parts = (unit * BLOCK_BYTES / self.map_page_bytes) * (self.geometry.units_per_superblock() - 1);
        if self.checkpoint_parts() > parts {
            return bad(
                "ftl.map_changes",
                format!(
                    "makes checkpoints of {} map pages; a superblock has room for {parts}, so make it smaller or \
                     superblocks larger",
                    self.checkpoint_parts()
                ),
            );
        }
        // What a checkpoint takes counts towards the next one; were that all, checkpoints would never end.
        let own = self.checkpoint_parts().div_ceil(unit * BLOCK_BYTES / self.map_page_bytes);
        if ftl.checkpoint_after_units <= own + 1 {
            return bad(
                "ftl.checkpoint_after_units",
                format!(
                    "is {}; a checkpoint alone takes {own}, so it must be {} or more",
                    ftl.checkpoint_after_units,
                    own + 2
                ),
            );
        }
        // The newest checkpoint and the one being written, the open superblock, one to go on with, one being emptied.
        let least_meta = 3 + 2 * self.checkpoint_parts().div_ceil(parts);
        if ftl.spare_map_superblocks < least_meta {
            return bad(
                "ftl.spare_map_superblocks",
                format!("is {}; checkpoints of this size need at least {least_meta}", ftl.spare_map_superblocks),
            );
        }
        let room = u64::from(self.write_buffer_blocks) * u64::from(BLOCK_BYTES);
        if self.surplus_changes() * Changes::BYTES > room {
            return bad(
                "ftl.checkpoint_after_units",
                format!(
                    "is {}, so that recovery may find {} changes more than the table of changes holds; the write buffer, \
                     where they lie until they are written back, has room for {}",
                    ftl.checkpoint_after_units,
                    self.surplus_changes(),
                    room / Changes::BYTES
                ),
            );
        }
        let logical = self.logical_blocks();
        if self.table_units() * 4 > self.geometry.units_per_superblock() {
            return bad(
                "ftl.superblock_tables",
                format!(
                    "is true, but a table takes {} of the {} units of a superblock; at most a quarter may go to it",
                    self.table_units(),
                    self.geometry.units_per_superblock()
                ),
            );
        }
        let per_superblock = u64::from(self.data_slices());
        let data = u64::from(self.data_superblocks()) * per_superblock;
        // A superblock that is collected has to free a unit at least, or nothing is gained.
        let least_spare = per_superblock.max(data / per_superblock * u64::from(unit));
        if data < logical + least_spare {
            return bad(
                "geometry.blocks_per_plane",
                format!(
                    "gives {data} slices for data after {ANCHORS} superblocks for anchors, {} for the map and {KEPT_ERASED} \
                     that stay free; {logical} logical blocks and room to \
                     collect garbage need {}",
                    self.meta_superblocks(),
                    logical + least_spare
                ),
            );
        }
        let erased_when_full = KEPT_ERASED + ((data - logical) / per_superblock) as u32;
        if ftl.collect_below > erased_when_full {
            return bad(
                "ftl.collect_below",
                format!(
                    "is {}; with all logical blocks written at most {erased_when_full} superblocks can be erased, so \
                     collection would never rest",
                    ftl.collect_below
                ),
            );
        }
        Ok(())
    }

    fn check_hpb(&self, hpb: &HpbConfig) -> Result<(), ConfigError> {
        if !(3..=19).contains(&hpb.sub_region_size) {
            return bad(
                "hpb.sub_region_size",
                format!("is {}; 3 (one entry) to 19 (65,536 entries) are possible", hpb.sub_region_size),
            );
        }
        // Sub-regions of a region are counted in 16 bits wherever one is named (JESD220-3).
        let largest = 30.min(hpb.sub_region_size + 16);
        if !(hpb.sub_region_size..=largest).contains(&hpb.region_size) {
            return bad(
                "hpb.region_size",
                format!(
                    "is {}; a region is at least a sub-region ({}) and at most {largest}",
                    hpb.region_size, hpb.sub_region_size
                ),
            );
        }
        if hpb.max_active_regions == 0 {
            return bad("hpb.max_active_regions", "is 0, which would switch HPB off; remove [hpb] to do that");
        }
        let entries = 1u32 << (hpb.sub_region_size - 3);
        if !hpb.freshness_chunk_entries.is_power_of_two() || hpb.freshness_chunk_entries > entries {
            return bad(
                "hpb.freshness_chunk_entries",
                format!(
                    "is {}; it must be a power of two and at most the {entries} entries of a sub-region",
                    hpb.freshness_chunk_entries
                ),
            );
        }
        for (field, value) in [
            ("hpb.activate_after", hpb.activate_after),
            ("hpb.refresh_after", hpb.refresh_after),
            ("hpb.replace_after", hpb.replace_after),
        ] {
            if value == 0 {
                return bad(field, "is 0; it must be 1 to 255 reads");
            }
        }
        if !(1..=64).contains(&hpb.read_buffers) {
            return bad("hpb.read_buffers", format!("is {}; it must be 1 to 64", hpb.read_buffers));
        }
        hpb.entries.validate(hpb)?;
        if let Some(prototype) = &hpb.prototype {
            self.check_prototype(hpb, prototype)?;
        }
        if let Some(v2) = &hpb.v2 {
            self.check_hpb2(v2)?;
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
                return bad(format!("lus[{i}].max_active_regions"), "is 0; an HPB unit needs at least 1");
            }
            if lu.max_active_regions > hpb.max_active_regions {
                return bad(
                    format!("lus[{i}].max_active_regions"),
                    format!("is {}, more than the device's {}", lu.max_active_regions, hpb.max_active_regions),
                );
            }
            if lu.pinned_regions >= lu.max_active_regions {
                return bad(
                    format!("lus[{i}].pinned_regions"),
                    format!(
                        "is {}; it must be below max_active_regions ({})",
                        lu.pinned_regions, lu.max_active_regions
                    ),
                );
            }
            if lu.pinned_regions > 0 && u64::from(lu.pinned_start) + u64::from(lu.pinned_regions) > regions {
                return bad(
                    format!("lus[{i}].pinned_start"),
                    format!("puts the pinned range beyond the last of {regions} regions"),
                );
            }
        }
        Ok(())
    }
}
