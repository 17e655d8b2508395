// SPDX-License-Identifier: MIT OR Apache-2.0
//! Zones of a logical unit: their sizes, and how many may be open.

use super::error::{ConfigError, bad_unit};
use super::{DeviceConfig, LuConfig};

readpath_kit::named! {
    /// How the zones of a unit lie in its logical blocks.
    pub enum ZoneLayout {
        /// One behind the other, each a power of two: what Linux takes.
        PowerOfTwo = "power-of-two",
        /// Each begins at a multiple of the next power of two; behind it is a gap without blocks. Linux takes that
        /// too, so a zone may have any size.
        Gaps = "gaps",
        /// One behind the other, of any size: what phones have. Linux as released refuses it; Android's does not.
        Native = "native",
    }
}

readpath_kit::named! {
    /// Which zones count against the limit on open ones.
    pub enum ZoneRule {
        /// Zones that are open, by a write or by OPEN ZONE. If all may be closed but those opened by OPEN ZONE, a write
        /// closes one of the others (ZBC-2).
        Zbc = "zbc",
        /// Zones that are open or closed, as zoned UFS devices are said to count. A write that needs one more is
        /// refused; what a real device does then is not published.
        Zufs = "zufs",
    }
}

/// The zones of a logical unit. All need sequential writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneConfig {
    /// How they lie.
    pub layout: ZoneLayout,
    /// Blocks of each.
    pub blocks: u32,
    /// Zones that may be open.
    pub most_open: u32,
    /// Which of them count.
    pub rule: ZoneRule,
}

impl ZoneConfig {
    /// Bytes of SRAM for each zone: its write pointer and its condition.
    pub const ENTRY_BYTES: u64 = 8;

    /// Blocks from the start of a zone to that of the next.
    pub fn stride(&self) -> u32 {
        match self.layout {
            ZoneLayout::Gaps => self.blocks.checked_next_power_of_two().unwrap_or(u32::MAX),
            ZoneLayout::PowerOfTwo | ZoneLayout::Native => self.blocks,
        }
    }

    /// Zone starting LBA granularity (ZBC-2): where gaps lie between zones, the stride; otherwise 0.
    pub(crate) fn granularity(&self) -> u64 {
        if self.gap() > 0 { self.stride().into() } else { 0 }
    }

    /// Blocks between the end of a zone and the start of the next.
    pub fn gap(&self) -> u32 {
        self.stride() - self.blocks
    }
}

impl DeviceConfig {
    /// Blocks of each zone, unit by unit.
    pub(crate) fn zone_blocks(&self) -> impl Iterator<Item = u32> {
        let of =
            |lu: &LuConfig| std::iter::repeat_n(lu.zones.map_or(0, |zones| zones.blocks), lu.zone_count() as usize);
        self.lus.iter().flat_map(of)
    }

    /// SRAM, and room in a checkpoint, for the zones of all units: 8 bytes each.
    pub(crate) fn zone_bytes(&self) -> u64 {
        self.lus.iter().map(|lu| u64::from(lu.zone_count()) * ZoneConfig::ENTRY_BYTES).sum()
    }
}

impl LuConfig {
    /// Zones of the unit; 0 if it is a conventional one.
    pub fn zone_count(&self) -> u32 {
        self.zones.map_or(0, |zones| self.blocks / zones.stride().max(1))
    }

    /// Logical blocks that can hold data: all but those in gaps.
    pub fn data_blocks(&self) -> u32 {
        self.zones.map_or(self.blocks, |zones| self.zone_count() * zones.blocks)
    }

    /// Blocks before `block` that can hold data.
    pub fn data_blocks_before(&self, block: u32) -> u32 {
        let Some(zones) = &self.zones else { return block };
        block / zones.stride() * zones.blocks + (block % zones.stride()).min(zones.blocks)
    }

    /// The number of a block among those that can hold data; `None` of one in a gap.
    pub fn data_block(&self, block: u32) -> Option<u32> {
        let in_gap = self.zones.is_some_and(|zones| block % zones.stride() >= zones.blocks);
        (!in_gap).then(|| self.data_blocks_before(block))
    }

    /// Checks the zones of unit `i`.
    pub(super) fn check_zones(&self, i: usize) -> Result<(), ConfigError> {
        let Some(zones) = &self.zones else { return Ok(()) };
        let mib = |blocks: u32| f64::from(blocks) / 256.0;
        if zones.layout == ZoneLayout::PowerOfTwo && !zones.blocks.is_power_of_two() {
            let message = format!(
                "makes zones of {} MiB, which is no power of two; the layouts \"gaps\" and \"native\" take other sizes",
                mib(zones.blocks)
            );
            return bad_unit(i, "lus[].zones.blocks", message);
        }
        if zones.layout == ZoneLayout::Gaps && zones.gap() == 0 {
            let message = format!(
                "is \"gaps\", but zones of {} MiB, a power of two, leave none; expected \"power-of-two\"",
                mib(zones.blocks)
            );
            return bad_unit(i, "lus[].zones.layout", message);
        }
        if !self.blocks.is_multiple_of(zones.stride()) {
            let message = format!(
                "make {} MiB; with these zones expected a multiple of {} MiB, from one start to the next",
                mib(self.blocks),
                mib(zones.stride())
            );
            return bad_unit(i, "lus[].blocks", message);
        }
        if zones.most_open > self.zone_count() {
            let message = format!("is {}; the unit has {} zones", zones.most_open, self.zone_count());
            return bad_unit(i, "lus[].zones.most_open", message);
        }
        match self.hpb {
            true => bad_unit(i, "lus[].hpb", "is true, but a unit with zones has no use for entries; make it false"),
            false => Ok(()),
        }
    }
}
