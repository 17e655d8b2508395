// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a device can exist: times, units, map and flash translation.

use super::error::{ConfigError, bad};
use super::{DeviceConfig, KEPT_ERASED};
use crate::ftl::map::Changes;
use crate::ftl::space::ANCHORS;
use readpath_kit::{BLOCK_BYTES, Ns};

impl DeviceConfig {
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
            ("firmware.unmapped_read", self.firmware.unmapped_read.unwrap_or_default()),
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
        self.check_checkpoints()?;
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
                    "gives {data} slices for data after {ANCHORS} superblocks for anchors, {} for the map and \
                     {KEPT_ERASED} that stay free; {logical} logical blocks and room to \
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

    /// Checks that checkpoints fit, and what recovery may find behind one.
    fn check_checkpoints(&self) -> Result<(), ConfigError> {
        let ftl = &self.ftl;
        let unit = self.geometry.slices_per_unit();
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
                    "is {}, so that recovery may find {} changes more than the table of changes holds; the write \
                     buffer, where they lie until they are written back, has room for {}",
                    ftl.checkpoint_after_units,
                    self.surplus_changes(),
                    room / Changes::BYTES
                ),
            );
        }
        Ok(())
    }
}
