// SPDX-License-Identifier: MIT OR Apache-2.0
//! WriteBooster: which data goes to superblocks in SLC mode, and when they are flushed. The passes move the data, and
//! recovery treats it like any other data.
//!
//! The buffer consists of superblocks that are lent to it: it may open one as long as that does not make space short.
//! It returns them when it is flushed. When space gets short they are collected first, because a superblock with a
//! fraction of its pages in use is the best victim.

use crate::config::{CellMode, DeviceConfig};
use crate::ftl::space::{Space, Stream};
use crate::ids::SuperblockId;
use readpath_proto::booster::{ALLOCATION_UNIT_BLOCKS, LIFE_EXCEEDED, flush_status};
use readpath_proto::query::attribute;

/// Flags that the host sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BoosterFlags {
    /// fWriteBoosterEn.
    pub on: bool,
    /// fWBFlushEn.
    pub flush: bool,
    /// fWBFlushDuringHibernate.
    pub flush_when_idle: bool,
}

pub(in crate::ftl) struct Booster {
    flags: BoosterFlags,
    /// bWBFlushStatus.
    flush_status: u32,
    /// The most superblocks that the buffer may have; below, slices of each.
    superblocks: u32,
    slices: u32,
    /// Capacity in blocks.
    blocks: u32,
    /// Erases that all superblocks of the buffer together endure; 0 without WriteBooster.
    life_erases: u64,
}

impl Booster {
    pub(super) fn new(config: &DeviceConfig) -> Self {
        let superblocks = config.booster_superblocks();
        let (blocks, each) = config.write_booster.map_or((0, 0), |wb| (wb.buffer_blocks, wb.life_erases));
        Booster {
            flags: BoosterFlags::default(),
            flush_status: 0,
            superblocks,
            slices: config.booster_slices(),
            blocks,
            life_erases: u64::from(each) * u64::from(superblocks),
        }
    }

    /// The stream for data of the host: the buffer while it has room, `stream` otherwise.
    pub(crate) fn stream_for(&self, stream: Stream, space: &Space) -> Stream {
        let boosts =
            self.flags.on && !space.is_short() && (space.open_of(Stream::Boosted).is_some() || self.lends(space) > 0);
        if boosts { Stream::Boosted } else { stream }
    }

    /// Superblocks that could be lent to the buffer now, beyond those it has.
    fn lends(&self, space: &Space) -> u32 {
        if self.life(space) >= LIFE_EXCEEDED {
            return 0;
        }
        let most = self.superblocks.saturating_sub(space.in_mode(CellMode::Slc));
        most.min(space.spare().saturating_sub(space.short_below()))
    }

    /// bWriteBoosterBufferLifeTimeEst.
    fn life(&self, space: &Space) -> u8 {
        match (space.erases_in(CellMode::Slc) * 10).checked_div(self.life_erases) {
            Some(tenths) => (1 + tenths).min(u64::from(LIFE_EXCEEDED)) as u8,
            None => 0,
        }
    }

    /// Attributes 1Ch to 1Fh of a device that has WriteBooster.
    pub(crate) fn attribute(&self, idn: u8, space: &Space, unit_slices: u32) -> u32 {
        let slices = (space.in_mode(CellMode::Slc) + self.lends(space)) * self.slices;
        match idn {
            attribute::WB_AVAILABLE_SIZE => {
                let open = space.units_left(Stream::Boosted) * unit_slices;
                let free = u64::from(self.lends(space) * self.slices + open);
                (free * 10).checked_div(slices.into()).unwrap_or(0) as u32
            }
            attribute::WB_LIFE_TIME_EST => self.life(space).into(),
            attribute::WB_CURRENT_SIZE => slices.min(self.blocks).div_ceil(ALLOCATION_UNIT_BLOCKS),
            _ => self.flush_status,
        }
    }

    /// Whether idle time is used to flush. The model has no hibernation of the link: idle time stands for it as well.
    pub(super) fn flushes_when_idle(&self) -> bool {
        self.flags.flush || self.flags.flush_when_idle
    }

    /// Whether there is data to flush, or the end of a flush to report.
    pub(super) fn has_flush(&self, space: &Space) -> bool {
        space.in_mode(CellMode::Slc) > 0 || self.flush_status != flush_status::IDLE
    }

    /// Whether the buffer's open superblock is to be closed for a flush; `is_idle` says that the host is idle. It
    /// stays open while the host may write more.
    pub(super) fn closes(&self, space: &Space, is_idle: bool) -> bool {
        let idle = is_idle && self.flushes_when_idle();
        (idle || self.flags.flush && !self.flags.on) && !space.is_blank(Stream::Boosted)
    }

    /// The next superblock to flush, if a flush is in progress.
    pub(super) fn next_to_flush(&mut self, space: &Space, is_idle: bool) -> Option<SuperblockId> {
        let goes_on = (is_idle && self.flushes_when_idle()) || self.flags.flush;
        let holds_data = space.in_mode(CellMode::Slc) > u32::from(space.is_blank(Stream::Boosted));
        self.flush_status = match self.flush_status {
            _ if goes_on && holds_data => flush_status::IN_PROGRESS,
            flush_status::IN_PROGRESS if holds_data => flush_status::STOPPED,
            flush_status::IN_PROGRESS => flush_status::COMPLETED,
            before => before,
        };
        if goes_on { space.oldest_boosted() } else { None }
    }

    /// The host has changed one of the flags.
    pub(crate) fn set_flags(&mut self, flags: BoosterFlags) {
        self.flags = flags;
    }

    /// Sets flags and status as after power-on.
    pub(crate) fn reset(&mut self) {
        (self.flags, self.flush_status) = (BoosterFlags::default(), 0);
    }
}
