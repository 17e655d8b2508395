// SPDX-License-Identifier: MIT OR Apache-2.0
//! What follows when an operation of flash translation has ended.

use super::Ftl;
use crate::back::{Hardware, Job, MediaOp, Op};
use crate::config::CellMode;
use crate::ftl::State;
use crate::ftl::effects::Effect;
use crate::ftl::map::Entry;
use crate::ftl::write::NO_SLOT;
use crate::ids::{SuperblockId, TagRef};
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

impl Ftl {
    /// A multi-plane page has been programmed: updates the map and frees the slots of the write buffer.
    pub(crate) fn programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        if self.program_failed(op.ppn, hw) {
            self.write.buffer_mut().program_failed(op.index as u16);
            return self.pump(now, hw);
        }
        hw.stats().slices_programmed += u64::from(op.count);
        hw.stats().slices_boosted += if op.cells == CellMode::Cache { u64::from(op.count) } else { 0 };
        let mut ppn = op.ppn;
        let mut next = op.index as u16;
        // At most one SYNCHRONIZE CACHE per request slot can end here, so this does not allocate in the long run.
        let mut ended: Vec<TagRef> = Vec::new();
        while next != NO_SLOT {
            let slot = next;
            let freed = self.write.buffer_mut().release(slot, |tag| ended.push(tag));
            next = freed.next;
            let lpn = (!freed.void).then_some(freed.lpn.0);
            hw.emit(MediaOp::Program { slot, ppn, lpn, sequence: self.log.sequence_in_flash(freed.sequence) });
            if !freed.void {
                self.space.spares_mut().program(ppn, freed.lpn, freed.sequence);
            }
            // If newer data in flash or a TRIM came meanwhile, this copy is invalid from the start.
            if !freed.dead {
                self.map.leave_buffer(freed.lpn, slot);
                self.relocate(freed.lpn, Entry::at(ppn));
            }
            if freed.fua != TagRef::NONE {
                self.effects.push(Effect::PartInFlash(freed.fua));
            }
            ppn = Ppn(ppn.0 + 1);
        }
        self.unit_is_in_flash(now, op.ppn, hw);
        ended.into_iter().for_each(|tag| self.effects.push(Effect::PartInFlash(tag)));
        self.pump(now, hw);
    }

    /// The program of a unit of data at `first` has ended. Returns whether it failed.
    pub(super) fn program_failed(&mut self, first: Ppn, hw: &mut impl Hardware) -> bool {
        self.space.data_program_ended(first);
        self.map.release(self.geometry.slices_per_unit());
        self.fails(first, hw)
    }

    fn fails(&mut self, first: Ppn, hw: &mut impl Hardware) -> bool {
        let failed = hw.program_fails();
        if failed {
            self.log.program_failed(first, self.write.sequence(), &mut self.space, hw);
        }
        failed
    }

    /// A unit of data is in flash, and the map updated. If its superblock is full, its table is written.
    #[inline]
    fn unit_is_in_flash(&mut self, now: Ns, first: Ppn, hw: &mut impl Hardware) {
        let sb = self.space.of(first);
        self.log.data_programmed(first, &self.space, hw);
        self.log.discard_if_empty(&mut self.space, sb);
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
            self.log.count_unit();
            hw.stats().table_writes += 1;
            self.space.program(now, Op::new(Job::TableProgram, Ppn(first.0 + unit * unit_slices)), hw);
        }
    }

    /// A unit of the table of a superblock has been programmed.
    pub(crate) fn table_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let first = hw.end(id).ppn;
        self.space.data_program_ended(first);
        let sb = self.space.of(first);
        if !self.fails(first, hw) {
            self.space.table_unit_written(sb);
            self.log.table_programmed(first, &self.space, hw);
        }
        self.log.discard_if_empty(&mut self.space, sb);
        self.pump(now, hw);
    }

    /// One die of a superblock is erased.
    pub(crate) fn erased(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        let sb = SuperblockId(op.lpn);
        if self.space.erasing() != Some(sb) {
            self.log.anchor_erased(sb, &self.space, hw);
            return self.step_checkpoint(now, hw);
        }
        let failed = hw.erase_fails();
        hw.stats().erase_failures += u64::from(failed);
        hw.stats().bad_blocks += u64::from(failed);
        if self.space.die_erased(sb, self.geometry.die_of(op.ppn), failed) {
            hw.stats().retired_superblocks += u64::from(self.space.get(sb).state == State::Retired);
            hw.emit(MediaOp::Erase { first: self.space.first(sb), slices: self.space.slices() });
            self.log.export_block(sb, &self.space, hw);
            self.collect.look_at_wear();
            self.pump(now, hw);
        }
    }

    /// A spare area, a table or a map page for collection has been read.
    pub(crate) fn collect_read_done(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        hw.end(id);
        self.collect.read_done();
        self.collect_after_read(now, hw);
    }

    /// A page of data that moves is in the buffer.
    pub(crate) fn move_read_done(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        self.collect.move_read_done(hw.end(id).index as u16);
        self.collect_after_read(now, hw);
    }

    fn collect_after_read(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.collect(now, hw);
        // Moved data may wait for room in the table of changes, or for the journal.
        self.write_back(now, hw);
        self.program_meta(now, hw);
        if self.is_stuck(hw) {
            self.pump(now, hw);
        }
    }

    /// A unit of moved data has been programmed.
    pub(crate) fn move_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        self.collect.program_done();
        let failed = self.program_failed(op.ppn, hw);
        let mut chain = op.index as u16;
        let mut to = op.ppn;
        while let Some((moving, is_current)) = self.collect.next_moved(&mut chain, failed) {
            if !failed {
                self.space.spares_mut().program(to, moving.lpn, moving.sequence);
                let sequence = self.log.sequence_in_flash(moving.sequence);
                hw.emit(MediaOp::Move { from: moving.from, to, lpn: moving.lpn.0, sequence });
                if is_current {
                    self.relocate(moving.lpn, Entry::at(to));
                    if !self.map.is_zoned(moving.lpn) {
                        self.effects.changed(moving.lpn);
                    }
                }
            }
            to = Ppn(to.0 + 1);
        }
        if !failed {
            self.unit_is_in_flash(now, op.ppn, hw);
        }
        self.pump(now, hw);
    }

    /// A map page that is to be written back has been read.
    pub(crate) fn write_back_loaded(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        self.log.write_back_loaded(id, &self.map, hw);
        self.program_meta(now, hw);
    }

    /// A unit of the meta stream has been programmed.
    pub(crate) fn meta_programmed(&mut self, id: OpId, hw: &mut impl Hardware) {
        self.log.meta_programmed(id, (&mut self.space, &mut self.map), &mut self.effects, hw);
    }

    /// The anchor of a checkpoint has been programmed.
    pub(crate) fn anchor_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let lent = self.log.anchor_programmed(id, (&mut self.space, &self.map), self.write.is_lent(), hw);
        self.write.set_lent(lent);
        if let Some(base) = self.log.forget_order(&mut self.space, &mut self.write) {
            self.write.renumber(base);
            self.log.renumber(base);
            self.space.renumber(base);
            self.collect.renumber(base);
        }
        self.log.erase_other_anchors(now, &mut self.space, hw);
        self.pump(now, hw);
    }
}
