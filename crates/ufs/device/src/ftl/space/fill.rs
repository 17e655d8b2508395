// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks that are being written: which one is opened, its next unit, the end of its data, and its table.

use super::{NoSpace, Space, State, Stream};
use crate::ids::SuperblockId;
use readpath_flash::Ppn;

impl Space {
    /// The unit of `sb` at which data of `stream` ends.
    pub(super) fn end_of_data(&self, sb: SuperblockId, stream: Stream) -> u32 {
        if stream == Stream::Zone {
            return self.programs_of_zones(sb) * self.shape.program_units;
        }
        let units = self.modes[self.mode_for(stream).index()].units;
        if !stream.has_table() {
            return units;
        }
        let good = (0..units).rev().filter(|unit| !self.is_bad(sb, unit % self.shape.dies));
        good.take(self.shape.table_units as usize).last().unwrap_or(units)
    }

    /// Whether `sb` has just been filled with data, so that its table is to be written.
    #[inline]
    pub(crate) fn wants_table(&self, sb: SuperblockId) -> bool {
        let sb = self.get(sb);
        self.shape.table_units > 0
            && matches!(sb.state, State::Closed(stream) if stream.has_table())
            && (sb.in_flight, sb.next_unit, sb.failed, sb.has_table) == (0, sb.end, false, false)
            && sb.refs > 0
    }

    /// The unit numbers of the table of `sb`, which is full.
    pub(crate) fn units_of_table(&self, sb: SuperblockId) -> impl Iterator<Item = u32> {
        (self.get(sb).end..self.shape.units).filter(move |unit| !self.is_bad(sb, unit % self.shape.dies))
    }

    /// The program of a unit of the table of `sb` begins.
    pub(crate) fn begin_table_unit(&mut self, sb: SuperblockId) {
        self.table[sb.index()].in_flight += 1;
        self.programs += 1;
    }

    /// The program of a unit of the table of `sb` has succeeded; the last one completes the table.
    pub(crate) fn table_unit_written(&mut self, sb: SuperblockId) {
        let slot = &mut self.table[sb.index()];
        slot.has_table = slot.in_flight == 0 && !slot.failed;
    }

    /// Opens the erased superblock that [`Space::erased_for`] chooses for a stream.
    pub(crate) fn open(&mut self, stream: Stream, now: u32) -> Result<SuperblockId, NoSpace> {
        debug_assert!(self.open[stream.index()].is_none());
        let at = self.erased_for(stream).ok_or(NoSpace)?;
        Ok(self.open_erased(at, stream, now))
    }

    /// Opens the superblock with index `at` in the list of erased ones.
    pub(super) fn open_erased(&mut self, at: usize, stream: Stream, now: u32) -> SuperblockId {
        let sb = self.erased.swap_remove(at);
        let (end, mode) = (self.end_of_data(sb, stream), self.mode_for(stream));
        let slot = &mut self.table[sb.index()];
        slot.state = State::Open(stream);
        slot.refs = 0;
        slot.next_unit = 0;
        slot.opened_at = now;
        slot.reads = 0;
        slot.mode = mode;
        slot.has_table = false;
        slot.end = end;
        self.modes[mode.index()].superblocks += 1;
        if stream == Stream::Zone {
            self.zones.held += 1;
            return sb;
        }
        self.skip_bad(sb);
        self.open[stream.index()] = Some(sb);
        self.meta_in_use += u32::from(stream == Stream::Meta);
        sb
    }

    /// Takes the next unit (multi-plane page) of a stream's open superblock, if it has one. After the last unit the
    /// superblock is closed.
    pub(crate) fn next_unit(&mut self, stream: Stream, now: u32) -> Option<Ppn> {
        let sb = self.open[stream.index()]?;
        let unit = self.table[sb.index()].next_unit;
        debug_assert!(unit < self.table[sb.index()].end && !self.is_bad(sb, unit % self.shape.dies));
        let slot = &mut self.table[sb.index()];
        slot.in_flight += 1;
        slot.next_unit = unit + 1;
        self.skip_bad(sb);
        if self.table[sb.index()].next_unit == self.table[sb.index()].end {
            self.close(stream, now);
        }
        Some(Ppn(sb.0 * self.slices() + unit * self.shape.slices_per_unit))
    }

    /// Units left in the open superblock of a stream.
    pub(crate) fn units_left(&self, stream: Stream) -> u32 {
        let Some(sb) = self.open[stream.index()] else { return 0 };
        let (next, units) = (self.table[sb.index()].next_unit, self.table[sb.index()].end);
        if self.table[sb.index()].bad_dies == 0 {
            units - next
        } else {
            (next..units).filter(|u| !self.is_bad(sb, u % self.shape.dies)).count() as u32
        }
    }

    pub(super) fn skip_bad(&mut self, sb: SuperblockId) {
        while self.table[sb.index()].next_unit < self.table[sb.index()].end
            && self.is_bad(sb, self.table[sb.index()].next_unit % self.shape.dies)
        {
            self.table[sb.index()].next_unit += 1;
        }
    }

    /// Closes the open superblock of a stream before it is full.
    pub(crate) fn close(&mut self, stream: Stream, now: u32) {
        if let Some(sb) = self.open[stream.index()].take() {
            let slot = &mut self.table[sb.index()];
            slot.state = State::Closed(stream);
            slot.closed_at = now;
            self.modes[self.mode_for(stream).index()].closed += 1;
        }
    }

    /// The program of a unit of data begins.
    pub(crate) fn data_program_begins(&mut self) {
        self.programs += 1;
    }

    /// The program of a unit of data at `first` has ended, even if it failed.
    pub(crate) fn data_program_ended(&mut self, first: Ppn) {
        self.program_ended(first);
        self.programs -= 1;
    }

    /// The program of a unit at `first` has ended.
    pub(crate) fn program_ended(&mut self, first: Ppn) {
        let sb = self.of(first);
        self.table[sb.index()].in_flight -= 1;
    }

    /// A program in `sb` failed on `die`: the block becomes bad, and the superblock is to be emptied soon. False if
    /// the block was already bad: several of its units may be in flight.
    pub(crate) fn program_failed(&mut self, sb: SuperblockId, die: u32, now: u32) -> bool {
        let is_news = self.mark_bad(sb, die);
        if !std::mem::replace(&mut self.table[sb.index()].failed, true) {
            self.failed += 1;
        }
        for stream in Stream::ALL {
            if self.open[stream.index()] == Some(sb) {
                self.close(stream, now);
            }
        }
        is_news
    }

    /// Takes whole units for `slices` slices as if they had been written; `each` gets runs of consecutive slices. The
    /// caller counts the references to them.
    pub(crate) fn preset(
        &mut self,
        slices: u32,
        stream: Stream,
        mut each: impl FnMut(Ppn, u32),
    ) -> Result<(), NoSpace> {
        let mut left = slices;
        let mut sorted = false;
        while left > 0 {
            if self.open[stream.index()].is_none() {
                // Sorted once, in the order of opening, so that a large device does not search the list for each
                // superblock.
                if !std::mem::replace(&mut sorted, true) {
                    self.sort_erased_for(stream);
                }
                let last = self.erased.len().checked_sub(1).ok_or(NoSpace)?;
                self.open_erased(last, stream, 0);
            }
            let Some((ppn, units)) = self.preset_units(stream, left) else { return Err(NoSpace) };
            let sb = self.of(ppn);
            let filled = &mut self.table[sb.index()];
            filled.has_table = self.shape.table_units > 0 && stream.has_table() && filled.next_unit == filled.end;
            let n = left.min(units * self.shape.slices_per_unit);
            each(ppn, n);
            left -= n;
        }
        Ok(())
    }

    /// Takes the next consecutive units of a stream's open superblock, no more than `slices` need.
    fn preset_units(&mut self, stream: Stream, slices: u32) -> Option<(Ppn, u32)> {
        let first = self.next_unit(stream, 0)?;
        self.program_ended(first);
        let sb = self.of(first);
        let slot = &mut self.table[sb.index()];
        if slot.bad_dies > 0 || self.open[stream.index()] != Some(sb) {
            return Some((first, 1));
        }
        // The last is taken as usual: it closes the superblock.
        let more = slices.div_ceil(self.shape.slices_per_unit) - 1;
        let more = more.min(slot.end - slot.next_unit - 1);
        slot.next_unit += more;
        Some((first, 1 + more))
    }
}
