// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that logs every operation on the device behind it, unchanged.

use super::{Geometry, Mtd, MtdError, ReadOutcome, Why};
use std::io::{self, Write};

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An erase.
    Erase,
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Kind.
    pub op: Op,
    /// Erase block.
    pub peb: u32,
    /// First byte in the block; 0 for an erase.
    pub offset: u32,
    /// Bytes; those of the block for an erase.
    pub len: u32,
    /// Purpose.
    pub why: Why,
}

impl Record {
    /// Whether the operation is on a logical block; such reads pass `ubi_eba_read_leb`.
    pub(crate) fn is_of_leb(&self) -> bool {
        matches!(self.why, Why::Leb { .. })
    }
}

/// A device whose operations are logged.
#[derive(Debug)]
pub struct Logged<M> {
    /// The device behind.
    pub inner: M,
    /// The operations so far, in order; take them with `std::mem::take` to bound memory.
    pub records: Vec<Record>,
    /// Whether operations are noted.
    pub recording: bool,
}

impl<M: Mtd> Logged<M> {
    /// Notes operations on `inner`.
    pub fn new(inner: M) -> Self {
        Logged { inner, records: Vec::new(), recording: true }
    }

    /// Notes an operation.
    pub fn note(&mut self, op: Op, peb: u32, offset: u32, len: u32, why: Why) {
        if self.recording {
            self.records.push(Record { op, peb, offset, len, why });
        }
    }
}

impl<M: Mtd> Mtd for Logged<M> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn read(&mut self, peb: u32, offset: u32, out: &mut [u8], why: Why) -> Result<ReadOutcome, MtdError> {
        let outcome = self.inner.read(peb, offset, out, why);
        self.note(Op::Read, peb, offset, out.len() as u32, why);
        outcome
    }

    fn is_bad(&mut self, peb: u32) -> bool {
        self.inner.is_bad(peb)
    }
}

/// Writes operations as lines `op,peb,offset,len,lnum,what`: `r` is a read of a logical block, `R` any other read,
/// `w` a write, `e` an erase. `name` converts the tag of a read of a logical block to the text of the last column.
pub fn write_stream(records: &[Record], out: &mut impl Write, name: impl Fn(u16) -> &'static str) -> io::Result<()> {
    for record in records {
        let letter = match record.op {
            Op::Read if record.is_of_leb() => 'r',
            Op::Read => 'R',
            Op::Write => 'w',
            Op::Erase => 'e',
        };
        let Record { peb, offset, len, why, .. } = record;
        write!(out, "{letter},{peb},{offset},{len},")?;
        match why {
            Why::Leb { lnum, tag, .. } => writeln!(out, "{lnum},{}", name(*tag))?,
            Why::EcHeader => writeln!(out, ",ec")?,
            Why::VidHeader => writeln!(out, ",vid")?,
            Why::VolumeTable => writeln!(out, ",volume_table")?,
            Why::Fastmap => writeln!(out, ",fastmap")?,
            Why::Check => writeln!(out, ",check")?,
            Why::Move => writeln!(out, ",move")?,
            Why::Recover => writeln!(out, ",recover")?,
            Why::Erase => writeln!(out, ",erase")?,
        }
    }
    Ok(())
}
