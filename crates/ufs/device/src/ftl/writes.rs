// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of data from the write buffer to a multi-plane page of an open superblock.

use super::buffer::{Accepted, NO_SLOT};
use super::durable::Logged;
use super::map::Entry;
use super::{Effect, Ftl, Incoming, Mapping, Stall, Stream};
use crate::back::{Hardware, Job, MediaOp, Op};
use crate::config::CellMode;
use crate::ids::{Lpn, TagRef};
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

impl Ftl {
    /// Moves waiting writes into free buffer slots, and full pages of the buffer to flash.
    pub(super) fn drain_writes(&mut self, now: Ns, hw: &mut impl Hardware) {
        if self.buffer_is_lent {
            let waits = !self.waiting_writes.is_empty();
            self.waits_for = waits.then_some(Stall::MapChanges);
            return self.stalls.set(now, waits.then_some(self.waits_for), hw.stats());
        }
        let mut stall = None;
        while let Some(write) = self.waiting_writes.pop_front() {
            if let Some(rest) = self.fill_from(write, hw) {
                self.waiting_writes.push_front(rest);
                stall = self.program_buffer(now, hw);
                if self.buffer.is_full() {
                    break;
                }
            }
        }
        if self.waiting_writes.is_empty() {
            stall = self.program_buffer(now, hw);
        }
        let waits = !self.waiting_writes.is_empty();
        self.settles_changes &= stall == Some(Stall::Space);
        self.waits_for = stall;
        self.stalls.set(now, waits.then_some(stall), hw.stats());
    }

    /// Fills buffer slots with a write; returns what is left of it when the buffer is full before all of it is in.
    fn fill_from(&mut self, mut write: Incoming, hw: &mut impl Hardware) -> Option<Incoming> {
        let Incoming { tag, fua, .. } = write;
        while write.blocks > 0 {
            let Incoming { lpn, index, .. } = write;
            let old = match self.map.get(lpn) {
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
                    };
                    let Some(slot) = self.buffer.put(block) else { return Some(write) };
                    slot
                }
            };
            self.sequence += 1;
            hw.stats().slices_written += 1;
            hw.emit(MediaOp::Fill { tag: tag.tag, index, slot: target });
            self.map.enter_buffer(lpn, target);
            self.note_change(lpn);
            write = Incoming { lpn: lpn + 1, index: index + 1, blocks: write.blocks - 1, ..write };
        }
        if !fua {
            self.effects.push_back(Effect::Done(tag));
        }
        None
    }

    /// Whether `lpn` is among those written not long ago, as far as the table remembers; from now on it is.
    fn was_written_recently(&mut self, lpn: Lpn) -> bool {
        if self.written_recently.is_empty() {
            return false;
        }
        let hash = lpn.0.wrapping_mul(0x9E37_79B1) >> (32 - self.written_recently.len().trailing_zeros());
        std::mem::replace(&mut self.written_recently[hash as usize], lpn.0 + 1) == lpn.0 + 1
    }

    /// Programs what fills a multi-plane page, and what somebody waits for even if it does not. Returns what it waits
    /// for.
    fn program_buffer(&mut self, now: Ns, hw: &mut impl Hardware) -> Option<Stall> {
        let unit = self.geometry.slices_per_unit();
        let mut stall = None;
        for (hot, stream) in [(false, Stream::Host), (true, Stream::Hot)] {
            // With few slots neither kind may fill a page: then whatever there is must go. If one does, it is enough to
            // wait for that: padding is space lost.
            while self.buffer.filled(hot) >= unit as usize
                || self.buffer.must_flush(hot)
                || (self.buffer.is_full()
                    && self.space.programs() == 0
                    && self.buffer.filled(hot) > 0
                    && self.buffer.filled(!hot) < unit as usize)
            {
                let ppn = match self.unit_for_host(stream) {
                    Ok(ppn) => ppn,
                    Err(cause) => {
                        stall = Some(cause);
                        break;
                    }
                };
                let (first, count) = self.buffer.take_for_program(hot, unit, self.journal.durable());
                hw.stats().programs += 1;
                hw.stats().slices_padded += u64::from(unit - count);
                let op = Op { count: count as u16, index: u32::from(first), ..Op::new(Job::Program, ppn) };
                self.space.begin(now, op, hw);
            }
        }
        stall
    }

    /// Whether writes wait for space and nothing is under way that could give some.
    pub(super) fn is_stuck(&self, hw: &impl Hardware) -> bool {
        let going_on = hw.writes() > 0 || self.collector.is_reading() || self.meta.is_busy();
        self.waits_for == Some(Stall::Space) && !going_on
    }

    /// If what waits is space and nothing is going on that could give some, all changes of the map are written back. If
    /// that frees nothing, whoever waits is told, once: so many blocks have gone bad that what is left does not hold
    /// the logical capacity.
    pub(super) fn refuse_writes_if_hopeless(&mut self, now: Ns, hw: &mut impl Hardware) {
        if !self.is_stuck(hw) {
            return;
        }
        // What was overwritten counts as valid until its map page says otherwise.
        if self.map.changes().used() > 0 && !std::mem::replace(&mut self.settles_changes, true) {
            return self.pump(now, hw);
        }
        let mut waiters: Vec<TagRef> = self.waiting_writes.drain(..).map(|write| write.tag).collect();
        self.stalls.set(now, None, hw.stats());
        waiters.extend(self.buffer.take_waiters());
        waiters.sort_unstable();
        waiters.dedup();
        self.effects.extend(waiters.into_iter().map(Effect::Refused));
    }

    /// A multi-plane page has been programmed: the map follows, the buffer is free for others.
    pub(crate) fn programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        self.data_program_ended(op.ppn);
        if hw.program_fails() {
            self.program_went_wrong(op.ppn, hw);
            self.buffer.program_failed(op.index as u16);
            return self.pump(now, hw);
        }
        hw.stats().slices_programmed += u64::from(op.count);
        hw.stats().slices_boosted += if op.cells == CellMode::Slc { u64::from(op.count) } else { 0 };
        let mut ppn = op.ppn;
        let mut next = op.index as u16;
        // A SYNCHRONIZE CACHE can end here at most once per request slot, so this does not allocate in the long run.
        let mut ended: Vec<TagRef> = Vec::new();
        while next != NO_SLOT {
            let slot = next;
            self.buffer.kill_older(slot);
            let freed = self.buffer.release(slot, |tag| ended.push(tag));
            next = freed.next;
            let lpn = (!freed.void).then_some(freed.lpn.0);
            hw.emit(MediaOp::Program { slot, ppn, lpn, sequence: self.told.sequence(freed.sequence) });
            if !freed.void {
                self.space.spares_mut().program(ppn, freed.lpn, freed.sequence);
            }
            // Newer data in flash or a TRIM may have come meanwhile; then this copy is born invalid.
            if !freed.dead {
                self.map.leave_buffer(freed.lpn, slot);
                self.relocate(freed.lpn, Entry::at(ppn));
            }
            if let Some(tag) = freed.fua {
                self.effects.push_back(Effect::PartInFlash(tag));
            }
            ppn = Ppn(ppn.0 + 1);
        }
        self.durable.log.push(Logged::Data { first: op.ppn });
        self.tell_data(op.ppn, hw);
        self.discard_if_empty(self.space.of(op.ppn));
        self.write_table_if_full(now, op.ppn, hw);
        self.effects.extend(ended.into_iter().map(Effect::PartInFlash));
        self.pump(now, hw);
    }
}
