// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorded read streams of UBI: text in, records out, and their replay through a cache.
//!
//! A line is `op,peb,offset,len,lnum,what`: `r` a read that passed `ubi_eba_read_leb`, `R` another read of UBI
//! (headers, volume table, wear levelling), `w` a write, `e` an erase; `#` begins a comment.
//! `docs/formats/ubi-streams.md` has the details. This module opens no file: it takes any `BufRead` and a name for
//! messages.

mod error;
mod fit;
mod parse;
mod pressure;
mod replay;

pub use error::{Skips, StreamError};
pub use fit::{Misfit, Misfits};
pub use parse::{Limits, Stream, Summary, load};
pub use pressure::{Pressure, Step, parse_pressure};
pub use replay::{Outcome, Setup, Totals, run};

/// Operation of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Op {
    /// A read through `ubi_eba_read_leb`, which a cache may serve.
    Read,
    /// A read that does not pass it: headers, volume table, wear levelling.
    Other,
    /// A write.
    Write,
    /// An erase of the whole erase block.
    Erase,
}

/// One line of a stream, without the reader and the logical erase block: a cache below `ubi_eba_read_leb`, whose key
/// is erase block and page, knows neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Physical erase block.
    pub peb: u32,
    /// First byte in it.
    pub offset: u32,
    /// Length in bytes; at least 1, except for erases.
    pub bytes: u32,
    /// The operation.
    pub op: Op,
}

/// Sizes that a stream must fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bytes of a page: a power of two from 512 to 64 KiB.
    pub page_bytes: u32,
    /// Bytes of an erase block, a multiple of the page, if known.
    pub peb_bytes: Option<u32>,
}

impl Geometry {
    /// Checks the sizes.
    ///
    /// # Errors
    /// Their fault, in words.
    pub fn new(page_bytes: u32, peb_bytes: Option<u32>) -> Result<Geometry, String> {
        if !page_bytes.is_power_of_two() || !(512..=1 << 16).contains(&page_bytes) {
            return Err(format!("a page of {page_bytes} bytes: expected a power of two from 512 to 65536"));
        }
        match peb_bytes {
            Some(peb) if peb == 0 || !peb.is_multiple_of(page_bytes) => {
                Err(format!("an erase block of {peb} bytes: expected a multiple of the page, {page_bytes} bytes"))
            }
            _ => Ok(Geometry { page_bytes, peb_bytes }),
        }
    }
}
