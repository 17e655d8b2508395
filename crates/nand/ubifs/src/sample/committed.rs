// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a commit leaves of a sample volume beside its nodes: superblock, master, and the tree of block properties in
//! its small model. Sums and sizes: Linux `fs/ubifs/lprops.c`, `lpt.c` (`ubifs_create_dflt_lpt`), `misc.h`.

use super::{FANOUT, LOG_LEBS, LPT_LEB, LPT_LEBS, MAIN_FIRST, ORPHAN_LEBS, node};
use crate::flash::{At, NodeRef};
use crate::lebs::LebSizes;
use crate::lpt::{LptShape, NodeKind, Properties, crc16};
use crate::master::{FLAG_NO_ORPHANS, LONGEST_NODE};
use crate::node::{DATA_BYTES, HEADER_BYTES, MASTER_BYTES, NodeType, SUPERBLOCK_BYTES, align};
use crate::superblock::{LOG_LEB, Superblock};

/// Number of the volume's commit.
pub(super) const COMMIT: u64 = 0;

/// The bytes of the properties tree in its first block, and the master. `properties` are those of the main area; the
/// last block with the index is where it could continue, and the last of all is kept for garbage collection.
pub(super) fn of(
    superblock: &[u8],
    properties: &[Properties],
    root: NodeRef,
    sqnum: u64,
    highest_ino: u32,
) -> (Vec<u8>, Vec<u8>) {
    let [min_io_bytes, leb_bytes, leb_count] = [32, 36, 40].map(|at| crate::node::le32(superblock, at));
    let sizes = LebSizes { leb_bytes, leb_count, min_io_bytes };
    let sb = Superblock::parse(superblock, sizes).unwrap_or_else(|e| panic!("{sizes:?}: {e:?}"));
    let (tree, lpt_root, table) = tree(&sb, properties);
    let lpt_head = (LPT_LEB, tree.len() as u32);

    let sum = |of: &dyn Fn(&Properties) -> u32| properties.iter().map(|p| u64::from(of(p))).sum::<u64>();
    let used = |p: &Properties| leb_bytes - p.free - p.dirty;
    // Space that is too short for any node is dead; of other space, what the longest node may not fit into is dark.
    let shortest = align(DATA_BYTES + 8, min_io_bytes);
    let dark = |space: u32| match align(LONGEST_NODE, min_io_bytes) {
        mark if space < mark => space,
        mark if space - mark < DATA_BYTES + 8 => space - DATA_BYTES - 8,
        mark => mark,
    };
    let space = |p: &Properties| if p.index { 0 } else { p.free + p.dirty };
    let totals = [
        sum(&|p| if p.index { used(p) } else { 0 }),
        sum(&|p| p.free),
        sum(&|p| p.dirty),
        sum(&|p| if p.index { 0 } else { used(p) }),
        sum(&|p| if space(p) < shortest { space(p) } else { 0 }),
        sum(&|p| if space(p) < shortest { 0 } else { dark(space(p)) }),
    ];

    let mut body = vec![0; (MASTER_BYTES - HEADER_BYTES) as usize];
    let mut put = |at: usize, bytes: &[u8]| body[at - 24..at - 24 + bytes.len()].copy_from_slice(bytes);
    put(24, &u64::from(highest_ino).to_le_bytes());
    put(32, &COMMIT.to_le_bytes());
    for (at, total) in (72..).step_by(8).zip(totals) {
        put(at, &total.to_le_bytes());
    }
    let mut put = |at: usize, word: u32| put(at, &word.to_le_bytes());
    for (at, word) in [(40, FLAG_NO_ORPHANS), (44, LOG_LEB), (48, root.lnum), (52, root.offset), (56, root.len)] {
        put(at, word);
    }
    let head = leb_bytes - properties[(root.lnum - MAIN_FIRST) as usize].free;
    for (at, word) in [(60, leb_count - 1), (64, root.lnum), (68, head), (152, MAIN_FIRST), (164, leb_count)] {
        put(at, word);
    }
    for (at, place) in [(120, lpt_root), (128, lpt_head), (136, table)] {
        put(at, place.0);
        put(at + 4, place.1);
    }
    put(156, sum(&|p| u32::from(p.free == leb_bytes)) as u32);
    put(160, sum(&|p| u32::from(p.index)) as u32);
    (tree, node(NodeType::Master, sqnum, &body))
}

/// The properties tree and the table of its blocks, in whole units of writing; where its root and the table are.
fn tree(sb: &Superblock, properties: &[Properties]) -> (Vec<u8>, At, At) {
    let shape = LptShape::new(sb);
    let mut bytes: Vec<u8> = Vec::new();
    let mut level: Vec<At> = Vec::new();
    for leaf in properties.chunks(4) {
        let unused = Properties { free: sb.leb_bytes, ..Properties::default() };
        let four = leaf.iter().copied().chain(std::iter::repeat(unused)).take(4);
        let numbers = four
            .flat_map(|p| [(p.free >> 3, shape.space_bits), (p.dirty >> 3, shape.space_bits), (u32::from(p.index), 1)]);
        level.push((LPT_LEB, bytes.len() as u32));
        bytes.extend(packed(NodeKind::Leaf, shape.leaf_bytes, numbers));
    }
    for _ in 0..shape.height {
        let mut above = Vec::new();
        for children in level.chunks(4) {
            // A block behind the last one means that there is no child.
            let four = children.iter().copied().chain(std::iter::repeat((LPT_LEB + LPT_LEBS, 0))).take(4);
            let numbers = four.flat_map(|at| [(at.0 - LPT_LEB, shape.lnum_bits), (at.1, shape.offset_bits)]);
            above.push((LPT_LEB, bytes.len() as u32));
            bytes.extend(packed(NodeKind::Inner, shape.inner_bytes, numbers));
        }
        level = above;
    }
    let table = bytes.len() as u32;
    let used = table + shape.table_bytes;
    let end = align(used, sb.min_io_bytes);
    assert!(end <= sb.leb_bytes, "the properties of {} blocks need more than one block", properties.len());
    let blocks = [(sb.leb_bytes - end, end - used), (sb.leb_bytes, 0)];
    let numbers = blocks.into_iter().flat_map(|(free, dirty)| [(free, shape.whole_bits), (dirty, shape.whole_bits)]);
    bytes.extend(packed(NodeKind::Table, shape.table_bytes, numbers));
    bytes.resize(end as usize, 0xFF);
    (bytes, level[0], (LPT_LEB, table))
}

/// A node of the properties tree: numbers, each with its bits, without gaps, lowest bit first.
fn packed(kind: NodeKind, len: u32, numbers: impl Iterator<Item = (u32, u32)>) -> Vec<u8> {
    let mut bytes = vec![0; len as usize];
    let mut at = 16;
    for (number, bits) in [(kind as u32, 4)].into_iter().chain(numbers) {
        for bit in 0..bits {
            bytes[at / 8] |= ((number >> bit & 1) as u8) << (at % 8);
            at += 1;
        }
    }
    let crc = crc16(&bytes[2..]);
    bytes[..2].copy_from_slice(&crc.to_le_bytes());
    bytes
}

pub(crate) fn superblock(sizes: LebSizes) -> Vec<u8> {
    let LebSizes { leb_bytes, leb_count, min_io_bytes } = sizes;
    let mut body = vec![0; (SUPERBLOCK_BYTES - HEADER_BYTES) as usize];
    let mut put = |at: usize, word: u32| body[at - 24..at - 20].copy_from_slice(&word.to_le_bytes());
    for (at, word) in [(32, min_io_bytes), (36, leb_bytes), (40, leb_count), (44, leb_count), (48, 3 * leb_bytes)] {
        put(at, word);
    }
    for (at, word) in [(56, LOG_LEBS), (60, LPT_LEBS), (64, ORPHAN_LEBS), (68, 1), (72, FANOUT), (80, 4)] {
        put(at, word);
    }
    put(104, 1);
    node(NodeType::Superblock, 1, &body)
}
