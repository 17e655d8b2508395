// SPDX-License-Identifier: MIT OR Apache-2.0
//! Zones of a logical unit: their sizes, and how many may be open.

use super::error::{ConfigError, bad_unit, bad_value};
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
    /// Blocks that a die programs together: some multi-plane pages, one behind the other.
    pub program_blocks: u32,
    /// Blocks that wait in the write buffer before they are programmed, a multiple of `program_blocks`.
    pub flush_blocks: u32,
}

impl ZoneConfig {
    /// Bytes of SRAM for each zone: its superblock, and how much of it is written.
    pub const ENTRY_BYTES: u64 = 8;
    /// Bytes of SRAM for a part of a zone that lies elsewhere than its beginning says: the first block and where it
    /// is.
    pub const EXTENT_BYTES: u64 = 12;
    /// The most blocks that a die programs together: slots of the write buffer have numbers of 16 bits.
    const MOST_PROGRAM_BLOCKS: u32 = 1 << 12;
    /// Bytes of SRAM for a block that lies in no whole program yet: the block and its slice.
    pub const REST_BYTES: u64 = 8;

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
    fn zoned(&self) -> impl Iterator<Item = (&LuConfig, &ZoneConfig)> {
        self.lus.iter().filter_map(|lu| lu.zones.as_ref().map(|zones| (lu, zones)))
    }

    /// Whether a unit has zones.
    pub fn has_zones(&self) -> bool {
        self.zoned().next().is_some()
    }

    /// Logical blocks that the page map covers: those of units without zones, which come first.
    pub fn mapped_blocks(&self) -> u64 {
        self.lus.iter().filter(|lu| lu.zones.is_none()).map(|lu| u64::from(lu.data_blocks())).sum()
    }

    /// Blocks of each zone, unit by unit.
    pub(crate) fn zone_blocks(&self) -> impl Iterator<Item = u32> {
        self.zoned().flat_map(|(lu, zones)| std::iter::repeat_n(zones.blocks, lu.zone_count() as usize))
    }

    /// Blocks that a die programs together for a zone; a multi-plane page without zones.
    pub(crate) fn zone_program_blocks(&self) -> u32 {
        self.zoned().next().map_or(self.geometry.slices_per_unit(), |(_, zones)| zones.program_blocks)
    }

    /// Multi-plane pages of such a program.
    pub(crate) fn zone_program_units(&self) -> u32 {
        (self.zone_program_blocks() / self.geometry.slices_per_unit()).max(1)
    }

    /// Blocks of a zone that a superblock holds.
    pub fn zone_slices(&self) -> u32 {
        let g = &self.geometry;
        g.pages_per_block / self.zone_program_units() * g.dies() * self.zone_program_blocks()
    }

    /// Superblocks that the zones of all units fill.
    pub fn zone_superblocks(&self) -> u32 {
        let each = |zones: &ZoneConfig| zones.blocks.div_ceil(self.zone_slices().max(1));
        let of = |(lu, zones): (&LuConfig, &ZoneConfig)| lu.zone_count().saturating_mul(each(zones));
        self.zoned().map(of).fold(0, u32::saturating_add)
    }

    /// Superblocks that are kept for zones: one more if superblocks that were read often are copied.
    pub(crate) fn kept_for_zones(&self) -> u32 {
        self.zone_superblocks() + u32::from(self.has_zones() && self.ftl.read_disturb_limit > 0)
    }

    /// The most blocks that lie in no whole program: of each zone that may have been written in part, those behind its
    /// last whole one.
    pub fn zone_rests(&self) -> u32 {
        let partly = |lu: &LuConfig, zones: &ZoneConfig| match zones.rule {
            ZoneRule::Zufs => zones.most_open,
            ZoneRule::Zbc => lu.zone_count(),
        };
        let of = |(lu, zones): (&LuConfig, &ZoneConfig)| partly(lu, zones).saturating_mul(zones.program_blocks - 1);
        self.zoned().map(of).fold(0, u32::saturating_add)
    }

    /// The most parts of zones that lie elsewhere than the beginnings of their zones say: those in further superblocks,
    /// and, of each open zone, some behind programs that failed or were torn.
    pub(crate) fn zone_extents(&self) -> u32 {
        let open: u32 = self.zoned().map(|(_, zones)| zones.most_open).sum();
        let zones: u32 = self.zoned().map(|(lu, _)| lu.zone_count()).sum();
        self.zone_superblocks() - zones + if zones > 0 { 64 + 4 * open } else { 0 }
    }

    /// Bytes of SRAM for what does not follow from the table of zones: such parts, and blocks in no whole program.
    pub fn zone_parts_bytes(&self) -> u64 {
        u64::from(self.zone_extents()) * ZoneConfig::EXTENT_BYTES
            + u64::from(self.zone_rests()) * ZoneConfig::REST_BYTES
    }

    /// Room in a checkpoint for the zones of all units.
    pub(crate) fn zone_bytes(&self) -> u64 {
        self.zone_blocks().count() as u64 * 12 + u64::from(self.zone_extents()) * 16 + u64::from(self.zone_rests()) * 8
    }

    /// Checks how zones lie in flash.
    pub(super) fn check_zone_programs(&self) -> Result<(), ConfigError> {
        let unit = self.geometry.slices_per_unit();
        let kib = |blocks: u32| blocks * 4;
        let first_program = self.zone_program_blocks();
        let mut any = false;
        for (i, lu) in self.lus.iter().enumerate() {
            let Some(zones) = &lu.zones else {
                if any {
                    let message = "lies behind a unit with zones; put those last";
                    return bad_unit(i, "lus", message);
                }
                continue;
            };
            any = true;
            let program = zones.program_blocks;
            if program == 0 || !program.is_multiple_of(unit) || program / unit > self.geometry.pages_per_block {
                let message = format!(
                    "is {}; a die programs whole multi-plane pages, of {} KiB, and a block has {} of them",
                    kib(program),
                    kib(unit),
                    self.geometry.pages_per_block
                );
                return bad_unit(i, "lus[].zones.program_blocks", message);
            }
            if program > ZoneConfig::MOST_PROGRAM_BLOCKS {
                let message =
                    format!("is {}; at most {} are possible", kib(program), kib(ZoneConfig::MOST_PROGRAM_BLOCKS));
                return bad_unit(i, "lus[].zones.program_blocks", message);
            }
            if program != first_program {
                let message = format!("is {}, but {} for another unit", kib(program), kib(first_program));
                return bad_unit(i, "lus[].zones.program_blocks", message);
            }
            if zones.flush_blocks == 0 || !zones.flush_blocks.is_multiple_of(program) {
                let message =
                    format!("is {}; expected a multiple of program_kib, {}", kib(zones.flush_blocks), kib(program));
                return bad_unit(i, "lus[].zones.flush_blocks", message);
            }
            if self.write_buffer_blocks < zones.flush_blocks + unit {
                let message = format!(
                    "is {}; with {} KiB that wait to be programmed in a zone it must be {} or more",
                    self.write_buffer_blocks,
                    kib(zones.flush_blocks),
                    zones.flush_blocks + unit
                );
                return bad_value("write_buffer_blocks", message);
            }
        }
        Ok(())
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
