// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which unit is written next, for whom, and who has to wait for what; and how the flash's own view of a block changes.
//! It knows nothing of requests.

use super::durable::{Logged, Record};
use super::{Ftl, Stall, Stream};
use crate::back::{Hardware, Job, Op};
use crate::ids::SuperblockId;
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

/// What a unit is written for: that decides how much space must be left to others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Host,
    Move,
}

/// Programs of data that may be in progress at once: more than dies can serve.
const PROGRAMS_IN_FLIGHT: u32 = 512;

impl Ftl {
    /// Erased superblocks that need not be kept for the map.
    pub(super) fn spare_superblocks(&self) -> u32 {
        let kept = self.meta_superblocks.saturating_sub(self.superblocks.meta_in_use());
        self.superblocks.erased().saturating_sub(kept)
    }

    /// Spare superblocks that there must be for the host to open one. What moves must always find one. Where programs
    /// fail, one more is needed before the first does: it closes the superblock to which data is being moved. And one
    /// with bad blocks may not hold all of another's data.
    pub(super) fn spare_for_host(&self) -> u32 {
        let fails = self.superblocks.has_bad_blocks() || self.settings.faults.program_failures_ppm > 0;
        2 + u32::from(fails)
    }

    /// Programs may fail from now on.
    pub(crate) fn expect_failing_programs(&mut self) {
        let ppm = &mut self.settings.faults.program_failures_ppm;
        *ppm = (*ppm).max(1);
    }

    /// Space is short with fewer spare superblocks than this.
    pub(super) fn short_below(&self) -> u32 {
        self.settings.collect_below.max(self.spare_for_host())
    }

    /// Whether space is so short that collection has to go on beside the host's writes.
    pub(super) fn space_is_short(&self) -> bool {
        self.spare_superblocks() < self.short_below()
    }

    /// A unit for data of `stream`, and room for as many changes.
    pub(super) fn unit_for(&mut self, stream: Stream, purpose: Purpose) -> Result<Ppn, Stall> {
        if self.checkpoint.holds_programs() {
            return Err(Stall::Checkpoint);
        }
        if self.data_programs >= PROGRAMS_IN_FLIGHT {
            return Err(Stall::Programs);
        }
        let unit = self.geometry.slices_per_unit();
        if self.changes.room() < self.changes_reserved + unit {
            return Err(Stall::MapChanges);
        }
        if self.superblocks.open_of(stream).is_none() {
            let room = match purpose {
                Purpose::Host => self.spare_superblocks() >= self.spare_for_host(),
                // A power cut in the middle of a move wastes what was prepared for it. Then it may have one that is
                // kept for the map, unless the map needs it soon: emptying the victim gives it back.
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
        let shared = stream == Stream::Host && !self.settings.separate_moved;
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
    pub(super) fn data_program_ended(&mut self, first: Ppn) {
        self.superblocks.program_ended(first);
        self.data_programs -= 1;
        self.changes_reserved -= self.geometry.slices_per_unit();
    }

    /// If the superblock of `first`, whose program has ended, is full, its table is written.
    #[inline]
    pub(super) fn write_table_if_full(&mut self, now: Ns, first: Ppn, hw: &mut impl Hardware) {
        let sb = self.superblocks.of(first);
        if self.superblocks.wants_table(sb) {
            self.write_table(now, sb, hw);
        }
    }

    #[cold]
    fn write_table(&mut self, now: Ns, sb: SuperblockId, hw: &mut impl Hardware) {
        let first = self.superblocks.first(sb);
        let unit_slices = self.geometry.slices_per_unit();
        for unit in self.superblocks.units_of_table(sb).collect::<Vec<_>>() {
            self.superblocks.begin_table_unit(sb);
            self.data_programs += 1;
            self.checkpoint.count_unit();
            hw.stats().programs += 1;
            hw.stats().table_writes += 1;
            self.begin_flash(now, Op::new(Job::TableProgram, Ppn(first.0 + unit * unit_slices)), hw);
        }
    }

    /// A unit of the table of a superblock has been programmed.
    pub(crate) fn table_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let first = hw.ops().get(id).ppn;
        hw.ops_mut().free(id);
        self.superblocks.program_ended(first);
        self.data_programs -= 1;
        let sb = self.superblocks.of(first);
        if hw.program_fails() {
            self.program_went_wrong(first, hw);
        } else {
            self.superblocks.table_unit_written(sb);
            self.durable.log.push(Logged::Data { first });
            self.tell_table(first, hw);
        }
        self.discard_if_empty(sb);
        self.pump(now, hw);
    }

    /// Opens a superblock for `stream`; it may be written once the journal says so.
    fn open_superblock(&mut self, stream: Stream) -> Result<(), crate::ftl::NoSpace> {
        self.ticks += 1;
        let superblock = self.superblocks.open(stream, self.ticks)?;
        let record = Record::Open { stream, superblock, opened_at: self.ticks };
        self.announced[stream.index()] = self.journal.push(record);
        Ok(())
    }

    /// A flash operation begins: firmware first.
    pub(super) fn begin_flash(&mut self, now: Ns, mut op: Op, hw: &mut impl Hardware) {
        op.slc = self.superblocks.is_slc(op.ppn);
        hw.begin(now, op);
    }

    /// A unit of data was programmed in vain: its block is bad, and its superblock is to be emptied soon.
    pub(super) fn program_went_wrong(&mut self, first: Ppn, hw: &mut impl Hardware) {
        hw.stats().program_failures += 1;
        let die = self.geometry.die_of(first);
        let superblock = self.superblocks.of(first);
        let is_news = self.superblocks.program_failed(superblock, die, self.sequence);
        hw.stats().bad_blocks += u64::from(is_news);
        self.tell_block(superblock, hw);
    }
}
