// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nodes, and volumes made of them: for tests, for benches and to try the program with. A volume is as after a commit
//! and an unmount of the kernel, which writes names and inodes apart from data; nothing is compressed.

mod committed;

pub(crate) use committed::superblock;

use crate::compress::BLOCK_BYTES;
use crate::flash::NodeRef;
use crate::key::{Key, KeyType, NameHash};
use crate::lebs::LebSizes;
use crate::lpt::Properties;
use crate::node::{
    BRANCH_BYTES, DATA_BYTES, DENTRY_BYTES, HEADER_BYTES, INDEX_BYTES, INODE_BYTES, NODE_MAGIC, NodeType, PAD_BYTES,
    align8, crc32,
};
use crate::superblock::{LOG_LEB, MASTER_LEB, SUPERBLOCK_LEB};
use crate::volume::ROOT_INO;

/// A node with a header and a checksum around `body`.
pub fn node(kind: NodeType, sqnum: u64, body: &[u8]) -> Vec<u8> {
    let mut node = NODE_MAGIC.to_le_bytes().to_vec();
    node.extend([0; 4]);
    node.extend(sqnum.to_le_bytes());
    node.extend((HEADER_BYTES + body.len() as u32).to_le_bytes());
    node.extend([kind as u8, 0, 0, 0]);
    node.extend(body);
    seal(&mut node);
    node
}

/// Sets the checksum of a node.
pub fn seal(node: &mut [u8]) {
    let crc = crc32(&node[8..]);
    node[4..8].copy_from_slice(&crc.to_le_bytes());
}

/// A node whose body begins with the 16 bytes of a key.
pub fn keyed(kind: NodeType, sqnum: u64, key: Key, rest: &[u8]) -> Vec<u8> {
    let mut body = key.ino.to_le_bytes().to_vec();
    body.extend(key.rest.to_le_bytes());
    body.resize(16, 0);
    body.extend(rest);
    node(kind, sqnum, &body)
}

/// Fields of an inode node; times and owner are 0.
#[derive(Clone, Copy, Debug)]
pub struct NewInode<'a> {
    /// Number.
    pub ino: u32,
    /// Bytes of the file.
    pub size: u64,
    /// Links.
    pub nlink: u32,
    /// Type and permissions.
    pub mode: u32,
    /// Flags, as on flash.
    pub flags: u32,
    /// Number of attributes, their size in bytes, and bytes of their names.
    pub xattrs: (u32, u32, u32),
    /// Data in the node.
    pub data: &'a [u8],
}

/// An inode node.
pub fn inode(sqnum: u64, new: &NewInode) -> Vec<u8> {
    // Offsets are those in the node, of which the first 40 bytes are header and key.
    let mut rest = vec![0; 120];
    let mut put = |at: usize, bytes: &[u8]| rest[at - 40..at - 40 + bytes.len()].copy_from_slice(bytes);
    put(48, &new.size.to_le_bytes());
    put(92, &new.nlink.to_le_bytes());
    put(104, &new.mode.to_le_bytes());
    put(108, &new.flags.to_le_bytes());
    put(112, &(new.data.len() as u32).to_le_bytes());
    put(116, &new.xattrs.0.to_le_bytes());
    put(120, &new.xattrs.1.to_le_bytes());
    put(128, &new.xattrs.2.to_le_bytes());
    rest.extend(new.data);
    keyed(NodeType::Inode, sqnum, Key::inode(new.ino), &rest)
}

/// An entry of a directory or of an attribute; `type_number` is that of the inode.
pub fn entry(sqnum: u64, key: Key, target: u64, type_number: u8, name: &[u8]) -> Vec<u8> {
    let mut rest = target.to_le_bytes().to_vec();
    rest.extend([0, type_number]);
    rest.extend((name.len() as u16).to_le_bytes());
    rest.extend([0; 4]);
    rest.extend(name);
    rest.push(0);
    let kind = if key.kind() == Some(KeyType::Dentry) { NodeType::Dentry } else { NodeType::Xattr };
    keyed(kind, sqnum, key, &rest)
}

/// Pads bytes to whole units of writing, as UBIFS does: with a padding node if one fits (`ubifs_pad`).
pub fn padded(mut bytes: Vec<u8>, min_io_bytes: u32) -> Vec<u8> {
    let left = bytes.len().next_multiple_of(min_io_bytes as usize) - bytes.len();
    let end = bytes.len() + left;
    if left >= PAD_BYTES as usize {
        bytes.extend(node(NodeType::Padding, 0, &(left as u32 - PAD_BYTES).to_le_bytes()));
        bytes.resize(end, 0);
    } else {
        bytes.resize(end, 0xCE);
    }
    bytes
}

/// Children of an index node.
const FANOUT: u32 = 8;
/// Blocks of log, properties tree and orphans.
const LOG_LEBS: u32 = 2;
const LPT_LEBS: u32 = 2;
const ORPHAN_LEBS: u32 = 1;
const LPT_LEB: u32 = LOG_LEB + LOG_LEBS;
const MAIN_FIRST: u32 = LPT_LEB + LPT_LEBS + ORPHAN_LEBS;

/// A file, directory or link of a new volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tree {
    /// A directory: names, each with what it leads to.
    Directory(Vec<(String, Tree)>),
    /// A regular file with these bytes.
    File(Vec<u8>),
    /// A symbolic link to this path.
    Link(String),
}

/// A block of the main area.
struct Leb {
    bytes: Vec<u8>,
    used: u32,
    index: bool,
}

/// What is written to a block of its own.
#[derive(Clone, Copy)]
enum Head {
    Names,
    Data,
    Index,
}

/// A growing volume.
struct Writer {
    leb_bytes: u32,
    lebs: Vec<Leb>,
    /// The block to which each head writes.
    heads: [Option<usize>; 3],
    leaves: Vec<(Key, Vec<u8>, NodeRef)>,
    sqnum: u64,
    highest_ino: u32,
}

impl Writer {
    fn next_sqnum(&mut self) -> u64 {
        self.sqnum += 1;
        self.sqnum
    }

    fn add(&mut self, head: Head, node: &[u8]) -> NodeRef {
        let fits = |&at: &usize| self.lebs[at].bytes.len() + node.len() <= self.leb_bytes as usize;
        let at = self.heads[head as usize].filter(fits).unwrap_or(self.lebs.len());
        self.heads[head as usize] = Some(at);
        if at == self.lebs.len() {
            self.lebs.push(Leb { bytes: Vec::new(), used: 0, index: matches!(head, Head::Index) });
        }
        let leb = &mut self.lebs[at];
        let place = NodeRef { lnum: MAIN_FIRST + at as u32, offset: leb.bytes.len() as u32, len: node.len() as u32 };
        leb.bytes.extend(node);
        leb.bytes.resize(leb.bytes.len().next_multiple_of(8), 0);
        leb.used += align8(place.len);
        place
    }

    fn add_leaf(&mut self, head: Head, key: Key, name: &str, node: &[u8]) {
        let at = self.add(head, node);
        self.leaves.push((key, name.as_bytes().to_vec(), at));
    }

    fn add_inode(&mut self, new: &NewInode) {
        let sqnum = self.next_sqnum();
        self.add_leaf(Head::Names, Key::inode(new.ino), "", &inode(sqnum, new));
    }

    /// Writes what a name leads to as inode `ino`; returns the number of its type in entries.
    fn tree(&mut self, ino: u32, tree: &Tree) -> u8 {
        let new = NewInode { ino, size: 0, nlink: 1, mode: 0o100_644, flags: 0, xattrs: (0, 0, 0), data: b"" };
        match tree {
            Tree::Directory(entries) => {
                // A directory's size is that of an inode, and of its entries.
                let (mut nlink, mut size) = (2, u64::from(INODE_BYTES));
                for (name, below) in entries {
                    // Numbers below 64 are reserved by the kernel.
                    self.highest_ino = (self.highest_ino + 1).max(64);
                    let target = self.highest_ino;
                    let type_number = self.tree(target, below);
                    let key = Key::dentry(ino, NameHash::R5.of(name.as_bytes()));
                    let sqnum = self.next_sqnum();
                    let node = entry(sqnum, key, target.into(), type_number, name.as_bytes());
                    self.add_leaf(Head::Names, key, name, &node);
                    nlink += u32::from(type_number == 1);
                    size += u64::from(align8(DENTRY_BYTES + name.len() as u32 + 1));
                }
                self.add_inode(&NewInode { size, nlink, mode: 0o040_755, ..new });
                1
            }
            Tree::File(bytes) => {
                for (block, part) in (0..).zip(bytes.chunks(BLOCK_BYTES)) {
                    // Size, no compression, and 0 for what only encryption needs.
                    let mut rest = (part.len() as u32).to_le_bytes().to_vec();
                    rest.extend([0; 4]);
                    rest.extend(part);
                    let (key, sqnum) = (Key::data(ino, block), self.next_sqnum());
                    let node = keyed(NodeType::Data, sqnum, key, &rest);
                    debug_assert_eq!(node.len() as u32, DATA_BYTES + part.len() as u32);
                    self.add_leaf(Head::Data, key, "", &node);
                }
                self.add_inode(&NewInode { size: bytes.len() as u64, ..new });
                0
            }
            Tree::Link(target) => {
                let (size, data) = (target.len() as u64, target.as_bytes());
                self.add_inode(&NewInode { size, mode: 0o120_777, data, ..new });
                2
            }
        }
    }

    /// Writes the index nodes above all leaves; returns the root.
    fn index(&mut self) -> NodeRef {
        let mut leaves = std::mem::take(&mut self.leaves);
        // Names with the same hash are in the order of names.
        leaves.sort_unstable();
        let mut branches: Vec<_> = leaves.into_iter().map(|(key, _, at)| (key, at)).collect();
        for level in 0u16.. {
            let mut above = Vec::new();
            for children in branches.chunks(FANOUT as usize) {
                let mut body = (children.len() as u16).to_le_bytes().to_vec();
                body.extend(level.to_le_bytes());
                for (key, at) in children {
                    for word in [at.lnum, at.offset, at.len, key.ino, key.rest] {
                        body.extend(word.to_le_bytes());
                    }
                }
                debug_assert_eq!(body.len() as u32 + HEADER_BYTES, INDEX_BYTES + BRANCH_BYTES * children.len() as u32);
                let sqnum = self.next_sqnum();
                above.push((children[0].0, self.add(Head::Index, &node(NodeType::Index, sqnum, &body))));
            }
            if let [(_, root)] = above[..] {
                return root;
            }
            branches = above;
        }
        unreachable!("each level has fewer nodes than the one below")
    }
}

/// The bytes of a volume with `dirs` directories in its root, and `files` empty files in each. See [`volume_of`].
pub fn volume(dirs: u32, files: u32, leb_bytes: u32, min_io_bytes: u32) -> Vec<u8> {
    let files: Vec<_> = (0..files).map(|f| (format!("f{f:05}"), Tree::File(Vec::new()))).collect();
    let dirs = (0..dirs).map(|d| (format!("d{d:05}"), Tree::Directory(files.clone())));
    volume_of(&Tree::Directory(dirs.collect()), leb_bytes, min_io_bytes, 3)
}

/// The bytes of a volume whose root is the directory `root`. Blocks have `leb_bytes` bytes, a multiple of
/// `min_io_bytes`, the unit of writing. The last `empty` of them, at least 2, are free.
pub fn volume_of(root: &Tree, leb_bytes: u32, min_io_bytes: u32, empty: u32) -> Vec<u8> {
    let heads = [None; 3];
    let mut writer = Writer { leb_bytes, lebs: Vec::new(), heads, leaves: Vec::new(), sqnum: 0, highest_ino: ROOT_INO };
    writer.tree(ROOT_INO, root);
    let root = writer.index();
    let leb_count = MAIN_FIRST + writer.lebs.len() as u32 + empty;
    let mut image = vec![0xFF; leb_count as usize * leb_bytes as usize];
    let mut put = |lnum: u32, bytes: &[u8]| {
        let at = lnum as usize * leb_bytes as usize;
        image[at..at + bytes.len()].copy_from_slice(bytes);
    };
    let unused = Properties { free: leb_bytes, ..Properties::default() };
    let mut properties = vec![unused; (leb_count - MAIN_FIRST) as usize];
    for ((lnum, leb), properties) in (MAIN_FIRST..).zip(writer.lebs).zip(&mut properties) {
        let bytes = padded(leb.bytes, min_io_bytes);
        let end = bytes.len() as u32;
        *properties = Properties { free: leb_bytes - end, dirty: end - leb.used, index: leb.index, taken: false };
        put(lnum, &bytes);
    }
    let superblock = superblock(LebSizes { leb_bytes, leb_count, min_io_bytes });
    let (tree, master) = committed::of(&superblock, &properties, root, writer.sqnum, writer.highest_ino);
    put(SUPERBLOCK_LEB, &superblock);
    for lnum in [MASTER_LEB, MASTER_LEB + 1] {
        put(lnum, &padded(master.clone(), min_io_bytes));
    }
    let start = node(NodeType::CommitStart, writer.sqnum + 1, &committed::COMMIT.to_le_bytes());
    put(LOG_LEB, &padded(start, min_io_bytes));
    put(LPT_LEB, &tree);
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileType, MountMode, Session, UbiVolume, Ubifs};
    use readpath_ubi::attach::Options;
    use readpath_ubi::mtd::{Geometry, Image};
    use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};
    use readpath_ubi::{NoCache, Ubi};
    use std::collections::BTreeSet;

    #[test]
    fn the_volume_has_what_was_asked_for() {
        let geometry = Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 64 };
        let data = volume(30, 70, 129_024, 2048);
        assert!(data.len() > 8 * 129_024, "more than one block of the main area");
        let head = ImageHead { geometry, vid_offset: None, image_seq: 1, erase_counter: 0 };
        let mut image = Vec::new();
        write_image(&head, &[ImageVolume::dynamic(0, "v", &data)], &mut image).expect("an image");
        let ubi = Ubi::attach(Image::new(image, geometry).expect("it"), NoCache, &Options::image()).expect("UBI");
        let lebs = UbiVolume::new(ubi, 0).expect("a volume");
        let mut session = Session::new(Ubifs::mount(lebs, MountMode::ReadWrite).expect("UBIFS"), false);
        let (mut found, mut inodes) = (Vec::new(), BTreeSet::new());
        session
            .find_ls(b"/", |path, inode| {
                inodes.insert(inode.ino);
                found.push((path.to_vec(), inode.file_type()));
            })
            .expect("a walk");
        assert_eq!((found.len(), inodes.len()), (1 + 30 * 71, 1 + 30 * 71));
        for path in ["/d00000/f00000", "/d00029/f00069"] {
            assert!(found.contains(&(path.as_bytes().to_vec(), Some(FileType::Regular))), "{path}");
        }
    }
}
