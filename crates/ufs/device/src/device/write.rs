// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path of a write and of TRIM at the device's front, and the effects of flash translation.

use crate::back::{Hardware, MediaMode, Probe, Work};
use crate::device::UfsDevice;
use crate::front::Slot;
use crate::ftl::{Effect, Incoming};
use crate::ids::TagRef;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_proto::scsi;
use readpath_proto::typed::{FLAG_FUA, Sense};

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    pub(crate) fn write(&mut self, now: Ns, tag: u8) {
        let &Slot { lun, lba, blocks, flags, .. } = self.front.slot(tag);
        let Some(lpn) = self.front.lpn_of(lun, lba, blocks) else {
            return self.check(now, tag, Sense::LBA_OUT_OF_RANGE);
        };
        let slot = self.front.slot_mut(tag);
        (slot.lpn, slot.left, slot.fua) = (lpn, blocks, flags & FLAG_FUA != 0);
        self.ftl.map().prefetch(lpn);
        let cost = self.back.cpu().timing().write_command;
        self.back.work(now, cost, Work::Accept(self.front.tag_ref(tag)));
    }

    /// Accepts the data of a write into the buffer, or queues it.
    pub(crate) fn accept(&mut self, now: Ns, tag: TagRef) {
        if self.front.is_zoned(self.front.slot(tag.tag).lun) && !self.at_write_pointer(now, tag) {
            return;
        }
        let slot = self.front.slot(tag.tag);
        if slot.blocks == 0 {
            return self.send_reply(now, tag.tag);
        }
        let fua = slot.fua && !self.front.is_zoned(slot.lun);
        let write = Incoming { tag, lpn: slot.lpn, index: 0, blocks: slot.blocks, fua };
        self.arm_background(now);
        self.ftl.accept(now, write, &mut self.back);
        self.settle(now);
    }

    /// Schedules a check for idle time, if background work may be useful then.
    pub(crate) fn arm_background(&mut self, now: Ns) {
        if self.ftl.arm_background(now) {
            self.find_rare();
        }
    }

    /// Lets all background work continue.
    pub(crate) fn pump(&mut self, now: Ns) {
        self.ftl.pump(now, &mut self.back);
        self.settle(now);
    }

    /// Applies the effects of flash translation, in order.
    #[inline(always)]
    pub(crate) fn settle(&mut self, now: Ns) {
        while let Some(effect) = self.ftl.take_effect() {
            match effect {
                Effect::Changed { first, blocks } => self.hpb.blocks_changed(first, blocks),
                Effect::Done(tag) if self.ftl.zones().is_resetting(tag) => self.trimmed(now, tag),
                Effect::Done(tag) if self.front.slot(tag.tag).fua => self.zoned_write_accepted(now, tag),
                Effect::Done(tag) => self.send_reply(now, tag.tag),
                Effect::PartInFlash(tag) => self.part_in_flash(now, tag),
                Effect::Refused(tag) => self.refuse(now, tag),
                Effect::Unaligned(tag) if self.front.is_alive(tag) => {
                    self.check(now, tag.tag, Sense::UNALIGNED_WRITE);
                }
                Effect::Unaligned(_) => {}
                Effect::MapPageWritten(page) => self.renew_copy(now, page),
            }
        }
    }

    /// One part of what a command waits for is in flash.
    fn part_in_flash(&mut self, now: Ns, tag: TagRef) {
        if self.ftl.zones().is_resetting(tag) {
            return self.zones_are_empty(now, tag);
        }
        if !self.front.is_alive(tag) {
            return;
        }
        let slot = self.front.slot_mut(tag.tag);
        slot.left -= 1;
        if slot.left == 0 {
            self.send_reply(now, tag.tag);
        }
    }

    #[cold]
    fn refuse(&mut self, now: Ns, tag: TagRef) {
        if self.front.is_alive(tag) {
            self.back.stats().no_space += 1;
            self.check(now, tag.tag, Sense::NO_SPACE);
        }
    }

    pub(crate) fn synchronize(&mut self, now: Ns, tag: u8, immed: bool) {
        if immed {
            self.ftl.flush();
            self.send_reply(now, tag);
        } else {
            let parts = self.ftl.sync(self.front.tag_ref(tag));
            self.front.slot_mut(tag).left = parts;
            if parts == 0 {
                return self.send_reply(now, tag);
            }
        }
        self.pump(now);
    }

    /// UNMAP. Nothing is trimmed unless all of its ranges are within the unit's `blocks`.
    pub(crate) fn unmap(&mut self, now: Ns, tag: u8, blocks: u64) {
        let slot = self.front.slot(tag);
        let beyond = |(lba, n): (u64, u32)| lba.saturating_add(u64::from(n)) > blocks;
        match scsi::parse_unmap(&slot.data_out).map(|mut ranges| ranges.any(beyond)) {
            Err(_) => self.check(now, tag, scsi::UnmapError::SENSE),
            Ok(true) => self.check(now, tag, Sense::LBA_OUT_OF_RANGE),
            Ok(false) => {
                let base = self.front.base(slot.lun);
                let ranges = scsi::parse_unmap(&slot.data_out).into_iter().flatten();
                let ranges = ranges.map(|(lba, blocks)| (base + lba as u32, blocks));
                let tag = TagRef { tag, life: slot.life };
                self.ftl.unmap(now, tag, ranges, &mut self.back);
                self.settle(now);
            }
        }
        self.pump(now);
    }
}
