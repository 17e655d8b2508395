// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nodes, and a volume made of them, for tests and benches. It is not a mkfs: the volume has no properties of blocks,
//! so it can be inspected but not mounted as by Linux.

use crate::flash::NodeRef;
use crate::key::{Key, KeyType, NameHash};
use crate::lebs::LebSizes;
use crate::master::FLAG_NO_ORPHANS;
use crate::node::{
    BRANCH_BYTES, HEADER_BYTES, INDEX_BYTES, MASTER_BYTES, NODE_MAGIC, NodeType, PAD_BYTES, SUPERBLOCK_BYTES, align8,
    crc32,
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
const MAIN_FIRST: u32 = LOG_LEB + LOG_LEBS + LPT_LEBS + ORPHAN_LEBS;

/// A growing volume: consecutive nodes in the blocks of the main area.
struct Writer {
    leb_bytes: u32,
    min_io_bytes: u32,
    lebs: Vec<Vec<u8>>,
    sqnum: u64,
}

impl Writer {
    fn next_sqnum(&mut self) -> u64 {
        self.sqnum += 1;
        self.sqnum
    }

    /// Begins a new block.
    fn end_leb(&mut self) {
        let (leb_bytes, min_io_bytes) = (self.leb_bytes as usize, self.min_io_bytes);
        if let Some(leb) = self.lebs.last_mut() {
            *leb = padded(std::mem::take(leb), min_io_bytes);
            leb.resize(leb_bytes, 0xFF);
        }
        self.lebs.push(Vec::with_capacity(leb_bytes));
    }

    fn add(&mut self, node: &[u8]) -> NodeRef {
        let fits = |leb: &Vec<u8>| leb.len() + node.len() <= self.leb_bytes as usize;
        if !self.lebs.last().is_some_and(fits) {
            self.end_leb();
        }
        let lnum = MAIN_FIRST + self.lebs.len() as u32 - 1;
        let leb = self.lebs.last_mut().expect("there is one now");
        let at = NodeRef { lnum, offset: leb.len() as u32, len: node.len() as u32 };
        leb.extend(node);
        leb.resize(align8(leb.len() as u32) as usize, 0);
        at
    }

    /// Writes the index nodes above the ordered `branches`; returns the root.
    fn index(&mut self, mut branches: Vec<(Key, NodeRef)>) -> NodeRef {
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
                above.push((children[0].0, self.add(&node(NodeType::Index, sqnum, &body))));
            }
            if let [(_, root)] = above[..] {
                return root;
            }
            branches = above;
        }
        unreachable!("each level has fewer nodes than the one below")
    }
}

/// The bytes of a volume with `dirs` directories in its root, and `files` empty files in each. Blocks have `leb_bytes`
/// bytes, a multiple of `min_io_bytes`, the unit of writing.
pub fn volume(dirs: u32, files: u32, leb_bytes: u32, min_io_bytes: u32) -> Vec<u8> {
    let mut writer = Writer { leb_bytes, min_io_bytes, lebs: Vec::new(), sqnum: 0 };
    let mut leaves: Vec<(Key, Vec<u8>, NodeRef)> = Vec::new();
    let mut highest_ino = ROOT_INO;
    let mut add_inode = |writer: &mut Writer, leaves: &mut Vec<_>, ino, is_dir: bool, links_and_entries: (u32, u64)| {
        let (nlink, entries) = links_and_entries;
        let mode = if is_dir { 0o040_755 } else { 0o100_644 };
        // A directory's size is that of an inode, and of its entries.
        let size = if is_dir { 160 + entries } else { 0 };
        let new = NewInode { ino, size, nlink, mode, flags: 0, xattrs: (0, 0, 0), data: b"" };
        let sqnum = writer.next_sqnum();
        leaves.push((Key::inode(ino), Vec::new(), writer.add(&inode(sqnum, &new))));
        highest_ino = highest_ino.max(ino);
    };
    let add_entry = |writer: &mut Writer, leaves: &mut Vec<_>, dir, target: u32, type_number, name: String| {
        let key = Key::dentry(dir, NameHash::R5.of(name.as_bytes()));
        let sqnum = writer.next_sqnum();
        let at = writer.add(&entry(sqnum, key, target.into(), type_number, name.as_bytes()));
        leaves.push((key, name.into_bytes(), at));
    };
    add_inode(&mut writer, &mut leaves, ROOT_INO, true, (2 + dirs, 64 * u64::from(dirs)));
    for d in 0..dirs {
        // Numbers below 64 are reserved by the kernel.
        let dir = 64 + d * (files + 1);
        add_entry(&mut writer, &mut leaves, ROOT_INO, dir, 1, format!("d{d:05}"));
        add_inode(&mut writer, &mut leaves, dir, true, (2, 64 * u64::from(files)));
        for f in 0..files {
            add_entry(&mut writer, &mut leaves, dir, dir + 1 + f, 0, format!("f{f:05}"));
            add_inode(&mut writer, &mut leaves, dir + 1 + f, false, (1, 0));
        }
    }
    // Names with the same hash are in the order of names.
    leaves.sort_unstable();
    writer.end_leb();
    let root = writer.index(leaves.into_iter().map(|(key, _, at)| (key, at)).collect());
    writer.end_leb();
    // The last block is empty: the index could continue there.
    let index_head = MAIN_FIRST + writer.lebs.len() as u32 - 1;
    let leb_count = index_head + 1;
    let mut image = vec![0xFF; leb_count as usize * leb_bytes as usize];
    let mut put = |lnum: u32, bytes: &[u8]| {
        let at = lnum as usize * leb_bytes as usize;
        image[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(SUPERBLOCK_LEB, &superblock(LebSizes { leb_bytes, leb_count, min_io_bytes }));
    let master = padded(master(writer.sqnum, u64::from(highest_ino), root, index_head, leb_count), min_io_bytes);
    put(MASTER_LEB, &master);
    put(MASTER_LEB + 1, &master);
    put(LOG_LEB, &padded(node(NodeType::CommitStart, writer.sqnum + 1, &COMMIT.to_le_bytes()), min_io_bytes));
    for (lnum, leb) in (MAIN_FIRST..).zip(&writer.lebs) {
        put(lnum, leb);
    }
    image
}

/// Number of the volume's commit.
const COMMIT: u64 = 0;

pub(crate) fn superblock(sizes: LebSizes) -> Vec<u8> {
    let LebSizes { leb_bytes, leb_count, min_io_bytes } = sizes;
    let mut body = vec![0; (SUPERBLOCK_BYTES - HEADER_BYTES) as usize];
    let mut put = |at: usize, word: u32| body[at - 24..at - 20].copy_from_slice(&word.to_le_bytes());
    for (at, word) in [(32, min_io_bytes), (36, leb_bytes), (40, leb_count), (44, leb_count), (48, 3 * leb_bytes)] {
        put(at, word);
    }
    for (at, word) in [(56, LOG_LEBS), (60, LPT_LEBS), (64, ORPHAN_LEBS), (68, 1), (72, FANOUT), (80, 4)] {
        put(at, word);
    }
    put(104, 1);
    node(NodeType::Superblock, 1, &body)
}

fn master(sqnum: u64, highest_ino: u64, root: NodeRef, index_head: u32, leb_count: u32) -> Vec<u8> {
    let mut body = vec![0; (MASTER_BYTES - HEADER_BYTES) as usize];
    body[..8].copy_from_slice(&highest_ino.to_le_bytes());
    body[8..16].copy_from_slice(&COMMIT.to_le_bytes());
    let mut put = |at: usize, word: u32| body[at - 24..at - 20].copy_from_slice(&word.to_le_bytes());
    for (at, word) in [(40, FLAG_NO_ORPHANS), (44, LOG_LEB), (48, root.lnum), (52, root.offset), (56, root.len)] {
        put(at, word);
    }
    // No block is kept for garbage collection; properties would be at the start of their area.
    let lpt = LOG_LEB + LOG_LEBS;
    for (at, word) in
        [(60, u32::MAX), (64, index_head), (120, lpt), (128, lpt), (136, lpt), (152, index_head), (164, leb_count)]
    {
        put(at, word);
    }
    node(NodeType::Master, sqnum, &body)
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
        let mut session = Session::new(Ubifs::mount(lebs, MountMode::Inspect).expect("UBIFS"), false);
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
