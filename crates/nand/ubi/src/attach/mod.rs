// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attaches a device: by a fastmap if there is one, otherwise by reading the headers of every erase block; then reads
//! the volume table (Linux, drivers/mtd/ubi/attach.c, fastmap.c and vtbl.c). It only reads, and notes which blocks
//! have to be erased or rewritten.

mod compare;
mod fastmap;
mod info;
mod scan;
mod table;

use crate::error::UbiError;
use crate::io::Io;
use crate::mtd::Mtd;
use fastmap::Fault;
use scan::Scanner;

pub use info::{AttachInfo, FoundLeb, FoundTable, FoundVolume, Method, Note, NoteKind, PebCounts, ToErase};

/// Options of an attach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The image belongs to a larger device: accept a table whose volumes reserve more blocks than there are, and any
    /// number of damaged blocks.
    pub partial: bool,
    /// Offset of the VID header, if not UBI's default.
    pub vid_offset: Option<u32>,
    /// Use a fastmap if there is one.
    pub fastmap: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { partial: false, vid_offset: None, fastmap: true }
    }
}

impl Options {
    /// For an image, which may be a part of a device.
    pub fn image() -> Self {
        Options { partial: true, ..Options::default() }
    }
}

/// Finds blocks and volume table.
pub(crate) fn attach<M: Mtd>(io: &mut Io<M>, options: &Options) -> Result<(AttachInfo, FoundTable), UbiError> {
    let mut scanner = Scanner::default();
    // Whether a fastmap begins where one is looked for.
    let by_fastmap =
        |scanner: &Scanner| options.fastmap && scanner.anchors.iter().any(|&(peb, _)| peb < fastmap::FIRST_PEBS);
    for peb in 0..io.pebs() {
        if peb == fastmap::FIRST_PEBS && by_fastmap(&scanner) {
            break;
        }
        scanner.peb(io, peb)?;
    }
    let (mut found, mut fault) = (None, None);
    if by_fastmap(&scanner) {
        match fastmap::attach(io, &scanner) {
            Ok(by_fastmap) => found = Some(AttachInfo { anchors: scanner.anchors_by_age(), ..by_fastmap }),
            Err(Fault::Fatal(e)) => return Err(e),
            Err(Fault::Unusable(what)) => {
                fault = Some(what);
                scanner = Scanner::default();
                for peb in 0..io.pebs() {
                    scanner.peb(io, peb)?;
                }
            }
        }
    }
    let mut found = match found {
        Some(found) => found,
        None => scanner.finish(io, options.partial)?,
    };
    found.fastmap_fault = fault;
    let table = table::read(io, &mut found, options.partial)?;
    table::reconcile(io, &mut found, &table.table)?;
    Ok((found, table))
}
