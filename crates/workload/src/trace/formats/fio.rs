// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio I/O logs, versions 2 and 3 (fio HOWTO, "Trace file format"). Version 2 has no times, only waits in microseconds;
//! version 3 has a time in microseconds in front of each row, as fio 3.33 writes it.

use super::super::error::{Reason, RowError};
use super::super::number::{Cursor, MICROS};
use super::{Amount, Context, NO_PROCESS, Op, Row, request};
use crate::IoKind;

/// The version in a first row; an unknown version is an error.
pub(in super::super) fn announced(row: &[u8]) -> Option<Result<u32, String>> {
    let version = row.trim_ascii().strip_prefix(b"fio version ")?.strip_suffix(b" iolog")?;
    Some(match version {
        b"2" => Ok(2),
        b"3" => Ok(3),
        other => Err(other.escape_ascii().to_string()),
    })
}

/// A row of version 2: `file action [offset length]`.
#[inline]
pub(in super::super) fn v2(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let mut c = Cursor::new(row);
    c.blanks();
    let name_at = c.at;
    let name = c.word();
    c.blanks();
    if row[c.at..].starts_with(b"wait ") {
        c.word();
        c.blanks();
        let at = c.at;
        let wait = c.time(MICROS, "wait")?;
        let Some(clock) = cx.clock_ns.checked_add(wait) else {
            return Err(RowError::new(Reason::Range, "wait", at, "waits of less than 2^64 ns in all"));
        };
        cx.clock_ns = clock;
        return Ok(Row::Other);
    }
    action(c, cx.clock_ns, name, name_at, cx)
}

/// A row of version 3: `time file action [offset length]`.
#[inline]
pub(in super::super) fn v3(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let mut c = Cursor::new(row);
    c.blanks();
    let time = c.time(MICROS, "time")?;
    c.blanks();
    let name_at = c.at;
    let name = c.word();
    action(c, time, name, name_at, cx)
}

#[inline]
fn action(mut c: Cursor, time: u64, name: &[u8], name_at: usize, cx: &mut Context) -> Result<Row, RowError> {
    c.blanks();
    let at = c.at;
    let kind = match c.word() {
        b"read" => IoKind::Read,
        b"write" => IoKind::Write,
        b"trim" => IoKind::Trim,
        b"sync" | b"datasync" => IoKind::Flush,
        b"add" | b"open" | b"close" => return Ok(Row::Other),
        _ => {
            let expected = "read, write, trim, sync, datasync, add, open or close (in version 2 also wait)";
            return Err(RowError::new(Reason::Operation, "action", at, expected));
        }
    };
    let mut part = |field| {
        c.blanks();
        let at = c.at;
        c.u64(field).map(|v| Amount::bytes(v, at))
    };
    let (offset, size) = match kind {
        IoKind::Flush => (Amount::bytes(0, 0), Amount::bytes(0, 0)),
        _ => (part("offset")?, part("length")?),
    };
    let raw = request(Op::plain(kind), time, offset, size, NO_PROCESS)?;
    Ok(if cx.gate.admits(name, name_at)? { Row::Request(raw) } else { Row::OtherDevice })
}
