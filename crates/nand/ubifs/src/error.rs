// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a volume, and where.

use crate::lebs::LebError;
use std::fmt;

readpath_kit::named! {
    /// Kinds of damage, each with a name that stays the same.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum DamageKind {
        /// A node's checksum, magic number, length or type is wrong; the kind of node is in the text.
        BadNode = "bad-node",
        /// Nodes are expected in a logical erase block that has no physical one.
        UnmappedLeb = "unmapped-leb",
        /// The superblock is unreadable or contradicts itself or the volume.
        BadSuperblock = "bad-superblock",
        /// Neither master copy, or only one of them, can be used.
        BadMaster = "bad-master",
        /// An index node is unreadable or has impossible contents.
        BadIndex = "bad-index",
        /// Keys are not in ascending order, or lie outside of what their parent says.
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
        /// A sum in the master is not what it adds up.
        WrongTotals = "wrong-totals",
        /// An index branch leads to another node than it says.
        WrongNode = "wrong-node",
        /// Two branches lead to overlapping bytes.
        OverlappingNodes = "overlapping-nodes",
        /// A directory entry or attribute entry leads to an inode that does not exist.
        DanglingEntry = "dangling-entry",
        /// A directory entry has another type than its inode.
        WrongEntryType = "wrong-entry-type",
        /// The number of links of an inode is not that of its entries.
        WrongLinkCount = "wrong-link-count",
        /// A directory's size or an inode's attribute counts are not those of its entries.
        WrongCount = "wrong-count",
        /// No entry leads to the inode.
        UnreachableInode = "unreachable-inode",
        /// Data or attribute entries whose inode is missing.
        MissingInode = "missing-inode",
        /// Data beyond the end of its file.
        DataBeyondSize = "data-beyond-size",
        /// Data that cannot be expanded, or to a wrong length.
        BadData = "bad-data",
        /// An inode with impossible contents.
        BadInode = "bad-inode",
        /// A directory entry with an impossible name or a hash that is not that of its name.
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
    /// The physical erase block behind it, where known.
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

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}: {detail}", .kind.name())]
pub struct Damage {
    /// What kind.
    pub kind: DamageKind,
    /// Where.
    pub place: Place,
    /// What was found and what would be right.
    pub detail: String,
}

/// Why an operation on a volume failed.
#[derive(Debug, thiserror::Error)]
pub enum UbifsError {
    /// Something on flash is wrong.
    #[error("{0}")]
    Damage(Damage),
    /// The volume uses something that this reader does not have.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A path or inode that is not there, or of another type.
    #[error("{path}: {problem}")]
    Path {
        /// What was asked for.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl UbifsError {
    pub(crate) fn path(path: &[u8], problem: &'static str) -> UbifsError {
        UbifsError::Path { path: readpath_ubi::printable(path), problem }
    }

    /// The damage, where it is one.
    pub fn damage(&self) -> Option<&Damage> {
        match self {
            UbifsError::Damage(damage) => Some(damage),
            _ => None,
        }
    }
}

/// A read that failed, with its place.
pub(crate) fn unreadable(place: Place, error: LebError) -> UbifsError {
    UbifsError::Damage(Damage { kind: DamageKind::Unreadable, place, detail: error.message })
}

/// What operations return.
pub type Result<T> = std::result::Result<T, UbifsError>;
