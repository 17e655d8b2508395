// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only access to flash: logical erase blocks that can be read, and a recorder of reads. This module knows
//! nothing of nodes.

readpath_kit::named! {
    /// Purpose of a read, under the names that traces of a real kernel use: node types for single nodes, otherwise the
    /// function of Linux's `fs/ubifs` that reads.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum ReadKind {
        /// The superblock node.
        Superblock = "sb",
        /// An index node.
        Index = "idx",
        /// An inode node.
        Inode = "ino",
        /// A data node.
        Data = "data",
        /// A directory entry node.
        Dentry = "dent",
        /// An extended attribute entry node.
        Xattr = "xent",
        /// An erase block from some offset to its end: masters, log, journal, orphans.
        Scan = "ubifs_start_scan",
        /// Whole master blocks, if the two copies differ.
        Master = "get_master_node",
        /// The place where the index or the properties tree continues, after an unclean stop.
        RecoverHead = "recover_head",
        /// The beginning of a journal block whose torn end will be cut off.
        RecoverLeb = "ubifs_recover_leb",
        /// A whole block whose inode gets its size corrected after an unclean stop.
        RecoverSize = "ubifs_recover_size",
        /// Four bytes at the start of a journal block, which show whether it was written.
        BudProbe = "is_last_bud",
        /// The table of the properties tree's own blocks.
        LptInit = "ubifs_lpt_init",
        /// An inner node of the properties tree.
        LptInner = "ubifs_read_nnode",
        /// A leaf of the properties tree.
        LptLeaf = "ubifs_get_pnode",
        /// Several data nodes at once.
        Bulk = "ubifs_tnc_bulk_read",
        /// A check of the whole volume; no kernel reads this.
        Check = "check",
    }
}

impl ReadKind {
    /// The name of the kind with this number, which is the tag in UBI's log; empty if there is none.
    pub fn name_of(number: u16) -> &'static str {
        ReadKind::ALL.get(usize::from(number)).map_or("", |kind| kind.name())
    }
}

/// A failed read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LebError {
    /// Description for users.
    pub message: String,
    /// The data was read, but with bit errors beyond the code's strength. UBIFS then relies on the checksums of its
    /// nodes.
    pub uncorrectable: bool,
}

/// Sizes of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LebSizes {
    /// Bytes in a logical erase block.
    pub leb_bytes: u32,
    /// Number of logical erase blocks.
    pub leb_count: u32,
    /// The smallest unit of writing, in bytes: a page of NAND.
    pub min_io_bytes: u32,
}

/// A volume as UBIFS sees it: logical erase blocks of equal size.
///
/// A block that is not mapped reads as bytes of 0xFF without touching flash.
pub trait Lebs {
    /// Sizes of the volume.
    fn sizes(&self) -> LebSizes;

    /// The physical erase block behind `lnum`; none if the block is not mapped.
    fn peb(&self, lnum: u32) -> Option<u32>;

    /// Reads `buf.len()` bytes at `offset` of block `lnum`; the range lies within the block.
    fn read(&mut self, lnum: u32, offset: u32, buf: &mut [u8], what: ReadKind) -> Result<(), LebError>;

    /// Whether block `lnum` has flash behind it.
    fn is_mapped(&self, lnum: u32) -> bool {
        self.peb(lnum).is_some()
    }
}

impl<L: Lebs> Lebs for &mut L {
    fn sizes(&self) -> LebSizes {
        (**self).sizes()
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
    /// Purpose.
    pub what: ReadKind,
}

/// Blocks that record their reads. Reads of unmapped blocks never reach flash and are not listed.
#[derive(Debug)]
pub struct Recorder<L> {
    inner: L,
    reads: Vec<FlashRead>,
}

impl<L: Lebs> Recorder<L> {
    /// Starts without reads.
    pub fn new(inner: L) -> Self {
        Recorder { inner, reads: Vec::new() }
    }

    /// Reads since the last call, in order.
    pub fn take(&mut self) -> Vec<FlashRead> {
        std::mem::take(&mut self.reads)
    }

    /// The blocks behind.
    pub fn inner(&mut self) -> &mut L {
        &mut self.inner
    }
}

impl<L: Lebs> Lebs for Recorder<L> {
    fn sizes(&self) -> LebSizes {
        self.inner.sizes()
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
