// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums in the master against what they add up: properties of blocks, the committed index, its inodes.
//!
//! Facts: Linux `fs/ubifs/lprops.c` (`dbg_check_lprops`), `tnc_commit.c` (`dbg_check_idx_size`), `debug.c`
//! (`add_inode`).

use super::report::Check;
use super::space::Used;
use crate::error::DamageKind;
use crate::flash::{Flash, NodeRef};
use crate::lebs::Lebs;
use crate::lpt::Properties;
use crate::master::Master;
use crate::superblock::MASTER_LEB;

/// What the properties of all blocks add up to.
#[derive(Debug, Default)]
pub(super) struct Sums {
    free: u64,
    dirty: u64,
    used: u64,
    empty: u64,
    index: u64,
    /// Some properties could not be read.
    pub incomplete: bool,
}

impl Sums {
    pub(super) fn add(&mut self, p: &Properties, whole: u32) {
        self.free += u64::from(p.free);
        self.dirty += u64::from(p.dirty);
        // Used is what holds no index.
        self.used += if p.index { 0 } else { u64::from(whole - p.free - p.dirty) };
        self.empty += u64::from(p.free == whole);
        self.index += u64::from(p.index);
    }
}

/// Where the master is.
pub(super) fn place(master: &Master) -> NodeRef {
    NodeRef { lnum: MASTER_LEB, offset: master.offset, len: 0 }
}

pub(super) fn check<L: Lebs>(check: &mut Check, flash: &Flash<L>, master: &Master, sums: &Sums, used: &Used) {
    let mut wrong = |detail: String| check.damage(flash, DamageKind::WrongTotals, place(master), detail);
    if !sums.incomplete {
        for (what, said, found) in [
            ("free bytes", master.total_free, sums.free),
            ("dirty bytes", master.total_dirty, sums.dirty),
            ("used bytes", master.total_used, sums.used),
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
    let (said, found) = (master.index_bytes, used.index_bytes());
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
