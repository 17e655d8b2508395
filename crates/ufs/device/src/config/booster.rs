// SPDX-License-Identifier: MIT OR Apache-2.0
//! WriteBooster, checked against the rest of the device: the size of its buffer, and whether it can exist.

use super::error::{ConfigError, bad_value};
use super::{CellMode, DeviceConfig};

impl DeviceConfig {
    /// Units of a superblock in SLC mode; 0 without WriteBooster.
    pub(crate) fn booster_units(&self) -> u32 {
        self.units_in(CellMode::Slc)
    }

    /// Slices of a superblock in SLC mode; 0 without WriteBooster.
    pub fn booster_slices(&self) -> u32 {
        self.booster_units() * self.geometry.slices_per_unit()
    }

    /// Superblocks of the full buffer, the most that may be in SLC mode at once. 0 without WriteBooster.
    pub fn booster_superblocks(&self) -> u32 {
        self.write_booster.map_or(0, |wb| wb.buffer_blocks.div_ceil(self.booster_slices()))
    }

    /// Checks what does not depend on the other parts of the device; called before sizes are checked.
    pub(crate) fn check_booster(&self) -> Result<(), ConfigError> {
        let Some(wb) = &self.write_booster else { return Ok(()) };
        let pages = self.geometry.pages_per_block;
        if pages < wb.bits_per_cell {
            return bad_value(
                "write_booster.bits_per_cell",
                format!("is {}; a block has only {pages} pages, so none is left in SLC mode", wb.bits_per_cell),
            );
        }
        let most = self.data_superblocks();
        if wb.buffer_blocks == 0 || self.booster_superblocks() > most {
            return bad_value(
                "write_booster.buffer_blocks",
                format!(
                    "is {}; it must be 1 to {}: {most} superblocks for data, {} blocks each in SLC mode",
                    wb.buffer_blocks,
                    u64::from(most) * u64::from(self.booster_slices()),
                    self.booster_slices()
                ),
            );
        }
        Ok(())
    }
}
