// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binary traces of virtual disks as VMware's `vscsiStats` records them, versions 1 and 2 (`trace_v1_record_t` and
//! `trace_v2_record_t` in libCacheSim's traceReader/customizedReader/vscsi.h): little-endian records of 32 or 40 bytes
//! without a header. Times are microseconds, lengths bytes, addresses sectors of 512 bytes.

use super::super::error::{Reason, RowError};
use super::super::number::MICROS;
use super::binary::{Field, u16_at, u32_at, u64_at};
use super::{Amount, Context, NO_PROCESS, Row, request, scsi};

/// Records that must look valid before a trace is recognised by them.
const ENOUGH: usize = 8;

/// Fields of a record of version 1.
const ONE: &[Field] = &[
    Field::new("length", 4, 4),
    Field::new("command", 12, 2),
    Field::new("version", 14, 2),
    Field::new("block", 16, 8),
    Field::new("time", 24, 8),
];

/// Fields of version 2, which also has how long the command took, in an undocumented unit.
const TWO: &[Field] = &[
    Field::new("command", 0, 2),
    Field::new("version", 2, 2),
    Field::new("length", 8, 4),
    Field::new("block", 16, 8),
    Field::new("time", 24, 8),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Version {
    One,
    Two,
}

impl Version {
    pub(in super::super) fn record_bytes(self) -> usize {
        match self {
            Version::One => 32,
            Version::Two => 40,
        }
    }

    /// The fields of a record.
    pub(in super::super) fn fields(self) -> &'static [Field] {
        match self {
            Version::One => ONE,
            Version::Two => TWO,
        }
    }

    /// Command, length and version, by their places: what differs between versions.
    fn places(self) -> [usize; 3] {
        match self {
            Version::One => [12, 4, 14],
            Version::Two => [0, 8, 2],
        }
    }

    /// The version is in the upper byte of its field.
    fn is_in(self, record: &[u8]) -> bool {
        u16_at(record, self.places()[2]) >> 8 == if self == Version::One { 1 } else { 2 }
    }
}

/// The version of a trace whose format was given, from its first records.
pub(in super::super) fn version(head: &[u8]) -> Option<Version> {
    [Version::Two, Version::One].into_iter().find(|version| {
        let records = head.chunks_exact(version.record_bytes()).take(2);
        records.len() > 0 && records.into_iter().all(|record| version.is_in(record))
    })
}

/// The version of content whose format was not given: each of many records must have it and be a command.
pub(in super::super) fn recognise(head: &[u8]) -> Option<Version> {
    [Version::Two, Version::One].into_iter().find(|version| {
        let records = head.chunks_exact(version.record_bytes());
        let is_command = |record: &[u8]| u16_at(record, version.places()[0]) < 0x100;
        records.len() >= ENOUGH && records.into_iter().all(|record| version.is_in(record) && is_command(record))
    })
}

pub(in super::super) fn no_version() -> &'static str {
    "expected records of version 1 or 2: 0x01 as the upper byte of the version at byte 14 of each 32, or 0x02 at \
     byte 2 of each 40"
}

/// A record. Commands that move no data are passed over.
#[inline]
pub(in super::super) fn row(version: Version, record: &[u8], _: &mut Context) -> Result<Row, RowError> {
    let [command_at, length_at, version_at] = version.places();
    if !version.is_in(record) {
        let expected = "the version of the first record, in the upper byte (all have the same)";
        return Err(RowError::new(Reason::Syntax, "version", version_at, expected));
    }
    let command = u16_at(record, command_at);
    if command > 0xFF {
        return Err(RowError::new(Reason::Operation, "command", command_at, "a SCSI operation code of one byte"));
    }
    let Some(op) = scsi(command.into()) else { return Ok(Row::Other) };
    let Some(time) = u64_at(record, 24).checked_mul(MICROS) else {
        return Err(RowError::new(Reason::Range, "time", 24, "microseconds below 2^64 ns"));
    };
    let length = Amount::bytes(u32_at(record, length_at).into(), length_at);
    request(op, time, Amount::sectors(u64_at(record, 16), 16), length, NO_PROCESS).map(Row::Request)
}
