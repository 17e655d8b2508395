// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collection: superblocks are emptied for space, in idle time, to level wear, because they were read very often, or to
//! empty the cache in SLC mode.
//!
//! It may not know requests, the write buffer, or what becomes of a moved slice: its caller sets the map. It sees
//! space, the map and the log, which discards emptied superblocks.

mod choice;
mod idle;
mod moving;
mod passes;
mod progress;
mod slc_cache;
#[cfg(test)]
mod tests;
mod victims;

pub(in crate::ftl) use idle::Idle;
pub(in crate::ftl) use moving::Moving;
pub(crate) use slc_cache::BoosterFlags;
pub(in crate::ftl) use slc_cache::SlcCache;

use super::log::Log;
use super::map::Map;
use super::space::{Space, Stream};
use crate::config::DeviceConfig;
use crate::config::FtlConfig;
use crate::ids::{Lpn, SuperblockId};
use choice::Why;
use moving::MoveBuffer;
use progress::{Pass, Progress};
use readpath_flash::{Geometry, Ppn};
use readpath_kit::Ns;
use std::collections::VecDeque;
use victims::Victims;

/// The parts that collection works with.
pub(in crate::ftl) struct Around<'a> {
    /// Superblocks.
    pub space: &'a mut Space,
    pub map: &'a mut Map,
    /// Journal.
    pub log: &'a mut Log,
    /// Number of the newest write or trim.
    pub sequence: u32,
}

pub(in crate::ftl) struct Collect {
    geometry: Geometry,
    settings: FtlConfig,
    victims: Victims,
    /// Why they are emptied.
    why: Why,
    /// The stream that the moved data goes to.
    to: Stream,
    progress: Progress,
    reads: u32,
    programs: u32,
    /// By map page, the round in which it was last looked at.
    seen: Vec<u32>,
    round: u32,
    buffer: MoveBuffer,
    /// Erase counts have changed since the last look at wear.
    wear_due: bool,
    /// Superblocks emptied since one was emptied to level wear.
    since_levelled: u32,
    disturbed: VecDeque<SuperblockId>,
    slc_cache: SlcCache,
    idle: Idle,
}

impl Collect {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        Collect {
            geometry: config.geometry,
            settings: config.ftl,
            victims: Victims::new(config.ftl.collect_together, config.geometry.slices_per_superblock()),
            why: Why::Space,
            to: Stream::Moved,
            progress: Progress::NONE,
            reads: 0,
            programs: 0,
            seen: vec![0; config.map_pages() as usize],
            round: 0,
            buffer: MoveBuffer::new(config.ftl.move_buffer_blocks),
            wear_due: false,
            since_levelled: 0,
            disturbed: VecDeque::new(),
            slc_cache: SlcCache::new(config),
            idle: Idle::new(config.ftl.idle_after),
        }
    }

    /// No map entry points to `ppn` any more.
    #[inline]
    pub(crate) fn gone(&mut self, ppn: Ppn) {
        self.victims.gone(ppn);
    }

    /// Whether a read from a victim is in progress.
    pub(crate) fn is_reading(&self) -> bool {
        self.reads > 0
    }

    /// Charges the host for `slices` that it programs. While space is short the host pays with slices that collection
    /// has freed, so that writes and collection advance together. False if the host has to wait.
    pub(crate) fn host_may_write(&mut self, slices: u32, space: &Space) -> bool {
        !space.is_short() || self.victims.is_empty() || self.progress.pay(slices)
    }

    /// Erase counts have changed.
    pub(crate) fn look_at_wear(&mut self) {
        self.wear_due = true;
    }

    /// A superblock was read so often that its data has to move.
    pub(crate) fn disturbed(&mut self, sb: SuperblockId) {
        if !self.disturbed.contains(&sb) {
            self.disturbed.push_back(sb);
        }
    }

    pub(crate) fn slc_cache(&self) -> &SlcCache {
        &self.slc_cache
    }

    pub(crate) fn slc_cache_mut(&mut self) -> &mut SlcCache {
        &mut self.slc_cache
    }

    pub(crate) fn idle(&self) -> &Idle {
        &self.idle
    }

    pub(crate) fn idle_mut(&mut self) -> &mut Idle {
        &mut self.idle
    }

    /// Schedules a check for idleness if background work may be useful then; returns whether it did.
    pub(crate) fn arm_background(&mut self, now: Ns) -> bool {
        let arms = self.collects_when_idle() || self.slc_cache.flushes_when_idle();
        if arms {
            self.idle.arm(now);
        }
        arms
    }

    /// Whether idle time is used to collect.
    fn collects_when_idle(&self) -> bool {
        self.idle.may_collect() && self.settings.collect_idle_below > 0
    }

    /// Urgency of collection (bBackgroundOpStatus): 0 none, 1 not critical, 2 writes are slowed, 3 writes wait.
    pub(crate) fn need(&self, space: &Space) -> u8 {
        match space.spare() {
            spare if spare < space.spare_for_host() => 3,
            _ if space.is_short() => 2,
            spare if spare < self.settings.collect_idle_below => 1,
            _ => 0,
        }
    }

    /// Sequence numbers now count from `base` on.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.buffer.renumber(base);
    }

    /// The spare areas of a program in progress, slice by slice.
    pub(crate) fn spares_of(&self, mut chain: u16) -> impl Iterator<Item = (Lpn, u32)> {
        std::iter::from_fn(move || self.buffer.next(&mut chain)).map(|(_, m)| (m.lpn, m.sequence))
    }

    /// Drops all work. The host's permission for background operations stays.
    pub(crate) fn power_cut(&mut self, config: &DeviceConfig) {
        let mut new = Collect::new(config);
        std::mem::swap(&mut new.idle, &mut self.idle);
        *self = new;
        self.idle.power_cut();
    }
}
