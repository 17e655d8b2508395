// SPDX-License-Identifier: MIT OR Apache-2.0
//! The orphan area: inodes without a name that were still open when the volume was last written.
//!
//! Facts: Linux `fs/ubifs/orphan.c`.

use crate::error::{DamageKind, Result};
use crate::key::Key;
use crate::lebs::{Lebs, ReadKind};
use crate::lpt::Space;
use crate::node::{NodeType, le32, le64};
use crate::scan::{Tail, recover, scan};
use crate::tnc::Tnc;

/// Removes inodes that wait for deletion (`kill_orphans`).
pub(crate) fn kill_orphans<L: Lebs>(flash: &mut Space<L>, tnc: &mut Tnc) -> Result<u64> {
    let (min_io, fanout) = (flash.sb.min_io_bytes, flash.sb.fanout);
    let (mut last_commit, mut flagged, mut removed) = (0, false, 0);
    for lnum in flash.sb.orphans_first()..flash.sb.main_first() {
        // Empty; flash is not read.
        if !flash.lebs.is_mapped(lnum) {
            continue;
        }
        let bytes = flash.read_rest(lnum, 0, ReadKind::Scan)?;
        let leb = match scan(&bytes, 0, min_io, fanout) {
            Ok(leb) => leb,
            Err(_) => {
                let bytes = flash.read_rest(lnum, 0, ReadKind::Scan)?;
                match recover(&bytes, 0, min_io, fanout, Tail::Single) {
                    Ok(recovered) => recovered.leb,
                    Err(e) => return Err(flash.damage(DamageKind::BadOrphans, (lnum, e.offset), e.what)),
                }
            }
        };
        for (i, node) in leb.nodes.iter().enumerate() {
            let bad = |detail: String| Err(flash.damage(DamageKind::BadOrphans, (lnum, node.offset), detail));
            if node.header.kind != NodeType::Orphan {
                return bad(format!("{} in the orphan area", node.header.kind.one()));
            }
            let b = &bytes[node.offset as usize..][..node.header.len as usize];
            let commit = le64(b, 24) & (u64::MAX >> 1);
            if commit < last_commit && flagged {
                // From an older commit; the block was not erased in time.
                if i > 0 {
                    return bad(format!("commit {commit} behind {last_commit}, which was said to be the last"));
                }
                return Ok(removed);
            }
            for ino in b[32..].chunks_exact(8).map(|w| le64(w, 0)) {
                let key = Key::inode(ino as u32);
                let found = tnc.lookup(flash, key)?;
                if found.exact && u64::from(key.ino) == ino {
                    tnc.read_leaf(flash, found.spot)?;
                    // A file without a name may have got one since.
                    if le32(flash.node(), 92) == 0 {
                        tnc.remove_inode(flash, key.ino)?;
                        removed += 1;
                    }
                }
            }
            last_commit = commit;
            flagged = le64(b, 24) >> 63 == 1;
        }
    }
    Ok(removed)
}
