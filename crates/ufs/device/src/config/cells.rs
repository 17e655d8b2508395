// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modes in which the cells of a superblock can be written, and what each means for its size and its times.

use super::DeviceConfig;
use readpath_kit::Ns;

/// How many bits a superblock's cells are written with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum CellMode {
    /// All that the cells can hold.
    #[default]
    Full,
    /// One: fewer pages, but faster ones.
    Slc,
}

impl CellMode {
    /// How many modes there are.
    pub const COUNT: usize = 2;
    /// All of them.
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
    /// Array times in a mode. The map is never written in another mode than [`CellMode::Full`], whose reads of map
    /// pages have a time of their own. Without WriteBooster no superblock is in SLC mode.
    pub(crate) fn cell_times(&self, mode: CellMode) -> CellTimes {
        let t = &self.flash;
        match (mode, &self.write_booster) {
            (CellMode::Slc, Some(wb)) => CellTimes { read: wb.slc_read, program: wb.slc_program, erase: wb.slc_erase },
            (CellMode::Full | CellMode::Slc, _) => CellTimes { read: t.read, program: t.program, erase: t.erase },
        }
    }

    /// Units of a superblock in a mode: as many of its pages as the cells hold bits in this mode of those that they
    /// can hold. Without WriteBooster there are none in SLC mode.
    pub(crate) fn units_in(&self, mode: CellMode) -> u32 {
        let g = &self.geometry;
        match mode {
            CellMode::Full => g.units_per_superblock(),
            CellMode::Slc => self.write_booster.map_or(0, |wb| g.pages_per_block / wb.bits_per_cell * g.dies()),
        }
    }
}
