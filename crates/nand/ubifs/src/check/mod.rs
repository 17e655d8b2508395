// SPDX-License-Identifier: MIT OR Apache-2.0
//! A check of a whole volume that lists all damage and continues behind it.
//!
//! The volume is seen as after a mount: the journal is applied, torn ends are cut off. So an unclean volume that
//! recovers has no damage.

mod erased;
mod inodes;
mod report;
mod space;

use crate::error::{DamageKind, Result};
use crate::flash::{Flash, NodeRef};
use crate::journal::{self, Log};
use crate::key::{Key, KeyType};
use crate::lebs::{Lebs, ReadKind};
use crate::lpt::Space;
use crate::master::{self, Master};
use crate::node::le32;
use crate::orphans;
use crate::scan::scan;
use crate::superblock::MASTER_LEB;
use crate::tnc::{Tnc, Visit};
use crate::volume::read_superblock;
use inodes::Inodes;
use report::Check;
pub use report::{CheckCounts, CheckReport};
use std::collections::BTreeMap;

/// Checks a volume and lists at most `most` findings. An error is a feature that this reader does not support.
pub fn check<L: Lebs>(mut lebs: L, most: usize) -> Result<CheckReport> {
    let mut check = Check::new(most);
    run(&mut check, &mut lebs)?;
    for damage in &mut check.report.findings {
        damage.place.peb = lebs.peb(damage.place.lnum);
    }
    Ok(check.report)
}

fn run<L: Lebs>(check: &mut Check, mut lebs: L) -> Result<()> {
    let Some(sb) = check.read(read_superblock(&mut lebs))? else { return Ok(()) };
    let mut flash = Space::new(Flash::new(lebs, sb));
    let Some(master) = check.read(master::read(&mut flash))? else { return Ok(()) };
    check.report.unclean = master.is_dirty();
    check_master_copies(check, &mut flash, &master)?;
    let mut tnc = Tnc::new(&flash, master.root);
    let replayed = replay(check, &mut flash, &mut tnc, &master);
    let log = match check.read(replayed)? {
        Some((log, sizes)) => {
            walk(check, &mut flash, &mut tnc, &sizes, &master)?;
            Some(log)
        }
        None => {
            // The committed index can still be checked.
            let mut tnc = Tnc::new(&flash, master.root);
            walk(check, &mut flash, &mut tnc, &BTreeMap::new(), &master)?;
            None
        }
    };
    space::check(check, &mut flash, &master, log.as_ref())?;
    erased::check(check, &mut flash, &master)
}

/// Both copies of the master must be good if the volume was unmounted.
fn check_master_copies<L: Lebs>(check: &mut Check, flash: &mut Flash<L>, master: &Master) -> Result<()> {
    if master.is_dirty() {
        return Ok(());
    }
    let (min_io, fanout) = (flash.sb.min_io_bytes, flash.sb.fanout);
    let mut copies = Vec::new();
    for lnum in [MASTER_LEB, MASTER_LEB + 1] {
        let Some(bytes) = check.read(flash.read_rest(lnum, 0, ReadKind::Check))? else { continue };
        let last = scan(&bytes, 0, min_io, fanout)
            .and_then(|leb| Ok(master::last_master(&bytes, &leb.nodes)?.map(|(offset, node)| (offset, node.to_vec()))));
        match last {
            Ok(last) => copies.push((lnum, last)),
            Err(e) => check.damage(DamageKind::BadMaster, (lnum, e.offset), e.what),
        }
    }
    if let [(_, Some((a, one))), (lnum, second)] = &copies[..] {
        let same = second.as_ref().is_some_and(|(b, two)| a == b && master::same_master(one, two));
        if !same {
            let at = (*lnum, second.as_ref().map_or(0, |(b, _)| *b));
            let detail = format!("the last master is not the one of LEB {MASTER_LEB} at {a}");
            check.damage(DamageKind::BadMaster, at, detail);
        }
    }
    Ok(())
}

type Sizes = BTreeMap<u32, u64>;

fn replay<L: Lebs>(check: &mut Check, flash: &mut Space<L>, tnc: &mut Tnc, master: &Master) -> Result<(Log, Sizes)> {
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

/// Walks the index, checks every node, and then the consistency of inodes and entries.
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
            // A part of the index is unreadable, so nothing counts as missing.
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
                        check.damage(DamageKind::WrongKeyOrder, at, detail);
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
    inodes.finish(check);
    used.sort_unstable();
    if master.gc_lnum == u32::MAX {
        // Enough for reading; Linux does not mount without it.
        check.damage(DamageKind::BadMaster, master.place(), "no block is kept for garbage collection");
    }
    // After an unclean stop a mount chooses another block.
    let in_gc = used.iter().find(|at| at.lnum == master.gc_lnum);
    if let Some(at) = in_gc.filter(|_| !master.is_dirty()) {
        let detail = format!(
            "LEB {} is kept for garbage collection, which would erase it, but a node at {} of it is in use",
            at.lnum, at.offset
        );
        check.damage(DamageKind::BadMaster, master.place(), detail);
    }
    for pair in used.windows(2) {
        if pair[0].lnum == pair[1].lnum && pair[0].offset + pair[0].len > pair[1].offset {
            let detail = format!(
                "this node and the {} bytes at {} overlap, and the index leads to both",
                pair[0].len, pair[0].offset
            );
            check.damage(DamageKind::OverlappingNodes, pair[1], detail);
        }
    }
    Ok(())
}

/// Reads a leaf and notes its contents; returns its name, if it has one.
fn leaf<L: Lebs>(
    check: &mut Check,
    flash: &mut Flash<L>,
    inodes: &mut Inodes,
    sizes: &Sizes,
    key: Key,
    at: NodeRef,
) -> Result<Box<[u8]>> {
    flash.read_leaf(key, at, Some(ReadKind::Check))?;
    let counts = &mut check.report.counts;
    let mut name = Box::default();
    match key.kind() {
        Some(KeyType::Inode) => {
            counts.inodes += 1;
            let mut inode = flash.inode(at)?;
            if let Some(&size) = sizes.get(&inode.ino) {
                inode.size = inode.size.max(size);
            }
            inodes.inode(check, &inode, at);
        }
        Some(KeyType::Data) => {
            counts.data_nodes += 1;
            let mut out = [0; crate::BLOCK_BYTES];
            let (node, expander) = flash.node_and_expander();
            let size = le32(node, 40);
            let expanded = crate::files::expand(node, expander, &mut out);
            inodes.data(check, key, size, at);
            expanded.map_err(|e| flash.damage(DamageKind::BadData, at, e))?;
            check.report.counts.data_bytes += u64::from(size);
        }
        _ => {
            let entry = flash.entry(at)?;
            if key.kind() == Some(KeyType::Dentry) {
                counts.entries += 1
            } else {
                counts.xattrs += 1
            }
            let hash = flash.sb.hash.of(&entry.name);
            if hash != key.low() {
                let detail = format!("hash {:#x}, its name has {hash:#x}", key.low());
                check.damage(DamageKind::BadEntry, at, detail);
            }
            inodes.entry(check, &entry, at);
            name = entry.name;
        }
    }
    Ok(name)
}
