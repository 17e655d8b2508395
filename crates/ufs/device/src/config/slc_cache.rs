// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cache in SLC mode, or in one of a few more bits: who decides what it takes, its size, what that costs, and
//! whether it can exist in the device.

use super::error::{ConfigError, bad, bad_value};
use super::{ANCHORS, CacheCells, DeviceConfig};
use readpath_kit::BLOCK_BYTES;

/// Who decides when data of the host goes to the cache and when it leaves it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheOwner {
    /// The host, by the flags of WriteBooster (JESD220F).
    Host,
    /// The device: all data goes to the cache while it has room.
    Device {
        /// Whether idle time empties the cache.
        folds_when_idle: bool,
    },
}

/// A cache for data of the host, shared by all logical units and made of superblocks whose cells hold fewer bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlcCacheConfig {
    /// Who decides about it.
    pub owner: CacheOwner,
    /// Data in superblocks that serve nothing else, in blocks of 4 KiB. Rounded up to whole superblocks.
    pub static_blocks: u32,
    /// The most data beyond that, in superblocks that are lent to the cache while they are free. Rounded up likewise.
    /// It takes no space away from the logical units.
    pub dynamic_blocks: u32,
    /// Its cells, if they hold more than one bit. Otherwise they are those of [`super::SlcConfig`].
    pub cells: Option<CacheCells>,
}

impl SlcCacheConfig {
    /// WriteBooster's buffer of so many blocks (dNumSharedWriteBoosterBufferAllocUnits): the host decides, and all of
    /// it is lent.
    pub const fn write_booster(buffer_blocks: u32) -> Self {
        SlcCacheConfig { owner: CacheOwner::Host, static_blocks: 0, dynamic_blocks: buffer_blocks, cells: None }
    }
}

impl DeviceConfig {
    /// The cache, if it is WriteBooster's buffer.
    pub fn write_booster(&self) -> Option<SlcCacheConfig> {
        self.slc_cache.filter(|cache| cache.owner == CacheOwner::Host)
    }

    /// Superblocks that serve the cache only.
    pub fn static_superblocks(&self) -> u32 {
        self.slc_cache.map_or(0, |cache| self.slc_superblocks(cache.static_blocks))
    }

    /// Superblocks of the full cache, the most that it may have at once. 0 without a cache.
    pub fn cache_superblocks(&self) -> u32 {
        let lent = self.slc_cache.map_or(0, |cache| self.slc_superblocks(cache.dynamic_blocks));
        self.static_superblocks() + lent
    }

    /// Superblocks of the cache that hold so many blocks.
    fn slc_superblocks(&self, blocks: u32) -> u32 {
        blocks
            .checked_div(self.cache_slices())
            .map_or(0, |whole| whole + u32::from(!blocks.is_multiple_of(self.cache_slices())))
    }

    /// The logical units leave so many superblocks to the static part of the cache, which takes more.
    pub(crate) fn static_cache_too_large(&self, superblocks: u64) -> ConfigError {
        let mib = |blocks: u64| blocks / u64::from((1 << 20) / BLOCK_BYTES);
        let kept = self.slc_cache.map_or(0, |cache| cache.static_blocks);
        let most = mib(superblocks * u64::from(self.cache_slices()));
        let says = format!("is {} MiB; the logical units leave room for at most {most} MiB", mib(kept.into()));
        ConfigError { field: "slc_cache.static_blocks", lun: None, says_value: false, message: says }
    }

    /// Checks the size of the cache; cells in SLC mode have been checked.
    pub(crate) fn check_slc_cache(&self) -> Result<(), ConfigError> {
        let Some(cache) = &self.slc_cache else { return Ok(()) };
        let Some(slc) = &self.slc else {
            return bad("slc", "is missing; a cache in SLC mode needs the times and the size of such cells");
        };
        if let Some(cells) = cache.cells.filter(|cells| cells.bits >= slc.bits_per_cell) {
            let full = slc.bits_per_cell;
            let says = format!("is {}; it must be less than slc.bits_per_cell, which is {full}", cells.bits);
            return bad_value("slc_cache.cells.bits", says);
        }
        if cache.cells.is_some() && cache.owner == CacheOwner::Host {
            return bad("slc_cache.cells", "stands with WriteBooster, whose buffer is in SLC mode");
        }
        let others = ANCHORS + self.meta_superblocks() + self.kept_erased() + self.kept_for_zones();
        let most = u64::from(self.geometry.superblocks().saturating_sub(others));
        let each = self.cache_slices();
        let mib = |blocks: u64| blocks / u64::from((1 << 20) / BLOCK_BYTES);
        let room = format!(
            "at most {} MiB: {most} superblocks for data, {each} blocks each in the mode of the cache",
            mib(most * u64::from(each))
        );
        if cache.static_blocks == 0 && cache.dynamic_blocks == 0 {
            return bad("slc_cache", "has no size; static_mib or dynamic_mib must be above 0");
        }
        if u64::from(self.static_superblocks()) > most {
            let says = format!("is {} MiB; it may be {room}", mib(cache.static_blocks.into()));
            return bad("slc_cache.static_blocks", says);
        }
        if u64::from(self.cache_superblocks()) > most {
            let dynamic = mib(cache.dynamic_blocks.into());
            let says = match cache.static_blocks {
                0 => format!("is {dynamic} MiB; it may be {room}"),
                kept => {
                    format!("is {dynamic} MiB beside a static part of {} MiB; both may be {room}", mib(kept.into()))
                }
            };
            return bad("slc_cache.dynamic_blocks", says);
        }
        Ok(())
    }
}
