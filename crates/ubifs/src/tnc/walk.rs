// SPDX-License-Identifier: MIT OR Apache-2.0
//! A walk over the whole index that goes on behind damage and keeps in memory only the way to where it is.

use super::{NONE, Spot, Tnc};
use crate::error::{DamageKind, UbifsError};
use crate::flash::{Flash, NodeRef};
use crate::key::Key;
use crate::lebs::Lebs;

/// The shortest leaf: a data node of one byte, or an entry with a name of one.
const LEAST_LEAF_BYTES: u64 = 56;

/// What a walk comes by.
pub(crate) enum Visit {
    /// An index node that is on flash and in use.
    Index(NodeRef),
    /// A branch to a leaf.
    Leaf(Key, NodeRef),
    /// A part of the index that cannot be read.
    Damage(UbifsError),
}

impl Tnc {
    /// Shows index nodes and leaves in the order of keys. It ends with damage at the first leaf that is one more than the
    /// blocks have room for.
    pub fn walk<L: Lebs>(&mut self, flash: &mut Flash<L>, mut visit: impl FnMut(&mut Flash<L>, Visit)) {
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
                    let most = self.mapped_bytes / LEAST_LEAF_BYTES;
                    let detail =
                        format!("more than {most} leaves, which is all that fit: some are used again and again");
                    let error = flash.damage(DamageKind::BadIndex, node.lnum, node.offset, detail);
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

    /// Drops an index node that did not change; what is below it has been dropped or did not change either.
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
