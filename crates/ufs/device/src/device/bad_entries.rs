// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts HPB entries that are not good. An entry does not name its block, so SRAM cannot show whether a forged entry
//! was made for another block of this device. The spare area of the slice that the entry names can, but has to be
//! read, which the configuration must ask for.

use crate::back::{Hardware, Job, MediaMode, Op, Probe};
use crate::config::CellMode;
use crate::device::UfsDevice;
use crate::hpb::Verdict;
use crate::ids::TagRef;
use readpath_flash::{DieSched, OpId};
use readpath_kit::Ns;
use readpath_proto::typed::HpbEntry;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Counts the bad `entry` of the HPB READ `tag` for `block`.
    #[inline(never)]
    pub(crate) fn bad_entry(&mut self, now: Ns, tag: u8, block: u32, entry: HpbEntry, verdict: Verdict) {
        let lun = self.front.slot(tag).lun;
        if self.back.engine().config().check > Ns::ZERO
            && self.hpb.standard(lun).is_some_and(|unit| unit.was_checked_twice(block, verdict))
        {
            self.check_again(now, 1);
        }
        if verdict != Verdict::Forged
            || !self.back.engine().config().tell_foreign
            || !self.look_for_owner(now, tag, entry)
        {
            verdict.count(self.back.stats());
        }
    }

    /// Reads the spare area of the slice that `entry` names. False if it names none, or no operation is free: the
    /// entry then counts as forged.
    fn look_for_owner(&mut self, now: Ns, tag: u8, entry: HpbEntry) -> bool {
        let Some(ppn) = self.hpb.named(entry).filter(|_| self.back.ops().has_room()) else { return false };
        let word = u64::from_be_bytes(entry.0);
        let cells = if self.looks_at_superblocks { self.ftl.mode_of(ppn) } else { CellMode::Full };
        let (index, frame) = ((word >> 32) as u32, word as u32);
        let tag = TagRef { tag, life: 0 };
        let op = Op { cells, tag, count: 1, index, frame, ..Op::new(Job::OwnerRead, ppn) };
        self.back.stats().owner_reads += 1;
        self.back.begin(now, op);
        true
    }

    /// The spare area has been read: it names a block, for which the entry was made or was not.
    pub(crate) fn owner_known(&mut self, now: Ns, id: OpId) {
        let op = self.back.end(id);
        let entry = HpbEntry((u64::from(op.index) << 32 | u64::from(op.frame)).to_be_bytes());
        let was_made_for = self.ftl.spare_area(op.ppn).and_then(|lpn| self.hpb.was_made_for(lpn, entry));
        if was_made_for.is_some() {
            // Two checks: against the block's current hand-out and the one before.
            self.check_again(now, 2);
        }
        let is_foreign = was_made_for == Some(true);
        let counter = if is_foreign { &mut self.back.stats().hpb_foreign } else { &mut self.back.stats().hpb_forged };
        *counter += 1;
    }
}
