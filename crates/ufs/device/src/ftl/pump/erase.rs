// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks that nothing needs any more: they are given up, wait for the journal, and are erased.

use super::super::durable::Record;
use super::super::{Ftl, State};
use crate::back::{Hardware, MediaOp};
use crate::config::CellMode;
use crate::ids::SuperblockId;
use readpath_flash::OpId;
use readpath_kit::Ns;

impl Ftl {
    /// Gives a superblock up if nothing in it is needed any more.
    pub(in crate::ftl) fn discard_if_empty(&mut self, sb: SuperblockId) {
        if self.space.is_empty(sb) && !self.meta.is_pinned(sb) {
            self.discard(sb);
        }
    }

    /// Gives a superblock up: it is erased when the journal allows.
    pub(in crate::ftl) fn discard(&mut self, sb: SuperblockId) {
        let record = self.journal.push(Record::Erase { superblock: sb });
        self.space.discard(sb, record);
        self.meta.given_up(sb);
    }

    /// Begins to erase a superblock that was given up, one at a time. The record of that has to be in flash first, so
    /// that no superblock that was free is taken for a full one after a power cut; and with it all records before it:
    /// trims, because what they freed may be all that a power cut would bring back.
    pub(in crate::ftl) fn begin_erase(&mut self, now: Ns, hw: &mut impl Hardware) {
        let Some(record) = self.space.waits_to_be_erased() else { return };
        if !self.journal.want(record) {
            return;
        }
        let Some(sb) = self.space.begin_erase() else { return };
        if self.space.get(sb).state == State::Retired {
            hw.stats().retired_superblocks += 1;
            self.tell_block(sb, hw);
            return self.begin_erase(now, hw);
        }
        if self.space.get(sb).mode == CellMode::Slc {
            self.note_slc_erase(sb);
        }
        self.space.erase_dies(now, sb, hw);
    }

    /// One die of a superblock is erased.
    pub(crate) fn erased(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        let sb = SuperblockId(op.lpn);
        let die = self.geometry.die_of(op.ppn);
        if self.space.erasing() != Some(sb) {
            return self.anchor_erased(now, sb, hw);
        }
        let failed = hw.erase_fails();
        hw.stats().erase_failures += u64::from(failed);
        hw.stats().bad_blocks += u64::from(failed);
        if self.space.die_erased(sb, die, failed) {
            hw.stats().retired_superblocks += u64::from(self.space.get(sb).state == State::Retired);
            let (first, slices) = (self.space.first(sb), self.space.slices());
            hw.emit(MediaOp::Erase { first, slices });
            self.tell_block(sb, hw);
            self.collector.look_at_wear();
            self.pump(now, hw);
        }
    }
}
