// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading of Perfetto's traces: packets, bundles in them and events in those, nested messages that are read in order;
//! only an event has to be in memory as a whole. Each bundle has the events of one processor, so their rows are sorted
//! before they enter the window.

use super::super::Format;
use super::super::error::{Place, Reason, TraceError};
use super::super::formats::perfetto::{self, EVENT, Head, LOST_EVENTS, MOST_EVENT, MOST_HEAD, NoHead, Value};
use super::super::formats::{Raw, Row};
use super::super::input::Stop;
use super::super::messages::stop_error;
use super::super::packets::{PACKET, varint};
use super::super::sorter::Sorter;
use super::{BATCH, Reader};
use readpath_kit::Ns;

/// What protobuf allows a message to have.
const MOST_PACKET: u64 = i32::MAX as u64;
/// Events that may be out of order for each request that may be.
const EVENTS: usize = 32;

/// The reader's position in a trace.
pub(super) struct Levels {
    /// Offset of the packet.
    packet_at: u64,
    /// Bytes left of the packet, of the bundle in it, and of a field that is passed over; each includes the next.
    packet: u64,
    bundle: u64,
    skip: u64,
    ended: bool,
    pub(super) sorter: Sorter,
}

impl Levels {
    pub(super) fn new(window: usize) -> Levels {
        let sorter = Sorter::new(window.saturating_mul(EVENTS));
        Levels { packet_at: 0, packet: 0, bundle: 0, skip: 0, ended: false, sorter }
    }
}

/// What stops the reading of a bundle before its end.
enum Trouble {
    /// The bundle continues in the next bytes.
    NeedsMore,
    /// A field is to be skipped, this many bytes of it.
    Skip(u64),
    /// Nothing more of the bundle can be read.
    Bundle(Reason, u64, String),
    /// An event cannot be read, or comes too late and then may move.
    Event(Reason, u64, String, Option<Row>),
    /// A request that does not lie on the device.
    Beyond(Row, u64),
}

impl Reader {
    /// Reads packets until about [`BATCH`] more requests are in the window.
    pub(super) fn read_packets(&mut self) -> Result<(), TraceError> {
        let target = self.window.len() + BATCH;
        while self.window.len() < target && !self.ended {
            match self.levels.sorter.next() {
                Some(Row::Request(raw)) => self.window.push(raw),
                Some(Row::Issue(raw, key)) => self.window.push_issued(raw, key),
                Some(Row::Complete { key, time }) => self.window.complete(key, time),
                Some(_) => {}
                None if self.levels.ended => self.ended = true,
                None if self.levels.skip > 0 => self.pass_field()?,
                None if self.levels.bundle > 0 => self.bundle()?,
                None if self.levels.packet > 0 => self.packet()?,
                None => self.next_packet()?,
            }
        }
        Ok(())
    }

    /// Passes bytes, on all levels.
    fn pass(&mut self, bytes: usize) {
        self.input.skip(bytes);
        let levels = &mut self.levels;
        for left in [&mut levels.packet, &mut levels.bundle, &mut levels.skip] {
            *left = left.saturating_sub(bytes as u64);
        }
    }

    /// The content ends with `left` bytes of the packet missing; `u64::MAX` if even its length is incomplete.
    fn no_more(&mut self, left: u64) -> Result<(), TraceError> {
        self.levels.ended = true;
        self.levels.sorter.finish();
        let offset = self.input.offset;
        if let Some(e) = stop_error(&self.file, Place::Byte(offset), &self.input.stop()) {
            return self.fault(e.reason, e.place, e.message);
        }
        debug_assert_eq!(self.input.stop(), Stop::End);
        let message = match left {
            0 => return Ok(()),
            u64::MAX => "the packet that begins here is cut off within its length".to_owned(),
            left => {
                let missing = left.saturating_sub(self.input.bytes().len() as u64);
                format!("the packet that begins here is cut off: {missing} of its bytes are missing")
            }
        };
        self.fault(Reason::Truncated, Place::Byte(self.levels.packet_at), message)
    }

    /// A fault of the trace itself, behind which no packet can be found.
    fn lost(&mut self, message: String) -> Result<(), TraceError> {
        self.levels.ended = true;
        self.levels.sorter.finish();
        self.fault(Reason::Syntax, Place::Byte(self.input.offset), message)
    }

    fn next_packet(&mut self) -> Result<(), TraceError> {
        let at = self.input.offset;
        let bytes = self.input.need(MOST_HEAD);
        let Some(&first) = bytes.first() else { return self.no_more(0) };
        if first != PACKET {
            let before = self.levels.packet_at;
            let message = format!(
                "expected {PACKET:#04x}, with which a packet begins, found {first:#04x}; either this is damaged, or \
                 the length of the packet at byte {before}"
            );
            return self.lost(message);
        }
        match varint(&bytes[1..]) {
            Ok(Some((length, n))) if length <= MOST_PACKET => {
                self.levels.packet_at = at;
                self.input.skip(1 + n);
                self.levels.packet = length;
                Ok(())
            }
            Ok(None) => {
                self.levels.packet_at = at;
                self.no_more(u64::MAX)
            }
            _ => {
                let found = perfetto::hex(&bytes[1..]);
                self.lost(format!("expected the length of a packet, at most {MOST_PACKET}, found {found}"))
            }
        }
    }

    /// A field of a packet.
    fn packet(&mut self) -> Result<(), TraceError> {
        let left = self.levels.packet;
        let bytes = self.input.need(MOST_HEAD);
        let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let head = match perfetto::head(bytes) {
            Ok(head) => head,
            Err(NoHead::Short) if (bytes.len() as u64) < left => return self.no_more(left),
            Err(NoHead::Short) => {
                let message = format!("expected a field that ends with its packet, found {}", perfetto::hex(bytes));
                return self.bad_packet(message);
            }
            Err(NoHead::Bad(expected)) => {
                let message = format!("expected {expected}, found {}", perfetto::hex(bytes));
                return self.bad_packet(message);
            }
        };
        let Head { field, value, bytes: n } = head;
        if !head.fits_packet() {
            let (right, wrong) = match value {
                Value::Number(_) => ("bytes (wire type 2)", "a number"),
                Value::Bytes(_) => ("a number (wire type 0)", "bytes"),
            };
            return self.bad_packet(format!("field {field} of a packet: expected {right}, found {wrong}"));
        }
        let after = left - n as u64;
        match value {
            Value::Bytes(length) if length > after => {
                let message = format!(
                    "field {field} of a packet: expected at most {after} bytes, which are left of the packet, found a \
                     length of {length}"
                );
                self.bad_packet(message)
            }
            Value::Bytes(_) if perfetto::COMPRESSED.contains(&field) => self.bad_packet(format!(
                "field {field} of a packet: expected compressed packets by themselves, found them beside other fields \
                 or in compressed packets"
            )),
            Value::Bytes(length) => {
                self.pass(n);
                match field {
                    perfetto::FTRACE_EVENTS => self.levels.bundle = length,
                    _ => self.levels.skip = length,
                }
                Ok(())
            }
            Value::Number(_) => {
                self.pass(n);
                Ok(())
            }
        }
    }

    /// A fault of a packet; a lenient reader skips the rest of the packet.
    fn bad_packet(&mut self, what: String) -> Result<(), TraceError> {
        let message = format!("{what}; the packet begins at byte {}", self.levels.packet_at);
        self.fault(Reason::Syntax, Place::Byte(self.input.offset), message)?;
        (self.levels.bundle, self.levels.skip) = (0, self.levels.packet);
        Ok(())
    }

    fn pass_field(&mut self) -> Result<(), TraceError> {
        let there = self.input.need(1).len() as u64;
        match there.min(self.levels.skip) {
            0 => self.no_more(self.levels.packet),
            n => {
                self.pass(n as usize);
                Ok(())
            }
        }
    }

    /// Fields of a bundle, as many as are there.
    fn bundle(&mut self) -> Result<(), TraceError> {
        let offset = self.input.offset;
        let (passed, trouble) = self.events();
        self.pass(passed);
        match trouble {
            None => Ok(()),
            Some(Trouble::NeedsMore) if passed == 0 => self.no_more(self.levels.packet),
            Some(Trouble::NeedsMore) => Ok(()),
            Some(Trouble::Skip(bytes)) => {
                self.levels.skip = bytes;
                Ok(())
            }
            Some(Trouble::Bundle(reason, at, what)) => {
                let message = format!("{what}; the packet begins at byte {}", self.levels.packet_at);
                self.fault(reason, Place::Byte(offset + at), message)?;
                self.levels.skip = self.levels.bundle;
                Ok(())
            }
            Some(Trouble::Beyond(row, at)) => self.unusual(row, Place::Byte(offset + at)),
            Some(Trouble::Event(reason, at, message, row)) => {
                self.fault(reason, Place::Byte(offset + at), message)?;
                let floor = self.levels.sorter.floor;
                match row {
                    Some(Row::Request(raw)) => self.levels.sorter.push(floor, Row::Request(Raw { time: floor, ..raw })),
                    Some(Row::Issue(raw, key)) => {
                        self.levels.sorter.push(floor, Row::Issue(Raw { time: floor, ..raw }, key));
                    }
                    _ => {}
                }
                Ok(())
            }
        }
    }

    /// Reads events from a bundle. Returns their bytes, and why it stopped before the end of the available bytes.
    fn events(&mut self) -> (usize, Option<Trouble>) {
        let left = usize::try_from(self.levels.bundle).unwrap_or(usize::MAX);
        let bytes = self.input.need(left.min(MOST_EVENT + MOST_HEAD));
        let bytes = &bytes[..bytes.len().min(left)];
        if bytes.is_empty() {
            return (0, Some(Trouble::NeedsMore));
        }
        let (of_ufs, within) = (self.format == Format::PerfettoUfs, self.within);
        let mut at = 0;
        while at < bytes.len() {
            let place = at as u64;
            let head = match perfetto::head(&bytes[at..]) {
                Ok(head) => head,
                Err(NoHead::Short) if bytes.len() < left => return (at, Some(Trouble::NeedsMore)),
                Err(NoHead::Short) => {
                    let found = perfetto::hex(&bytes[at..]);
                    let message = format!("expected a field that ends with its bundle, found {found}");
                    return (at, Some(Trouble::Bundle(Reason::Syntax, place, message)));
                }
                Err(NoHead::Bad(expected)) => {
                    let message = format!("expected {expected}, found {}", perfetto::hex(&bytes[at..]));
                    return (at, Some(Trouble::Bundle(Reason::Syntax, place, message)));
                }
            };
            let from = at + head.bytes;
            let length = match (head.field, head.value) {
                (LOST_EVENTS, Value::Number(lost)) => {
                    self.summary.lost_events += u64::from(lost != 0);
                    0
                }
                (EVENT, Value::Number(_)) | (perfetto::CPU | LOST_EVENTS, Value::Bytes(_)) => {
                    let message = format!(
                        "field {} of a bundle: expected a number for CPU (1) and lost events (3), and bytes for an \
                         event (2), found {}",
                        head.field,
                        perfetto::hex(&bytes[at..])
                    );
                    return (at, Some(Trouble::Bundle(Reason::Syntax, place, message)));
                }
                (_, Value::Number(_)) => 0,
                (_, Value::Bytes(length)) => usize::try_from(length).unwrap_or(usize::MAX),
            };
            if length > left - from {
                let message = format!(
                    "field {} of a bundle: expected at most {} bytes, which are left of the bundle, found a length of \
                     {length}",
                    head.field,
                    left - from
                );
                return (at, Some(Trouble::Bundle(Reason::Syntax, place, message)));
            }
            if head.field != EVENT || length > MOST_EVENT {
                self.summary.rows += u64::from(head.field == EVENT);
                self.summary.other_rows += u64::from(head.field == EVENT);
                at = from + length;
                if at > bytes.len() {
                    return (from, Some(Trouble::Skip(length as u64)));
                }
                continue;
            }
            let Some(event) = bytes.get(from..from + length) else { return (at, Some(Trouble::NeedsMore)) };
            at = from + length;
            self.summary.rows += 1;
            let (raw, row) = match perfetto::event(event, of_ufs, &mut self.cx, &mut self.device_name)
                .and_then(|row| self.cx.placed(row))
            {
                Ok(Row::Request(raw)) => (raw, Row::Request(raw)),
                Ok(Row::Issue(raw, key)) => (raw, Row::Issue(raw, key)),
                Ok(Row::Complete { key, time }) => {
                    // A completion that is too late cannot have its request in the window.
                    self.levels.sorter.push(time.max(self.levels.sorter.floor), Row::Complete { key, time });
                    self.summary.other_rows += 1;
                    continue;
                }
                Ok(Row::OtherDevice) => {
                    self.summary.other_device += 1;
                    continue;
                }
                Ok(_) => {
                    self.summary.other_rows += 1;
                    continue;
                }
                Err(e) if self.lenient && self.summary.skips.again(e.reason) => continue,
                Err(e) => {
                    let message = perfetto::message(&e, event);
                    return (at, Some(Trouble::Event(e.reason, (from + e.at) as u64, message, None)));
                }
            };
            if within.is_some_and(|within| !within.holds(raw.op.kind, raw.offset, raw.bytes)) {
                return (at, Some(Trouble::Beyond(row, place)));
            }
            let sorter = &mut self.levels.sorter;
            if raw.time < sorter.floor {
                let message = format!(
                    "this event is {} earlier than one that is more than {} requests and completions before it; let \
                     Perfetto write more often (drain_period_ms)",
                    Ns(sorter.floor - raw.time),
                    sorter.capacity()
                );
                return (at, Some(Trouble::Event(Reason::Order, place, message, Some(row))));
            }
            sorter.push(raw.time, row);
        }
        (at, None)
    }
}
