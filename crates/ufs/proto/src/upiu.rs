// SPDX-License-Identifier: MIT OR Apache-2.0
//! UPIUs: [`Request`] and [`Reply`] to the bytes that a host controller moves, and back.
//!
//! Layouts: JESD220 (UPIU chapters), Linux `include/uapi/scsi/scsi_bsg_ufs.h` and `include/ufs/ufs.h` (`struct
//! utp_upiu_header`, `utp_upiu_rsp`, `utp_hpb_rsp`). All fields are big-endian. It knows nothing of transfer
//! descriptors or registers, and does not judge requests. Parsers never panic: their input is untrusted.

mod error;
mod news;

use crate::cdb::{self, be16, be32};
pub use crate::cdb::{Direction, direction};
use crate::query::function;
use crate::scsi::{FIXED_SENSE_BYTES, fixed_sense, parse_fixed_sense};
use crate::typed::*;
pub use error::UpiuError;
use news::{INFO_DIRTY, INFO_HPB_ALERT, INFO_PAIR, SENSE_SEGMENT_BYTES};

/// Bytes of a UPIU without data segment: 12 of header, 20 of transaction-specific fields.
pub const UPIU_BYTES: usize = 32;
/// Bytes of a RESPONSE UPIU with sense data or an HPB notification.
pub const RESPONSE_BYTES: usize = UPIU_BYTES + SENSE_SEGMENT_BYTES;

/// Unit in which an extra header segment (EHS, UFS 4.0) counts its length, UPIU byte 8 and byte 0 of the segment.
const EHS_UNIT_BYTES: usize = 32;
/// Type of the extra header segment that carries HPB entries, one for each block that an HPB READ asks for. Not in
/// JESD220: an extension that its device and host have to agree on ([`crate::query::attribute::EHS_HPB_ENTRIES`]).
pub const EHS_HPB_ENTRIES: u8 = 0xC0;
/// Length, type and subtype (JESD220F; Linux `struct ufs_ehs`), number of entries, three reserved bytes.
const EHS_HEADER_BYTES: usize = 8;

/// Bytes on the link of an extra header segment with `entries` bytes of HPB entries; 0 without any.
pub const fn ehs_bytes(entries: usize) -> usize {
    if entries == 0 { 0 } else { (EHS_HEADER_BYTES + entries).next_multiple_of(EHS_UNIT_BYTES) }
}

/// Transaction codes, UPIU byte 0 bits 5:0 (JESD220 UPIU transaction codes).
mod transaction {
    pub(super) const NOP_OUT: u8 = 0x00;
    pub(super) const COMMAND: u8 = 0x01;
    pub(super) const TASK_REQUEST: u8 = 0x04;
    pub(super) const QUERY_REQUEST: u8 = 0x16;
    pub(super) const NOP_IN: u8 = 0x20;
    pub(super) const RESPONSE: u8 = 0x21;
    pub(super) const TASK_RESPONSE: u8 = 0x24;
    pub(super) const QUERY_RESPONSE: u8 = 0x36;
    pub(super) const REJECT: u8 = 0x3F;
}

/// COMMAND flag R: the command reads (JESD220, UPIU byte 1).
const FLAG_READ: u8 = 0x40;
/// COMMAND flag W: the command writes.
const FLAG_WRITE: u8 = 0x20;
/// RESPONSE flag O: more data was available than EDTL.
const FLAG_OVERFLOW: u8 = 0x40;
/// RESPONSE flag U: fewer bytes moved than EDTL.
const FLAG_UNDERFLOW: u8 = 0x20;

/// Device information (byte 9 of a RESPONSE): an exception event is pending.
const INFO_EVENT_ALERT: u8 = 0x01;

/// Writes `request` as a UPIU into `out`, which is cleared first.
///
/// Flags R and W of a COMMAND follow from the CDB ([`direction`]), the query function from the opcode
/// ([`function::of`]). `data` is the data segment of a query request (WRITE DESCRIPTOR), at most 65,535 bytes, or the
/// HPB entries of an HPB READ, at most 255, which become its extra header segment; other requests have none. The LUN of
/// the header is written for every kind of request.
pub fn encode_request(request: &Request, data: &[u8], out: &mut Vec<u8>) {
    let mut b = [0u8; UPIU_BYTES];
    b[2] = request.lun;
    b[3] = request.tag;
    let mut segment: &[u8] = &[];
    match &request.body {
        RequestBody::NopOut => b[0] = transaction::NOP_OUT,
        RequestBody::Command(command) => {
            b[0] = transaction::COMMAND;
            b[1] = match direction(&command.cdb) {
                Direction::None => 0,
                Direction::In => FLAG_READ,
                Direction::Out => FLAG_WRITE,
            };
            put32(&mut b, 12, command.expected_bytes);
            b[16..32].copy_from_slice(&cdb::encode(&command.cdb));
            if matches!(command.cdb, Cdb::HpbRead { .. }) && !data.is_empty() {
                return encode_with_entries(b, data, out);
            }
        }
        RequestBody::Query(query) => {
            b[0] = transaction::QUERY_REQUEST;
            b[5] = function::of(query.opcode);
            segment = put_segment(&mut b, data);
            b[12..16].copy_from_slice(&[query.opcode, query.idn, query.index, query.selector]);
            put16(&mut b, 18, query.length);
            put32(&mut b, 20, query.value);
        }
        RequestBody::Task(task) => {
            b[0] = transaction::TASK_REQUEST;
            b[5] = task.function;
            put32(&mut b, 12, task.lun.into());
            put32(&mut b, 16, task.task_tag.into());
        }
    }
    debug_assert!(segment.len() == data.len(), "only query requests carry a data segment, of at most 65535 bytes");
    out.clear();
    out.extend_from_slice(&b);
    out.extend_from_slice(segment);
}

/// A COMMAND UPIU with HPB entries in its extra header segment.
fn encode_with_entries(mut b: [u8; UPIU_BYTES], entries: &[u8], out: &mut Vec<u8>) {
    let count = entries.len() / HpbEntry::BYTES;
    debug_assert!(entries.len().is_multiple_of(HpbEntry::BYTES) && count <= 255, "1 to 255 whole entries");
    let bytes = ehs_bytes(entries.len());
    b[8] = (bytes / EHS_UNIT_BYTES) as u8;
    out.clear();
    out.extend_from_slice(&b);
    out.extend_from_slice(&[b[8], EHS_HPB_ENTRIES, 0, 0, count as u8, 0, 0, 0]);
    out.extend_from_slice(entries);
    out.resize(UPIU_BYTES + bytes, 0);
}

/// The HPB entries in the extra header segment of a COMMAND UPIU, if it has one.
fn entries_of<'a>(bytes: &'a [u8], b: &[u8; UPIU_BYTES]) -> Result<&'a [u8], UpiuError> {
    if b[8] == 0 {
        return Ok(&[]);
    }
    let need = UPIU_BYTES + usize::from(b[8]) * EHS_UNIT_BYTES;
    let Some(segment) = bytes.get(UPIU_BYTES..need) else {
        return Err(UpiuError::Short { have: bytes.len(), need });
    };
    let field = |offset: usize, expected: &'static str| {
        Err(UpiuError::Field { offset: UPIU_BYTES + offset, found: segment[offset].into(), expected })
    };
    if segment[0] != b[8] {
        return field(0, "the length in byte 8: there is one extra header segment");
    }
    if segment[1] != EHS_HPB_ENTRIES {
        return field(1, "C0h (HPB entries)");
    }
    let end = EHS_HEADER_BYTES + usize::from(segment[4]) * HpbEntry::BYTES;
    match segment.get(EHS_HEADER_BYTES..end) {
        Some(entries) => Ok(entries),
        None => field(4, "as many entries as the segment has room for"),
    }
}

/// Parses the request UPIU in `bytes`; returns also its data segment (only query requests have one) or the HPB
/// entries in the extra header segment of an HPB READ. Bytes after the UPIU are ignored, as are the flags and the
/// task attribute of a COMMAND: the CDB decides.
///
/// # Errors
/// [`UpiuError`] if the bytes are too few, are no request, carry an extra header segment (but for HPB READ), a command
/// set other than SCSI, a query function that does not fit the opcode, or a LUN or tag over 8 bits in a task management
/// request.
pub fn parse_request(bytes: &[u8]) -> Result<(Request, &[u8]), UpiuError> {
    let carries_entries = bytes.first() == Some(&transaction::COMMAND) && bytes.get(16) == Some(&cdb::opcode::HPB_READ);
    let b = if carries_entries { fields(bytes)? } else { head(bytes)? };
    let mut segment: &[u8] = &[];
    let body = match b[0] {
        transaction::NOP_OUT => RequestBody::NopOut,
        transaction::COMMAND => {
            // Bits 7:4 are the initiator id.
            if b[4] & 0x0F != 0 {
                return Err(UpiuError::Field { offset: 4, found: b[4].into(), expected: "0 in bits 3:0 (SCSI)" });
            }
            let mut block = [0; 16];
            block.copy_from_slice(&b[16..32]);
            segment = entries_of(bytes, b)?;
            RequestBody::Command(Command { expected_bytes: be32(b, 12), cdb: cdb::parse(&block) })
        }
        transaction::QUERY_REQUEST => {
            let opcode = b[12];
            let named = (1..=8).contains(&opcode);
            if (named && b[5] != function::of(opcode)) || (b[5] != function::READ && b[5] != function::WRITE) {
                let expected = "01h for query opcodes 1, 3 and 5, 81h for 2, 4 and 6 to 8";
                return Err(UpiuError::Field { offset: 5, found: b[5].into(), expected });
            }
            segment = get_segment(bytes, b)?;
            RequestBody::Query(QueryRequest {
                opcode,
                idn: b[13],
                index: b[14],
                selector: b[15],
                length: be16(b, 18),
                value: be32(b, 20),
            })
        }
        transaction::TASK_REQUEST => {
            RequestBody::Task(TaskRequest { function: b[5], lun: small(b, 12)?, task_tag: small(b, 16)? })
        }
        other => {
            let expected = "00h (NOP OUT), 01h (COMMAND), 04h (TASK MANAGEMENT REQUEST) or 16h (QUERY REQUEST)";
            return Err(UpiuError::Field { offset: 0, found: other.into(), expected });
        }
    };
    Ok((Request { lun: b[2], tag: b[3], body }, segment))
}

/// Writes `reply` as a UPIU into `out`, which is cleared first.
///
/// `data` is the data segment of a query response (READ DESCRIPTOR), at most 65,535 bytes; other replies have none
/// besides what follows from their fields. Sense data is sent only with CHECK CONDITION, an HPB notification only with
/// GOOD, because both use the same bytes. A notification is written as given, also if no host would accept it.
pub fn encode_reply(reply: &Reply, data: &[u8], out: &mut Vec<u8>) {
    let mut b = [0u8; UPIU_BYTES];
    let mut fixed = [0u8; SENSE_SEGMENT_BYTES];
    b[2] = reply.lun;
    b[3] = reply.tag;
    let mut segment: &[u8] = &[];
    match &reply.body {
        ReplyBody::NopIn => b[0] = transaction::NOP_IN,
        ReplyBody::Response(response) => {
            b[0] = transaction::RESPONSE;
            b[7] = status_code(response.status);
            b[9] = if response.event_alert { INFO_EVENT_ALERT } else { 0 };
            match response.residual {
                Residual::None => {}
                Residual::Under(bytes) => {
                    b[1] = FLAG_UNDERFLOW;
                    put32(&mut b, 12, bytes);
                }
                Residual::Over(bytes) => {
                    b[1] = FLAG_OVERFLOW;
                    put32(&mut b, 12, bytes);
                }
            }
            match (response.status, response.sense, &response.hpb) {
                (Status::CheckCondition, Some(sense), _) => {
                    fixed[0..2].copy_from_slice(&(FIXED_SENSE_BYTES as u16).to_be_bytes());
                    fixed[2..].copy_from_slice(&fixed_sense(sense));
                    segment = put_segment(&mut b, &fixed);
                }
                (Status::Good, _, Some(notification)) => {
                    b[9] |= INFO_HPB_ALERT;
                    fixed = news::notification_bytes(notification);
                    segment = put_segment(&mut b, &fixed);
                }
                (Status::Good, _, None) => {
                    if let Some(notice) = &response.groups {
                        let length = news::put_notice(notice, response.residual == Residual::None, &mut b, &mut fixed);
                        segment = put_segment(&mut b, &fixed[..length]);
                    }
                }
                _ => {}
            }
            debug_assert!(data.is_empty(), "a response carries no data segment from outside");
        }
        ReplyBody::Query(query) => {
            b[0] = transaction::QUERY_RESPONSE;
            b[5] = function::of(query.opcode);
            b[6] = query.result;
            segment = put_segment(&mut b, data);
            b[12..16].copy_from_slice(&[query.opcode, query.idn, query.index, query.selector]);
            put16(&mut b, 18, query.length);
            put32(&mut b, 20, query.value);
        }
        ReplyBody::Task(task) => {
            b[0] = transaction::TASK_RESPONSE;
            put32(&mut b, 12, task.service_response.into());
        }
        ReplyBody::Reject => {
            b[0] = transaction::REJECT;
            // Response code: target failure.
            b[6] = 1;
        }
    }
    out.clear();
    out.extend_from_slice(&b);
    out.extend_from_slice(segment);
}

/// Parses the reply UPIU in `bytes`; returns also its data segment (only query responses have one). Bytes after the
/// UPIU are ignored.
///
/// An HPB notification is recognised as Linux `ufshpb_rsp_upiu` and `ufshpb_is_hpb_rsp_valid` do: GOOD, HPB alert
/// set, data segment length not 0, sense length 12h, descriptor type 80h, additional length 10h (here also the 11h of
/// 2018), and [`crate::hpb::is_acceptable`]. One that fails that test is dropped without an error, as there. The
/// prototype's report of groups is recognised by its bits of byte 9.
///
/// # Errors
/// [`UpiuError`] if the bytes are too few, are no reply, carry an extra header segment, report a target failure or an
/// unknown SCSI status, set both residual flags, hold sense data that is not in the fixed format, or report groups
/// where that cannot be.
pub fn parse_reply(bytes: &[u8]) -> Result<(Reply, &[u8]), UpiuError> {
    // The prototype uses the byte in which UFS 4.0 counts extra header segments.
    let has_pair = bytes.first() == Some(&transaction::RESPONSE) && bytes.get(9).is_some_and(|b| b & INFO_PAIR != 0);
    let b = if has_pair { fields(bytes)? } else { head(bytes)? };
    let mut segment: &[u8] = &[];
    let body = match b[0] {
        transaction::NOP_IN => ReplyBody::NopIn,
        transaction::RESPONSE => ReplyBody::Response(parse_response(bytes, b)?),
        transaction::QUERY_RESPONSE => {
            segment = get_segment(bytes, b)?;
            ReplyBody::Query(QueryResponse {
                result: b[6],
                opcode: b[12],
                idn: b[13],
                index: b[14],
                selector: b[15],
                length: be16(b, 18),
                value: be32(b, 20),
            })
        }
        // Bits 31:8 of output parameter 1 are reserved.
        transaction::TASK_RESPONSE => ReplyBody::Task(TaskResponse { service_response: b[15] }),
        transaction::REJECT => ReplyBody::Reject,
        other => {
            let expected = "20h (NOP IN), 21h (RESPONSE), 24h (TASK MANAGEMENT RESPONSE), 36h (QUERY RESPONSE) or 3Fh \
                            (REJECT)";
            return Err(UpiuError::Field { offset: 0, found: other.into(), expected });
        }
    };
    Ok((Reply { lun: b[2], tag: b[3], body }, segment))
}

fn parse_response(bytes: &[u8], b: &[u8; UPIU_BYTES]) -> Result<Response, UpiuError> {
    // If a target failure were taken for GOOD, data that never came would be returned.
    if b[6] != 0 {
        return Err(UpiuError::Field { offset: 6, found: b[6].into(), expected: "00h (target success)" });
    }
    let status = status_from(b[7])?;
    let residual = match (b[1] & FLAG_UNDERFLOW != 0, b[1] & FLAG_OVERFLOW != 0) {
        (false, false) => Residual::None,
        (true, false) => Residual::Under(be32(b, 12)),
        (false, true) => Residual::Over(be32(b, 12)),
        (true, true) => {
            let expected = "without one of flags O (40h) and U (20h), which exclude each other";
            return Err(UpiuError::Field { offset: 1, found: b[1].into(), expected });
        }
    };
    let mut response = Response { status, residual, event_alert: b[9] & INFO_EVENT_ALERT != 0, ..Response::GOOD };
    let segment = get_segment(bytes, b)?;
    if b[9] & (INFO_DIRTY | INFO_PAIR) != 0 {
        response.groups = news::parse_notice(b, segment, &response)?;
        return Ok(response);
    }
    if segment.is_empty() {
        return Ok(response);
    }
    if status == Status::CheckCondition {
        response.sense = Some(parse_sense(segment)?);
    } else if status == Status::Good && b[9] & INFO_HPB_ALERT != 0 {
        // Linux reads all 52 bytes and ignores the data segment length.
        let Some(fields) = bytes.get(UPIU_BYTES..RESPONSE_BYTES) else {
            return Err(UpiuError::Short { have: bytes.len(), need: RESPONSE_BYTES });
        };
        response.hpb = news::parse_notification(fields).filter(crate::hpb::is_acceptable);
    }
    Ok(response)
}

/// Sense data of a CHECK CONDITION from its data segment.
fn parse_sense(segment: &[u8]) -> Result<Sense, UpiuError> {
    let Some((length, sense)) = segment.split_first_chunk::<2>() else {
        return Err(UpiuError::Field { offset: 10, found: segment.len() as u32, expected: "0 or 14h (20 bytes)" });
    };
    let length = u16::from_be_bytes(*length);
    // Everything up to ASCQ, byte 13, is used.
    if length < 14 {
        return Err(UpiuError::Field { offset: UPIU_BYTES, found: length.into(), expected: "12h (18 bytes of sense)" });
    }
    let Some(sense) = sense.get(..usize::from(length)) else {
        return Err(UpiuError::Field { offset: 10, found: segment.len() as u32, expected: "the sense length plus 2" });
    };
    let code = u32::from(sense[0]);
    parse_fixed_sense(sense).ok_or(UpiuError::Field {
        offset: UPIU_BYTES + 2,
        found: code,
        expected: "sense response code 70h or 71h (fixed format)",
    })
}

/// SCSI status byte of `status` (SAM-5 status codes).
const fn status_code(status: Status) -> u8 {
    match status {
        Status::Good => 0x00,
        Status::CheckCondition => 0x02,
        Status::Busy => 0x08,
        Status::ReservationConflict => 0x18,
        Status::TaskSetFull => 0x28,
        Status::TaskAborted => 0x40,
    }
}

fn status_from(code: u8) -> Result<Status, UpiuError> {
    Ok(match code {
        0x00 => Status::Good,
        0x02 => Status::CheckCondition,
        0x08 => Status::Busy,
        0x18 => Status::ReservationConflict,
        0x28 => Status::TaskSetFull,
        0x40 => Status::TaskAborted,
        _ => {
            let expected = "a SCSI status: 00h, 02h, 08h, 18h, 28h or 40h";
            return Err(UpiuError::Field { offset: 7, found: code.into(), expected });
        }
    })
}

fn fields(bytes: &[u8]) -> Result<&[u8; UPIU_BYTES], UpiuError> {
    bytes.first_chunk().ok_or(UpiuError::Short { have: bytes.len(), need: UPIU_BYTES })
}

/// The first 32 bytes, if they exist and no extra header segment follows.
fn head(bytes: &[u8]) -> Result<&[u8; UPIU_BYTES], UpiuError> {
    let b = fields(bytes)?;
    if b[8] != 0 {
        return Err(UpiuError::Field { offset: 8, found: b[8].into(), expected: "00h (no extra header segment)" });
    }
    Ok(b)
}

/// Enters the length of `data` into the header and returns the part of it that the length can express.
fn put_segment<'a>(b: &mut [u8; UPIU_BYTES], data: &'a [u8]) -> &'a [u8] {
    debug_assert!(data.len() <= usize::from(u16::MAX), "a data segment has at most 65535 bytes");
    let length = data.len().min(usize::from(u16::MAX));
    put16(b, 10, length as u16);
    &data[..length]
}

fn get_segment<'a>(bytes: &'a [u8], b: &[u8; UPIU_BYTES]) -> Result<&'a [u8], UpiuError> {
    let need = UPIU_BYTES + usize::from(be16(b, 10));
    bytes.get(UPIU_BYTES..need).ok_or(UpiuError::Short { have: bytes.len(), need })
}

/// A 32-bit task management parameter of which 8 bits exist.
fn small(b: &[u8; UPIU_BYTES], at: usize) -> Result<u8, UpiuError> {
    let found = be32(b, at);
    u8::try_from(found).map_err(|_| UpiuError::Field { offset: at, found, expected: "0 to FFh" })
}

fn put16(b: &mut [u8; UPIU_BYTES], at: usize, value: u16) {
    b[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn put32(b: &mut [u8; UPIU_BYTES], at: usize, value: u32) {
    b[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests;
