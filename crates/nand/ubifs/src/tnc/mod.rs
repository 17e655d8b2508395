// SPDX-License-Identifier: MIT OR Apache-2.0
//! The index in memory: nodes read on demand, one read of exactly a branch's length each, as Linux's tree node cache.
//!
//! Order and number of reads are those of `fs/ubifs/tnc.c`; changes (replay of the journal, deletion) happen in memory
//! only. This module knows keys and branches, not files.

mod change;
mod names;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use walk::Visit;

use crate::error::{DamageKind, Result};
use crate::flash::{Flash, NodeRef};
use crate::key::Key;
use crate::lebs::{Lebs, ReadKind};
use crate::node::{BRANCH_BYTES, Entry, INDEX_BYTES, NodeType, le16, le32};

/// No index node.
const NONE: u32 = u32::MAX;
/// Most levels of an index; 2^32 leaves with fanout 3 need fewer.
const MAX_LEVELS: u16 = 64;

/// A branch: the node that it leads to, and the part of that in memory.
#[derive(Clone, Debug)]
pub(crate) struct Branch {
    pub key: Key,
    pub at: NodeRef,
    /// Index node in memory.
    child: u32,
    /// Entry in memory, for keys with a hash.
    pub leaf: Option<Box<Entry>>,
}

impl Branch {
    fn to(key: Key, at: NodeRef) -> Branch {
        Branch { key, at, child: NONE, leaf: None }
    }
}

#[derive(Clone, Debug)]
struct Znode {
    parent: u32,
    /// Index of the parent's branch to this node.
    slot: u32,
    level: u16,
    dirty: bool,
    branches: Vec<Branch>,
}

/// A branch in memory. No longer valid after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    znode: u32,
    /// -1: before the first branch.
    slot: i32,
}

/// Where a key is or would be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lookup {
    pub exact: bool,
    pub spot: Spot,
}

/// The index.
#[derive(Debug)]
pub(crate) struct Tnc {
    root: Branch,
    znodes: Vec<Znode>,
    unused: Vec<u32>,
    /// Bytes of index nodes read so far.
    loaded_bytes: u64,
    /// Bytes of all mapped blocks. A walk that reads far more than that reads the same nodes repeatedly.
    mapped_bytes: u64,
    /// A journal is being replayed: names may lead to erased nodes.
    pub replaying: bool,
}

impl Tnc {
    pub(crate) fn new<L: Lebs>(flash: &Flash<L>, root: NodeRef) -> Tnc {
        let sb = &flash.sb;
        let mapped = (sb.main_first()..sb.leb_count).filter(|&lnum| flash.lebs.is_mapped(lnum)).count();
        let mapped_bytes = mapped as u64 * u64::from(sb.leb_bytes);
        let root = Branch::to(Key { ino: 0, rest: 0 }, root);
        Tnc { root, znodes: Vec::new(), unused: Vec::new(), loaded_bytes: 0, mapped_bytes, replaying: false }
    }

    pub(crate) fn branch(&self, spot: Spot) -> &Branch {
        &self.znodes[spot.znode as usize].branches[spot.slot as usize]
    }

    fn branch_mut(&mut self, spot: Spot) -> &mut Branch {
        &mut self.znodes[spot.znode as usize].branches[spot.slot as usize]
    }

    fn add_znode(&mut self, znode: Znode) -> u32 {
        match self.unused.pop() {
            Some(i) => {
                self.znodes[i as usize] = znode;
                i
            }
            None => {
                self.znodes.push(znode);
                (self.znodes.len() - 1) as u32
            }
        }
    }

    /// The root, read if need be.
    pub(crate) fn load_root<L: Lebs>(&mut self, flash: &mut Flash<L>) -> Result<u32> {
        if self.root.child == NONE {
            let znode = read_znode(flash, self.root.at, None)?;
            self.root.child = self.add_znode(znode);
        }
        Ok(self.root.child)
    }

    /// Child `slot` of a node, read if need be.
    fn load_child<L: Lebs>(&mut self, flash: &mut Flash<L>, parent: u32, slot: usize) -> Result<u32> {
        let branch = &self.znodes[parent as usize].branches[slot];
        if branch.child != NONE {
            return Ok(branch.child);
        }
        let p = &self.znodes[parent as usize];
        let branch = &p.branches[slot];
        // A walk drops nodes behind it, so a node may be read twice.
        let most = 2 * self.mapped_bytes;
        if self.loaded_bytes + u64::from(branch.at.len) > most {
            let detail =
                format!("more than {most} bytes of index nodes, twice what fits: some are referenced more than once");
            return Err(flash.damage(DamageKind::BadIndex, branch.at, detail));
        }
        self.loaded_bytes += u64::from(branch.at.len);
        let bounds = Above { level: p.level, least: branch.key, most: p.branches.get(slot + 1).map(|b| b.key) };
        let mut znode = read_znode(flash, branch.at, Some(bounds))?;
        znode.parent = parent;
        znode.slot = slot as u32;
        let child = self.add_znode(znode);
        self.znodes[parent as usize].branches[slot].child = child;
        Ok(child)
    }

    /// Finds the branch with the key, or else the last one before it (-1 if there is none). Among equal keys it is
    /// the one that bisection finds, as in `ubifs_search_zbranch`.
    fn search(&self, znode: u32, key: Key) -> (bool, i32) {
        let branches = &self.znodes[znode as usize].branches;
        let (mut lo, mut hi) = (0, branches.len());
        while lo < hi {
            let mid = (lo + hi) / 2;
            match key.cmp(&branches[mid].key) {
                std::cmp::Ordering::Less => hi = mid,
                std::cmp::Ordering::Greater => lo = mid + 1,
                std::cmp::Ordering::Equal => return (true, mid as i32),
            }
        }
        (false, lo as i32 - 1)
    }

    /// Finds a key in the lowest level (`ubifs_lookup_level0`).
    pub(crate) fn lookup<L: Lebs>(&mut self, flash: &mut Flash<L>, key: Key) -> Result<Lookup> {
        let mut znode = self.load_root(flash)?;
        loop {
            let (exact, slot) = self.search(znode, key);
            if self.znodes[znode as usize].level == 0 {
                let found = Lookup { exact, spot: Spot { znode, slot } };
                return if exact || !key.is_hashed() || slot != -1 {
                    Ok(found)
                } else {
                    self.look_left(flash, found, key)
                };
            }
            znode = self.load_child(flash, znode, slot.max(0) as usize)?;
        }
    }

    /// A repeated key may also be the last of the node to the left.
    fn look_left<L: Lebs>(&mut self, flash: &mut Flash<L>, at: Lookup, key: Key) -> Result<Lookup> {
        match self.previous(flash, at.spot)? {
            Some(spot) if self.branch(spot).key == key => Ok(Lookup { exact: true, spot }),
            // The kernel continues with slot -1 of the node on the left or of this one; nothing is inserted there.
            _ => Ok(at),
        }
    }

    /// The next branch of the lowest level; none at the end.
    pub(crate) fn next<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot) -> Result<Option<Spot>> {
        let Spot { mut znode, slot } = spot;
        if ((slot + 1) as usize) < self.znodes[znode as usize].branches.len() {
            return Ok(Some(Spot { znode, slot: slot + 1 }));
        }
        loop {
            let z = &self.znodes[znode as usize];
            if z.parent == NONE {
                return Ok(None);
            }
            let slot = z.slot as usize + 1;
            znode = z.parent;
            if slot < self.znodes[znode as usize].branches.len() {
                znode = self.load_child(flash, znode, slot)?;
                while self.znodes[znode as usize].level != 0 {
                    znode = self.load_child(flash, znode, 0)?;
                }
                return Ok(Some(Spot { znode, slot: 0 }));
            }
        }
    }

    /// The previous branch of the lowest level; `None` at the beginning.
    pub(crate) fn previous<L: Lebs>(&mut self, flash: &mut Flash<L>, spot: Spot) -> Result<Option<Spot>> {
        let Spot { mut znode, slot } = spot;
        if slot > 0 {
            return Ok(Some(Spot { znode, slot: slot - 1 }));
        }
        loop {
            let z = &self.znodes[znode as usize];
            if z.parent == NONE {
                return Ok(None);
            }
            let slot = z.slot;
            znode = z.parent;
            if slot > 0 {
                znode = self.load_child(flash, znode, slot as usize - 1)?;
                while self.znodes[znode as usize].level != 0 {
                    let last = self.znodes[znode as usize].branches.len() - 1;
                    znode = self.load_child(flash, znode, last)?;
                }
                let last = self.znodes[znode as usize].branches.len() - 1;
                return Ok(Some(Spot { znode, slot: last as i32 }));
            }
        }
    }

    /// The least key behind a spot at which a search takes another branch, at any level; `None` if there is none in
    /// memory. All keys from that of the spot up to it are found at the spot, and the index nodes on the way are in
    /// memory.
    pub(crate) fn next_bound(&self, spot: Spot) -> Option<Key> {
        let mut bound: Option<Key> = None;
        let (mut znode, mut slot) = (spot.znode, (spot.slot + 1) as usize);
        loop {
            let z = &self.znodes[znode as usize];
            if let Some(next) = z.branches.get(slot) {
                bound = Some(bound.map_or(next.key, |bound| bound.min(next.key)));
            }
            if z.parent == NONE {
                return bound;
            }
            (znode, slot) = (z.parent, z.slot as usize + 1);
        }
    }

    /// Whether the spot is the last of its index node.
    fn is_last(&self, spot: Spot) -> bool {
        spot.slot as usize + 1 == self.znodes[spot.znode as usize].branches.len()
    }
}

/// A parent's statements about a child.
struct Above {
    level: u16,
    least: Key,
    most: Option<Key>,
}

/// Reads an index node and refuses impossible contents (`ubifs_load_znode`, `read_znode`).
fn read_znode<L: Lebs>(flash: &mut Flash<L>, at: NodeRef, above: Option<Above>) -> Result<Znode> {
    let sb = flash.sb.clone();
    let node = flash.read_node(at, NodeType::Index, ReadKind::Index)?;
    let count = u32::from(le16(node, 24));
    let level = le16(node, 26);
    let mut problem = None;
    if count == 0 || count > sb.fanout || INDEX_BYTES + count * BRANCH_BYTES != at.len {
        problem = Some(format!("an index node of {} bytes with {count} children (at most {})", at.len, sb.fanout));
    } else if level > MAX_LEVELS || above.as_ref().is_some_and(|a| a.level != level + 1) {
        problem = Some(match &above {
            Some(a) => format!("an index node of level {level} below one of level {}", a.level),
            None => format!("an index of {level} levels, at most {MAX_LEVELS}"),
        });
    }
    let mut branches = Vec::new();
    let mut order = None;
    if problem.is_none() {
        branches.reserve_exact(count as usize);
        for i in 0..count as usize {
            let b = &node[INDEX_BYTES as usize + i * BRANCH_BYTES as usize..];
            let key = Key::parse(&b[12..]);
            let at = NodeRef { lnum: le32(b, 0), offset: le32(b, 4), len: le32(b, 8) };
            if !sb.in_main(at.lnum, at.offset, at.len) || !at.offset.is_multiple_of(8) {
                problem = Some(format!(
                    "branch {i} leads to {} bytes in block {} at {}, not to the main area",
                    at.len, at.lnum, at.offset
                ));
                break;
            }
            if level == 0 && key.kind().is_none() {
                problem = Some(format!("branch {i} has {key}, a type that does not exist"));
                break;
            }
            branches.push(Branch::to(key, at));
        }
        // Keys with the same hash may repeat in the lowest level, and above it if they fill more than one node.
        order = branches
            .windows(2)
            .position(|w| w[0].key > w[1].key || w[0].key == w[1].key && !w[0].key.is_hashed())
            .map(|i| format!("branch {} has {}, behind {}", i + 1, branches[i + 1].key, branches[i].key));
        if let (Some(above), Some(first), Some(last)) = (above, branches.first(), branches.last()) {
            if first.key < above.least {
                order = Some(format!("branch 0 has {}, its parent says at least {}", first.key, above.least));
            }
            if let Some(most) = above.most
                && last.key > most
            {
                order = Some(format!("the last branch has {}, its parent says at most {most}", last.key));
            }
        }
    }
    if let Some(problem) = problem {
        return Err(flash.damage(DamageKind::BadIndex, at, problem));
    }
    if let Some(order) = order {
        return Err(flash.damage(DamageKind::WrongKeyOrder, at, order));
    }
    Ok(Znode { parent: NONE, slot: 0, level, dirty: false, branches })
}
