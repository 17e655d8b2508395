// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cache in SLC mode: which data of the host goes to it, and when its superblocks are emptied. WriteBooster's
//! buffer is such a cache under flags of the host; a device can also have one of its own. The passes move the data, and
//! recovery treats it like any other data.
//!
//! The cache consists of superblocks that serve nothing else (its static part) and of superblocks that are lent to it:
//! it may open one of these as long as that does not make space short. It returns them when it is emptied. When space
//! gets short they are collected first, because a superblock with a fraction of its pages in use is the best victim:
//! then each write of the host pays for data that is moved out of the cache (folding).

use crate::config::{CacheOwner, CellMode, DeviceConfig};
use crate::ftl::space::{Space, Stream};
use crate::ids::SuperblockId;
use readpath_proto::booster::{ALLOCATION_UNIT_BLOCKS, LIFE_EXCEEDED, flush_status};
use readpath_proto::query::attribute;

/// What decides about the cache: flags that the host sets, or those of the device itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct BoosterFlags {
    /// fWriteBoosterEn.
    pub on: bool,
    /// fWBFlushEn.
    pub flush: bool,
    /// fWBFlushDuringHibernate.
    pub flush_when_idle: bool,
}

pub(in crate::ftl) struct SlcCache {
    flags: BoosterFlags,
    /// Flags that the device sets for itself: the host's have no effect.
    own: Option<BoosterFlags>,
    /// bWBFlushStatus.
    flush_status: u32,
    /// The most superblocks that the cache may have; below, slices of each.
    superblocks: u32,
    slices: u32,
    /// Capacity in blocks.
    blocks: u32,
    /// Erases that all superblocks of the cache together endure; 0 without one.
    life_erases: u64,
}

impl SlcCache {
    pub(super) fn new(config: &DeviceConfig) -> Self {
        let superblocks = config.cache_superblocks();
        let own = config.slc_cache.and_then(|cache| match cache.owner {
            CacheOwner::Host => None,
            CacheOwner::Device { folds_when_idle } => {
                Some(BoosterFlags { on: true, flush: false, flush_when_idle: folds_when_idle })
            }
        });
        SlcCache {
            flags: own.unwrap_or_default(),
            own,
            flush_status: 0,
            superblocks,
            slices: config.cache_slices(),
            blocks: config.slc_cache.map_or(0, |cache| cache.static_blocks.saturating_add(cache.dynamic_blocks)),
            life_erases: config.cache_life(),
        }
    }

    /// The stream for data of the host: the cache while it has room, `stream` otherwise.
    pub(crate) fn stream_for(&self, stream: Stream, space: &Space) -> Stream {
        let has_room = match space.open_of(Stream::Boosted) {
            Some(_) => !space.is_short() || space.cache_is_static(),
            None => self.may_take(space) > 0,
        };
        if self.flags.on && has_room { Stream::Boosted } else { stream }
    }

    /// Superblocks that the cache could take now, beyond those it has.
    fn may_take(&self, space: &Space) -> u32 {
        if self.life(space) >= LIFE_EXCEEDED {
            return 0;
        }
        let most = self.superblocks.saturating_sub(space.in_mode(CellMode::Cache));
        let kept = space.static_left();
        let lent = space.spare().saturating_sub(space.short_below());
        most.min(kept + lent)
    }

    /// bWriteBoosterBufferLifeTimeEst, and of the health descriptor bDeviceLifeTimeEstB: 0 without a cache.
    pub(crate) fn life(&self, space: &Space) -> u8 {
        match (space.erases_in(CellMode::Cache) * 10).checked_div(self.life_erases) {
            Some(tenths) => (1 + tenths).min(u64::from(LIFE_EXCEEDED)) as u8,
            None => 0,
        }
    }

    /// Attributes 1Ch to 1Fh of a device that has WriteBooster.
    pub(crate) fn attribute(&self, idn: u8, space: &Space, unit_slices: u32) -> u32 {
        let slices = (space.in_mode(CellMode::Cache) + self.may_take(space)) * self.slices;
        match idn {
            attribute::WB_AVAILABLE_SIZE => {
                let open = space.units_left(Stream::Boosted) * unit_slices;
                let free = u64::from(self.may_take(space) * self.slices + open);
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
        space.in_mode(CellMode::Cache) > 0 || self.flush_status != flush_status::IDLE
    }

    /// Whether the cache's open superblock is to be closed for a flush; `is_idle` says that the host is idle. It
    /// stays open while the host may write more.
    pub(super) fn closes(&self, space: &Space, is_idle: bool) -> bool {
        let idle = is_idle && self.flushes_when_idle();
        (idle || self.flags.flush && !self.flags.on) && !space.is_blank(Stream::Boosted)
    }

    /// The next superblock to flush, if a flush is in progress.
    pub(super) fn next_to_flush(&mut self, space: &Space, is_idle: bool) -> Option<SuperblockId> {
        let goes_on = (is_idle && self.flushes_when_idle()) || self.flags.flush;
        let holds_data = space.in_mode(CellMode::Cache) > u32::from(space.is_blank(Stream::Boosted));
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
        self.flags = self.own.unwrap_or(flags);
    }

    /// Sets flags and status as after power-on.
    pub(crate) fn reset(&mut self) {
        (self.flags, self.flush_status) = (self.own.unwrap_or_default(), 0);
    }
}
