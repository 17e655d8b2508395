// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that unused space in front of the main area is erased, where no mount looks: behind the superblock, in
//! unused blocks of the log and of the orphan area, and behind the nodes of the properties tree.
//!
//! Facts: Linux `fs/ubifs/sb.c` (`ubifs_write_sb_node` pads to a unit of writing), `lpt_commit.c`
//! (`dbg_check_ltab_lnum`) and `lpt.c` (`lpt_init_wr` unmaps blocks that the table calls empty, whatever is in them).

use super::report::Check;
use crate::error::{DamageKind, Result};
use crate::flash::Flash;
use crate::lebs::{Lebs, ReadKind};
use crate::lpt;
use crate::master::Master;
use crate::node::{NODE_MAGIC, NodeType, SUPERBLOCK_BYTES, crc32, le32};
use crate::scan::{Tail, recover, scan};
use crate::superblock::{LOG_LEB, SUPERBLOCK_LEB};

/// Checks these blocks.
pub(super) fn check<L: Lebs>(check: &mut Check, flash: &mut Flash<L>, master: &Master) -> Result<()> {
    superblock(check, flash)?;
    let sb = &flash.sb;
    let (log, orphans, main) = (LOG_LEB..sb.lpt_first(), sb.orphans_first(), sb.main_first());
    let of_log = [NodeType::CommitStart, NodeType::Reference];
    for lnum in log {
        nodes(check, flash, master, lnum, &of_log, DamageKind::BadLog)?;
    }
    for lnum in orphans..main {
        nodes(check, flash, master, lnum, &[NodeType::Orphan], DamageKind::BadOrphans)?;
    }
    properties(check, flash, master)
}

/// Bytes of the signature node.
const SIGNATURE_BYTES: u32 = 64;
/// Its type; mkfs.ubifs leaves it at 0 without a signature.
const SIGNATURE_TYPES: [u8; 2] = [0, 13];

/// Whether these bytes begin with the node that mkfs.ubifs puts behind the superblock.
fn is_signature(bytes: &[u8]) -> bool {
    let Some(node) = bytes.get(..SIGNATURE_BYTES as usize) else { return false };
    let (magic, crc, len) = (le32(node, 0), le32(node, 4), le32(node, 16));
    magic == NODE_MAGIC && len == SIGNATURE_BYTES && SIGNATURE_TYPES.contains(&node[20]) && crc == crc32(&node[8..])
}

fn superblock<L: Lebs>(check: &mut Check, flash: &mut Flash<L>) -> Result<()> {
    let read = flash.read_rest(SUPERBLOCK_LEB, SUPERBLOCK_BYTES, ReadKind::Check);
    let Some(bytes) = check.read(read)? else { return Ok(()) };
    let behind = if is_signature(&bytes) { SIGNATURE_BYTES } else { 0 };
    // mkfs.ubifs pads that node separately, so the padding need not end with a unit of writing.
    let end = SUPERBLOCK_BYTES + flash.sb.min_io_bytes;
    let found = scan(&bytes[behind as usize..], SUPERBLOCK_BYTES + behind, 8, flash.sb.fanout);
    let wrong = match found {
        Err(e) => Some((e.offset, e.what)),
        Ok(leb) => match leb.nodes.first() {
            Some(node) => Some((node.offset, format!("{}, expected nothing", node.header.kind.one()))),
            None if leb.end > end => Some((end, format!("padding up to {}, expected only up to {end}", leb.end))),
            None => None,
        },
    };
    if let Some((offset, what)) = wrong {
        check.damage(DamageKind::NotErased, (SUPERBLOCK_LEB, offset), format!("behind the superblock: {what}"));
    }
    Ok(())
}

/// A block of the log or of the orphan area: nodes, padding, then erased space.
fn nodes<L: Lebs>(
    check: &mut Check,
    flash: &mut Flash<L>,
    master: &Master,
    lnum: u32,
    kinds: &[NodeType],
    damage: DamageKind,
) -> Result<()> {
    if !flash.lebs.is_mapped(lnum) || check.report.findings.iter().any(|d| d.place.lnum == lnum) {
        return Ok(());
    }
    let Some(bytes) = check.read(flash.read_rest(lnum, 0, ReadKind::Check))? else { return Ok(()) };
    let (min_io, fanout) = (flash.sb.min_io_bytes, flash.sb.fanout);
    let found = match scan(&bytes, 0, min_io, fanout) {
        Ok(leb) => Ok(leb),
        // An interrupted write at the end.
        Err(_) if master.is_dirty() => recover(&bytes, 0, min_io, fanout, Tail::Single).map(|r| r.leb),
        Err(e) => Err(e),
    };
    let wrong = match found {
        Err(e) => Some((e.offset, e.what)),
        Ok(leb) => leb.nodes.iter().find(|n| !kinds.contains(&n.header.kind)).map(|node| {
            let place = if damage == DamageKind::BadLog { "log" } else { "orphan area" };
            (node.offset, format!("{} in the {place}", node.header.kind.one()))
        }),
    };
    if let Some((offset, what)) = wrong {
        check.damage(damage, (lnum, offset), what);
    }
    Ok(())
}

/// The free end of each block of the properties tree.
fn properties<L: Lebs>(check: &mut Check, flash: &mut Flash<L>, master: &Master) -> Result<()> {
    // An interrupted commit may have continued the tree.
    if master.is_dirty() {
        return Ok(());
    }
    // Errors of the table itself were reported when the properties were checked.
    let Ok(table) = lpt::own_blocks(flash, master.ltab) else { return Ok(()) };
    let whole = flash.sb.leb_bytes;
    for (lnum, (free, dirty)) in (flash.sb.lpt_first()..).zip(table) {
        if u64::from(free) + u64::from(dirty) > u64::from(whole) {
            let detail = format!("LEB {lnum} has {free} free and {dirty} dirty bytes, of {whole}");
            check.damage(DamageKind::BadProperties, master.ltab, detail);
            continue;
        }
        // An empty block is unmapped before it is written to.
        if free == 0 || free == whole || !flash.lebs.is_mapped(lnum) {
            continue;
        }
        let Some(bytes) = check.read(flash.read_rest(lnum, whole - free, ReadKind::Check))? else { continue };
        let Some(first) = bytes.iter().position(|&b| b != 0xFF) else { continue };
        let offset = whole - free + first as u32;
        if check.reported((lnum, offset)) {
            continue;
        }
        let byte = bytes[first];
        let detail =
            format!("{byte:#04x} in the last {free} bytes, which the table of the properties tree says are free");
        check.damage(DamageKind::NotErased, (lnum, offset), detail);
    }
    Ok(())
}
