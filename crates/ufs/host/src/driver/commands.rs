// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the command for the request of a tag when it is sent to the controller: READ becomes HPB READ here, and
//! writes make their entries dirty. Which tag is sent next is not decided here.

use super::tags::{Tag, TagState, Use};
use super::{Driver, LastEntries};
use crate::block::BlockOp;
use crate::hpb::UnitHpb;
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::scsi::encode_unmap;
use readpath_proto::typed::{Cdb, Command, FLAG_FUA, Form, HpbEntry, ZoneAction};

impl LastEntries {
    /// A command that is sent again keeps its form and its entry, or takes the new `entry` if there is one.
    fn keep(&mut self, tag: Tag, was_hpb: bool, entry: Option<u64>) -> Option<u64> {
        match entry {
            Some(entry) => self.0[tag.row()] = entry,
            None if was_hpb => return Some(self.0[tag.row()]),
            None => {}
        }
        entry
    }
}

impl Driver {
    #[inline(always)]
    pub(super) fn entry_for(&mut self, now: Ns, tag: Tag) -> Option<HpbEntry> {
        let state = &mut self.tags[tag];
        let hpb = self.units[usize::from(state.lun)].as_mut().and_then(|unit| unit.hpb.standard_mut());
        let entry = hpb.filter(|_| !state.plain).and_then(|hpb| hpb.entry_for(now, state.block, state.blocks));
        if self.paths.follows_reads {
            // Passed as a word: bytes would go through memory, at a cost for every read.
            let word = entry.map(|HpbEntry(bytes)| u64::from_ne_bytes(bytes));
            return self.follow_read(now, tag, word).map(|word| HpbEntry(word.to_ne_bytes()));
        }
        state.hpb = entry.is_some();
        entry
    }

    /// Rare paths of a read: Linux sends old entries again, policies measure commands, and units of the prototype
    /// have hints instead of entries. Returns the entry to send.
    #[inline(never)]
    fn follow_read(&mut self, now: Ns, tag: Tag, mut entry: Option<u64>) -> Option<u64> {
        let TagState { lun, block, blocks, plain, hpb: was_hpb, .. } = self.tags[tag];
        if let Some(last) = &mut self.last_entries {
            entry = last.keep(tag, was_hpb, entry);
        }
        if let Some(unit) = self.units[usize::from(lun)].as_mut().filter(|_| self.times.is_some()) {
            if let UnitHpb::Prototype(groups) = &mut unit.hpb {
                let hint = if plain { None } else { groups.hint_for(block, blocks) };
                entry = hint.map(|HpbEntry(bytes)| u64::from_ne_bytes(bytes));
            }
            self.note_sent(now, tag);
        }
        self.tags[tag].hpb = entry.is_some();
        entry
    }

    pub(super) fn command(&mut self, now: Ns, tag: Tag) -> Command {
        let state = &self.tags[tag];
        let TagState { op, block, blocks, used, .. } = *state;
        let lun = usize::from(state.lun);
        let lba = u64::from(block);
        if op == BlockOp::Read {
            let entry = self.entry_for(now, tag);
            let cdb = match (entry, &self.units[lun]) {
                (Some(entry), Some(unit)) => unit.hpb.read_with(block, blocks, entry),
                _ => Cdb::Read { form: Form::Ten, lba, blocks, flags: 0 },
            };
            return Command { expected_bytes: blocks * BLOCK_BYTES, cdb };
        }
        if state.writes()
            && let Some(hpb) = self.units[lun].as_mut().and_then(|unit| unit.hpb.standard_mut())
        {
            hpb.write(block, blocks);
        }
        match op {
            BlockOp::Discard => {
                let list = &mut self.data_out[tag.row()];
                encode_unmap(&[(lba, blocks)], list);
                Command { expected_bytes: list.len() as u32, cdb: Cdb::Unmap { list_bytes: list.len() as u16 } }
            }
            BlockOp::Flush => {
                let cdb = Cdb::SynchronizeCache { form: Form::Ten, lba: 0, blocks: 0, immed: false };
                Command { expected_bytes: 0, cdb }
            }
            BlockOp::ResetZone | BlockOp::FinishZone => {
                let action = if op == BlockOp::ResetZone { ZoneAction::Reset } else { ZoneAction::Finish };
                Command { expected_bytes: 0, cdb: Cdb::ManageZones { action, lba, count: 0, all: false } }
            }
            _ => {
                let flags = if op == BlockOp::WriteFua { FLAG_FUA } else { 0 };
                // As Linux for a host-managed disk.
                let form = if used == Use::Ordered { Form::Sixteen } else { Form::Ten };
                let cdb = Cdb::Write { form, lba, blocks, flags };
                Command { expected_bytes: blocks * BLOCK_BYTES, cdb }
            }
        }
    }
}
