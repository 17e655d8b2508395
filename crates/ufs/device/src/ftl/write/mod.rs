// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes and trims on their way into flash translation: the write buffer, requests that wait for room in it, the
//! numbers that order writes and trims, and the causes of waiting.
//!
//! It may not know superblocks, the journal or collection. It sees the map to enter the blocks in its buffer.

mod buffer;
mod incoming;
mod stalls;
#[cfg(test)]
mod tests;

pub(in crate::ftl) use buffer::{NO_SLOT, WriteBuffer};
pub(crate) use incoming::Incoming;
pub(in crate::ftl) use incoming::Unmap;
pub use stalls::Stall;

use super::effects::{Effect, Effects};
use super::map::{Map, Mapping};
use super::zones::Zones;
use crate::back::{DeviceStats, Hardware, MediaOp};
use crate::config::DeviceConfig;
use crate::ids::{Lpn, TagRef};
use buffer::Accepted;
use readpath_kit::Ns;
use stalls::StallClock;
use std::collections::VecDeque;

/// Programs of zones whose rests are read back at the same time: the buffer has room for them.
pub(crate) const LOADS: u32 = 2;

#[derive(Default)]
pub(in crate::ftl) struct Write {
    buffer: WriteBuffer,
    writes: VecDeque<Incoming>,
    trims: VecDeque<Unmap>,
    /// Lists of ranges to be reused.
    unused_ranges: Vec<Vec<(Lpn, u32)>>,
    /// Recovery has found more changes than their table holds; they lie in the SRAM of the write buffer. The buffer
    /// is free again when they have been written back and a checkpoint is in flash: otherwise a series of power cuts
    /// would add to them.
    is_lent: bool,
    /// Number of the newest write or trim.
    sequence: u32,
    /// Recently written logical pages, plus one, by hash.
    written_recently: Vec<u32>,
    stalls: StallClock,
    /// What the write buffer waited for at the last look.
    waits_for: Option<Stall>,
    /// Space was so short that all changes are being written back.
    settles_changes: bool,
}

impl Write {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let for_loads = if config.has_zones() { LOADS * config.zone_program_blocks() } else { 0 };
        let buffer = WriteBuffer::new(config.write_buffer_blocks, for_loads);
        Write::of(buffer, config.ftl.hot_table_entries)
    }

    fn of(buffer: WriteBuffer, hot_table_entries: u32) -> Self {
        let written_recently = vec![0; hot_table_entries as usize];
        Write { buffer, written_recently, ..Write::default() }
    }

    /// Number of the newest write or trim.
    #[inline]
    pub(crate) fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Takes the next number.
    #[inline]
    pub(crate) fn next_number(&mut self) -> u32 {
        self.sequence += 1;
        self.sequence
    }

    /// The smallest number of data that may still reach flash: that of the oldest block in the buffer, or the newest.
    pub(crate) fn oldest(&self) -> u32 {
        self.sequence.min(self.buffer.oldest_sequence().unwrap_or(u32::MAX))
    }

    pub(crate) fn buffer(&self) -> &WriteBuffer {
        &self.buffer
    }

    pub(crate) fn buffer_mut(&mut self) -> &mut WriteBuffer {
        &mut self.buffer
    }

    /// Queues a write until the buffer has room.
    pub(crate) fn accept(&mut self, write: Incoming) {
        self.writes.push_back(write);
    }

    /// Whether writes wait for room in the buffer.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Moves waiting writes into free slots; false if the buffer is full before all of them are in.
    pub(crate) fn fill(
        &mut self,
        (map, zones): (&mut Map, &mut Zones),
        effects: &mut Effects,
        hw: &mut impl Hardware,
    ) -> bool {
        while let Some(write) = self.writes.pop_front() {
            let rest = match map.is_zoned(write.lpn) {
                true => self.fill_zone(write, zones, effects, hw),
                false => self.fill_from(write, map, effects, hw),
            };
            if let Some(rest) = rest {
                self.writes.push_front(rest);
                return false;
            }
        }
        true
    }

    /// Fills slots with a write; returns its rest when the buffer is full first.
    fn fill_from(
        &mut self,
        mut write: Incoming,
        map: &mut Map,
        effects: &mut Effects,
        hw: &mut impl Hardware,
    ) -> Option<Incoming> {
        let Incoming { tag, fua, .. } = write;
        while write.blocks > 0 {
            let Incoming { lpn, index, .. } = write;
            let old = match map.get(lpn) {
                Mapping::Buffered(slot) => Some(slot),
                _ => None,
            };
            let target = match old {
                Some(slot) if !fua && self.buffer.may_overwrite(slot) => {
                    self.buffer.overwrite(slot, self.sequence + 1);
                    slot
                }
                older => {
                    let block = Accepted {
                        lpn,
                        sequence: self.sequence + 1,
                        older,
                        hot: self.was_written_recently(lpn),
                        fua: fua.then_some(tag),
                        zoned: false,
                    };
                    let Some(slot) = self.buffer.put(block) else { return Some(write) };
                    slot
                }
            };
            self.sequence += 1;
            hw.stats().slices_written += 1;
            hw.emit(MediaOp::Fill { tag: tag.tag, index, slot: target });
            map.enter_buffer(lpn, target);
            effects.changed(lpn);
            write = Incoming { lpn: lpn + 1, index: index + 1, blocks: write.blocks - 1, ..write };
        }
        if !fua {
            effects.push(Effect::Done(tag));
        }
        None
    }

    /// [`Write::fill_from`] of a write to a zone.
    fn fill_zone(
        &mut self,
        mut write: Incoming,
        zones: &mut Zones,
        effects: &mut Effects,
        hw: &mut impl Hardware,
    ) -> Option<Incoming> {
        while write.blocks > 0 {
            let Incoming { tag, lpn, index, .. } = write;
            let sequence = self.sequence + 1;
            let block = Accepted { lpn, sequence, older: None, hot: false, fua: None, zoned: true };
            let Some(slot) = self.buffer.put(block) else { return Some(write) };
            self.sequence = sequence;
            hw.stats().slices_written += 1;
            hw.emit(MediaOp::Fill { tag: tag.tag, index, slot });
            zones.entered_buffer(lpn, slot);
            write = Incoming { lpn: lpn + 1, index: index + 1, blocks: write.blocks - 1, ..write };
        }
        effects.push(Effect::Done(write.tag));
        None
    }

    /// Whether `lpn` was written recently, as far as the table remembers; notes this write.
    fn was_written_recently(&mut self, lpn: Lpn) -> bool {
        if self.written_recently.is_empty() {
            return false;
        }
        let hash = lpn.0.wrapping_mul(0x9E37_79B1) >> (32 - self.written_recently.len().trailing_zeros());
        std::mem::replace(&mut self.written_recently[hash as usize], lpn.0 + 1) == lpn.0 + 1
    }

    /// Whether a unit of `unit` slices is to be programmed with blocks that are `hot` or not: they fill it, or a
    /// request waits for one of them. With few slots neither kind may fill a unit: when no other program is in
    /// progress (`is_quiet`), an incomplete unit is programmed. If the other kind fills a unit, that is enough:
    /// padding wastes space.
    pub(crate) fn has_unit(&self, hot: bool, unit: u32, is_quiet: bool) -> bool {
        let filled = |hot| self.buffer.filled(hot);
        filled(hot) >= unit as usize
            || self.buffer.must_flush(hot)
            || (self.buffer.is_full() && is_quiet && filled(hot) > 0 && filled(!hot) < unit as usize)
    }

    /// Queues an UNMAP until there is room. Its ranges are a first logical page and a length each.
    pub(crate) fn unmap(&mut self, tag: TagRef, ranges: impl Iterator<Item = (Lpn, u32)>) {
        let list = self.unused_ranges.pop().unwrap_or_default();
        self.trims.push_back(Unmap::new(tag, list, ranges));
    }

    /// Takes the first waiting UNMAP.
    pub(crate) fn next_trim(&mut self) -> Option<Unmap> {
        self.trims.pop_front()
    }

    /// Puts an UNMAP back whose rest found no room.
    pub(crate) fn put_trim_back(&mut self, unmap: Unmap) {
        self.trims.push_front(unmap);
    }

    pub(crate) fn end_trim(&mut self, unmap: Unmap) {
        self.unused_ranges.push(unmap.ranges);
    }

    /// A command is dropped: the rest of its data is no longer accepted. Trims to `keep` go on.
    pub(crate) fn drop_request(&mut self, now: Ns, tag: u8, keep: impl Fn(TagRef) -> bool, stats: &mut DeviceStats) {
        self.writes.retain(|write| write.tag.tag != tag);
        if self.writes.is_empty() {
            self.stalls.set(now, None, stats);
        }
        self.trims.retain(|unmap| unmap.tag.tag != tag || keep(unmap.tag));
    }

    /// All commands are dropped, but for trims to `keep`. The contents of the buffer stay.
    pub(crate) fn drop_requests(&mut self, now: Ns, keep: impl Fn(TagRef) -> bool, stats: &mut DeviceStats) {
        self.stalls.set(now, None, stats);
        self.writes.clear();
        self.trims.retain(|unmap| keep(unmap.tag));
        self.buffer.forget_waiters();
    }

    /// Takes the waiting requests, which cannot be served for lack of space.
    pub(crate) fn take_waiters(&mut self, now: Ns, stats: &mut DeviceStats) -> Vec<TagRef> {
        let mut waiters: Vec<TagRef> = self.writes.drain(..).map(|write| write.tag).collect();
        self.stalls.set(now, None, stats);
        waiters.extend(self.buffer.take_waiters());
        waiters.sort_unstable();
        waiters.dedup();
        waiters
    }

    /// Sets what programs of the buffer wait for from `now` on, if anything.
    pub(crate) fn set_stall(&mut self, now: Ns, stall: Option<Stall>, stats: &mut DeviceStats) {
        self.settles_changes &= stall == Some(Stall::Space);
        self.waits_for = stall;
        self.stalls.set(now, self.has_waiting().then_some(stall), stats);
    }

    /// Takes the writes that wait for room, of which `is_dropped` says that they are dropped; returns the first logical
    /// page of what is missing of each.
    pub(crate) fn take_dropped(&mut self, is_dropped: impl Fn(&Incoming) -> bool) -> Vec<(TagRef, Lpn)> {
        let mut dropped = Vec::new();
        self.writes.retain(|write| {
            let goes = is_dropped(write);
            if goes {
                dropped.push((write.tag, write.lpn));
            }
            !goes
        });
        dropped
    }

    /// Whether the buffer is lent; then writes wait for the table of changes.
    pub(crate) fn waits_for_buffer(&mut self, now: Ns, stats: &mut DeviceStats) -> bool {
        if self.is_lent {
            self.waits_for = self.has_waiting().then_some(Stall::MapChanges);
            self.stalls.set(now, self.has_waiting().then_some(self.waits_for), stats);
        }
        self.is_lent
    }

    /// What the write buffer waited for at the last look.
    pub(crate) fn waits_for(&self) -> Option<Stall> {
        self.waits_for
    }

    /// Whether the buffer holds changes that recovery found.
    pub(crate) fn is_lent(&self) -> bool {
        self.is_lent
    }

    pub(crate) fn set_lent(&mut self, is_lent: bool) {
        self.is_lent = is_lent;
    }

    /// Whether all changes are being written back because space is short.
    pub(crate) fn settles_changes(&self) -> bool {
        self.settles_changes
    }

    /// Requests that all changes are written back, for space; false if they already are.
    pub(crate) fn settle_changes(&mut self) -> bool {
        !std::mem::replace(&mut self.settles_changes, true)
    }

    pub(crate) fn power_cut(&mut self) {
        self.buffer.clear();
        self.settles_changes = false;
        self.written_recently.fill(0);
    }

    /// Sets the newest number, and whether the buffer holds changes (`is_lent`), after recovery.
    pub(crate) fn recovered(&mut self, sequence: u32, is_lent: bool) {
        (self.sequence, self.is_lent) = (sequence, is_lent);
    }

    /// Numbers now count from `base` on.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.sequence -= base;
        self.buffer.renumber(base);
    }
}
