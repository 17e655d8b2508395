// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command descriptor blocks: [`Cdb`] to the 16 bytes of a COMMAND UPIU and back.
//!
//! It knows the layouts of SPC-4 (INQUIRY, MODE SENSE, REPORT LUNS, REQUEST SENSE, TEST UNIT READY), SBC-3 (READ,
//! WRITE, UNMAP and the other block commands), ZBC-2 (REPORT ZONES, ZONE MANAGEMENT OUT), JESD220-3 (HPB READ,
//! HPB READ BUFFER, HPB WRITE BUFFER) and of the prototype of HPB (HotStorage 2017: READ (16) with an entry; byte 14
//! is this program's own). It does not know whether a logical unit supports a command or whether an address exists.
//! CDBs shorter than 16 bytes are padded with zeros.

use crate::groups::{GroupEntry, GroupHint};
use crate::typed::{Cdb, Form, HpbEntry, SubRegion, ZoneAction};

/// Operation codes, CDB byte 0 (SPC-4 and SBC-3 command tables; F8h-FAh: JESD220-3, Linux `ufshpb.h`).
pub mod opcode {
    pub(crate) const TEST_UNIT_READY: u8 = 0x00;
    pub(crate) const REQUEST_SENSE: u8 = 0x03;
    /// FORMAT UNIT.
    pub const FORMAT_UNIT: u8 = 0x04;
    pub(crate) const READ_6: u8 = 0x08;
    pub(crate) const WRITE_6: u8 = 0x0A;
    /// INQUIRY.
    pub const INQUIRY: u8 = 0x12;
    pub(crate) const START_STOP_UNIT: u8 = 0x1B;
    /// SEND DIAGNOSTIC.
    pub const SEND_DIAGNOSTIC: u8 = 0x1D;
    pub(crate) const READ_CAPACITY_10: u8 = 0x25;
    /// READ (10).
    pub const READ_10: u8 = 0x28;
    /// WRITE (10).
    pub const WRITE_10: u8 = 0x2A;
    pub(crate) const VERIFY_10: u8 = 0x2F;
    pub(crate) const PRE_FETCH_10: u8 = 0x34;
    pub(crate) const SYNCHRONIZE_CACHE_10: u8 = 0x35;
    /// WRITE BUFFER.
    pub const WRITE_BUFFER: u8 = 0x3B;
    /// READ BUFFER.
    pub const READ_BUFFER: u8 = 0x3C;
    /// UNMAP.
    pub const UNMAP: u8 = 0x42;
    pub(crate) const MODE_SENSE_10: u8 = 0x5A;
    pub(crate) const READ_16: u8 = 0x88;
    pub(crate) const WRITE_16: u8 = 0x8A;
    pub(crate) const PRE_FETCH_16: u8 = 0x90;
    pub(crate) const SYNCHRONIZE_CACHE_16: u8 = 0x91;
    /// Service actions 01h to 04h are those of [`crate::zones::ZoneAction`].
    pub const ZONE_MANAGEMENT_OUT: u8 = 0x94;
    /// Service action 00h is REPORT ZONES.
    pub const ZONE_MANAGEMENT_IN: u8 = 0x95;
    /// Service action 10h is READ CAPACITY (16).
    pub(crate) const SERVICE_ACTION_IN_16: u8 = 0x9E;
    pub(crate) const REPORT_LUNS: u8 = 0xA0;
    /// HPB READ.
    pub const HPB_READ: u8 = 0xF8;
    pub(crate) const HPB_READ_BUFFER: u8 = 0xF9;
    pub(crate) const HPB_WRITE_BUFFER: u8 = 0xFA;
}

/// Buffer id of HPB READ BUFFER: HPB entries of one sub-region (Linux `UFSHPB_READ_BUFFER_ID`).
pub const READ_BUFFER_ENTRIES: u8 = 0x01;
/// Buffer id of HPB WRITE BUFFER: inactivate one region (Linux `UFSHPB_WRITE_BUFFER_INACT_SINGLE_ID`).
const WRITE_BUFFER_INACTIVATE: u8 = 0x01;
/// Buffer id of HPB WRITE BUFFER: entries for a coming HPB READ (Linux 5.15-rc `UFSHPB_WRITE_BUFFER_PREFETCH_ID`).
const WRITE_BUFFER_PRE_REQUEST: u8 = 0x02;
/// Buffer id of HPB WRITE BUFFER: inactivate all regions but the pinned (Linux `UFSHPB_WRITE_BUFFER_INACT_ALL_ID`).
const WRITE_BUFFER_INACTIVATE_ALL: u8 = 0x03;

/// Service action of READ CAPACITY (16) in CDB byte 1 bits 4:0 (SBC-3).
const SA_READ_CAPACITY_16: u8 = 0x10;
/// Service action of REPORT ZONES in CDB byte 1 bits 4:0 (ZBC-2).
const SA_REPORT_ZONES: u8 = 0x00;
/// Reporting options in CDB byte 14 of REPORT ZONES (ZBC-2).
const ZONE_OPTIONS: u8 = 0x3F;
/// Bit 0 of CDB byte 1 of READ (16), obsolete in SBC-3: bytes 2-5 are an HPB entry, 6-9 the LBA (HotStorage 2017).
pub(crate) const FLAG_HINT: u8 = 0x01;
/// IMMED in byte 1 of SYNCHRONIZE CACHE (SBC-3).
const SYNC_IMMED: u8 = 0x02;

/// Direction of data, seen from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// No data phase.
    None,
    /// Device to host (flag R, 40h, of the COMMAND UPIU).
    In,
    /// Host to device (flag W, 20h, of the COMMAND UPIU).
    Out,
}

/// The data direction that `cdb` implies (SPC-4 and SBC-3 command definitions; JESD220-3 for HPB). [`Cdb::Other`] is
/// looked up by its operation code; an unknown one has no data phase.
pub fn direction(cdb: &Cdb) -> Direction {
    match cdb {
        Cdb::RequestSense { .. }
        | Cdb::Inquiry { .. }
        | Cdb::ModeSense10 { .. }
        | Cdb::ReadCapacity10
        | Cdb::ReadCapacity16 { .. }
        | Cdb::ReportLuns { .. }
        | Cdb::ReportZones { .. }
        | Cdb::Read { .. }
        | Cdb::HpbRead { .. }
        | Cdb::HintedRead { .. }
        | Cdb::HpbReadBuffer { .. } => Direction::In,
        Cdb::Write { .. } | Cdb::Unmap { .. } | Cdb::HpbPreRequest { .. } => Direction::Out,
        // BYTCHK 01b and 11b compare with data that the host sends.
        Cdb::Verify10 { flags, .. } if flags & 0x02 != 0 => Direction::Out,
        Cdb::TestUnitReady
        | Cdb::StartStopUnit { .. }
        | Cdb::Verify10 { .. }
        | Cdb::PreFetch { .. }
        | Cdb::SynchronizeCache { .. }
        | Cdb::ManageZones { .. }
        | Cdb::HpbInactivate { .. }
        | Cdb::HpbInactivateAll => Direction::None,
        Cdb::Other(bytes) => other_direction(bytes),
    }
}

/// Direction of commands without a variant of their own. A command that became [`Cdb::Other`] because of a field (see
/// [`parse`]) keeps the direction of its operation code.
fn other_direction(bytes: &[u8; 16]) -> Direction {
    match bytes[0] {
        // REQUEST SENSE, INQUIRY, MODE SENSE (6), READ BUFFER, ZONE MANAGEMENT IN, SERVICE ACTION IN, SECURITY PROTOCOL
        // IN, REPORT SUPPORTED OPERATION CODES and their neighbours (MAINTENANCE IN).
        0x03 | 0x12 | 0x1A | 0x3C | 0x95 | 0x9E | 0xA2 | 0xA3 => Direction::In,
        // MODE SELECT (6) and (10), WRITE BUFFER, UNMAP, SECURITY PROTOCOL OUT.
        0x15 | 0x55 | 0x3B | 0x42 | 0xB5 => Direction::Out,
        // FORMAT UNIT sends a list only with FMTDATA; SEND DIAGNOSTIC only with a list length.
        0x04 if bytes[1] & 0x10 != 0 => Direction::Out,
        0x1D if bytes[3] | bytes[4] != 0 => Direction::Out,
        _ => Direction::None,
    }
}

/// Whether a FORMAT UNIT gives no list, of defects or of protection (SBC-3): the only form of JESD220.
pub fn formats_without_list(cdb: &[u8; 16]) -> bool {
    /// FMTPINFO, LONGLIST and FMTDATA.
    const WITH_LIST: u8 = 0xF0;
    cdb[0] == opcode::FORMAT_UNIT && cdb[1] & WITH_LIST == 0
}

/// Whether [`parse`] returns a variant other than [`Cdb::Other`] for this operation code. A device answers
/// [`Cdb::Other`] with INVALID FIELD IN CDB if so, otherwise with INVALID COMMAND OPERATION CODE.
pub fn is_named_opcode(code: u8) -> bool {
    let mut bytes = [0; 16];
    bytes[0] = code;
    // For these, zeros are neither a valid service action nor a valid buffer id.
    let takes_no_zeros =
        matches!(code, opcode::SERVICE_ACTION_IN_16 | opcode::ZONE_MANAGEMENT_OUT | opcode::HPB_WRITE_BUFFER);
    takes_no_zeros || !matches!(parse(&bytes), Cdb::Other(_))
}

/// The bytes of `cdb`, padded with zeros to 16.
///
/// Layouts: SPC-4, SBC-3; HPB READ as Linux `ufshpb_set_hpb_read_to_upiu` builds it, HPB READ BUFFER as
/// `ufshpb_set_read_buf_cmd`, HPB WRITE BUFFER as `ufshpb_set_unmap_cmd`. A value that the form cannot carry (an LBA
/// over 21 bits in READ (6), a [`Form::Six`] PRE-FETCH, more than 24 bits of allocation length, ...) is a mistake of
/// the caller: debug builds assert, release builds truncate. READ (6) and WRITE (6) carry 256 blocks as 0.
pub fn encode(cdb: &Cdb) -> [u8; 16] {
    let mut b = [0u8; 16];
    match *cdb {
        Cdb::TestUnitReady => b[0] = opcode::TEST_UNIT_READY,
        Cdb::RequestSense { alloc } => {
            b[0] = opcode::REQUEST_SENSE;
            b[4] = alloc;
        }
        Cdb::Inquiry { vpd, alloc } => {
            b[0] = opcode::INQUIRY;
            if let Some(page) = vpd {
                b[1] = 1;
                b[2] = page;
            }
            b[3..5].copy_from_slice(&alloc.to_be_bytes());
        }
        Cdb::ModeSense10 { dbd, page, subpage, alloc } => {
            b[0] = opcode::MODE_SENSE_10;
            b[1] = u8::from(dbd) << 3;
            b[2] = page;
            b[3] = subpage;
            b[7..9].copy_from_slice(&alloc.to_be_bytes());
        }
        Cdb::StartStopUnit { immed, control } => {
            b[0] = opcode::START_STOP_UNIT;
            b[1] = u8::from(immed);
            b[4] = control;
        }
        Cdb::ReadCapacity10 => b[0] = opcode::READ_CAPACITY_10,
        Cdb::ReadCapacity16 { alloc } => {
            b[0] = opcode::SERVICE_ACTION_IN_16;
            b[1] = SA_READ_CAPACITY_16;
            b[10..14].copy_from_slice(&alloc.to_be_bytes());
        }
        Cdb::ReportLuns { select, alloc } => {
            b[0] = opcode::REPORT_LUNS;
            b[2] = select;
            b[6..10].copy_from_slice(&alloc.to_be_bytes());
        }
        Cdb::Read { form: Form::Six, lba, blocks, flags } => put_six(&mut b, opcode::READ_6, lba, blocks, flags),
        Cdb::Read { form: Form::Ten, lba, blocks, flags } => put_ten(&mut b, opcode::READ_10, flags, lba, blocks),
        Cdb::Read { form: Form::Sixteen, lba, blocks, flags } => {
            debug_assert!(flags & FLAG_HINT == 0, "READ (16) with the HPB flag carries an entry");
            put_sixteen(&mut b, opcode::READ_16, flags, lba, blocks)
        }
        Cdb::Write { form: Form::Six, lba, blocks, flags } => put_six(&mut b, opcode::WRITE_6, lba, blocks, flags),
        Cdb::Write { form: Form::Ten, lba, blocks, flags } => put_ten(&mut b, opcode::WRITE_10, flags, lba, blocks),
        Cdb::Write { form: Form::Sixteen, lba, blocks, flags } => {
            put_sixteen(&mut b, opcode::WRITE_16, flags, lba, blocks)
        }
        Cdb::Verify10 { lba, blocks, flags } => {
            put_ten(&mut b, opcode::VERIFY_10, flags, lba.into(), blocks.into());
        }
        Cdb::PreFetch { form: Form::Sixteen, lba, blocks } => put_sixteen(&mut b, opcode::PRE_FETCH_16, 0, lba, blocks),
        Cdb::PreFetch { form, lba, blocks } => {
            debug_assert!(form == Form::Ten, "PRE-FETCH has no 6-byte form");
            put_ten(&mut b, opcode::PRE_FETCH_10, 0, lba, blocks);
        }
        Cdb::SynchronizeCache { form: Form::Sixteen, lba, blocks, immed } => {
            put_sixteen(&mut b, opcode::SYNCHRONIZE_CACHE_16, if immed { SYNC_IMMED } else { 0 }, lba, blocks);
        }
        Cdb::SynchronizeCache { form, lba, blocks, immed } => {
            debug_assert!(form == Form::Ten, "SYNCHRONIZE CACHE has no 6-byte form");
            put_ten(&mut b, opcode::SYNCHRONIZE_CACHE_10, if immed { SYNC_IMMED } else { 0 }, lba, blocks);
        }
        Cdb::Unmap { list_bytes } => {
            b[0] = opcode::UNMAP;
            b[7..9].copy_from_slice(&list_bytes.to_be_bytes());
        }
        Cdb::ReportZones { start, alloc, options, partial } => {
            debug_assert!(options < 1 << 6, "reporting options have 6 bits");
            put_sixteen(&mut b, opcode::ZONE_MANAGEMENT_IN, SA_REPORT_ZONES, start, alloc);
            b[14] = u8::from(partial) << 7 | options & ZONE_OPTIONS;
        }
        Cdb::ManageZones { action, lba, count, all } => {
            put_sixteen(&mut b, opcode::ZONE_MANAGEMENT_OUT, action.code(), lba, count.into());
            b[14] = u8::from(all);
        }
        Cdb::HpbRead { .. }
        | Cdb::HintedRead { .. }
        | Cdb::HpbReadBuffer { .. }
        | Cdb::HpbInactivate { .. }
        | Cdb::HpbPreRequest { .. }
        | Cdb::HpbInactivateAll => put_hpb(&mut b, cdb),
        Cdb::Other(bytes) => b = bytes,
    }
    b
}

/// Encodes a command of HPB, of JESD220-3 or of the prototype.
fn put_hpb(b: &mut [u8; 16], cdb: &Cdb) {
    match *cdb {
        Cdb::HpbRead { lba, blocks, entry, flags, read_id } => {
            b[0] = opcode::HPB_READ;
            b[1] = flags;
            b[2..6].copy_from_slice(&lba.to_be_bytes());
            b[6..14].copy_from_slice(&entry.0);
            b[14] = blocks;
            b[15] = read_id;
        }
        Cdb::HintedRead { lba, blocks, hint, flags } => {
            b[0] = opcode::READ_16;
            b[1] = flags | FLAG_HINT;
            b[2..6].copy_from_slice(&hint.entry.0);
            b[6..10].copy_from_slice(&lba.to_be_bytes());
            b[10..14].copy_from_slice(&blocks.to_be_bytes());
            b[14] = hint.seen;
        }
        Cdb::HpbReadBuffer { buffer_id, at, alloc } => {
            debug_assert!(alloc < 1 << 24, "HPB READ BUFFER carries 24 bits of allocation length, not {alloc}");
            b[0] = opcode::HPB_READ_BUFFER;
            b[1] = buffer_id;
            b[2..4].copy_from_slice(&at.region.to_be_bytes());
            b[4..6].copy_from_slice(&at.index.to_be_bytes());
            b[6..9].copy_from_slice(&alloc.to_be_bytes()[1..]);
        }
        Cdb::HpbInactivate { region } => {
            b[0] = opcode::HPB_WRITE_BUFFER;
            b[1] = WRITE_BUFFER_INACTIVATE;
            b[2..4].copy_from_slice(&region.to_be_bytes());
        }
        Cdb::HpbPreRequest { lba, read_id, list_bytes } => {
            b[0] = opcode::HPB_WRITE_BUFFER;
            b[1] = WRITE_BUFFER_PRE_REQUEST;
            b[2..6].copy_from_slice(&lba.to_be_bytes());
            b[6] = read_id;
            b[7..9].copy_from_slice(&list_bytes.to_be_bytes());
        }
        Cdb::HpbInactivateAll => {
            b[0] = opcode::HPB_WRITE_BUFFER;
            b[1] = WRITE_BUFFER_INACTIVATE_ALL;
        }
        _ => unreachable!("called for commands of HPB"),
    }
}

/// Parses the 16 CDB bytes of a COMMAND UPIU. Total: commands without a variant become [`Cdb::Other`].
///
/// Reserved and obsolete fields, group numbers and the control byte are ignored. A command with a feature that no UFS
/// device has and [`Cdb`] cannot express also becomes [`Cdb::Other`], so that it is refused and not misread: INQUIRY
/// with a page code but without EVPD, REQUEST SENSE with DESC, UNMAP with ANCHOR, operation code 9Eh with another
/// service action, HPB WRITE BUFFER with an unknown buffer id (see [`is_named_opcode`]). Bytes 4-8 of HPB WRITE
/// BUFFER 01h are ignored because Linux `ufshpb_set_unmap_cmd` leaves bytes of the tag's previous command there.
pub fn parse(b: &[u8; 16]) -> Cdb {
    match b[0] {
        opcode::TEST_UNIT_READY => Cdb::TestUnitReady,
        opcode::REQUEST_SENSE if b[1] & 1 == 0 => Cdb::RequestSense { alloc: b[4] },
        opcode::INQUIRY if b[1] & 1 != 0 => Cdb::Inquiry { vpd: Some(b[2]), alloc: be16(b, 3) },
        opcode::INQUIRY if b[2] == 0 => Cdb::Inquiry { vpd: None, alloc: be16(b, 3) },
        opcode::MODE_SENSE_10 => {
            Cdb::ModeSense10 { dbd: b[1] & 0x08 != 0, page: b[2], subpage: b[3], alloc: be16(b, 7) }
        }
        opcode::START_STOP_UNIT => Cdb::StartStopUnit { immed: b[1] & 1 != 0, control: b[4] },
        opcode::READ_CAPACITY_10 => Cdb::ReadCapacity10,
        opcode::SERVICE_ACTION_IN_16 if b[1] & 0x1F == SA_READ_CAPACITY_16 => {
            Cdb::ReadCapacity16 { alloc: be32(b, 10) }
        }
        opcode::REPORT_LUNS => Cdb::ReportLuns { select: b[2], alloc: be32(b, 6) },
        opcode::READ_6 => Cdb::Read { form: Form::Six, lba: lba_six(b), blocks: blocks_six(b), flags: 0 },
        opcode::READ_10 => {
            Cdb::Read { form: Form::Ten, lba: be32(b, 2).into(), blocks: be16(b, 7).into(), flags: b[1] }
        }
        opcode::READ_16 if b[1] & FLAG_HINT != 0 => Cdb::HintedRead {
            lba: be32(b, 6),
            blocks: be32(b, 10),
            hint: GroupHint { entry: GroupEntry(be32(b, 2).to_be_bytes()), seen: b[14] },
            flags: b[1] & !FLAG_HINT,
        },
        opcode::READ_16 => Cdb::Read { form: Form::Sixteen, lba: be64(b, 2), blocks: be32(b, 10), flags: b[1] },
        opcode::WRITE_6 => Cdb::Write { form: Form::Six, lba: lba_six(b), blocks: blocks_six(b), flags: 0 },
        opcode::WRITE_10 => {
            Cdb::Write { form: Form::Ten, lba: be32(b, 2).into(), blocks: be16(b, 7).into(), flags: b[1] }
        }
        opcode::WRITE_16 => Cdb::Write { form: Form::Sixteen, lba: be64(b, 2), blocks: be32(b, 10), flags: b[1] },
        opcode::VERIFY_10 => Cdb::Verify10 { lba: be32(b, 2), blocks: be16(b, 7), flags: b[1] },
        opcode::PRE_FETCH_10 => Cdb::PreFetch { form: Form::Ten, lba: be32(b, 2).into(), blocks: be16(b, 7).into() },
        opcode::PRE_FETCH_16 => Cdb::PreFetch { form: Form::Sixteen, lba: be64(b, 2), blocks: be32(b, 10) },
        opcode::SYNCHRONIZE_CACHE_10 => Cdb::SynchronizeCache {
            form: Form::Ten,
            lba: be32(b, 2).into(),
            blocks: be16(b, 7).into(),
            immed: b[1] & SYNC_IMMED != 0,
        },
        opcode::SYNCHRONIZE_CACHE_16 => Cdb::SynchronizeCache {
            form: Form::Sixteen,
            lba: be64(b, 2),
            blocks: be32(b, 10),
            immed: b[1] & SYNC_IMMED != 0,
        },
        opcode::ZONE_MANAGEMENT_IN if b[1] & 0x1F == SA_REPORT_ZONES => Cdb::ReportZones {
            start: be64(b, 2),
            alloc: be32(b, 10),
            options: b[14] & ZONE_OPTIONS,
            partial: b[14] & 0x80 != 0,
        },
        opcode::ZONE_MANAGEMENT_OUT => match ZoneAction::from_code(b[1] & 0x1F) {
            Some(action) => Cdb::ManageZones { action, lba: be64(b, 2), count: be16(b, 12), all: b[14] & 1 != 0 },
            None => Cdb::Other(*b),
        },
        opcode::UNMAP if b[1] & 1 == 0 => Cdb::Unmap { list_bytes: be16(b, 7) },
        opcode::HPB_READ => Cdb::HpbRead {
            lba: be32(b, 2),
            blocks: b[14],
            entry: HpbEntry(be64(b, 6).to_be_bytes()),
            flags: b[1],
            read_id: b[15],
        },
        opcode::HPB_READ_BUFFER => Cdb::HpbReadBuffer {
            buffer_id: b[1],
            at: SubRegion { region: be16(b, 2), index: be16(b, 4) },
            alloc: u32::from_be_bytes([0, b[6], b[7], b[8]]),
        },
        opcode::HPB_WRITE_BUFFER => match b[1] {
            WRITE_BUFFER_INACTIVATE => Cdb::HpbInactivate { region: be16(b, 2) },
            WRITE_BUFFER_PRE_REQUEST => Cdb::HpbPreRequest { lba: be32(b, 2), read_id: b[6], list_bytes: be16(b, 7) },
            WRITE_BUFFER_INACTIVATE_ALL => Cdb::HpbInactivateAll,
            _ => Cdb::Other(*b),
        },
        _ => Cdb::Other(*b),
    }
}

fn put_six(b: &mut [u8; 16], code: u8, lba: u64, blocks: u32, flags: u8) {
    debug_assert!(lba < 1 << 21, "a 6-byte CDB carries 21 bits of LBA, not {lba}");
    debug_assert!((1..=256).contains(&blocks), "a 6-byte CDB carries 1 to 256 blocks, not {blocks}");
    debug_assert!(flags == 0, "a 6-byte CDB has no flags");
    b[0..4].copy_from_slice(&(lba as u32 & 0x1F_FFFF).to_be_bytes());
    b[0] = code;
    b[4] = blocks as u8;
}

fn put_ten(b: &mut [u8; 16], code: u8, flags: u8, lba: u64, blocks: u32) {
    debug_assert!(lba < 1 << 32, "a 10-byte CDB carries 32 bits of LBA, not {lba}");
    debug_assert!(blocks < 1 << 16, "a 10-byte CDB carries 16 bits of length, not {blocks}");
    b[0] = code;
    b[1] = flags;
    b[2..6].copy_from_slice(&(lba as u32).to_be_bytes());
    b[7..9].copy_from_slice(&(blocks as u16).to_be_bytes());
}

fn put_sixteen(b: &mut [u8; 16], code: u8, flags: u8, lba: u64, blocks: u32) {
    b[0] = code;
    b[1] = flags;
    b[2..10].copy_from_slice(&lba.to_be_bytes());
    b[10..14].copy_from_slice(&blocks.to_be_bytes());
}

fn lba_six(b: &[u8; 16]) -> u64 {
    u32::from_be_bytes([0, b[1] & 0x1F, b[2], b[3]]).into()
}

fn blocks_six(b: &[u8; 16]) -> u32 {
    if b[4] == 0 { 256 } else { b[4].into() }
}

pub(crate) fn be16(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

pub(crate) fn be32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn be64(b: &[u8; 16], at: usize) -> u64 {
    u64::from(be32(b, at)) << 32 | u64::from(be32(b, at + 4))
}

#[cfg(test)]
mod tests;
