// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hands out units of data and applies back-pressure: decides which unit is written next and what it has to wait for.

use super::super::durable::{Logged, Record};
use super::super::{Ftl, NoSpace, Stall, Stream};
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
    /// A unit for data of `stream`, and room for as many changes.
    pub(in crate::ftl) fn unit_for(&mut self, stream: Stream, purpose: Purpose) -> Result<Ppn, Stall> {
        if self.checkpoint.holds_programs() {
            return Err(Stall::Checkpoint);
        }
        if self.space.programs() >= PROGRAMS_IN_FLIGHT {
            return Err(Stall::Programs);
        }
        let unit = self.geometry.slices_per_unit();
        if self.map.room() < unit {
            return Err(Stall::MapChanges);
        }
        if self.space.open_of(stream).is_none() {
            let room = match purpose {
                Purpose::Host => self.space.spare() >= self.space.spare_for_host(),
                // A power cut in the middle of a move wastes what was prepared for it. Then it may have one that is
                // kept for the map, unless the map needs it soon: emptying the victim gives it back.
                Purpose::Move => self.space.spare() >= 1 || self.space.erased() >= 3,
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
        if purpose == Purpose::Host && shared && self.space.spare() == 0 {
            return Err(Stall::Space);
        }
        if purpose == Purpose::Host && self.space.is_short() {
            // The host pays with what collection has freed, so that both go on evenly.
            if self.collector.is_busy() {
                if self.collector.credit < unit {
                    return Err(Stall::Space);
                }
                self.collector.credit -= unit;
            }
        }
        let ppn = self.space.next_unit(stream, self.sequence).ok_or(Stall::Space)?;
        self.map.reserve(unit);
        self.space.data_program_begins();
        self.checkpoint.count_unit();
        Ok(ppn)
    }

    /// A program of data has ended, well or not.
    pub(in crate::ftl) fn data_program_ended(&mut self, first: Ppn) {
        self.space.data_program_ended(first);
        self.map.release(self.geometry.slices_per_unit());
    }

    /// If the superblock of `first`, whose program has ended, is full, its table is written.
    #[inline]
    pub(in crate::ftl) fn write_table_if_full(&mut self, now: Ns, first: Ppn, hw: &mut impl Hardware) {
        let sb = self.space.of(first);
        if self.space.wants_table(sb) {
            self.write_table(now, sb, hw);
        }
    }

    #[cold]
    fn write_table(&mut self, now: Ns, sb: SuperblockId, hw: &mut impl Hardware) {
        let first = self.space.first(sb);
        let unit_slices = self.geometry.slices_per_unit();
        for unit in self.space.units_of_table(sb).collect::<Vec<_>>() {
            self.space.begin_table_unit(sb);
            self.space.data_program_begins();
            self.checkpoint.count_unit();
            hw.stats().programs += 1;
            hw.stats().table_writes += 1;
            self.space.begin(now, Op::new(Job::TableProgram, Ppn(first.0 + unit * unit_slices)), hw);
        }
    }

    /// A unit of the table of a superblock has been programmed.
    pub(crate) fn table_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let first = hw.ops().get(id).ppn;
        hw.ops_mut().free(id);
        self.space.data_program_ended(first);
        let sb = self.space.of(first);
        if hw.program_fails() {
            self.program_went_wrong(first, hw);
        } else {
            self.space.table_unit_written(sb);
            self.durable.log.push(Logged::Data { first });
            self.tell_table(first, hw);
        }
        self.discard_if_empty(sb);
        self.pump(now, hw);
    }

    /// Opens a superblock for `stream`; it may be written once the journal says so.
    fn open_superblock(&mut self, stream: Stream) -> Result<(), NoSpace> {
        self.ticks += 1;
        let superblock = self.space.open(stream, self.ticks)?;
        let record = Record::Open { stream, superblock, opened_at: self.ticks };
        self.announced[stream.index()] = self.journal.push(record);
        Ok(())
    }

    /// A unit of data was programmed in vain: its block is bad, and its superblock is to be emptied soon.
    pub(in crate::ftl) fn program_went_wrong(&mut self, first: Ppn, hw: &mut impl Hardware) {
        hw.stats().program_failures += 1;
        let die = self.geometry.die_of(first);
        let superblock = self.space.of(first);
        let is_news = self.space.program_failed(superblock, die, self.sequence);
        hw.stats().bad_blocks += u64::from(is_news);
        self.tell_block(superblock, hw);
    }
}
