// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands without media access: identification, capacity, power, cache, UNMAP and HPB READ BUFFER. Unsupported
//! commands are answered as SPC and SBC require.

use super::run::{OPS_PER_REQUEST, residual};
use super::zones::{Managed, Report};
use crate::back::{Hardware, MediaMode, Probe, Work};
use crate::device::UfsDevice;
use crate::front::Kind;
use crate::ids::{MapPage, TagRef};
use readpath_flash::{DieSched, OpId};
use readpath_kit::{BLOCK_BYTES, Ns};
use readpath_proto::cdb::{READ_BUFFER_ENTRIES, is_named_opcode, opcode};
use readpath_proto::query::attribute;
use readpath_proto::scsi::{self, BlockLimits};
use readpath_proto::typed::{
    Cdb, Command, FLAGS_BYTCHK, FLAGS_PROTECT, Form, ReplyBody, RequestBody, Response, Sense, Status, SubRegion,
};
use readpath_proto::zones::{PERIPHERAL_ZONED, VPD_ZONED, vpd_zoned};

/// Whether the operation code of a refused command is supported: then a field is at fault.
fn is_refused_for_a_field(code: u8, hpb: bool, zoned: bool) -> bool {
    match code {
        opcode::ZONE_MANAGEMENT_OUT | opcode::ZONE_MANAGEMENT_IN => zoned,
        opcode::UNMAP => !zoned,
        code => is_named_opcode(code) && (hpb || code < opcode::HPB_READ),
    }
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Carries out a request that needs no media.
    pub(crate) fn control(&mut self, now: Ns, tag: u8) {
        let slot = self.front.slot(tag);
        let lun = slot.lun;
        match slot.body {
            // A read or write that this unit cannot accept now, or ever.
            _ if slot.kind != Kind::Other => {
                let cdb = Cdb::Read { form: Form::Ten, lba: slot.lba, blocks: slot.blocks, flags: slot.flags };
                self.command(now, tag, lun, cdb);
            }
            RequestBody::NopOut => {
                self.front.slot_mut(tag).outcome = Some(ReplyBody::NopIn);
                self.send_reply(now, tag);
            }
            RequestBody::Query(request) => self.query(now, tag, &request),
            RequestBody::Task(task) => self.manage(now, tag, lun, task),
            RequestBody::Command(command) => self.command(now, tag, lun, command.cdb),
        }
    }

    fn command(&mut self, now: Ns, tag: u8, lun: u8, cdb: Cdb) {
        let general = usize::from(lun) < self.front.units();
        let well_known = matches!(lun, scsi::WLUN_REPORT_LUNS | scsi::WLUN_BOOT | scsi::WLUN_RPMB | scsi::WLUN_DEVICE);
        // INQUIRY, REPORT LUNS and REQUEST SENSE are answered in every state (SPC-4 §5.5, §6).
        match cdb {
            Cdb::Inquiry { vpd, alloc } => return self.inquiry(now, tag, lun, vpd, u32::from(alloc)),
            Cdb::ReportLuns { select, alloc } => return self.report_luns(now, tag, select, alloc),
            Cdb::RequestSense { alloc } => {
                let none = Sense { key: 0, asc: 0, ascq: 0 };
                return self.answer(now, tag, u32::from(alloc), |out| out.extend(scsi::fixed_sense(none)));
            }
            _ if !general && !well_known => return self.check(now, tag, Sense::LUN_NOT_SUPPORTED),
            _ => {}
        }
        if general && self.front.target_mut().take_attention(lun) {
            return self.check(now, tag, Sense::RESET_OCCURRED);
        }
        match cdb {
            Cdb::StartStopUnit { control, immed } if lun == scsi::WLUN_DEVICE => {
                return self.change_power(now, tag, control, immed);
            }
            _ if !self.front.target().is_active() => return self.check(now, tag, Sense::NOT_READY),
            Cdb::TestUnitReady => return self.send_reply(now, tag),
            Cdb::Other(_) if lun == scsi::WLUN_RPMB => return self.security_protocol(now, tag, &cdb),
            Cdb::Other(bytes) if self.maintain(now, tag, lun, &bytes) => return,
            Cdb::Read { flags, .. } | Cdb::HpbRead { flags, .. } | Cdb::Write { flags, .. }
                if general && flags & FLAGS_PROTECT != 0 =>
            {
                return self.check(now, tag, Sense::INVALID_FIELD);
            }
            _ if !general => return self.check(now, tag, Sense::INVALID_OPCODE),
            _ => {}
        }
        let blocks = u64::from(self.front.blocks(lun));
        let hpb = self.hpb.standard(lun).is_some();
        let zoned = self.front.is_zoned(lun);
        match cdb {
            // A read or write that arrived while a unit attention was pending, which an earlier command has reported.
            Cdb::Read { .. } => self.arrive(now, tag),
            Cdb::ReadCapacity10 => self.answer(now, tag, 8, |out| scsi::read_capacity_10(blocks, BLOCK_BYTES, out)),
            Cdb::ReadCapacity16 { alloc } => {
                self.answer(now, tag, alloc, |out| scsi::read_capacity_16(blocks, BLOCK_BYTES, !zoned, out));
            }
            Cdb::ModeSense10 { page, subpage, alloc, .. } => {
                let mut bytes = Vec::new();
                match scsi::mode_sense_10(page, subpage, &mut bytes) {
                    Ok(()) => self.answer(now, tag, u32::from(alloc), |out| out.extend(&bytes)),
                    Err(sense) => self.check(now, tag, sense),
                }
            }
            Cdb::StartStopUnit { .. } => self.send_reply(now, tag),
            Cdb::Verify10 { flags, .. } if flags & (FLAGS_PROTECT | FLAGS_BYTCHK) != 0 => {
                self.check(now, tag, Sense::INVALID_FIELD);
            }
            Cdb::Verify10 { lba, blocks: n, .. } => self.within(now, tag, u64::from(lba) + u64::from(n), blocks),
            Cdb::PreFetch { lba, blocks: n, .. } => self.within(now, tag, lba.saturating_add(u64::from(n)), blocks),
            Cdb::SynchronizeCache { lba, blocks: n, immed, .. } => {
                if lba.saturating_add(u64::from(n)) > blocks {
                    return self.check(now, tag, Sense::LBA_OUT_OF_RANGE);
                }
                self.synchronize(now, tag, immed);
            }
            Cdb::ReportZones { start, alloc, options, partial } => {
                self.report_zones(now, tag, lun, Report { start, alloc, options, partial });
            }
            Cdb::ManageZones { action, lba, count, all } => {
                self.manage_zones(now, tag, lun, Managed { action, lba, count, all });
            }
            Cdb::Unmap { .. } if !zoned => self.unmap(now, tag, blocks),
            Cdb::HpbReadBuffer { buffer_id, at, alloc } if hpb || self.has_groups(lun) => {
                self.read_buffer(now, tag, lun, buffer_id, at, alloc);
            }
            // A hinted read that arrived while a unit attention was pending, which an earlier command has reported.
            Cdb::HintedRead { .. } if self.has_groups(lun) => self.arrive(now, tag),
            Cdb::HintedRead { .. } => self.check(now, tag, Sense::INVALID_FIELD),
            Cdb::HpbInactivate { region } if hpb => self.inactivate(now, tag, lun, Some(region)),
            Cdb::HpbInactivateAll if hpb => self.inactivate(now, tag, lun, None),
            Cdb::HpbPreRequest { .. } if hpb => self.answer_pre_request(now, tag),
            Cdb::Other(bytes) if is_refused_for_a_field(bytes[0], hpb, zoned) => {
                self.check(now, tag, Sense::INVALID_FIELD)
            }
            _ => self.check(now, tag, Sense::INVALID_OPCODE),
        }
    }

    /// START STOP UNIT to the device: power condition 1 active, 2 sleep, 3 powered down, 4 deep sleep. Before the
    /// device sleeps, the write buffer is flushed, unless the host forbids it (NO_FLUSH).
    fn change_power(&mut self, now: Ns, tag: u8, control: u8, immed: bool) {
        let (condition, no_flush) = (control >> 4, control & 0x04 != 0);
        let Some(mode) = [0x11, 0x11, 0x22, 0x33, 0x44].get(usize::from(condition)) else {
            return self.check(now, tag, Sense::INVALID_FIELD);
        };
        let target = self.front.target_mut();
        target.set_active(condition <= 1);
        target.query.set_attribute(attribute::CURRENT_POWER_MODE, *mode);
        if condition <= 1 || no_flush {
            return self.send_reply(now, tag);
        }
        self.synchronize(now, tag, immed);
    }

    /// Answers GOOD if `end` is within the unit.
    fn within(&mut self, now: Ns, tag: u8, end: u64, blocks: u64) {
        if end > blocks {
            self.check(now, tag, Sense::LBA_OUT_OF_RANGE);
        } else {
            self.send_reply(now, tag);
        }
    }

    /// Returns bytes, cut to the allocation length and EDTL, with the residual.
    pub(crate) fn answer(&mut self, now: Ns, tag: u8, alloc: u32, fill: impl FnOnce(&mut Vec<u8>)) {
        let slot = self.front.slot_mut(tag);
        slot.data_in.clear();
        fill(&mut slot.data_in);
        slot.data_in.truncate(alloc as usize);
        self.send_data(now, tag);
    }

    pub(crate) fn send_data(&mut self, now: Ns, tag: u8) {
        let slot = self.front.slot_mut(tag);
        let residual = residual(slot.data_in.len() as u64, slot.expected_bytes);
        slot.data_in.truncate(slot.expected_bytes as usize);
        let moved = slot.data_in.len();
        slot.outcome = Some(ReplyBody::Response(Response { status: Status::Good, residual, ..Response::GOOD }));
        self.link_up(now, tag, self.front.link().bytes(moved));
        self.send_reply(now, tag);
    }

    fn inquiry(&mut self, now: Ns, tag: u8, lun: u8, vpd: Option<u8>, alloc: u32) {
        let peripheral = match lun {
            _ if usize::from(lun) < self.front.units() && self.front.is_zoned(lun) => PERIPHERAL_ZONED,
            _ if usize::from(lun) < self.front.units() => scsi::PERIPHERAL_DISK,
            scsi::WLUN_REPORT_LUNS | scsi::WLUN_BOOT | scsi::WLUN_RPMB | scsi::WLUN_DEVICE => {
                scsi::PERIPHERAL_WELL_KNOWN
            }
            _ => scsi::PERIPHERAL_NONE,
        };
        let zones = self.ftl.zones().config(lun).copied();
        let disk = peripheral == scsi::PERIPHERAL_DISK || zones.is_some();
        let identity = self.front.target().identity();
        match vpd {
            None => self.answer(now, tag, alloc, |out| scsi::inquiry(peripheral, &identity, out)),
            Some(0x00) => {
                let pages: &[u8] = match disk {
                    true if zones.is_some() => &[0x00, 0x80, 0x83, 0xB0, 0xB1, 0xB2, VPD_ZONED],
                    true => &[0x00, 0x80, 0x83, 0xB0, 0xB1, 0xB2],
                    false => &[0x00],
                };
                self.answer(now, tag, alloc, |out| scsi::vpd_supported_pages(peripheral, pages, out));
            }
            Some(0x80) if disk => {
                let serial = self.front.target().serial_text();
                self.answer(now, tag, alloc, |out| scsi::vpd_serial_number(peripheral, serial.as_bytes(), out));
            }
            Some(0x83) if disk => {
                let naa = self.front.target().naa(lun);
                self.answer(now, tag, alloc, |out| scsi::vpd_identification(peripheral, naa, out));
            }
            Some(0xB0) if disk => {
                let limits = match zones {
                    None => BlockLimits {
                        max_unmap_blocks: u32::MAX,
                        max_unmap_descriptors: 256,
                        unmap_granularity: 1,
                        ..BlockLimits::default()
                    },
                    // What is programmed at once.
                    Some(zones) => {
                        BlockLimits { optimal_transfer_blocks: zones.program_blocks, ..BlockLimits::default() }
                    }
                };
                self.answer(now, tag, alloc, |out| scsi::vpd_block_limits(peripheral, &limits, out));
            }
            Some(0xB1) if disk => self.answer(now, tag, alloc, |out| scsi::vpd_characteristics(peripheral, out)),
            Some(0xB2) if disk => {
                self.answer(now, tag, alloc, |out| scsi::vpd_provisioning(peripheral, zones.is_none(), out));
            }
            Some(page) => match zones.filter(|_| page == VPD_ZONED) {
                Some(zones) => self.answer(now, tag, alloc, |out| {
                    vpd_zoned(peripheral, zones.most_open, zones.granularity(), out);
                }),
                None => self.check(now, tag, Sense::INVALID_FIELD),
            },
        }
    }

    /// HPB READ BUFFER: when a buffer is free, the map pages of the sub-region are loaded, each paid for unless SRAM
    /// holds it.
    fn read_buffer(&mut self, now: Ns, tag: u8, lun: u8, buffer_id: u8, at: SubRegion, alloc: u32) {
        let Some(blocks) = self.hpb.blocks_of(lun, at).filter(|_| buffer_id == READ_BUFFER_ENTRIES) else {
            return self.check(now, tag, Sense::INVALID_FIELD);
        };
        self.back.stats().read_buffers += 1;
        if alloc == 0 {
            return self.answer(now, tag, 0, |_| {});
        }
        let base = self.front.base(lun);
        let first = self.ftl.map().page_of(base + blocks.start);
        let pages = self.ftl.map().page_of(base + (blocks.end - 1)).0 - first.0 + 1;
        let slot = self.front.slot_mut(tag);
        slot.lpn = base + blocks.start;
        slot.blocks = pages;
        slot.issued = 0;
        slot.left = pages;
        slot.in_flight = 0;
        if self.hpb.read_buffers().take_or_wait(TagRef { tag, life: slot.life }) {
            self.issue_map_loads(now, tag);
        }
    }

    /// HPB WRITE BUFFER 01h (`region`) or 03h (all).
    fn inactivate(&mut self, now: Ns, tag: u8, lun: u8, region: Option<u16>) {
        if !self.hpb.inactivate(lun, region) {
            return self.check(now, tag, Sense::INVALID_FIELD);
        }
        self.back.stats().write_buffers += 1;
        self.send_reply(now, tag);
    }

    /// Releases the buffer of `tag`, if it has one, to the next waiting command. Loads into it are dropped.
    pub(crate) fn end_read_buffer(&mut self, now: Ns, tag: u8) {
        if !self.hpb.read_buffers().give_back(tag) {
            return;
        }
        while let Some(tag) = self.hpb.next_reader() {
            if self.front.is_alive(tag) {
                self.hpb.read_buffers().take_or_wait(tag);
                self.issue_map_loads(now, tag.tag);
            }
        }
    }

    pub(crate) fn issue_map_loads(&mut self, now: Ns, tag: u8) {
        loop {
            let slot = self.front.slot_mut(tag);
            if slot.issued == slot.blocks || slot.in_flight >= OPS_PER_REQUEST {
                break;
            }
            if !self.back.ops().has_room() {
                // If the request has operations in flight, their end resumes it.
                if slot.in_flight == 0 {
                    self.front.starve(self.front.tag_ref(tag));
                }
                return;
            }
            let page = MapPage(self.ftl.map().page_of(slot.lpn).0 + slot.issued);
            slot.issued += 1;
            let tag = TagRef { tag, life: slot.life };
            match self.ftl.map().load_to_buffer(now, page, tag, &mut self.back) {
                true => slot.in_flight += 1,
                false => slot.left -= 1,
            }
        }
        let slot = self.front.slot(tag);
        if slot.left == 0 {
            let entries = self.entries_wanted(tag);
            let firmware = self.back.cpu().timing();
            let each = firmware.make_entry + self.back.engine().config().make_on_firmware();
            let cost = Ns(firmware.control.0 + each.0 * entries as u64);
            self.back.work(now, cost, Work::HandOut(self.front.tag_ref(tag)));
        }
    }

    /// Number of entries in the answer to the HPB READ BUFFER `tag`.
    pub(crate) fn entries_wanted(&self, tag: u8) -> usize {
        let slot = self.front.slot(tag);
        let RequestBody::Command(Command { cdb: Cdb::HpbReadBuffer { at, alloc, .. }, .. }) = slot.body else {
            unreachable!("only HPB READ BUFFER loads map pages so")
        };
        let blocks = self.hpb.blocks_of(slot.lun, at);
        blocks.map_or(0, |b| b.len()).min(alloc as usize / self.config.entry_bytes())
    }

    /// A map page for an HPB READ BUFFER has been read. It goes into a buffer of its own, not into the map cache: the
    /// host is about to hold these entries itself.
    pub(crate) fn buffer_map_loaded(&mut self, now: Ns, id: OpId) {
        let op = self.back.end(id);
        if !self.front.is_alive(op.tag) {
            return;
        }
        let slot = self.front.slot_mut(op.tag.tag);
        slot.in_flight -= 1;
        slot.left -= 1;
        self.issue_map_loads(now, op.tag.tag);
    }

    /// Makes the entries of a sub-region, current as of now, under a new generation.
    pub(crate) fn hand_out(&mut self, now: Ns, tag: u8) {
        if self.hpb.prototype().is_some() {
            return self.hand_out_group(now, tag);
        }
        let generation = self.hpb.next_generation(|next| self.ftl.reserve_generation(next));
        let slot = self.front.slot_mut(tag);
        let RequestBody::Command(command) = slot.body else { unreachable!("only commands hand out") };
        let Cdb::HpbReadBuffer { at, alloc, .. } = command.cdb else { unreachable!("only HPB READ BUFFER hands out") };
        let first = self.ftl.map().page_of(slot.lpn);
        let loaded = self.ftl.map_mut().in_read_buffer(first, slot.blocks, slot.left);
        let place = |lpn| self.ftl.map().translate_in_buffer(loaded, lpn).flash();
        self.hpb.hand_out(slot.lun, at, alloc, generation, place, &mut slot.data_in);
        self.send_data(now, tag);
        if self.ftl.must_write_journal() {
            // The hand-out may have queued generation numbers for the journal; under reads alone nothing else would
            // write them.
            self.ftl.program_meta(now, &mut self.back);
        }
    }
}
