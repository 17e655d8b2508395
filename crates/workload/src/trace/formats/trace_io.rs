// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `--trace-io` of runs and of `attach` writes (docs/formats/trace-io.md): JSON with one event per line. Of
//! its events the UPIUs count. Order and spaces of members do not matter, but an event stands on one line.

use super::super::error::{Reason, RowError};
use super::super::number::{Cursor, MICROS};
use super::{Amount, Context, NO_PROCESS, Op, Row, request, scsi};
use crate::IoKind;

const SHAPE: &str = "one event per line, {\"name\":...}";
const BYTES: &str = "bytes in hexadecimal, two digits each";
/// The first event of every trace, after the bracket.
const FIRST: &[u8] = br#"{"name":"process_name","ph":"M","pid":1,"tid":0,"args":{"name":"host"}}"#;
/// Bytes of a logical block.
const BLOCK: u64 = 4096;
/// Transaction codes of UPIUs.
const COMMAND: u8 = 0x01;
const RESPONSE: u8 = 0x21;

/// Bytes of a row in hexadecimal digits.
#[derive(Clone, Copy, Default)]
pub(in super::super) struct Hex<'a>(&'a [u8]);

impl Hex<'_> {
    pub(in super::super) fn len(self) -> usize {
        self.0.len() / 2
    }

    /// The byte at `i`; 0 behind the end.
    fn byte(self, i: usize) -> u8 {
        let digit = |at: usize| self.0.get(at).and_then(|&b| char::from(b).to_digit(16)).unwrap_or(0) as u8;
        digit(2 * i) << 4 | digit(2 * i + 1)
    }

    /// The number of `n` bytes from `i` on, the highest first.
    fn number(self, i: usize, n: usize) -> u64 {
        (i..i + n).fold(0, |v, i| v << 8 | u64::from(self.byte(i)))
    }

    pub(in super::super) fn bytes(self) -> impl Iterator<Item = u8> {
        (0..self.len()).map(move |i| self.byte(i))
    }
}

/// The members of a row. Missing ones are empty or 0.
#[derive(Default)]
pub(in super::super) struct Event<'a> {
    pub(in super::super) name: &'a [u8],
    pub(in super::super) category: &'a [u8],
    /// `"g"` for a mark over all tracks.
    pub(in super::super) scope: &'a [u8],
    /// Time in nanoseconds.
    pub(in super::super) time: Option<u64>,
    pub(in super::super) duration: u64,
    pub(in super::super) request: Option<u64>,
    pub(in super::super) tag: u64,
    pub(in super::super) status: &'a [u8],
    pub(in super::super) wall_ns: Option<u64>,
    /// The UPIU, and its offset in the row.
    pub(in super::super) upiu: Option<(Hex<'a>, usize)>,
    pub(in super::super) data: Hex<'a>,
    data_at: usize,
}

impl<'a> Event<'a> {
    /// The event of a row; `None` for the brackets around all.
    pub(in super::super) fn parse(row: &'a [u8]) -> Result<Option<Event<'a>>, RowError> {
        let mut c = Cursor::new(row);
        c.blanks();
        if matches!(row.trim_ascii(), b"[" | b"]") {
            return Ok(None);
        }
        let mut event = Event::default();
        let first = c.at;
        members(&mut c, |key, c| event.member(key, c))?;
        c.blanks();
        if c.peek() == Some(b',') {
            c.at += 1;
            c.blanks();
        }
        match c.peek() {
            None if first < c.at => Ok(Some(event)),
            _ => Err(RowError::new(Reason::Syntax, "", c.at, "the end of the line after an event")),
        }
    }

    fn member(&mut self, key: &[u8], c: &mut Cursor<'a>) -> Result<(), RowError> {
        match key {
            b"name" => self.name = string(c)?,
            b"cat" => self.category = string(c)?,
            b"s" => self.scope = string(c)?,
            b"ts" => self.time = Some(c.time(MICROS, "ts")?),
            b"dur" => self.duration = c.time(MICROS, "dur")?,
            b"args" if c.peek() == Some(b'{') => return members(c, |key, c| self.argument(key, c)),
            _ => pass_value(c)?,
        }
        Ok(())
    }

    fn argument(&mut self, key: &[u8], c: &mut Cursor<'a>) -> Result<(), RowError> {
        match key {
            b"request" => self.request = Some(c.u64("request")?),
            b"tag" => self.tag = c.u64("tag")?,
            b"status" => self.status = string(c)?,
            b"wall_ns" => self.wall_ns = Some(c.u64("wall_ns")?),
            b"upiu" => {
                let at = c.at;
                self.upiu = Some((hex(c, "upiu")?, at));
            }
            b"data" => {
                self.data_at = c.at;
                self.data = hex(c, "data")?;
            }
            _ => pass_value(c)?,
        }
        Ok(())
    }
}

/// The members of an object, up to its end; `each` passes the value of one.
fn members<'a>(
    c: &mut Cursor<'a>,
    mut each: impl FnMut(&'a [u8], &mut Cursor<'a>) -> Result<(), RowError>,
) -> Result<(), RowError> {
    c.pass(b'{', "", SHAPE)?;
    c.blanks();
    if c.peek() == Some(b'}') {
        c.at += 1;
        return Ok(());
    }
    loop {
        c.blanks();
        let key = string(c)?;
        c.blanks();
        c.pass(b':', "", "a colon after the name of a member")?;
        c.blanks();
        each(key, c)?;
        c.blanks();
        match c.peek() {
            Some(b',') => c.at += 1,
            _ => return c.pass(b'}', "", "a comma or a brace after a member"),
        }
    }
}

/// The raw text between the quotes of a string.
fn string<'a>(c: &mut Cursor<'a>) -> Result<&'a [u8], RowError> {
    c.pass(b'"', "", "text in quotes")?;
    let from = c.at;
    loop {
        match c.peek() {
            Some(b'"') => break,
            Some(b'\\') => c.at += 2,
            Some(_) => c.at += 1,
            None => return Err(RowError::new(Reason::Syntax, "", from, "a quote after the text")),
        }
    }
    c.at += 1;
    Ok(&c.row[from..c.at - 1])
}

fn hex<'a>(c: &mut Cursor<'a>, field: &'static str) -> Result<Hex<'a>, RowError> {
    let from = c.at;
    let wrong = || RowError::new(Reason::Number, field, from, BYTES);
    let digits = string(c).map_err(|_| wrong())?;
    match digits.len() % 2 == 0 && digits.iter().all(u8::is_ascii_hexdigit) {
        true => Ok(Hex(digits)),
        false => Err(wrong()),
    }
}

/// Passes a value that is not needed.
fn pass_value(c: &mut Cursor) -> Result<(), RowError> {
    let (from, mut depth) = (c.at, 0u32);
    loop {
        match c.peek() {
            Some(b'"') => _ = string(c)?,
            Some(b'{' | b'[') => (depth, c.at) = (depth + 1, c.at + 1),
            Some(b'}' | b']' | b',') if depth == 0 => break,
            Some(b'}' | b']') => (depth, c.at) = (depth - 1, c.at + 1),
            Some(_) => c.at += 1,
            None => break,
        }
        if depth == 0 && matches!(c.peek(), None | Some(b',' | b'}' | b']')) {
            break;
        }
    }
    match c.at > from {
        true => Ok(()),
        false => Err(RowError::new(Reason::Syntax, "", from, "a value")),
    }
}

/// Whether a row can only be one of such a trace.
pub(in super::super) fn is_event(row: &[u8]) -> bool {
    row.starts_with(FIRST)
        || row.trim_ascii_start().starts_with(b"{")
            && Event::parse(row).is_ok_and(|e| e.is_some_and(|e| e.category == b"upiu" && e.upiu.is_some()))
}

/// A row: COMMAND UPIUs of reads, writes, UNMAP and SYNCHRONIZE CACHE are requests, and their RESPONSE UPIUs say when
/// they were done.
pub(in super::super) fn row(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let Some(event) = Event::parse(row)? else { return Ok(Row::Other) };
    if event.category != b"upiu" {
        return Ok(Row::Other);
    }
    let missing = |field| RowError::new(Reason::Syntax, field, row.len(), "a member of that name");
    let time = event.time.ok_or_else(|| missing("ts"))?;
    let key = event.request.ok_or_else(|| missing("request"))?;
    let (upiu, at) = event.upiu.ok_or_else(|| missing("upiu"))?;
    if upiu.len() < 32 {
        return Err(RowError::new(Reason::Syntax, "upiu", at, "at least 32 bytes"));
    }
    match upiu.byte(0) & 0x3F {
        COMMAND => command(&event, upiu, at, time, key, cx),
        RESPONSE => Ok(Row::Complete { key, time }),
        _ => Ok(Row::Other),
    }
}

fn command(event: &Event, upiu: Hex, at: usize, time: u64, key: u64, cx: &mut Context) -> Result<Row, RowError> {
    let code = upiu.byte(16);
    let Some(op) = scsi(code.into()) else { return Ok(Row::Other) };
    let lun = upiu.byte(2);
    let digits = [b'0' + lun / 100, b'0' + lun / 10 % 10, b'0' + lun % 10];
    let zeros = usize::from(lun < 100) + usize::from(lun < 10);
    if !cx.gate.admits(&digits[zeros..], at)? {
        return Ok(Row::OtherDevice);
    }
    let make = |op: Op, lba: u64, blocks: u64| {
        let amount = |value| Amount { value, unit: BLOCK, at };
        request(op, time, amount(lba), amount(blocks), NO_PROCESS)
    };
    match op.kind {
        IoKind::Flush => Ok(Row::Issue(make(op, 0, 0)?, key)),
        IoKind::Trim => {
            let list = usize::from(upiu.byte(23)) << 8 | usize::from(upiu.byte(24));
            if list > 0 && event.data.len() < 8 {
                return Err(RowError::new(Reason::Address, "data", event.data_at, "the parameter list of UNMAP"));
            }
            let ranges = (event.data.number(2, 2) as usize).min(event.data.len().saturating_sub(8)) / 16;
            cx.several.clear();
            for from in (0..ranges).map(|i| 8 + 16 * i) {
                let (lba, blocks) = (event.data.number(from, 8), event.data.number(from + 8, 4));
                if blocks > 0 {
                    cx.several.push(make(op, lba, blocks)?);
                }
            }
            Ok(match cx.several.len() {
                0 => Row::Other,
                1 => cx.several.pop().map_or(Row::Other, |raw| Row::Issue(raw, key)),
                _ => Row::Several { key },
            })
        }
        IoKind::Read | IoKind::Write => {
            let (lba, blocks, flags) = match code {
                // HPB READ has its entry where other commands have a length.
                0xF8 => (upiu.number(18, 4), upiu.byte(30).into(), 0),
                // READ (16) of the prototype of HPB, which has an entry in the upper half of the address.
                0x88 if upiu.byte(17) & 1 != 0 => (upiu.number(22, 4), upiu.number(26, 4), 0),
                0x00..0x20 => {
                    let blocks = upiu.byte(20);
                    (upiu.number(17, 3) & 0x1F_FFFF, if blocks == 0 { 256 } else { blocks.into() }, 0)
                }
                0x20..0x60 => (upiu.number(18, 4), upiu.number(23, 2), upiu.byte(17)),
                0x80..0xA0 => (upiu.number(18, 8), upiu.number(26, 4), upiu.byte(17)),
                _ => (upiu.number(18, 4), upiu.number(22, 4), upiu.byte(17)),
            };
            if blocks == 0 {
                return Ok(Row::Other);
            }
            let op = Op { fua: op.kind == IoKind::Write && flags & 0x08 != 0, ..op };
            Ok(Row::Issue(make(op, lba, blocks)?, key))
        }
    }
}
