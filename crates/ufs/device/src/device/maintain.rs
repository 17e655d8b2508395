// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that look after a device: which units it has, FORMAT UNIT, SEND DIAGNOSTIC, and the data buffer of READ
//! BUFFER and WRITE BUFFER. Fields and what they may be: SPC-4, SBC-3, and the tables of JESD220 §11.3.

use crate::back::{MediaMode, Probe};
use crate::device::UfsDevice;
use crate::front::DATA_BUFFER_BYTES;
use crate::ids::TagRef;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_proto::cdb::{formats_without_list, opcode};
use readpath_proto::scsi::{self, WLUN_BOOT, WLUN_DEVICE, WLUN_REPORT_LUNS, WLUN_RPMB};
use readpath_proto::typed::Sense;

/// Modes of READ BUFFER and WRITE BUFFER: data, and what a buffer can hold.
const DATA: u8 = 0x02;
const DESCRIPTOR: u8 = 0x03;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// SELECT REPORT of REPORT LUNS: 0 for general units, 1 for well-known ones, 2 for all.
    pub(crate) fn report_luns(&mut self, now: Ns, tag: u8, select: u8, alloc: u32) {
        let well_known = [WLUN_REPORT_LUNS, WLUN_BOOT, WLUN_RPMB, WLUN_DEVICE];
        let general = 0..self.front.units() as u8;
        let luns: Vec<u8> = match select {
            0 => general.collect(),
            1 => well_known.to_vec(),
            2 => general.chain(well_known).collect(),
            _ => return self.check(now, tag, Sense::INVALID_FIELD),
        };
        self.answer(now, tag, alloc, |out| scsi::report_luns(&luns, out));
    }

    /// Carries out a command of this module; false if it is another, or not one of this unit.
    pub(crate) fn maintain(&mut self, now: Ns, tag: u8, lun: u8, cdb: &[u8; 16]) -> bool {
        let is_general = usize::from(lun) < self.front.units();
        match cdb[0] {
            // A unit with zones is emptied zone by zone.
            opcode::FORMAT_UNIT if is_general && !self.front.is_zoned(lun) => self.format(now, tag, lun, cdb),
            opcode::FORMAT_UNIT if lun == WLUN_DEVICE && !self.has_zones() => self.format(now, tag, lun, cdb),
            opcode::SEND_DIAGNOSTIC if is_general || lun == WLUN_DEVICE => self.diagnose(now, tag, cdb),
            opcode::READ_BUFFER if is_general => self.read_data_buffer(now, tag, cdb),
            opcode::WRITE_BUFFER if is_general => self.write_data_buffer(now, tag, cdb),
            _ => return false,
        }
        true
    }

    fn has_zones(&self) -> bool {
        (0..self.front.units() as u8).any(|lun| self.front.is_zoned(lun))
    }

    /// FORMAT UNIT without a list of defects: every block of the unit, or of all units if the device is meant, reads as
    /// zeros.
    fn format(&mut self, now: Ns, tag: u8, lun: u8, cdb: &[u8; 16]) {
        if !formats_without_list(cdb) {
            return self.check(now, tag, Sense::INVALID_FIELD);
        }
        let units = if lun == WLUN_DEVICE { 0..self.front.units() as u8 } else { lun..lun + 1 };
        let tag = TagRef { tag, life: self.front.slot(tag).life };
        let front = &self.front;
        let ranges = units.map(|lun| (front.base(lun), front.blocks(lun)));
        self.ftl.unmap(now, tag, ranges, &mut self.back);
        self.settle(now);
        self.pump(now);
    }

    /// SEND DIAGNOSTIC: the default self-test, or nothing. Everything that answers here is in order, so it passes.
    fn diagnose(&mut self, now: Ns, tag: u8, cdb: &[u8; 16]) {
        /// SELF-TEST CODE, DEVOFFL and UNITOFFL.
        const OTHERS: u8 = 0xE3;
        if cdb[1] & OTHERS != 0 || cdb[3..5] != [0, 0] {
            return self.check(now, tag, Sense::INVALID_FIELD);
        }
        self.send_reply(now, tag);
    }

    fn read_data_buffer(&mut self, now: Ns, tag: u8, cdb: &[u8; 16]) {
        let (offset, alloc) = (be24(cdb, 3), be24(cdb, 6));
        match (cdb[1] & 0x1F, cdb[2]) {
            (DATA, 0) if offset <= DATA_BUFFER_BYTES => {
                let mut bytes = self.front.target().buffer.clone();
                bytes.resize(DATA_BUFFER_BYTES, 0);
                self.answer(now, tag, alloc as u32, |out| out.extend_from_slice(&bytes[offset..]));
            }
            // A buffer that is not there has no capacity (SPC-4). Offsets count bytes.
            (DESCRIPTOR, id) => {
                let capacity = if id == 0 { DATA_BUFFER_BYTES as u32 } else { 0 };
                self.answer(now, tag, alloc as u32, |out| out.extend_from_slice(&capacity.to_be_bytes()));
            }
            _ => self.check(now, tag, Sense::INVALID_FIELD),
        }
    }

    /// WRITE BUFFER with data. There is no microcode to download.
    fn write_data_buffer(&mut self, now: Ns, tag: u8, cdb: &[u8; 16]) {
        let (offset, length) = (be24(cdb, 3), be24(cdb, 6));
        if (cdb[1] & 0x1F, cdb[2]) != (DATA, 0) || offset + length > DATA_BUFFER_BYTES {
            return self.check(now, tag, Sense::INVALID_FIELD);
        }
        let data = std::mem::take(&mut self.front.slot_mut(tag).data_out);
        match data.get(..length) {
            Some(data) => {
                let buffer = &mut self.front.target_mut().buffer;
                buffer.resize(DATA_BUFFER_BYTES, 0);
                buffer[offset..offset + length].copy_from_slice(data);
                self.send_reply(now, tag);
            }
            None => self.check(now, tag, Sense::LIST_LENGTH),
        }
        self.front.slot_mut(tag).data_out = data;
    }
}

fn be24(cdb: &[u8; 16], at: usize) -> usize {
    u32::from_be_bytes([0, cdb[at], cdb[at + 1], cdb[at + 2]]) as usize
}
