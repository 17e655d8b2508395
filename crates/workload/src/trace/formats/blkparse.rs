// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of `blkparse` in its default format (blkparse(1), "DEFAULT FORMAT"):
//! `8,0 3 1 0.000000000 697 D W 223490 + 8 [kjournald]`. Other output formats of `blkparse -f` are not known.

use super::super::Event;
use super::super::error::{Reason, RowError};
use super::super::number::{Cursor, SECONDS};
use super::{Amount, Context, Found, NO_PROCESS, RWBS, Row, choose, rwbs};
use crate::IoKind;

/// Beginnings of the rows that follow the events: totals of each processor and of all.
const SUMMARY: [&[u8]; 5] = [b"CPU", b"Total", b"Throughput", b"Events", b"Skips:"];

/// The event that an action letter stands for.
pub(in super::super) fn event(action: &[u8]) -> Option<Event> {
    match action {
        b"Q" => Some(Event::Queue),
        b"D" => Some(Event::Issue),
        b"C" => Some(Event::Complete),
        _ => None,
    }
}

pub(in super::super) fn action(row: &[u8]) -> Option<&[u8]> {
    let head = head(&mut Cursor::new(row)).ok()?;
    head.has_fraction.then_some(head.action)
}

/// Offset of another row in the text after an action: then the end of the line, and perhaps more, is missing. Without
/// this check, the name of a process would hide it.
#[inline]
fn next_row(rest: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b',', rest)
        .map(|comma| comma - rest[..comma].iter().rev().take_while(|b| b.is_ascii_digit()).count())
        .find(|&from| action(&rest[from..]).is_some())
}

/// `major,minor`.
#[inline]
fn device<'a>(c: &mut Cursor<'a>) -> Option<(&'a [u8], usize)> {
    c.blanks();
    let from = c.at;
    c.u64("device").ok()?;
    c.pass(b',', "device", "").ok()?;
    c.u64("device").ok()?;
    Some((&c.row[from..c.at], from))
}

/// The part of a row before the operation.
struct Head<'a> {
    device: (&'a [u8], usize),
    time: u64,
    has_fraction: bool,
    process: u32,
    action: &'a [u8],
}

#[inline]
fn head<'a>(c: &mut Cursor<'a>) -> Result<Head<'a>, RowError> {
    let Some(device) = device(c) else {
        return Err(RowError::syntax("MAJOR,MINOR CPU SEQUENCE TIME PID ACTION RWBS SECTOR + SECTORS [PROCESS]"));
    };
    c.blanks();
    c.u64("cpu")?;
    c.blanks();
    c.u64("sequence")?;
    c.blanks();
    let time_at = c.at;
    let time = c.time(SECONDS, "time")?;
    let has_fraction = c.row[time_at..c.at].contains(&b'.');
    c.blanks();
    let process = u32::try_from(c.u64("pid")?).unwrap_or(NO_PROCESS);
    c.blanks();
    let action_at = c.at;
    let action = c.word();
    if !matches!(action.len(), 1 | 2) || !action.iter().all(u8::is_ascii_alphabetic) {
        return Err(RowError::new(Reason::Syntax, "action", action_at, "a letter such as Q, D or C"));
    }
    Ok(Head { device, time, has_fraction, process, action })
}

#[inline]
pub(in super::super) fn row(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    if SUMMARY.iter().any(|s| row.starts_with(s)) {
        return Ok(Row::End);
    }
    // What a terminal shows above the events.
    if row.starts_with(b"Input file ") && row.ends_with(b" added") {
        return Ok(Row::Other);
    }
    let mut c = Cursor::new(row);
    let Head { device, time, process, action, .. } = head(&mut c)?;
    if let Some(next) = next_row(&row[c.at..]) {
        return Err(RowError::new(Reason::Syntax, "", c.at + next, "the end of the row"));
    }
    let Some(event) = event(action) else { return Ok(Row::Other) };
    c.blanks();
    let op_at = c.at;
    let op = rwbs(c.word()).ok_or_else(|| RowError::new(Reason::Operation, "rwbs", op_at, RWBS))?;
    c.blanks();
    let sector_at = c.at;
    let (mut offset, mut size) = (Amount::sectors(0, sector_at), Amount::sectors(0, sector_at));
    if c.peek().is_some_and(|b| b.is_ascii_digit()) {
        offset.value = c.u64("sector")?;
        c.blanks();
        match c.peek() {
            Some(b'+') => {
                c.at += 1;
                c.blanks();
                size.at = c.at;
                size.value = c.u64("sectors")?;
            }
            // Bytes and payload of a command that passed through the block layer.
            Some(b'(') => return Ok(Row::Other),
            // A flush has no address: what stands here is the error of its completion.
            _ if !op.is_some_and(|o| o.kind != IoKind::Flush && !o.preflush) => {}
            _ => return Err(RowError::new(Reason::Syntax, "", c.at, "SECTOR + SECTORS")),
        }
    }
    let found = Found { op, time, offset, size, process, device, key: offset.value };
    choose(cx, event, found)
}
