// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that goes on by itself, and what the device has to tell those above.

mod erase;
mod units;

pub(super) use units::Purpose;

use super::waiting::Unmap;
use super::{Ftl, Incoming};
use crate::back::Hardware;
use crate::config::CellMode;
use crate::ids::{Lpn, TagRef};
use readpath_flash::Ppn;
use readpath_kit::Ns;

impl Ftl {
    /// Everything that goes on by itself, wherever it can.
    pub(crate) fn pump(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.begin_erase(now, hw);
        self.drain_writes(now, hw);
        self.pump_behind_writes(now, hw);
    }

    /// What goes on behind the write buffer, wherever it can.
    fn pump_behind_writes(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.collect(now, hw);
        if !self.waiting_trims.is_empty() {
            self.drain_trims(now, hw);
        }
        self.write_back(now, hw);
        self.program_meta(now, hw);
        self.step_checkpoint(now, hw);
        self.refuse_writes_if_hopeless(now, hw);
    }

    /// The data of a write may enter the buffer, or waits its turn.
    pub(crate) fn accept(&mut self, now: Ns, write: Incoming, hw: &mut impl Hardware) {
        self.waiting_writes.push_back(write);
        self.drain_writes(now, hw);
        // A block that only fills the buffer wakes nothing else.
        if self.waits_for.is_some() || self.order_is_long() {
            self.pump_behind_writes(now, hw);
        }
    }

    /// UNMAP of ranges of logical pages, each its first and how many. They are trimmed as soon as there is room.
    pub(crate) fn unmap(
        &mut self,
        now: Ns,
        tag: TagRef,
        ranges: impl Iterator<Item = (Lpn, u32)>,
        hw: &mut impl Hardware,
    ) {
        let mut list = self.unused_ranges.pop().unwrap_or_default();
        list.clear();
        list.extend(ranges);
        self.waiting_trims.push_back(Unmap { tag, ranges: list, ranges_done: 0, blocks_done: 0 });
        self.drain_trims(now, hw);
    }

    /// What was accepted and what was trimmed is to be in flash: of how many of these two `tag` is told that they are.
    pub(crate) fn sync(&mut self, tag: TagRef) -> u32 {
        let mut parts = u32::from(!self.buffer.sync(tag));
        let trims = self.journal.trims;
        if !self.journal.want(trims) {
            self.journal_waiters.push((tag, trims));
            parts += 1;
        }
        parts
    }

    /// The same, and nobody waits.
    pub(crate) fn flush(&mut self) {
        self.buffer.flush();
        self.journal.want(self.journal.trims);
    }

    /// A command is dropped: what it has not handed over is not taken any more.
    pub(crate) fn drop_request(&mut self, now: Ns, tag: u8, hw: &mut impl Hardware) {
        self.waiting_writes.retain(|write| write.tag.tag != tag);
        if self.waiting_writes.is_empty() {
            self.stalls.set(now, None, hw.stats());
        }
        self.waiting_trims.retain(|unmap| unmap.tag.tag != tag);
    }

    /// All commands are dropped. What the write buffer holds stays.
    pub(crate) fn drop_requests(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.stalls.set(now, None, hw.stats());
        self.waiting_writes.clear();
        self.waiting_trims.clear();
        self.journal_waiters.clear();
        self.buffer.forget_waiters();
        self.reset_booster();
    }

    /// Counts a read of the superblock of `ppn`, if reads are counted; returns how it is written.
    #[inline(never)]
    pub(crate) fn note_read(&mut self, now: Ns, ppn: Ppn, hw: &mut impl Hardware) -> CellMode {
        let limit = self.settings.read_disturb_limit;
        if limit > 0 && self.space.note_read(ppn, limit) {
            self.collector.disturbed(self.space.of(ppn));
            self.pump(now, hw);
        }
        self.space.mode_of(ppn)
    }
}
