// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads whose entries do not all fit into the command (HPB 2.0): a pre-request precedes the read, on a tag of its
//! own, or the command carries the entries in an extra header segment. While there is no tag for a pre-request, the
//! read waits for `requeue_timeout_ms` and is then sent without entries. Which entries may be used is not known here.

use super::Driver;
use super::tags::{MAX_SLOTS, Tag, TagState, Use};
use crate::block::BlockOp;
use crate::hpb::{Carries, HpbLu};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::typed::{Cdb, Command, Form, HpbEntry, Request, RequestBody};

pub(super) struct LongReads {
    /// Entry of the first block of the read under each tag.
    first: [HpbEntry; MAX_SLOTS],
    /// When each stops waiting for a pre-request; [`Ns::NEVER`] if it does not wait.
    give_up_at: [Ns; MAX_SLOTS],
    waiting: Vec<Tag>,
}

impl LongReads {
    pub(super) fn new() -> Self {
        LongReads {
            first: [HpbEntry::ZERO; MAX_SLOTS],
            give_up_at: [Ns::NEVER; MAX_SLOTS],
            waiting: Vec::with_capacity(MAX_SLOTS),
        }
    }

    pub(super) fn deadline(&self) -> Ns {
        self.waiting.iter().map(|&tag| self.give_up_at[tag.row()]).min().unwrap_or(Ns::NEVER)
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.give_up_at.fill(Ns::NEVER);
    }
}

impl Driver {
    /// When the first read stops waiting for a pre-request's tag. Nothing else may happen before.
    #[inline]
    pub fn requeue_deadline(&self) -> Ns {
        self.long_reads.as_ref().map_or(Ns::NEVER, |long| long.deadline())
    }

    /// Whether the request under `tag` is a read that this module sends.
    #[inline(always)]
    pub(super) fn is_long_read(&self, state: &TagState) -> bool {
        state.blocks > 1 && self.long_reads.is_some() && (state.used, state.op) == (Use::Block, BlockOp::Read)
    }

    /// The next request for the read that `tag` carries: its pre-request, or itself. `None` if it has to wait.
    #[inline(never)]
    pub(super) fn long_read(&mut self, now: Ns, tag: Tag) -> Option<Request> {
        let at = tag.row();
        let TagState { lun, block, blocks, read_id, retries, .. } = self.tags[tag];
        let expected_bytes = blocks * BLOCK_BYTES;
        let send = |cdb| Some(Request { lun, tag: tag.0, body: RequestBody::Command(Command { expected_bytes, cdb }) });
        let hpb_read = |entry, read_id| Cdb::HpbRead { lba: block, blocks: blocks as u8, entry, flags: 0, read_id };
        let plain = Cdb::Read { form: Form::Ten, lba: u64::from(block), blocks, flags: 0 };
        let long = self.long_reads.as_mut().expect("a host with long reads");
        if read_id != 0 {
            // Its pre-request has just been sent.
            return send(hpb_read(long.first[at], read_id));
        }
        let Some(entry) = self.entry_for(now, tag) else { return send(plain) };
        if self.quirks.resends_old_entries && retries > 0 {
            // A command that is sent again keeps its form and its entry, even if the map has changed.
            return send(hpb_read(entry, 0));
        }
        let Driver { units, tags, data_out, long_reads, out, .. } = self;
        let (Some(hpb), Some(long)) =
            (units[usize::from(lun)].as_mut().and_then(|unit| unit.hpb.standard_mut()), long_reads)
        else {
            return send(plain);
        };
        match hpb.carries(blocks) {
            Carries::First => return send(hpb_read(entry, 0)),
            Carries::All => {
                hpb.entries(block, blocks, &mut data_out[at]);
                tags[tag].listed = true;
                return send(hpb_read(entry, 0));
            }
            Carries::PreRequest => {}
        }
        let id = if tags.has_free() { hpb.begin_pre_request() } else { None };
        let Some(id) = id else {
            let first_try = long.give_up_at[at] == Ns::NEVER;
            if first_try {
                long.give_up_at[at] = now + Ns::from_ms(u64::from(hpb.params().requeue_timeout_ms));
            }
            let given_up = now >= long.give_up_at[at];
            hpb.pre_request_lacks_tag(given_up);
            tags[tag].hpb = false;
            if given_up {
                long.give_up_at[at] = Ns::NEVER;
                return send(plain);
            }
            long.waiting.push(tag);
            self.reads_wait = true;
            self.find_timer();
            return None;
        };
        let other = tags.take().expect("seen above");
        long.give_up_at[at] = Ns::NEVER;
        long.first[at] = entry;
        tags[tag].read_id = id;
        tags[other] = TagState { used: Use::PreRequest, lun, ..TagState::FREE };
        let list = &mut data_out[other.row()];
        hpb.entries(block, blocks, list);
        let list_bytes = list.len() as u16;
        // The read itself is next.
        out.push_front(tag);
        let cdb = Cdb::HpbPreRequest { lba: block, read_id: id, list_bytes };
        let command = Command { expected_bytes: u32::from(list_bytes), cdb };
        Some(Request { lun, tag: other.0, body: RequestBody::Command(command) })
    }

    #[inline(never)]
    pub(super) fn wake_long_reads(&mut self) {
        self.reads_wait = false;
        if let Some(long) = self.long_reads.as_mut().filter(|long| !long.waiting.is_empty()) {
            long.waiting.drain(..).for_each(|tag| self.out.push_back(tag));
            self.find_timer();
        }
    }

    pub(super) fn pre_request_ended(&mut self, lun: u8) {
        self.hpb_of(lun).into_iter().for_each(HpbLu::pre_request_ended);
    }
}
