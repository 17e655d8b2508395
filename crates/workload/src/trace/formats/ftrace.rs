// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of the Linux function tracer, as `trace` in tracefs, `trace-cmd report` and `perf script` print it:
//! `TASK-PID [CPU] FLAGS SECONDS: EVENT: ...`. Events: `ufshcd_command` (include/trace/events/ufs.h) and
//! `block_rq_issue`, `block_rq_complete`, `block_bio_queue` (include/trace/events/block.h).

use super::super::Event;
use super::super::error::{Reason, RowError};
use super::super::number::{Cursor, SECONDS, trailing_number};
use super::{Amount, Context, Found, NO_PROCESS, RWBS, Row, choose, rwbs, scsi};

const SHAPE: &str = "TASK-PID [CPU] FLAGS SECONDS: EVENT: ...";
/// Beginnings of rows that are not events: what `trace-cmd report` prints in front.
const PREFACE: [&[u8]; 5] = [b"#", b"cpus=", b"version =", b"CPU ", b"trace-cmd"];

/// Operation code of HPB READ.
const HPB_READ: u64 = 0xF8;
/// Text before the header of a UPIU.
const HEADER_BYTES: &[u8] = b"HDR:";

/// Begins the header that tracefs prints.
pub(in super::super) const HEADER: &[u8] = b"# tracer:";

/// The parts of a row.
struct Parts<'a> {
    process: u32,
    time: u64,
    event: &'a [u8],
    /// Offset of the text after the event's name.
    rest: usize,
}

/// `]` after the processor, then flags or nothing, then the time, then the event; each ends with a colon.
#[inline]
fn parts(row: &[u8]) -> Option<Result<Parts<'_>, RowError>> {
    // The task's name may itself have brackets: the processor is the first pair that holds digits only.
    let mut from = 0;
    let (open, close) = loop {
        let open = from + memchr::memchr(b'[', &row[from..])?;
        let digits = row[open + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 && row.get(open + 1 + digits) == Some(&b']') {
            break (open, open + 1 + digits);
        }
        from = open + 1;
    };
    let mut c = Cursor { row, at: close + 1 };
    c.blanks();
    if !c.peek()?.is_ascii_digit() || flags_before_time(&c) {
        c.word();
        c.blanks();
    }
    let time_at = c.at;
    let time = match c.time(SECONDS, "time") {
        Ok(time) => time,
        Err(e) => return Some(Err(e)),
    };
    if !row[time_at..c.at].contains(&b'.') {
        let expected = "seconds with a fraction (a clock of tracefs that counts time: local, global, mono or boot)";
        return Some(Err(RowError::new(Reason::Number, "time", time_at, expected)));
    }
    c.pass(b':', "time", "").ok()?;
    c.blanks();
    let name_at = c.at;
    c.until(b':');
    let mut event = &row[name_at..c.at];
    c.pass(b':', "event", "").ok()?;
    // perf prints the event's system as well.
    if c.peek().is_some_and(|b| b != b' ') {
        let from = c.at;
        c.until(b':');
        event = &row[from..c.at];
        c.pass(b':', "event", "").ok()?;
    }
    c.blanks();
    // `task-pid` or `task-pid (tgid)` in front of the processor.
    let mut task = row[..open].trim_ascii_end();
    if task.last() == Some(&b')') {
        task = task[..memchr::memrchr(b'(', task)?].trim_ascii_end();
    }
    let process = trailing_number(task).unwrap_or(NO_PROCESS);
    Some(Ok(Parts { process, time, event, rest: c.at }))
}

/// Flags may begin with a digit only when they end before a time; a time is digits, a point and digits.
#[inline]
fn flags_before_time(c: &Cursor) -> bool {
    let end = c.row[c.at..].iter().position(|&b| b == b' ' || b == b':').unwrap_or(0);
    c.row.get(c.at + end) == Some(&b' ')
}

/// Rows without an event.
#[inline]
fn other(row: &[u8]) -> Result<Row, RowError> {
    if PREFACE.iter().any(|p| row.starts_with(p)) {
        return Ok(Row::Other);
    }
    // `CPU:2 [LOST 153 EVENTS]`
    if row.starts_with(b"CPU:") {
        let lost = memchr::memmem::find(row, b"[LOST ").map_or(0, |i| i + 6);
        return Ok(Cursor { row, at: lost }.u64("lost").map_or(Row::Other, Row::Lost));
    }
    Err(RowError::syntax(SHAPE))
}

/// The event of a row of the UFS driver or the block layer, for recognition.
pub(in super::super) fn event(row: &[u8], ufs: bool) -> Option<Event> {
    let p = parts(row)?.ok()?;
    match ufs {
        true if p.event == b"ufshcd_command" => ufs_event(&row[p.rest..]),
        false => block_event(p.event),
        true => None,
    }
}

fn block_event(name: &[u8]) -> Option<Event> {
    match name {
        b"block_rq_issue" => Some(Event::Issue),
        b"block_rq_complete" => Some(Event::Complete),
        b"block_bio_queue" => Some(Event::Queue),
        _ => None,
    }
}

/// The words before `send_req` and `complete_rsp` are those of Linux before 5.11.
fn ufs_event(rest: &[u8]) -> Option<Event> {
    match &rest[..memchr::memchr(b':', rest)?] {
        b"send_req" | b"scsi_send" | b"send" => Some(Event::Issue),
        b"complete_rsp" | b"scsi_cmpl" | b"complete" => Some(Event::Complete),
        _ => None,
    }
}

/// A row of the UFS driver: `send_req: DEVICE: tag: 3, DB: 0x8, size: 4096, IS: 0, LBA: 77, opcode: 0x28 (READ_10),
/// ...`. Requests without a recorded address (Linux writes 0 bytes or 2^64-1) cannot be replayed.
#[inline]
pub(in super::super) fn ufs(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let p = match parts(row) {
        Some(p) => p?,
        None => return other(row),
    };
    if p.event == b"ufshcd_upiu" {
        hpb_read(&row[p.rest..], cx);
        return Ok(Row::Other);
    }
    if p.event != b"ufshcd_command" {
        cx.other_layer += u64::from(block_event(p.event) == Some(Event::Issue));
        return Ok(Row::Other);
    }
    let Some(event) = ufs_event(&row[p.rest..]) else { return Ok(Row::Other) };
    let mut c = Cursor { row, at: p.rest };
    c.until(b':');
    c.at += 1;
    c.blanks();
    let device_at = c.at;
    // A device's name may have colons (`0:0:0:0`); what follows is the tag.
    let Some(n) = memchr::memmem::find(&row[device_at..], b": tag: ") else {
        return Err(RowError::new(Reason::Syntax, "", device_at, "DEVICE: tag: N, DB: ..., size: ..., LBA: ..."));
    };
    let device = &row[device_at..device_at + n];
    c.at = device_at + n + 2;
    let (mut tag, mut size, mut lba, mut code) = (None, None, None, None);
    while c.at < row.len() {
        c.blanks();
        let key = c.until(b':');
        c.at = (c.at + 1).min(row.len());
        c.blanks();
        let at = c.at;
        match key {
            b"tag" => tag = Some(c.u64("tag")?),
            // -1 where the kernel does not record it.
            b"size" if c.peek() == Some(b'-') => size = Some((0, at)),
            b"size" => size = Some((c.u64("size")?, at)),
            b"LBA" => lba = Some((c.u64("LBA")?, at)),
            b"opcode" => code = Some(c.hex("opcode")?),
            _ => {}
        }
        c.until(b',');
        c.at = (c.at + 1).min(row.len());
    }
    let (Some(tag), Some(mut size), Some(mut lba), Some(code)) = (tag, size, lba, code) else {
        return Err(RowError::new(Reason::Syntax, "", p.rest, "tag, size, LBA and opcode"));
    };
    let op = scsi(code);
    if code == HPB_READ
        && event == Event::Issue
        && let Some(i) = cx.hpb_reads.iter().position(|read| read.0 == tag)
    {
        let (_, block, blocks) = cx.hpb_reads.swap_remove(i);
        (lba.0, size.0) = (block, blocks * cx.ufs_block_bytes);
    }
    if op.is_some_and(|o| o.kind != crate::IoKind::Flush) && cx.event == event && (lba.0 == u64::MAX || size.0 == 0) {
        let expected = "an address and a size (this kernel does not record those of this command; those of HPB READ \
                        are in the event ufshcd_upiu, if that is recorded as well)";
        return Err(RowError::new(Reason::Address, "LBA", lba.1, expected));
    }
    let offset = Amount { value: lba.0, unit: cx.ufs_block_bytes, at: lba.1 };
    let size = Amount::bytes(size.0, size.1);
    let found = Found { op, time: p.time, offset, size, process: p.process, device: (device, device_at), key: tag };
    choose(cx, event, found)
}

/// Linux 6.1 does not record where an HPB READ goes, but the command itself, in the event before: `send_req: DEVICE:
/// HDR:01 40 00 03 ..., CDB:f8 00 ...`. Anything else is passed over.
fn hpb_read(rest: &[u8], cx: &mut Context) {
    if ufs_event(rest) != Some(Event::Issue) {
        return;
    }
    let bytes = |after: &[u8]| {
        let at = memchr::memmem::find(rest, after)? + after.len();
        let mut c = Cursor { row: rest, at };
        let mut bytes = [0; 16];
        for byte in bytes.iter_mut().take(if after == HEADER_BYTES { 4 } else { 16 }) {
            c.blanks();
            *byte = u8::try_from(c.hex("").ok()?).ok()?;
        }
        Some(bytes)
    };
    let (Some(header), Some(cdb)) = (bytes(HEADER_BYTES), bytes(b"CDB:")) else { return };
    if u64::from(cdb[0]) == HPB_READ {
        let (tag, lba) = (u64::from(header[3]), u32::from_be_bytes([cdb[2], cdb[3], cdb[4], cdb[5]]));
        cx.hpb_reads.retain(|read| read.0 != tag);
        cx.hpb_reads.push((tag, lba.into(), cdb[14].into()));
    }
}

/// A row of the block layer: `8,0 R 4096 () 1234 + 8 [task]`; older kernels and other events lack the bytes or both
/// the bytes and the parentheses.
#[inline]
pub(in super::super) fn block(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let p = match parts(row) {
        Some(p) => p?,
        None => return other(row),
    };
    let Some(event) = block_event(p.event) else {
        cx.other_layer += u64::from(p.event == b"ufshcd_command" && ufs_event(&row[p.rest..]) == Some(Event::Issue));
        return Ok(Row::Other);
    };
    let mut c = Cursor { row, at: p.rest };
    let device_at = c.at;
    let device = c.word();
    c.blanks();
    let op_at = c.at;
    let op = rwbs(c.word()).ok_or_else(|| RowError::new(Reason::Operation, "rwbs", op_at, RWBS))?;
    c.blanks();
    let mut at = c.at;
    if c.peek() != Some(b'(') {
        let value = c.u64("sector")?;
        c.blanks();
        if c.peek() == Some(b'+') {
            let offset = Amount::sectors(value, at);
            return tail(c, cx, event, op, &p, offset, (device, device_at));
        }
        at = c.at;
    }
    c.pass(b'(', "command", "a command in parentheses, or SECTOR + SECTORS")?;
    c.until(b')');
    c.pass(b')', "command", "a closing parenthesis")?;
    c.blanks();
    let offset = Amount { at, ..Amount::sectors(c.u64("sector")?, at) };
    c.blanks();
    tail(c, cx, event, op, &p, offset, (device, device_at))
}

#[inline]
fn tail(
    mut c: Cursor,
    cx: &mut Context,
    event: Event,
    op: Option<super::Op>,
    p: &Parts,
    offset: Amount,
    device: (&[u8], usize),
) -> Result<Row, RowError> {
    c.pass(b'+', "sector", "SECTOR + SECTORS")?;
    c.blanks();
    let at = c.at;
    let size = Amount::sectors(c.u64("sectors")?, at);
    choose(cx, event, Found { op, time: p.time, offset, size, process: p.process, device, key: offset.value })
}
