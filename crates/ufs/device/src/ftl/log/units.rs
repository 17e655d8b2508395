// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks and the journal: none is written before a record in flash names it, and none is erased before a record
//! in flash says so.

use super::{Log, Record};
use crate::back::Hardware;
use crate::config::CellMode;
use crate::ftl::Stall;
use crate::ftl::map::Map;
use crate::ftl::space::{Purpose, Space, State, Stream};
use crate::ids::{Mark, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::Ns;

/// The most programs of data in progress: more than the dies can serve.
const PROGRAMS_IN_FLIGHT: u32 = 512;

impl Log {
    /// Prepares a unit for data of `stream`, with room for its changes, so that [`Log::take_unit`] may follow.
    pub(crate) fn prepare_unit(
        &mut self,
        space: &mut Space,
        map: &Map,
        stream: Stream,
        purpose: Purpose,
    ) -> Result<(), Stall> {
        if self.checkpoint.holds_programs() {
            return Err(Stall::Checkpoint);
        }
        if space.programs() >= PROGRAMS_IN_FLIGHT {
            return Err(Stall::Programs);
        }
        if map.room() < self.geometry().slices_per_unit() {
            return Err(Stall::MapChanges);
        }
        if space.open_of(stream).is_none() {
            if !space.may_open(purpose) {
                return Err(Stall::Space);
            }
            self.ticks += 1;
            let superblock = space.open(stream, self.ticks).map_err(|_| Stall::Space)?;
            let record = Record::Open { stream, superblock, opened_at: self.ticks };
            self.announced[stream.index()] = self.journal.push(record);
        }
        match self.journal.want(self.announced[stream.index()]) {
            true => Ok(()),
            false => Err(Stall::Journal),
        }
    }

    /// Whether a program of a zone may begin.
    ///
    /// # Errors
    /// What it has to wait for.
    pub(crate) fn may_program_zone(&self, space: &Space) -> Result<(), Stall> {
        match () {
            () if self.checkpoint.holds_programs() => Err(Stall::Checkpoint),
            () if space.programs() >= PROGRAMS_IN_FLIGHT => Err(Stall::Programs),
            () => Ok(()),
        }
    }

    /// Opens a superblock for a zone; returns it and the record that has to be in flash before it is written.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn open_for_zone(&mut self, space: &mut Space) -> Result<(SuperblockId, Mark), Stall> {
        let superblock = space.open_for_zone(self.ticks + 1).map_err(|_| Stall::Space)?;
        self.ticks += 1;
        let record = Record::Open { stream: Stream::Zone, superblock, opened_at: self.ticks };
        Ok((superblock, self.journal.push(record)))
    }

    /// Requests that a record is written.
    ///
    /// # Errors
    /// While it is not in flash.
    pub(crate) fn announce(&mut self, record: Mark) -> Result<(), Stall> {
        self.journal.want(record).then_some(()).ok_or(Stall::Journal)
    }

    /// Takes the unit that was prepared.
    pub(crate) fn take_unit(
        &mut self,
        space: &mut Space,
        map: &mut Map,
        stream: Stream,
        sequence: u32,
    ) -> Result<Ppn, Stall> {
        let ppn = space.next_unit(stream, sequence).ok_or(Stall::Space)?;
        map.reserve(self.geometry().slices_per_unit());
        space.data_program_begins();
        self.count_unit();
        Ok(ppn)
    }

    /// Counts a unit that needs no preparation: part of the table of a superblock.
    pub(crate) fn count_unit(&mut self) {
        self.checkpoint.units += 1;
    }

    /// Discards a superblock if nothing in it is needed any more.
    #[inline]
    pub(crate) fn discard_if_empty(&mut self, space: &mut Space, sb: SuperblockId) {
        if space.is_empty(sb) && self.stream.pins[sb.index()] == 0 {
            self.discard(space, sb);
        }
    }

    /// Discards a superblock: it is erased when the journal allows.
    pub(crate) fn discard(&mut self, space: &mut Space, sb: SuperblockId) {
        let record = self.journal.push(Record::Erase { superblock: sb });
        space.discard(sb, record);
        self.stream.victim.take_if(|victim| *victim == sb);
    }

    /// Begins to erase a discarded superblock, one at a time. Its record must be in flash first; otherwise recovery
    /// would take an erased superblock for a full one. All records before it must be in flash too: if trims emptied
    /// the superblock, recovery without them would bring its data back.
    pub(crate) fn begin_erase(&mut self, now: Ns, space: &mut Space, hw: &mut impl Hardware) {
        while let Some(record) = space.waits_to_be_erased() {
            if !self.journal.want(record) {
                return;
            }
            hw.stats().bad_blocks += u64::from(space.mark_failed_programs());
            let Some(sb) = space.begin_erase() else { return };
            if space.get(sb).state == State::Retired {
                hw.stats().retired_superblocks += 1;
                self.export_block(sb, space, hw);
                continue;
            }
            match space.get(sb).mode {
                CellMode::Full => {}
                cells => self.note_slc_erase(sb, cells == CellMode::SlcMap),
            }
            return space.erase_dies(now, sb, hw);
        }
    }

    /// The program of a unit of data failed: its block is bad, and its superblock is to be emptied soon.
    pub(crate) fn program_failed(&mut self, first: Ppn, sequence: u32, space: &mut Space, hw: &mut impl Hardware) {
        hw.stats().program_failures += 1;
        let superblock = space.of(first);
        let is_news = space.program_failed(superblock, self.geometry().die_of(first), sequence);
        hw.stats().bad_blocks += u64::from(is_news);
        self.export_block(superblock, space, hw);
    }
}
