// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only way to flash: logical erase blocks that can be read, and a recorder of what was read.
//!
//! This module knows nothing of nodes.

use std::fmt;

/// Why a piece of flash is read, under the names that traces of a real kernel use: node types for single nodes,
/// otherwise the function of Linux's `fs/ubifs` that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReadKind {
    /// The superblock node.
    Superblock,
    /// An index node.
    Index,
    /// An inode node.
    Inode,
    /// A data node.
    Data,
    /// A directory entry node.
    Dentry,
    /// An extended attribute entry node.
    Xattr,
    /// All of an erase block from some offset on: masters, log, journal, orphans.
    Scan,
    /// Whole master blocks, when the two copies do not agree.
    Master,
    /// The place where the index or the properties tree will be continued, after an unclean stop.
    RecoverHead,
    /// The beginning of a journal block whose torn end is about to be cut off.
    RecoverLeb,
    /// A whole block whose inode gets its size corrected after an unclean stop.
    RecoverSize,
    /// Four bytes at the start of a journal block: is anything there?
    BudProbe,
    /// The table of the properties tree's own blocks.
    LptInit,
    /// An inner node of the properties tree.
    LptInner,
    /// A leaf of the properties tree.
    LptLeaf,
    /// Several data nodes at once.
    Bulk,
    /// A check of the whole volume; no kernel reads this.
    Check,
}

impl ReadKind {
    /// All kinds; the place in this list is the kind's number.
    pub const ALL: [ReadKind; 17] = [
        ReadKind::Superblock,
        ReadKind::Index,
        ReadKind::Inode,
        ReadKind::Data,
        ReadKind::Dentry,
        ReadKind::Xattr,
        ReadKind::Scan,
        ReadKind::Master,
        ReadKind::RecoverHead,
        ReadKind::RecoverLeb,
        ReadKind::RecoverSize,
        ReadKind::BudProbe,
        ReadKind::LptInit,
        ReadKind::LptInner,
        ReadKind::LptLeaf,
        ReadKind::Bulk,
        ReadKind::Check,
    ];

    /// The name in a trace.
    pub fn name(self) -> &'static str {
        match self {
            ReadKind::Superblock => "sb",
            ReadKind::Index => "idx",
            ReadKind::Inode => "ino",
            ReadKind::Data => "data",
            ReadKind::Dentry => "dent",
            ReadKind::Xattr => "xent",
            ReadKind::Scan => "ubifs_start_scan",
            ReadKind::Master => "get_master_node",
            ReadKind::RecoverHead => "recover_head",
            ReadKind::RecoverLeb => "ubifs_recover_leb",
            ReadKind::RecoverSize => "ubifs_recover_size",
            ReadKind::BudProbe => "is_last_bud",
            ReadKind::LptInit => "ubifs_lpt_init",
            ReadKind::LptInner => "ubifs_read_nnode",
            ReadKind::LptLeaf => "ubifs_get_pnode",
            ReadKind::Bulk => "ubifs_tnc_bulk_read",
            ReadKind::Check => "check",
        }
    }
}

/// A read that flash refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LebError {
    /// What happened, for a person.
    pub message: String,
    /// The data came, but with bit errors beyond what the code corrects. UBIFS then relies on the checksums of its
    /// nodes.
    pub uncorrectable: bool,
}

impl fmt::Display for LebError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LebError {}

/// A volume as UBIFS sees it: logical erase blocks of equal size.
///
/// A block that is not mapped reads as bytes of 0xFF without touching flash.
pub trait Lebs {
    /// Bytes in a logical erase block.
    fn leb_bytes(&self) -> u32;

    /// Number of logical erase blocks.
    fn leb_count(&self) -> u32;

    /// The smallest unit of writing, in bytes: a page of NAND.
    fn min_io_bytes(&self) -> u32;

    /// Whether block `lnum` has flash behind it.
    fn is_mapped(&self, lnum: u32) -> bool;

    /// The physical erase block behind `lnum`, where that is known.
    fn peb(&self, lnum: u32) -> Option<u32> {
        let _ = lnum;
        None
    }

    /// Reads `buf.len()` bytes at `offset` of block `lnum`; the range lies within the block.
    fn read(&mut self, lnum: u32, offset: u32, buf: &mut [u8], what: ReadKind) -> Result<(), LebError>;
}

impl<L: Lebs + ?Sized> Lebs for &mut L {
    fn leb_bytes(&self) -> u32 {
        (**self).leb_bytes()
    }
    fn leb_count(&self) -> u32 {
        (**self).leb_count()
    }
    fn min_io_bytes(&self) -> u32 {
        (**self).min_io_bytes()
    }
    fn is_mapped(&self, lnum: u32) -> bool {
        (**self).is_mapped(lnum)
    }
    fn peb(&self, lnum: u32) -> Option<u32> {
        (**self).peb(lnum)
    }
    fn read(&mut self, lnum: u32, offset: u32, buf: &mut [u8], what: ReadKind) -> Result<(), LebError> {
        (**self).read(lnum, offset, buf, what)
    }
}

/// One read that reached flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlashRead {
    /// Logical erase block.
    pub lnum: u32,
    /// First byte within the block.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
    /// What for.
    pub what: ReadKind,
}

/// Blocks that remember what was read from them. Reads of unmapped blocks never reach flash and are not listed.
#[derive(Debug)]
pub struct Recorder<L> {
    inner: L,
    reads: Vec<FlashRead>,
}

impl<L: Lebs> Recorder<L> {
    /// Nothing read yet.
    pub fn new(inner: L) -> Self {
        Recorder { inner, reads: Vec::new() }
    }

    /// What was read since the last call, in order.
    pub fn take(&mut self) -> Vec<FlashRead> {
        std::mem::take(&mut self.reads)
    }

    /// The blocks behind.
    pub fn inner(&mut self) -> &mut L {
        &mut self.inner
    }
}

impl<L: Lebs> Lebs for Recorder<L> {
    fn leb_bytes(&self) -> u32 {
        self.inner.leb_bytes()
    }
    fn leb_count(&self) -> u32 {
        self.inner.leb_count()
    }
    fn min_io_bytes(&self) -> u32 {
        self.inner.min_io_bytes()
    }
    fn is_mapped(&self, lnum: u32) -> bool {
        self.inner.is_mapped(lnum)
    }
    fn peb(&self, lnum: u32) -> Option<u32> {
        self.inner.peb(lnum)
    }
    fn read(&mut self, lnum: u32, offset: u32, buf: &mut [u8], what: ReadKind) -> Result<(), LebError> {
        if self.inner.is_mapped(lnum) {
            self.reads.push(FlashRead { lnum, offset, len: buf.len() as u32, what });
        }
        self.inner.read(lnum, offset, buf, what)
    }
}
