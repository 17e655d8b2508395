// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each kind of damage in a dump is named by the check, with its place. Checksums are corrected unless a wrong
//! checksum is the damage.

use crate::common::patient::{At, LEB_BYTES, PEB_BYTES, Patient, key, le16, le32, seal_packed};
use crate::common::{SLC, Volume, Watched, dump, listing, volume};
use readpath_ubifs::sample::{padded, seal};
use readpath_ubifs::{DamageKind, KeyType, LebError, Lebs, MountMode, NodeType, Session, check};

fn is_plain_file(node: &[u8]) -> bool {
    le32(node, 104) & 0o170_000 == 0o100_000 && le32(node, 92) == 1
}

#[test]
fn bad_checksums_of_nodes_are_named_with_their_place() {
    for kind in [NodeType::Inode, NodeType::Dentry, NodeType::Data] {
        let mut patient = Patient::new("fx");
        let nodes = patient.nodes(kind);
        let at = nodes[nodes.len() / 2];
        patient.bytes(at)[45] ^= 4;
        let text = patient.expect(DamageKind::BadNode, at).to_string();
        assert!(text.contains(&format!("checksum of the {}", kind.name())), "{text}");
        assert!(text.starts_with(&format!(
            "LEB {} (PEB {}) offset {}",
            at.0,
            patient.pebs[at.0 as usize].unwrap(),
            at.1
        )));
    }
}

#[test]
fn a_node_that_is_gone_is_named() {
    let mut patient = Patient::new("fx");
    let at = patient.node(NodeType::Data, |_| true);
    patient.bytes(at).fill(0xFF);
    let text = patient.expect(DamageKind::BadNode, at).detail;
    assert_eq!(text, "expected a data node: magic number 0xffffffff, expected 0x06101831");
}

#[test]
fn the_superblock_is_checked() {
    let mut patient = Patient::new("fx");
    patient.bytes((0, 0, 4096))[2000] ^= 1;
    patient.expect_only(DamageKind::BadSuperblock, (0, 0, 0));
    let mut patient = Patient::new("fx");
    patient.change((0, 0, 4096), |sb| sb[72] = 1);
    let text = patient.expect_only(DamageKind::BadSuperblock, (0, 0, 0));
    assert_eq!(text, "LEB 0 (PEB 2) offset 0: bad-superblock: a fanout of 1, expected 3 to 6449");
}

/// Values that no kernel writes, under a good checksum: those refused by Linux are refused here.
#[test]
fn figures_that_cannot_be_are_refused() {
    for (at, bytes, value, says) in [
        (48, 8, 0u64, "0 bytes of journal, expected 3 blocks to "),
        (48, 8, 1 << 60, "1152921504606846976 bytes of journal"),
        (68, 4, 0, "2 journal heads, expected 3"),
        (68, 4, 2, "4 journal heads, expected 3"),
        (72, 4, 6450, "a fanout of 6450, expected 3 to 6449"),
        (76, 4, 0xFFFF_FFFF, "a list of 4294967295 LEBs to save (lsave), expected at most "),
        (80, 4, 5, "format 5 without double hashes"),
        (96, 8, 1 << 62, "4611686018427387904 reserved bytes"),
        (104, 4, 0, "times in steps of 0 ns, expected 1 to 10^9"),
    ] {
        let mut patient = Patient::new("fx");
        patient.change((0, 0, 4096), |sb| sb[at..at + bytes].copy_from_slice(&u64::to_le_bytes(value)[..bytes]));
        let text = patient.expect_only(DamageKind::BadSuperblock, (0, 0, 0));
        assert!(text.contains(says), "{text}");
    }
    let mut patient = Patient::new("fx");
    patient.change((0, 0, 4096), |sb| sb[84] = 9);
    assert!(patient.expect_only(DamageKind::BadSuperblock, (0, 0, 0)).ends_with("compression 9, expected 0 to 3"));
    for (at, bytes, value, says) in [
        (8, 8, 0xFFFF_FFFF_FF00_0000, "sequence number 18446744073692774400, and commit "),
        (24, 8, 0xFFFF_FF00u64, "highest inode number 4294967040"),
        (32, 8, 1 << 60, ", and commit 1152921504606846976"),
        (60, 4, 0xFFFF_FFFF, "no block is kept for garbage collection"),
        (72, 8, 1 << 40, "1099511627776 index bytes, expected a multiple of 8 up to "),
        (72, 8, 9, "9 index bytes"),
        (80, 8, 1 << 40, " free bytes, expected a multiple of 8 up to "),
        (88, 8, 1, "1 dirty bytes"),
        (96, 8, 1 << 63, "9223372036854775808 used bytes"),
        (104, 8, 1, "1 dead bytes, expected a multiple of 8"),
        (104, 8, 1 << 40, "1099511627776 dead bytes"),
        (112, 8, 1 << 62, " dark bytes, expected a multiple of 8 up to "),
        (132, 4, 1, "a head of the properties tree at 1, no multiple of "),
        (152, 4, 0, "a last search for space in block 0, which is not of the main area"),
        (156, 4, 1 << 30, "1073741824 empty blocks"),
        (160, 4, 1 << 30, "1073741824 index blocks"),
    ] {
        let mut patient = Patient::new("fx");
        patient.change_masters(|node| node[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]));
        let found = patient.report().findings;
        let about: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(found.iter().all(|d| d.kind == DamageKind::BadMaster) && about[0].contains(says), "{about:?}");
    }
}

#[test]
fn a_volume_grows_before_its_sizes_are_looked_at() {
    let lebs = volume(dump("fx"), SLC).sizes().leb_count;
    let count = |written: u32| {
        let mut patient = Patient::new("fx");
        patient.change((0, 0, 4096), |sb| sb[40..44].copy_from_slice(&written.to_le_bytes()));
        patient
    };
    // Fewer blocks than those in front of the main area, as in a nearly empty volume.
    let small = count(5);
    let fs = small.mount(MountMode::ReadWrite).expect("a small volume");
    assert_eq!((fs.superblock().written_leb_count, fs.superblock().leb_count), (5, lebs));
    small.assert_clean("a small volume");
    for written in [0, lebs + 1] {
        let text = count(written).expect_only(DamageKind::BadSuperblock, (0, 0, 0));
        assert!(text.ends_with(&format!("{written} erase blocks, the volume has {lebs}")), "{text}");
    }
    // Without room for growth there is no main area.
    let mut patient = count(5);
    patient.change((0, 0, 4096), |sb| sb[44..48].copy_from_slice(&6u32.to_le_bytes()));
    let text = patient.expect_only(DamageKind::BadSuperblock, (0, 0, 0));
    assert!(text.contains("besides the main area leave none of 6"), "{text}");
}

#[test]
fn a_node_behind_the_masters_that_is_none_is_named() {
    let mut patient = Patient::new("fx");
    let master = patient.bytes((1, 0, 512)).to_vec();
    let commit = patient.bytes((3, 0, 32)).to_vec();
    // Both blocks full of masters, and in the last bytes of each a node of another type.
    for lnum in [1, 2] {
        for page in 0..63 {
            patient.bytes((lnum, page * 2048, 512)).copy_from_slice(&master);
            let pad = patient.bytes((lnum, page * 2048 + 512, 1536));
            pad.fill(0);
            pad[..4].copy_from_slice(&0x0610_1831u32.to_le_bytes());
            pad[16] = 28;
            pad[20] = 5;
            pad[24..28].copy_from_slice(&(if page == 62 { 1536u32 - 28 - 32 } else { 1536 - 28 }).to_le_bytes());
            seal(&mut pad[..28]);
        }
        patient.bytes((lnum, LEB_BYTES as u32 - 32, 32)).copy_from_slice(&commit);
    }
    let text = patient.expect(DamageKind::BadMaster, (1, LEB_BYTES as u32 - 32, 0)).detail;
    assert_eq!(text, "a commit start node among master nodes");
}

#[test]
fn what_is_not_listed_still_counts() {
    let mut patient = Patient::new("fx");
    let at = patient.node(NodeType::Data, |_| true);
    patient.bytes(at)[45] ^= 4;
    let report = check(volume(patient.image, SLC), 0).expect("a volume that is supported");
    assert!(report.findings.is_empty() && report.unlisted > 0 && !report.is_clean(), "{report:#?}");
}

#[test]
fn what_is_not_supported_is_refused() {
    for (flag, word) in [(0x10, "encrypted"), (0x20, "authenticated")] {
        let mut patient = Patient::new("fx");
        patient.change((0, 0, 4096), |sb| sb[28] |= flag);
        let error = check(volume(patient.image.clone(), SLC), 10).expect_err("a refusal").to_string();
        assert!(error.starts_with("not supported") && error.contains(word), "{error}");
        let error = patient.mount(MountMode::ReadOnly).expect_err("a refusal").to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn masters_are_checked() {
    // Without the first copy, the second is believed only if its block is full.
    let mut patient = Patient::new("fx");
    patient.bytes((1, 0, 512))[100] ^= 1;
    patient.expect_only(DamageKind::BadMaster, (1, 0, 0));
    // Without the second, the first one is used; the check still reports it.
    let mut patient = Patient::new("fx");
    patient.bytes((2, 0, 512))[100] ^= 1;
    patient.expect_only(DamageKind::BadMaster, (2, 0, 0));
    patient.mount(MountMode::ReadOnly).expect("one good master is enough");
    let mut patient = Patient::new("fx");
    for lnum in [1, 2] {
        patient.change((lnum, 0, 512), |master| master[48..52].copy_from_slice(&3u32.to_le_bytes()));
    }
    let text = patient.expect_only(DamageKind::BadMaster, (1, 0, 0));
    assert!(text.contains("an index root of"), "{text}");
}

#[test]
fn the_newer_master_wins_after_a_cut_between_the_two() {
    // The first copy is one newer than the second, as after a power cut between the two writes.
    let mut patient = Patient::new("fxj");
    let masters: Vec<At> = patient.nodes(NodeType::Master).into_iter().filter(|at| at.0 == 2).collect();
    let last = *masters.last().expect("a master");
    assert!(last.1 > 0, "more than one master");
    let before = listing(&mut patient.mount(MountMode::ReadOnly).unwrap());
    let end = (LEB_BYTES as u32) - last.1;
    patient.bytes((2, last.1, end)).fill(0xFF);
    let after = listing(&mut patient.mount(MountMode::ReadOnly).unwrap());
    assert_eq!(before, after);
    patient.expect(DamageKind::BadMaster, (2, masters[masters.len() - 2].1, 0));
}

#[test]
fn log_and_journal_are_checked() {
    let mut patient = Patient::new("fx");
    patient.bytes((3, 0, 32))[24] ^= 1;
    patient.expect_only(DamageKind::BadLog, (3, 0, 0));
    let mut patient = Patient::new("fx");
    patient.change((3, 0, 32), |node| node[24] ^= 1);
    let text = patient.expect_only(DamageKind::BadLog, (3, 0, 0));
    assert!(text.contains("the master says"), "{text}");

    // A power cut does not explain a bad node with many good ones behind it.
    let mut patient = Patient::new("fxu");
    let fs = patient.mounted();
    let bud = *fs.buds().iter().find(|b| b.end - b.start > 10_000).expect("a journal");
    patient.bytes((bud.lnum, bud.start, 64))[40] ^= 1;
    patient.expect(DamageKind::BadJournal, (bud.lnum, bud.start, 0));
}

#[test]
fn the_index_is_checked() {
    let mut patient = Patient::new("fx");
    let at = patient.node(NodeType::Index, |node| le16(node, 26) == 0);
    patient.bytes(at)[40] ^= 1;
    patient.expect_only(DamageKind::BadIndex, at);

    let mut patient = Patient::new("fx");
    patient.change(at, |node| {
        let (a, b) = (node[28..48].to_vec(), node[48..68].to_vec());
        node[28..48].copy_from_slice(&b);
        node[48..68].copy_from_slice(&a);
    });
    patient.expect(DamageKind::WrongKeyOrder, at);

    let mut patient = Patient::new("fx");
    patient.change(at, |node| node[26] = 3);
    let text = patient.expect_only(DamageKind::BadIndex, at);
    assert!(text.contains("an index node of level 3 below one of level 1"), "{text}");

    // A branch that leads to another node of the same length.
    let mut patient = Patient::new("fx");
    let nodes: Vec<At> = patient.nodes(NodeType::Inode).into_iter().filter(|n| n.2 == 160).collect();
    let (index, b) = patient.branch_to(nodes[3]);
    patient.change(index, |node| node[b + 4..b + 8].copy_from_slice(&nodes[4].1.to_le_bytes()));
    let text = patient.expect(DamageKind::WrongNode, nodes[4]).detail;
    assert!(text.contains("its branch says"), "{text}");
    patient.expect(DamageKind::OverlappingNodes, nodes[4]);
}

#[test]
fn entries_and_inodes_have_to_fit_together() {
    let mut patient = Patient::new("fx");
    let entry = patient.node(NodeType::Dentry, |node| node[49] == 0);
    let file = u32::from_le_bytes(patient.bytes(entry)[40..44].try_into().unwrap());
    patient.change(entry, |node| node[40..44].copy_from_slice(&1_000_000u32.to_le_bytes()));
    let text = patient.expect(DamageKind::DanglingEntry, entry).detail;
    assert_eq!(text, "it leads to inode 1000000, which does not exist");
    let inode = patient.node(NodeType::Inode, |node| le32(node, 24) == file);
    patient.expect(DamageKind::UnreachableInode, inode);

    let mut patient = Patient::new("fx");
    patient.change(entry, |node| node[49] = 1);
    patient.expect_only(DamageKind::WrongEntryType, entry);

    let mut patient = Patient::new("fx");
    patient.change(entry, |node| node[56] ^= 1);
    let text = patient.expect_only(DamageKind::BadEntry, entry);
    assert!(text.contains("hash"), "{text}");

    let mut patient = Patient::new("fx");
    let inode = patient.node(NodeType::Inode, is_plain_file);
    patient.change(inode, |node| node[92] = 2);
    let text = patient.expect_only(DamageKind::WrongLinkCount, inode);
    assert!(text.ends_with("has 2 links, found are 1"), "{text}");

    let mut patient = Patient::new("fx");
    let dir = patient.node(NodeType::Inode, |node| le32(node, 104) & 0o170_000 == 0o040_000);
    patient.change(dir, |node| node[48] ^= 8);
    patient.expect_only(DamageKind::WrongCount, dir);

    let mut patient = Patient::new("fx");
    patient.change(inode, |node| node[105] = 0);
    patient.expect(DamageKind::BadInode, inode);
}

/// Error and place with which work on a damaged volume ends.
fn broken(
    patient: &mut Patient,
    at: At,
    work: impl FnOnce(&mut Session<Volume>) -> readpath_ubifs::Result<()>,
) -> String {
    let mounted = patient.mount(MountMode::ReadOnly).expect("a volume");
    let e = work(&mut Session::new(mounted, false)).expect_err("it is damaged");
    let place = e.damage().expect("damage with a place").place;
    assert_eq!((place.lnum, place.offset), (at.0, at.1), "{e}");
    e.to_string()
}

#[test]
fn works_end_with_the_place_of_an_impossible_inode() {
    let mut patient = Patient::new("fx");
    let inode = patient.node(NodeType::Inode, is_plain_file);
    patient.change(inode, |node| node[48..56].copy_from_slice(&(1u64 << 42).to_le_bytes()));
    let text = broken(&mut patient, inode, |s| s.cat_all(b".", |_| {}));
    assert!(text.contains("a size of 4398046511104 bytes, at most 2199023255552 are possible"), "{text}");

    // An entry of a directory leads to the root directory above it.
    let mut patient = Patient::new("fx");
    let entry = patient.node(NodeType::Dentry, |node| node[49] == 1 && le32(node, 24) == 1);
    patient.change(entry, |node| node[40..44].copy_from_slice(&1u32.to_le_bytes()));
    let root = patient.node(NodeType::Inode, |node| le32(node, 24) == 1);
    let text = broken(&mut patient, root, |s| s.find(b".", |_, _| {}));
    assert!(text.contains("inode 1: a directory with two names; one is ./"), "{text}");
}

#[test]
fn data_has_to_fit_its_inode() {
    let mut patient = Patient::new("fx");
    let data = patient.node(NodeType::Data, |node| key(node).low() == 1);
    let ino = key(patient.bytes(data)).ino;
    let inode = patient.node(NodeType::Inode, |node| le32(node, 24) == ino);
    patient.change(inode, |node| node[48..56].copy_from_slice(&4096u64.to_le_bytes()));
    patient.expect(DamageKind::DataBeyondSize, data);

    let mut patient = Patient::new("fx");
    let data = patient.node(NodeType::Data, |node| le16(node, 44) == 1);
    patient.change(data, |node| node[48..].fill(0x11));
    let text = patient.expect_only(DamageKind::BadData, data);
    assert!(text.contains("LZO"), "{text}");

    let mut patient = Patient::new("fx");
    patient.change(data, |node| node[44] = 9);
    let text = patient.expect_only(DamageKind::BadData, data);
    assert!(text.ends_with("unknown compression 9"), "{text}");

    // Data of a missing inode: the inode number of the last key is increased by one.
    let mut patient = Patient::new("fx");
    let nodes = patient.nodes(NodeType::Data);
    let last = nodes.into_iter().max_by_key(|&at| key(patient.bytes(at))).expect("data");
    let far = key(patient.bytes(last)).ino + 1000;
    let (index, b) = patient.branch_to(last);
    patient.change(last, |node| node[24..28].copy_from_slice(&far.to_le_bytes()));
    patient.change(index, |node| node[b + 12..b + 16].copy_from_slice(&far.to_le_bytes()));
    let found = patient.report().findings.into_iter().find(|d| d.kind == DamageKind::MissingInode).expect("a finding");
    assert_eq!((found.place.lnum, found.place.offset), (last.0, last.1));
}

#[test]
fn properties_of_blocks_are_checked() {
    let mut patient = Patient::new("fx");
    // The first leaf: 17 bytes at the beginning of the tree.
    patient.bytes((7, 0, 17))[5] ^= 1;
    let text = patient.expect(DamageKind::BadProperties, (7, 0, 0)).detail;
    assert!(text.contains("checksum"), "{text}");
    // Less free space in the last block but one, with a good checksum.
    let mut patient = Patient::new("fx");
    let leaf = patient.bytes((7, 0, 17));
    leaf[2] ^= 0x80;
    seal_packed(leaf);
    patient.expect(DamageKind::WrongProperties, (10, 0, 0));
    // Reading files needs no properties; a mount like the kernel's reports the damage.
    let mut patient = Patient::new("fx");
    patient.bytes((7, 0, LEB_BYTES as u32)).fill(0);
    patient.mounted();
    let error = patient.mount(MountMode::ReadOnly).expect_err("no properties");
    assert_eq!(error.damage().map(|d| d.kind), Some(DamageKind::BadProperties));
}

#[test]
fn the_orphan_area_is_checked_where_it_is_read() {
    let mut patient = Patient::new("fxj");
    let reference = patient.node(NodeType::Reference, |_| true);
    let node = patient.bytes(reference).to_vec();
    patient.stop_with_orphans(&padded(node, 2048));
    let text = patient.expect(DamageKind::BadOrphans, (9, 0, 0)).detail;
    assert_eq!(text, "a reference node in the orphan area");
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut patient = Patient::new("fx");
    let at = patient.node(NodeType::Data, |_| true);
    let before = |_: &Volume, lnum, _| {
        let loose = LebError { message: "the cable is loose".to_owned(), uncorrectable: false };
        if lnum == at.0 { Err(loose) } else { Ok(()) }
    };
    let broken = Watched { inner: volume(patient.image, SLC), before };
    let report = check(broken, 100).expect("a volume that is supported");
    assert!(report.findings.iter().all(|d| d.kind == DamageKind::Unreadable), "{:#?}", report.findings);
    assert!(report.findings.iter().any(|d| d.place.offset == at.1 && d.detail == "the cable is loose"));
    assert!(report.unlisted > 0, "more is wrong than was asked for");
}

#[test]
fn keys_and_types_are_what_the_tests_think() {
    let mut patient = Patient::new("fx");
    let data = patient.node(NodeType::Data, |_| true);
    assert_eq!(key(patient.bytes(data)).kind(), Some(KeyType::Data));
}

#[test]
fn a_block_that_is_gone_is_told_once() {
    let mut patient = Patient::new("fx");
    let at = patient.node(NodeType::Data, |_| true);
    let peb = patient.pebs[at.0 as usize].take().expect("a block") as usize;
    patient.image[peb * PEB_BYTES..(peb + 1) * PEB_BYTES].fill(0xFF);
    let text = patient.expect(DamageKind::UnmappedLeb, (at.0, 0, 0)).to_string();
    assert_eq!(text, format!("LEB {0} offset 0: unmapped-leb: nodes are expected in it, but LEB {0} has no PEB", at.0));
    let about = patient.report().findings.iter().filter(|d| d.place.lnum == at.0).count();
    assert_eq!(about, 1, "{:#?}", patient.report().findings);
}

#[test]
fn a_volume_without_its_first_block_says_so() {
    let mut patient = Patient::new("fx");
    let pebs: Vec<usize> = patient.pebs.iter().flatten().map(|&peb| peb as usize).collect();
    let first = patient.pebs[0].expect("a block") as usize;
    patient.image[first * PEB_BYTES..(first + 1) * PEB_BYTES].fill(0xFF);
    patient.pebs[0] = None;
    let text = patient.expect_only(DamageKind::BadSuperblock, (0, 0, 0));
    assert!(text.ends_with("LEB 0, which has the superblock, has no PEB"), "{text}");
    for peb in pebs {
        patient.image[peb * PEB_BYTES..(peb + 1) * PEB_BYTES].fill(0xFF);
    }
    let text = patient.expect_only(DamageKind::BadSuperblock, (0, 0, 0));
    assert!(text.ends_with("the volume is empty: nothing was ever written to it"), "{text}");
}
