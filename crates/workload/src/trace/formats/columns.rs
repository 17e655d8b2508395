// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables whose columns the user describes.

use super::super::error::{NOTHING_MORE, Reason, RowError, excerpt};
use super::super::number::{Cursor, FILETIME, MICROS, SECONDS, trailing_number};
use super::{Amount, Context, NO_PROCESS, Op, Row, SECTOR_BYTES, op_word, request};
use crate::IoKind;

/// Columns looked at.
const MAX_COLUMNS: usize = 64;
/// The first row of our own tables, which needs no description.
pub(in super::super) const OWN_HEADER: &str = "time_ns,op,offset_bytes,size_bytes,process,latency_ns";
const OWN_SPEC: &str = "time=time_ns:ns,op=op,offset=offset_bytes:bytes,size=size_bytes:bytes,process=process,\
                        latency=latency_ns:ns";

/// Units of times in nanoseconds, and of sizes in bytes.
const TIMES: [(&str, u64); 5] = [("s", SECONDS), ("ms", 1_000_000), ("us", MICROS), ("100ns", FILETIME), ("ns", 1)];
const SIZES: [(&str, u64); 4] = [("bytes", 1), ("sectors", SECTOR_BYTES), ("kib", 1024), ("blocks", 4096)];

/// What an operation should be when no words were given.
const KNOWN: &str = "a known operation";

/// A column, by its place or by its name in the header.
#[derive(Clone, PartialEq, Eq, Debug)]
enum At {
    Index(usize),
    Name(String),
}

/// The columns of a table and their units.
///
/// Written as `time=0:us,op=1,offset=2:bytes,size=3:sectors`: a column is a number from 0 or a name of the header.
///
/// | key | unit or form after the colon | must be there |
/// |---|---|---|
/// | `time` | `s`, `ms`, `us`, `100ns`, `ns` | yes |
/// | `op` | the words for read, write, trim and flush with slashes (`0/1`); without, letters and words such as R, WS,
/// Write | yes |
/// | `offset` | `bytes`, `sectors` (512 bytes), `kib`, `blocks` (4 KiB) | yes |
/// | `size` | the same | yes |
/// | `latency` | as `time` | no |
/// | `process` | – | no |
/// | `device` | – | no |
/// | `sep` | the character between columns, or `tab`, `space` (one or more), `semicolon`, `comma` (default) | no |
///
/// A first row whose time does not begin with a digit counts as header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Columns(Table<At>);

/// Which column has what, and its unit in nanoseconds or bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Table<C> {
    time: (C, u64),
    op: C,
    words: Vec<Vec<u8>>,
    offset: (C, u64),
    size: (C, u64),
    latency: Option<(C, u64)>,
    process: Option<C>,
    device: Option<C>,
    separator: u8,
}

/// [`Columns`] with every name resolved.
#[derive(Clone, Debug)]
pub(in super::super) struct Resolved {
    table: Table<usize>,
    needed: usize,
}

impl Resolved {
    /// The separator, if there is exactly one between two fields.
    pub(in super::super) fn separator(&self) -> Option<u8> {
        (self.table.separator != b' ').then_some(self.table.separator)
    }

    /// Whether the last field of a row is its time.
    pub(in super::super) fn ends_with_time(&self, row: &[u8]) -> bool {
        cut(row, self.table.separator, &mut [(0, 0); MAX_COLUMNS]) == self.table.time.0 + 1
    }

    /// What an operation should be, for messages: the words that were given, if any were.
    pub(in super::super) fn operations(&self) -> String {
        let kinds = ["read", "write", "trim", "flush"];
        let words: Vec<String> =
            self.table.words.iter().zip(kinds).map(|(word, kind)| format!("{} for {kind}", excerpt(word))).collect();
        if words.is_empty() { KNOWN.to_owned() } else { format!("{KNOWN} ({})", words.join(", ")) }
    }
}

impl Columns {
    /// Reads a description.
    ///
    /// # Errors
    /// Says which part is wrong and what would be right.
    pub fn parse(text: &str) -> Result<Columns, String> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("columns: \"{part}\" is not KEY=COLUMN, such as time=0:us"));
            };
            let (key, value) = (key.trim(), value.trim());
            const KEYS: [&str; 8] = ["time", "op", "offset", "size", "latency", "process", "device", "sep"];
            if !KEYS.contains(&key) {
                return Err(format!("columns: unknown key \"{key}\"; keys are {}", KEYS.join(", ")));
            }
            if found.iter().any(|(k, _)| *k == key) {
                return Err(format!("columns: \"{key}\" is given twice"));
            }
            found.push((key, value));
        }
        let get = |key: &str| found.iter().find(|(k, _)| *k == key).map(|(_, v)| *v);
        let need = |key: &str| get(key).ok_or_else(|| format!("columns: \"{key}\" is missing, such as {key}=0"));
        let (op, words) = split(need("op")?);
        let words: Vec<Vec<u8>> =
            words.map(|w| w.split('/').map(|w| w.as_bytes().to_vec()).collect()).unwrap_or_default();
        if words.len() == 1 || words.len() > 4 || words.iter().any(Vec::is_empty) {
            return Err("columns: op takes two to four words, READ/WRITE/TRIM/FLUSH, such as op=1:0/1".into());
        }
        let separator = match get("sep").unwrap_or("comma") {
            "comma" => b',',
            "tab" => b'\t',
            "space" => b' ',
            "semicolon" => b';',
            one if one.len() == 1 && !one.as_bytes()[0].is_ascii_alphanumeric() => one.as_bytes()[0],
            other => {
                return Err(format!("columns: sep is one character, comma, tab, space or semicolon, not \"{other}\""));
            }
        };
        let plain = |key: &str| get(key).map(|v| at(key, v)).transpose();
        Ok(Columns(Table {
            time: time("time", need("time")?)?,
            op: at("op", op)?,
            words,
            offset: amount("offset", need("offset")?)?,
            size: amount("size", need("size")?)?,
            latency: get("latency").map(|v| time("latency", v)).transpose()?,
            process: plain("process")?,
            device: plain("device")?,
            separator,
        }))
    }

    /// The columns of the tables that this crate writes.
    pub fn own() -> Columns {
        Columns::parse(OWN_SPEC).expect("our own description is well-formed")
    }

    pub(in super::super) fn names_devices(&self) -> bool {
        self.0.device.is_some()
    }

    /// Whether `first` is a header; needed when a column is given by name.
    pub(in super::super) fn resolve(&self, first: &[u8]) -> Result<(Resolved, bool), String> {
        let own = &self.0;
        let mut fields = [(0, 0); MAX_COLUMNS];
        let n = cut(first, own.separator, &mut fields);
        let field = |i: usize| &first[fields[i].0..fields[i].1];
        let place = |at: &At| match at {
            At::Index(i) => Ok(*i),
            At::Name(name) => (0..n).find(|&i| field(i) == name.as_bytes()).ok_or_else(|| {
                let names: Vec<String> = (0..n.min(12)).map(|i| field(i).escape_ascii().to_string()).collect();
                format!("there is no column \"{name}\" in the first row, which has {}", names.join(", "))
            }),
        };
        let with_unit = |(at, unit): &(At, u64)| place(at).map(|i| (i, *unit));
        let table = Table {
            time: with_unit(&own.time)?,
            op: place(&own.op)?,
            words: own.words.clone(),
            offset: with_unit(&own.offset)?,
            size: with_unit(&own.size)?,
            latency: own.latency.as_ref().map(with_unit).transpose()?,
            process: own.process.as_ref().map(place).transpose()?,
            device: own.device.as_ref().map(place).transpose()?,
            separator: own.separator,
        };
        let needed = [table.time.0, table.op, table.offset.0, table.size.0];
        let optional = [table.latency.map(|l| l.0), table.process, table.device];
        let last = needed.into_iter().chain(optional.into_iter().flatten()).max();
        let named = [&own.time.0, &own.op, &own.offset.0, &own.size.0].iter().any(|a| matches!(a, At::Name(_)));
        let time = if table.time.0 < n { field(table.time.0) } else { &[] };
        let header = named || !time.first().is_some_and(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'));
        Ok((Resolved { table, needed: last.map_or(0, |last| last + 1) }, header))
    }
}

fn split(value: &str) -> (&str, Option<&str>) {
    value.split_once(':').map_or((value, None), |(column, unit)| (column, Some(unit)))
}

fn at(key: &str, column: &str) -> Result<At, String> {
    if column.is_empty() {
        return Err(format!("columns: {key} needs a column, by its number from 0 or its name"));
    }
    match column.parse::<usize>() {
        Ok(i) if i < MAX_COLUMNS => Ok(At::Index(i)),
        Ok(_) => Err(format!("columns: {key}: columns 0 to {} can be used, not {column}", MAX_COLUMNS - 1)),
        Err(_) => Ok(At::Name(column.into())),
    }
}

fn time(key: &str, value: &str) -> Result<(At, u64), String> {
    let (column, unit) = split(value);
    match TIMES.iter().find(|(name, _)| Some(*name) == unit) {
        Some((_, ns)) => Ok((at(key, column)?, *ns)),
        None => Err(format!("columns: {key} needs a unit: {key}={column}:s, ms, us, 100ns or ns")),
    }
}

fn amount(key: &str, value: &str) -> Result<(At, u64), String> {
    let (column, unit) = split(value);
    match SIZES.iter().find(|(name, _)| Some(*name) == unit) {
        Some((_, bytes)) => Ok((at(key, column)?, *bytes)),
        None => Err(format!("columns: {key} needs a unit: {key}={column}:bytes, sectors, kib or blocks")),
    }
}

/// Begin and end of the value of each column, without blanks and quotes around it; how many.
#[inline]
fn cut(row: &[u8], separator: u8, fields: &mut [(usize, usize); MAX_COLUMNS]) -> usize {
    let (mut n, mut from) = (0, 0);
    if separator == b' ' {
        let mut c = Cursor::new(row);
        while n < MAX_COLUMNS {
            let word = c.word();
            if word.is_empty() {
                break;
            }
            fields[n] = (c.at - word.len(), c.at);
            n += 1;
        }
        return n;
    }
    if memchr::memchr(b'"', row).is_some() {
        return cut_quoted(row, separator, fields);
    }
    for to in memchr::memchr_iter(separator, row).chain([row.len()]) {
        if n == MAX_COLUMNS {
            break;
        }
        fields[n] = value(row, from, to);
        from = to + 1;
        n += 1;
    }
    n
}

/// The same of a row with quotes, between which a separator is a part of the value (RFC 4180).
#[cold]
fn cut_quoted(row: &[u8], separator: u8, fields: &mut [(usize, usize); MAX_COLUMNS]) -> usize {
    let (mut n, mut from, mut quoted) = (0, 0, false);
    for to in 0..=row.len() {
        let byte = row.get(to).copied();
        quoted ^= byte == Some(b'"');
        if n < MAX_COLUMNS && (byte.is_none() || (byte == Some(separator) && !quoted)) {
            fields[n] = value(row, from, to);
            from = to + 1;
            n += 1;
        }
    }
    n
}

/// The value between two separators: without blanks around it, and without quotes around it.
#[inline]
fn value(row: &[u8], mut from: usize, mut to: usize) -> (usize, usize) {
    let is_blank = |at: usize| matches!(row[at], b' ' | b'\t' | b'\r');
    while from < to && is_blank(from) {
        from += 1;
    }
    while from < to && is_blank(to - 1) {
        to -= 1;
    }
    match row[from..to] {
        [b'"', .., b'"'] => (from + 1, to - 1),
        _ => (from, to),
    }
}

#[inline]
pub(in super::super) fn row(row: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    let Some(Resolved { table: columns, needed }) = &cx.columns else {
        return Err(RowError::syntax("a description of the columns"));
    };
    let mut fields = [(0, 0); MAX_COLUMNS];
    if cut(row, columns.separator, &mut fields) < *needed {
        return Err(RowError::syntax("a row with a field for every column that is used"));
    }
    let field = |i: usize| &row[fields[i].0..fields[i].1];
    let whole = |c: &Cursor, to: usize, name| match c.at == to {
        true => Ok(()),
        false => Err(RowError::new(Reason::Number, name, c.at, NOTHING_MORE)),
    };
    let time_at = |(i, unit): (usize, u64), name| {
        let mut c = Cursor { row: &row[..fields[i].1], at: fields[i].0 };
        let ns = c.time(unit, name)?;
        whole(&c, fields[i].1, name).map(|()| ns)
    };
    let amount_at = |(i, unit): (usize, u64), name| {
        let mut c = Cursor { row: &row[..fields[i].1], at: fields[i].0 };
        let at = c.at;
        let value = if c.has_hex_prefix() { c.hex(name)? } else { c.u64(name)? };
        whole(&c, fields[i].1, name).map(|()| Amount { value, unit, at })
    };
    let time = time_at(columns.time, "time")?;
    let word = field(columns.op);
    let op = if columns.words.is_empty() {
        op_word(word)
    } else {
        let kinds = [IoKind::Read, IoKind::Write, IoKind::Trim, IoKind::Flush];
        columns.words.iter().position(|w| w == word).map(|i| Some(Op::plain(kinds[i])))
    };
    let Some(op) = op else {
        return Err(RowError::new(Reason::Operation, "op", fields[columns.op].0, KNOWN));
    };
    let Some(op) = op else { return Ok(Row::Other) };
    // A flush has no address; its fields may be blank.
    let flush = op.kind == IoKind::Flush;
    let (offset, size) = match flush {
        true => (Amount::bytes(0, 0), Amount::bytes(0, 0)),
        false => (amount_at(columns.offset, "offset")?, amount_at(columns.size, "size")?),
    };
    let process = columns.process.and_then(|i| trailing_number(field(i))).unwrap_or(NO_PROCESS);
    let mut raw = request(op, time, offset, size, process)?;
    if let Some(latency) = columns.latency.filter(|l| !field(l.0).is_empty()) {
        raw.latency = time_at(latency, "latency")?;
    }
    if let Some(device) = columns.device {
        let (name, at) = (field(device), fields[device].0);
        if !cx.gate.admits(name, at)? {
            return Ok(Row::OtherDevice);
        }
    }
    Ok(Row::Request(raw))
}
