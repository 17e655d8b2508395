// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events of Linux in traces of Perfetto (protos/perfetto/trace/trace_packet.proto, ftrace/ftrace_event_bundle.proto,
//! ftrace_event.proto, block.proto, ufs.proto): messages of protobuf. It has one event before it, and knows neither
//! packets nor bundles but to look into the beginning of a trace.

use super::super::Event;
use super::super::error::{Reason, RowError, excerpt};
use super::super::packets::{PACKET, varint};
use super::{Amount, Context, DeviceName, Found, NO_PROCESS, RWBS, Row, choose, rwbs, scsi};
use std::fmt::Write as _;

/// Fields of `TracePacket`.
pub(in super::super) const FTRACE_EVENTS: u32 = 1;
pub(in super::super) const COMPRESSED: [u32; 2] = [50, 133];
/// Number fields of a packet: uid, time, sequence, its flags, a packet was dropped, clock.
const NUMBERS: [u32; 6] = [3, 8, 10, 13, 42, 58];

/// Fields of `FtraceEventBundle`.
pub(in super::super) const CPU: u32 = 1;
pub(in super::super) const EVENT: u32 = 2;
pub(in super::super) const LOST_EVENTS: u32 = 3;

/// Fields of `FtraceEvent`.
const TIMESTAMP: u32 = 1;
const PID: u32 = 2;
const BLOCK_RQ_ISSUE: u32 = 45;
const BLOCK_BIO_QUEUE: u32 = 119;
const BLOCK_RQ_COMPLETE: u32 = 125;
const UFSHCD_COMMAND: u32 = 406;

/// Most bytes of an event that is looked at; others that are longer are passed over.
pub(in super::super) const MOST_EVENT: usize = 64 << 10;
/// Most bytes of a tag and a number or length behind it.
pub(in super::super) const MOST_HEAD: usize = 20;

/// Content of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Value {
    Number(u64),
    /// This many bytes follow.
    Bytes(u64),
}

/// The tag of a field and its number, or the length of what follows.
#[derive(Clone, Copy)]
pub(in super::super) struct Head {
    pub(in super::super) field: u32,
    pub(in super::super) value: Value,
    /// Bytes of all that.
    pub(in super::super) bytes: usize,
}

impl Head {
    /// Whether a field of a packet has what its definition says, as far as that is known here.
    pub(in super::super) fn fits_packet(self) -> bool {
        match self.value {
            Value::Number(_) => self.field != FTRACE_EVENTS && !COMPRESSED.contains(&self.field),
            Value::Bytes(_) => !NUMBERS.contains(&self.field),
        }
    }
}

/// Why there is no head.
pub(in super::super) enum NoHead {
    /// It does not end here.
    Short,
    /// It is not a head; says what would be right.
    Bad(&'static str),
}

/// Reads a head.
#[inline(always)]
pub(in super::super) fn head(bytes: &[u8]) -> Result<Head, NoHead> {
    // Most are short: a tag of a byte, and behind it a number of a byte or a few.
    if let [tag, number, rest @ ..] = bytes
        && *tag & 0x85 == 0
        && *tag >= 8
    {
        let field = u32::from(*tag >> 3);
        let value = |number| if *tag & 2 == 0 { Value::Number(number) } else { Value::Bytes(number) };
        if *number < 0x80 {
            return Ok(Head { field, value: value(u64::from(*number)), bytes: 2 });
        }
        let mut sum = u64::from(*number & 0x7F);
        for (i, byte) in rest.iter().enumerate().take(8) {
            sum |= u64::from(*byte & 0x7F) << (7 * (i + 1));
            if *byte < 0x80 {
                return Ok(Head { field, value: value(sum), bytes: 3 + i });
            }
        }
    }
    any_head(bytes)
}

#[inline(never)]
fn any_head(bytes: &[u8]) -> Result<Head, NoHead> {
    let number = |from: usize| match varint(bytes.get(from..).unwrap_or_default()) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err(NoHead::Short),
        Err(()) => Err(NoHead::Bad("a number below 2^64 in at most 10 bytes")),
    };
    let (tag, n) = number(0)?;
    let Some(field) = u32::try_from(tag >> 3).ok().filter(|field| (1..1 << 29).contains(field)) else {
        return Err(NoHead::Bad("the tag of a field, with a number from 1 to 536870911"));
    };
    let fixed = |width: usize| {
        let bytes = bytes.get(n..n + width).ok_or(NoHead::Short)?;
        let value = bytes.iter().rev().fold(0, |value: u64, &byte| value << 8 | u64::from(byte));
        Ok(Head { field, value: Value::Number(value), bytes: n + width })
    };
    match tag & 7 {
        0 => number(n).map(|(value, more)| Head { field, value: Value::Number(value), bytes: n + more }),
        1 => fixed(8),
        2 => number(n).map(|(length, more)| Head { field, value: Value::Bytes(length), bytes: n + more }),
        5 => fixed(4),
        _ => Err(NoHead::Bad("a tag of wire type 0, 1, 2 or 5")),
    }
}

/// A field of a complete message.
struct Field<'a> {
    number: u32,
    value: Value,
    /// Offset of its tag.
    at: usize,
    /// Its content, if that is bytes.
    bytes: &'a [u8],
    end: usize,
}

#[inline(always)]
fn field(message: &[u8], at: usize, end: usize) -> Result<Field<'_>, RowError> {
    let beyond = || RowError::new(Reason::Syntax, "", at, "a field that ends with its event or before");
    let head = head(&message[at..end]).map_err(|no| match no {
        NoHead::Short => beyond(),
        NoHead::Bad(expected) => RowError::new(Reason::Syntax, "", at, expected),
    })?;
    let from = at + head.bytes;
    let length = match head.value {
        Value::Number(_) => 0,
        Value::Bytes(n) => usize::try_from(n).ok().filter(|n| *n <= end - from).ok_or_else(beyond)?,
    };
    let bytes = &message[from..from + length];
    Ok(Field { number: head.field, value: head.value, at, bytes, end: from + length })
}

impl Field<'_> {
    #[inline]
    fn number(&self, name: &'static str) -> Result<u64, RowError> {
        match self.value {
            Value::Number(number) => Ok(number),
            Value::Bytes(_) => Err(RowError::new(Reason::Syntax, name, self.at, "a number (wire type 0)")),
        }
    }

    #[inline]
    fn text(&self, name: &'static str) -> Result<&[u8], RowError> {
        match self.value {
            Value::Bytes(_) => Ok(self.bytes),
            Value::Number(_) => Err(RowError::new(Reason::Syntax, name, self.at, "a text (wire type 2)")),
        }
    }
}

/// The message about an event, with the bytes found.
pub(in super::super) fn message(e: &RowError, event: &[u8]) -> String {
    let from = &event[e.at.min(event.len())..];
    let found = match head(from) {
        _ if from.is_empty() => "nothing".to_owned(),
        Ok(Head { value: Value::Number(n), .. }) if e.reason == Reason::Device => device_name(n),
        Ok(Head { value: Value::Number(n), .. }) if !e.field.is_empty() => n.to_string(),
        Ok(Head { value: Value::Bytes(n), bytes, .. }) if !e.field.is_empty() || e.reason == Reason::Device => {
            let to = bytes.saturating_add(usize::try_from(n).unwrap_or(usize::MAX)).min(from.len());
            format!("\"{}\"", excerpt(&from[bytes..to]))
        }
        _ => hex(from),
    };
    let name = if e.field.is_empty() { String::new() } else { format!("{}: ", e.field) };
    format!("{name}expected {}, found {found}", e.expected)
}

/// The first bytes, for messages.
pub(in super::super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes.iter().take(8) {
        let blank = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{blank}{byte:02x}");
    }
    if bytes.len() > 8 { text + " ..." } else { text }
}

/// `major,minor` of a device number as programs see it (`makedev`); Perfetto converts the kernel's number into that.
fn device_name(number: u64) -> String {
    let major = number >> 8 & 0xFFF | number >> 32 & 0xFFFF_F000;
    let minor = number & 0xFF | number >> 12 & 0xFFFF_FF00;
    format!("{major},{minor}")
}

/// An event of the UFS driver (`of_ufs`) or the block layer; what other events say is passed over.
#[inline]
pub(in super::super) fn event(
    event: &[u8],
    of_ufs: bool,
    cx: &mut Context,
    name: &mut DeviceName,
) -> Result<Row, RowError> {
    let (mut time, mut process, mut payload, mut at) = (None, NO_PROCESS, None, 0);
    while at < event.len() {
        let field = field(event, at, event.len())?;
        match field.number {
            TIMESTAMP => time = Some(field.number("timestamp")?),
            PID => process = u32::try_from(field.number("pid")?).unwrap_or(NO_PROCESS),
            BLOCK_RQ_ISSUE | BLOCK_BIO_QUEUE | BLOCK_RQ_COMPLETE | UFSHCD_COMMAND => {
                let Value::Bytes(_) = field.value else {
                    return Err(RowError::new(Reason::Syntax, "", at, "an event of the block layer or of UFS"));
                };
                payload = Some((field.number, field.end - field.bytes.len(), field.end));
            }
            _ => {}
        }
        at = field.end;
    }
    let Some((number, from, to)) = payload else { return Ok(Row::Other) };
    let Some(time) = time else {
        return Err(RowError::syntax("an event with a timestamp (field 1)"));
    };
    if (number == UFSHCD_COMMAND) != of_ufs {
        let is_issue = match number {
            UFSHCD_COMMAND => ufs_event(event, from, to)? == Some(Event::Issue),
            _ => number == BLOCK_RQ_ISSUE,
        };
        cx.other_layer += u64::from(is_issue);
        return Ok(Row::Other);
    }
    let here = Here { event, from, to, time, process };
    match number {
        BLOCK_RQ_ISSUE => block(&here, Event::Issue, cx, name),
        BLOCK_BIO_QUEUE => block(&here, Event::Queue, cx, name),
        BLOCK_RQ_COMPLETE => block(&here, Event::Complete, cx, name),
        _ => ufs(&here, cx),
    }
}

/// Place of an event's payload, and the other fields of the event.
struct Here<'a> {
    event: &'a [u8],
    from: usize,
    to: usize,
    time: u64,
    process: u32,
}

#[inline]
fn block(here: &Here, event: Event, cx: &mut Context, name: &mut DeviceName) -> Result<Row, RowError> {
    let mut at = here.from;
    let (mut device, mut bytes, mut word) = (None, 0, None);
    // A missing field counts as one at the end of the event.
    let nowhere = here.event.len();
    let (mut sector, mut sectors) = (Amount::sectors(0, nowhere), Amount::sectors(0, nowhere));
    let rwbs_field = if event == Event::Queue { 4 } else { 5 };
    while at < here.to {
        let field = field(here.event, at, here.to)?;
        match field.number {
            1 => device = Some((field.number("dev")?, at)),
            2 => sector = Amount::sectors(field.number("sector")?, at),
            3 => sectors = Amount::sectors(field.number("nr_sector")?, at),
            4 if event == Event::Issue => bytes = field.number("bytes")?,
            number if number == rwbs_field => {
                let op = rwbs(field.text("rwbs")?).ok_or_else(|| RowError::new(Reason::Operation, "rwbs", at, RWBS))?;
                word = Some(op);
            }
            _ => {}
        }
        at = field.end;
    }
    let Some(op) = word else {
        return Err(RowError::new(Reason::Syntax, "", here.from, "an event of the block layer with rwbs"));
    };
    // A command that passes through the block layer has bytes and no sectors.
    if sectors.value == 0 && bytes > 0 {
        return Ok(Row::Other);
    }
    let (number, device_at) = device.unwrap_or((0, here.from));
    // Several devices may have requests for one sector.
    let key = sector.value ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let device = (name.of(number, device_name), device_at);
    if event == Event::Complete && !cx.gate.concerns(device.0) {
        return Ok(Row::Other);
    }
    let Here { time, process, .. } = *here;
    choose(cx, event, Found { op, time, offset: sector, size: sectors, process, device, key })
}

/// Which moment a `ufshcd_command` is: newer kernels have a number (`ufs_trace_str_t` in include/ufs/ufs.h), those
/// before 5.11 a word.
#[inline]
fn ufs_event(event: &[u8], from: usize, to: usize) -> Result<Option<Event>, RowError> {
    let mut at = from;
    while at < to {
        let field = field(event, at, to)?;
        match field.number {
            6 => return Ok(moment(field.text("str")?)),
            10 => return Ok(numbered(field.number("str_t")?)),
            _ => at = field.end,
        }
    }
    Ok(None)
}

fn moment(word: &[u8]) -> Option<Event> {
    match word {
        b"send" | b"scsi_send" | b"send_req" => Some(Event::Issue),
        b"complete" | b"scsi_cmpl" | b"complete_rsp" => Some(Event::Complete),
        _ => None,
    }
}

fn numbered(number: u64) -> Option<Event> {
    match number {
        0 => Some(Event::Issue),
        1 => Some(Event::Complete),
        _ => None,
    }
}

/// An event of the UFS driver.
#[inline]
fn ufs(here: &Here, cx: &mut Context) -> Result<Row, RowError> {
    let mut at = here.from;
    let (mut event, mut device, mut code, mut tag) = (None, (&b""[..], at), None, 0);
    let nowhere = here.event.len();
    let (mut lba, mut size) = ((u64::MAX, nowhere), (0, nowhere));
    while at < here.to {
        let field = field(here.event, at, here.to)?;
        match field.number {
            1 => {
                field.text("dev_name")?;
                device = (field.bytes, at);
            }
            4 => lba = (field.number("lba")?, at),
            5 => code = Some(field.number("opcode")?),
            6 => event = moment(field.text("str")?),
            7 => tag = field.number("tag")?,
            // -1 where the kernel does not record it.
            8 => size = (u64::try_from(field.number("transfer_len")? as i64).unwrap_or(0), at),
            10 => event = numbered(field.number("str_t")?),
            _ => {}
        }
        at = field.end;
    }
    let Some(event) = event else { return Ok(Row::Other) };
    let Some(code) = code else {
        return Err(RowError::new(Reason::Syntax, "", here.from, "a ufshcd_command with an opcode (field 5)"));
    };
    let op = scsi(code);
    let has_address = op.is_some_and(|op| op.kind != crate::IoKind::Flush);
    if has_address && cx.event == event && (lba.0 == u64::MAX || size.0 == 0) {
        let at = if lba.0 == u64::MAX { lba.1 } else { size.1 };
        let expected = "an address and a size (this kernel does not record those of this command)";
        return Err(RowError::new(Reason::Address, "lba", at, expected));
    }
    if event == Event::Complete && !cx.gate.concerns(device.0) {
        return Ok(Row::Other);
    }
    let offset = Amount { value: lba.0, unit: cx.ufs_block_bytes, at: lba.1 };
    let size = Amount::bytes(size.0, size.1);
    let Here { time, process, .. } = *here;
    choose(cx, event, Found { op, time, offset, size, process, device, key: tag })
}

/// Fields of a message until one does not fit, or the message ends.
struct Fields<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    /// Number and bytes.
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let head = head(self.message.get(self.at..)?).ok()?;
        let from = self.at + head.bytes;
        let length = match head.value {
            Value::Number(_) => 0,
            Value::Bytes(n) => usize::try_from(n).unwrap_or(usize::MAX),
        };
        // For an incomplete message, the bytes that are present.
        let to = from.saturating_add(length).min(self.message.len());
        self.at = to;
        Some((head.field, &self.message[from..to]))
    }
}

fn fields(message: &[u8]) -> Fields<'_> {
    Fields { message, at: 0 }
}

/// Events in the beginning of a trace: number of the field, and payload.
fn events(head: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let bundles = fields(head).flat_map(|(_, packet)| fields(packet)).filter(|field| field.0 == FTRACE_EVENTS);
    let events = bundles.flat_map(|(_, bundle)| fields(bundle)).filter(|field| field.0 == EVENT);
    events.flat_map(|(_, event)| fields(event))
}

/// Commands of the UFS driver in the beginning of a trace, without their times.
pub(in super::super) fn ufs_commands<'a>(
    head: &'a [u8],
    cx: &'a mut Context,
) -> impl Iterator<Item = Result<Row, RowError>> + 'a {
    events(head)
        .filter(|(number, _)| *number == UFSHCD_COMMAND)
        .map(|(_, payload)| ufs(&Here { event: payload, from: 0, to: payload.len(), time: 0, process: NO_PROCESS }, cx))
}

/// Which events the beginning of a trace has.
#[derive(Default)]
pub(in super::super) struct Survey {
    ufs: Vec<Event>,
    block: Vec<Event>,
}

impl Survey {
    pub(in super::super) fn of(head: &[u8]) -> Survey {
        let mut survey = Survey::default();
        for (number, payload) in events(head) {
            let (list, found) = match number {
                BLOCK_RQ_ISSUE => (&mut survey.block, Some(Event::Issue)),
                BLOCK_BIO_QUEUE => (&mut survey.block, Some(Event::Queue)),
                BLOCK_RQ_COMPLETE => (&mut survey.block, Some(Event::Complete)),
                UFSHCD_COMMAND => (&mut survey.ufs, ufs_event(payload, 0, payload.len()).ok().flatten()),
                _ => continue,
            };
            if let Some(found) = found.filter(|found| !list.contains(found)) {
                list.push(found);
            }
        }
        survey
    }

    /// Each UFS command is a request of the block layer too; the one nearer to the device counts. Where the beginning
    /// has neither, it may come later.
    pub(in super::super) fn is_of_ufs(&self) -> bool {
        !self.ufs.is_empty() || self.block.is_empty()
    }

    /// Which event counts.
    pub(in super::super) fn event(&self, of_ufs: bool) -> Event {
        let list = if of_ufs { &self.ufs } else { &self.block };
        let first = [Event::Issue, Event::Queue, Event::Complete].into_iter().find(|event| list.contains(event));
        first.unwrap_or(Event::Issue)
    }
}

/// Whether content seems to be a trace: its first packet has fields that fit, one of which nearly all packets have.
pub(in super::super) fn is_trace(content: &[u8]) -> bool {
    if !may_be_trace(content) {
        return false;
    }
    let Ok(Some((length, n))) = varint(&content[1..]) else { return false };
    let packet = &content[1 + n..];
    let packet = &packet[..packet.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    let is_whole = packet.len() as u64 == length;
    let (mut at, mut is_usual) = (0, false);
    while at < packet.len() {
        let head = match head(&packet[at..]) {
            Ok(head) => head,
            Err(NoHead::Short) => return is_usual && !is_whole,
            Err(NoHead::Bad(_)) => return false,
        };
        if !head.fits_packet() {
            return false;
        }
        is_usual |= NUMBERS.contains(&head.field) || COMPRESSED.contains(&head.field) || head.field == FTRACE_EVENTS;
        at += head.bytes;
        if let Value::Bytes(n) = head.value {
            at = at.saturating_add(usize::try_from(n).unwrap_or(usize::MAX));
        }
    }
    is_usual && (at == packet.len() || !is_whole)
}

/// Whether content begins as a trace. A text that begins with a blank line does not: it lacks the bytes of tags and
/// small numbers.
pub(in super::super) fn may_be_trace(content: &[u8]) -> bool {
    let is_text = |byte: &u8| *byte >= 0x20 || byte.is_ascii_whitespace();
    content.first() == Some(&PACKET) && !content.iter().take(64).all(is_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_devices() {
        assert_eq!(device_name(0x0800), "8,0");
        assert_eq!(device_name(0x0810), "8,16");
        // makedev(259, 300): the minor number has a part above the major one.
        assert_eq!(device_name(0x0011_032C), "259,300");
    }

    #[test]
    fn what_is_no_trace() {
        assert!(is_trace(&[PACKET, 2, 0x18, 7, PACKET, 2, 0x18, 7]));
        assert!(is_trace(&[PACKET, 9, 0x0A, 200, 1, 1]), "the first packet is longer than what was read");
        assert!(is_trace(&[PACKET, 2, 0x18, 7, 7]), "the second is damaged");
        for content in [
            &b""[..],
            b"\n",
            b"\n\n\n\n",
            b"\n8,0    3        1     0.000010000   697  D   W 223490 + 8 [k]\n",
            b"time_ns,op\n",
            &[PACKET, 2, 0x1A, 0, PACKET, 0],
            &[PACKET, 2, 0x1C, 7],
            &[PACKET, 3, 0x18, 7, 0x0A],
            &[PACKET, 0],
        ] {
            assert!(!is_trace(content), "{content:x?}");
        }
    }
}
