// SPDX-License-Identifier: MIT OR Apache-2.0
//! A dump whose nodes can be found and changed.

use super::{SLC, SLC_DATA_OFFSET, Volume, dump, volume};
use readpath_ubifs::sample::seal;
use readpath_ubifs::{
    CheckReport, Damage, DamageKind, Key, Lebs, MountMode, NodeType, Ubifs, check, crc16, crc32, scan_leb,
};

pub const LEB_BYTES: usize = 129_024;
pub const PEB_BYTES: usize = 128 << 10;

/// A node: block, byte, bytes.
pub type At = (u32, u32, u32);

/// A dump to be damaged.
#[derive(Clone)]
pub struct Patient {
    pub image: Vec<u8>,
    /// PEB of each LEB.
    pub pebs: Vec<Option<u32>>,
}

pub fn le16(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([b[at], b[at + 1]])
}

pub fn le32(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

impl Patient {
    pub fn new(name: &str) -> Patient {
        Patient::of(dump(name))
    }

    pub fn of(image: Vec<u8>) -> Patient {
        let volume = volume(image.clone(), SLC);
        let pebs = (0..volume.sizes().leb_count).map(|lnum| volume.peb(lnum)).collect();
        Patient { image, pebs }
    }

    pub fn bytes(&mut self, (lnum, offset, len): At) -> &mut [u8] {
        let peb = self.pebs[lnum as usize].expect("a mapped block");
        let at = peb as usize * PEB_BYTES + SLC_DATA_OFFSET as usize + offset as usize;
        &mut self.image[at..at + len as usize]
    }

    /// Nodes of a type in the whole volume.
    pub fn nodes(&mut self, kind: NodeType) -> Vec<At> {
        let mut found = Vec::new();
        for lnum in 0..self.pebs.len() as u32 {
            if self.pebs[lnum as usize].is_none() {
                continue;
            }
            let bytes = self.bytes((lnum, 0, LEB_BYTES as u32));
            if let Ok(leb) = scan_leb(bytes, 0, 2048, 8) {
                let nodes = leb.nodes.iter().filter(|n| n.header.kind == kind);
                found.extend(nodes.map(|n| (lnum, n.offset, n.header.len)));
            }
        }
        found
    }

    /// The first node of a type for which `fits` holds.
    pub fn node(&mut self, kind: NodeType, fits: impl Fn(&[u8]) -> bool) -> At {
        let nodes = self.nodes(kind);
        let found = nodes.into_iter().find(|&at| fits(self.bytes(at)));
        found.expect("such a node")
    }

    /// Changes a node and sets its checksum.
    pub fn change(&mut self, at: At, change: impl FnOnce(&mut [u8])) {
        let node = self.bytes(at);
        change(node);
        seal(node);
    }

    /// Sets the flags of the newest masters: 1 if the volume was not unmounted, and 2 if there are no orphans.
    pub fn set_master_flags(&mut self, flags: u8) {
        self.change_masters(|node| node[40] = flags);
    }

    /// Changes both copies of the newest master.
    pub fn change_masters(&mut self, change: impl Fn(&mut [u8])) {
        let masters: Vec<At> = self.nodes(NodeType::Master);
        for lnum in [1, 2] {
            let last = *masters.iter().rfind(|at| at.0 == lnum).expect("a master");
            self.change(last, &change);
        }
    }

    /// Simulates a power cut with orphans: the first block of the orphan area begins with `bytes`.
    pub fn stop_with_orphans(&mut self, bytes: &[u8]) {
        self.set_master_flags(1);
        self.fill_block(9, bytes);
    }

    /// Sets the beginning of a block, followed by erased space. An unmapped block is mapped to an unused erase block.
    pub fn fill_block(&mut self, lnum: u32, bytes: &[u8]) {
        if self.pebs[lnum as usize].is_none() {
            let peb = 500;
            let vid = self.pebs[7].map(|p| p as usize * PEB_BYTES + 512).expect("a block");
            let mut header = self.image[vid..vid + 64].to_vec();
            header[12..16].copy_from_slice(&lnum.to_be_bytes());
            let crc = crc32(&header[..60]);
            header[60..].copy_from_slice(&crc.to_be_bytes());
            self.image[peb * PEB_BYTES + 512..][..64].copy_from_slice(&header);
            self.pebs[lnum as usize] = Some(peb as u32);
        }
        self.bytes((lnum, 0, LEB_BYTES as u32)).fill(0xFF);
        self.bytes((lnum, 0, bytes.len() as u32)).copy_from_slice(bytes);
    }

    /// The branch of the lowest level that leads to a node: index node, byte of the branch in it.
    pub fn branch_to(&mut self, (lnum, offset, _): At) -> (At, usize) {
        for at in self.nodes(NodeType::Index) {
            let node = self.bytes(at);
            for i in 0..usize::from(le16(node, 24)) {
                let b = 28 + 20 * i;
                if le16(node, 26) == 0 && (le32(node, b), le32(node, b + 4)) == (lnum, offset) {
                    return (at, b);
                }
            }
        }
        panic!("no branch leads to LEB {lnum} offset {offset}");
    }

    pub fn report(&self) -> CheckReport {
        check(volume(self.image.clone(), SLC), 1000).expect("a volume that is supported")
    }

    pub fn assert_clean(&self, what: &str) {
        let report = self.report();
        assert!(report.is_clean(), "{what}: {:#?}", report.findings);
    }

    pub fn mount(&self, mode: MountMode) -> readpath_ubifs::Result<Ubifs<Volume>> {
        Ubifs::mount(volume(self.image.clone(), SLC), mode)
    }

    /// Mounted for inspection.
    pub fn mounted(&self) -> Ubifs<Volume> {
        self.mount(MountMode::Inspect).expect("a volume")
    }

    /// Checks, and expects one kind of damage at one place.
    pub fn expect(&self, kind: DamageKind, (lnum, offset, _): At) -> Damage {
        let report = self.report();
        let found = report.findings.iter().find(|d| d.kind == kind && (d.place.lnum, d.place.offset) == (lnum, offset));
        let found =
            found.unwrap_or_else(|| panic!("no {} at LEB {lnum} offset {offset}: {:#?}", kind.name(), report.findings));
        assert_eq!(found.place.peb, self.pebs[lnum as usize]);
        found.clone()
    }

    /// Checks, and expects exactly this damage.
    pub fn expect_only(&self, kind: DamageKind, at: At) -> String {
        let found = self.expect(kind, at);
        let report = self.report();
        assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
        found.to_string()
    }
}

/// A number in a packed node of the properties tree, lowest bit first.
pub fn bits(bytes: &[u8], at: u32, count: u32) -> u32 {
    (0..count).fold(0, |n, i| n | u32::from(bytes[((at + i) / 8) as usize] >> ((at + i) % 8) & 1) << i)
}

pub fn put_bits(bytes: &mut [u8], at: u32, count: u32, value: u32) {
    for i in 0..count {
        let (byte, bit) = (((at + i) / 8) as usize, (at + i) % 8);
        bytes[byte] = bytes[byte] & !(1 << bit) | ((value >> i & 1) as u8) << bit;
    }
}

/// Sets the checksum of a packed node.
pub fn seal_packed(node: &mut [u8]) {
    let crc = crc16(&node[2..]);
    node[..2].copy_from_slice(&crc.to_le_bytes());
}

pub fn key(node: &[u8]) -> Key {
    Key { ino: le32(node, 24), rest: le32(node, 28) }
}
