// SPDX-License-Identifier: MIT OR Apache-2.0
//! HPB READ of more than one block (HPB 2.0): which entries came with it, and where they place its blocks. An entry
//! is used only as far as the device can verify it when the flash operation begins: see [`crate::hpb`].

use crate::back::{Hardware, MediaMode, Probe};
use crate::config::MOST_ENTRIES;
use crate::device::UfsDevice;
use crate::front::Kind;
use readpath_flash::{DieSched, Ppn};
use readpath_kit::Ns;
use readpath_proto::typed::{Cdb, Command, HpbEntry, RequestBody, Sense};

/// What entries say of the next blocks of an HPB READ.
pub(crate) enum Hint {
    /// This many blocks lie in a row from this address on.
    At(Ppn, u32),
    /// This many blocks have to be translated.
    Translate(u32),
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Stores the entries in the extra header segment of the HPB READ `tag`. If the device accepts none, or their
    /// number differs from that of the blocks, the command is served as a READ.
    #[cold]
    pub(crate) fn keep_listed(&mut self, tag: u8, entries: &[u8]) {
        let takes = self.hpb.v2().is_some_and(|v2| v2.entries_in_ehs);
        let slot = self.front.slot_mut(tag);
        if takes && entries.len() == slot.blocks as usize * HpbEntry::BYTES {
            slot.data_out.clear();
            slot.data_out.extend_from_slice(entries);
            slot.hpb.listed = true;
        }
    }

    /// An HPB READ with a READ ID has arrived: takes the entries of its pre-request, if they are stored.
    #[cold]
    pub(crate) fn find_pre_request(&mut self, tag: u8) {
        let slot = self.front.slot_mut(tag);
        let (lun, id, lba, blocks) = (slot.lun, slot.hpb.read_id, slot.lba as u32, slot.blocks);
        if self.hpb.take_pre_request(lun, id, lba, blocks, &mut slot.data_out) {
            slot.hpb.listed = true;
            self.back.stats().pre_requests_used += 1;
        }
    }

    /// Time of the HPB READ `tag` beside its flash operations, with the check of its entries: the calibrated time for
    /// the first, and the time of making an entry for each further one.
    pub(crate) fn time_to_check(&self, tag: u8) -> Ns {
        let slot = self.front.slot(tag);
        let more = if slot.hpb.listed { u64::from(slot.blocks.saturating_sub(1)) } else { 0 };
        let each = self.back.cpu().timing().make_entry + self.back.engine().config().check_on_firmware();
        Ns(self.hpb_command.0 + each.0 * more)
    }

    /// What the entries of the HPB READ `tag` say of its blocks from `index` on. They are checked each time, because
    /// blocks may have moved between two operations of the command.
    pub(crate) fn by_entries(&mut self, now: Ns, tag: u8, index: u32) -> Hint {
        let slot = self.front.slot(tag);
        let left = slot.blocks - index;
        let Some(unit) = self.hpb.standard(slot.lun).filter(|_| slot.kind == Kind::HpbRead) else {
            return Hint::Translate(left);
        };
        let first = slot.lba as u32;
        if !slot.hpb.listed {
            return match self.hpb.place(unit, first, slot.hpb.entry, slot.blocks) {
                Ok((ppn, run)) if run > index => Hint::At(Ppn(ppn.0 + index), run - index),
                _ => Hint::Translate(left),
            };
        }
        let mut bad = 0;
        while bad < left {
            let slot = self.front.slot(tag);
            let (entries, _) = slot.data_out.as_chunks::<{ HpbEntry::BYTES }>();
            let entry = HpbEntry(entries[(index + bad) as usize]);
            let was_counted = index + bad < slot.hpb.counted;
            let unit = self.hpb.standard(slot.lun).expect("seen above");
            match self.hpb.place(unit, first + index + bad, entry, left - bad) {
                Ok((ppn, run)) if bad == 0 => return Hint::At(ppn, run),
                Ok(_) => break,
                Err(verdict) => {
                    // A block may be looked at several times, but counts once.
                    if !was_counted {
                        self.bad_entry(now, tag, first + index + bad, entry, verdict);
                    }
                    bad += 1;
                }
            }
        }
        let slot = self.front.slot_mut(tag);
        slot.hpb.counted = slot.hpb.counted.max(index + bad);
        Hint::Translate(bad)
    }

    /// HPB WRITE BUFFER 02h has arrived. Its entries are in SRAM at once, so that the HPB READ behind it finds them;
    /// the firmware answers later.
    pub(crate) fn pre_request(&mut self, tag: u8) {
        let slot = self.front.slot(tag);
        let RequestBody::Command(Command { cdb: Cdb::HpbPreRequest { lba, read_id, list_bytes }, .. }) = slot.body
        else {
            return;
        };
        if slot.hpb.listed || !self.hpb.is_enabled() || self.pre_request_fault(tag).is_some() {
            return;
        }
        let list = &slot.data_out[..usize::from(list_bytes)];
        self.hpb.store_pre_request(slot.lun, read_id, lba, list);
        self.back.stats().pre_requests += 1;
        // The answer must not store the entries again: the HPB READ may have taken them already.
        self.front.slot_mut(tag).hpb.listed = true;
    }

    /// Answers HPB WRITE BUFFER 02h.
    pub(crate) fn answer_pre_request(&mut self, now: Ns, tag: u8) {
        // It arrived while a unit attention was pending, which an earlier command has reported.
        self.pre_request(tag);
        match self.pre_request_fault(tag) {
            Some(sense) => self.check(now, tag, sense),
            None => self.send_reply(now, tag),
        }
    }

    fn pre_request_fault(&self, tag: u8) -> Option<Sense> {
        let slot = self.front.slot(tag);
        let RequestBody::Command(Command { cdb: Cdb::HpbPreRequest { lba, read_id, list_bytes }, .. }) = slot.body
        else {
            return Some(Sense::INVALID_FIELD);
        };
        // Pre-requests exist since HPB 2.0, and READ ID 0 means that there was none.
        let bytes = usize::from(list_bytes);
        let entries = bytes / HpbEntry::BYTES;
        let whole = bytes.is_multiple_of(HpbEntry::BYTES) && (1..=usize::from(MOST_ENTRIES)).contains(&entries);
        if self.hpb.v2().is_none() || read_id == 0 || !whole || slot.data_out.len() < bytes {
            return Some(Sense::INVALID_FIELD);
        }
        let unit_blocks = self.front.blocks(slot.lun);
        (u64::from(lba) + entries as u64 > u64::from(unit_blocks)).then_some(Sense::LBA_OUT_OF_RANGE)
    }
}
