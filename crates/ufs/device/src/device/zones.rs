// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands to zoned units (ZBC-2): reads, writes, REPORT ZONES and ZONE MANAGEMENT OUT. The rules of zones are those
//! of flash translation.

use super::run::Run;
use crate::back::{Hardware, MediaMode, MediaOp, Probe, Work};
use crate::device::UfsDevice;
use crate::front::Slot;
use crate::ftl::Mapping;
use crate::ids::TagRef;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_proto::typed::{FLAG_FUA, Sense, ZoneAction};
use readpath_proto::zones::{Listed, report_zones};

/// REPORT ZONES.
#[derive(Clone, Copy)]
pub(super) struct Report {
    pub start: u64,
    pub alloc: u32,
    pub options: u8,
    pub partial: bool,
}

/// ZONE MANAGEMENT OUT.
#[derive(Clone, Copy)]
pub(super) struct Managed {
    pub action: ZoneAction,
    pub lba: u64,
    pub count: u16,
    pub all: bool,
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// A read of a zoned unit arrives: from here on its blocks are counted without the gaps.
    pub(crate) fn zoned_read(&mut self, now: Ns, tag: u8) {
        let &Slot { lun, lba, blocks, .. } = self.front.slot(tag);
        match self.ftl.zones().read(lun, lba, blocks) {
            Ok(lpn) => {
                let base = self.front.base(lun);
                let slot = self.front.slot_mut(tag);
                slot.lba = u64::from(lpn - base);
                // As with entries of HPB, no map page is asked.
                slot.hpb.hinted = true;
                self.read(now, tag);
            }
            Err(sense) => self.check(now, tag, sense),
        }
    }

    /// Begins work for the longest run of blocks that one operation can serve; returns its length. Where they lie
    /// follows from their numbers, or SRAM knows it.
    pub(super) fn issue_zoned(&mut self, now: Ns, left: Run, extra: Ns) -> u32 {
        let most = left.at_most(u32::from(u16::MAX));
        let first = self.ftl.mapping(most.lpn);
        let n = self.run_length(most, first, |lpn| Some(self.ftl.mapping(lpn)));
        let run = most.at_most(n);
        match first {
            Mapping::Buffered(_) => {
                for i in 0..n {
                    if let Mapping::Buffered(slot) = self.ftl.mapping(run.lpn + i) {
                        self.back.emit(MediaOp::ReadBuffer { tag: run.tag.tag, index: run.index + i, slot });
                    }
                }
                self.back.stats().buffer_hits += u64::from(n);
                let cost = self.back.cpu().timing().buffer_read;
                self.served_from_sram(now, run, cost + extra);
            }
            Mapping::Flash(_) => {
                self.back.stats().zone_hits += u64::from(n);
                self.serve(now, run, first, extra);
            }
            Mapping::Unmapped => self.serve(now, run, first, extra),
        }
        n
    }

    /// A write to a zoned unit arrives. Whether it is at the write pointer is decided when the firmware accepts it:
    /// actions on zones before it have been carried out then.
    pub(crate) fn zoned_write(&mut self, now: Ns, tag: u8) {
        let slot = self.front.slot_mut(tag);
        (slot.left, slot.fua) = (slot.blocks, slot.flags & FLAG_FUA != 0);
        let cost = self.back.cpu().timing().write_command;
        self.back.work(now, cost, Work::Accept(self.front.tag_ref(tag)));
    }

    /// The firmware looks at a write to a zoned unit. True if its data may be accepted.
    pub(crate) fn at_write_pointer(&mut self, now: Ns, tag: TagRef) -> bool {
        let &Slot { lun, lba, blocks, .. } = self.front.slot(tag.tag);
        match self.ftl.zones_mut().write(lun, lba, blocks) {
            Ok(lpn) => {
                self.front.slot_mut(tag.tag).lpn = lpn;
                true
            }
            Err(sense) => {
                self.check(now, tag.tag, sense);
                false
            }
        }
    }

    /// All data of a write with FUA is in the buffer. It survives only if what was written to its zone before it does,
    /// so it waits for all of that.
    pub(crate) fn zoned_write_accepted(&mut self, now: Ns, tag: TagRef) {
        if self.front.is_alive(tag) {
            self.synchronize(now, tag.tag, false);
        }
    }

    pub(super) fn report_zones(&mut self, now: Ns, tag: u8, lun: u8, report: Report) {
        let Some(config) = self.ftl.zones().config(lun).copied() else {
            return self.check(now, tag, Sense::INVALID_OPCODE);
        };
        if report.start >= u64::from(self.front.blocks(lun)) {
            return self.check(now, tag, Sense::LBA_OUT_OF_RANGE);
        }
        let Some(listed) = Listed::from_code(report.options) else {
            return self.check(now, tag, Sense::INVALID_FIELD);
        };
        let mut bytes = std::mem::take(&mut self.front.slot_mut(tag).data_in);
        let last = u64::from(self.front.blocks(lun)) - 1;
        let made = self.ftl.zones().report(lun, report.start, listed).map(|zones| {
            report_zones(zones, (last, config.granularity()), (report.alloc, report.partial), &mut bytes);
        });
        match made {
            Ok(()) => {
                bytes.truncate(report.alloc as usize);
                self.front.slot_mut(tag).data_in = bytes;
                self.send_data(now, tag);
            }
            Err(sense) => self.check(now, tag, sense),
        }
    }

    pub(super) fn manage_zones(&mut self, now: Ns, tag: u8, lun: u8, managed: Managed) {
        let Managed { action, lba, count, all } = managed;
        if self.ftl.zones().config(lun).is_none() {
            return self.check(now, tag, Sense::INVALID_OPCODE);
        }
        // Several zones that are not all of them: Linux never asks for that.
        if count > 1 && !all {
            return self.check(now, tag, Sense::INVALID_FIELD);
        }
        let lba = (!all).then_some(lba);
        if action != ZoneAction::Reset {
            return match self.ftl.change_zones(now, (lun, lba), action, &mut self.back) {
                Ok(()) => {
                    self.settle(now);
                    self.send_reply(now, tag);
                }
                Err(sense) => self.check(now, tag, sense),
            };
        }
        let life = self.front.tag_ref(tag);
        match self.ftl.reset_zones(now, life, (lun, lba), &mut self.back) {
            Err(sense) => self.check(now, tag, sense),
            Ok(false) => self.send_reply(now, tag),
            Ok(true) => {
                self.settle(now);
                self.pump(now);
            }
        }
    }

    /// The blocks of a trim are unmapped. Zones are reset when the journal says so, too; the others are done.
    pub(crate) fn trimmed(&mut self, now: Ns, tag: TagRef) {
        if !self.ftl.zones().is_resetting(tag) {
            if self.front.is_alive(tag) {
                self.send_reply(now, tag.tag);
            }
            return;
        }
        if self.ftl.sync_trims(tag) {
            if self.front.is_alive(tag) {
                self.front.slot_mut(tag.tag).left = 1;
            }
            return self.pump(now);
        }
        self.zones_are_empty(now, tag);
    }

    /// The trims of a reset are in flash. The command may have been dropped meanwhile.
    pub(crate) fn zones_are_empty(&mut self, now: Ns, tag: TagRef) {
        self.ftl.zones_mut().reset_ended(tag);
        if self.front.is_alive(tag) {
            self.send_reply(now, tag.tag);
        }
    }
}
