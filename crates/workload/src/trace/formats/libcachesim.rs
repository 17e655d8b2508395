// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binary traces of libCacheSim: `oracleGeneral` (traceReader/customizedReader/oracle/oracleGeneralBin.h), which is
//! nothing but records, and `lcs` (traceReader/customizedReader/lcs.h), which has a header. Both have objects, not
//! addresses; in traces of block devices the number of an object is its address, in a unit that the format does not
//! name. Numbers are little-endian, times whole seconds.

use super::super::error::{Reason, RowError};
use super::super::number::SECONDS;
use super::binary::{Field, u32_at, u64_at};
use super::{Amount, Context, DeviceName, NO_PROCESS, Op, Row, request};
use crate::IoKind;

/// Bytes of a record of `oracleGeneral`, and of the first version of `lcs`.
pub(in super::super) const ORACLE_BYTES: usize = 24;
pub(in super::super) const HEADER_BYTES: usize = 8192;
/// Begins and ends that header.
const MAGIC: u64 = 0x1234_5678_9ABC_DEF0;

pub(in super::super) const ORACLE: &[Field] = &[
    Field::new("time", 0, 4),
    Field::new("object", 4, 8),
    Field::new("size", 12, 4),
    Field::new("next access", 16, 8),
];

/// Fields of version 2.
const V2: &[Field] = &[
    Field::new("time", 0, 4),
    Field::new("object", 4, 8),
    Field::new("size", 12, 4),
    Field::new("operation", 16, 1),
    Field::new("tenant", 17, 3),
    Field::new("next access", 20, 8),
];

/// Fields of version 3; later ones have more behind them.
const V3: &[Field] = &[
    Field::new("time", 0, 4),
    Field::new("object", 4, 8),
    Field::new("size", 12, 8),
    Field::new("operation", 20, 1),
    Field::new("tenant", 21, 3),
    Field::new("next access", 28, 8),
];

/// What the header of `lcs` says.
#[derive(Clone, Copy)]
pub(in super::super) struct Lcs {
    /// 1 to 8.
    pub(in super::super) version: u8,
    /// Records that follow.
    pub(in super::super) requests: u64,
}

impl Lcs {
    /// Reads the header.
    ///
    /// # Errors
    /// The byte at fault and what would be right.
    pub(in super::super) fn header(bytes: &[u8]) -> Result<Lcs, (u64, String)> {
        if !is_lcs(bytes) {
            return Err((0, format!("expected the magic number {MAGIC:#x} of lcs, in little-endian order")));
        }
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err((0, format!("expected a header of {HEADER_BYTES} bytes, found {}", bytes.len())));
        };
        // The first layout had a text in the place of the version: `<IQIq` and so on.
        if header[8] == b'<' {
            let message = "the header of 1024 bytes that lcs had first, with a format string; convert the trace anew \
                           with libCacheSim's traceConv, or give its records to another format";
            return Err((8, format!("this is {message}")));
        }
        let version = u64_at(header, 8);
        let Some(version) = u8::try_from(version).ok().filter(|version| (1..=8).contains(version)) else {
            return Err((8, format!("lcs of version {version}; versions 1 to 8 can be read")));
        };
        let (end, at) = (u64_at(header, HEADER_BYTES - 8), HEADER_BYTES as u64 - 8);
        if end != MAGIC {
            return Err((at, format!("expected {MAGIC:#x} at the end of the header of lcs, found {end:#x}")));
        }
        let requests = u64_at(header, 24);
        if requests > i64::MAX as u64 {
            return Err((24, format!("expected a number of requests that is not negative, found {}", requests as i64)));
        }
        Ok(Lcs { version, requests })
    }

    pub(in super::super) fn record_bytes(self) -> usize {
        match self.version {
            0 | 1 => ORACLE_BYTES,
            2 => 28,
            3 => 36,
            // 1, 2, 4, 8 or 16 features of 4 bytes.
            more => 36 + (4 << (more - 4)),
        }
    }

    pub(in super::super) fn fields(self) -> &'static [Field] {
        match self.version {
            0 | 1 => ORACLE,
            2 => V2,
            _ => V3,
        }
    }
}

pub(in super::super) fn is_lcs(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|eight| u64::from_le_bytes(*eight) == MAGIC)
}

/// The fields of every record: time and object, size at byte 12, and the next access at `next_at`.
#[inline]
fn access(record: &[u8], op: Op, size: u64, next_at: usize, cx: &Context) -> Result<super::Raw, RowError> {
    let next = u64_at(record, next_at) as i64;
    if next < -1 {
        let expected = "-1, or the number of a later request";
        return Err(RowError::new(Reason::Number, "next access", next_at, expected));
    }
    let object = Amount { value: u64_at(record, 4), unit: cx.object_bytes, at: 4 };
    let size = Amount::bytes(size, 12);
    request(op, u64::from(u32_at(record, 0)) * SECONDS, object, size, NO_PROCESS)
}

/// A record of `oracleGeneral`, and of version 1 of `lcs`. It has no operation: each access counts as a read.
#[inline]
pub(in super::super) fn oracle(record: &[u8], cx: &mut Context) -> Result<Row, RowError> {
    access(record, Op::plain(IoKind::Read), u32_at(record, 12).into(), 16, cx).map(Row::Request)
}

/// A record of a later version.
#[inline]
pub(in super::super) fn later(
    version: u8,
    record: &[u8],
    cx: &mut Context,
    name: &mut DeviceName,
) -> Result<Row, RowError> {
    let (op_at, size, next_at) = match version {
        2 => (16, u32_at(record, 12).into(), 20),
        _ => (20, u64_at(record, 12), 28),
    };
    let word = u32_at(record, op_at);
    // `req_op_e` in include/libCacheSim/enum.h. Converters without operations write 0, which counts as in version 1.
    let kind = match word & 0xFF {
        0 | 1 | 2 | 12 => IoKind::Read,
        3 | 4 | 6 | 13 | 14 => IoKind::Write,
        9 => IoKind::Trim,
        _ => {
            let expected = "0 (none), 1, 2 or 12 (get, read), 3, 4, 6, 13 or 14 (set, write), or 9 (delete)";
            return Err(RowError::new(Reason::Operation, "operation", op_at, expected));
        }
    };
    let raw = access(record, Op::plain(kind), size, next_at, cx)?;
    let tenant = name.of(u64::from(word >> 8), |tenant| tenant.to_string());
    Ok(if cx.gate.admits(tenant, op_at + 1)? { Row::Request(raw) } else { Row::OtherDevice })
}
