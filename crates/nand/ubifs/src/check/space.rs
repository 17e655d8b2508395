// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of blocks against what the committed index uses, and against what the blocks hold.
//!
//! The account of a commit knows nothing of the journal, so the index is walked as committed. Blocks are as committed,
//! too, but for those that the journal was written to and those that garbage collection has emptied since. Facts: Linux
//! `fs/ubifs/lprops.c` (`scan_check_cb`).

use super::report::Check;
use super::totals;
use crate::error::{DamageKind, Result};
use crate::flash::{Flash, NodeRef};
use crate::journal::Log;
use crate::lebs::{Lebs, ReadKind};
use crate::lpt::{Lpt, Properties};
use crate::master::Master;
use crate::node::align8;
use crate::scan::{all_ff, scan};
use crate::tnc::{Tnc, Visit};
use std::collections::BTreeMap;

/// What the committed index uses.
#[derive(Debug)]
pub(super) struct Used {
    /// Bytes of leaves, by block.
    leaves: Vec<u64>,
    /// Bytes of index nodes, by block.
    index: Vec<u64>,
    /// Inodes with higher numbers than the master has.
    pub above: u64,
    /// The highest number of an inode, and its node.
    pub highest: (u32, NodeRef),
    /// All of the index could be read.
    pub complete: bool,
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
            // Told by the walk before.
            Visit::Damage(_) => used.complete = false,
        });
        used
    }

    /// Bytes of the whole index.
    pub(super) fn index_bytes(&self) -> u64 {
        self.index.iter().sum()
    }
}

/// Checks all properties, and what the master adds up.
pub(super) fn check<L: Lebs>(
    check: &mut Check,
    flash: &mut Flash<L>,
    master: &Master,
    log: Option<&Log>,
) -> Result<()> {
    let mut lpt = match Lpt::init(flash, master.lpt_root, master.ltab, flash.sb.big_lpt.then_some(master.lsave)) {
        Ok(lpt) => lpt,
        Err(e) => {
            check.error(e)?;
            Lpt::unread(flash, master.lpt_root)
        }
    };
    let used = Used::of(flash, master);
    // Without the log nobody knows which blocks were written to since the commit.
    let buds: Option<BTreeMap<u32, u32>> = log.map(|log| log.buds.iter().map(|bud| (bud.lnum, bud.start)).collect());
    let mut sums = totals::Sums::default();
    for lnum in flash.sb.main_first()..flash.sb.leb_count {
        let p = match lpt.get(flash, lnum) {
            Ok(p) => *p,
            Err(e) => {
                sums.incomplete = true;
                check.error(e)?;
                continue;
            }
        };
        // Blocks by which the volume is about to grow are not in the master's account.
        if lnum < master.leb_count {
            sums.add(&p, flash.sb.leb_bytes);
        }
        if used.complete {
            account(check, flash, &used, lnum, &p);
        }
        if let Some(buds) = &buds {
            contents(check, flash, master, buds.get(&lnum).copied(), lnum, &p)?;
        }
    }
    totals::check(check, flash, master, &sums, &used);
    heads(check, flash, master, &mut lpt)
}

/// What properties say is in use against what the index leads to.
fn account<L: Lebs>(check: &mut Check, flash: &Flash<L>, used: &Used, lnum: u32, p: &Properties) {
    let (leaves, index) = (used.leaves[lnum as usize], used.index[lnum as usize]);
    let (found, said) = (leaves + index, u64::from(flash.sb.leb_bytes - p.free - p.dirty));
    let detail = if found != said {
        format!("its properties say {said} bytes are in use, the index uses {found}")
    } else if p.index && leaves > 0 {
        "its properties say that it holds the index, but the index leads to leaves in it".to_owned()
    } else if !p.index && index > 0 {
        "index nodes are in it, but its properties do not say that it holds the index".to_owned()
    } else {
        return;
    };
    check.damage(flash, DamageKind::WrongProperties, NodeRef { lnum, offset: 0, len: 0 }, detail);
}

/// What properties say is free against where the nodes of a block end. `bud` is where the journal went on in it.
fn contents<L: Lebs>(
    check: &mut Check,
    flash: &mut Flash<L>,
    master: &Master,
    bud: Option<u32>,
    lnum: u32,
    p: &Properties,
) -> Result<()> {
    let whole = flash.sb.leb_bytes;
    // A block without nodes in use may hold what an interrupted commit left: it is unmapped before it is written to.
    // One that was emptied since the commit is not mapped, or the journal begins at its beginning.
    if p.free + p.dirty == whole || bud == Some(0) || !flash.lebs.is_mapped(lnum) {
        return Ok(());
    }
    // A commit that was interrupted may have written to a block of the index.
    if p.index && master.is_dirty() {
        return Ok(());
    }
    let mut wrong = |flash: &Flash<L>, kind, offset, detail| {
        check.damage(flash, kind, NodeRef { lnum, offset, len: 0 }, detail);
    };
    let said = whole - p.free;
    if let Some(start) = bud.filter(|&start| start != said) {
        let detail = format!("its properties say the last {} bytes are free; the journal goes on at {start}", p.free);
        wrong(flash, DamageKind::WrongProperties, said, detail);
    }
    // What follows was looked at by the replay.
    let mut bytes = vec![0; bud.unwrap_or(whole) as usize];
    if let Err(e) = flash.read(lnum, 0, &mut bytes, ReadKind::Check) {
        return check.error(e);
    }
    match scan(&bytes, 0, flash.sb.min_io_bytes, flash.sb.fanout) {
        // At the end of a block of the index nobody writes, but at the head.
        Ok(leb) if leb.end != said && bud.is_none() && (!p.index || lnum == master.index_head.0) => {
            let detail = format!("its properties say the last {} bytes are free; nodes end at {}", p.free, leb.end);
            wrong(flash, DamageKind::WrongProperties, said.min(leb.end), detail);
        }
        Ok(leb) if bud.is_some_and(|start| leb.end != start) => {
            let detail = format!("nodes end at {}, the journal goes on behind them", leb.end);
            wrong(flash, DamageKind::WrongProperties, leb.end, detail);
        }
        Ok(_) => {}
        Err(e) => {
            let told = check.report.findings.iter().any(|d| (d.place.lnum, d.place.offset) == (lnum, e.offset));
            if !told {
                let at = NodeRef { lnum, offset: e.offset, len: 0 };
                check.damage(flash, DamageKind::BadNode, at, e.what);
            }
        }
    }
    Ok(())
}

/// Where index and properties tree are continued there has to be room. After an unclean stop a commit may have been
/// under way.
fn heads<L: Lebs>(check: &mut Check, flash: &mut Flash<L>, master: &Master, lpt: &mut Lpt) -> Result<()> {
    let (lnum, offset) = master.index_head;
    if let Ok(p) = lpt.get(flash, lnum) {
        let free_from = flash.sb.leb_bytes - p.free;
        if free_from != offset {
            let detail = format!(
                "the index is to be continued at byte {offset} of LEB {lnum}, whose properties say it is free from \
                 byte {free_from} on"
            );
            check.damage(flash, DamageKind::BadMaster, totals::place(master), detail);
        }
    }
    if master.is_dirty() {
        return Ok(());
    }
    let (lnum, offset) = master.lpt_head;
    match flash.read_rest(lnum, offset, ReadKind::Check) {
        Ok(bytes) if !all_ff(&bytes) => {
            let first = bytes.iter().position(|&b| b != 0xFF).unwrap_or(0) as u32;
            let at = NodeRef { lnum, offset: offset + first, len: 0 };
            let detail = format!("not empty, although the properties tree is to be continued at {offset}");
            check.damage(flash, DamageKind::BadProperties, at, detail);
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(e) => check.error(e),
    }
}
