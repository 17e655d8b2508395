// SPDX-License-Identifier: MIT OR Apache-2.0
//! WriteBooster: size and times of its buffer, what that takes, and whether it can exist in the device.

use super::error::{ConfigError, bad_value};
use super::{CellMode, DeviceConfig};
use readpath_kit::Ns;

/// WriteBooster (JESD220F): one buffer shared by all logical units, made of superblocks in SLC mode. It takes no space
/// away from the logical units: superblocks are lent to it while they are free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteBoosterConfig {
    /// The most data that the buffer holds, in blocks of 4 KiB (dNumSharedWriteBoosterBufferAllocUnits). It is rounded
    /// up to whole superblocks, see [`DeviceConfig::booster_superblocks`].
    pub buffer_blocks: u32,
    /// Bits of a cell outside the buffer, 2 to 5: in SLC mode a block has a page for this many pages of the full mode
    /// (bWriteBoosterBufferCapAdjFac).
    pub bits_per_cell: u32,
    /// tR of a page in SLC mode.
    pub slc_read: Ns,
    /// tPROG of a multi-plane page in SLC mode.
    pub slc_program: Ns,
    /// tBERS of a block in SLC mode.
    pub slc_erase: Ns,
    /// Mean number of erases that the superblocks of the buffer endure (bWriteBoosterBufferLifeTimeEst). After them
    /// the buffer accepts no more data.
    pub life_erases: u32,
}

impl DeviceConfig {
    /// Slices of a superblock in SLC mode; 0 without WriteBooster.
    pub fn booster_slices(&self) -> u32 {
        self.units_in(CellMode::Slc) * self.geometry.slices_per_unit()
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
