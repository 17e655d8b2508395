// SPDX-License-Identifier: MIT OR Apache-2.0
//! UBIFS volumes with changed bytes.

use crate::Bytes;
use readpath_ubifs::{
    Compression, Entry, Expander, Inode, LebError, LebSizes, Lebs, LptShape, MountMode, NameHash, NodeType, ReadKind,
    Session, Tail, Ubifs, check, check_node, crc16, crc32, recover_leb, scan_leb,
};
use std::io::Read;
use std::sync::OnceLock;

/// The volume of `ubifs_volume`: made by mkfs.ubifs from about forty files.
const TINY: &[u8] = include_bytes!("tiny.ubifs.xz");
const LEB_BYTES: usize = 15_360;
const LEBS: u32 = 40;
const MIN_IO: u32 = 512;
/// An unused block, which becomes the journal.
const BUD: u32 = 30;
/// No operation on so small a volume needs as many reads.
const MOST_READS: u32 = 200_000;

/// Bytes as an erase block and as a node.
pub fn ubifs_nodes(data: &[u8]) {
    if let Ok(header) = check_node(data, 8) {
        let node = &data[..header.len as usize];
        match header.kind {
            NodeType::Inode => drop(Inode::parse(node).map(|inode| inode.device())),
            NodeType::Dentry | NodeType::Xattr => drop(Entry::parse(node)),
            _ => {}
        }
    }
    let scanned = scan_leb(data, 0, 8, 8);
    for tail in [Tail::Single, Tail::Grouped, Tail::Collected] {
        if let Ok(kept) = recover_leb(data, 0, 8, 8, tail) {
            let mut end = 0;
            for node in &kept.leb.nodes {
                assert!(node.offset >= end, "nodes are in order");
                end = node.offset + node.header.len;
            }
            assert!(end as usize <= data.len() && kept.cut_at <= kept.leb.end);
            if let (Ok(scanned), Tail::Single) = (&scanned, tail) {
                assert_eq!(scanned.nodes, kept.leb.nodes, "nothing is torn off what is whole");
            }
        }
    }
}

/// The first byte says how the rest is compressed.
pub fn ubifs_data(data: &[u8]) {
    let Some((&how, input)) = data.split_first() else { return };
    let Some(how) = Compression::from_number(u16::from(how % 4)) else { return };
    let mut out = [0; 4096 + 8];
    let (block, guard) = out.split_at_mut(4096);
    let mut expander = Expander::default();
    let first = expander.expand(how, input, block);
    if let Ok(n) = first {
        assert!(n <= 4096);
    }
    assert_eq!(guard, [0; 8]);
    // Nothing is left over from one block for the next.
    let mut again = [0; 4096];
    let second = expander.expand(how, input, &mut again);
    assert_eq!(first, second);
    if let Ok(n) = second {
        assert_eq!(out[..n], again[..n]);
    }
}

/// The blocks of a volume in memory; counts reads.
#[derive(Clone)]
struct Memory {
    lebs: Vec<Option<Vec<u8>>>,
    reads: u32,
}

impl Lebs for Memory {
    fn sizes(&self) -> LebSizes {
        LebSizes { leb_bytes: LEB_BYTES as u32, leb_count: LEBS, min_io_bytes: MIN_IO }
    }

    fn peb(&self, lnum: u32) -> Option<u32> {
        self.lebs.get(lnum as usize)?.as_ref().map(|_| lnum)
    }

    fn read(&mut self, lnum: u32, offset: u32, buf: &mut [u8], _what: ReadKind) -> Result<(), LebError> {
        self.reads += 1;
        assert!(self.reads < MOST_READS, "reads without end");
        match &self.lebs[lnum as usize] {
            Some(leb) => buf.copy_from_slice(&leb[offset as usize..][..buf.len()]),
            None => {
                assert!(offset as usize + buf.len() <= LEB_BYTES, "within the block");
                buf.fill(0xFF);
            }
        }
        Ok(())
    }
}

/// The volume, and block, byte and bytes of each of its nodes.
fn base() -> &'static (Memory, Vec<(usize, usize, usize)>) {
    static BASE: OnceLock<(Memory, Vec<(usize, usize, usize)>)> = OnceLock::new();
    BASE.get_or_init(|| {
        let mut bytes = Vec::new();
        liblzma::read::XzDecoder::new(TINY).read_to_end(&mut bytes).expect("the volume");
        let mut lebs: Vec<Option<Vec<u8>>> = bytes.chunks_exact(LEB_BYTES).map(|leb| Some(leb.to_vec())).collect();
        lebs.resize(LEBS as usize, None);
        let mut nodes = Vec::new();
        for (lnum, leb) in lebs.iter().enumerate() {
            let found = leb.as_ref().and_then(|leb| scan_leb(leb, 0, MIN_IO, 8).ok());
            for node in found.into_iter().flat_map(|leb| leb.nodes) {
                nodes.push((lnum, node.offset as usize, node.header.len as usize));
            }
        }
        assert!(nodes.len() > 100);
        (Memory { lebs, reads: 0 }, nodes)
    })
}

/// A node with a checksum that fits.
fn sealed(kind: NodeType, sqnum: u64, group: u8, body: &[u8]) -> Vec<u8> {
    let len = 24 + body.len() as u32;
    let mut node = 0x0610_1831u32.to_le_bytes().to_vec();
    node.extend([0; 4]);
    node.extend(sqnum.to_le_bytes());
    node.extend(len.to_le_bytes());
    node.extend([kind as u8, group % 3, 0, 0]);
    node.extend(body);
    let crc = crc32(&node[8..]);
    node[4..8].copy_from_slice(&crc.to_le_bytes());
    node
}

fn journal_node(b: &mut Bytes, sqnum: u64) -> Vec<u8> {
    let (kind, ino, low, more) = (b.u8(), u32::from(b.u8() % 48), u32::from(b.u8()), b.u8());
    let key = |kind: u32, low: u32| [ino.to_le_bytes(), (kind << 29 | low).to_le_bytes()].concat();
    let mut body = vec![0; 16];
    let kind = match kind % 5 {
        0 => {
            body[..8].copy_from_slice(&key(0, 0));
            body.resize(136, 0);
            body[24..32].copy_from_slice(&u64::from(more).to_le_bytes());
            body[68] = more % 3;
            body[80..84].copy_from_slice(&if more % 2 == 0 { 0o100_644u32 } else { 0o040_755 }.to_le_bytes());
            NodeType::Inode
        }
        1 => {
            body[..8].copy_from_slice(&key(1, low % 6));
            body.extend(u32::from(more).to_le_bytes());
            body.extend([0; 4]);
            body.extend(vec![7; usize::from(more)]);
            NodeType::Data
        }
        kind @ (2 | 3) => {
            // Few names, so that they come again; every second one has the hash of another.
            let name = [b'f', b'0' + (low % 8) as u8];
            let hash = NameHash::R5.of(&name);
            body[..8].copy_from_slice(&key(u32::from(kind), hash));
            body.extend(u64::from(more % 48).to_le_bytes());
            body.extend([0, more % 8, 2, 0, 0, 0, 0, 0]);
            body.extend(name);
            body.push(0);
            if kind == 2 { NodeType::Dentry } else { NodeType::Xattr }
        }
        _ => {
            body[..4].copy_from_slice(&ino.to_le_bytes());
            body.extend((u64::from(low) * 200).to_le_bytes());
            body.extend((u64::from(low.min(u32::from(more))) * 200).to_le_bytes());
            NodeType::Truncation
        }
    };
    sealed(kind, sqnum, more, &body)
}

/// Changes to a small volume, each of a few bytes: what bytes are set to, whether checksums are made to fit, and nodes
/// of the journal. The first byte says whether the volume was unmounted and what else is done with it.
pub fn ubifs_volume(data: &[u8]) {
    let (base, nodes) = base();
    let mut volume = base.clone();
    let mut b = Bytes(data);
    let how = b.u8();
    let mut bud: Vec<u8> = Vec::new();
    let mut sqnum = 1 << 20;
    while !b.is_empty() {
        match b.u8() % 4 {
            0 => {
                let (lnum, offset, value) = (b.u8() % 14, b.u16(), b.u8());
                if let Some(leb) = &mut volume.lebs[usize::from(lnum)] {
                    leb[usize::from(offset) % LEB_BYTES] = value;
                }
            }
            which @ (1 | 2) => {
                let (lnum, offset, len) = nodes[usize::from(b.u16()) % nodes.len()];
                let Some(leb) = &mut volume.lebs[lnum] else { continue };
                let at = offset + 8 + usize::from(b.u16()) % (len.min(256) - 8);
                let value = b.u32().to_le_bytes();
                let n = if which == 1 { 1 } else { 4.min(offset + len - at) };
                leb[at..at + n].copy_from_slice(&value[..n]);
                let crc = crc32(&leb[offset + 8..offset + len]);
                leb[offset + 4..offset + 8].copy_from_slice(&crc.to_le_bytes());
            }
            _ => {
                let node = journal_node(&mut b, sqnum);
                // Later nodes may be older.
                sqnum += u64::from(b.u8() % 4).wrapping_sub(1).min(4);
                if bud.len() + node.len() + 8 < LEB_BYTES {
                    bud.extend(node);
                    bud.resize(bud.len().next_multiple_of(8), 0xCE);
                }
            }
        }
    }
    if how & 1 != 0 {
        // As if the power had gone: the dirty flag in both masters.
        for lnum in [1, 2] {
            if let Some(leb) = &mut volume.lebs[lnum] {
                leb[40] |= 1;
                let crc = crc32(&leb[8..512]);
                leb[4..8].copy_from_slice(&crc.to_le_bytes());
            }
        }
    }
    if how & 2 != 0 {
        reseal_properties(&mut volume);
    }
    if !bud.is_empty() {
        let mut body = Vec::new();
        for word in [BUD, 0, 1] {
            body.extend(word.to_le_bytes());
        }
        body.resize(40, 0);
        let reference = sealed(NodeType::Reference, 1 << 19, 0, &body);
        if let Some(log) = &mut volume.lebs[3] {
            let at = MIN_IO as usize;
            log[at..at + 64].copy_from_slice(&reference);
            let mut padding = sealed(NodeType::Padding, 0, 0, &(MIN_IO - 64 - 28).to_le_bytes());
            padding.resize(MIN_IO as usize - 64, 0);
            log[at + 64..2 * at].copy_from_slice(&padding);
        }
        if how & 4 == 0 && bud.len() % MIN_IO as usize != 0 {
            let left = (MIN_IO as usize - bud.len() % MIN_IO as usize) as u32;
            if left >= 28 {
                let mut padding = sealed(NodeType::Padding, 0, 0, &(left - 28).to_le_bytes());
                padding.resize(left as usize, 0);
                bud.extend(padding);
            } else {
                bud.resize(bud.len() + left as usize, 0xCE);
            }
        }
        bud.resize(LEB_BYTES, 0xFF);
        volume.lebs[BUD as usize] = Some(bud);
    }
    use_volume(volume);
}

/// Makes the checksums of properties fit again: leaves lie one behind the other at the start of their area.
fn reseal_properties(volume: &mut Memory) {
    let Ok(fs) = Ubifs::mount(base().0.clone(), MountMode::Inspect) else { return };
    let shape = LptShape::new(fs.superblock());
    let first = fs.superblock().lpt_first() as usize;
    if let Some(leb) = &mut volume.lebs[first] {
        for leaf in leb.chunks_exact_mut(shape.leaf_bytes as usize).take(shape.leaves as usize) {
            let crc = crc16(&leaf[2..]);
            leaf[..2].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

/// Does everything with a volume that can be done.
fn use_volume(volume: Memory) {
    if let Ok(report) = check(volume.clone(), 20) {
        assert!(report.findings.len() <= 20);
    }
    for (mode, bulk_read) in [(MountMode::ReadWrite, true), (MountMode::ReadOnly, false), (MountMode::Inspect, true)] {
        let Ok(fs) = Ubifs::mount(volume.clone(), mode) else { continue };
        let mut session = Session::new(fs, bulk_read);
        let (mut names, mut largest) = (Vec::new(), 0);
        let walked = session.find_ls(b".", |path, inode| {
            names.push(path.to_vec());
            largest = largest.max(inode.size);
        });
        let _ = session.fs().resolve(b"d/e/link", true);
        let _ = session.fs().xattrs(2);
        // A file may be sparse and much larger than the volume; reading it takes its time.
        if walked.is_ok() && largest < 1 << 20 {
            let _ = session.cat_all(b".", |bytes| assert!(bytes.len() <= 4096));
        }
        for name in names.iter().rev().take(12) {
            if session.rm(name).is_err() && session.fs().inode(1).is_err() {
                break;
            }
        }
    }
}
