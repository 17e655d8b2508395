// SPDX-License-Identifier: MIT OR Apache-2.0
//! WriteBooster: which data goes to superblocks in SLC mode, and when it leaves them again. Moving it is the work of
//! the passes, and what flash holds of it is recovered like any other data.
//!
//! The buffer consists of superblocks that are lent to it: one may be opened for it as long as that does not make space
//! short. It gives them back when it is flushed, and earlier when space gets short, because then a superblock with a
//! fraction of its pages in use is the best victim of all.

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

/// See the module.
pub(in crate::ftl) struct Booster {
    flags: BoosterFlags,
    /// bWBFlushStatus.
    flush_status: u32,
    /// The most superblocks that it may have, and slices of each.
    superblocks: u32,
    slices: u32,
    /// Blocks that it holds at most.
    blocks: u32,
    /// Erases that all its superblocks together stand; 0 without WriteBooster.
    life_erases: u64,
}

impl Booster {
    /// An empty buffer.
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

    /// The stream that data of the host goes to: the buffer while there is room, `stream` otherwise.
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

    /// Whether idle time is used to flush. The model has no hibernation of the link: it stands for that as well.
    pub(super) fn flushes_when_idle(&self) -> bool {
        self.flags.flush || self.flags.flush_when_idle
    }

    /// Whether there is anything to flush, or a flush whose end is to be reported.
    pub(super) fn has_flush(&self, space: &Space) -> bool {
        space.in_mode(CellMode::Slc) > 0 || self.flush_status != flush_status::IDLE
    }

    /// Whether the superblock that the buffer is writing is to be closed for a flush, with the host idle (`is_idle`) or
    /// not. While the host may write more it is left alone.
    pub(super) fn closes(&self, space: &Space, is_idle: bool) -> bool {
        let idle = is_idle && self.flushes_when_idle();
        (idle || self.flags.flush && !self.flags.on) && !space.is_blank(Stream::Boosted)
    }

    /// The superblock that is to be flushed next, if a flush is going on.
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

    /// Flags and status are as after power-on.
    pub(crate) fn reset(&mut self) {
        (self.flags, self.flush_status) = (BoosterFlags::default(), 0);
    }
}
