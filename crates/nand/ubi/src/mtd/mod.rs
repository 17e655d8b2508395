// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw flash as UBI reads it: erase blocks that can be read at any offset. The calls and their outcomes are those of
//! Linux's MTD layer (include/linux/mtd/mtd.h: `mtd_read`, `mtd_block_isbad`). This module does not interpret bytes.

mod geometry;
mod image;
mod log;

pub use geometry::{Geometry, GeometryError};
pub(crate) use geometry::{MAX_PEB_BYTES, MAX_PEBS};
pub use image::{Image, ReadAt};
pub use log::{Logged, Op, Record, write_stream};

/// Outcome of a read, in order of severity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ReadOutcome {
    /// No bit had to be corrected.
    Clean,
    /// Bits were corrected, fewer in each ECC step than the threshold (Linux: success).
    Corrected,
    /// Corrected, but some step had at least as many flips as the threshold (Linux: EUCLEAN): move the data soon.
    BitFlips,
    /// Some step had more flips than the code corrects (Linux: EBADMSG). The buffer holds what was read, errors
    /// included.
    Uncorrectable,
}

/// An operation that failed, or was not completed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MtdError {
    /// The power is off, or was lost during this operation.
    #[error("PEB {peb}: the power was lost")]
    PowerOff {
        /// Erase block of the operation.
        peb: u32,
    },
    /// A program failed; the contents of its pages are undefined.
    #[error("PEB {peb} offset {offset}: programming failed")]
    WriteFailed {
        /// Erase block.
        peb: u32,
        /// First byte of the write, from the start of the erase block.
        offset: u32,
    },
    /// An erase failed; the contents of the block are undefined.
    #[error("PEB {peb}: erasing failed")]
    EraseFailed {
        /// Erase block.
        peb: u32,
    },
    /// Bytes have more flips than the code corrects, which the caller cannot accept.
    #[error("PEB {peb} offset {offset}: more bit errors than the code corrects")]
    Uncorrectable {
        /// Erase block.
        peb: u32,
        /// First byte of the read, from the start of the erase block.
        offset: u32,
    },
    /// The caller's mistake: outside of the block, not aligned to a sub-page, or over bytes that are not erased.
    #[error("PEB {peb} offset {offset} length {len}: {reason}")]
    Invalid {
        /// Erase block.
        peb: u32,
        /// First byte, from the start of the erase block.
        offset: u32,
        /// Bytes.
        len: u32,
        /// The fault, and what would be valid.
        reason: &'static str,
    },
    /// The file behind an image could not be read.
    #[error("PEB {peb} offset {offset}: {message}")]
    Io {
        /// Erase block.
        peb: u32,
        /// First byte, from the start of the erase block.
        offset: u32,
        /// The system's message.
        message: String,
    },
}

/// Purpose of an operation. It only shows in logs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// An erase counter header.
    EcHeader,
    /// A volume identifier header.
    VidHeader,
    /// A copy of the volume table.
    VolumeTable,
    /// A fastmap.
    Fastmap,
    /// Comparison of two versions of a logical block, or the check whether a block with a bad header is empty.
    Check,
    /// A move by the wear-levelling worker.
    Move,
    /// Rescue of data after a failed write.
    Recover,
    /// A block under torture, or its erasure.
    Erase,
    /// A logical block, for the user of the volume.
    Leb {
        /// Volume identifier.
        volume: u32,
        /// Logical block.
        lnum: u32,
        /// Set by the user of the volume; 0 if unset.
        tag: u16,
    },
}

/// Raw flash. Offsets count from the start of the erase block.
pub trait Mtd {
    /// Sizes.
    fn geometry(&self) -> &Geometry;

    /// Reads `out.len()` bytes; `out` is filled whatever the outcome.
    fn read(&mut self, peb: u32, offset: u32, out: &mut [u8], why: Why) -> Result<ReadOutcome, MtdError>;

    /// Whether the block is marked bad.
    fn is_bad(&mut self, peb: u32) -> bool;
}

impl<M: Mtd + ?Sized> Mtd for &mut M {
    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }

    fn read(&mut self, peb: u32, offset: u32, out: &mut [u8], why: Why) -> Result<ReadOutcome, MtdError> {
        (**self).read(peb, offset, out, why)
    }

    fn is_bad(&mut self, peb: u32) -> bool {
        (**self).is_bad(peb)
    }
}
