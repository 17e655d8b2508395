// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks of zones. Each belongs to one zone, and a die programs several multi-plane pages of it together. So the
//! place of a block follows from its number: programs take the good dies in turn, and behind them the next pages of
//! each. A block that goes bad counts as good until its superblock is erased, so that places stay.
//!
//! It may not know zones.

use super::spare::Programs;
use super::{NoSpace, Shape, Space, State, Stream, Superblock};
use crate::ids::{Lpn, SuperblockId};
use readpath_flash::Ppn;

/// Superblocks of zones as a whole.
#[derive(Default)]
pub(super) struct ZoneSpace {
    /// Those that hold data of zones.
    pub(super) held: u32,
    /// Those that held data of zones and are not erased yet.
    pub(super) coming: Vec<SuperblockId>,
    /// Blocks that went bad, by superblock and die.
    failed: Vec<(SuperblockId, u32)>,
    /// The superblock that holds what another one holds too.
    duplicate: Option<SuperblockId>,
}

impl ZoneSpace {
    pub(super) fn discarded(&mut self, sb: SuperblockId) {
        self.held -= 1;
        self.coming.push(sb);
        self.duplicate.take_if(|duplicate| *duplicate == sb);
    }
}

impl Space {
    /// The stream of the superblock of a slice, according to a table.
    pub(crate) fn stream_in(&self, table: &[Superblock], ppn: Ppn) -> Option<Stream> {
        match table[self.of(ppn).index()].state {
            State::Open(stream) | State::Closed(stream) => Some(stream),
            _ => None,
        }
    }

    /// Whether a slice lies in a superblock of a zone.
    pub(crate) fn is_of_zone(&self, ppn: Ppn) -> bool {
        self.stream_in(&self.table, ppn) == Some(Stream::Zone)
    }

    /// Nothing refers to a superblock of a zone any more, and nothing is written to it.
    pub(crate) fn forget_zone(&mut self, sb: SuperblockId, now: u32) {
        self.close_for_zone(sb, now);
        self.table[sb.index()].refs = 0;
    }

    /// Erased superblocks that zones may still need: those that are being erased will be erased.
    pub(super) fn kept_for_zones(&self) -> u32 {
        self.shape.zone_superblocks.saturating_sub(self.zones.held + self.zones.coming.len() as u32)
    }

    /// Opens a superblock for a zone.
    ///
    /// # Errors
    /// If no erased superblock is left but those for the map and for moved data.
    pub(crate) fn open_for_zone(&mut self, now: u32) -> Result<SuperblockId, NoSpace> {
        if self.erased() < self.kept_for_meta() + 2 {
            return Err(NoSpace);
        }
        let at = self.erased_for(Stream::Zone).ok_or(NoSpace)?;
        Ok(self.open_erased(at, Stream::Zone, now))
    }

    /// Before [`Space::preset_for_zone`]: a large device does not search its list for each superblock.
    pub(crate) fn sort_for_zones(&mut self) {
        self.sort_erased_for(Stream::Zone);
    }

    /// As [`Space::open_for_zone`], in no time.
    pub(crate) fn preset_for_zone(&mut self) -> Result<SuperblockId, NoSpace> {
        let at = self.erased.len().checked_sub(1).ok_or(NoSpace)?;
        let suits = |at: usize| self.suits(Stream::Zone, self.erased[at]);
        debug_assert!(at == 0 || suits(at) < suits(at - 1), "the list is sorted");
        Ok(self.open_erased(at, Stream::Zone, 0))
    }

    /// A superblock holds what another one holds too, until it is discarded.
    pub(crate) fn set_duplicate(&mut self, sb: SuperblockId) {
        self.zones.duplicate = Some(sb);
    }

    /// Whether there is such a superblock.
    pub(crate) fn has_duplicate(&self) -> bool {
        self.zones.duplicate.is_some()
    }

    /// No more data of its zone is written to a superblock.
    pub(crate) fn close_for_zone(&mut self, sb: SuperblockId, now: u32) {
        let slot = &mut self.table[sb.index()];
        if slot.state == State::Open(Stream::Zone) {
            slot.state = State::Closed(Stream::Zone);
            slot.closed_at = now;
            self.modes[slot.mode.index()].closed += 1;
        }
    }

    /// Programs that a superblock of a zone has room for.
    pub(crate) fn programs_left(&self, sb: SuperblockId) -> u32 {
        let slot = self.get(sb);
        match slot.state {
            State::Open(Stream::Zone) => slot.end.saturating_sub(slot.next_unit) / self.shape.program_units,
            _ => 0,
        }
    }

    /// The number of the next program of a superblock of a zone.
    pub(crate) fn next_program(&self, sb: SuperblockId) -> u32 {
        self.get(sb).next_unit / self.shape.program_units
    }

    /// Takes the next program of a superblock of a zone.
    pub(crate) fn take_program(&mut self, sb: SuperblockId) -> u32 {
        let program = self.next_program(sb);
        let slot = &mut self.table[sb.index()];
        slot.next_unit += self.shape.program_units;
        slot.in_flight += 1;
        self.programs += 1;
        program
    }

    /// As [`Space::take_program`] of so many, in no time, with `blocks` from `first` on.
    pub(crate) fn preset_programs(&mut self, sb: SuperblockId, programs: u32, first: Lpn, blocks: u32) {
        let next = self.next_program(sb);
        let Shape { dies, program_units: units, slices_per_unit: per_unit, .. } = self.shape;
        let shape = Programs { dies, units, per_unit };
        let (each, is_good) = (shape.slices(), self.get(sb).bad_dies == 0);
        if !is_good || !self.spares.preset_in_programs(sb, shape, next * each, (first, blocks)) {
            for block in 0..blocks {
                let ppn = self.slice_of_program(sb, next + block / each, block % each);
                self.spares.preset(ppn, first + block);
            }
        }
        self.table[sb.index()].next_unit += self.shape.program_units * programs;
    }

    /// Programs that the good blocks of a superblock have room for.
    pub(super) fn programs_of_zones(&self, sb: SuperblockId) -> u32 {
        let pages = self.shape.units / self.shape.dies;
        pages / self.shape.program_units * (self.shape.dies - self.get(sb).bad_dies)
    }

    /// The `rank`-th good die of a superblock.
    #[cold]
    fn good_die(&self, sb: SuperblockId, rank: u32) -> u32 {
        (0..self.shape.dies).filter(|&die| !self.is_bad(sb, die)).nth(rank as usize).unwrap_or(0)
    }

    /// The slice of block `block` of the `program`-th program of a superblock of a zone.
    #[inline]
    pub(crate) fn slice_of_program(&self, sb: SuperblockId, program: u32, block: u32) -> Ppn {
        let per_unit = self.shape.per_unit;
        let (row, die) = match self.get(sb).bad_dies {
            0 => (self.shape.per_die.divide(program), self.shape.per_die.remainder(program)),
            bad => {
                let good = self.shape.dies - bad;
                (program / good, self.good_die(sb, program % good))
            }
        };
        let page = row * self.shape.program_units + per_unit.divide(block);
        let unit = page * self.shape.dies + die;
        Ppn(sb.0 * self.slices() + unit * per_unit.get() + per_unit.remainder(block))
    }

    /// The first slices of the multi-plane pages of a program that begins at `first`.
    pub(crate) fn units_of_program(&self, first: Ppn) -> impl Iterator<Item = Ppn> + use<> {
        let stride = self.shape.dies * self.shape.slices_per_unit;
        (0..self.shape.program_units).map(move |page| Ppn(first.0 + page * stride))
    }

    /// The program of a superblock of a zone that has its unit `unit`, of all units of the superblock.
    pub(crate) fn program_of_unit(&self, sb: SuperblockId, unit: u32) -> u32 {
        let (page, die) = (unit / self.shape.dies, unit % self.shape.dies);
        let good = self.shape.dies - self.get(sb).bad_dies;
        let rank = (0..die).filter(|&die| !self.is_bad(sb, die)).count() as u32;
        page / self.shape.program_units * good + rank.min(good.saturating_sub(1))
    }

    /// The program of a slice of a superblock of a zone, and the block within.
    pub(crate) fn program_of(&self, ppn: Ppn) -> (SuperblockId, u32, u32) {
        let sb = self.of(ppn);
        let slice = ppn.0 - self.first(sb).0;
        let (unit, within) = (slice / self.shape.slices_per_unit, slice % self.shape.slices_per_unit);
        let page = unit / self.shape.dies % self.shape.program_units;
        (sb, self.program_of_unit(sb, unit), page * self.shape.slices_per_unit + within)
    }

    /// Units of a superblock of a zone up to `next_unit` were seen to be programmed or torn, as it counts units
    /// otherwise: no program behind them may have been begun.
    pub(crate) fn count_in_programs(&mut self, sb: SuperblockId) {
        let seen = self.get(sb).next_unit;
        if seen > 0 {
            let good = self.shape.dies - self.get(sb).bad_dies;
            let row = (seen - 1) / self.shape.dies / self.shape.program_units;
            self.table[sb.index()].next_unit = (row + 1) * good * self.shape.program_units;
        }
    }

    /// What was programmed at `first` does not count yet, as an earlier program is missing: its superblock stays.
    pub(crate) fn hold(&mut self, first: Ppn) {
        let sb = self.of(first);
        self.table[sb.index()].in_flight += 1;
    }

    /// It counts now, or never will.
    pub(crate) fn let_go(&mut self, first: Ppn) {
        self.program_ended(first);
    }

    /// A program of a zone failed. Its block is bad when the superblock is erased.
    pub(crate) fn zone_program_failed(&mut self, sb: SuperblockId, die: u32, now: u32) {
        self.zones.failed.push((sb, die));
        self.close_for_zone(sb, now);
    }

    /// Superblocks of zones in which a program failed, until they are erased.
    pub(super) fn zones_with_failures(&self) -> impl Iterator<Item = SuperblockId> + '_ {
        self.zones.failed.iter().map(|(sb, _)| *sb)
    }

    /// Marks what went bad in the superblock that is erased next; returns how many blocks.
    pub(crate) fn mark_failed_programs(&mut self) -> u32 {
        let Some(&(sb, _)) = self.to_erase.front() else { return 0 };
        let failed = std::mem::take(&mut self.zones.failed);
        let (of_it, others): (Vec<_>, Vec<_>) = failed.into_iter().partition(|&(of, _)| of == sb);
        self.zones.failed = others;
        let marked = of_it.into_iter().filter(|&(_, die)| self.mark_bad(sb, die)).count() as u32;
        if marked > 0 {
            let slot = &mut self.table[sb.index()];
            slot.state = State::Erasing(self.shape.dies - slot.bad_dies);
        }
        marked
    }
}
