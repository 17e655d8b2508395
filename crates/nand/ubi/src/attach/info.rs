// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of an attach.

use crate::error::UbiError;
use crate::vtbl::Table;
use std::collections::{BTreeMap, VecDeque};

/// The block of flash that holds a logical block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundLeb {
    /// Erase block.
    pub peb: u32,
    /// Its erase counter; the mean of all if it is unknown.
    pub erase_counter: u32,
    /// Sequence number.
    pub sqnum: u64,
    /// Whether it is a copy whose data has a checksum.
    pub copy: bool,
    /// Whether flips or a damaged header require a move.
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
    /// How to handle the volume if it is unknown.
    pub compat: u8,
    /// By logical block.
    pub lebs: BTreeMap<u32, FoundLeb>,
    /// Bytes of data of the logical block with the highest number.
    pub last_data_bytes: u32,
}

impl FoundVolume {
    /// The highest logical block, 0 if there is none.
    pub(crate) fn highest_lnum(&self) -> u32 {
        self.lebs.keys().next_back().copied().unwrap_or(0)
    }
}

/// A block that is to be erased.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToErase {
    /// Erase block.
    pub peb: u32,
    /// Its erase counter; the mean of all if it is unknown.
    pub erase_counter: u32,
}

/// A state of an erase block, found by a scan, that UBI does not leave behind in normal operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Note {
    /// Erase block.
    pub peb: u32,
    /// The state.
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
    /// The VID header is damaged, and there is data.
    BadVid,
    /// A logical block with a newer version in another erase block.
    Older {
        /// Volume.
        volume: u32,
        /// Logical block.
        lnum: u32,
        /// Erase block of the newer version.
        newer: u32,
    },
    /// A newer version of a logical block whose data is incomplete.
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// Headers of every block.
    #[default]
    Scan,
    /// A fastmap whose superblock is in this block.
    Fastmap {
        /// Erase block of the superblock.
        anchor: u32,
    },
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AttachInfo {
    /// The method.
    pub method: Method,
    /// Why an existing fastmap was not used.
    pub fastmap_fault: Option<String>,
    /// Volumes by identifier, the layout volume among them.
    pub volumes: BTreeMap<u32, FoundVolume>,
    /// Erased blocks with a good EC header: block and erase counter.
    pub free: Vec<(u32, u32)>,
    /// Blocks to erase, in order.
    pub erase: VecDeque<ToErase>,
    /// Blocks that look damaged but may hold data; they are kept.
    pub corrupted: Vec<(u32, u32)>,
    /// Blocks of unknown internal volumes that must be preserved.
    pub alien: Vec<u32>,
    /// Blocks of the fastmap that was used.
    pub fastmap: Vec<(u32, u32)>,
    /// Blocks with the superblock of a fastmap, used or not, the oldest first.
    pub anchors: Vec<u32>,
    /// States noted by a scan, at most two for each block.
    pub notes: Vec<Note>,
    /// Blocks that are marked bad.
    pub bad: Vec<u32>,
    /// Blocks without any contents.
    pub empty_count: u32,
    /// Blocks with two unreadable headers.
    pub maybe_bad_count: u32,
    /// Whether the device holds no UBI yet.
    pub is_empty: bool,
    /// Whether an internal volume requires read-only use.
    pub read_only: bool,
    /// Number of the image; 0 if no block has one.
    pub image_seq: u32,
    /// Highest sequence number.
    pub max_sqnum: u64,
    /// Least known erase counter.
    pub min_ec: u32,
    /// Mean erase counter.
    pub mean_ec: u32,
    /// Highest erase counter.
    pub max_ec: u32,
}

impl AttachInfo {
    /// Counts a device's `pebs` erase blocks by state.
    pub fn counts(&self, pebs: u32) -> PebCounts {
        let mut counts = PebCounts::default();
        // Each block counts once, even if damage lists it twice.
        let mut seen = vec![false; pebs as usize];
        let mut count = |peb: u32, n: &mut u32| *n += u32::from(!std::mem::replace(&mut seen[peb as usize], true));
        self.alien.iter().for_each(|&peb| count(peb, &mut counts.kept));
        self.fastmap.iter().for_each(|&(peb, _)| count(peb, &mut counts.to_erase));
        self.corrupted.iter().for_each(|&(peb, _)| count(peb, &mut counts.kept));
        for leb in self.volumes.values().flat_map(|v| v.lebs.values()) {
            count(leb.peb, if leb.scrub { &mut counts.to_scrub } else { &mut counts.used });
        }
        self.free.iter().for_each(|&(peb, _)| count(peb, &mut counts.free));
        self.erase.iter().for_each(|work| count(work.peb, &mut counts.to_erase));
        counts.bad = pebs - counts.used - counts.to_scrub - counts.free - counts.to_erase - counts.kept;
        counts
    }
}

/// Erase blocks by state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PebCounts {
    /// They hold logical blocks.
    pub used: u32,
    /// They hold logical blocks that should be moved because of bit flips or a damaged header.
    pub to_scrub: u32,
    /// Erased, with an EC header.
    pub free: u32,
    /// To be erased.
    pub to_erase: u32,
    /// Damaged, or of an internal volume that must be preserved.
    pub kept: u32,
    /// Marked bad.
    pub bad: u32,
}

/// The volume table, and which copies have to be rewritten (0 or 1; both on an empty device).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundTable {
    /// The records.
    pub table: Table,
    /// Copies that are missing, damaged or older.
    pub rewrite: [bool; 2],
    /// The fault of each damaged copy.
    pub damaged: [Option<String>; 2],
    /// Bytes behind the records, to the end of the page: 0xFF from ubinize, zeros from Linux. UBI compares them too.
    pub padding: Vec<u8>,
}

/// An error at an offset of a block.
pub(super) fn at(peb: u32, offset: u32, what: String) -> UbiError {
    UbiError::Peb { peb, offset, what }
}
