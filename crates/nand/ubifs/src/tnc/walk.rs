// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks that continue behind damage: over the whole index, keeping only the path to the present node in memory, and
//! over the entries of one inode.

use super::{NONE, Spot, Tnc};
use crate::error::{DamageKind, Result, UbifsError};
use crate::flash::{Flash, NodeRef};
use crate::key::{Key, LOW_MASK};
use crate::lebs::Lebs;
use crate::node::Entry;

/// The shortest leaf: a data node of one byte, or an entry with a name of one.
const LEAST_LEAF_BYTES: u64 = 56;

/// A visit of a walk.
pub(crate) enum Visit {
    /// An index node that is on flash and in use.
    Index(NodeRef),
    /// A branch to a leaf.
    Leaf(Key, NodeRef),
    /// A part of the index that cannot be read.
    Damage(UbifsError),
}

impl Tnc {
    /// Visits index nodes and leaves in the order of keys. It ends with damage as soon as there are more leaves than
    /// the blocks have room for.
    pub(crate) fn walk<L: Lebs>(&mut self, flash: &mut Flash<L>, mut visit: impl FnMut(&mut Flash<L>, Visit)) {
        let mut at = match self.load_root(flash) {
            Ok(root) => Spot { znode: root, slot: 0 },
            Err(e) => return visit(flash, Visit::Damage(e)),
        };
        if !self.znodes[at.znode as usize].dirty {
            visit(flash, Visit::Index(self.root.at));
        }
        let mut room = self.mapped_bytes / LEAST_LEAF_BYTES;
        loop {
            let z = &self.znodes[at.znode as usize];
            let Some(branch) = z.branches.get(at.slot as usize) else {
                let (parent, slot) = (z.parent, z.slot);
                if parent == NONE {
                    return;
                }
                self.forget(at.znode);
                at = Spot { znode: parent, slot: slot as i32 + 1 };
                continue;
            };
            if z.level == 0 {
                let (key, node) = (branch.key, branch.at);
                if room == 0 {
                    let error = self.too_many_leaves(flash, node);
                    return visit(flash, Visit::Damage(error));
                }
                room -= 1;
                visit(flash, Visit::Leaf(key, node));
                at.slot += 1;
                continue;
            }
            let node = branch.at;
            match self.load_child(flash, at.znode, at.slot as usize) {
                Ok(child) => {
                    if !self.znodes[child as usize].dirty {
                        visit(flash, Visit::Index(node));
                    }
                    at = Spot { znode: child, slot: 0 };
                }
                Err(e) => {
                    visit(flash, Visit::Damage(e));
                    at.slot += 1;
                }
            }
        }
    }

    /// Visits the entries from `first` on of its inode and type, with their places, in the order of keys. An
    /// unreadable entry is visited as its damage, and so is a part of the index that may lead to further ones. It
    /// ends as [`Tnc::walk`] does.
    pub(crate) fn walk_entries<L: Lebs>(
        &mut self,
        flash: &mut Flash<L>,
        first: Key,
        mut visit: impl FnMut(&mut Flash<L>, Result<(&Entry, NodeRef)>),
    ) {
        let last = Key { rest: first.rest | LOW_MASK, ..first };
        let mut znode = match self.load_root(flash) {
            Ok(root) => root,
            Err(e) => return visit(flash, Err(e)),
        };
        let mut room = self.mapped_bytes / LEAST_LEAF_BYTES;
        // The last branch not behind the first key may lead to that key.
        let mut slot = self.search(znode, first).1.max(0) as usize;
        loop {
            let z = &self.znodes[znode as usize];
            let Some(branch) = z.branches.get(slot) else {
                (znode, slot) = (z.parent, z.slot as usize + 1);
                if znode == NONE {
                    return;
                }
                continue;
            };
            let (key, at) = (branch.key, branch.at);
            if key > last {
                return;
            }
            if z.level > 0 {
                match self.load_child(flash, znode, slot) {
                    Ok(child) => (znode, slot) = (child, self.search(child, first).1.max(0) as usize),
                    Err(e) => {
                        visit(flash, Err(e));
                        slot += 1;
                    }
                }
                continue;
            }
            if key >= first {
                if room == 0 {
                    return visit(flash, Err(self.too_many_leaves(flash, at)));
                }
                room -= 1;
                match self.entry(flash, Spot { znode, slot: slot as i32 }) {
                    Ok(entry) => visit(flash, Ok((entry, at))),
                    Err(e) => visit(flash, Err(e)),
                }
            }
            slot += 1;
        }
    }

    fn too_many_leaves<L: Lebs>(&self, flash: &Flash<L>, node: NodeRef) -> UbifsError {
        let most = self.mapped_bytes / LEAST_LEAF_BYTES;
        let detail = format!("more than {most} leaves, which is all that fit: some are referenced more than once");
        flash.damage(DamageKind::BadIndex, node, detail)
    }

    /// Drops an unchanged index node; the nodes below it have been dropped or are unchanged too.
    fn forget(&mut self, znode: u32) {
        let z = &mut self.znodes[znode as usize];
        if z.dirty || z.parent == NONE {
            return;
        }
        z.branches = Vec::new();
        let (parent, slot) = (z.parent, z.slot);
        self.znodes[parent as usize].branches[slot as usize].child = NONE;
        self.unused.push(znode);
    }
}
