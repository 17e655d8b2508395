// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of cells in SLC mode and of the cache: WriteBooster's buffer or the device's own.

use super::{DevicePreset, bounds};
use crate::error::Result;
use crate::keys::{Key, Keys, fields, flag, keys, multiple, table, us, whole, words};
use readpath_device::{CacheCells, CacheOwner, SlcCacheConfig, SlcConfig};
use readpath_proto::booster::ALLOCATION_UNIT_BLOCKS;

/// Blocks of 4 KiB in a MiB.
const MIB_BLOCKS: u64 = 256;
const UNIT_MIB: u64 = ALLOCATION_UNIT_BLOCKS as u64 / MIB_BLOCKS;

/// `[slc]`, `[write_booster]` and `[slc_cache]`.
pub(super) fn read(k: &mut Keys<DevicePreset>) -> Result<(Option<SlcConfig>, Option<SlcCacheConfig>)> {
    for moved in ["bits_per_cell", "slc_read_us", "slc_program_us", "slc_erase_us", "life_erases"] {
        let old = format!("write_booster.{moved}");
        let message = format!("stands in the table [slc] now, as {}", moved.trim_start_matches("slc_"));
        k.refuse(k.has(&old), &old, message)?;
    }
    fields! { k:
        /// cells that are written with one bit
        slc of device: table(cells).optional();
    }
    let booster = Key::new("write_booster", "WriteBooster").of("slc_cache");
    let booster = k.key(booster, table(write_booster).optional(), |preset| preset.device.write_booster())?;
    let own = Key::new(
        "slc_cache",
        "a cache in SLC mode, or one of a few more bits, that the device uses without being asked",
    );
    let is_own = |cache: &SlcCacheConfig| cache.owner != CacheOwner::Host;
    let own = k.key(own, table(own_cache).optional(), |preset| preset.device.slc_cache.filter(is_own))?;
    let message = "stands beside [write_booster]; a device has one cache in SLC mode, under the flags of the host \
                   ([write_booster]) or its own ([slc_cache])";
    k.refuse(booster.is_some() && own.is_some(), "slc_cache", message)?;
    Ok((slc, booster.or(own)))
}

fn cells(k: &mut Keys<SlcConfig>) -> Result<SlcConfig> {
    let through = [("controller", false), ("die", true)];
    Ok(keys!(k => SlcConfig {
        /// bits of a cell otherwise (bWriteBoosterBufferCapAdjFac). In SLC mode a block has
        /// `pages_per_block / bits_per_cell` pages, rounded down
        bits_per_cell: whole(bounds("slc.bits_per_cell"));
        /// tR of a page
        read = "read_us": us(bounds("slc.read"));
        /// tPROG of a multi-plane page
        program = "program_us": us(bounds("slc.program"));
        /// tBERS of a block
        erase = "erase_us": us(bounds("slc.erase"));
        /// erases that a block endures in SLC mode. After as many, as a mean of its superblocks, the cache takes no
        /// more data (bWriteBoosterBufferLifeTimeEst)
        life_erases: whole(bounds("slc.life_erases"));
        /// whether map pages, journal and checkpoints are written in SLC mode; then `flash.map_read_us` is `read_us`
        holds_map: flag().or(false);
        /// how data leaves the cache: `controller`, over the channel and back, or `die`, within its die
        folds_on_die = "fold": words(through).or(false);
    }))
}

fn write_booster(k: &mut Keys<SlcCacheConfig>) -> Result<SlcCacheConfig> {
    let buffer_mib = multiple(UNIT_MIB..=u64::from(u32::MAX) / MIB_BLOCKS, UNIT_MIB);
    fields! { k:
        /// capacity of the buffer (dNumSharedWriteBoosterBufferAllocUnits). Rounded up to whole superblocks in SLC
        /// mode, at most all superblocks of data
        dynamic_blocks = "buffer_mib":
            buffer_mib.scaled(|mib| mib * MIB_BLOCKS, |blocks| blocks / MIB_BLOCKS, " (counted in blocks of 4 KiB)");
    }
    let mode = Key::new(
        "mode",
        "bWriteBoosterBufferType: `shared` (1). `dedicated` (0), a buffer of one logical unit, is not supported and \
            refused",
    );
    let shared = k.key(mode, words([("shared", true), ("dedicated", false)]).or(true), |_| true)?;
    k.refuse(!shared, "mode", "is \"dedicated\"; only a buffer that all logical units share is built: \"shared\"")?;
    let preserve = Key::new(
        "preserve_user_space",
        "bWriteBoosterBufferPreserveUserSpaceEn: true (1), the buffer uses space that is free at the moment. false \
            (0), a buffer that takes space from the logical units, is not supported and refused",
    );
    let preserves = k.key(preserve, flag().or(true), |_| true)?;
    let message = "is false; a buffer that takes space from the logical units is not built";
    k.refuse(!preserves, "preserve_user_space", message)?;
    Ok(SlcCacheConfig::write_booster(dynamic_blocks))
}

fn own_cache(k: &mut Keys<SlcCacheConfig>) -> Result<SlcCacheConfig> {
    let mib = || {
        let mib = whole(0..=u64::from(u32::MAX) / MIB_BLOCKS);
        mib.scaled(|mib| mib * MIB_BLOCKS, |blocks| blocks / MIB_BLOCKS, " (counted in blocks of 4 KiB)").or(0)
    };
    fields! { k:
        /// data in superblocks that serve nothing else. Rounded up to whole superblocks in that mode
        static_blocks = "static_mib": mib();
        /// the most data beyond that, in superblocks that are free at the moment; rounded up likewise. The fuller the
        /// device, the fewer of them there are
        dynamic_blocks = "dynamic_mib": mib();
    }
    let fold = Key::new("fold_when_idle", "whether the cache is emptied when no command came for `ftl.idle_after_ms`");
    let folds_when_idle = k.key(fold.of(""), flag().or(true), |cache| {
        matches!(cache.owner, CacheOwner::Device { folds_when_idle: true })
    })?;
    let cells = Key::new("cells", "cells of the cache, if they hold more than one bit, as in TLC mode on QLC flash");
    let cells = k.key(cells, table(cache_cells).optional(), |cache| cache.cells)?;
    Ok(SlcCacheConfig { owner: CacheOwner::Device { folds_when_idle }, static_blocks, dynamic_blocks, cells })
}

fn cache_cells(k: &mut Keys<CacheCells>) -> Result<CacheCells> {
    Ok(keys!(k => CacheCells {
        /// bits of a cell in the cache, fewer than `slc.bits_per_cell`. A block has `pages_per_block * bits /
        /// slc.bits_per_cell` pages then, rounded down
        bits: whole(bounds("slc_cache.cells.bits"));
        /// tR of a page
        read = "read_us": us(bounds("slc_cache.cells.read"));
        /// tPROG of a multi-plane page
        program = "program_us": us(bounds("slc_cache.cells.program"));
        /// tBERS of a block
        erase = "erase_us": us(bounds("slc_cache.cells.erase"));
        /// erases that a block endures in this mode
        life_erases: whole(bounds("slc_cache.cells.life_erases"));
    }))
}
