// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nodes: the common header and the contents of inode, entry, data, index and the other nodes. This module sees bytes
//! only. Layouts: Linux `fs/ubifs/ubifs-media.h`.

use crate::key::Key;

/// First word of every node.
pub const NODE_MAGIC: u32 = 0x0610_1831;
/// Bytes in the common header.
pub(crate) const HEADER_BYTES: u32 = 24;
/// Longest name of an entry.
pub(crate) const MAX_NAME_BYTES: usize = 255;
/// Longest data kept in an inode node: a symbolic link's target, an attribute's value.
pub(crate) const MAX_INLINE_BYTES: u32 = 4096;
/// Bytes before the data of an inode node.
pub(crate) const INODE_BYTES: u32 = 160;
/// Bytes before the name of an entry node.
pub(crate) const DENTRY_BYTES: u32 = 56;
/// Bytes before the payload of a data node.
pub(crate) const DATA_BYTES: u32 = 48;
/// Bytes before the branches of an index node.
pub(crate) const INDEX_BYTES: u32 = 28;
/// Bytes in a branch with its key.
pub(crate) const BRANCH_BYTES: u32 = 20;
/// Bytes in a padding node, before the padded bytes.
pub(crate) const PAD_BYTES: u32 = 28;
/// Bytes in a superblock node.
pub(crate) const SUPERBLOCK_BYTES: u32 = 4096;
/// Bytes in a master node.
pub(crate) const MASTER_BYTES: u32 = 512;

/// A little-endian number at `at`.
pub(crate) fn le16(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}

/// A little-endian number at `at`.
pub(crate) fn le32(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

/// A little-endian number at `at`.
pub(crate) fn le64(b: &[u8], at: usize) -> u64 {
    u64::from(le32(b, at)) | u64::from(le32(b, at + 4)) << 32
}

/// UBIFS's checksum: CRC-32 without the final inversion.
pub fn crc32(bytes: &[u8]) -> u32 {
    !crc32fast::hash(bytes)
}

/// The next multiple of 8.
pub(crate) fn align8(n: u32) -> u32 {
    n.saturating_add(7) & !7
}

/// The next multiple of `unit`, which is a power of two.
pub(crate) fn align(n: u32, unit: u32) -> u32 {
    n.saturating_add(unit - 1) & !(unit - 1)
}

readpath_kit::named! {
    /// Types of nodes; the numbers are those on flash.
    #[derive(PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum NodeType {
        /// Attributes of a file, and short data.
        Inode = "inode node",
        /// A block of a file.
        Data = "data node",
        /// A directory entry.
        Dentry = "directory entry node",
        /// An extended attribute entry.
        Xattr = "attribute entry node",
        /// A file became shorter.
        Truncation = "truncation node",
        /// Space that is not used.
        Padding = "padding node",
        /// The superblock.
        Superblock = "superblock node",
        /// The master.
        Master = "master node",
        /// A reference from the log to a journal block.
        Reference = "reference node",
        /// Part of the index.
        Index = "index node",
        /// The beginning of the log.
        CommitStart = "commit start node",
        /// Inodes that are to be deleted.
        Orphan = "orphan node",
        /// A hash over the journal so far.
        Auth = "authentication node",
        /// A signature of the superblock.
        Signature = "signature node",
    }
}

impl NodeType {
    /// By the number on flash.
    pub fn from_number(number: u8) -> Option<NodeType> {
        NodeType::ALL.get(usize::from(number)).copied()
    }

    /// The name with its article.
    pub fn one(self) -> String {
        let name = self.name();
        let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {name}")
    }

    /// Shortest and longest length in bytes, given the fanout of the index.
    fn length(self, fanout: u32) -> (u32, u32) {
        match self {
            NodeType::Inode => (INODE_BYTES, INODE_BYTES + MAX_INLINE_BYTES),
            NodeType::Data => (DATA_BYTES, DATA_BYTES + 4096),
            NodeType::Dentry | NodeType::Xattr => (DENTRY_BYTES + 1, DENTRY_BYTES + MAX_NAME_BYTES as u32 + 1),
            NodeType::Truncation => (56, 56),
            NodeType::Padding => (PAD_BYTES, PAD_BYTES),
            NodeType::Superblock => (SUPERBLOCK_BYTES, SUPERBLOCK_BYTES),
            NodeType::Master => (MASTER_BYTES, MASTER_BYTES),
            NodeType::Reference => (64, 64),
            NodeType::Index => (INDEX_BYTES + BRANCH_BYTES, INDEX_BYTES + fanout.saturating_mul(BRANCH_BYTES)),
            NodeType::CommitStart => (32, 32),
            NodeType::Orphan => (32, u32::MAX),
            NodeType::Auth => (HEADER_BYTES + 1, HEADER_BYTES + 64),
            NodeType::Signature => (64, u32::MAX),
        }
    }
}

/// Contents of a node's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Type.
    pub kind: NodeType,
    /// Bytes, header included.
    pub len: u32,
    /// Number that grows with every node written.
    pub sqnum: u64,
    /// 1 inside of a group that belongs together, 2 at its end, otherwise 0.
    pub group: u8,
}

/// A fault in a node's bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// No magic number.
    #[error("magic number {0:#010x}, expected {NODE_MAGIC:#010x}")]
    Magic(u32),
    /// An unknown type.
    #[error("unknown node type {0}")]
    Type(u8),
    /// Too short or too long for its type, or longer than its place.
    #[error("{} of {len} bytes, expected {lo} to {hi}", .kind.one())]
    Length {
        /// The type in the header.
        kind: NodeType,
        /// The length in the header.
        len: u32,
        /// Shortest length.
        lo: u32,
        /// Longest length.
        hi: u32,
    },
    /// The checksum is wrong.
    #[error("checksum of the {} is {found:#010x}, its {len} bytes give {computed:#010x}", .kind.name())]
    Crc {
        /// The type in the header.
        kind: NodeType,
        /// The length in the header.
        len: u32,
        /// The checksum in the header.
        found: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
}

/// Checks header and checksum of the node at the start of `bytes`, which may extend beyond it.
pub fn check(bytes: &[u8], fanout: u32) -> Result<Header, NodeError> {
    let header = check_header(bytes, fanout)?;
    let found = le32(bytes, 4);
    let computed = crc32(&bytes[8..header.len as usize]);
    if found != computed {
        return Err(NodeError::Crc { kind: header.kind, len: header.len, found, computed });
    }
    Ok(header)
}

/// Checks the header alone.
pub(crate) fn check_header(bytes: &[u8], fanout: u32) -> Result<Header, NodeError> {
    if bytes.len() < HEADER_BYTES as usize {
        return Err(NodeError::Magic(0));
    }
    let magic = le32(bytes, 0);
    if magic != NODE_MAGIC {
        return Err(NodeError::Magic(magic));
    }
    let kind = NodeType::from_number(bytes[20]).ok_or(NodeError::Type(bytes[20]))?;
    let len = le32(bytes, 16);
    let (lo, hi) = kind.length(fanout);
    let hi = hi.min(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    if len < lo || len > hi {
        return Err(NodeError::Length { kind, len, lo, hi });
    }
    Ok(Header { kind, len, sqnum: le64(bytes, 8), group: bytes[21] })
}

/// The key in a node that has one.
pub(crate) fn key_of(bytes: &[u8]) -> Key {
    Key::parse(&bytes[24..])
}

/// A point in time: seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Time {
    /// Seconds.
    pub s: i64,
    /// Nanoseconds.
    pub ns: u32,
}

/// Type of a file, from the upper bits of its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A block device.
    Block,
    /// A character device.
    Character,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

/// All types in the order of their numbers in entries: upper bits of the mode, name, letter in a long listing.
const FILE_TYPES: [(FileType, u32, &str, char); 7] = [
    (FileType::Regular, 0o100_000, "regular file", '-'),
    (FileType::Directory, 0o040_000, "directory", 'd'),
    (FileType::Symlink, 0o120_000, "symbolic link", 'l'),
    (FileType::Block, 0o060_000, "block device", 'b'),
    (FileType::Character, 0o020_000, "character device", 'c'),
    (FileType::Fifo, 0o010_000, "fifo", 'p'),
    (FileType::Socket, 0o140_000, "socket", 's'),
];

impl FileType {
    fn from_mode(mode: u32) -> Option<FileType> {
        FILE_TYPES.iter().find(|t| t.1 == mode & 0o170_000).map(|t| t.0)
    }

    /// The type with a number in a directory entry.
    fn from_entry(number: u8) -> Option<FileType> {
        FILE_TYPES.get(usize::from(number)).map(|t| t.0)
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        FILE_TYPES[self as usize].2
    }

    /// The letter in a long listing.
    pub fn letter(self) -> char {
        FILE_TYPES[self as usize].3
    }
}

/// An inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Number.
    pub ino: u32,
    /// Bytes; for directories the size of their entries.
    pub size: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of attributes.
    pub ctime: Time,
    /// Last change of data.
    pub mtime: Time,
    /// Number of links; 0 means deleted.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Type and permissions.
    pub mode: u32,
    /// Flags (1 compress, 2 sync, 4 immutable, 8 append, 0x10 dirsync, 0x20 attribute value, 0x40 encrypted).
    pub flags: u32,
    /// Number of extended attributes.
    pub xattr_count: u32,
    /// Bytes of all extended attributes.
    pub xattr_bytes: u32,
    /// Bytes of their names.
    pub xattr_names_bytes: u32,
    /// Compression for data written later, as on flash.
    pub compression: u16,
    /// Symbolic link target, device number or attribute value.
    pub data: Box<[u8]>,
}

/// The inode holds an attribute's value.
pub(crate) const FLAG_XATTR: u32 = 0x20;
/// The inode's data is encrypted.
pub(crate) const FLAG_ENCRYPTED: u32 = 0x40;

impl Inode {
    /// Parses a checked inode node.
    pub fn parse(node: &[u8]) -> Result<Inode, String> {
        let len = u32::try_from(node.len()).unwrap_or(u32::MAX);
        if len < INODE_BYTES {
            return Err(format!("an inode node of {len} bytes, expected at least {INODE_BYTES}"));
        }
        let data_len = le32(node, 112);
        if data_len > MAX_INLINE_BYTES || data_len + INODE_BYTES > len {
            return Err(format!("{data_len} bytes of data in an inode node of {len} bytes"));
        }
        let time = |s: usize, ns: usize| Time { s: le64(node, s) as i64, ns: le32(node, ns) };
        Ok(Inode {
            ino: key_of(node).ino,
            size: le64(node, 48),
            atime: time(56, 80),
            ctime: time(64, 84),
            mtime: time(72, 88),
            nlink: le32(node, 92),
            uid: le32(node, 96),
            gid: le32(node, 100),
            mode: le32(node, 104),
            flags: le32(node, 108),
            xattr_count: le32(node, 116),
            xattr_bytes: le32(node, 120),
            xattr_names_bytes: le32(node, 128),
            compression: le16(node, 132),
            data: node[INODE_BYTES as usize..][..data_len as usize].into(),
        })
    }

    /// Its type; `None` if the mode is invalid.
    pub fn file_type(&self) -> Option<FileType> {
        FileType::from_mode(self.mode)
    }

    /// Major and minor number of a device.
    pub fn device(&self) -> Option<(u32, u32)> {
        if !matches!(self.file_type(), Some(FileType::Block | FileType::Character)) {
            return None;
        }
        match self.data.len() {
            // include/linux/kdev_t.h: 12 bits of major number amid 20 bits of minor number.
            4 => {
                let n = le32(&self.data, 0);
                Some(((n & 0xF_FF00) >> 8, n & 0xFF | (n >> 12) & 0xF_FF00))
            }
            8 => {
                let n = le64(&self.data, 0);
                let major = (n >> 8) & 0xFFF | (n >> 32) & !0xFFF;
                let minor = n & 0xFF | (n >> 12) & !0xFF & 0xFFFF_FFFF;
                Some((major as u32, minor as u32))
            }
            _ => None,
        }
    }
}

/// A directory entry or attribute entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Directory and hash.
    pub key: Key,
    /// The inode it leads to; 0 in a journal means that the name is deleted.
    pub target: u64,
    /// Type of the inode, as on flash.
    pub type_number: u8,
    /// The name.
    pub name: Box<[u8]>,
}

impl Entry {
    /// Parses a checked entry node.
    pub fn parse(node: &[u8]) -> Result<Entry, String> {
        let base = DENTRY_BYTES as usize;
        if node.len() <= base {
            return Err(format!("an entry node of {} bytes, expected more than {base}", node.len()));
        }
        let name_bytes = usize::from(le16(node, 50));
        if name_bytes > MAX_NAME_BYTES || base + name_bytes + 1 != node.len() {
            return Err(format!("a name of {name_bytes} bytes in an entry node of {} bytes", node.len()));
        }
        let name = &node[base..base + name_bytes];
        if name.contains(&0) || node[base + name_bytes] != 0 {
            return Err("a name with a zero byte in it, or none behind it".to_owned());
        }
        if name.is_empty() {
            return Err("an empty name".to_owned());
        }
        let target = le64(node, 40);
        if target > u64::from(u32::MAX) {
            return Err(format!("it leads to inode {target}, and inode numbers have 32 bits"));
        }
        Ok(Entry { key: key_of(node), target, type_number: node[49], name: name.into() })
    }

    /// The type of its inode according to the entry.
    pub fn file_type(&self) -> Option<FileType> {
        FileType::from_entry(self.type_number)
    }
}
