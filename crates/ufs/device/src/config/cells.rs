// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modes in which the cells of a superblock can be written, and the size and times of each.

use super::DeviceConfig;
use readpath_kit::Ns;

/// How many bits the cells of a superblock hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum CellMode {
    /// As many as the cells can hold.
    #[default]
    Full,
    /// One bit: fewer pages, but faster ones.
    Slc,
}

impl CellMode {
    /// Number of modes.
    pub const COUNT: usize = 2;
    /// All modes.
    pub const ALL: [CellMode; CellMode::COUNT] = [CellMode::Full, CellMode::Slc];

    /// Number from 0 on.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Array times in one mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CellTimes {
    /// tR of a page.
    pub read: Ns,
    /// tPROG of a multi-plane page.
    pub program: Ns,
    /// tBERS of a block.
    pub erase: Ns,
}

impl DeviceConfig {
    /// Array times in a mode. The map is always written in [`CellMode::Full`]; reads of map pages have a time of
    /// their own. Without WriteBooster no superblock is in SLC mode.
    pub(crate) fn cell_times(&self, mode: CellMode) -> CellTimes {
        let t = &self.flash;
        match (mode, &self.write_booster) {
            (CellMode::Slc, Some(wb)) => CellTimes { read: wb.slc_read, program: wb.slc_program, erase: wb.slc_erase },
            (CellMode::Full | CellMode::Slc, _) => CellTimes { read: t.read, program: t.program, erase: t.erase },
        }
    }

    /// Units of a superblock in a mode: in proportion to the bits that its cells hold. Without WriteBooster there are
    /// none in SLC mode.
    pub(crate) fn units_in(&self, mode: CellMode) -> u32 {
        let g = &self.geometry;
        match mode {
            CellMode::Full => g.units_per_superblock(),
            CellMode::Slc => self.write_booster.map_or(0, |wb| g.pages_per_block / wb.bits_per_cell * g.dies()),
        }
    }
}
