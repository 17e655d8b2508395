// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damage of a volume, and errors.

use crate::lebs::LebError;
use std::fmt;

readpath_kit::named! {
    /// Kinds of damage, each with a stable name.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum DamageKind {
        /// A node's checksum, magic number, length or type is wrong; the kind of node is in the text.
        BadNode = "bad-node",
        /// Nodes are expected in a logical erase block that has no physical one.
        UnmappedLeb = "unmapped-leb",
        /// The superblock is unreadable, inconsistent, or contradicts the volume.
        BadSuperblock = "bad-superblock",
        /// Neither master copy, or only one of them, can be used.
        BadMaster = "bad-master",
        /// An index node is unreadable or has impossible contents.
        BadIndex = "bad-index",
        /// Keys are not in ascending order, or outside their parent's range.
        WrongKeyOrder = "wrong-key-order",
        /// A log block is unreadable or has nodes that do not belong there.
        BadLog = "bad-log",
        /// A journal block is unreadable or has nodes that do not belong there.
        BadJournal = "bad-journal",
        /// The orphan area is unreadable.
        BadOrphans = "bad-orphans",
        /// A node of the tree of block properties is unreadable.
        BadProperties = "bad-properties",
        /// The free or used bytes of a block are not what the index implies.
        WrongProperties = "wrong-properties",
        /// A sum in the master differs from the actual sum.
        WrongTotals = "wrong-totals",
        /// An index branch leads to another node than it states.
        WrongNode = "wrong-node",
        /// Two branches lead to overlapping bytes.
        OverlappingNodes = "overlapping-nodes",
        /// A directory entry or attribute entry leads to an inode that does not exist.
        DanglingEntry = "dangling-entry",
        /// A directory entry has another type than its inode.
        WrongEntryType = "wrong-entry-type",
        /// The number of links of an inode differs from that of its entries.
        WrongLinkCount = "wrong-link-count",
        /// A directory's size or an inode's attribute counts differ from those of its entries.
        WrongCount = "wrong-count",
        /// No entry leads to the inode.
        UnreachableInode = "unreachable-inode",
        /// Data or attribute entries whose inode is missing.
        MissingInode = "missing-inode",
        /// Data beyond the end of its file.
        DataBeyondSize = "data-beyond-size",
        /// Data that cannot be decompressed, or has a wrong length.
        BadData = "bad-data",
        /// An inode with impossible contents.
        BadInode = "bad-inode",
        /// A directory entry with an invalid name or a wrong hash.
        BadEntry = "bad-entry",
        /// Unused space is not erased.
        NotErased = "not-erased",
        /// Flash could not be read.
        Unreadable = "unreadable",
    }
}

/// A place on flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Logical erase block.
    pub lnum: u32,
    /// Byte within it.
    pub offset: u32,
    /// The physical erase block behind it, if known.
    pub peb: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LEB {}", self.lnum)?;
        if let Some(peb) = self.peb {
            write!(f, " (PEB {peb})")?;
        }
        write!(f, " offset {}", self.offset)
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}: {detail}", .kind.name())]
pub struct Damage {
    /// Kind.
    pub kind: DamageKind,
    /// Place.
    pub place: Place,
    /// What was found, and what would be valid.
    pub detail: String,
}

/// Why an operation on a volume failed.
#[derive(Debug, thiserror::Error)]
pub enum UbifsError {
    /// Damage on flash.
    #[error("{0}")]
    Damage(Damage),
    /// The volume uses a feature that this reader does not support.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A path or inode that does not exist, or is of another type.
    #[error("{path}: {problem}")]
    Path {
        /// The requested path.
        path: String,
        /// The problem.
        problem: &'static str,
    },
}

impl UbifsError {
    pub(crate) fn path(path: &[u8], problem: &'static str) -> UbifsError {
        UbifsError::Path { path: readpath_ubi::printable(path), problem }
    }

    /// The damage, if the error is one.
    pub fn damage(&self) -> Option<&Damage> {
        match self {
            UbifsError::Damage(damage) => Some(damage),
            _ => None,
        }
    }
}

/// The error of a failed read, with its place.
pub(crate) fn unreadable(place: Place, error: LebError) -> UbifsError {
    UbifsError::Damage(Damage { kind: DamageKind::Unreadable, place, detail: error.message })
}

/// Result of an operation.
pub type Result<T> = std::result::Result<T, UbifsError>;
