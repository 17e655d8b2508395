// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks the nodes of an erase block from some offset on, and cuts off half-written ends that a power cut left.
//! Facts: Linux `fs/ubifs/scan.c` and `fs/ubifs/recovery.c`. This module works on bytes in memory.

use crate::key::Key;
use crate::node::{self, Header, NodeError, NodeType, PAD_BYTES, align, align8, le32};

/// A node of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Byte within the block.
    pub offset: u32,
    /// Its header.
    pub header: Header,
    /// The key, for nodes that have one.
    pub key: Key,
}

/// Contents of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScannedLeb {
    /// Nodes without padding, in order.
    pub nodes: Vec<Scanned>,
    /// Where the unused rest begins, a multiple of the smallest unit of writing.
    pub end: u32,
}

/// Why a walk ended before the end of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanError {
    /// Byte within the block.
    pub offset: u32,
    /// Description.
    pub what: String,
}

enum Step {
    Node(Header),
    Padding(u32),
    Empty,
    Garbage(String),
    Corrupt(String),
    BadPadding(String),
}

/// Whether all bytes are 0xFF.
pub(crate) fn all_ff(bytes: &[u8]) -> bool {
    // Pieces without an early exit become wide instructions; blocks have megabytes.
    bytes.chunks(64).all(|piece| piece.iter().fold(0xFF, |a, &b| a & b) == 0xFF)
}

/// Classifies the beginning of `bytes`, which extend to the end of the block.
fn step(bytes: &[u8], fanout: u32) -> Step {
    let magic = le32(bytes, 0);
    if magic == u32::MAX {
        return Step::Empty;
    }
    if magic != node::NODE_MAGIC {
        let ce = bytes.iter().take(PAD_BYTES as usize).take_while(|&&b| b == 0xCE).count();
        return if ce == 0 || ce % 8 != 0 {
            Step::Garbage(format!("neither a node nor padding nor empty space: it begins with {magic:#010x}"))
        } else {
            Step::Padding(ce as u32)
        };
    }
    if bytes.len() < node::HEADER_BYTES as usize {
        return Step::Garbage("a node that begins less than its header before the end of the block".to_owned());
    }
    let header = match node::check(bytes, fanout) {
        Ok(header) => header,
        Err(e) => return Step::Corrupt(e.to_string()),
    };
    if header.kind != NodeType::Padding {
        return Step::Node(header);
    }
    let pad = le32(bytes, 24);
    let whole = u64::from(header.len) + u64::from(pad);
    if whole > bytes.len() as u64 || whole % 8 != 0 {
        return Step::BadPadding(format!("a padding node for {pad} bytes"));
    }
    Step::Padding(whole as u32)
}

fn scanned(bytes: &[u8], offset: u32, header: Header) -> Scanned {
    let key = match header.kind {
        NodeType::Inode | NodeType::Data | NodeType::Dentry | NodeType::Xattr | NodeType::Truncation => {
            node::key_of(bytes)
        }
        _ => Key { ino: 0, rest: 0 },
    };
    Scanned { offset, header, key }
}

/// Walks a block, given from byte `start` to its end; damage is an error.
pub fn scan(bytes: &[u8], start: u32, min_io: u32, fanout: u32) -> Result<ScannedLeb, ScanError> {
    let mut found = ScannedLeb::default();
    let mut at = 0usize;
    while at + 8 <= bytes.len() {
        let offset = start + at as u32;
        match step(&bytes[at..], fanout) {
            Step::Node(header) => {
                found.nodes.push(scanned(&bytes[at..], offset, header));
                at += align8(header.len) as usize;
            }
            Step::Padding(n) => at += n as usize,
            Step::Empty => break,
            Step::Garbage(what) | Step::Corrupt(what) | Step::BadPadding(what) => {
                return Err(ScanError { offset, what });
            }
        }
    }
    let at = at.min(bytes.len());
    let offset = start + at as u32;
    if !offset.is_multiple_of(min_io) {
        let what = format!("empty space begins here, which is not a multiple of {min_io}");
        return Err(ScanError { offset, what });
    }
    if let Some(dirt) = bytes[at..].iter().position(|&b| b != 0xFF) {
        let what = format!("not empty, although empty space began at {offset}");
        return Err(ScanError { offset: offset + dirt as u32, what });
    }
    found.end = offset;
    Ok(found)
}

/// Treatment of the end of a block whose writer was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nodes are independent (log, orphans).
    Single,
    /// An incomplete group is dropped as a whole.
    Grouped,
    /// Written by garbage collection: nodes in the last unit of writing are dropped.
    Collected,
}

/// A block after recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Good nodes.
    pub leb: ScannedLeb,
    /// Where the good nodes end, before rounding up to a unit of writing.
    pub cut_at: u32,
}

/// Walks a block that may end in a torn write, and cuts that off. Damage that a power cut cannot explain is an error.
pub fn recover(bytes: &[u8], start: u32, min_io: u32, fanout: u32, tail: Tail) -> Result<Recovered, ScanError> {
    let mut nodes = Vec::new();
    let mut at = 0usize;
    let mut stop = Step::Empty;
    while at + 8 <= bytes.len() {
        stop = step(&bytes[at..], fanout);
        match stop {
            Step::Node(header) => {
                nodes.push(scanned(&bytes[at..], start + at as u32, header));
                at += align8(header.len) as usize;
            }
            Step::Padding(n) => at += n as usize,
            _ => break,
        }
    }
    let at = at.min(bytes.len());
    let offset = start + at as u32;
    let rest = &bytes[at..];
    let error = |what: String| ScanError { offset, what };
    match stop {
        Step::Garbage(what) | Step::BadPadding(what) => {
            if !is_last_write(rest, offset, min_io) {
                return Err(error(format!("{what}, with more behind it than a power cut leaves")));
            }
        }
        Step::Corrupt(what) => {
            if !nothing_follows(rest, offset, min_io, fanout) {
                return Err(error(format!("{what}, with more behind it than a power cut leaves")));
            }
        }
        _ => {
            if !all_ff(rest) && !is_last_write(rest, offset, min_io) {
                let first = rest.iter().position(|&b| b != 0xFF).unwrap_or(0) as u32;
                return Err(ScanError {
                    offset: offset + first,
                    what: format!("not empty, although empty space began at {offset}"),
                });
            }
        }
    }
    let unit_start = offset - offset % min_io;
    let mut end = offset;
    if tail != Tail::Single && tail != Tail::Collected {
        while let Some(last) = nodes.last() {
            if last.header.group != 1 {
                break;
            }
            end = last.offset;
            nodes.pop();
        }
    }
    if tail == Tail::Collected {
        while end > unit_start
            && let Some(last) = nodes.pop()
        {
            end = last.offset;
        }
    }
    Ok(Recovered { leb: ScannedLeb { nodes, end: align(end, min_io) }, cut_at: end })
}

/// Whether the space behind the unit of writing at `offset` is erased.
fn is_last_write(rest: &[u8], offset: u32, unit: u32) -> bool {
    let skip = (align(offset.saturating_add(1), unit) - offset) as usize;
    rest.get(skip..).is_none_or(all_ff)
}

/// Whether the space behind a corrupt node is erased.
fn nothing_follows(rest: &[u8], offset: u32, unit: u32, fanout: u32) -> bool {
    let skip = (align(offset.saturating_add(node::HEADER_BYTES), unit) - offset) as usize;
    if rest.get(skip..).is_none_or(all_ff) {
        return true;
    }
    // Bytes follow the header, so the header was written and states the length of the node.
    match node::check(rest, fanout) {
        Err(NodeError::Crc { len, .. }) => {
            let skip = (align(offset.saturating_add(len), unit) - offset) as usize;
            rest.get(skip..).is_none_or(all_ff)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u32 = 512;

    /// A node of 40 bytes.
    fn node(kind: NodeType, group: u8) -> Vec<u8> {
        let body = if kind == NodeType::Truncation { 32 } else { 8 };
        let mut node = node::NODE_MAGIC.to_le_bytes().to_vec();
        node.resize(16, 0);
        node.extend((24 + body as u32).to_le_bytes());
        node.extend([kind as u8, group, 0, 0]);
        node.resize(24 + body, 1);
        let crc = node::crc32(&node[8..]);
        node[4..8].copy_from_slice(&crc.to_le_bytes());
        node
    }

    fn block(nodes: &[Vec<u8>], whole: usize) -> Vec<u8> {
        let mut block = nodes.concat();
        block.resize(whole, 0xFF);
        block
    }

    fn good(group: u8) -> Vec<u8> {
        node(NodeType::Truncation, group)
    }

    #[test]
    fn a_torn_end_is_cut_off_and_a_torn_middle_is_not() {
        let mut torn = good(0);
        torn[30] ^= 1;
        let block_with = |nodes: &[Vec<u8>]| block(nodes, 8 * UNIT as usize);
        let bytes = block_with(&[good(0), good(0), torn.clone()]);
        let error = scan(&bytes, 0, UNIT, 8).expect_err("a torn node");
        assert_eq!(error.offset, 112);
        let kept = recover(&bytes, 0, UNIT, 8, Tail::Grouped).expect("a torn end");
        assert_eq!((kept.leb.nodes.len(), kept.cut_at, kept.leb.end), (2, 112, 512));
        // The same with further nodes a unit of writing later.
        let mut bytes = block_with(&[good(0), good(0), torn]);
        bytes[1024..1080].copy_from_slice(&good(0));
        let error = recover(&bytes, 0, UNIT, 8, Tail::Grouped).expect_err("more than a torn end");
        assert_eq!(error.offset, 112);
        assert!(error.what.ends_with("with more behind it than a power cut leaves"), "{}", error.what);
    }

    #[test]
    fn groups_go_as_a_whole() {
        let mut torn = good(2);
        torn[30] ^= 1;
        let bytes = block(&[good(0), good(1), good(2), good(1), good(1), torn], 4096);
        let kept = recover(&bytes, 0, UNIT, 8, Tail::Grouped).expect("a torn end");
        assert_eq!((kept.leb.nodes.len(), kept.cut_at), (3, 3 * 56));
        // If nodes are independent, good ones stay.
        let kept = recover(&bytes, 0, UNIT, 8, Tail::Single).expect("a torn end");
        assert_eq!(kept.leb.nodes.len(), 5);
        // Garbage collection drops the whole last unit of writing.
        let kept = recover(&bytes, 0, UNIT, 8, Tail::Collected).expect("a torn end");
        assert_eq!((kept.leb.nodes.len(), kept.leb.end), (0, 0));
    }

    #[test]
    fn padding_of_both_kinds_is_skipped() {
        let mut pad = node(NodeType::Padding, 0);
        pad.truncate(28);
        pad[16..20].copy_from_slice(&28u32.to_le_bytes());
        pad[24..28].copy_from_slice(&36u32.to_le_bytes());
        let crc = node::crc32(&pad[8..]);
        pad[4..8].copy_from_slice(&crc.to_le_bytes());
        pad.resize(64, 0);
        let mut bytes = block(&[good(0), vec![0xCE; 16], good(0), pad], 4096);
        let error = scan(&bytes, 0, UNIT, 8).expect_err("space that is not padded");
        assert!(error.what.contains("not a multiple of 512"), "{}", error.what);
        // The padding node of the rest of the unit.
        let pad = &mut bytes[128..156];
        pad[24..28].copy_from_slice(&(512u32 - 128 - 28).to_le_bytes());
        let crc = node::crc32(&pad[8..]);
        pad[4..8].copy_from_slice(&crc.to_le_bytes());
        let found = scan(&bytes, 0, UNIT, 8).expect("padding");
        assert_eq!((found.nodes.len(), found.nodes[1].offset, found.end), (2, 72, 512));
        // A cleared bit in the empty space behind.
        bytes[3000] = 0;
        assert_eq!(scan(&bytes, 0, UNIT, 8).expect_err("not empty").offset, 3000);
    }
}
