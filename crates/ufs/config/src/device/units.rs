// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of logical units, and the list of fitted keys.

use super::preset::DevicePreset;
use crate::error::Result;
use crate::keys::{Key, Keys, blocks_of_kib, fields, flag, gib, keys, list, table, text, whole, words};
use crate::tree::Value;
use readpath_device::{LuConfig, ZoneConfig, ZoneLayout, ZoneRule};

pub(super) fn read(k: &mut Keys<DevicePreset>, device_has_hpb: bool) -> Result<Vec<LuConfig>> {
    let units = Key::new("lu", "logical units").of("lus");
    let units = k.key(units, list(table(unit), "an array of tables"), |preset| preset.device.lus.clone())?;
    let message = "is true, but the device has no HPB; add an [hpb] table, or make it false";
    for (i, unit) in units.iter().enumerate() {
        k.refuse(unit.hpb && !device_has_hpb, &format!("lu[{i}].hpb"), message)?;
    }
    Ok(units)
}

fn unit(k: &mut Keys<LuConfig>) -> Result<LuConfig> {
    const CAPACITY: &str = "a capacity in GiB (or blocks = a number of 4 KiB blocks)";
    let from_millionths = |millionths: u64| {
        let blocks = u128::from(millionths) << 18;
        let whole = blocks.is_multiple_of(1_000_000).then_some((blocks / 1_000_000) as u32);
        whole.ok_or_else(|| "is no whole number of 4 KiB blocks; give blocks instead".to_owned())
    };
    // Only read; the size is written in blocks.
    let in_gib = gib(CAPACITY).parsed(from_millionths, |_| Value::number(0.0)).optional();
    let capacity = Key::new("capacity_gib", "capacity, a whole number of 4 KiB blocks; or give `blocks`").of("blocks");
    let capacity = k.key(capacity, in_gib, |_| None)?;
    let blocks = Key::new("blocks", "capacity in blocks of 4 KiB; or give `capacity_gib`");
    let blocks = k.key(blocks, whole(0..=u64::from(u32::MAX)).optional(), |unit| Some(unit.blocks))?;
    let twice = capacity.is_some() && blocks.is_some();
    k.refuse(twice, "blocks", "and capacity_gib say the same; keep one of them")?;
    let blocks = capacity.or(blocks);
    k.refuse(blocks.is_none(), "capacity_gib", format!("is missing; expected {CAPACITY}"))?;
    let count = || whole::<u16>(0..=65_535);
    fields! { k:
        /// bLUEnable = 02h
        hpb: flag();
    }
    let active = Key::new("max_active_regions", "wLUMaxActiveHPBRegions, pinned regions included; 0 without HPB");
    let active = k.key(active, count().optional(), |unit| Some(unit.max_active_regions))?;
    let unit = keys!(k => LuConfig {
        /// wHPBPinnedRegionStartIdx
        pinned_start: count().or(0);
        /// wNumHPBPinnedRegions
        pinned_regions: count().or(0);
        /// zones: the unit takes sequential writes only, as a zoned UFS device (peripheral type 14h)
        zones: table(zones).optional();
        .. blocks: blocks.unwrap_or_default(), hpb, max_active_regions: active.unwrap_or_default()
    });
    // A unit with zones has no HPB, which is said where that is known.
    let message = "is missing; expected a whole number from 0 to 65535";
    k.refuse(hpb && active.is_none() && unit.zones.is_none(), "max_active_regions", message)?;
    Ok(unit)
}

fn zones(k: &mut Keys<ZoneConfig>) -> Result<ZoneConfig> {
    const MIB_BLOCKS: u64 = 256;
    let mib =
        whole(1..=4096).scaled(|mib| mib * MIB_BLOCKS, |blocks| blocks / MIB_BLOCKS, " (counted in blocks of 4 KiB)");

    let kib = || blocks_of_kib(1..=1 << 20);
    Ok(keys!(k => ZoneConfig {
        /// data that a zone holds
        blocks = "size_mib": mib;
        /// how zones lie in the unit's blocks: `power-of-two`, which Linux takes; `gaps`, each at a multiple of the
        /// next power of two, which Linux takes too; `native`, one behind the other in any size, as in phones
        layout: words(ZoneLayout::WORDS).or(ZoneLayout::PowerOfTwo);
        /// zones that may be open (VPD B6h, maximum number of open sequential write required zones)
        most_open: whole(1..=65_535).or(6);
        /// which zones count against `most_open`: `zbc`, those that are open; `zufs`, those that are open or closed
        rule: words(ZoneRule::WORDS).or(ZoneRule::Zbc);
        /// data of a zone that a die programs together: some multi-plane pages (FAST'26: 192, three of 64)
        program_blocks = "program_kib": kib().or(48);
        /// data of a zone that waits in the write buffer before it is programmed, a multiple of `program_kib`
        flush_blocks = "flush_kib": kib().or(48);
    }))
}

#[derive(Clone)]
struct Calibration {
    fitted: Vec<(String, String)>,
}

pub(super) fn fitted(k: &mut Keys<DevicePreset>) -> Result<Vec<(String, String)>> {
    let pair = |k: &mut Keys<(String, String)>| {
        let key = k.key(Key::new("key", "a key of this file"), text(), |(key, _)| key.clone())?;
        let to = k.key(Key::new("to", "the published row that it was fitted to"), text(), |(_, to)| to.clone())?;
        Ok((key, to))
    };
    let all = |k: &mut Keys<Calibration>| {
        Ok(keys!(k => Calibration {
            /// `{ key = "firmware.flash_op_us", to = "iozone 1 GB, HPB off" }`: the key was chosen to reproduce the
            /// published row
            fitted: list(table(pair), "an array of tables");
        }))
    };
    let key = Key::new("calibration", "what was fitted").of("");
    let none = Calibration { fitted: Vec::new() };
    let fitted = k.key(key, table(all).or(none), |preset| Calibration { fitted: preset.fitted.clone() })?.fitted;
    for (i, (key, _)) in fitted.iter().enumerate() {
        let message = format!("is {key:?}, which is no key of this file");
        k.refuse(!k.has(key), &format!("calibration.fitted[{i}].key"), message)?;
    }
    Ok(fitted)
}
