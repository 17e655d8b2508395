// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads that programs cause on a freshly mounted volume: `find`, `find -ls`, reading files, `rm`.
//!
//! A kernel has caches of names, inodes and file pages above the index. Here they start cold and never drop entries;
//! a real kernel drops unused ones when memory is short. Facts: Linux `fs/ubifs/dir.c`, `file.c`, `journal.c`, and
//! the order of calls of GNU `find`, `cat` and `rm`.

use crate::compress::BLOCK_BYTES;
use crate::error::{DamageKind, Result, UbifsError};
use crate::files;
use crate::flash::NodeRef;
use crate::key::{Key, KeyType};
use crate::lebs::{Lebs, ReadKind};
use crate::node::{self, DENTRY_BYTES, Entry, FileType, INODE_BYTES, Inode, align8};
use crate::volume::{ROOT_INO, Ubifs};
use std::collections::{BTreeMap, BTreeSet};

/// Most blocks that one bulk read fetches.
const MOST_BULK_BLOCKS: u32 = 32;
/// Most bytes that one bulk read fetches.
const MOST_BULK_BYTES: u32 = MOST_BULK_BLOCKS * (node::DATA_BYTES + BLOCK_BYTES as u32);
/// Number of the base head, to which inodes and entries are written.
const BASE_HEAD: u32 = 1;

/// A mounted volume in use.
#[derive(Debug)]
pub struct Session<L> {
    fs: Ubifs<L>,
    names: BTreeMap<(u32, Box<[u8]>), u32>,
    inodes: BTreeMap<u32, Inode>,
    /// Files whose pages are all in memory.
    read: BTreeSet<u32>,
    bulk_read: bool,
    /// Where the base head writes next: block and byte.
    base_head: Option<(u32, u32)>,
}

/// Called with a path: its entry, unless it is the start of a walk, and its inode, if it was read.
type Visitor<'f> = &'f mut dyn FnMut(&[u8], Option<&Entry>, Option<&Inode>);

impl<L: Lebs> Session<L> {
    /// Starts with cold caches, except the root directory's inode, which every mount reads. With `bulk_read`, the
    /// volume is mounted with the option of that name.
    pub fn new(fs: Ubifs<L>, bulk_read: bool) -> Session<L> {
        let base_head = fs.buds().iter().rev().find(|b| b.head == BASE_HEAD).map(|b| (b.lnum, b.end));
        let inodes = BTreeMap::from([(ROOT_INO, fs.root.clone())]);
        Session { fs, names: BTreeMap::new(), inodes, read: BTreeSet::new(), bulk_read, base_head }
    }

    /// The volume.
    pub fn fs(&mut self) -> &mut Ubifs<L> {
        &mut self.fs
    }

    /// An inode, read unless it is in memory (`ubifs_iget`).
    fn inode(&mut self, ino: u32) -> Result<Inode> {
        if let Some(inode) = self.inodes.get(&ino) {
            return Ok(inode.clone());
        }
        let inode = self.fs.inode(ino)?;
        self.inodes.insert(ino, inode.clone());
        Ok(inode)
    }

    /// A name in a directory, with its inode (`ubifs_lookup`).
    fn lookup(&mut self, dir: u32, name: &[u8]) -> Result<Option<Inode>> {
        let known = (dir, Box::from(name));
        if let Some(&ino) = self.names.get(&known) {
            return self.inode(ino).map(Some);
        }
        let Some(entry) = self.fs.lookup(dir, name)? else { return Ok(None) };
        let inode = self.inode(entry.target as u32)?;
        self.names.insert(known, inode.ino);
        Ok(Some(inode))
    }

    /// [`files::walk`] with this session's caches.
    fn walk(&mut self, path: &[u8], follow: bool) -> Result<(u32, Vec<u8>, Inode)> {
        let root = self.inode(ROOT_INO)?;
        files::walk(root, path, follow, |dir, name| self.lookup(dir, name))
    }

    /// `find PATH`: entries of each directory in the order of hashes, then the directories among them. `found` gets
    /// each path with its entry; the start has none.
    pub fn find(&mut self, path: &[u8], mut found: impl FnMut(&[u8], Option<&Entry>)) -> Result<()> {
        self.visit(path, false, &mut |path, entry, _| found(path, entry))
    }

    /// `find PATH -ls`: as [`Session::find`], and reads the inode of every entry.
    pub fn find_ls(&mut self, path: &[u8], mut found: impl FnMut(&[u8], &Inode)) -> Result<()> {
        self.visit(path, true, &mut |path, _, inode| {
            if let Some(inode) = inode {
                found(path, inode);
            }
        })
    }

    fn visit(&mut self, path: &[u8], every_inode: bool, found: Visitor) -> Result<()> {
        let (_, _, start) = self.walk(path, false)?;
        found(path, None, Some(&start));
        if start.file_type() != Some(FileType::Directory) {
            return Ok(());
        }
        // One list of entries for each level, the last entry first.
        let mut first = self.fs.read_dir(start.ino)?;
        first.reverse();
        let mut levels = vec![(start.ino, first)];
        let mut name = path.to_vec();
        let mut lengths = vec![name.len()];
        let mut visited = BTreeSet::from([start.ino]);
        while let Some((dir, entries)) = levels.last_mut() {
            let dir = *dir;
            let Some(entry) = entries.pop() else {
                levels.pop();
                lengths.pop();
                continue;
            };
            name.truncate(*lengths.last().unwrap_or(&0));
            if name.last() != Some(&b'/') {
                name.push(b'/');
            }
            name.extend_from_slice(&entry.name);
            let is_dir = entry.file_type() == Some(FileType::Directory);
            let inode = if every_inode || is_dir { self.lookup(dir, &entry.name)? } else { None };
            found(&name, Some(&entry), inode.as_ref());
            if is_dir && let Some(inode) = inode {
                // Otherwise a damaged volume could be walked for ever.
                if !visited.insert(inode.ino) {
                    let detail = format!("a directory with two names; one is {}", readpath_ubi::printable(&name));
                    return Err(self.fs.inode_damage(inode.ino, DamageKind::WrongLinkCount, detail));
                }
                let mut entries = self.fs.read_dir(inode.ino)?;
                entries.reverse();
                levels.push((inode.ino, entries));
                lengths.push(name.len());
            }
        }
        Ok(())
    }

    /// `find PATH -type f` until it ends, then `cat` of every file found.
    pub fn cat_all(&mut self, path: &[u8], mut sink: impl FnMut(&[u8])) -> Result<()> {
        // The directories of all paths are cached by then, so a file is opened by its last name alone.
        let mut files: Vec<(u32, Box<[u8]>)> = Vec::new();
        self.find(path, |_, entry| {
            if let Some(entry) = entry.filter(|e| e.file_type() == Some(FileType::Regular)) {
                files.push((entry.key.ino, entry.name.clone()));
            }
        })?;
        for (dir, name) in files {
            if let Some(inode) = self.lookup(dir, &name)? {
                self.read_once(&inode, &mut sink)?;
            }
        }
        Ok(())
    }

    /// Opens files one after the other and reads each from its beginning to its end.
    ///
    /// # Errors
    /// Also a path to anything but a regular file.
    pub fn read_files<'p>(
        &mut self,
        paths: impl IntoIterator<Item = &'p [u8]>,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<()> {
        for path in paths {
            let (_, _, inode) = self.walk(path, true)?;
            match inode.file_type() {
                Some(FileType::Regular) => self.read_once(&inode, &mut sink)?,
                Some(FileType::Directory) => {
                    return Err(UbifsError::path(path, "it is a directory; only regular files can be read"));
                }
                _ => return Err(UbifsError::path(path, "it is not a regular file; only those can be read")),
            }
        }
        Ok(())
    }

    /// Reads a file unless its pages are in memory.
    fn read_once(&mut self, inode: &Inode, sink: &mut impl FnMut(&[u8])) -> Result<()> {
        if inode.file_type() == Some(FileType::Regular) && self.read.insert(inode.ino) {
            self.read_pages(inode, sink)?;
        }
        Ok(())
    }

    /// Reads a file page by page (`ubifs_read_folio`, without read-ahead), or in bulk.
    fn read_pages(&mut self, inode: &Inode, sink: &mut impl FnMut(&[u8])) -> Result<()> {
        if !self.bulk_read {
            return self.fs.read_file(inode, |bytes| {
                sink(bytes);
                Ok(())
            });
        }
        self.fs.check_readable(inode)?;
        let blocks = inode.size.div_ceil(BLOCK_BYTES as u64);
        let mut out = [0; BLOCK_BYTES];
        let (mut at, mut in_a_row) = (0u64, 0);
        while at < blocks {
            in_a_row += 1;
            let block = at as u32;
            let mut passed = 0;
            if in_a_row >= 3 {
                let bulk = self.fs.read_bulk(inode, block, sink)?;
                passed = u64::from(bulk.pages);
                if bulk.ended {
                    // Behind the last stored block, bulk reading pauses.
                    in_a_row = u64::from(passed > 0);
                }
                if !bulk.fetched {
                    // Until a search ends at another place, the kernel needs only nodes in memory for the next pages.
                    let alike = u64::from(self.fs.hole_end(inode.ino, block)?).min(blocks) - at;
                    let again = if bulk.ended {
                        // Two single pages and one empty bulk read, repeatedly.
                        in_a_row = (alike - 1) % 3;
                        alike
                    } else {
                        // Empty bulk reads, the last of which ends before the next stored block.
                        ((alike - 1) / u64::from(MOST_BULK_BLOCKS) * u64::from(MOST_BULK_BLOCKS)).max(passed)
                    };
                    out.fill(0);
                    for page in at + passed..at + again {
                        sink(&out[..page_bytes(inode, page)]);
                    }
                    passed = again;
                }
            }
            if passed == 0 {
                if self.fs.read_block(inode.ino, block, &mut out)?.is_none() {
                    out.fill(0);
                }
                sink(&out[..page_bytes(inode, at)]);
                passed = 1;
            }
            at += passed;
        }
        Ok(())
    }

    /// `rm PATH` of a file: removes its entry, and with the last link its inode and the keys of all its data. It
    /// reads no data, but the whole part of the index that leads to it.
    pub fn rm(&mut self, path: &[u8]) -> Result<()> {
        let (dir, name, inode) = self.walk(path, false)?;
        let name = name.as_slice();
        if inode.file_type() == Some(FileType::Directory) {
            return Err(UbifsError::path(path, "it is a directory; only files can be removed"));
        }
        let last = inode.nlink <= 1;
        let entry_len = DENTRY_BYTES + name.len() as u32 + 1;
        let inode_len = INODE_BYTES + if last { 0 } else { inode.data.len() as u32 };
        let whole = align8(entry_len) + align8(inode_len) + INODE_BYTES;
        let (lnum, offset) = self.reserve(whole)?;
        if last {
            // The inode becomes an orphan first, and its attributes with it (`ubifs_add_orphan`).
            self.fs.entries(Key::xattr(inode.ino, 0))?;
        }
        let Ubifs { flash, tnc, .. } = &mut self.fs;
        let key = Key::dentry(dir, flash.sb.hash.of(name));
        tnc.remove_name(flash, key, name)?;
        flash.add_dirt(NodeRef { lnum, offset, len: entry_len })?;
        let offset = offset + align8(entry_len);
        tnc.add(flash, Key::inode(inode.ino), NodeRef { lnum, offset, len: inode_len })?;
        let offset = offset + align8(inode_len);
        tnc.add(flash, Key::inode(dir), NodeRef { lnum, offset, len: INODE_BYTES })?;
        self.names.remove(&(dir, Box::from(name)));
        if !last {
            if let Some(inode) = self.inodes.get_mut(&inode.ino) {
                inode.nlink -= 1;
            }
            return Ok(());
        }
        self.inodes.remove(&inode.ino);
        if inode.xattr_count > 0 {
            // The inode is rewritten, with those of its attributes, which are read for that.
            let count = INODE_BYTES.saturating_mul(inode.xattr_count.saturating_add(1));
            let (lnum, offset) = self.reserve(count)?;
            self.fs.xattrs(inode.ino)?;
            let Ubifs { flash, tnc, .. } = &mut self.fs;
            tnc.remove_inode(flash, inode.ino)?;
            return flash.add_dirt(NodeRef { lnum, offset, len: count });
        }
        let Ubifs { flash, tnc, .. } = &mut self.fs;
        tnc.remove_inode(flash, inode.ino)
    }

    /// Reserves room at the base head, in another block if the present one has too little (`reserve_space`).
    fn reserve(&mut self, bytes: u32) -> Result<(u32, u32)> {
        let whole = self.fs.flash.sb.leb_bytes;
        let (lnum, offset) = match self.base_head {
            Some((lnum, offset)) if bytes <= whole - offset => (lnum, offset),
            _ => {
                let from = self.fs.master.lscan_lnum;
                let mut found = None;
                self.fs.flash.with_lpt(|lpt, flash| {
                    found = lpt.find_free(flash, bytes, from)?;
                    Ok(())
                })?;
                match found {
                    Some((lnum, free)) => (lnum, whole - free),
                    None => return Err(UbifsError::path(b"/", "no block has room for a deletion")),
                }
            }
        };
        self.base_head = Some((lnum, offset + align8(bytes)));
        Ok((lnum, offset))
    }
}

impl<L: Lebs> Ubifs<L> {
    /// Reads up to 32 blocks of a file with consecutive nodes, from `block` on, with one read
    /// (`ubifs_tnc_get_bu_keys`, `ubifs_tnc_bulk_read`).
    fn read_bulk(&mut self, inode: &Inode, block: u32, sink: &mut impl FnMut(&[u8])) -> Result<Bulk> {
        let Ubifs { flash, tnc, .. } = self;
        let found = tnc.lookup(flash, Key::data(inode.ino, block))?;
        let mut nodes: Vec<(u32, NodeRef)> = Vec::new();
        let mut pages = 0u32;
        let mut previous = block;
        let mut end = 0;
        let mut spot = found.spot;
        if found.exact {
            let at = tnc.branch(spot).at;
            nodes.push((block, at));
            end = align8(at.offset + at.len);
            pages = 1;
        }
        let ended = loop {
            let Some(next) = tnc.next(flash, spot)? else { break true };
            spot = next;
            let branch = tnc.branch(spot);
            let (key, at) = (branch.key, branch.at);
            if key.ino != inode.ino || key.kind() != Some(KeyType::Data) {
                break true;
            }
            if let Some(&(_, first)) = nodes.first()
                && (at.lnum != first.lnum || at.offset != end || at.offset + at.len - first.offset > MOST_BULK_BYTES)
            {
                break false;
            }
            // Holes between blocks count; of one at the beginning the kernel counts one block too few.
            pages = pages.saturating_add((key.low() - previous).saturating_sub(1));
            if pages >= MOST_BULK_BLOCKS {
                break false;
            }
            previous = key.low();
            end = align8(at.offset + at.len);
            nodes.push((key.low(), at));
            pages += 1;
            if pages >= MOST_BULK_BLOCKS {
                break false;
            }
        };
        let pages = pages.min(MOST_BULK_BLOCKS);
        let mut bytes = Vec::new();
        let first = nodes.first().map_or(NodeRef::default(), |&(_, at)| at);
        if let Some(&(_, last)) = nodes.last() {
            bytes.resize((last.offset + last.len - first.offset) as usize, 0);
            flash.read(first.lnum, first.offset, &mut bytes, ReadKind::Bulk)?;
        }
        let mut out = [0; BLOCK_BYTES];
        for page in block..block.saturating_add(pages) {
            let from = u64::from(page) * BLOCK_BYTES as u64;
            let Some(left) = inode.size.checked_sub(from).filter(|&left| left > 0) else { break };
            match nodes.iter().find(|(b, _)| *b == page) {
                None => out.fill(0),
                Some(&(_, at)) => {
                    let node = &bytes[(at.offset - first.offset) as usize..][..at.len as usize];
                    let checked = node::check(node, flash.sb.fanout).map_err(|e| e.to_string());
                    let done = checked.and_then(|header| {
                        if header.kind != node::NodeType::Data || node::key_of(node) != Key::data(inode.ino, page) {
                            return Err(format!("not block {page} of inode {}", inode.ino));
                        }
                        files::expand(node, &mut flash.expander, &mut out)
                    });
                    done.map_err(|e| flash.damage(DamageKind::BadData, at, e))?;
                }
            }
            sink(&out[..left.min(BLOCK_BYTES as u64) as usize]);
        }
        Ok(Bulk { pages, ended, fetched: !nodes.is_empty() })
    }
}

/// Result of a bulk read.
struct Bulk {
    /// Pages that it filled.
    pages: u32,
    /// Whether no stored block of the file follows.
    ended: bool,
    /// Whether it read flash; it does not in a hole.
    fetched: bool,
}

/// Bytes of a page that are in the file.
fn page_bytes(inode: &Inode, page: u64) -> usize {
    (inode.size - page * BLOCK_BYTES as u64).min(BLOCK_BYTES as u64) as usize
}
