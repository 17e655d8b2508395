// SPDX-License-Identifier: MIT OR Apache-2.0
//! A check of a whole volume that names everything that is wrong and goes on behind it.
//!
//! The volume is seen as after a mount: the journal is applied, torn ends are cut off. So an unclean volume that
//! recovers is in order.

mod erased;
mod inodes;
mod report;
mod space;
mod totals;

use crate::error::{DamageKind, Result};
use crate::flash::{Flash, NodeRef, leaf_kind};
use crate::journal::{self, Log};
use crate::key::{Key, KeyType};
use crate::lebs::{Lebs, ReadKind};
use crate::master::{self, Master};
use crate::node::{Entry, Inode, key_of};
use crate::orphans;
use crate::superblock::MASTER_LEB;
use crate::tnc::{Tnc, Visit};
use crate::volume::read_superblock;
use inodes::Inodes;
use report::Check;
pub use report::{CheckCounts, CheckReport};
use std::collections::{BTreeMap, BTreeSet};

/// Checks a volume and lists at most `most` findings. An error is something that this reader does not support.
pub fn check<L: Lebs>(mut lebs: L, most: usize) -> Result<CheckReport> {
    let mut check = Check { report: CheckReport::default(), most, unmapped: BTreeSet::new() };
    let sb = match read_superblock(&mut lebs) {
        Ok(sb) => sb,
        Err(e) => {
            check.error(e)?;
            return Ok(check.report);
        }
    };
    let mut flash = Flash::new(lebs, sb);
    let master = match master::read(&mut flash) {
        Ok(master) => master,
        Err(e) => {
            check.error(e)?;
            return Ok(check.report);
        }
    };
    check.report.unclean = master.is_dirty();
    check_master_copies(&mut check, &mut flash, &master)?;
    let mut tnc = Tnc::new(&flash, master.root);
    let log = match replay(&mut check, &mut flash, &mut tnc, &master) {
        Ok((log, sizes)) => {
            walk(&mut check, &mut flash, &mut tnc, &sizes, &master)?;
            Some(log)
        }
        Err(e) => {
            // What was committed can still be looked at.
            check.error(e)?;
            let mut tnc = Tnc::new(&flash, master.root);
            walk(&mut check, &mut flash, &mut tnc, &BTreeMap::new(), &master)?;
            None
        }
    };
    space::check(&mut check, &mut flash, &master, log.as_ref())?;
    erased::check(&mut check, &mut flash, &master)?;
    Ok(check.report)
}

/// Both copies of the master must be good where the volume was unmounted.
fn check_master_copies<L: Lebs>(check: &mut Check, flash: &mut Flash<L>, master: &Master) -> Result<()> {
    if master.is_dirty() {
        return Ok(());
    }
    let (min_io, fanout) = (flash.sb.min_io_bytes, flash.sb.fanout);
    let mut copies = Vec::new();
    for lnum in [MASTER_LEB, MASTER_LEB + 1] {
        let bytes = match flash.read_rest(lnum, 0, ReadKind::Check) {
            Ok(bytes) => bytes,
            Err(e) => {
                check.error(e)?;
                continue;
            }
        };
        let last = crate::scan::scan(&bytes, 0, min_io, fanout)
            .and_then(|leb| Ok(master::last_master(&bytes, &leb.nodes)?.map(|(offset, node)| (offset, node.to_vec()))));
        match last {
            Ok(last) => copies.push((lnum, last)),
            Err(e) => {
                let at = NodeRef { lnum, offset: e.offset, len: 0 };
                check.damage(flash, DamageKind::BadMaster, at, e.what);
            }
        }
    }
    if let [(_, Some((a, one))), (lnum, second)] = &copies[..] {
        let same = second.as_ref().is_some_and(|(b, two)| a == b && master::same_master(one, two));
        if !same {
            let at = NodeRef { lnum: *lnum, offset: second.as_ref().map_or(0, |(b, _)| *b), len: 0 };
            let detail = format!("the last master is not the one of LEB {MASTER_LEB} at {a}");
            check.damage(flash, DamageKind::BadMaster, at, detail);
        }
    }
    Ok(())
}

type Sizes = BTreeMap<u32, u64>;

fn replay<L: Lebs>(check: &mut Check, flash: &mut Flash<L>, tnc: &mut Tnc, master: &Master) -> Result<(Log, Sizes)> {
    let unclean = master.is_dirty();
    let mut log = journal::read_log(flash, master.log_lnum, master.commit, unclean)?;
    let replayed = journal::replay(flash, tnc, &mut log, unclean, false)?;
    check.report.counts.journal_nodes = replayed.nodes;
    let mut sizes = BTreeMap::new();
    if unclean {
        if master.flags & master::FLAG_NO_ORPHANS == 0 {
            orphans::kill_orphans(flash, tnc)?;
        }
        sizes = journal::recover_sizes(flash, tnc, replayed, false)?;
    }
    Ok((log, sizes))
}

/// Walks the index, looks at every node, and then at how inodes and entries fit together.
fn walk<L: Lebs>(check: &mut Check, flash: &mut Flash<L>, tnc: &mut Tnc, sizes: &Sizes, master: &Master) -> Result<()> {
    let mut inodes = Inodes::default();
    let mut used: Vec<NodeRef> = Vec::new();
    let mut last: Option<(Key, Box<[u8]>)> = None;
    let mut error = None;
    tnc.walk(flash, |flash, visit| match visit {
        Visit::Index(at) => {
            used.push(at);
            check.report.counts.index_nodes += 1;
        }
        Visit::Damage(e) => {
            // What is missing from the index cannot be missed elsewhere.
            inodes.incomplete = true;
            if let Err(e) = check.error(e) {
                error = Some(e);
            }
        }
        Visit::Leaf(key, at) => {
            used.push(at);
            match leaf(check, flash, &mut inodes, sizes, key, at) {
                Ok(name) => {
                    if let Some((before, before_name)) = &last
                        && (*before > key || *before == key && (!key.is_hashed() || *before_name >= name))
                    {
                        let detail = format!("{key} behind {before} in the index");
                        check.damage(flash, DamageKind::WrongKeyOrder, at, detail);
                    }
                    last = Some((key, name));
                }
                Err(e) => {
                    inodes.lost(key);
                    if let Err(e) = check.error(e) {
                        error = Some(e);
                    }
                }
            }
        }
    });
    if let Some(e) = error {
        return Err(e);
    }
    inodes.finish(check, flash);
    used.sort_unstable();
    if master.gc_lnum == u32::MAX {
        // Enough to be read; Linux mounts nothing without it.
        let detail = "no block is kept for garbage collection".to_owned();
        check.damage(flash, DamageKind::BadMaster, totals::place(master), detail);
    }
    // After an unclean stop a mount looks for another block.
    let in_gc = used.iter().find(|at| at.lnum == master.gc_lnum);
    if let Some(at) = in_gc.filter(|_| !master.is_dirty()) {
        let detail = format!(
            "LEB {} is kept for garbage collection, which would erase it, but a node at {} of it is in use",
            at.lnum, at.offset
        );
        check.damage(flash, DamageKind::BadMaster, totals::place(master), detail);
    }
    for pair in used.windows(2) {
        if pair[0].lnum == pair[1].lnum && pair[0].offset + pair[0].len > pair[1].offset {
            let detail = format!(
                "this node and the {} bytes at {} overlap, and the index leads to both",
                pair[0].len, pair[0].offset
            );
            check.damage(flash, DamageKind::OverlappingNodes, pair[1], detail);
        }
    }
    Ok(())
}

/// Reads a leaf and notes what it says; returns its name, if it has one.
fn leaf<L: Lebs>(
    check: &mut Check,
    flash: &mut Flash<L>,
    inodes: &mut Inodes,
    sizes: &Sizes,
    key: Key,
    at: NodeRef,
) -> Result<Box<[u8]>> {
    let Some((_, kind)) = leaf_kind(key) else {
        return Err(flash.damage(DamageKind::BadIndex, at.lnum, at.offset, format!("a branch with {key}")));
    };
    let node = flash.read_node(at, kind, ReadKind::Check)?;
    let found = key_of(node);
    if found != key {
        let detail = format!("a node with {found}, its branch says {key}");
        return Err(flash.damage(DamageKind::WrongNode, at.lnum, at.offset, detail));
    }
    let counts = &mut check.report.counts;
    let mut name = Box::default();
    match key.kind() {
        Some(KeyType::Inode) => {
            counts.inodes += 1;
            let inode = Inode::parse(flash.node());
            let mut inode = inode.map_err(|e| flash.damage(DamageKind::BadInode, at.lnum, at.offset, e))?;
            if let Some(&size) = sizes.get(&inode.ino) {
                inode.size = inode.size.max(size);
            }
            inodes.inode(check, flash, &inode, at);
        }
        Some(KeyType::Data) => {
            counts.data_nodes += 1;
            let mut out = [0; crate::BLOCK_BYTES];
            let (node, expander) = flash.node_and_expander();
            let size = crate::node::le32(node, 40);
            let expanded = crate::files::expand(node, expander, &mut out);
            inodes.data(check, flash, key, size, at);
            expanded.map_err(|e| flash.damage(DamageKind::BadData, at.lnum, at.offset, e))?;
            check.report.counts.data_bytes += u64::from(size);
        }
        _ => {
            let entry = Entry::parse(flash.node());
            let entry = entry.map_err(|e| flash.damage(DamageKind::BadEntry, at.lnum, at.offset, e))?;
            if key.kind() == Some(KeyType::Dentry) {
                counts.entries += 1
            } else {
                counts.xattrs += 1
            }
            let hash = flash.sb.hash.of(&entry.name);
            if hash != key.low() {
                let detail = format!("hash {:#x}, its name has {hash:#x}", key.low());
                check.damage(flash, DamageKind::BadEntry, at, detail);
            }
            inodes.entry(check, flash, &entry, at);
            name = entry.name;
        }
    }
    Ok(name)
}
