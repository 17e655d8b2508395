// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a device can exist: times, units, map and flash translation.

use super::error::{ConfigError, bad, bad_unit, bad_value};
use super::{ANCHORS, CHANGE_BYTES, CellMode, DeviceConfig, MapMemory};
use readpath_flash::{PlaneReads, Scheduler};
use readpath_kit::BLOCK_BYTES;

impl DeviceConfig {
    /// Checks that the device can exist; returns the first fault found.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.geometry.check().map_err(|e| ConfigError {
            field: e.field,
            lun: None,
            says_value: false,
            message: e.message,
        })?;
        if self.geometry.dies() > 256 {
            return bad(
                "geometry.dies_per_channel",
                format!("makes {} dies; at most 256 are possible", self.geometry.dies()),
            );
        }
        if self.product_name.is_empty() || self.product_name.len() > 16 || !self.product_name.is_ascii() {
            return bad("product_name", "must be 1 to 16 ASCII characters");
        }
        for bound in DeviceConfig::BOUNDS {
            if let Some(message) = bound.violation(self) {
                return bad_value(bound.field, message);
            }
        }
        self.check_plane_reads()?;
        self.check_lus()?;
        self.check_slc()?;
        self.check_slc_cache()?;
        self.check_map()?;
        self.check_map_memory()?;
        match &self.hpb {
            Some(hpb) => self.check_hpb(hpb),
            None if self.lus.iter().any(|lu| lu.hpb) => {
                bad_unit(0, "lus[].hpb", "is on, but the device has no HPB: add an [hpb] table or switch it off")
            }
            None => Ok(()),
        }
    }

    /// Planes that read together or apart are told by bits of an address.
    fn check_plane_reads(&self) -> Result<(), ConfigError> {
        let (g, planes) = (&self.geometry, self.flash.plane_reads);
        let word = planes.name();
        if planes != PlaneReads::One && !g.planes.is_power_of_two() {
            let message = format!("is \"{word}\", for a power of two of planes; geometry.planes is {}", g.planes);
            return bad("flash.plane_reads", message);
        }
        let servers = g.dies() * g.planes_apart(planes);
        if servers > 256 {
            return bad("flash.plane_reads", format!("is \"{word}\", of {servers} planes; at most 256 are possible"));
        }
        if matches!(planes, PlaneReads::Apart | PlaneReads::Both) && self.scheduler == Scheduler::Queued {
            let message = format!(
                "is \"queued\", which knows whole dies only; with flash.plane_reads = \"{word}\" take \"lean\""
            );
            return bad("scheduler", message);
        }
        Ok(())
    }

    fn check_lus(&self) -> Result<(), ConfigError> {
        if self.lus.is_empty() || self.lus.len() > 8 {
            return bad("lus", format!("has {} logical units; 1 to 8 are possible", self.lus.len()));
        }
        for (i, lu) in self.lus.iter().enumerate() {
            if lu.blocks == 0 || lu.blocks >= 1 << 31 {
                return bad_unit(
                    i,
                    "lus[].blocks",
                    format!("is {}; a logical unit has 1 to 2^31 - 1 blocks of 4 KiB (below 8 TiB)", lu.blocks),
                );
            }
            lu.check_zones(i)?;
        }
        self.check_zone_programs()
    }

    fn check_map(&self) -> Result<(), ConfigError> {
        if self.map_page_bytes != 4096 && self.map_page_bytes != 16384 {
            return bad_value("map_page_bytes", format!("is {}; it must be 4096 or 16384", self.map_page_bytes));
        }
        if self.map_page_bytes > self.geometry.page_bytes {
            let message =
                format!("is {}, more than the flash page of {}", self.map_page_bytes, self.geometry.page_bytes);
            return bad("map_page_bytes", message);
        }
        if self.map_cache_bytes < self.map_page_bytes {
            return bad_value(
                "map_cache_bytes",
                format!(
                    "is {}; the map cache must hold at least one map page of {} bytes",
                    self.map_cache_bytes, self.map_page_bytes
                ),
            );
        }
        if self.map_read_ahead >= self.map_cache_frames() {
            return bad_value(
                "map_read_ahead",
                format!(
                    "is {}; the map cache holds {} pages, one of which is for the read itself",
                    self.map_read_ahead,
                    self.map_cache_frames()
                ),
            );
        }
        if self.map_runs_bytes > 0 && matches!(self.map_memory, Some(MapMemory::Dram { .. })) {
            return bad("map_runs_bytes", "is for a map in flash; with map_memory.kind = \"dram\" it must be 0");
        }
        let unit = self.geometry.slices_per_unit();
        if self.write_buffer_blocks < unit {
            return bad_value(
                "write_buffer_blocks",
                format!("is {}; it must hold at least one multi-plane page of {unit} blocks", self.write_buffer_blocks),
            );
        }
        self.check_ftl()
    }

    fn check_ftl(&self) -> Result<(), ConfigError> {
        let ftl = &self.ftl;
        let unit = self.geometry.slices_per_unit();
        for (field, value, least) in [
            ("ftl.move_buffer_blocks", ftl.move_buffer_blocks, 2 * unit),
            ("ftl.map_changes", ftl.map_changes, 16 * unit),
        ] {
            if value < least {
                return bad_value(field, format!("is {value}; it must be {least} or more"));
            }
        }
        let hot = ftl.hot_table_entries;
        if hot != 0 && (!hot.is_power_of_two() || hot == 1) {
            return bad_value("ftl.hot_table_entries", format!("is {hot}; it must be 0 or a power of two from 2 on"));
        }
        self.check_checkpoints()?;
        let logical = self.placed_blocks();
        let kept_erased = self.kept_erased();
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
        // Collecting a superblock must free a unit at least.
        let least_spare = per_superblock.max(data / per_superblock * u64::from(unit));
        if data < logical + least_spare {
            // Without its static cache it would do.
            let kept = u64::from(self.static_superblocks());
            let missing = (logical + least_spare - data).div_ceil(per_superblock);
            if let Some(fits) = kept.checked_sub(missing).filter(|_| kept > 0) {
                return Err(self.static_cache_too_large(fits));
            }
            return bad(
                "geometry.blocks_per_plane",
                format!(
                    "gives {data} slices for data after {ANCHORS} superblocks for anchors, {} for the map{}{} and \
                     {kept_erased} that stay free; {logical} {} and room to \
                     collect garbage need {}",
                    self.meta_superblocks(),
                    match self.static_superblocks() {
                        0 => String::new(),
                        kept => format!(", {kept} of the static cache in SLC mode"),
                    },
                    match self.kept_for_zones() {
                        0 => String::new(),
                        zones => format!(", {zones} for zones (each zone takes whole ones)"),
                    },
                    if self.has_zones() {
                        "blocks of units without zones and of rests of zones"
                    } else {
                        "logical blocks"
                    },
                    logical + least_spare
                ),
            );
        }
        let erased_when_full = kept_erased + ((data - logical) / per_superblock) as u32;
        if ftl.collect_below > erased_when_full {
            return bad_value(
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

    /// Checks that checkpoints fit, and so do the units that recovery may find behind one.
    fn check_checkpoints(&self) -> Result<(), ConfigError> {
        let ftl = &self.ftl;
        let unit = self.geometry.slices_per_unit();
        let parts = (unit * BLOCK_BYTES / self.map_page_bytes) * (self.units_in(self.map_cells()) - 1);
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
        // A checkpoint's own units count towards the next one; if they alone made it due, checkpoints would never
        // end.
        let own = self.checkpoint_parts().div_ceil(unit * BLOCK_BYTES / self.map_page_bytes);
        if ftl.checkpoint_after_units <= own + 1 {
            return bad_value(
                "ftl.checkpoint_after_units",
                format!(
                    "is {}; a checkpoint alone takes {own}, so it must be {} or more",
                    ftl.checkpoint_after_units,
                    own + 2
                ),
            );
        }
        // The newest checkpoint and the one being written, the open superblock, the next one, and one being emptied.
        // In SLC mode superblocks are small: what is written between two checkpoints, which recovery needs until the
        // next is complete, may fill several.
        let each = match self.map_cells() {
            CellMode::Full => self.checkpoint_parts().div_ceil(parts),
            mode => (own + ftl.checkpoint_after_units).div_ceil(self.units_in(mode).saturating_sub(1).max(1)),
        };
        let least_meta = 3 + 2 * each;
        if ftl.spare_map_superblocks < least_meta {
            return bad_value(
                "ftl.spare_map_superblocks",
                format!(
                    "is {}; checkpoints of this size, this far apart, need at least {least_meta}",
                    ftl.spare_map_superblocks
                ),
            );
        }
        let room = u64::from(self.write_buffer_blocks) * u64::from(BLOCK_BYTES);
        if self.surplus_changes() * CHANGE_BYTES > room {
            let fits = |units: &u32| {
                let mut other = self.clone();
                other.ftl.checkpoint_after_units = *units;
                other.surplus_changes() * CHANGE_BYTES <= room
            };
            let halves = std::iter::successors(Some(ftl.checkpoint_after_units / 2), |units| Some(units / 2));
            let smaller = halves.take_while(|units| *units > own + 1).find(fits);
            let smaller = smaller.map_or_else(
                || "; a larger map_changes or write buffer would help".to_owned(),
                |units| format!("; with {units} it fits"),
            );
            return bad_value(
                "ftl.checkpoint_after_units",
                format!(
                    "is {}, so that recovery may find {} changes more than the table of changes holds; the write \
                     buffer, where they lie until they are written back, has room for {}{smaller}",
                    ftl.checkpoint_after_units,
                    self.surplus_changes(),
                    room / CHANGE_BYTES
                ),
            );
        }
        Ok(())
    }
}
