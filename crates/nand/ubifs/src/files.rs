// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directories, files, links and attributes of a mounted volume.

use crate::compress::{BLOCK_BYTES, Compression};
use crate::error::{Damage, DamageKind, Result, UbifsError};
use crate::flash::{Flash, NodeRef};
use crate::key::{Key, KeyType, LOW_MASK};
use crate::lebs::Lebs;
use crate::node::{DATA_BYTES, Entry, FLAG_ENCRYPTED, FileType, Inode, align8, le16, le32};
use crate::volume::{MountMode, ROOT_INO, Ubifs};

/// Longest chain of symbolic links that is followed, as in Linux.
const MOST_LINKS: u32 = 40;

/// The most bytes of a file: as many blocks as keys can distinguish (`key_max_inode_size`).
pub(crate) const MAX_FILE_BYTES: u64 = (LOW_MASK as u64 + 1) * BLOCK_BYTES as u64;

/// An extended attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Its name, with the prefix.
    pub name: Box<[u8]>,
    /// Its value.
    pub value: Box<[u8]>,
}

/// A part of a file.
pub enum Piece<'a> {
    /// Bytes that are stored.
    Data(&'a [u8]),
    /// This many bytes that are not stored and read as zeros.
    Hole(u64),
}

impl<L: Lebs> Ubifs<L> {
    /// The entry of a name in a directory.
    pub fn lookup(&mut self, dir: u32, name: &[u8]) -> Result<Option<Entry>> {
        let key = Key::dentry(dir, self.flash.sb.hash.of(name));
        match self.tnc.lookup_name(&mut self.flash, key, name)? {
            Some(spot) => Ok(Some(self.tnc.entry(&mut self.flash, spot)?.clone())),
            None => Ok(None),
        }
    }

    /// Entries of a directory in the order of their hashes, as `getdents` gives them.
    pub fn read_dir(&mut self, dir: u32) -> Result<Vec<Entry>> {
        self.entries(Key::dentry(dir, 0))
    }

    /// Extended attributes of an inode.
    pub fn xattrs(&mut self, ino: u32) -> Result<Vec<Attribute>> {
        let entries = self.entries(Key::xattr(ino, 0))?;
        let value = |e: Entry| Ok(Attribute { value: self.inode(e.target as u32)?.data, name: e.name });
        entries.into_iter().map(value).collect()
    }

    /// Reads a directory that may be damaged: returns the readable entries. `damaged` gets the damage.
    ///
    /// # Errors
    /// Errors other than damage end the walk.
    pub fn read_dir_around(&mut self, dir: u32, mut damaged: impl FnMut(Damage)) -> Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut end = Ok(());
        self.tnc.walk_entries(&mut self.flash, Key::dentry(dir, 0), |flash, found| {
            let error = match found {
                Ok((entry, at)) => {
                    let order = check_order(flash, entries.last(), entry, at);
                    entries.push(entry.clone());
                    order.err()
                }
                Err(e) => Some(e),
            };
            match error {
                None => {}
                Some(UbifsError::Damage(damage)) => damaged(damage),
                Some(other) => end = Err(other),
            }
        });
        end.map(|()| entries)
    }

    pub(crate) fn entries(&mut self, first: Key) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut next = self.tnc.next_entry(&mut self.flash, first, None)?;
        while let Some(spot) = next {
            let entry = self.tnc.entry(&mut self.flash, spot)?.clone();
            let at = self.tnc.branch(spot).at;
            check_order(&self.flash, entries.last(), &entry, at)?;
            let (key, name) = (entry.key, entry.name.clone());
            entries.push(entry);
            next = match self.mode {
                MountMode::Inspect => self.tnc.entry_behind(&mut self.flash, spot)?,
                // The kernel searches for each name again to find the next.
                _ => self.tnc.next_entry(&mut self.flash, key, Some(&name))?,
            };
        }
        Ok(entries)
    }

    /// Reads block `block` of a file. `None` is a hole; otherwise all 4096 bytes, with zeros behind the stored ones.
    pub fn read_block<'a>(&mut self, ino: u32, block: u32, out: &'a mut [u8; BLOCK_BYTES]) -> Result<Option<&'a [u8]>> {
        let found = self.tnc.lookup(&mut self.flash, Key::data(ino, block))?;
        if !found.exact {
            return Ok(None);
        }
        self.tnc.read_leaf(&mut self.flash, found.spot)?;
        let at = self.tnc.branch(found.spot).at;
        let (node, expander) = self.flash.node_and_expander();
        match expand(node, expander, out) {
            Ok(()) => Ok(Some(out)),
            Err(e) => Err(self.flash.damage(DamageKind::BadData, at, e)),
        }
    }

    /// Checks that a file can be read up to its size.
    pub(crate) fn check_readable(&mut self, inode: &Inode) -> Result<()> {
        if inode.flags & FLAG_ENCRYPTED != 0 {
            return Err(UbifsError::Unsupported(format!("inode {} is encrypted", inode.ino)));
        }
        if inode.size > MAX_FILE_BYTES {
            let detail = format!("a size of {} bytes, at most {MAX_FILE_BYTES} are possible", inode.size);
            return Err(self.inode_damage(inode.ino, DamageKind::BadInode, detail));
        }
        Ok(())
    }

    /// Damage at the place of an inode, which is searched for only now.
    pub(crate) fn inode_damage(&mut self, ino: u32, kind: DamageKind, detail: String) -> UbifsError {
        match self.tnc.lookup(&mut self.flash, Key::inode(ino)) {
            Ok(found) => {
                let at = self.tnc.branch(found.spot).at;
                self.flash.damage(kind, at, format!("inode {ino}: {detail}"))
            }
            Err(e) => e,
        }
    }

    /// Passes a file's bytes to `sink`, holes as zeros, at most 4096 bytes at a time. A hole is searched for as often
    /// as that changes the reads of flash.
    pub fn read_file<E: From<UbifsError>>(
        &mut self,
        inode: &Inode,
        mut sink: impl FnMut(&[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.read_pieces(inode, |piece| match piece {
            Piece::Data(bytes) => sink(bytes),
            Piece::Hole(mut bytes) => {
                while bytes > 0 {
                    let n = bytes.min(BLOCK_BYTES as u64);
                    sink(&[0; BLOCK_BYTES][..n as usize])?;
                    bytes -= n;
                }
                Ok(())
            }
        })
    }

    /// Passes the stored bytes of a file to `sink`, at most 4096 bytes at a time, and the lengths of its holes.
    pub fn read_pieces<E: From<UbifsError>>(
        &mut self,
        inode: &Inode,
        mut sink: impl FnMut(Piece) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.check_readable(inode)?;
        let mut out = [0; BLOCK_BYTES];
        let mut left = inode.size;
        let blocks = inode.size.div_ceil(BLOCK_BYTES as u64) as u32;
        let mut block = 0;
        while block < blocks {
            match self.read_block(inode.ino, block, &mut out)? {
                Some(_) => {
                    let n = left.min(BLOCK_BYTES as u64);
                    sink(Piece::Data(&out[..n as usize]))?;
                    left -= n;
                    block += 1;
                }
                None => {
                    let end = self.hole_end(inode.ino, block)?.min(blocks);
                    let n = left.min(u64::from(end - block) * BLOCK_BYTES as u64);
                    sink(Piece::Hole(n))?;
                    left -= n;
                    block = end;
                }
            }
        }
        Ok(())
    }

    /// Bytes of flash that the data nodes of a file take: compressed, with their headers. Holes take none.
    ///
    /// # Errors
    /// When the file or the index cannot be read.
    pub fn occupied_bytes(&mut self, inode: &Inode) -> Result<u64> {
        self.check_readable(inode)?;
        let (mut bytes, mut block) = (0, 0);
        let blocks = inode.size.div_ceil(BLOCK_BYTES as u64) as u32;
        while block < blocks {
            let found = self.tnc.lookup(&mut self.flash, Key::data(inode.ino, block))?;
            if found.exact {
                bytes += u64::from(align8(self.tnc.branch(found.spot).at.len));
                block += 1;
            } else {
                block = self.hole_end(inode.ino, block)?;
            }
        }
        Ok(bytes)
    }

    /// The first block behind `block`, which is not stored, whose search may end at another place of the index or
    /// read more of it.
    pub(crate) fn hole_end(&mut self, ino: u32, block: u32) -> Result<u32> {
        let found = self.tnc.lookup(&mut self.flash, Key::data(ino, block))?;
        Ok(match self.tnc.next_bound(found.spot) {
            Some(key) if key.ino == ino && key.kind() == Some(KeyType::Data) => key.low().max(block + 1),
            _ => u32::MAX,
        })
    }

    /// The inode of an absolute path, or of one relative to the root; `follow` also follows a symbolic link at its
    /// end.
    pub fn resolve(&mut self, path: &[u8], follow: bool) -> Result<Inode> {
        let root = self.inode(ROOT_INO)?;
        let lookup = |dir, name: &[u8]| match self.lookup(dir, name)? {
            Some(entry) => self.inode(entry.target as u32).map(Some),
            None => Ok(None),
        };
        walk(root, path, follow, lookup).map(|(_, _, inode)| inode)
    }
}

/// Follows a path from the root; returns inode of the last directory, last name, its inode. Symbolic links are
/// followed on the way, and at the end only with `follow`.
pub(crate) fn walk(
    root: Inode,
    path: &[u8],
    follow: bool,
    mut lookup: impl FnMut(u32, &[u8]) -> Result<Option<Inode>>,
) -> Result<(u32, Vec<u8>, Inode)> {
    let mut above: Vec<Inode> = Vec::new();
    let mut at = root;
    let mut last = b".".to_vec();
    let mut todo = components(path);
    let mut links = 0;
    while let Some(name) = todo.pop() {
        if at.file_type() != Some(FileType::Directory) {
            return Err(UbifsError::path(path, "a part of it is not a directory"));
        }
        if name == b".." {
            at = above.pop().unwrap_or(at);
        }
        if name == b"." || name == b".." {
            continue;
        }
        let Some(inode) = lookup(at.ino, &name)? else {
            return Err(UbifsError::path(path, "no such file or directory"));
        };
        if inode.file_type() == Some(FileType::Symlink) && (follow || !todo.is_empty()) {
            links += 1;
            if links > MOST_LINKS {
                return Err(UbifsError::path(path, "more than 40 symbolic links"));
            }
            if inode.data.first() == Some(&b'/') {
                at = above.drain(..).next().unwrap_or(at);
            }
            todo.extend(components(&inode.data));
            continue;
        }
        above.push(std::mem::replace(&mut at, inode));
        last = name;
    }
    let dir = above.last().map_or(ROOT_INO, |dir| dir.ino);
    Ok((dir, last, at))
}

/// Checks that an entry, which is at `at`, sorts behind the one before it.
fn check_order<L: Lebs>(flash: &Flash<L>, before: Option<&Entry>, entry: &Entry, at: NodeRef) -> Result<()> {
    if before.is_some_and(|before| (before.key, &before.name) >= (entry.key, &entry.name)) {
        let detail = "entries of one hash are not in the order of their names";
        return Err(flash.damage(DamageKind::WrongKeyOrder, at, detail));
    }
    Ok(())
}

/// Names of a path, the last first. A slash at the end requires a directory, as a final `.` does (POSIX, pathname
/// resolution).
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    let directory = path.ends_with(b"/").then_some(&b"."[..]);
    let names = path.split(|&b| b == b'/').filter(|name| !name.is_empty());
    directory.into_iter().chain(names.rev()).map(<[u8]>::to_vec).collect()
}

/// Decompresses a data node into a whole block.
pub(crate) fn expand(
    node: &[u8],
    expander: &mut crate::compress::Expander,
    out: &mut [u8; BLOCK_BYTES],
) -> std::result::Result<(), String> {
    let size = le32(node, 40) as usize;
    if size == 0 || size > BLOCK_BYTES {
        return Err(format!("a block of {size} bytes, expected 1 to {BLOCK_BYTES}"));
    }
    let number = le16(node, 44);
    let how = Compression::from_number(number).ok_or_else(|| format!("unknown compression {number}"))?;
    let n = expander.expand(how, &node[DATA_BYTES as usize..], out)?;
    if n != size {
        return Err(format!("{n} bytes came out, the node says {size}"));
    }
    out[size..].fill(0);
    Ok(())
}
