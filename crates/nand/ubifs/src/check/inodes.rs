// SPDX-License-Identifier: MIT OR Apache-2.0
//! Consistency of inodes, entries and data. Leaves come in the order of keys: an inode, its data, its entries.

use super::report::Check;
use crate::compress::{BLOCK_BYTES, Compression};
use crate::error::DamageKind;
use crate::files::MAX_FILE_BYTES;
use crate::flash::NodeRef;
use crate::key::{Key, KeyType};
use crate::node::{DENTRY_BYTES, Entry, FLAG_XATTR, FileType, INODE_BYTES, Inode, MAX_INLINE_BYTES, align8};
use crate::volume::ROOT_INO;
use readpath_ubi::printable;

/// Fields kept of an inode.
#[derive(Clone, Copy, Debug)]
struct Known {
    ino: u32,
    nlink: u32,
    kind: Option<FileType>,
    is_value: bool,
    /// Bytes of the file or value.
    size: u64,
    /// Its attributes according to its node: their number, bytes of their names, bytes that they take.
    xattrs: u32,
    xattr_names: u32,
    xattr_bytes: u32,
    at: NodeRef,
}

/// Fields kept of an entry.
#[derive(Clone, Copy, Debug)]
struct Link {
    target: u32,
    from: u32,
    kind: Option<FileType>,
    is_xattr: bool,
    name_bytes: u8,
    at: NodeRef,
}

/// The inode whose keys are being visited.
#[derive(Clone, Copy, Debug)]
struct Current {
    ino: u32,
    /// Fields of its node; `None` if the node is missing or damaged.
    inode: Option<Known>,
    at: NodeRef,
    entries_bytes: u64,
    xattrs: u32,
    xattr_names: u64,
    /// A part of it is damaged, so its sums cannot be checked.
    lost: bool,
    missing_reported: bool,
}

/// Inodes and entries seen so far.
#[derive(Debug, Default)]
pub(super) struct Inodes {
    inodes: Vec<Known>,
    links: Vec<Link>,
    current: Option<Current>,
    /// Inodes whose own node is damaged.
    damaged: Vec<u32>,
    /// A part of the index is unreadable, so nothing counts as missing.
    pub incomplete: bool,
}

impl Inodes {
    /// Notes a leaf that could not be read.
    pub(super) fn lost(&mut self, key: Key) {
        match key.kind() {
            Some(KeyType::Inode) => self.damaged.push(key.ino),
            Some(KeyType::Data) => return,
            // With an entry lost, links can no longer be counted.
            _ => self.incomplete = true,
        }
        match &mut self.current {
            Some(current) if current.ino == key.ino => current.lost = true,
            current => {
                *current =
                    Some(Current { lost: true, missing_reported: true, ..Current::new(key.ino, NodeRef::default()) })
            }
        }
    }

    pub(super) fn inode(&mut self, check: &mut Check, inode: &Inode, at: NodeRef) {
        self.leave(check);
        let kind = inode.file_type();
        let mut bad = |detail: String| check.damage(DamageKind::BadInode, at, detail);
        match kind {
            None => bad(format!("mode {:#o} is of no type of file", inode.mode)),
            Some(FileType::Symlink) if inode.data.is_empty() || inode.size != inode.data.len() as u64 => {
                bad(format!("a symbolic link of {} bytes with a target of {}", inode.size, inode.data.len()));
            }
            Some(FileType::Block | FileType::Character) if inode.device().is_none() => {
                bad(format!("a device with a number of {} bytes, expected 4 or 8", inode.data.len()));
            }
            _ => {}
        }
        if inode.size > MAX_FILE_BYTES {
            bad(format!("a size of {} bytes, at most {MAX_FILE_BYTES} are possible", inode.size));
        }
        let is_value = inode.flags & FLAG_XATTR != 0;
        if is_value && inode.data.len() as u64 != inode.size && inode.size <= u64::from(MAX_INLINE_BYTES) {
            bad(format!("an attribute value of {} bytes, {} are there", inode.size, inode.data.len()));
        }
        // Linux opens none of these.
        if let Some(kind) = kind {
            let name = kind.name();
            if is_value && kind != FileType::Regular {
                bad(format!("an attribute value that is a {name}, expected a regular file"));
            }
            let may_have_data = is_value || matches!(kind, FileType::Symlink | FileType::Block | FileType::Character);
            if !may_have_data && !inode.data.is_empty() {
                bad(format!("a {name} with {} bytes of data in its node, expected none", inode.data.len()));
            }
        }
        if Compression::from_number(inode.compression).is_none() {
            bad(format!("compression {}, expected 0 to 3", inode.compression));
        }
        let known = Known {
            ino: inode.ino,
            nlink: inode.nlink,
            kind,
            is_value,
            size: inode.size,
            xattrs: inode.xattr_count,
            xattr_names: inode.xattr_names_bytes,
            xattr_bytes: inode.xattr_bytes,
            at,
        };
        self.inodes.push(known);
        self.current = Some(Current { inode: Some(known), ..Current::new(inode.ino, at) });
    }

    /// The state of `key`'s inode; reports once if the inode is missing.
    fn current_of(&mut self, check: &mut Check, key: Key, at: NodeRef) -> &mut Current {
        if self.current.is_none_or(|c| c.ino != key.ino) {
            self.leave(check);
            self.current = Some(Current::new(key.ino, at));
        }
        let incomplete = self.incomplete;
        let current = self.current.get_or_insert(Current::new(key.ino, at));
        if current.inode.is_none() && !current.missing_reported && !incomplete {
            current.missing_reported = true;
            check.damage(DamageKind::MissingInode, at, format!("{key}, but no inode {}", key.ino));
        }
        current
    }

    pub(super) fn data(&mut self, check: &mut Check, key: Key, bytes: u32, at: NodeRef) {
        let current = self.current_of(check, key, at);
        let Some(Known { size, kind, is_value, .. }) = current.inode else { return };
        let begin = u64::from(key.low()) * BLOCK_BYTES as u64;
        if begin + u64::from(bytes) > size {
            let detail = format!("{bytes} bytes from byte {begin} on of inode {}, whose size is {size}", key.ino);
            check.damage(DamageKind::DataBeyondSize, at, detail);
        } else if is_value || kind.is_some_and(|kind| kind != FileType::Regular) {
            let what = if is_value { "an attribute value" } else { kind.map_or("", FileType::name) };
            let detail = format!("data of inode {}, which is {what}; only regular files have data nodes", key.ino);
            check.damage(DamageKind::DataBeyondSize, at, detail);
        }
    }

    pub(super) fn entry(&mut self, check: &mut Check, entry: &Entry, at: NodeRef) {
        let is_xattr = entry.key.kind() == Some(KeyType::Xattr);
        if !is_xattr && (matches!(&*entry.name, b"." | b"..") || entry.name.contains(&b'/')) {
            let detail = format!("the name \"{}\", which no file can have", printable(&entry.name));
            check.damage(DamageKind::BadEntry, at, detail);
        }
        if entry.target == u64::from(ROOT_INO) {
            check.damage(DamageKind::BadEntry, at, "it leads to inode 1, the root directory, which has no name");
        }
        let current = self.current_of(check, entry.key, at);
        if is_xattr {
            current.xattrs += 1;
            current.xattr_names += entry.name.len() as u64;
        } else {
            current.entries_bytes += u64::from(align8(DENTRY_BYTES + entry.name.len() as u32 + 1));
            if current.inode.is_some_and(|said| said.kind != Some(FileType::Directory)) {
                let detail = format!("an entry of inode {}, which is not a directory", entry.key.ino);
                check.damage(DamageKind::BadEntry, at, detail);
            }
        }
        self.links.push(Link {
            target: entry.target as u32,
            from: entry.key.ino,
            kind: entry.file_type(),
            is_xattr,
            name_bytes: entry.name.len() as u8,
            at,
        });
    }

    /// Ends an inode after its last key.
    fn leave(&mut self, check: &mut Check) {
        let Some(c) = self.current.take() else { return };
        let Some(Known { size, xattrs, xattr_names, kind, .. }) = c.inode else { return };
        let is_dir = kind == Some(FileType::Directory);
        if c.lost || self.incomplete {
            return;
        }
        let wanted = u64::from(INODE_BYTES) + c.entries_bytes;
        if is_dir && size != wanted {
            let detail = format!("directory {} has size {size}, its entries make it {wanted}", c.ino);
            check.damage(DamageKind::WrongCount, c.at, detail);
        }
        if c.xattrs != xattrs || c.xattr_names != u64::from(xattr_names) {
            let detail = format!(
                "inode {} has {xattrs} attributes with {xattr_names} bytes of names, found are {} with {}",
                c.ino, c.xattrs, c.xattr_names
            );
            check.damage(DamageKind::WrongCount, c.at, detail);
        }
    }

    /// Ends the check after the last key.
    pub(super) fn finish(&mut self, check: &mut Check) {
        self.leave(check);
        let known = |ino: u32, inodes: &[Known]| inodes.binary_search_by_key(&ino, |k| k.ino).ok();
        if !self.inodes.is_sorted_by_key(|k| k.ino) {
            // The order of keys was wrong.
            return;
        }
        // Entries to each inode, sub-directories of each directory, and the directory above.
        let mut links = vec![(0u32, 0u32, None::<u32>); self.inodes.len()];
        // Bytes that the attributes of each inode take.
        let mut xattr_bytes = vec![0u64; self.inodes.len()];
        for link in &self.links {
            let Some(i) = known(link.target, &self.inodes) else {
                if !self.incomplete && self.damaged.binary_search(&link.target).is_err() {
                    let detail = format!("it leads to inode {}, which does not exist", link.target);
                    check.damage(DamageKind::DanglingEntry, link.at, detail);
                }
                continue;
            };
            let target = &self.inodes[i];
            let wrong = if link.is_xattr { !target.is_value } else { link.kind != target.kind || target.is_value };
            if wrong {
                let name = |k: Option<FileType>| k.map_or("of no type", FileType::name);
                let what = if target.is_value { "an attribute value" } else { name(target.kind) };
                let detail = if link.is_xattr {
                    format!("an attribute that leads to inode {}, which is {what}", link.target)
                } else {
                    format!("an entry for a {}, inode {} is {what}", name(link.kind), link.target)
                };
                check.damage(DamageKind::WrongEntryType, link.at, detail);
            }
            links[i].0 += 1;
            links[i].2 = Some(link.from);
            if link.is_xattr
                && let Some(from) = known(link.from, &self.inodes)
            {
                let entry = align8(DENTRY_BYTES + u32::from(link.name_bytes) + 1);
                // The node of a value counts one byte more than it has (`CALC_XATTR_BYTES`).
                let value = (u64::from(INODE_BYTES) + 1).saturating_add(target.size).saturating_add(7) & !7;
                xattr_bytes[from] = xattr_bytes[from].saturating_add(value.saturating_add(entry.into()));
            }
            if target.kind == Some(FileType::Directory)
                && let Some(i) = known(link.from, &self.inodes)
            {
                links[i].1 += 1;
            }
        }
        if self.incomplete {
            return;
        }
        for (inode, &bytes) in self.inodes.iter().zip(&xattr_bytes) {
            if u64::from(inode.xattr_bytes) != bytes && self.damaged.is_empty() {
                let (ino, said) = (inode.ino, inode.xattr_bytes);
                let detail = format!("inode {ino} has attributes of {said} bytes, those found take {bytes}");
                check.damage(DamageKind::WrongCount, inode.at, detail);
            }
        }
        for (inode, &(count, subdirs, _)) in self.inodes.iter().zip(&links) {
            let is_dir = inode.kind == Some(FileType::Directory) && !inode.is_value;
            let is_root = inode.ino == ROOT_INO;
            let from_damaged = !self.damaged.is_empty();
            if count == 0 && !is_root {
                let why = if inode.nlink == 0 { ", and it was to be deleted" } else { "" };
                let detail = format!("no entry leads to inode {}{why}", inode.ino);
                check.damage(DamageKind::UnreachableInode, inode.at, detail);
                continue;
            }
            let wanted = if is_dir { subdirs + 2 } else { count };
            if inode.nlink != wanted && !(is_dir && from_damaged) {
                let detail = format!("inode {} has {} links, found are {wanted}", inode.ino, inode.nlink);
                check.damage(DamageKind::WrongLinkCount, inode.at, detail);
            }
            if count > 1 && (is_dir || inode.is_value) {
                let detail = format!("{count} entries lead to inode {}, at most one may", inode.ino);
                check.damage(DamageKind::WrongLinkCount, inode.at, detail);
            }
        }
        self.check_roots(check, &links);
        if known(ROOT_INO, &self.inodes).is_none() && self.damaged.binary_search(&ROOT_INO).is_err() {
            check.damage(DamageKind::MissingInode, (0, 0), "there is no inode 1, the root directory");
        }
    }

    /// Reports directories that are reachable only from each other.
    fn check_roots(&self, check: &mut Check, links: &[(u32, u32, Option<u32>)]) {
        // 0 unknown, 1 being followed, 2 known to end at the root or at a reported directory.
        let mut state = vec![0u8; self.inodes.len()];
        for start in 0..self.inodes.len() {
            if self.inodes[start].kind != Some(FileType::Directory) {
                continue;
            }
            let mut way = Vec::new();
            let mut at = start;
            while state[at] == 0 {
                state[at] = 1;
                way.push(at);
                let above = if self.inodes[at].ino == ROOT_INO { None } else { links[at].2 };
                let Some(above) = above else { break };
                let Ok(i) = self.inodes.binary_search_by_key(&above, |k| k.ino) else { break };
                at = i;
                if state[at] == 1 {
                    let inode = &self.inodes[at];
                    let detail = format!("directory {} lies within itself, no way leads to the root", inode.ino);
                    check.damage(DamageKind::UnreachableInode, inode.at, detail);
                }
            }
            for i in way {
                state[i] = 2;
            }
        }
    }
}

impl Current {
    fn new(ino: u32, at: NodeRef) -> Current {
        Current {
            ino,
            inode: None,
            at,
            entries_bytes: 0,
            xattrs: 0,
            xattr_names: 0,
            lost: false,
            missing_reported: false,
        }
    }
}
