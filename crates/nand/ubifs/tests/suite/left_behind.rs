// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of an unclean stop: open files without a name, which the orphan area lists and a mount removes; and data
//! older than the newest commit in orphan area and log, which is ignored.

use crate::common::patient::{At, Patient, key, le32};
use readpath_ubifs::sample::{self, padded};
use readpath_ubifs::{DamageKind, MountMode, NodeType};

/// The only orphan node of a commit.
fn orphans(commit: u64, inodes: &[u32]) -> Vec<u8> {
    let mut body = (commit | 1 << 63).to_le_bytes().to_vec();
    inodes.iter().for_each(|&ino| body.extend(u64::from(ino).to_le_bytes()));
    padded(sample::node(NodeType::Orphan, 1 << 22, &body), 2048)
}

#[test]
fn what_has_no_name_is_removed_and_what_has_got_one_stays() {
    let mut patient = Patient::new("fxj");
    let inodes: Vec<At> = patient.nodes(NodeType::Inode);
    let numbers: Vec<u32> = inodes.iter().map(|&at| key(patient.bytes(at)).ino).collect();
    // Inodes with one node only.
    let is_alone = |ino| numbers.iter().filter(|&&other| other == ino).count() == 1;
    let mut files = inodes;
    files.retain(|&at| le32(patient.bytes(at), 92) == 1 && is_alone(key(patient.bytes(at)).ino));
    let [nameless, named] = [files[0], files[1]];
    patient.change(nameless, |node| node[92..96].fill(0));
    let [nameless, named] = [nameless, named].map(|at| key(patient.bytes(at)).ino);
    let mut fs = patient.mount(MountMode::ReadOnly).expect("a volume");
    assert_eq!((fs.report().unclean, fs.report().orphans), (false, 0));
    fs.inode(nameless).expect("nobody looks for orphans after an unmount");

    patient.stop_with_orphans(&orphans(1, &[nameless, named, 1 << 30]));
    for mode in [MountMode::ReadOnly, MountMode::ReadWrite, MountMode::Inspect] {
        let mut fs = patient.mount(mode).unwrap_or_else(|e| panic!("{mode:?}: {e}"));
        assert_eq!((fs.report().unclean, fs.report().orphans), (true, 1));
        fs.inode(named).expect("it has a name");
        let error = fs.inode(nameless).expect_err("it is gone").to_string();
        assert_eq!(error, format!("inode {nameless}: no such inode"));
    }
}

#[test]
fn orphans_of_an_older_commit_behind_those_of_the_last_are_damage() {
    for (second, is_damage) in [(2, true), (3, false), (4, false)] {
        let mut patient = Patient::new("fxj");
        patient.stop_with_orphans(&[orphans(3, &[1 << 30]), orphans(second, &[1 << 30])].concat());
        let mounted = patient.mount(MountMode::ReadOnly);
        let damage = mounted.err().and_then(|e| e.damage().map(|d| (d.kind, d.place.lnum, d.place.offset)));
        assert_eq!(damage, is_damage.then_some((DamageKind::BadOrphans, 9, 2048)), "{second}");
    }
}

/// The log is a ring: its next block may still be one of an older commit.
#[test]
fn an_older_block_of_the_log_is_its_end() {
    let mut patient = Patient::new("fxu");
    let nodes = |patient: &Patient| {
        let fs = patient.mount(MountMode::ReadOnly).expect("a volume");
        fs.report().journal_nodes
    };
    let before = nodes(&patient);
    assert!(before > 0);
    patient.fill_block(4, &padded(sample::node(NodeType::CommitStart, 1, &0u64.to_le_bytes()), 2048));
    assert_eq!(nodes(&patient), before);
}
