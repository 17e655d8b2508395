// SPDX-License-Identifier: MIT OR Apache-2.0
//! The prototype of HPB at the device (W. Jeong et al., HotStorage 2017): READ (16) with an entry, groups handed out
//! with HPB READ BUFFER, and the state of groups in responses. [`Groups`](crate::hpb::prototype::Groups) decides
//! which hints are current.
//!
//! A hint is the address of the first block; the others follow it. The device reads the page that the hint names, and
//! the spare area read with it must name the requested blocks. That proves no more: an older copy of the same block
//! has the same spare area, and only the dirty bits exclude it.

use super::{OPS_PER_REQUEST, Run, UfsDevice, residual};
use crate::back::{Hardware, Job, MediaMode, MediaOp, Op, Probe};
use crate::config::Verification;
use crate::front::Kind;
use crate::ftl::Mapping;
use crate::hpb::Verdict;
use crate::hpb::prototype::Forgotten;
use crate::ids::{Lpn, TagRef};
use readpath_flash::{DieSched, Done, Ppn};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::groups::{GroupEntry, GroupHint, GroupNotice, GroupPair, group_of};
use readpath_proto::typed::{Cdb, Command, HpbEntry, ReplyBody, RequestBody, Residual, Response, Status};
use std::ops::Range;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    pub(super) fn has_groups(&self, lun: u8) -> bool {
        self.hpb.prototype().is_some_and(|groups| groups.has(lun))
    }

    /// The command of a read with an `entry`: HPB READ, or READ (16) with the HPB flag.
    #[cold]
    pub(super) fn read_with(&self, lun: u8, block: u32, blocks: u32, entry: HpbEntry) -> Cdb {
        if self.has_groups(lun) {
            return Cdb::HintedRead { lba: block, blocks, hint: GroupHint::from_entry(entry), flags: 0 };
        }
        debug_assert!(blocks <= 255, "HPB READ has one byte for its {blocks} blocks");
        Cdb::HpbRead { lba: block, blocks: blocks as u8, entry, flags: 0, read_id: 0 }
    }

    /// READ (16) with a hint arrives at a unit that is ready; false for another command or a unit without groups.
    pub(super) fn hinted_read(&mut self, now: Ns, tag: u8) -> bool {
        let slot = self.front.slot_mut(tag);
        let RequestBody::Command(Command { cdb: Cdb::HintedRead { lba, blocks, hint, flags }, .. }) = slot.body else {
            return false;
        };
        let Some(groups) = self.hpb.prototype_mut().filter(|groups| groups.has(slot.lun)) else { return false };
        groups.hint_came(hint);
        let lun = slot.lun;
        // The command continues as a READ whose address may be known.
        (slot.kind, slot.lba, slot.blocks, slot.flags) = (Kind::Read, u64::from(lba), blocks, flags);
        let lpn = self.front.lpn_of(lun, u64::from(lba), blocks);
        let Some(lpn) = lpn.filter(|_| blocks > 0) else {
            self.read(now, tag);
            return true;
        };
        self.back.stats().hpb_reads += 1;
        match self.judge_hint(lun, lba..lba + blocks, hint) {
            Verdict::Good(_) if self.back.ops().has_room() => {
                let hand_outs = self.hand_outs();
                let slot = self.front.slot_mut(tag);
                slot.lpn = lpn;
                (slot.issued, slot.left, slot.in_flight, slot.hpb.hinted) = (0, blocks, 0, false);
                let bytes = u64::from(blocks) * u64::from(BLOCK_BYTES);
                if u64::from(slot.expected_bytes) != bytes {
                    let residual = residual(bytes, slot.expected_bytes);
                    slot.outcome = Some(ReplyBody::Response(Response { residual, ..Response::GOOD }));
                }
                slot.hpb.entry = hint.to_entry();
                slot.hpb.counted = hand_outs;
                self.read_as_hinted(now, tag);
            }
            // No operation is free: the command waits as a READ does, and then uses the map.
            Verdict::Good(_) => self.read(now, tag),
            bad => {
                bad.count(self.back.stats());
                self.back.cpu_mut().occupy(now, self.hpb_read_extra);
                self.read(now, tag);
            }
        }
        true
    }

    fn hand_outs(&self) -> u32 {
        self.hpb.prototype().map_or(0, |groups| groups.hand_outs())
    }

    fn judge_hint(&self, lun: u8, blocks: Range<u32>, hint: GroupHint) -> Verdict {
        let first = hint.entry.address();
        let Some(groups) = self.hpb.prototype() else { return Verdict::Inactive };
        if hint.entry == GroupEntry::ZERO {
            Verdict::Zero
        } else if u64::from(first) + blocks.len() as u64 > u64::from(self.array_slices()) {
            Verdict::Forged
        } else if self.believes_all() || groups.are_current(lun, blocks, hint.seen) {
            Verdict::Good(Ppn(first))
        } else {
            Verdict::Stale
        }
    }

    /// Whether all hints are believed, for tests of the dirty bits.
    fn believes_all(&self) -> bool {
        self.config.hpb.is_some_and(|hpb| hpb.verification == Verification::Off)
    }

    /// Begins to read at the hinted address of `tag`, as far as the request's limit allows. Each block counts as one
    /// operation, because it may turn out to need one.
    fn read_as_hinted(&mut self, now: Ns, tag: u8) {
        loop {
            let slot = self.front.slot(tag);
            let (index, life, lpn) = (slot.issued, slot.life, slot.lpn + slot.issued);
            let ppn = Ppn(GroupHint::from_entry(slot.hpb.entry).entry.address() + index);
            let count = (slot.blocks - index).min(self.ftl.slices_per_read_from(ppn)).min(OPS_PER_REQUEST);
            if count == 0 || slot.in_flight + count > OPS_PER_REQUEST || !self.back.ops().has_room() {
                return;
            }
            let extra = if index == 0 { self.hpb_command } else { Ns::ZERO };
            // What the spare areas will say is known now: later operations on these pages reach the die after this
            // read.
            let names = |i: u32| self.ftl.spare_area(Ppn(ppn.0 + i)) == Some(lpn + i);
            let foreign = (0..count).filter(|&i| !names(i)).fold(0, |foreign, i| foreign | 1 << i);
            let mut op = Op {
                tag: TagRef { tag, life },
                count: count as u16,
                index,
                lpn: lpn.0,
                ..Op::new(Job::HintedRead, ppn)
            };
            op.frame = foreign;
            let id = self.back.ops_mut().take(op);
            let slot = self.front.slot_mut(tag);
            slot.in_flight += count;
            slot.issued += count;
            self.back.stats().data_reads += 1;
            self.begin_other_read(now, extra, id);
        }
    }

    /// A page at a hinted address has been read.
    pub(super) fn hinted_read_done(&mut self, now: Ns, done: Done) {
        let op = self.back.end(done.op);
        if !self.front.is_alive(op.tag) {
            return;
        }
        let count = u32::from(op.count);
        self.front.slot_mut(op.tag.tag).in_flight -= count;
        let foreign = op.frame.count_ones();
        if !self.believes_all() && foreign > 0 {
            self.back.stats().hpb_foreign += u64::from(foreign);
            return self.read_in_spite_of_hint(now, &op);
        }
        for i in 0..count {
            self.back.emit(MediaOp::ReadFlash { tag: op.tag.tag, index: op.index + i, ppn: Ppn(op.ppn.0 + i) });
        }
        self.back.stats().hpb_hits += u64::from(count);
        let slot = self.front.slot(op.tag.tag);
        if slot.blocks > 1 {
            self.back.stats().hpb_long_hits += u64::from(count);
        }
        self.go_on_with_hint(now, op.tag.tag);
        self.blocks_ready(done.at, op.tag.tag, op.count);
    }

    /// Continues a long read. Hand-outs since it arrived may have made its hint an old one; changes may have made its
    /// address stale.
    fn go_on_with_hint(&mut self, now: Ns, tag: u8) {
        let slot = self.front.slot(tag);
        if slot.issued == slot.blocks {
            return;
        }
        let (lun, first) = (slot.lun, slot.lba as u32 + slot.issued);
        let hint = GroupHint::from_entry(slot.hpb.entry);
        let rest = first..slot.lba as u32 + slot.blocks;
        let is_good =
            slot.hpb.counted == self.hand_outs() && matches!(self.judge_hint(lun, rest, hint), Verdict::Good(_));
        if hint.entry != GroupEntry::ZERO && (is_good || self.believes_all()) {
            self.read_as_hinted(now, tag);
        } else {
            self.front.slot_mut(tag).hpb.entry = HpbEntry::ZERO;
        }
        let slot = self.front.slot(tag);
        if slot.in_flight == 0 || slot.hpb.entry == HpbEntry::ZERO {
            self.issue_reads(now, tag, Ns::ZERO);
        }
    }

    /// The hinted page holds other blocks. The requested blocks, and the rest of the read, are translated with the
    /// map.
    fn read_in_spite_of_hint(&mut self, now: Ns, op: &Op) {
        self.front.slot_mut(op.tag.tag).hpb.entry = HpbEntry::ZERO;
        let mut left = Run::of(op);
        while left.blocks > 0 {
            left = left.behind(self.issue_run(now, left, Ns::ZERO));
        }
        self.go_on_with_hint(now, op.tag.tag);
    }

    /// Makes the entries of a group, current as of now. If the host takes all of them, the group is no longer dirty.
    pub(super) fn hand_out_group(&mut self, now: Ns, tag: u8) {
        let slot = self.front.slot(tag);
        let RequestBody::Command(Command { cdb: Cdb::HpbReadBuffer { at, alloc, .. }, .. }) = slot.body else {
            unreachable!("only HPB READ BUFFER hands out")
        };
        let (lun, group) = (slot.lun, group_of(at));
        let expected_bytes = slot.expected_bytes;
        let groups = self.hpb.prototype_mut().expect("a device of the prototype");
        let blocks = groups.blocks_of(lun, group).expect("checked on arrival");
        let bytes = blocks.len() * GroupEntry::BYTES;
        if alloc as usize >= bytes && expected_bytes as usize >= bytes {
            groups.handed_out(lun, group);
        }
        let base = self.front.base(lun);
        let slot = self.front.slot(tag);
        let first = self.ftl.map().page_of(slot.lpn);
        let loaded = self.ftl.map_mut().in_read_buffer(first, slot.blocks, slot.left);
        let whole_entries = (alloc as usize / GroupEntry::BYTES).min(blocks.len());
        let slot = self.front.slot_mut(tag);
        slot.data_in.clear();
        for block in blocks.take(whole_entries) {
            let address = self.ftl.map().translate_in_buffer(loaded, base + block).flash().map_or(0, |ppn| ppn.0);
            slot.data_in.extend_from_slice(&GroupEntry::of(address).0);
        }
        self.send_data(now, tag);
    }

    /// Adds to the response to `tag` whether its group is dirty, and a changed entry.
    pub(super) fn tell_of_groups(&mut self, now: Ns, tag: u8, response: &mut Response) {
        let slot = self.front.slot(tag);
        let lun = slot.lun;
        let Some(groups) = self.hpb.prototype_mut().filter(|g| response.status == Status::Good && g.has(lun)) else {
            return;
        };
        let about = match (slot.kind, &slot.body) {
            (Kind::Read | Kind::Write, _) if slot.lba < u64::from(u32::MAX) => {
                let first = slot.lba as u32;
                Some(first..first.saturating_add(slot.blocks))
            }
            (_, RequestBody::Command(Command { cdb: Cdb::HpbReadBuffer { at, .. }, .. })) => {
                groups.blocks_of(lun, group_of(*at))
            }
            _ => None,
        };
        let dirty = about.filter(|_| response.residual == Residual::None).and_then(|at| groups.first_dirty(lun, at));
        let update = groups.next_update(lun, |lpn| changed_entry(self.ftl.map().known(Lpn(lpn))));
        let pair = update.map(|(lba, entry, _)| GroupPair { lba, entry });
        response.groups = GroupNotice::new(dirty, pair, update.map_or(0, |(.., number)| number));
        self.back.stats().dirty_groups_named += u64::from(dirty.is_some());
        if pair.is_some() {
            self.back.stats().entries_piggybacked += 1;
            // Known only after the response was sent, so the next response waits instead of this one.
            self.link_up(now, tag, self.front.link().bytes(readpath_proto::groups::PAIR_BYTES));
        }
    }
}

/// A changed entry for the host, if SRAM knows it: none while the block is only in the write buffer.
fn changed_entry(known: Option<Mapping>) -> Result<Option<GroupEntry>, Forgotten> {
    match known {
        None => Err(Forgotten),
        Some(Mapping::Buffered(_)) => Ok(None),
        Some(Mapping::Flash(ppn)) => Ok(Some(GroupEntry::of(ppn.0))),
        Some(Mapping::Unmapped) => Ok(Some(GroupEntry::ZERO)),
    }
}
