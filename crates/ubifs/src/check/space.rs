// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of blocks against what the committed index uses, and blocks whose nodes nobody uses any more.

use super::Check;
use crate::error::{DamageKind, Result};
use crate::flash::{Flash, NodeRef};
use crate::journal::Log;
use crate::lebs::{Lebs, ReadKind};
use crate::lpt::Lpt;
use crate::master::Master;
use crate::node::align8;
use crate::scan::scan;
use crate::tnc::{Tnc, Visit};

/// Checks all properties. The account of a commit knows nothing of the journal, so the index is walked as committed.
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
    let (first, count) = (flash.sb.main_first(), flash.sb.leb_count);
    let whole = flash.sb.leb_bytes;
    let mut used = vec![0u64; count as usize];
    let mut complete = true;
    let mut tnc = Tnc::new(flash, master.root);
    tnc.walk(flash, |_, visit| match visit {
        Visit::Index(at) | Visit::Leaf(_, at) => used[at.lnum as usize] += u64::from(align8(at.len)),
        // Told by the walk before.
        Visit::Damage(_) => complete = false,
    });
    let mut in_journal = vec![log.is_none(); count as usize];
    log.iter().flat_map(|log| &log.buds).for_each(|bud| in_journal[bud.lnum as usize] = true);
    for lnum in first..count {
        let p = match lpt.get(flash, lnum) {
            Ok(p) => *p,
            Err(e) => {
                check.error(e)?;
                continue;
            }
        };
        let at = NodeRef { lnum, offset: 0, len: 0 };
        let (found, said) = (used[lnum as usize], u64::from(whole - p.free - p.dirty));
        if complete && found != said {
            let detail = format!("its properties say {said} bytes are in use, the index uses {found}");
            check.damage(flash, DamageKind::WrongProperties, at, detail);
        }
        if said == 0 || in_journal[lnum as usize] || master.is_dirty() || !flash.lebs.is_mapped(lnum) {
            continue;
        }
        let bytes = match flash.read_rest(lnum, 0, ReadKind::Check) {
            Ok(bytes) => bytes,
            Err(e) => {
                check.error(e)?;
                continue;
            }
        };
        match scan(&bytes, 0, flash.sb.min_io_bytes, flash.sb.fanout) {
            Ok(leb) if leb.end > whole - p.free => {
                let at = NodeRef { lnum, offset: whole - p.free, len: 0 };
                let detail = format!("its properties say the last {} bytes are free; nodes end at {}", p.free, leb.end);
                check.damage(flash, DamageKind::WrongProperties, at, detail);
            }
            Ok(_) => {}
            Err(e) => {
                let at = NodeRef { lnum, offset: e.offset, len: 0 };
                let told = check.report.findings.iter().any(|d| (d.place.lnum, d.place.offset) == (lnum, e.offset));
                if !told {
                    check.damage(flash, DamageKind::BadNode, at, e.what);
                }
            }
        }
    }
    Ok(())
}
