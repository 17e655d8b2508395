// SPDX-License-Identifier: MIT OR Apache-2.0
//! The master: where the index, the properties tree and the log begin. Two blocks hold the same sequence of copies.
//!
//! Facts: Linux `fs/ubifs/master.c` (`scan_for_master`, `validate_master`) and `recovery.c`
//! (`ubifs_recover_master_node`).

use crate::error::{DamageKind, Result};
use crate::flash::{At, Flash, NodeRef};
use crate::lebs::{Lebs, ReadKind};
use crate::node::{self, INDEX_BYTES, MASTER_BYTES, NodeType, align, le32, le64};
use crate::scan::{ScanError, Scanned, all_ff, scan};
use crate::superblock::MASTER_LEB;

/// The volume was not unmounted.
pub(crate) const FLAG_DIRTY: u32 = 1;
/// No inode waits for deletion.
pub(crate) const FLAG_NO_ORPHANS: u32 = 2;
/// Written by a recovery.
pub(crate) const FLAG_RECOVERY: u32 = 4;

/// No inode has a number from here on (Linux `INUM_WATERMARK`).
const HIGHEST_INUM: u64 = 0xFFFF_FF00;
/// No node has a sequence number from here on (Linux `SQNUM_WATERMARK`).
const HIGHEST_SQNUM: u64 = 0xFFFF_FFFF_FF00_0000;
/// Longest node with inline data: an inode (Linux `UBIFS_MAX_NODE_SZ`). Shorter space is called dark.
pub(crate) const LONGEST_NODE: u32 = 160 + 4096;

/// Bytes of the main area by use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Free.
    pub free: u64,
    /// No longer used.
    pub dirty: u64,
    /// Used.
    pub used: u64,
    /// Free and dirty bytes in blocks with too few of them for any node.
    pub dead: u64,
    /// Free and dirty bytes that may be too few for the next node.
    pub dark: u64,
}

/// Contents of the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Master {
    /// Byte in both master blocks.
    pub offset: u32,
    /// Sequence number of the node.
    pub sqnum: u64,
    /// Highest inode number at the last commit.
    pub highest_inum: u64,
    /// Number of the last commit.
    pub commit: u64,
    /// Flags.
    pub flags: u32,
    /// First block of the log.
    pub log_lnum: u32,
    /// Root of the index.
    pub root: NodeRef,
    /// Block kept for garbage collection.
    pub gc_lnum: u32,
    /// Where the index continues.
    pub index_head: At,
    /// Bytes of the index.
    pub index_bytes: u64,
    /// Bytes of the main area.
    pub totals: Totals,
    /// Root of the properties tree.
    pub lpt_root: At,
    /// Where the properties tree continues.
    pub lpt_head: At,
    /// Table of the properties tree's blocks.
    pub ltab: At,
    /// List of saved blocks.
    pub lsave: At,
    /// Where the last search for space ended.
    pub lscan_lnum: u32,
    /// Empty blocks.
    pub empty_lebs: u32,
    /// Blocks with index nodes.
    pub index_lebs: u32,
    /// Blocks in use at the last commit.
    pub leb_count: u32,
}

impl Master {
    fn parse(b: &[u8], offset: u32) -> Master {
        let at = |i: usize| (le32(b, i), le32(b, i + 4));
        Master {
            offset,
            sqnum: le64(b, 8),
            highest_inum: le64(b, 24),
            commit: le64(b, 32),
            flags: le32(b, 40),
            log_lnum: le32(b, 44),
            root: NodeRef { lnum: le32(b, 48), offset: le32(b, 52), len: le32(b, 56) },
            gc_lnum: le32(b, 60),
            index_head: at(64),
            index_bytes: le64(b, 72),
            totals: Totals {
                free: le64(b, 80),
                dirty: le64(b, 88),
                used: le64(b, 96),
                dead: le64(b, 104),
                dark: le64(b, 112),
            },
            lpt_root: at(120),
            lpt_head: at(128),
            ltab: at(136),
            lsave: at(144),
            lscan_lnum: le32(b, 152),
            empty_lebs: le32(b, 156),
            index_lebs: le32(b, 160),
            leb_count: le32(b, 164),
        }
    }

    /// Its place, in the first of its two blocks.
    pub(crate) fn place(&self) -> At {
        (MASTER_LEB, self.offset)
    }

    /// Whether the volume was not unmounted, so that the journal may end in torn writes.
    pub fn is_dirty(&self) -> bool {
        self.flags & FLAG_DIRTY != 0
    }
}

/// Reads both copies and takes the newest good one.
pub(crate) fn read<L: Lebs>(flash: &mut Flash<L>) -> Result<Master> {
    let (min_io, fanout) = (flash.sb.min_io_bytes, flash.sb.fanout);
    let first = flash.read_rest(MASTER_LEB, 0, ReadKind::Scan)?;
    let newest = |bytes: &[u8]| -> std::result::Result<Option<(usize, u32)>, ScanError> {
        let found = scan(bytes, 0, min_io, fanout)?;
        Ok(last_master(bytes, &found.nodes)?.map(|(offset, _)| (found.nodes.len(), offset)))
    };
    // The kernel finishes the first block before it reads the second.
    let one = newest(&first);
    let master = match one {
        Ok(one) => {
            let second = flash.read_rest(MASTER_LEB + 1, 0, ReadKind::Scan)?;
            match (one, newest(&second)) {
                (Some(one), Ok(Some(two)))
                    if one == two && same_master(node_at(&first, one.1), node_at(&second, one.1)) =>
                {
                    Some(Master::parse(node_at(&first, one.1), one.1))
                }
                _ => None,
            }
        }
        Err(_) => None,
    };
    let master = match master {
        Some(master) => master,
        None => recover(flash)?,
    };
    validate(flash, &master)?;
    Ok(master)
}

/// The bytes of a master node; the caller has checked that one begins there.
fn node_at(bytes: &[u8], offset: u32) -> &[u8] {
    &bytes[offset as usize..(offset + MASTER_BYTES) as usize]
}

/// The last node of a scanned block, if it is a master; `None` if the block is empty.
pub(crate) fn last_master<'b>(
    bytes: &'b [u8],
    nodes: &[Scanned],
) -> std::result::Result<Option<(u32, &'b [u8])>, ScanError> {
    match nodes.last() {
        Some(last) if last.header.kind != NodeType::Master => {
            let what = format!("{} among master nodes", last.header.kind.one());
            Err(ScanError { offset: last.offset, what })
        }
        Some(last) => Ok(Some((last.offset, node_at(bytes, last.offset)))),
        None => Ok(None),
    }
}

/// Whether two masters are equal except for the common header and the message authentication code at the end.
pub(crate) fn same_master(a: &[u8], b: &[u8]) -> bool {
    a[24..296] == b[24..296] && a[360..] == b[360..]
}

/// The last master node of a block, and whether other bytes follow it.
struct LastMaster {
    node: Option<u32>,
    corrupt: bool,
}

/// Finds the last master node without trusting the bytes behind it (`get_master_node`).
fn find_last(bytes: &[u8], step: u32, fanout: u32) -> std::result::Result<LastMaster, (u32, String)> {
    let whole = bytes.len() as u32;
    let mut at = 0;
    while at + MASTER_BYTES <= whole && le32(bytes, at as usize) == node::NODE_MAGIC {
        at += step;
    }
    let mut found = LastMaster { node: None, corrupt: false };
    if at > 0 {
        at -= step;
        let mut good = node::check(&bytes[at as usize..], fanout);
        if good.is_err() && at > 0 {
            // A power cut explains one torn master; the one before it has to be good.
            at -= step;
            good = node::check(&bytes[at as usize..], fanout);
            if let Err(e) = &good {
                return Err((at, format!("two bad master nodes in a row: {e}")));
            }
        }
        if let Ok(header) = good {
            if header.kind != NodeType::Master {
                return Err((at, format!("{} among master nodes", header.kind.one())));
            }
            found.node = Some(at);
            at += step;
        }
    }
    if at < whole {
        let end = whole.min(at.saturating_add(step));
        found.corrupt = !all_ff(&bytes[at as usize..end as usize]);
        if let Some(first) = bytes[end as usize..].iter().position(|&b| b != 0xFF) {
            return Err((
                end + first as u32,
                "data behind the last master node, more than one torn write leaves".to_owned(),
            ));
        }
    }
    Ok(found)
}

/// Chooses a master when the two copies differ.
fn recover<L: Lebs>(flash: &mut Flash<L>) -> Result<Master> {
    let step = align(MASTER_BYTES, flash.sb.min_io_bytes);
    let whole = flash.sb.leb_bytes;
    let fanout = flash.sb.fanout;
    let mut blocks = Vec::new();
    for lnum in [MASTER_LEB, MASTER_LEB + 1] {
        let bytes = flash.read_rest(lnum, 0, ReadKind::Master)?;
        match find_last(&bytes, step, fanout) {
            Ok(found) => blocks.push((bytes, found)),
            Err((offset, detail)) => return Err(flash.damage(DamageKind::BadMaster, (lnum, offset), detail)),
        }
    }
    let (one, two) = (&blocks[0], &blocks[1]);
    let parse = |block: &(Vec<u8>, LastMaster), offset: u32| Ok(Master::parse(node_at(&block.0, offset), offset));
    match (one.1.node, two.1.node) {
        (Some(a), second) => {
            let flags = le32(node_at(&one.0, a), 40);
            if flags & FLAG_RECOVERY != 0 && a == 0 && !one.1.corrupt {
                return parse(one, a);
            }
            let newer = match second {
                Some(b) if a == b => same_master(node_at(&one.0, a), node_at(&two.0, b)),
                // The first copy was written, the second not yet.
                Some(b) => (b + step == a || a == 0 && whole - b - step < step) && !one.1.corrupt,
                None => a == 0 && !one.1.corrupt,
            };
            if newer {
                return parse(one, a);
            }
            let detail = match second {
                Some(b) => format!("its master at {a} and that of LEB {} at {b} contradict each other", MASTER_LEB + 1),
                None => format!("LEB {} has no good master, and this block not just one", MASTER_LEB + 1),
            };
            Err(flash.damage(DamageKind::BadMaster, (MASTER_LEB, a), detail))
        }
        (None, Some(b)) => {
            if b + step + step <= whole {
                let detail = format!("no good master, although LEB {} is not full", MASTER_LEB + 1);
                return Err(flash.damage(DamageKind::BadMaster, (MASTER_LEB, 0), detail));
            }
            parse(two, b)
        }
        (None, None) => Err(flash.damage(DamageKind::BadMaster, (MASTER_LEB, 0), "no good master in either block")),
    }
}

/// Refuses invalid values (`validate_master`).
fn validate<L: Lebs>(flash: &Flash<L>, m: &Master) -> Result<()> {
    let sb = &flash.sb;
    let bad = |detail: String| Err(flash.damage(DamageKind::BadMaster, m.place(), detail));
    if !(crate::superblock::LOG_LEB..sb.lpt_first()).contains(&m.log_lnum) {
        return bad(format!("a log in block {}, which is not of the log area", m.log_lnum));
    }
    if m.highest_inum >= HIGHEST_INUM {
        return bad(format!("highest inode number {}", m.highest_inum));
    }
    let longest = INDEX_BYTES + sb.fanout * node::BRANCH_BYTES;
    if !sb.in_main(m.root.lnum, m.root.offset, m.root.len)
        || !m.root.offset.is_multiple_of(8)
        || !(INDEX_BYTES + node::BRANCH_BYTES..=longest).contains(&m.root.len)
    {
        let NodeRef { lnum, offset, len } = m.root;
        return bad(format!("an index root of {len} bytes in block {lnum} at {offset}"));
    }
    if m.gc_lnum != u32::MAX && !sb.in_main(m.gc_lnum, 0, 0) {
        return bad(format!("block {} for garbage collection", m.gc_lnum));
    }
    if !sb.in_main(m.index_head.0, m.index_head.1, 0) || !m.index_head.1.is_multiple_of(sb.min_io_bytes) {
        return bad(format!("an index head in block {} at {}", m.index_head.0, m.index_head.1));
    }
    if m.leb_count < sb.main_first() || m.leb_count > sb.leb_count {
        return bad(format!("{} blocks in use, the superblock says {}", m.leb_count, sb.leb_count));
    }
    let in_lpt = |at: At| (sb.lpt_first()..sb.orphans_first()).contains(&at.0) && at.1 <= sb.leb_bytes;
    for (what, at) in [("root", m.lpt_root), ("head", m.lpt_head), ("table", m.ltab)] {
        if !in_lpt(at) {
            return bad(format!("a {what} of the properties tree in block {} at {}", at.0, at.1));
        }
    }
    if !m.lpt_head.1.is_multiple_of(sb.min_io_bytes) {
        return bad(format!("a head of the properties tree at {}, no multiple of {}", m.lpt_head.1, sb.min_io_bytes));
    }
    if !sb.in_main(m.lscan_lnum, 0, 0) {
        return bad(format!("a last search for space in block {}, which is not of the main area", m.lscan_lnum));
    }
    let (main_lebs, main_bytes) = (sb.main_lebs(), u64::from(sb.main_lebs()) * u64::from(sb.leb_bytes));
    for (what, count, kept) in [("empty", m.empty_lebs, 2), ("index", m.index_lebs, 1)] {
        if count > main_lebs.saturating_sub(kept) {
            return bad(format!("{count} {what} blocks, the main area has {main_lebs}"));
        }
    }
    if m.sqnum >= HIGHEST_SQNUM || m.commit >= m.sqnum {
        return bad(format!("sequence number {}, and commit {}", m.sqnum, m.commit));
    }
    // As after a mount that let the volume grow.
    let growth = u64::from(sb.leb_count - m.leb_count);
    let dark_mark = u64::from(align(LONGEST_NODE, sb.min_io_bytes));
    let free = m.totals.free.saturating_add(growth * u64::from(sb.leb_bytes));
    let dark = m.totals.dark.saturating_add(growth * dark_mark);
    let sums = [
        ("free", free, main_bytes),
        ("dirty", m.totals.dirty, main_bytes),
        ("used", m.totals.used, main_bytes),
        ("index", m.index_bytes, main_bytes),
    ];
    let unused = [("dead", m.totals.dead), ("dark", dark)]
        .map(|(what, bytes)| (what, bytes, free.saturating_add(m.totals.dirty)));
    for (what, bytes, most) in sums.into_iter().chain(unused) {
        if bytes > most || !bytes.is_multiple_of(8) {
            return bad(format!("{bytes} {what} bytes, expected a multiple of 8 up to {most}"));
        }
    }
    if free + m.totals.dirty + m.totals.used > main_bytes {
        return bad(format!("more free, dirty and used bytes together than the main area has, {main_bytes}"));
    }
    if m.totals.dead + dark + m.totals.used + m.index_bytes > main_bytes {
        return bad(format!("more dead, dark, used and index bytes together than the main area has, {main_bytes}"));
    }
    if sb.big_lpt && !in_lpt(m.lsave) {
        return bad(format!("a list of LEBs to save (lsave) in block {} at {}", m.lsave.0, m.lsave.1));
    }
    Ok(())
}
