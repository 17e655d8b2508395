// SPDX-License-Identifier: MIT OR Apache-2.0
//! Modes in which the cells of a superblock can be written, and the size and times of each.

use super::error::{ConfigError, bad, bad_value};
use super::{ANCHORS, DeviceConfig};
use readpath_kit::Ns;

/// How many bits the cells of a superblock hold, and, of fewer than they can, what for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum CellMode {
    /// As many as the cells can hold.
    #[default]
    Full,
    /// One bit for the cache, or more ([`super::SlcCacheConfig::cells`]): fewer pages, but faster ones.
    Cache,
    /// One bit, for what the device itself keeps there: map pages, journal and checkpoints, rests of zones.
    SlcMap,
}

impl CellMode {
    /// Number of modes.
    pub const COUNT: usize = 3;
    /// All modes.
    pub const ALL: [CellMode; CellMode::COUNT] = [CellMode::Full, CellMode::Cache, CellMode::SlcMap];

    /// Number from 0 on.
    #[inline]
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Modes of what the device writes for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct OwnCells {
    /// Map pages, journal and checkpoints.
    pub meta: CellMode,
    /// Rests of zones.
    pub rests: CellMode,
}

/// Cells that are written with one bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlcConfig {
    /// Bits that a cell holds otherwise, 2 to 5: in SLC mode a block has a page for this many pages of the full mode.
    pub bits_per_cell: u32,
    /// tR of a page.
    pub read: Ns,
    /// tPROG of a multi-plane page.
    pub program: Ns,
    /// tBERS of a block.
    pub erase: Ns,
    /// Erases that a block endures in SLC mode.
    pub life_erases: u32,
    /// Whether map pages, journal and checkpoints are written in SLC mode.
    pub holds_map: bool,
    /// Whether data that leaves the cache stays on its die: it is neither sent to the controller nor back.
    pub folds_on_die: bool,
}

/// Cells of a cache that hold more than one bit, but fewer than they can: a QLC drive may have its cache in TLC mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheCells {
    /// Bits that a cell holds in the cache, from 2 to one less than it can.
    pub bits: u32,
    /// tR of a page.
    pub read: Ns,
    /// tPROG of a multi-plane page.
    pub program: Ns,
    /// tBERS of a block.
    pub erase: Ns,
    /// Erases that a block endures in this mode.
    pub life_erases: u32,
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
    /// Cells in a mode; `None` if they hold all their bits. Without an `slc` no superblock is in another mode.
    fn fewer_bits(&self, mode: CellMode) -> Option<CacheCells> {
        let cells = self.slc_cache.and_then(|cache| cache.cells).filter(|_| mode == CellMode::Cache);
        let slc = self.slc.filter(|_| mode != CellMode::Full)?;
        let SlcConfig { read, program, erase, life_erases, .. } = slc;
        Some(cells.unwrap_or(CacheCells { bits: 1, read, program, erase, life_erases }))
    }

    /// Array times in a mode. Reads of map pages have a time of their own ([`super::FlashTiming::map_read`]), in SLC
    /// mode the same as others.
    pub(crate) fn cell_times(&self, mode: CellMode) -> CellTimes {
        let t = &self.flash;
        match self.fewer_bits(mode) {
            Some(cells) => CellTimes { read: cells.read, program: cells.program, erase: cells.erase },
            None => CellTimes { read: t.read, program: t.program, erase: t.erase },
        }
    }

    /// Pages of a block in a mode: in proportion to the bits that its cells hold, rounded down. Without cells in SLC
    /// mode there are none in such a mode.
    pub fn pages_in(&self, mode: CellMode) -> u32 {
        let pages = self.geometry.pages_per_block;
        match (mode, &self.slc, self.fewer_bits(mode)) {
            (CellMode::Full, ..) => pages,
            (_, Some(slc), Some(cells)) => {
                (u64::from(pages) * u64::from(cells.bits) / u64::from(slc.bits_per_cell)) as u32
            }
            _ => 0,
        }
    }

    /// Units of a superblock in a mode.
    pub(crate) fn units_in(&self, mode: CellMode) -> u32 {
        self.pages_in(mode) * self.geometry.dies()
    }

    /// Modes of what the device writes for itself.
    pub(crate) fn own_cells(&self) -> OwnCells {
        let rests = if self.slc.is_some() { CellMode::SlcMap } else { CellMode::Full };
        OwnCells { meta: self.map_cells(), rests }
    }

    /// Mode of map pages, journal and checkpoints.
    pub(crate) fn map_cells(&self) -> CellMode {
        if self.slc.is_some_and(|slc| slc.holds_map) { CellMode::SlcMap } else { CellMode::Full }
    }

    /// What these erases of blocks have used of the life of all cells, by mode: 1 is all of it. Anchors have
    /// superblocks of their own and do not count. Any superblock may serve any mode, so the shares add up.
    pub fn life_used(&self, erases: [f64; CellMode::COUNT]) -> [f64; CellMode::COUNT] {
        let blocks = u64::from(self.geometry.superblocks() - ANCHORS) * u64::from(self.geometry.dies());
        CellMode::ALL.map(|mode| {
            let life = self.fewer_bits(mode).map_or(self.flash.life_erases, |cells| cells.life_erases);
            erases[mode.index()] / (blocks * u64::from(life)) as f64
        })
    }

    /// Erases of superblocks in its mode after which the cache takes no more data; 0 without a cache.
    pub fn cache_life(&self) -> u64 {
        let life = self.fewer_bits(CellMode::Cache).map_or(0, |cells| cells.life_erases);
        u64::from(life) * u64::from(self.cache_superblocks())
    }

    /// Bad blocks in percent of those that the device has in reserve: a device with more may be unable to hold all
    /// of its logical blocks.
    pub(crate) fn reserve_used_percent(&self, bad_blocks: u32) -> u64 {
        let needed = self.placed_blocks().div_ceil(u64::from(self.data_slices().max(1)));
        let reserve = u64::from(self.data_superblocks()).saturating_sub(needed).max(1);
        u64::from(bad_blocks) * 100 / (reserve * u64::from(self.geometry.dies()))
    }

    /// Slices of a superblock of the cache; 0 if the device cannot have one.
    pub fn cache_slices(&self) -> u32 {
        self.units_in(CellMode::Cache) * self.geometry.slices_per_unit()
    }

    /// Checks the times and the size of cells in SLC mode.
    pub(crate) fn check_slc(&self) -> Result<(), ConfigError> {
        let Some(slc) = &self.slc else { return Ok(()) };
        let pages = self.geometry.pages_per_block;
        if pages < slc.bits_per_cell {
            return bad_value(
                "slc.bits_per_cell",
                format!("is {}; a block has only {pages} pages, so none is left in SLC mode", slc.bits_per_cell),
            );
        }
        if slc.holds_map && self.flash.map_read != slc.read {
            return bad(
                "slc.holds_map",
                format!(
                    "is true, but flash.map_read_us is {} and slc.read_us is {}; a map in SLC mode is read in the \
                     time of that mode, so both must be equal",
                    self.flash.map_read.0 as f64 / 1000.0,
                    slc.read.0 as f64 / 1000.0
                ),
            );
        }
        Ok(())
    }
}
