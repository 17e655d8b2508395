// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads from the blocks of a volume whose superblock is known: single nodes, and places for messages. This module
//! knows nodes, not references to them.

use crate::compress::Expander;
use crate::error::{Damage, DamageKind, Place, Result, UbifsError, unreadable};
use crate::key::Key;
use crate::lebs::{Lebs, ReadKind};
use crate::node::{self, Entry, Header, Inode, NodeType, key_of};
use crate::superblock::Superblock;

/// Place of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeRef {
    /// Block.
    pub lnum: u32,
    /// Byte within it.
    pub offset: u32,
    /// Bytes.
    pub len: u32,
}

/// A place without a length: block and byte in it.
pub(crate) type At = (u32, u32);

impl From<NodeRef> for At {
    fn from(node: NodeRef) -> At {
        (node.lnum, node.offset)
    }
}

/// The blocks, and the parameters needed to read them.
pub(crate) struct Flash<L> {
    pub lebs: L,
    pub sb: Superblock,
    pub expander: Expander,
    buf: Vec<u8>,
}

/// Kind of read and type of the node that an index branch with this key leads to.
pub(crate) fn leaf_kind(key: Key) -> Option<(ReadKind, NodeType)> {
    use crate::key::KeyType;
    Some(match key.kind()? {
        KeyType::Inode => (ReadKind::Inode, NodeType::Inode),
        KeyType::Data => (ReadKind::Data, NodeType::Data),
        KeyType::Dentry => (ReadKind::Dentry, NodeType::Dentry),
        KeyType::Xattr => (ReadKind::Xattr, NodeType::Xattr),
    })
}

impl<L: Lebs> Flash<L> {
    pub(crate) fn new(lebs: L, sb: Superblock) -> Flash<L> {
        Flash { lebs, sb, expander: Expander::default(), buf: Vec::new() }
    }

    /// A place, for messages.
    pub(crate) fn place(&self, lnum: u32, offset: u32) -> Place {
        Place { lnum, offset, peb: self.lebs.peb(lnum) }
    }

    /// An error of kind `kind` at a place.
    pub(crate) fn damage(&self, kind: DamageKind, at: impl Into<At>, detail: impl Into<String>) -> UbifsError {
        let (lnum, offset) = at.into();
        UbifsError::Damage(Damage { kind, place: self.place(lnum, offset), detail: detail.into() })
    }

    /// Reads bytes; unmapped blocks read as 0xFF. Bit errors beyond correction are left to checksums.
    pub(crate) fn read(&mut self, lnum: u32, offset: u32, buf: &mut [u8], what: ReadKind) -> Result<()> {
        let place = self.place(lnum, offset);
        read_tolerant(&mut self.lebs, place, buf, what)
    }

    /// Reads a block from `start` to its end.
    pub(crate) fn read_rest(&mut self, lnum: u32, start: u32, what: ReadKind) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.sb.leb_bytes.saturating_sub(start) as usize];
        self.read(lnum, start, &mut bytes, what)?;
        Ok(bytes)
    }

    /// Reads exactly the bytes of `at` and checks that they are a node of this type and length.
    pub(crate) fn read_node(&mut self, at: NodeRef, kind: NodeType, what: ReadKind) -> Result<&[u8]> {
        match self.try_read_node(at, kind, what)? {
            Ok(_) => Ok(&self.buf),
            Err(_) if at.lnum < self.sb.leb_count && !self.lebs.is_mapped(at.lnum) => {
                let detail = format!("nodes are expected in it, but LEB {} has no PEB", at.lnum);
                Err(self.damage(DamageKind::UnmappedLeb, (at.lnum, 0), detail))
            }
            Err(detail) => {
                let damage = if kind == NodeType::Index { DamageKind::BadIndex } else { DamageKind::BadNode };
                Err(self.damage(damage, at, detail))
            }
        }
    }

    /// Like `read_node`, but an invalid node is an inner `Err`; the node is in `node()`.
    pub(crate) fn try_read_node(
        &mut self,
        at: NodeRef,
        kind: NodeType,
        what: ReadKind,
    ) -> Result<std::result::Result<Header, String>> {
        if u64::from(at.offset) + u64::from(at.len) > u64::from(self.sb.leb_bytes)
            || at.lnum >= self.sb.leb_count
            || !at.offset.is_multiple_of(8)
            || at.len < node::HEADER_BYTES
        {
            return Ok(Err(format!(
                "a branch leads to {} bytes here, which is not within a block of the volume or not a multiple of 8",
                at.len
            )));
        }
        self.buf.clear();
        self.buf.resize(at.len as usize, 0);
        let place = self.place(at.lnum, at.offset);
        read_tolerant(&mut self.lebs, place, &mut self.buf, what)?;
        Ok(match node::check(&self.buf, self.sb.fanout) {
            Err(e) => Err(format!("expected {}: {e}", kind.one())),
            Ok(header) if header.kind != kind => Err(format!("{}, expected {}", header.kind.one(), kind.one())),
            Ok(header) if header.len != at.len => {
                Err(format!("{} of {} bytes, its branch says {}", kind.one(), header.len, at.len))
            }
            Ok(header) => Ok(header),
        })
    }

    /// Reads the node that a branch with this key leads to. Without `what` the kind of read is Linux's.
    pub(crate) fn read_leaf(&mut self, key: Key, at: NodeRef, what: Option<ReadKind>) -> Result<&[u8]> {
        let Some((usual, kind)) = leaf_kind(key) else {
            return Err(self.damage(
                DamageKind::BadIndex,
                at,
                format!("a branch with {key}, a type that does not exist"),
            ));
        };
        let found = key_of(self.read_node(at, kind, what.unwrap_or(usual))?);
        if found != key {
            let detail = format!("a node with {found}, its branch says {key}");
            return Err(self.damage(DamageKind::WrongNode, at, detail));
        }
        Ok(&self.buf)
    }

    /// The inode in the node that was read last, from `at`.
    pub(crate) fn inode(&self, at: NodeRef) -> Result<Inode> {
        Inode::parse(&self.buf).map_err(|e| self.damage(DamageKind::BadInode, at, e))
    }

    /// The entry in the node that was read last, from `at`.
    pub(crate) fn entry(&self, at: NodeRef) -> Result<Entry> {
        Entry::parse(&self.buf).map_err(|e| self.damage(DamageKind::BadEntry, at, e))
    }

    /// The node that was read last.
    pub(crate) fn node(&self) -> &[u8] {
        &self.buf
    }

    /// The node that was read last, and the decompressors.
    pub(crate) fn node_and_expander(&mut self) -> (&[u8], &mut Expander) {
        (&self.buf, &mut self.expander)
    }
}

/// Reads; uncorrectable bit errors are left to the checksums of nodes.
pub(crate) fn read_tolerant<L: Lebs>(lebs: &mut L, place: Place, buf: &mut [u8], what: ReadKind) -> Result<()> {
    match lebs.read(place.lnum, place.offset, buf, what) {
        Err(e) if !e.uncorrectable => Err(unreadable(place, e)),
        _ => Ok(()),
    }
}
