// SPDX-License-Identifier: MIT OR Apache-2.0
//! The formats, one module for each family, and what they share: a row, the operation words of Linux and SCSI, and the
//! gate that tells devices apart. A format turns one row into one [`Row`]; it knows neither files nor other rows.
//! [`super::Format`] and the table of formats stand in `table.rs`.

pub(super) mod binary;
pub(super) mod blkparse;
pub(super) mod blktrace;
pub(super) mod columns;
pub(super) mod csv;
pub(super) mod fio;
pub(super) mod ftrace;
pub(super) mod libcachesim;
pub(super) mod perfetto;
pub(super) mod trace_io;
pub(super) mod vscsi;

use super::error::{Reason, RowError};
use super::{Devices, Event, Request, SECTOR_BYTES, TraceUnit};
use crate::IoKind;
use readpath_kit::Ns;

/// A request with its time as recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    pub(super) time: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// `u64::MAX` for unknown.
    pub(super) latency: u64,
    /// `u32::MAX` for unknown.
    pub(super) process: u32,
    pub(super) op: Op,
}

pub(super) const NO_LATENCY: u64 = u64::MAX;
pub(super) const NO_PROCESS: u32 = u32::MAX;

impl Raw {
    /// The request, counted from `base`.
    #[inline]
    pub(super) fn request(&self, base: u64, latency: u64) -> Request {
        Request {
            time: Ns(self.time - base),
            offset: self.offset,
            bytes: self.bytes,
            latency: (latency != NO_LATENCY).then_some(Ns(latency)),
            process: (self.process != NO_PROCESS).then_some(self.process),
            kind: self.op.kind,
            fua: self.op.fua,
            preflush: self.op.preflush,
        }
    }
}

/// What one row is.
pub(super) enum Row {
    Request(Raw),
    /// A request whose completion may follow under this key.
    Issue(Raw, u64),
    /// The requests in [`Context::several`], with one completion.
    Several {
        key: u64,
    },
    /// The completion of a request.
    Complete {
        key: u64,
        time: u64,
    },
    /// An event that is no request, or a request at a moment that does not count.
    Other,
    /// A request to a device that was not asked for.
    OtherDevice,
    /// The recorder lost this many events.
    Lost(u64),
    /// The rows end here; what follows is a summary.
    End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Op {
    pub(super) kind: IoKind,
    pub(super) fua: bool,
    pub(super) preflush: bool,
}

impl Op {
    pub(super) const fn plain(kind: IoKind) -> Op {
        Op { kind, fua: false, preflush: false }
    }
}

/// What formats need besides the row.
pub(super) struct Context {
    pub(super) gate: Gate,
    /// Never `Auto`.
    pub(super) event: Event,
    /// The event was chosen by looking at the beginning.
    pub(super) guessed: bool,
    pub(super) ufs_block_bytes: u64,
    /// Bytes by which the numbers of objects count.
    pub(super) object_bytes: u64,
    pub(super) columns: Option<columns::Resolved>,
    /// Sum of the waits of a fio log without times.
    pub(super) clock_ns: u64,
    /// What [`super::Summary::other_layer`] will be.
    pub(super) other_layer: u64,
    /// Tag, first block and blocks of HPB READs that ftrace announced, at most one for each tag.
    pub(super) hpb_reads: Vec<(u64, u64, u64)>,
    /// See [`Row::Several`].
    pub(super) several: Vec<Raw>,
}

impl Context {
    pub(super) fn new(gate: Gate, event: Event) -> Context {
        Context {
            gate,
            event,
            guessed: false,
            ufs_block_bytes: 4096,
            object_bytes: 1,
            columns: None,
            clock_ns: 0,
            other_layer: 0,
            hpb_reads: Vec::new(),
            several: Vec::new(),
        }
    }
}

impl Context {
    /// The row with its addresses among those of all units, if devices of the trace are on units of their own.
    #[inline(always)]
    pub(super) fn placed(&mut self, row: Row) -> Result<Row, RowError> {
        match self.gate {
            Gate::Units(..) => self.placed_on_unit(row),
            _ => Ok(row),
        }
    }

    fn placed_on_unit(&mut self, row: Row) -> Result<Row, RowError> {
        Ok(match row {
            Row::Request(raw) => Row::Request(self.gate.place(raw)?),
            Row::Issue(raw, key) => Row::Issue(self.gate.place(raw)?, key),
            Row::Several { key } => {
                let placed = self.several.iter().map(|raw| self.gate.place(*raw)).collect::<Result<Vec<_>, _>>()?;
                self.several = placed;
                Row::Several { key }
            }
            other => other,
        })
    }
}

/// What an operation word should be, for messages.
pub(super) const RWBS: &str = "an operation such as R, W, WS, RA, D or FN";

/// The operation letters of Linux (`blk_fill_rwbs` in kernel/trace/blktrace.c): `F` in front for a flush before the
/// request, then one of R, W, D, F, N (none) or Z (zones), then F for force unit access, and letters that do not matter
/// here. `Ok(None)` is an operation that moves no data.
#[inline]
pub(super) fn rwbs(word: &[u8]) -> Option<Option<Op>> {
    let (preflush, rest) = match word {
        [b'R'] => return Some(Some(Op::plain(IoKind::Read))),
        [b'W'] => return Some(Some(Op::plain(IoKind::Write))),
        [b'F', b'R' | b'W' | b'D' | b'F' | b'N', ..] => (true, &word[1..]),
        _ => (false, word),
    };
    let (first, flags) = rest.split_first()?;
    if flags.len() > 7 || !flags.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    let fua = flags.contains(&b'F');
    let op =
        |kind| Some(Some(Op { kind, fua: fua && kind == IoKind::Write, preflush: preflush && kind == IoKind::Write }));
    match first {
        b'R' => op(IoKind::Read),
        b'W' => op(IoKind::Write),
        b'D' | b'E' => op(IoKind::Trim),
        b'F' => op(IoKind::Flush),
        b'N' if preflush => op(IoKind::Flush),
        b'N' | b'Z' => Some(None),
        _ => None,
    }
}

/// An operation in words or Linux letters.
#[inline]
pub(super) fn op_word(word: &[u8]) -> Option<Option<Op>> {
    if let Some(op) = rwbs(word) {
        return Some(op);
    }
    let is = |names: &[&str]| names.iter().any(|n| word.eq_ignore_ascii_case(n.as_bytes()));
    let kind = if is(&["read", "r"]) {
        IoKind::Read
    } else if is(&["write", "w"]) {
        IoKind::Write
    } else if is(&["trim", "discard", "unmap", "d"]) {
        IoKind::Trim
    } else if is(&["flush", "sync", "f"]) {
        IoKind::Flush
    } else {
        return None;
    };
    Some(Some(Op::plain(kind)))
}

/// What a SCSI operation code does (SBC-4; F8h is HPB READ of JESD220-3). `None` if it moves no user data.
#[inline]
pub(super) fn scsi(code: u64) -> Option<Op> {
    let kind = match code {
        0x28 | 0x88 | 0x08 | 0xA8 | 0xF8 => IoKind::Read,
        0x2A | 0x8A | 0x0A | 0xAA | 0x2E | 0x8E | 0xAE | 0x41 | 0x93 => IoKind::Write,
        0x42 => IoKind::Trim,
        0x35 | 0x91 => IoKind::Flush,
        _ => return None,
    };
    Some(Op::plain(kind))
}

/// A number of units with its place in the row.
#[derive(Clone, Copy)]
pub(super) struct Amount {
    pub(super) value: u64,
    pub(super) unit: u64,
    pub(super) at: usize,
}

impl Amount {
    pub(super) fn bytes(value: u64, at: usize) -> Amount {
        Amount { value, unit: 1, at }
    }

    pub(super) fn sectors(value: u64, at: usize) -> Amount {
        Amount { value, unit: SECTOR_BYTES, at }
    }

    #[inline]
    fn total(self, field: &'static str) -> Result<u64, RowError> {
        self.value
            .checked_mul(self.unit)
            .ok_or_else(|| RowError::new(Reason::Range, field, self.at, "less than 2^64 bytes"))
    }
}

/// Makes a request of its parts; a write of nothing with a flush before it is a flush.
#[inline]
pub(super) fn request(op: Op, time: u64, offset: Amount, size: Amount, process: u32) -> Result<Raw, RowError> {
    let flush = Raw { time, offset: 0, bytes: 0, latency: NO_LATENCY, process, op: Op::plain(IoKind::Flush) };
    if op.kind == IoKind::Flush || (op.preflush && size.value == 0) {
        return Ok(flush);
    }
    let bytes = size.total("size")?;
    if bytes == 0 {
        return Err(RowError::new(Reason::ZeroSize, "size", size.at, "at least 1 byte"));
    }
    if op.kind != IoKind::Trim && bytes > u64::from(u32::MAX) {
        return Err(RowError::new(Reason::Range, "size", size.at, "less than 4 GiB for a read or write"));
    }
    let offset_bytes = offset.total("offset")?;
    if offset_bytes.checked_add(bytes).is_none() {
        return Err(RowError::new(Reason::Range, "offset", offset.at, "an end below 2^64 bytes"));
    }
    Ok(Raw { offset: offset_bytes, bytes, op, ..flush })
}

pub(super) enum Gate {
    Single(Option<Vec<u8>>),
    Named(Vec<u8>),
    Merge,
    /// Devices, which of them was admitted last, and for each whether it ever was.
    Units(Vec<TraceUnit>, usize, Vec<bool>),
}

impl Gate {
    pub(super) fn new(devices: &Devices) -> Gate {
        match devices {
            Devices::Single => Gate::Single(None),
            Devices::Named(name) => Gate::Named(name.as_bytes().to_vec()),
            Devices::Merge => Gate::Merge,
            Devices::Units(units) => Gate::Units(units.clone(), 0, vec![false; units.len()]),
        }
    }

    /// A request of the row that was read last, with its address among those of all units.
    #[inline]
    pub(super) fn place(&self, raw: Raw) -> Result<Raw, RowError> {
        let Gate::Units(units, last, _) = self else { return Ok(raw) };
        let Some(unit) = units.get(*last) else { return Ok(raw) };
        if raw.op.kind == IoKind::Flush {
            return Ok(raw);
        }
        if raw.offset.saturating_add(raw.bytes) > unit.bytes {
            let expected = "a request that ends within its logical unit, which is smaller";
            return Err(RowError::new(Reason::Beyond, "", 0, expected));
        }
        Ok(Raw { offset: unit.first_byte + raw.offset, ..raw })
    }

    /// Whether requests to the device `name`, which stands at `at`, are wanted.
    #[inline]
    pub(super) fn admits(&mut self, name: &[u8], at: usize) -> Result<bool, RowError> {
        match self {
            Gate::Single(Some(first)) if first == name => Ok(true),
            Gate::Single(first @ None) => {
                *first = Some(name.to_vec());
                Ok(true)
            }
            Gate::Single(Some(_)) => Err(RowError::new(
                Reason::Device,
                "",
                at,
                "the device of the rows before (choose one device by its name, or merge all)",
            )),
            Gate::Named(wanted) => Ok(wanted == name),
            Gate::Merge => Ok(true),
            Gate::Units(units, last, seen) => {
                let found = units.iter().position(|unit| unit.name.as_bytes() == name);
                if let Some(unit) = found {
                    (*last, seen[unit]) = (unit, true);
                }
                Ok(found.is_some())
            }
        }
    }

    /// Whether events of the device `name` can concern admitted requests.
    #[inline]
    pub(super) fn concerns(&self, name: &[u8]) -> bool {
        match self {
            Gate::Single(Some(one)) | Gate::Named(one) => one == name,
            Gate::Single(None) | Gate::Merge => true,
            Gate::Units(units, ..) => units.iter().any(|unit| unit.name.as_bytes() == name),
        }
    }
}

/// The name of a device that the format has as a number, nearly always that of the record before.
#[derive(Default)]
pub(super) struct DeviceName {
    number: Option<u64>,
    text: Vec<u8>,
}

impl DeviceName {
    #[inline]
    pub(super) fn of(&mut self, number: u64, name: impl FnOnce(u64) -> String) -> &[u8] {
        if self.number != Some(number) {
            self.number = Some(number);
            self.text = name(number).into_bytes();
        }
        &self.text
    }
}

/// An event in the life of a request.
pub(super) struct Found<'a> {
    /// The operation; `None` if it moves no data.
    pub(super) op: Option<Op>,
    pub(super) time: u64,
    pub(super) offset: Amount,
    pub(super) size: Amount,
    pub(super) process: u32,
    /// Name, and its offset in the row.
    pub(super) device: (&'a [u8], usize),
    /// Identifies its completion.
    pub(super) key: u64,
}

/// The row of an event, given that `cx.event` is the kind that counts.
#[inline]
pub(super) fn choose(cx: &mut Context, event: Event, found: Found) -> Result<Row, RowError> {
    let Some(op) = found.op else { return Ok(Row::Other) };
    let (name, at) = found.device;
    if event != cx.event {
        if event == Event::Complete && cx.event == Event::Issue {
            return Ok(Row::Complete { key: found.key, time: found.time });
        }
        if event == Event::Issue && cx.guessed {
            return Err(RowError::syntax("no issue (D) event, as in the first 256 KiB (choose the event)"));
        }
        return Ok(Row::Other);
    }
    let raw = request(op, found.time, found.offset, found.size, found.process)?;
    Ok(match cx.gate.admits(name, at)? {
        false => Row::OtherDevice,
        true if event == Event::Issue => Row::Issue(raw, found.key),
        true => Row::Request(raw),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_operation_letters() {
        let op = |kind, fua, preflush| Some(Some(Op { kind, fua, preflush }));
        for (word, expected) in [
            ("R", op(IoKind::Read, false, false)),
            ("RA", op(IoKind::Read, false, false)),
            ("RSM", op(IoKind::Read, false, false)),
            ("W", op(IoKind::Write, false, false)),
            ("WS", op(IoKind::Write, false, false)),
            ("WFS", op(IoKind::Write, true, false)),
            ("FWFSM", op(IoKind::Write, true, true)),
            ("FWS", op(IoKind::Write, false, true)),
            ("D", op(IoKind::Trim, false, false)),
            ("DS", op(IoKind::Trim, false, false)),
            ("DE", op(IoKind::Trim, false, false)),
            ("E", op(IoKind::Trim, false, false)),
            ("F", op(IoKind::Flush, false, false)),
            ("FF", op(IoKind::Flush, false, false)),
            ("FS", op(IoKind::Flush, false, false)),
            ("FN", op(IoKind::Flush, false, false)),
            ("N", Some(None)),
            ("ZR", Some(None)),
            ("", None),
            ("X", None),
            ("w", None),
            ("Read", None),
            ("W1", None),
        ] {
            assert_eq!(rwbs(word.as_bytes()), expected, "{word}");
        }
        assert_eq!(op_word(b"Read"), op(IoKind::Read, false, false));
        assert_eq!(op_word(b"unmap"), op(IoKind::Trim, false, false));
        assert_eq!(op_word(b"erase"), None);
    }

    #[test]
    fn a_read_or_write_is_shorter_than_4_gib_and_a_trim_need_not_be() {
        let amount = |value| Amount { value, unit: 1, at: 0 };
        for (kind, bytes, is_taken) in [
            (IoKind::Write, u64::from(u32::MAX), true),
            (IoKind::Read, 1 << 32, false),
            (IoKind::Trim, 1 << 32, true),
            (IoKind::Read, 0, false),
        ] {
            let taken = request(Op::plain(kind), 5, amount(4096), amount(bytes), 7);
            assert_eq!(taken.ok().map(|raw| raw.bytes), is_taken.then_some(bytes), "{kind:?} {bytes}");
        }
    }
}
