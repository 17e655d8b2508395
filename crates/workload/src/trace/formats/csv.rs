// SPDX-License-Identifier: MIT OR Apache-2.0
//! Six published collections of traces, each a table with commas and fixed columns: MSR Cambridge, SYSTOR '17 and
//! Tencent CBS as the SNIA IOTTA repository describes them, CloudPhysics as distributed with libCacheSim,
//! MobileBlockIOTraces as distributed with "Space-efficient FTL for Mobile Storage via Tiny Neural Nets" (SYSTOR '24),
//! Alibaba as github.com/alibaba/block-traces describes them.

use super::super::error::{Reason, RowError};
use super::super::number::{Cursor, FILETIME, MICROS, SECONDS, trailing_number};
use super::{Amount, Context, NO_PROCESS, RWBS, Row, request, rwbs, scsi};
use crate::IoKind;

#[inline]
fn comma(c: &mut Cursor, field: &'static str) -> Result<(), RowError> {
    c.blanks();
    c.pass(b',', field, "a comma after the number")
}

#[inline]
fn end(c: &mut Cursor) -> Result<(), RowError> {
    c.blanks();
    match c.peek() {
        None => Ok(()),
        Some(_) => Err(RowError::new(Reason::Syntax, "", c.at, "the end of the row")),
    }
}

/// A whole number and its place.
#[inline]
fn amount(c: &mut Cursor, field: &'static str, unit: u64) -> Result<Amount, RowError> {
    c.blanks();
    let at = c.at;
    Ok(Amount { value: c.u64(field)?, unit, at })
}

/// A time, blanks before it passed.
#[inline]
fn time_of(c: &mut Cursor, unit_ns: u64, field: &'static str) -> Result<u64, RowError> {
    c.blanks();
    c.time(unit_ns, field)
}

/// A text up to the next comma, without the blanks around it.
#[inline]
fn word<'a>(c: &mut Cursor<'a>) -> &'a [u8] {
    c.until(b',').trim_ascii()
}

/// `timestamp,host,disk,Read|Write,offset,size,response`; the response may be missing. Times in units of 100 ns.
#[inline]
pub(in super::super) fn msr(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let mut c = Cursor::new(row);
    let time = time_of(&mut c, FILETIME, "timestamp")?;
    comma(&mut c, "timestamp")?;
    let device_at = c.at;
    c.until(b',');
    c.pass(b',', "host", "a host, a disk and an operation")?;
    c.until(b',');
    let device = row[device_at..c.at].trim_ascii();
    c.pass(b',', "disk", "a disk and an operation")?;
    let op_at = c.at;
    let op = match word(&mut c) {
        b"Read" => IoKind::Read,
        b"Write" => IoKind::Write,
        word => match super::op_word(word) {
            Some(Some(op)) if matches!(op.kind, IoKind::Read | IoKind::Write) => op.kind,
            _ => return Err(RowError::new(Reason::Operation, "type", op_at, "Read or Write")),
        },
    };
    c.pass(b',', "type", "an offset after the operation")?;
    let offset = amount(&mut c, "offset", 1)?;
    comma(&mut c, "offset")?;
    let size = amount(&mut c, "size", 1)?;
    let mut raw = request(super::Op::plain(op), time, offset, size, NO_PROCESS)?;
    c.blanks();
    if c.peek() == Some(b',') {
        c.at += 1;
        raw.latency = time_of(&mut c, FILETIME, "response")?;
    }
    end(&mut c)?;
    Ok(if cx.gate.admits(device, device_at)? { Row::Request(raw) } else { Row::OtherDevice })
}

/// `Timestamp,Response,IOType,LUN,Offset,Size`. The type is blank where the recorder saw no response.
#[inline]
pub(in super::super) fn systor(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let mut c = Cursor::new(row);
    let time = time_of(&mut c, SECONDS, "Timestamp")?;
    comma(&mut c, "Timestamp")?;
    let latency = if c.peek() == Some(b',') { super::NO_LATENCY } else { time_of(&mut c, SECONDS, "Response")? };
    comma(&mut c, "Response")?;
    let op_at = c.at;
    let op = match word(&mut c) {
        b"R" => IoKind::Read,
        b"W" => IoKind::Write,
        _ => {
            let expected = "R or W (blank where no response was recorded: such a request cannot be told)";
            return Err(RowError::new(Reason::Operation, "IOType", op_at, expected));
        }
    };
    c.pass(b',', "IOType", "a LUN after the operation")?;
    let lun_at = c.at;
    let lun = word(&mut c);
    c.pass(b',', "LUN", "an offset after the LUN")?;
    let offset = amount(&mut c, "Offset", 1)?;
    comma(&mut c, "Offset")?;
    let size = amount(&mut c, "Size", 1)?;
    end(&mut c)?;
    let mut raw = request(super::Op::plain(op), time, offset, size, NO_PROCESS)?;
    raw.latency = latency;
    Ok(if cx.gate.admits(lun, lun_at)? { Row::Request(raw) } else { Row::OtherDevice })
}

/// `version,time,op,size,lbn`. Commands that move no data are passed over.
#[inline]
pub(in super::super) fn cloudphysics(row: &[u8], _: &mut Context) -> Result<Row, RowError> {
    let mut c = Cursor::new(row);
    c.blanks();
    c.u64("version")?;
    comma(&mut c, "version")?;
    let time = time_of(&mut c, SECONDS, "time")?;
    comma(&mut c, "time")?;
    c.blanks();
    let code = c.hex("op")?;
    comma(&mut c, "op")?;
    let size = amount(&mut c, "size", 1)?;
    comma(&mut c, "size")?;
    let lbn = amount(&mut c, "lbn", super::SECTOR_BYTES)?;
    end(&mut c)?;
    match scsi(code) {
        Some(op) => request(op, time, lbn, size, NO_PROCESS).map(Row::Request),
        None => Ok(Row::Other),
    }
}

/// `device_id,opcode,offset,length,timestamp`; bytes and microseconds.
#[inline]
pub(in super::super) fn alibaba(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let mut c = Cursor::new(row);
    c.blanks();
    let device_at = c.at;
    c.u64("device_id")?;
    let device = &row[device_at..c.at];
    comma(&mut c, "device_id")?;
    let op_at = c.at;
    let op = match word(&mut c) {
        b"R" => IoKind::Read,
        b"W" => IoKind::Write,
        _ => return Err(RowError::new(Reason::Operation, "opcode", op_at, "R or W")),
    };
    c.pass(b',', "opcode", "an offset after the operation")?;
    let offset = amount(&mut c, "offset", 1)?;
    comma(&mut c, "offset")?;
    let length = amount(&mut c, "length", 1)?;
    comma(&mut c, "length")?;
    let time = time_of(&mut c, MICROS, "timestamp")?;
    end(&mut c)?;
    let raw = request(super::Op::plain(op), time, offset, length, NO_PROCESS)?;
    Ok(if cx.gate.admits(device, device_at)? { Row::Request(raw) } else { Row::OtherDevice })
}

/// `timestamp,offset,size,iotype,volumeid`; seconds, and sectors of 512 bytes.
#[inline]
pub(in super::super) fn tencent(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let mut c = Cursor::new(row);
    let time = time_of(&mut c, SECONDS, "timestamp")?;
    comma(&mut c, "timestamp")?;
    let offset = amount(&mut c, "offset", super::SECTOR_BYTES)?;
    comma(&mut c, "offset")?;
    let size = amount(&mut c, "size", super::SECTOR_BYTES)?;
    comma(&mut c, "size")?;
    let op_at = c.at;
    let op = match word(&mut c) {
        b"0" => IoKind::Read,
        b"1" => IoKind::Write,
        _ => return Err(RowError::new(Reason::Operation, "iotype", op_at, "0 (read) or 1 (write)")),
    };
    c.pass(b',', "iotype", "a volume after the operation")?;
    c.blanks();
    let volume_at = c.at;
    c.u64("volumeid")?;
    let volume = &row[volume_at..c.at];
    end(&mut c)?;
    let raw = request(super::Op::plain(op), time, offset, size, NO_PROCESS)?;
    Ok(if cx.gate.admits(volume, volume_at)? { Row::Request(raw) } else { Row::OtherDevice })
}

/// `process,device,rw_flag,sector,size,timestamp`. A process name may itself have commas.
#[inline]
pub(in super::super) fn mobile(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let Some(name_end) = memchr::memchr(b',', row) else {
        return Err(RowError::syntax("process,device,rw_flag,sector,size,timestamp"));
    };
    match mobile_from(row, name_end, cx) {
        Err(e) => match memchr::memrchr_iter(b',', row).nth(4) {
            Some(later) if later > name_end && !holds_row(&row[..later]) => mobile_from(row, later, cx),
            _ => Err(e),
        },
        good => good,
    }
}

/// Whether a name contains the beginning of a row: then a part of the line, or its end, is missing.
#[cold]
fn holds_row(name: &[u8]) -> bool {
    memchr::memchr_iter(b',', name).any(|i| {
        let mut c = Cursor { row: name, at: i + 1 };
        c.u64("device").is_ok()
            && comma(&mut c, "").is_ok()
            && rwbs(word(&mut c)).is_some()
            && comma(&mut c, "").is_ok()
            && c.peek().is_some_and(|b| b.is_ascii_digit())
    })
}

#[inline]
fn mobile_from(row: &[u8], name_end: usize, cx: &mut Context) -> Result<Row, RowError> {
    let mut c = Cursor { row, at: name_end + 1 };
    c.blanks();
    let device_at = c.at;
    c.u64("device")?;
    let device = &row[device_at..c.at];
    comma(&mut c, "device")?;
    let op_at = c.at;
    let op = rwbs(word(&mut c)).ok_or_else(|| RowError::new(Reason::Operation, "rw_flag", op_at, RWBS))?;
    c.pass(b',', "rw_flag", "a sector after the operation")?;
    let sector = amount(&mut c, "sector", super::SECTOR_BYTES)?;
    comma(&mut c, "sector")?;
    let size = amount(&mut c, "size", super::SECTOR_BYTES)?;
    comma(&mut c, "size")?;
    let time = time_of(&mut c, SECONDS, "timestamp")?;
    end(&mut c)?;
    let Some(op) = op else { return Ok(Row::Other) };
    let process = trailing_number(row[..name_end].trim_ascii_end()).unwrap_or(NO_PROCESS);
    let raw = request(op, time, sector, size, process)?;
    Ok(if cx.gate.admits(device, device_at)? { Row::Request(raw) } else { Row::OtherDevice })
}
