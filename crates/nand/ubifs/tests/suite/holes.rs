// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files with holes, read in bulk: the same reads as with a search for every block, in a time independent of their
//! size.

use crate::common::patient::{At, Patient, le16, le32};
use crate::common::{SLC, Volume, volume};
use readpath_ubifs::{FlashRead, Key, MountMode, NodeType, Recorder, Session, Ubifs, crc32};

const FILE: &[u8] = b"special/text300k";
/// Size of the largest possible file.
const LARGEST: u64 = 1 << 41;

fn session(patient: &Patient, bulk_read: bool) -> Session<Recorder<Volume>> {
    let lebs = Recorder::new(volume(patient.image.clone(), SLC));
    let mut fs = Ubifs::mount(lebs, MountMode::ReadWrite).expect("a volume");
    fs.lebs().take();
    Session::new(fs, bulk_read)
}

/// Spreads a file's blocks, in its nodes and in the index, and changes its size.
fn spread(patient: &mut Patient, size: u64, place: impl Fn(u32) -> u32) {
    let ino = session(patient, false).fs().resolve(FILE, false).expect("a file").ino;
    let mut scratch = patient.clone();
    let mut apart = |at: At, keys: &[usize]| {
        let node = patient.bytes(at);
        let is_its = |k: &&usize| (le32(node, **k), le32(node, **k + 4) >> 29) == (ino, 1);
        let its: Vec<usize> = keys.iter().filter(is_its).copied().collect();
        if its.is_empty() {
            return;
        }
        patient.change(at, |node| {
            for k in its {
                let key = Key::data(ino, place(le32(node, k + 4) & ((1 << 29) - 1)));
                node[k + 4..k + 8].copy_from_slice(&key.rest.to_le_bytes());
            }
        });
    };
    for at in scratch.nodes(NodeType::Data) {
        apart(at, &[24]);
    }
    for at in scratch.nodes(NodeType::Index) {
        let count = usize::from(le16(scratch.bytes(at), 24));
        apart(at, &(0..count).map(|i| 28 + 20 * i + 12).collect::<Vec<_>>());
    }
    let inode =
        patient.node(NodeType::Inode, |node| Key { ino: le32(node, 24), rest: le32(node, 28) } == Key::inode(ino));
    patient.change(inode, |node| node[48..56].copy_from_slice(&size.to_le_bytes()));
}

/// Reads the file; returns the reads of flash, the number of bytes, and the CRC of those outside holes.
fn read(patient: &Patient, bulk_read: bool) -> (Vec<FlashRead>, u64, u32) {
    let mut session = session(patient, bulk_read);
    let (mut len, mut stored) = (0, Vec::new());
    let sink = |piece: &[u8]| {
        len += piece.len() as u64;
        if piece[0] != 0 {
            stored.extend_from_slice(piece);
        }
    };
    session.read_files([FILE], sink).expect("a file");
    (session.fs().lebs().take(), len, crc32(&stored))
}

fn digest(reads: &[FlashRead]) -> (usize, u32) {
    let bytes: Vec<u8> = reads.iter().flat_map(|r| [r.lnum, r.offset, r.len].map(u32::to_le_bytes)).flatten().collect();
    (reads.len(), crc32(&bytes))
}

#[test]
fn holes_change_no_read_in_bulk() {
    // Number of reads and CRC of their places, of a reader that searched for every block of every hole.
    for (name, place, reads) in [
        ("of two", (|b| 3 * b) as fn(u32) -> u32, (32, 1_848_999_275)),
        ("growing", |b| b * b, (91, 1_570_357_136)),
        ("growing after a pair", |b| b / 2 * (b / 2) * 4 + b, (63, 3_845_278_440)),
        ("large", |b| b * b * b / 7 + b, (96, 848_955_464)),
        ("of 32 and one more or less", |b| b / 3 * 99 + [0, 33, 65][b as usize % 3], (101, 1_828_570_370)),
        ("at the beginning", |b| b + 1000, (25, 1_710_767_048)),
    ] {
        let mut near = Patient::new("fx");
        spread(&mut near, 1 << 30, place);
        let (made, len, stored) = read(&near, true);
        assert_eq!(len, 1 << 30, "{name}");
        assert_eq!(read(&near, false).2, stored, "{name}");
        assert_eq!(digest(&made), reads, "{name}: as with a look at every block");
        if name != "large" {
            continue;
        }
        let mut far = Patient::new("fx");
        spread(&mut far, LARGEST, place);
        let (same, len, again) = read(&far, true);
        assert!(same == made && again == stored, "{name}: {} reads, {} of the smaller file", same.len(), made.len());
        assert_eq!(len, LARGEST, "{name}");
    }
}
