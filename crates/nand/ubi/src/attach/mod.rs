// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finding out what a device holds: by a fastmap if there is one, otherwise by reading the headers of every erase block;
//! then the volume table (Linux, drivers/mtd/ubi/attach.c, fastmap.c and vtbl.c). It only reads. What has to be erased or
//! written again is noted for whoever goes on with it.

mod compare;
mod fastmap;
mod scan;
mod table;

use crate::error::UbiError;
use crate::io::Io;
use crate::mtd::Mtd;
use crate::vtbl::Table;
use fastmap::Fault;
use scan::Scanner;
use std::collections::{BTreeMap, VecDeque};

/// The block of flash that holds a logical block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundLeb {
    /// Erase block.
    pub peb: u32,
    /// Its erase counter; the mean of all where it is not known.
    pub erase_counter: u32,
    /// Sequence number.
    pub sqnum: u64,
    /// Whether it is a copy whose data have a checksum.
    pub copy: bool,
    /// Whether flips or a damaged header ask for a move.
    pub scrub: bool,
}

/// The blocks of a volume that were found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundVolume {
    /// 1 for dynamic volumes, 2 for static ones.
    pub vol_type: u8,
    /// Logical blocks with data of a static volume.
    pub used_lebs: u32,
    /// Bytes at the end of a logical block that are not used.
    pub data_pad: u32,
    /// What to do with it if it is not known.
    pub compat: u8,
    /// By logical block.
    pub lebs: BTreeMap<u32, FoundLeb>,
    /// Bytes of data of the logical block with the highest number.
    pub last_data_bytes: u32,
}

impl FoundVolume {
    /// The highest logical block, 0 if there is none.
    pub fn highest_lnum(&self) -> u32 {
        self.lebs.keys().next_back().copied().unwrap_or(0)
    }
}

/// A block that is to be erased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToErase {
    /// Erase block.
    pub peb: u32,
    /// Its erase counter; the mean of all where it is not known.
    pub erase_counter: u32,
}

/// What a scan saw in an erase block that is not as UBI leaves it when nobody disturbs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Note {
    /// Erase block.
    pub peb: u32,
    /// What it is.
    pub kind: NoteKind,
}

/// Kinds of [`Note`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoteKind {
    /// The EC header is damaged, the VID header is good.
    BadEc {
        /// Volume in the VID header.
        volume: u32,
        /// Logical block in it.
        lnum: u32,
    },
    /// The EC header is damaged, there is no VID header.
    BadEcOnly,
    /// Both headers are damaged.
    BadHeaders,
    /// The VID header is damaged, the data area is empty or cannot be read.
    BadVidOnly,
    /// The VID header is damaged, and there are data.
    BadVid,
    /// A logical block that is also elsewhere, in a newer version.
    Older {
        /// Volume.
        volume: u32,
        /// Logical block.
        lnum: u32,
        /// Erase block of the newer version.
        newer: u32,
    },
    /// A newer version of a logical block, but its data were not written completely.
    Unfinished {
        /// Volume.
        volume: u32,
        /// Logical block.
        lnum: u32,
        /// Erase block of the older version, which is used.
        good: u32,
    },
}

/// How the blocks were found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Headers of every block.
    Scan,
    /// A fastmap whose superblock is in this block.
    Fastmap {
        /// Erase block of the superblock.
        anchor: u32,
    },
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// How.
    pub method: Method,
    /// Why the fastmap that is there was not used.
    pub fastmap_fault: Option<String>,
    /// Volumes by identifier, the layout volume among them.
    pub volumes: BTreeMap<u32, FoundVolume>,
    /// Erased blocks with a good EC header: block and erase counter.
    pub free: Vec<(u32, u32)>,
    /// Blocks to erase, in order.
    pub erase: VecDeque<ToErase>,
    /// Blocks that look damaged but may hold data of somebody: kept.
    pub corrupted: Vec<(u32, u32)>,
    /// Blocks of internal volumes that are not known but have to be preserved.
    pub alien: Vec<u32>,
    /// Blocks of the fastmap that was used.
    pub fastmap: Vec<(u32, u32)>,
    /// Blocks with the superblock of a fastmap, used or not, the oldest first.
    pub anchors: Vec<u32>,
    /// What a scan noticed, at most two for each block.
    pub notes: Vec<Note>,
    /// Blocks that are marked bad.
    pub bad: Vec<u32>,
    /// Blocks without any contents.
    pub empty_count: u32,
    /// Blocks whose two headers could not be read.
    pub maybe_bad_count: u32,
    /// Whether the device holds no UBI yet.
    pub is_empty: bool,
    /// Whether an internal volume asks for read-only use.
    pub read_only: bool,
    /// Number of the image; 0 if no block says.
    pub image_seq: u32,
    /// Highest sequence number.
    pub max_sqnum: u64,
    /// Least, mean and highest erase counter of those that are known.
    pub min_ec: u32,
    /// Mean erase counter.
    pub mean_ec: u32,
    /// Highest erase counter.
    pub max_ec: u32,
}

impl Found {
    fn new() -> Self {
        Found {
            method: Method::Scan,
            fastmap_fault: None,
            volumes: BTreeMap::new(),
            free: Vec::new(),
            erase: VecDeque::new(),
            corrupted: Vec::new(),
            alien: Vec::new(),
            fastmap: Vec::new(),
            anchors: Vec::new(),
            notes: Vec::new(),
            bad: Vec::new(),
            empty_count: 0,
            maybe_bad_count: 0,
            is_empty: false,
            read_only: false,
            image_seq: 0,
            max_sqnum: 0,
            min_ec: 0,
            mean_ec: 0,
            max_ec: 0,
        }
    }
}

/// The volume table, and which copy has to be written again (0 or 1; both on an empty device).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundTable {
    /// The records.
    pub table: Table,
    /// Copies that are missing, damaged or older.
    pub rewrite: [bool; 2],
    /// What is wrong with those that are damaged.
    pub damaged: [Option<String>; 2],
    /// Bytes behind the records, to the end of the page: 0xFF from ubinize, zeros from Linux. UBI compares them, too.
    pub padding: Vec<u8>,
}

/// How to attach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HowTo {
    /// Use a fastmap if there is one.
    pub fastmap: bool,
    /// An image for a larger device: accept a table whose volumes reserve more blocks than there are, and any number of
    /// damaged blocks.
    pub partial: bool,
}

/// Finds blocks and volume table.
pub(crate) fn attach<M: Mtd>(io: &mut Io<M>, how: HowTo) -> Result<(Found, FoundTable), UbiError> {
    let mut scanner = Scanner::new();
    let mut fault = None;
    let mut found = None;
    for peb in 0..io.pebs() {
        if peb == fastmap::FIRST_PEBS && how.fastmap && scanner.has_anchor() {
            break;
        }
        scanner.peb(io, peb)?;
    }
    if how.fastmap && scanner.has_anchor() {
        match fastmap::attach(io, &scanner) {
            Ok(by_fastmap) => found = Some(Found { anchors: scanner.anchors_by_age(), ..by_fastmap }),
            Err(Fault::Fatal(e)) => return Err(e),
            Err(Fault::Unusable(what)) => {
                fault = Some(what);
                scanner = Scanner::new();
                for peb in 0..io.pebs() {
                    scanner.peb(io, peb)?;
                }
            }
        }
    }
    let mut found = match found {
        Some(found) => found,
        None => scanner.finish(io, how.partial)?,
    };
    found.fastmap_fault = fault;
    let table = table::read(io, &mut found, how.partial)?;
    table::reconcile(io, &mut found, &table.table)?;
    Ok((found, table))
}
