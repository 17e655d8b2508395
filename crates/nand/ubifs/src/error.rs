// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a volume, and where.

use crate::lebs::LebError;
use std::fmt;

/// Kinds of damage, each with a name that stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DamageKind {
    /// A node's checksum, magic number, length or type is wrong; the kind of node is in the text.
    BadNode,
    /// Nodes are expected in a logical erase block that has no physical one.
    UnmappedLeb,
    /// The superblock is unreadable or contradicts itself or the volume.
    BadSuperblock,
    /// Neither master copy, or only one of them, can be used.
    BadMaster,
    /// An index node is unreadable or has impossible contents.
    BadIndex,
    /// Keys are not in ascending order, or lie outside of what their parent says.
    WrongKeyOrder,
    /// A log block is unreadable or has nodes that do not belong there.
    BadLog,
    /// A journal block is unreadable or has nodes that do not belong there.
    BadJournal,
    /// The orphan area is unreadable.
    BadOrphans,
    /// A node of the tree of block properties is unreadable.
    BadProperties,
    /// The free or used bytes of a block are not what the index implies.
    WrongProperties,
    /// A sum in the master is not what it adds up.
    WrongTotals,
    /// An index branch leads to another node than it says.
    WrongNode,
    /// Two branches lead to overlapping bytes.
    OverlappingNodes,
    /// A directory entry or attribute entry leads to an inode that does not exist.
    DanglingEntry,
    /// A directory entry has another type than its inode.
    WrongEntryType,
    /// The number of links of an inode is not that of its entries.
    WrongLinkCount,
    /// A directory's size or an inode's attribute counts are not those of its entries.
    WrongCount,
    /// No entry leads to the inode.
    UnreachableInode,
    /// Data or attribute entries whose inode is missing.
    MissingInode,
    /// Data beyond the end of its file.
    DataBeyondSize,
    /// Data that cannot be expanded, or to a wrong length.
    BadData,
    /// An inode with impossible contents.
    BadInode,
    /// A directory entry with an impossible name or a hash that is not that of its name.
    BadEntry,
    /// Unused space is not erased.
    NotErased,
    /// Flash could not be read.
    Unreadable,
}

impl DamageKind {
    /// The name, as printed.
    pub fn name(self) -> &'static str {
        match self {
            DamageKind::BadNode => "bad-node",
            DamageKind::UnmappedLeb => "unmapped-leb",
            DamageKind::BadSuperblock => "bad-superblock",
            DamageKind::BadMaster => "bad-master",
            DamageKind::BadIndex => "bad-index",
            DamageKind::WrongKeyOrder => "wrong-key-order",
            DamageKind::BadLog => "bad-log",
            DamageKind::BadJournal => "bad-journal",
            DamageKind::BadOrphans => "bad-orphans",
            DamageKind::BadProperties => "bad-properties",
            DamageKind::WrongProperties => "wrong-properties",
            DamageKind::WrongTotals => "wrong-totals",
            DamageKind::WrongNode => "wrong-node",
            DamageKind::OverlappingNodes => "overlapping-nodes",
            DamageKind::DanglingEntry => "dangling-entry",
            DamageKind::WrongEntryType => "wrong-entry-type",
            DamageKind::WrongLinkCount => "wrong-link-count",
            DamageKind::WrongCount => "wrong-count",
            DamageKind::UnreachableInode => "unreachable-inode",
            DamageKind::MissingInode => "missing-inode",
            DamageKind::DataBeyondSize => "data-beyond-size",
            DamageKind::BadData => "bad-data",
            DamageKind::BadInode => "bad-inode",
            DamageKind::BadEntry => "bad-entry",
            DamageKind::NotErased => "not-erased",
            DamageKind::Unreadable => "unreadable",
        }
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What kind.
    pub kind: DamageKind,
    /// Where.
    pub place: Place,
    /// What was found and what would be right.
    pub detail: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.kind.name(), self.detail)
    }
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
