// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the properties of blocks with the committed index and with the contents of blocks; and the sums in the
//! master with the actual sums of properties, the index, and its inodes.
//!
//! A commit's accounts do not include the journal, so the index is walked as committed. Blocks are as committed, too,
//! except those that the journal was written to and those that garbage collection has emptied since. Facts: Linux
//! `fs/ubifs/lprops.c` (`scan_check_cb`, `dbg_check_lprops`), `tnc_commit.c` (`dbg_check_idx_size`), `debug.c`
//! (`add_inode`).

use super::report::Check;
use crate::error::{DamageKind, Result};
use crate::flash::{Flash, NodeRef};
use crate::journal::Log;
use crate::lebs::{Lebs, ReadKind};
use crate::lpt::{Lpt, Properties};
use crate::master::Master;
use crate::node::align8;
use crate::scan::scan;
use crate::superblock::Superblock;
use crate::tnc::{Tnc, Visit};
use std::collections::BTreeMap;

/// Space that the committed index uses.
#[derive(Debug)]
struct Used {
    /// Bytes of leaves, by block.
    leaves: Vec<u64>,
    /// Bytes of index nodes, by block.
    index: Vec<u64>,
    /// Inodes with higher numbers than the master's highest.
    above: u64,
    /// The highest number of an inode, and its node.
    highest: (u32, NodeRef),
    /// All of the index could be read.
    complete: bool,
}

impl Used {
    fn of<L: Lebs>(flash: &mut Flash<L>, master: &Master) -> Used {
        let none = vec![0; flash.sb.leb_count as usize];
        let highest = (0, NodeRef::default());
        let mut used = Used { leaves: none.clone(), index: none, above: 0, highest, complete: true };
        let mut tnc = Tnc::new(flash, master.root);
        tnc.walk(flash, |_, visit| match visit {
            Visit::Index(at) => used.index[at.lnum as usize] += u64::from(align8(at.len)),
            Visit::Leaf(key, at) => {
                used.leaves[at.lnum as usize] += u64::from(align8(at.len));
                if key.ino > used.highest.0 {
                    used.highest = (key.ino, at);
                    used.above += u64::from(u64::from(key.ino) > master.highest_inum);
                }
            }
            // Already reported by the walk before.
            Visit::Damage(_) => used.complete = false,
        });
        used
    }
}

/// Sums of the properties of all blocks.
#[derive(Debug, Default)]
struct Sums {
    free: u64,
    dirty: u64,
    used: u64,
    empty: u64,
    index: u64,
    /// Some properties could not be read.
    incomplete: bool,
}

impl Sums {
    fn add(&mut self, p: &Properties, whole: u32) {
        self.free += u64::from(p.free);
        self.dirty += u64::from(p.dirty);
        // Used bytes exclude blocks of the index.
        self.used += if p.index { 0 } else { u64::from(whole - p.free - p.dirty) };
        self.empty += u64::from(p.free == whole);
        self.index += u64::from(p.index);
    }
}

/// Checks all properties, and the sums in the master.
pub(super) fn check<L: Lebs>(
    check: &mut Check,
    flash: &mut Flash<L>,
    master: &Master,
    log: Option<&Log>,
) -> Result<()> {
    let lpt = Lpt::init(flash, master.lpt_root, master.ltab, flash.sb.big_lpt.then_some(master.lsave));
    let mut lpt = check.read(lpt)?.unwrap_or_else(|| Lpt::unread(flash, master.lpt_root));
    let used = Used::of(flash, master);
    // Only the log names the blocks written since the commit.
    let buds: Option<BTreeMap<u32, u32>> = log.map(|log| log.buds.iter().map(|bud| (bud.lnum, bud.start)).collect());
    let mut sums = Sums::default();
    for lnum in flash.sb.main_first()..flash.sb.leb_count {
        let Some(p) = check.read(lpt.get(flash, lnum).copied())? else {
            sums.incomplete = true;
            continue;
        };
        // Blocks by which the volume will grow are not in the master's account.
        if lnum < master.leb_count {
            sums.add(&p, flash.sb.leb_bytes);
        }
        if used.complete {
            check_properties(check, &flash.sb, &used, lnum, &p);
        }
        if let Some(buds) = &buds {
            contents(check, flash, master, buds.get(&lnum).copied(), lnum, &p)?;
        }
    }
    totals(check, master, &sums, &used);
    heads(check, flash, master, &mut lpt)
}

/// Compares the used bytes in properties with those that the index leads to.
fn check_properties(check: &mut Check, sb: &Superblock, used: &Used, lnum: u32, p: &Properties) {
    let (leaves, index) = (used.leaves[lnum as usize], used.index[lnum as usize]);
    let (found, said) = (leaves + index, u64::from(sb.leb_bytes - p.free - p.dirty));
    let detail = if found != said {
        format!("its properties say {said} bytes are in use, the index uses {found}")
    } else if p.index && leaves > 0 {
        "its properties say that it holds the index, but the index leads to leaves in it".to_owned()
    } else if !p.index && index > 0 {
        "index nodes are in it, but its properties do not say that it holds the index".to_owned()
    } else {
        return;
    };
    check.damage(DamageKind::WrongProperties, (lnum, 0), detail);
}

/// Compares the free bytes in properties with the end of a block's nodes. `bud` is where the journal continues in it.
fn contents<L: Lebs>(
    check: &mut Check,
    flash: &mut Flash<L>,
    master: &Master,
    bud: Option<u32>,
    lnum: u32,
    p: &Properties,
) -> Result<()> {
    let whole = flash.sb.leb_bytes;
    // A block without used nodes may hold the remains of an interrupted commit: it is unmapped before it is written
    // to. A block that was emptied since the commit is not mapped, or the journal begins at its start.
    if p.free + p.dirty == whole || bud == Some(0) || !flash.lebs.is_mapped(lnum) {
        return Ok(());
    }
    // An interrupted commit may have written to a block of the index.
    if p.index && master.is_dirty() {
        return Ok(());
    }
    let said = whole - p.free;
    if let Some(start) = bud.filter(|&start| start != said) {
        let detail = format!("its properties say the last {} bytes are free; the journal goes on at {start}", p.free);
        check.damage(DamageKind::WrongProperties, (lnum, said), detail);
    }
    // The replay has checked what follows.
    let mut bytes = vec![0; bud.unwrap_or(whole) as usize];
    if let Err(e) = flash.read(lnum, 0, &mut bytes, ReadKind::Check) {
        return check.error(e);
    }
    match scan(&bytes, 0, flash.sb.min_io_bytes, flash.sb.fanout) {
        // Blocks of the index are written to at the head only.
        Ok(leb) if leb.end != said && bud.is_none() && (!p.index || lnum == master.index_head.0) => {
            let detail = format!("its properties say the last {} bytes are free; nodes end at {}", p.free, leb.end);
            check.damage(DamageKind::WrongProperties, (lnum, said.min(leb.end)), detail);
        }
        Ok(leb) if bud.is_some_and(|start| leb.end != start) => {
            let detail = format!("nodes end at {}, the journal goes on behind them", leb.end);
            check.damage(DamageKind::WrongProperties, (lnum, leb.end), detail);
        }
        Err(e) if !check.reported((lnum, e.offset)) => check.damage(DamageKind::BadNode, (lnum, e.offset), e.what),
        _ => {}
    }
    Ok(())
}

/// Checks that there is room where index and properties tree are continued. After an unclean stop a commit may have
/// been in progress.
fn heads<L: Lebs>(check: &mut Check, flash: &mut Flash<L>, master: &Master, lpt: &mut Lpt) -> Result<()> {
    let (lnum, offset) = master.index_head;
    if let Ok(p) = lpt.get(flash, lnum) {
        let free_from = flash.sb.leb_bytes - p.free;
        if free_from != offset {
            let detail = format!(
                "the index is to be continued at byte {offset} of LEB {lnum}, whose properties say it is free from \
                 byte {free_from} on"
            );
            check.damage(DamageKind::BadMaster, master.place(), detail);
        }
    }
    if master.is_dirty() {
        return Ok(());
    }
    let (lnum, offset) = master.lpt_head;
    let Some(bytes) = check.read(flash.read_rest(lnum, offset, ReadKind::Check))? else { return Ok(()) };
    if let Some(first) = bytes.iter().position(|&b| b != 0xFF) {
        let detail = format!("not empty, although the properties tree is to be continued at {offset}");
        check.damage(DamageKind::BadProperties, (lnum, offset + first as u32), detail);
    }
    Ok(())
}

/// Compares the sums in the master with the actual sums.
fn totals(check: &mut Check, master: &Master, sums: &Sums, used: &Used) {
    let mut wrong = |detail: String| check.damage(DamageKind::WrongTotals, master.place(), detail);
    if !sums.incomplete {
        for (what, said, found) in [
            ("free bytes", master.totals.free, sums.free),
            ("dirty bytes", master.totals.dirty, sums.dirty),
            ("used bytes", master.totals.used, sums.used),
            ("empty blocks", master.empty_lebs.into(), sums.empty),
            ("index blocks", master.index_lebs.into(), sums.index),
        ] {
            if said != found {
                wrong(format!("the master says {said} {what}, the properties of all blocks add up to {found}"));
            }
        }
    }
    if !used.complete {
        return;
    }
    let (said, found) = (master.index_bytes, used.index.iter().sum::<u64>());
    if said != found {
        wrong(format!("the master says {said} index bytes, the index has {found}"));
    }
    if used.above > 0 {
        let (ino, at) = used.highest;
        let count = if used.above == 1 { "1 has".to_owned() } else { format!("{} have", used.above) };
        wrong(format!(
            "the master says the highest inode number is {}, {count} a higher one: inode {ino} at LEB {} offset {}",
            master.highest_inum, at.lnum, at.offset
        ));
    }
}
