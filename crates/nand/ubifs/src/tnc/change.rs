// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the index in memory: insertion with splitting, removal, and the account of unused bytes.
//!
//! Every index node that changes for the first time, and every node that becomes unreachable, is counted as dirt at
//! its block, for which properties are read. Nothing is written.

use super::{Branch, Lookup, MAX_LEVELS, NONE, Spot, Tnc, Znode};
use crate::error::{DamageKind, Result};
use crate::flash::NodeRef;
use crate::key::{Key, KeyType};
use crate::lebs::Lebs;
use crate::lpt::Space;

impl Tnc {
    /// Marks a node as changed and counts its old place as dirt (`dirty_cow_znode`).
    fn mark<L: Lebs>(&mut self, flash: &mut Space<L>, znode: u32) -> Result<()> {
        let z = &mut self.znodes[znode as usize];
        if z.dirty {
            return Ok(());
        }
        z.dirty = true;
        let (parent, slot) = (z.parent, z.slot);
        let at = match parent {
            NONE => self.root.at,
            parent => self.znodes[parent as usize].branches[slot as usize].at,
        };
        flash.add_dirt(at)
    }

    /// Marks a node and all unmarked nodes above it, from the top (`dirty_cow_bottom_up`).
    fn mark_up<L: Lebs>(&mut self, flash: &mut Space<L>, znode: u32) -> Result<()> {
        let mut path = [NONE; MAX_LEVELS as usize + 2];
        let mut n = 0;
        let mut at = znode;
        while at != NONE && !self.znodes[at as usize].dirty && n < path.len() {
            path[n] = at;
            n += 1;
            at = self.znodes[at as usize].parent;
        }
        for &znode in path[..n].iter().rev() {
            self.mark(flash, znode)?;
        }
        Ok(())
    }

    /// Finds a key and marks all nodes on the way (`lookup_level0_dirty`).
    fn lookup_to_change<L: Lebs>(&mut self, flash: &mut Space<L>, key: Key) -> Result<Lookup> {
        let mut znode = self.load_root(flash)?;
        self.mark(flash, znode)?;
        loop {
            let (exact, slot) = self.search(znode, key);
            if self.znodes[znode as usize].level == 0 {
                let mut found = Lookup { exact, spot: Spot { znode, slot } };
                if !exact && key.is_hashed() && slot == -1 {
                    found = self.look_left(flash, found, key)?;
                    if found.exact {
                        self.mark_up(flash, found.spot.znode)?;
                    }
                }
                return Ok(found);
            }
            znode = self.load_child(flash, znode, slot.max(0) as usize)?;
            self.mark(flash, znode)?;
        }
    }

    /// Changes the node that a branch leads to.
    fn replace<L: Lebs>(&mut self, flash: &mut Space<L>, spot: Spot, at: NodeRef) -> Result<()> {
        let branch = self.branch_mut(spot);
        branch.leaf = None;
        let old = std::mem::replace(&mut branch.at, at);
        flash.add_dirt(old)
    }

    /// Inserts or replaces a node with a unique key (`ubifs_tnc_add`).
    pub(crate) fn add<L: Lebs>(&mut self, flash: &mut Space<L>, key: Key, at: NodeRef) -> Result<()> {
        let found = self.lookup_to_change(flash, key)?;
        if found.exact {
            self.replace(flash, found.spot, at)
        } else {
            self.insert(flash, found.spot, Branch::to(key, at))
        }
    }

    /// Inserts or replaces an entry (`ubifs_tnc_add_nm`).
    pub(crate) fn add_name<L: Lebs>(&mut self, flash: &mut Space<L>, key: Key, at: NodeRef, name: &[u8]) -> Result<()> {
        let mut found = self.lookup_to_change(flash, key)?;
        if found.exact {
            found = self.resolve(flash, key, found.spot, name, true)?;
            self.mark_up(flash, found.spot.znode)?;
            if found.exact {
                return self.replace(flash, found.spot, at);
            }
        }
        self.insert(flash, found.spot, Branch::to(key, at))?;
        if self.replaying {
            // The entry may have been replaced since the commit; its old branch then leads nowhere, and no name
            // matches.
            return self.remove_name(flash, key, &[0]);
        }
        Ok(())
    }

    /// Removes an entry (`ubifs_tnc_remove_nm`).
    pub(crate) fn remove_name<L: Lebs>(&mut self, flash: &mut Space<L>, key: Key, name: &[u8]) -> Result<()> {
        let found = self.lookup_to_change(flash, key)?;
        if !found.exact {
            return Ok(());
        }
        let found = self.resolve(flash, key, found.spot, name, false)?;
        if !found.exact {
            return Ok(());
        }
        self.mark_up(flash, found.spot.znode)?;
        self.delete(flash, found.spot)
    }

    /// Removes all keys from `first` to `last` (`ubifs_tnc_remove_range`).
    pub(crate) fn remove_range<L: Lebs>(&mut self, flash: &mut Space<L>, first: Key, last: Key) -> Result<()> {
        loop {
            let found = self.lookup(flash, first)?;
            let mut spot = found.spot;
            if !found.exact {
                match self.next(flash, spot)? {
                    Some(next) => spot = next,
                    None => return Ok(()),
                }
            }
            if !(first..=last).contains(&self.branch(spot).key) {
                return Ok(());
            }
            self.mark_up(flash, spot.znode)?;
            let branches = &self.znodes[spot.znode as usize].branches;
            let from = spot.slot as usize + 1;
            let n = branches[from..].iter().take_while(|b| (first..=last).contains(&b.key)).count();
            for i in from..from + n {
                let at = self.znodes[spot.znode as usize].branches[i].at;
                flash.add_dirt(at)?;
            }
            self.znodes[spot.znode as usize].branches.drain(from..from + n);
            self.delete(flash, spot)?;
        }
    }

    /// Removes an inode with its data, entries and extended attributes (`ubifs_tnc_remove_ino`).
    pub(crate) fn remove_inode<L: Lebs>(&mut self, flash: &mut Space<L>, ino: u32) -> Result<()> {
        let mut key = Key::xattr(ino, 0);
        let mut name: Option<Box<[u8]>> = None;
        while let Some(spot) = self.next_entry(flash, key, name.as_deref())? {
            let entry = self.entry(flash, spot)?.clone();
            self.remove_name(flash, entry.key, &entry.name)?;
            let value = entry.target as u32;
            self.remove_range(flash, Key::inode(value), Key::last_of(value))?;
            key = entry.key;
            name = Some(entry.name);
        }
        self.remove_range(flash, Key::inode(ino), Key::last_of(ino))
    }

    /// Removes a branch of the lowest level, and index nodes that become empty (`tnc_delete`).
    fn delete<L: Lebs>(&mut self, flash: &mut Space<L>, spot: Spot) -> Result<()> {
        let Spot { mut znode, slot } = spot;
        let gone = self.znodes[znode as usize].branches.remove(slot as usize);
        flash.add_dirt(gone.at)?;
        if !self.znodes[znode as usize].branches.is_empty() {
            return Ok(());
        }
        // Nodes above that had only this child are removed as well.
        let slot = loop {
            let Znode { parent, slot, .. } = self.znodes[znode as usize];
            if parent == NONE {
                return Err(flash.damage(DamageKind::BadIndex, self.root.at, "nothing is left in the index"));
            }
            self.unused.push(znode);
            znode = parent;
            if self.znodes[znode as usize].branches.len() > 1 {
                break slot;
            }
        };
        self.znodes[znode as usize].branches.remove(slot as usize);
        self.renumber(znode, slot as usize);
        if self.znodes[znode as usize].parent == NONE {
            while self.znodes[znode as usize].branches.len() == 1 && self.znodes[znode as usize].level != 0 {
                let child = self.load_child(flash, znode, 0)?;
                self.mark(flash, child)?;
                let at = self.znodes[znode as usize].branches[0].at;
                self.unused.push(znode);
                self.znodes[child as usize].parent = NONE;
                self.znodes[child as usize].slot = 0;
                self.root.at = at;
                self.root.child = child;
                znode = child;
            }
        }
        Ok(())
    }

    /// Updates the slot number in children from branch `from` on.
    fn renumber(&mut self, znode: u32, from: usize) {
        for i in from..self.znodes[znode as usize].branches.len() {
            let child = self.znodes[znode as usize].branches[i].child;
            if child != NONE {
                let c = &mut self.znodes[child as usize];
                c.parent = znode;
                c.slot = i as u32;
            }
        }
    }

    /// The smallest key of a node became smaller, so nodes above may have to be corrected (`correct_parent_keys`).
    fn correct_keys_above(&mut self, mut znode: u32) {
        let key = self.znodes[znode as usize].branches[0].key;
        loop {
            let Znode { parent, slot, .. } = self.znodes[znode as usize];
            if parent == NONE || slot != 0 {
                return;
            }
            let above = &mut self.znodes[parent as usize].branches[0].key;
            if key >= *above {
                return;
            }
            *above = key;
            znode = parent;
        }
    }

    /// Inserts a branch behind a spot and splits nodes that become too large, as the kernel does (`tnc_insert`).
    fn insert<L: Lebs>(&mut self, flash: &mut Space<L>, behind: Spot, branch: Branch) -> Result<()> {
        let fanout = flash.sb.fanout as usize;
        let (mut znode, mut n) = (behind.znode, (behind.slot + 1) as usize);
        let mut branch = branch;
        // Whether the lowest level only grew at its end; then the levels above do as well.
        let mut appending = false;
        loop {
            let key = branch.key;
            let Znode { parent, slot, level, .. } = self.znodes[znode as usize];
            if self.znodes[znode as usize].branches.len() < fanout {
                self.put(znode, n, branch);
                if n == 0 {
                    self.correct_keys_above(znode);
                }
                return Ok(());
            }
            let branches = &self.znodes[znode as usize].branches;
            let same_file = |b: &Branch| b.key.ino == key.ino && b.key.kind() == Some(KeyType::Data);
            let is_data = level == 0 && key.kind() == Some(KeyType::Data);
            if is_data && n == fanout {
                appending = same_file(&branches[n - 1]);
            }
            // Consecutive blocks of a file stay together.
            let check_split = if is_data { n != fanout } else { appending && n != fanout };
            if check_split {
                appending = false;
            }
            let at_key = check_split
                && n >= fanout.div_ceil(2)
                && same_file(&branches[0])
                && branches.get(n).is_some_and(|b| !same_file(b));
            let (keep, into_new, at) = if at_key {
                (n, false, n)
            } else {
                let keep = if appending { fanout } else { fanout.div_ceil(2) };
                if n < keep { (keep - 1, false, n) } else { (keep, true, n - keep) }
            };
            let moved = self.znodes[znode as usize].branches.split_off(keep);
            let new = self.add_znode(Znode { parent, slot: 0, level, dirty: true, branches: moved });
            self.renumber(new, 0);
            self.put(if into_new { new } else { znode }, at, branch);
            if parent != NONE {
                if at == 0 && !into_new {
                    self.correct_keys_above(znode);
                }
                branch = Branch::to(self.znodes[new as usize].branches[0].key, NodeRef::default());
                branch.child = new;
                n = slot as usize + 1;
                znode = parent;
                continue;
            }
            let mut old = Branch::to(self.znodes[znode as usize].branches[0].key, self.root.at);
            old.child = znode;
            let mut added = Branch::to(self.znodes[new as usize].branches[0].key, NodeRef::default());
            added.child = new;
            let top = Znode { parent: NONE, slot: 0, level: level + 1, dirty: true, branches: vec![old, added] };
            let top = self.add_znode(top);
            self.renumber(top, 0);
            self.root.at = NodeRef::default();
            self.root.child = top;
            return Ok(());
        }
    }

    /// Puts a branch into a node that has room.
    fn put(&mut self, znode: u32, at: usize, branch: Branch) {
        self.znodes[znode as usize].branches.insert(at, branch);
        self.renumber(znode, at);
    }
}
