// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks that nothing needs any more: they are given up, wait for the journal, and are erased.

use super::durable::Record;
use super::{Ftl, State};
use crate::back::{Hardware, Job, MediaOp, Op};
use crate::ids::SuperblockId;
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

impl Ftl {
    /// Gives a superblock up if nothing in it is needed any more.
    pub(super) fn discard_if_empty(&mut self, sb: SuperblockId) {
        if self.superblocks.is_empty(sb) && !self.collector.is_emptying(sb) && !self.meta.is_pinned(sb) {
            self.discard(sb);
        }
    }

    /// Gives a superblock up: it is erased when the journal allows.
    pub(super) fn discard(&mut self, sb: SuperblockId) {
        let record = self.journal.push(Record::Erase { superblock: sb });
        self.superblocks.discard(sb, record);
        self.meta.given_up(sb);
    }

    /// Begins to erase a superblock that was given up, one at a time. The record of that has to be in flash first, so
    /// that no superblock that was free is taken for a full one after a power cut; and with it all records before it:
    /// trims, because what they freed may be all that a power cut would bring back.
    pub(super) fn begin_erase(&mut self, now: Ns, hw: &mut impl Hardware) {
        if self.erasing.is_some() {
            return;
        }
        let Some(record) = self.superblocks.waits_to_be_erased() else { return };
        if !self.journal.want(record) {
            return;
        }
        let Some(sb) = self.superblocks.begin_erase() else { return };
        if self.superblocks.get(sb).state == State::Retired {
            hw.stats().retired_superblocks += 1;
            self.tell_block(sb, hw);
            return self.begin_erase(now, hw);
        }
        self.erasing = Some(sb);
        if self.superblocks.get(sb).slc {
            self.note_slc_erase(sb);
        }
        let first = self.superblocks.first(sb);
        self.spares.erase(first, self.superblocks.slices());
        self.erase_dies(now, sb, hw);
    }

    /// Erases the good blocks of a superblock.
    pub(super) fn erase_dies(&mut self, now: Ns, sb: SuperblockId, hw: &mut impl Hardware) {
        let g = self.geometry;
        for die in (0..g.dies()).filter(|&die| !self.superblocks.is_bad(sb, die)).collect::<Vec<_>>() {
            let ppn = Ppn(self.superblocks.first(sb).0 + die * g.slices_per_unit());
            hw.stats().erases += 1;
            hw.stats().slc_erases += u64::from(self.superblocks.is_slc(ppn));
            self.begin_flash(now, Op { lpn: sb.0, ..Op::new(Job::Erase, ppn) }, hw);
        }
    }

    /// One die of a superblock is erased.
    pub(crate) fn erased(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        let sb = SuperblockId(op.lpn);
        let die = self.geometry.die_of(op.ppn);
        if self.erasing != Some(sb) {
            return self.anchor_erased(now, sb, hw);
        }
        let failed = hw.erase_fails();
        hw.stats().erase_failures += u64::from(failed);
        hw.stats().bad_blocks += u64::from(failed);
        if self.superblocks.die_erased(sb, die, failed) {
            self.erasing = None;
            hw.stats().retired_superblocks += u64::from(self.superblocks.get(sb).state == State::Retired);
            let (first, slices) = (self.superblocks.first(sb), self.superblocks.slices());
            hw.emit(MediaOp::Erase { first, slices });
            self.tell_block(sb, hw);
            self.collector.look_at_wear();
            self.pump(now, hw);
        }
    }
}
