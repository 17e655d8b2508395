// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that were open without a name when the power went: the orphan area lists them, and a mount removes them.

mod common;

use common::patient::{At, Patient, key, le32};
use common::{SLC, volume};
use readpath_ubifs::sample::{self, padded};
use readpath_ubifs::{MountMode, NodeType, Ubifs};

/// An orphan node of commit 1, the only one of it.
fn orphans(inodes: &[u32]) -> Vec<u8> {
    let mut body = (1u64 | 1 << 63).to_le_bytes().to_vec();
    inodes.iter().for_each(|&ino| body.extend(u64::from(ino).to_le_bytes()));
    padded(sample::node(NodeType::Orphan, 1 << 22, &body), 2048)
}

#[test]
fn what_has_no_name_is_removed_and_what_has_got_one_stays() {
    let mut patient = Patient::new("fxj");
    let inodes: Vec<At> = patient.nodes(NodeType::Inode);
    let numbers: Vec<u32> = inodes.iter().map(|&at| key(patient.bytes(at)).ino).collect();
    // Those of which there is one node only.
    let is_alone = |ino| numbers.iter().filter(|&&other| other == ino).count() == 1;
    let mut files = inodes;
    files.retain(|&at| le32(patient.bytes(at), 92) == 1 && is_alone(key(patient.bytes(at)).ino));
    let [nameless, named] = [files[0], files[1]];
    patient.change(nameless, |node| node[92..96].fill(0));
    let [nameless, named] = [nameless, named].map(|at| key(patient.bytes(at)).ino);
    let mut fs = Ubifs::mount(volume(patient.image.clone(), SLC), MountMode::ReadOnly).expect("a volume");
    assert_eq!((fs.report().unclean, fs.report().orphans), (false, 0));
    fs.inode(nameless).expect("nobody looks for orphans after an unmount");

    patient.stop_with_orphans(&orphans(&[nameless, named, 1 << 30]));
    for mode in [MountMode::ReadOnly, MountMode::ReadWrite, MountMode::Inspect] {
        let mut fs = Ubifs::mount(volume(patient.image.clone(), SLC), mode).unwrap_or_else(|e| panic!("{mode:?}: {e}"));
        assert_eq!((fs.report().unclean, fs.report().orphans), (true, 1));
        fs.inode(named).expect("it has a name");
        let error = fs.inode(nameless).expect_err("it is gone").to_string();
        assert_eq!(error, format!("inode {nameless}: no such inode"));
    }
}
