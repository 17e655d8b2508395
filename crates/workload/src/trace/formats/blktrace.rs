// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binary records of the Linux block trace (`struct blk_io_trace`, include/uapi/linux/blktrace_api.h, version 7) in
//! either byte order: 48 bytes, then as many bytes of payload as the last field says.

use super::super::Event;
use super::super::error::{Reason, RowError};
use super::{Amount, Context, DeviceName, Found, Op, Row, choose};
use crate::IoKind;

/// Bytes of a record without its payload.
pub(in super::super) const RECORD_BYTES: usize = 48;
/// The upper three bytes are the magic number, the lowest is the version.
const MAGIC: u32 = 0x6561_7407;

// Categories, in the upper half of the action.
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const PASSTHROUGH: u32 = 1 << 25;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;
/// The lower half but the bit that says that a control group's number follows.
const ACT: u32 = 0xFEFF;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Order {
    Little,
    Big,
}

/// What the first four bytes of a record say.
pub(in super::super) enum Magic {
    Known(Order),
    /// A record of another version.
    Version(u8),
    No,
}

pub(in super::super) fn magic(bytes: &[u8]) -> Magic {
    let Some(&four) = bytes.first_chunk::<4>() else { return Magic::No };
    for (value, order) in [(u32::from_le_bytes(four), Order::Little), (u32::from_be_bytes(four), Order::Big)] {
        match value {
            MAGIC => return Magic::Known(order),
            v if v >> 8 == MAGIC >> 8 => return Magic::Version(v as u8),
            _ => {}
        }
    }
    Magic::No
}

/// The first four bytes of a record in this byte order.
pub(in super::super) fn magic_bytes(order: Order) -> [u8; 4] {
    match order {
        Order::Little => MAGIC.to_le_bytes(),
        Order::Big => MAGIC.to_be_bytes(),
    }
}

/// The fields of a record that are used.
pub(in super::super) struct Record {
    pub(in super::super) time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    /// Bytes of payload after the record.
    pub(in super::super) payload: usize,
}

impl Record {
    #[inline]
    pub(in super::super) fn parse(b: &[u8; RECORD_BYTES], order: Order) -> Record {
        let u32_at = |at: usize| {
            let four = b[at..].first_chunk().expect("inside the record");
            if order == Order::Little { u32::from_le_bytes(*four) } else { u32::from_be_bytes(*four) }
        };
        let u64_at = |at: usize| {
            let (a, b) = (u64::from(u32_at(at)), u64::from(u32_at(at + 4)));
            if order == Order::Little { b << 32 | a } else { a << 32 | b }
        };
        let two = [b[46], b[47]];
        let payload = if order == Order::Little { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) };
        Record {
            time: u64_at(8),
            sector: u64_at(16),
            bytes: u32_at(24),
            action: u32_at(28),
            pid: u32_at(32),
            device: u32_at(36),
            payload: usize::from(payload),
        }
    }

    /// Which event this is, if it is one of a request.
    #[inline]
    pub(in super::super) fn event(&self) -> Option<Event> {
        if self.action & (NOTIFY | PASSTHROUGH) != 0 {
            return None;
        }
        match self.action & ACT {
            1 => Some(Event::Queue),
            7 => Some(Event::Issue),
            8 => Some(Event::Complete),
            _ => None,
        }
    }

    /// The row that this record is. `name` is scratch space for the device's name.
    #[inline]
    pub(in super::super) fn row(&self, cx: &mut Context, name: &mut DeviceName) -> Result<Row, RowError> {
        let Some(event) = self.event() else { return Ok(Row::Other) };
        let kind = match self.action {
            a if a & DISCARD != 0 => Some(IoKind::Trim),
            a if a & WRITE != 0 => Some(IoKind::Write),
            a if a & FLUSH != 0 => Some(IoKind::Flush),
            // Linux sets READ for everything but writes, also for commands that move no data.
            a if a & READ != 0 && self.bytes > 0 => Some(IoKind::Read),
            _ => None,
        };
        let write = kind == Some(IoKind::Write);
        let (fua, preflush) = (write && self.action & FUA != 0, write && self.action & FLUSH != 0);
        let op = kind.map(|kind| Op { kind, fua, preflush });
        let found = Found {
            op,
            time: self.time,
            offset: Amount::sectors(self.sector, 0),
            size: Amount::bytes(u64::from(self.bytes), 0),
            process: self.pid,
            device: (name.of(self.device.into(), |number| format!("{},{}", number >> 20, number & 0xF_FFFF)), 0),
            key: self.sector,
        };
        choose(cx, event, found)
    }
}

pub(in super::super) fn bad_magic() -> RowError {
    RowError::new(Reason::Syntax, "", 0, "a record that begins with the magic number 0x65617407")
}
