// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal: the log names the blocks that hold nodes newer than the index, and replay applies these to the index
//! in memory. A clean unmount does not commit, so this is part of every mount.
//!
//! Facts: Linux `fs/ubifs/replay.c`, `log.c`, `recovery.c`.

use crate::compress::BLOCK_BYTES;
use crate::error::{DamageKind, Result};
use crate::flash::{Flash, NodeRef, leaf_kind};
use crate::key::{Key, LOW_MASK};
use crate::lebs::{Lebs, ReadKind};
use crate::lpt::Space;
use crate::node::{Entry, NodeType, align8, le32, le64};
use crate::scan::{ScannedLeb, Tail, recover, scan};
use crate::tnc::Tnc;
use std::collections::BTreeMap;

/// A block of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bud {
    /// Block.
    pub lnum: u32,
    /// Byte where the journal's nodes begin.
    pub start: u32,
    /// Journal head: 0 garbage collection, 1 base, 2 data.
    pub head: u32,
    /// Byte where they end.
    pub end: u32,
    /// Bytes of nodes in use, after the replay.
    pub used: u32,
}

/// Contents of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub buds: Vec<Bud>,
    /// Block and byte where it continues.
    pub head: (u32, u32),
}

/// How the end of a block of this head is treated.
fn tail_of(head: u32) -> Tail {
    if head == 0 { Tail::Collected } else { Tail::Grouped }
}

/// Reads the log from its first block on (`replay_log_leb`).
pub(crate) fn read_log<L: Lebs>(flash: &mut Flash<L>, first: u32, commit: u64, unclean: bool) -> Result<Log> {
    let (min_io, fanout) = (flash.sb.min_io_bytes, flash.sb.fanout);
    let mut log = Log { buds: Vec::new(), head: (first, 0) };
    let mut by_lnum = BTreeMap::new();
    let mut start_sqnum = None;
    let mut lnum = first;
    loop {
        let bytes = flash.read_rest(lnum, 0, ReadKind::Scan)?;
        let leb = match scan(&bytes, 0, min_io, fanout) {
            Ok(leb) => leb,
            Err(e) if !unclean => return Err(flash.damage(DamageKind::BadLog, (lnum, e.offset), e.what)),
            Err(_) => recover_log(flash, lnum, first, start_sqnum)?,
        };
        let Some(node) = leb.nodes.first() else {
            if start_sqnum.is_none() {
                let detail = "the log is empty, expected a commit start node";
                return Err(flash.damage(DamageKind::BadLog, (lnum, 0), detail));
            }
            break;
        };
        let since = match start_sqnum {
            Some(since) => since,
            None => {
                if node.header.kind != NodeType::CommitStart {
                    let detail = format!("{}, expected a commit start node", node.header.kind.one());
                    return Err(flash.damage(DamageKind::BadLog, (lnum, node.offset), detail));
                }
                let number = le64(&bytes, node.offset as usize + 24);
                if number != commit {
                    let detail = format!("commit start {number}, the master says {commit}");
                    return Err(flash.damage(DamageKind::BadLog, (lnum, node.offset), detail));
                }
                node.header.sqnum
            }
        };
        start_sqnum = Some(since);
        if node.header.sqnum < since {
            break;
        }
        if node.offset != 0 {
            return Err(flash.damage(DamageKind::BadLog, (lnum, 0), "the first node is not at byte 0"));
        }
        for node in &leb.nodes {
            let at = node.offset as usize;
            match node.header.kind {
                _ if node.header.sqnum < since => {
                    let detail = format!("sequence number {} before that of the log, {since}", node.header.sqnum);
                    return Err(flash.damage(DamageKind::BadLog, (lnum, node.offset), detail));
                }
                NodeType::Reference => {
                    let bud = Bud {
                        lnum: le32(&bytes, at + 24),
                        start: le32(&bytes, at + 28),
                        head: le32(&bytes, at + 32),
                        end: 0,
                        used: 0,
                    };
                    if let Some(detail) = wrong_reference(flash, &bud) {
                        return Err(flash.damage(DamageKind::BadLog, (lnum, node.offset), detail));
                    }
                    match by_lnum.get(&bud.lnum).map(|&i: &usize| &log.buds[i]) {
                        None => {
                            by_lnum.insert(bud.lnum, log.buds.len());
                            log.buds.push(bud);
                        }
                        Some(b) if b.head == bud.head && b.start <= bud.start => {}
                        Some(b) => {
                            let detail =
                                format!("block {} for head {}, and before for head {}", bud.lnum, bud.head, b.head);
                            return Err(flash.damage(DamageKind::BadLog, (lnum, node.offset), detail));
                        }
                    }
                }
                NodeType::CommitStart if node.offset == 0 => {}
                kind => {
                    let detail = format!("{} in the log", kind.one());
                    return Err(flash.damage(DamageKind::BadLog, (lnum, node.offset), detail));
                }
            }
        }
        log.head = (lnum, leb.end);
        lnum = flash.sb.next_log(lnum);
        if lnum == first {
            break;
        }
    }
    Ok(log)
}

fn wrong_reference<L: Lebs>(flash: &Flash<L>, bud: &Bud) -> Option<String> {
    let sb = &flash.sb;
    if bud.head >= sb.journal_heads {
        return Some(format!("a reference for head {}, of {}", bud.head, sb.journal_heads));
    }
    if !sb.in_main(bud.lnum, bud.start, 0) || !bud.start.is_multiple_of(sb.min_io_bytes) {
        return Some(format!("a reference to block {} at {}", bud.lnum, bud.start));
    }
    None
}

/// Cuts a torn end off the last block of the log (`ubifs_recover_log_leb`).
fn recover_log<L: Lebs>(flash: &mut Flash<L>, lnum: u32, first: u32, since: Option<u64>) -> Result<ScannedLeb> {
    let (min_io, fanout) = (flash.sb.min_io_bytes, flash.sb.fanout);
    let next = flash.sb.next_log(lnum);
    if next != first {
        let bytes = flash.read_rest(next, 0, ReadKind::Scan)?;
        let leb =
            scan(&bytes, 0, min_io, fanout).map_err(|e| flash.damage(DamageKind::BadLog, (next, e.offset), e.what))?;
        let since = match since {
            Some(since) => since,
            None => {
                let mut head = [0; 32];
                flash.read(lnum, 0, &mut head, ReadKind::Scan)?;
                le64(&head, 8)
            }
        };
        if leb.nodes.first().is_some_and(|n| n.header.sqnum > since) {
            let what = format!("damaged, although the log goes on in block {next}");
            return Err(flash.damage(DamageKind::BadLog, (lnum, 0), what));
        }
    }
    let bytes = flash.read_rest(lnum, 0, ReadKind::Scan)?;
    match recover(&bytes, 0, min_io, fanout, Tail::Single) {
        Ok(recovered) => Ok(recovered.leb),
        Err(e) => Err(flash.damage(DamageKind::BadLog, (lnum, e.offset), e.what)),
    }
}

/// A change in the journal.
#[derive(Clone, Debug)]
struct Change {
    sqnum: u64,
    key: Key,
    at: NodeRef,
    deletion: bool,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// An inode and its size.
    Inode { size: u64 },
    /// A block, and the end of its file according to it.
    Data { end: u64 },
    /// A directory entry.
    Entry { name: Box<[u8]> },
    /// A file became shorter.
    Truncation { old: u64, new: u64 },
}

/// Sizes of a file whose volume was not unmounted (`size_entry`).
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    inode: u64,
    data: u64,
    exists: bool,
}

/// Result of a replay.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// Nodes applied.
    pub nodes: u64,
    sizes: BTreeMap<u32, Size>,
}

/// Reads all buds and applies their nodes in the order in which they were written (`replay_buds`, `apply_replay_list`).
pub(crate) fn replay<L: Lebs>(
    flash: &mut Space<L>,
    tnc: &mut Tnc,
    log: &mut Log,
    unclean: bool,
    rewrite: bool,
) -> Result<Replayed> {
    let mut changes = Vec::new();
    let later = later_buds(&log.buds);
    for (i, &later) in later.iter().enumerate() {
        let is_last = is_last_bud(flash, later.map(|next| next.map(|next| log.buds[next])))?;
        read_bud(flash, &mut log.buds[i], unclean && is_last, rewrite, &mut changes)?;
    }
    // The last node about a deleted inode decides whether it came back.
    let mut last: BTreeMap<u32, (u64, bool)> = BTreeMap::new();
    for change in &changes {
        if let What::Inode { .. } = change.what {
            let entry = last.entry(change.key.ino).or_insert((change.sqnum, change.deletion));
            if change.sqnum >= entry.0 {
                *entry = (change.sqnum, change.deletion);
            }
        }
    }
    changes.sort_by_key(|c| c.sqnum);
    let mut replayed = Replayed { nodes: changes.len() as u64, sizes: BTreeMap::new() };
    tnc.replaying = true;
    for change in &changes {
        apply(flash, tnc, change, &last)?;
        if unclean {
            note_size(&mut replayed.sizes, change);
        }
    }
    tnc.replaying = false;
    Ok(replayed)
}

/// For each bud the next two of the same head.
fn later_buds(buds: &[Bud]) -> Vec<[Option<usize>; 2]> {
    let mut later = vec![[None; 2]; buds.len()];
    let mut heads: BTreeMap<u32, [Option<usize>; 2]> = BTreeMap::new();
    for (i, bud) in buds.iter().enumerate().rev() {
        let head = heads.entry(bud.head).or_default();
        later[i] = *head;
        *head = [Some(i), head[0]];
    }
    later
}

/// Whether a power cut may have torn the end of a bud (`is_last_bud`): it is its head's last, or the one before it
/// while nothing was written to the last. `later` are the next two of its head.
fn is_last_bud<L: Lebs>(flash: &mut Flash<L>, later: [Option<Bud>; 2]) -> Result<bool> {
    let next = match later {
        [None, _] => return Ok(true),
        [Some(_), Some(_)] => return Ok(false),
        [Some(next), None] => next,
    };
    let mut word = [0; 4];
    if next.start + 4 > flash.sb.leb_bytes {
        return Ok(false);
    }
    let (lnum, start) = (next.lnum, next.start);
    flash.read(lnum, start, &mut word, ReadKind::BudProbe)?;
    Ok(word == [0xFF; 4])
}

fn read_bud<L: Lebs>(
    flash: &mut Flash<L>,
    bud: &mut Bud,
    recovering: bool,
    rewrite: bool,
    changes: &mut Vec<Change>,
) -> Result<()> {
    let (min_io, fanout, hash) = (flash.sb.min_io_bytes, flash.sb.fanout, flash.sb.hash);
    let lnum = bud.lnum;
    if !flash.lebs.is_mapped(lnum) {
        // Nothing was written to it yet; flash is not read.
        (bud.end, bud.used) = (bud.start, 0);
        return Ok(());
    }
    let bytes = flash.read_rest(lnum, bud.start, ReadKind::Scan)?;
    let result = if recovering {
        recover(&bytes, bud.start, min_io, fanout, tail_of(bud.head)).map(|r| (r.leb, r.cut_at))
    } else {
        scan(&bytes, bud.start, min_io, fanout).map(|leb| (leb, 0))
    };
    let (leb, cut_at) = match result {
        Ok(found) => found,
        Err(e) => return Err(flash.damage(DamageKind::BadJournal, (lnum, e.offset), e.what)),
    };
    if recovering && rewrite && bud.start > 0 && cut_at > 0 {
        // A mount with write access rewrites the block, for which it reads the bytes before the journal.
        let mut before = vec![0; bud.start as usize];
        flash.read(lnum, 0, &mut before, ReadKind::RecoverLeb)?;
    }
    let mut used = 0u32;
    for node in &leb.nodes {
        let b = &bytes[(node.offset - bud.start) as usize..][..node.header.len as usize];
        let bad = |detail: String| Err(flash.damage(DamageKind::BadJournal, (lnum, node.offset), detail));
        let mut key = node.key;
        let (what, deletion) = match node.header.kind {
            NodeType::Inode => (What::Inode { size: le64(b, 48) }, le32(b, 92) == 0),
            NodeType::Data => {
                let end = u64::from(key.low()) * BLOCK_BYTES as u64 + u64::from(le32(b, 40));
                (What::Data { end }, false)
            }
            NodeType::Dentry | NodeType::Xattr => match Entry::parse(b) {
                Err(e) => return bad(e),
                Ok(entry) => {
                    if hash.of(&entry.name) != key.low() && !flash.sb.double_hash {
                        return bad(format!("hash {:#x}, its name has {:#x}", key.low(), hash.of(&entry.name)));
                    }
                    (What::Entry { name: entry.name }, entry.target == 0)
                }
            },
            NodeType::Truncation => {
                let (old, new) = (le64(b, 40), le64(b, 48));
                key = Key { ino: le32(b, 24), rest: 0 };
                if new > old || old > (u64::from(LOW_MASK) + 1) * BLOCK_BYTES as u64 {
                    return bad(format!("a truncation from {old} to {new} bytes"));
                }
                (What::Truncation { old, new }, true)
            }
            kind => return bad(format!("{} in the journal", kind.one())),
        };
        let of_key = leaf_kind(key).map(|(_, kind)| kind);
        if node.header.kind != NodeType::Truncation && of_key != Some(node.header.kind) {
            return bad(format!("{} with {key}", node.header.kind.one()));
        }
        if !deletion {
            used = used.saturating_add(align8(node.header.len));
        }
        let at = NodeRef { lnum, offset: node.offset, len: node.header.len };
        changes.push(Change { sqnum: node.header.sqnum, key, at, deletion, what });
    }
    bud.end = leb.end;
    bud.used = used;
    Ok(())
}

/// Applies one change (`apply_replay_entry`).
fn apply<L: Lebs>(
    flash: &mut Space<L>,
    tnc: &mut Tnc,
    change: &Change,
    last: &BTreeMap<u32, (u64, bool)>,
) -> Result<()> {
    let key = change.key;
    match &change.what {
        What::Entry { name } if change.deletion => tnc.remove_name(flash, key, name),
        What::Entry { name } => tnc.add_name(flash, key, change.at, name),
        What::Inode { .. } if change.deletion => {
            let revived = last.get(&key.ino).is_some_and(|&(_, deleted)| !deleted);
            if revived { Ok(()) } else { tnc.remove_inode(flash, key.ino) }
        }
        What::Truncation { old, new } => {
            let block = BLOCK_BYTES as u64;
            let first = new.div_ceil(block);
            let end = old.div_ceil(block);
            if end == 0 {
                return Ok(());
            }
            // An empty range removes nothing, but the kernel searches for it.
            tnc.remove_range(flash, Key::data(key.ino, first as u32), Key::data(key.ino, (end - 1) as u32))
        }
        _ => tnc.add(flash, key, change.at),
    }
}

/// Collects sizes (`ubifs_recover_size_accum`).
fn note_size(sizes: &mut BTreeMap<u32, Size>, change: &Change) {
    let ino = change.key.ino;
    match change.what {
        What::Inode { .. } if change.deletion => {
            sizes.remove(&ino);
        }
        What::Inode { size } => {
            let entry = sizes.entry(ino).or_default();
            entry.inode = size;
            entry.exists = true;
        }
        What::Data { end } => {
            let entry = sizes.entry(ino).or_default();
            entry.data = entry.data.max(end);
        }
        What::Truncation { new, .. } => {
            if let Some(entry) = sizes.get_mut(&ino) {
                entry.data = new;
            }
        }
        What::Entry { .. } => {}
    }
}

/// Updates the properties of each bud with the result of the replay (`set_buds_lprops`).
pub(crate) fn set_bud_properties<L: Lebs>(flash: &mut Space<L>, log: &Log) -> Result<()> {
    for bud in &log.buds {
        let whole = flash.sb.leb_bytes;
        flash.with_lpt(|lpt, flash| {
            let p = lpt.get(flash, bud.lnum)?;
            if bud.start == 0 && (p.free != whole || p.dirty != 0) {
                // Garbage collection emptied the block after the commit.
                p.dirty = p.dirty.saturating_sub(whole - p.free);
            }
            p.free = whole - bud.end;
            p.dirty = p.dirty.saturating_add((bud.end - bud.start).saturating_sub(bud.used)).min(whole);
            p.taken = true;
            Ok(())
        })?;
    }
    Ok(())
}

/// Corrects sizes that data in the journal shows to be larger than the inodes' (`ubifs_recover_size`). With
/// `rewrite`, the block of such an inode is read as a whole, because a mount with write access rewrites it.
pub(crate) fn recover_sizes<L: Lebs>(
    flash: &mut Space<L>,
    tnc: &mut Tnc,
    replayed: Replayed,
    rewrite: bool,
) -> Result<BTreeMap<u32, u64>> {
    let mut larger = BTreeMap::new();
    for (ino, mut size) in replayed.sizes {
        let key = Key::inode(ino);
        if !size.exists {
            let found = tnc.lookup(flash, key)?;
            if !found.exact {
                tnc.remove_inode(flash, ino)?;
                continue;
            }
            tnc.read_leaf(flash, found.spot)?;
            size.inode = le64(flash.node(), 48);
        }
        if size.inode < size.data {
            let found = tnc.lookup(flash, key)?;
            if rewrite && found.exact {
                let lnum = tnc.branch(found.spot).at.lnum;
                tnc.read_leaf(flash, found.spot)?;
                flash.read_rest(lnum, 0, ReadKind::RecoverSize)?;
            }
            larger.insert(ino, size.data);
        }
    }
    Ok(larger)
}
