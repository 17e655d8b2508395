// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which unit is written next, for whom, and who has to wait for what; and how the flash's own view of a block changes.
//! It knows nothing of requests.

use crate::back::MediaMode;
use crate::back::Probe;
use crate::back::{Job, Op};
use crate::buffer::WriteBuffer;
use crate::device::UfsDevice;
use crate::ftl::{Entry, Logged, Mapping, PageMap, Record, State, Stream};
use crate::stalls::Stall;
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::Ns;

/// What a unit is written for: that decides how much space must be left to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Host,
    Move,
}

/// Programs of data that may be in progress at once: more than dies can serve.
const PROGRAMS_IN_FLIGHT: u32 = 512;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Erased superblocks that need not be kept for the map.
    pub(crate) fn spare_superblocks(&self) -> u32 {
        let kept = self.meta_superblocks.saturating_sub(self.superblocks.meta_in_use());
        self.superblocks.erased().saturating_sub(kept)
    }

    /// Spare superblocks that there must be for the host to open one. What moves must always find one. Where programs fail, one
    /// more is needed before the first does: it closes the superblock to which data is being moved. And one with bad blocks may
    /// not hold all of another's data.
    pub(crate) fn spare_for_host(&self) -> u32 {
        let fails = self.superblocks.has_bad_blocks() || self.config.ftl.faults.program_failures_ppm > 0;
        2 + u32::from(fails)
    }

    /// Space is short with fewer spare superblocks than this.
    pub(crate) fn short_below(&self) -> u32 {
        self.config.ftl.collect_below.max(self.spare_for_host())
    }

    /// Whether space is so short that collection has to go on beside the host's writes.
    pub(crate) fn space_is_short(&self) -> bool {
        self.spare_superblocks() < self.short_below()
    }

    /// A unit for data of `stream`, and room for as many changes.
    pub(crate) fn unit_for(&mut self, stream: Stream, purpose: Purpose) -> Result<Ppn, Stall> {
        if self.checkpoint.holds_programs() {
            return Err(Stall::Checkpoint);
        }
        if self.data_programs >= PROGRAMS_IN_FLIGHT {
            return Err(Stall::Programs);
        }
        let unit = self.config.geometry.slices_per_unit();
        if self.changes.room() < self.changes_reserved + unit {
            return Err(Stall::MapChanges);
        }
        if self.superblocks.open_of(stream).is_none() {
            let room = match purpose {
                Purpose::Host => self.spare_superblocks() >= self.spare_for_host(),
                // A power cut in the middle of a move wastes what was prepared for it. Then it may have one that is kept
                // for the map, unless the map needs it soon: emptying the victim gives it back.
                Purpose::Move => self.spare_superblocks() >= 1 || self.superblocks.erased() >= 3,
            };
            if !room {
                return Err(Stall::Space);
            }
            self.open_superblock(stream).map_err(|_| Stall::Space)?;
        }
        if !self.journal.want(self.announced[stream.index()]) {
            return Err(Stall::Journal);
        }
        // What is left of a shared superblock belongs to the data that is being moved: it frees the next one.
        let shared = stream == Stream::Host && !self.config.ftl.separate_moved;
        if purpose == Purpose::Host && shared && self.spare_superblocks() == 0 {
            return Err(Stall::Space);
        }
        if purpose == Purpose::Host && self.space_is_short() {
            // The host pays with what collection has freed, so that both go on evenly.
            if self.collector.is_busy() {
                if self.collector.credit < unit {
                    return Err(Stall::Space);
                }
                self.collector.credit -= unit;
            }
        }
        let ppn = self.superblocks.next_unit(stream, self.sequence).ok_or(Stall::Space)?;
        self.changes_reserved += unit;
        self.data_programs += 1;
        self.checkpoint.count_unit();
        Ok(ppn)
    }

    /// A program of data has ended, well or not.
    pub(crate) fn data_program_ended(&mut self, first: Ppn) {
        self.superblocks.program_ended(first);
        self.data_programs -= 1;
        self.changes_reserved -= self.config.geometry.slices_per_unit();
    }

    /// If the superblock of `first`, whose program has ended, is full, its table is written.
    #[inline]
    pub(crate) fn write_table_if_full(&mut self, now: Ns, first: Ppn) {
        let sb = self.superblocks.of(first);
        if self.superblocks.wants_table(sb) {
            self.write_table(now, sb);
        }
    }

    #[cold]
    fn write_table(&mut self, now: Ns, sb: u32) {
        let first = self.superblocks.first(sb);
        let unit_slices = self.config.geometry.slices_per_unit();
        for unit in self.superblocks.units_of_table(sb).collect::<Vec<_>>() {
            self.superblocks.begin_table_unit(sb);
            self.data_programs += 1;
            self.checkpoint.count_unit();
            self.back.stats.programs += 1;
            self.back.stats.table_writes += 1;
            self.begin_flash(now, Op::new(Job::TableProgram, Ppn(first.0 + unit * unit_slices)));
        }
    }

    /// A unit of the table of a superblock has been programmed.
    pub(crate) fn table_programmed(&mut self, now: Ns, id: OpId) {
        let first = self.back.dies.ops().get(id).ppn;
        self.back.dies.ops_mut().free(id);
        self.superblocks.program_ended(first);
        self.data_programs -= 1;
        let sb = self.superblocks.of(first);
        if self.back.dies.program_fails() {
            self.program_went_wrong(first);
        } else {
            self.superblocks.table_unit_written(sb);
            self.durable.log.push(Logged::Data { first });
        }
        self.discard_if_empty(sb);
        self.pump(now);
    }

    /// Opens a superblock for `stream`; it may be written once the journal says so.
    pub(crate) fn open_superblock(&mut self, stream: Stream) -> Result<(), crate::ftl::NoSpace> {
        self.ticks += 1;
        let superblock = self.superblocks.open(stream, self.ticks)?;
        let record = Record::Open { stream, superblock, opened_at: self.ticks };
        self.announced[stream.index()] = self.journal.push(record);
        Ok(())
    }

    /// A flash operation begins: firmware first.
    pub(crate) fn begin_flash(&mut self, now: Ns, mut op: Op) {
        op.slc = self.superblocks.is_slc(op.ppn);
        self.back.begin(now, op);
    }

    /// What flash, and the changes that SRAM holds, say of `lpn`, whatever the write buffer holds.
    #[inline]
    pub(crate) fn flash_entry(&self, lpn: u32) -> Entry {
        flash_entry(&self.map, &self.buffer, lpn)
    }

    /// Sets what [`UfsDevice::flash_entry`] says, which was `old` until now.
    #[inline]
    pub(crate) fn set_flash_entry(&mut self, lpn: u32, old: Entry, entry: Entry) {
        self.durable.changed.push((lpn, old));
        match self.map.get(lpn) {
            Mapping::Buffered(slot) => self.buffer.set_under(slot, entry),
            _ => self.map.set(lpn, entry),
        }
    }

    /// Brings near what [`UfsDevice::relocate`] will touch.
    #[inline]
    pub(crate) fn prefetch_change(&self, lpn: u32) {
        self.map.prefetch(lpn);
        self.changes.prefetch(self.map.page_of(lpn));
    }

    /// As far as flash is concerned, `lpn` is now at `to` (clean). The change goes into the table.
    pub(crate) fn relocate(&mut self, lpn: u32, to: Entry) {
        let old = self.flash_entry(lpn);
        if let Mapping::Flash(ppn) = old.mapping() {
            self.collector.gone(ppn);
        }
        let mut left = None;
        if old.is_recent() {
            if let Mapping::Flash(ppn) = old.mapping() {
                self.changes.names_slice(false);
                self.superblocks.drop_ref(ppn);
                left = Some(self.superblocks.of(ppn));
            }
        } else {
            self.changes.add(self.map.page_of(lpn), lpn, old);
        }
        if let Mapping::Flash(ppn) = to.mapping() {
            self.changes.names_slice(true);
            self.superblocks.add_ref(ppn);
        }
        self.set_flash_entry(lpn, old, to.recent());
        if let Some(sb) = left {
            self.discard_if_empty(sb);
        }
    }

    /// Gives a superblock up if nothing in it is needed any more.
    pub(crate) fn discard_if_empty(&mut self, sb: u32) {
        if self.superblocks.is_empty(sb) && !self.collector.is_emptying(sb) && !self.meta.is_pinned(sb) {
            self.discard(sb);
        }
    }

    /// Gives a superblock up: it is erased when the journal allows.
    pub(crate) fn discard(&mut self, sb: u32) {
        let record = self.journal.push(Record::Erase { superblock: sb });
        self.superblocks.discard(sb, record);
        self.meta.given_up(sb);
    }

    /// Begins to erase a superblock that was given up, one at a time. The record of that has to be in flash first, so that
    /// no superblock that was free is taken for a full one after a power cut; and with it all records before it: trims,
    /// because what they freed may be all that a power cut would bring back.
    pub(crate) fn begin_erase(&mut self, now: Ns) {
        if self.erasing.is_some() {
            return;
        }
        let Some(record) = self.superblocks.waits_to_be_erased() else { return };
        if !self.journal.want(record) {
            return;
        }
        let Some(sb) = self.superblocks.begin_erase() else { return };
        if self.superblocks.get(sb).state == State::Retired {
            self.back.stats.retired_superblocks += 1;
            return self.begin_erase(now);
        }
        self.erasing = Some(sb);
        let first = self.superblocks.first(sb);
        self.spares.erase(first, self.superblocks.slices());
        self.erase_dies(now, sb);
    }

    /// Erases the good blocks of a superblock.
    pub(crate) fn erase_dies(&mut self, now: Ns, sb: u32) {
        let g = self.config.geometry;
        for die in (0..g.dies()).filter(|&die| !self.superblocks.is_bad(sb, die)).collect::<Vec<_>>() {
            let ppn = Ppn(self.superblocks.first(sb).0 + die * g.slices_per_unit());
            self.back.stats.erases += 1;
            self.back.stats.slc_erases += u64::from(self.superblocks.is_slc(ppn));
            self.begin_flash(now, Op { lpn: sb, ..Op::new(Job::Erase, ppn) });
        }
    }

    /// One die of a superblock is erased.
    pub(crate) fn erased(&mut self, now: Ns, id: OpId) {
        let op = self.back.end(id);
        let sb = op.lpn;
        let die = self.config.geometry.die_of(op.ppn);
        if self.erasing != Some(sb) {
            return self.anchor_erased(now);
        }
        let failed = self.back.dies.erase_fails();
        self.back.stats.erase_failures += u64::from(failed);
        self.back.stats.bad_blocks += u64::from(failed);
        if self.superblocks.die_erased(sb, die, failed) {
            self.erasing = None;
            self.back.stats.retired_superblocks += u64::from(self.superblocks.get(sb).state == State::Retired);
            let (first, slices) = (self.superblocks.first(sb), self.superblocks.slices());
            self.back.emit(crate::back::MediaOp::Erase { first, slices });
            self.collector.look_at_wear();
            self.pump(now);
        }
    }

    /// A unit of data was programmed in vain: its block is bad, and its superblock is to be emptied soon.
    pub(crate) fn program_went_wrong(&mut self, first: Ppn) {
        self.back.stats.program_failures += 1;
        let die = self.config.geometry.die_of(first);
        let is_news = self.superblocks.program_failed(self.superblocks.of(first), die, self.sequence);
        self.back.stats.bad_blocks += u64::from(is_news);
    }

    /// Everything that goes on by itself, wherever it can.
    pub(crate) fn pump(&mut self, now: Ns) {
        self.begin_erase(now);
        self.drain_writes(now);
        self.pump_behind_writes(now);
    }

    /// What goes on behind the write buffer, wherever it can.
    pub(crate) fn pump_behind_writes(&mut self, now: Ns) {
        self.collect(now);
        if !self.waiting_trims.is_empty() {
            self.drain_trims(now);
        }
        self.write_back(now);
        self.program_meta(now);
        self.step_checkpoint(now);
        self.refuse_writes_if_hopeless(now);
    }
}

/// See [`UfsDevice::flash_entry`].
#[inline]
pub(crate) fn flash_entry(map: &PageMap, buffer: &WriteBuffer, lpn: u32) -> Entry {
    let entry = map.entry(lpn);
    match entry.mapping() {
        Mapping::Buffered(slot) => buffer.under(slot),
        _ => entry,
    }
}
