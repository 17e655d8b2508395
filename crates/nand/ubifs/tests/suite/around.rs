// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading continues behind damage.

use crate::common::patient::{At, Patient, key, le16};
use crate::common::{SLC, volume};
use readpath_ubifs::{Damage, DamageKind, Key, KeyType, MountMode, NodeType, Ubifs};

/// Readable names in a directory, and the damage found.
fn around(image: &[u8], dir: u32) -> (Vec<Box<[u8]>>, Vec<Damage>) {
    let mut fs = Ubifs::mount(volume(image.to_vec(), SLC), MountMode::Inspect).expect("a volume");
    let mut damaged = Vec::new();
    let entries = fs.read_dir_around(dir, |damage| damaged.push(damage)).expect("damage is no error");
    (entries.into_iter().map(|e| e.name).collect(), damaged)
}

#[test]
fn a_directory_is_read_around_its_damage() {
    let mut patient = Patient::new("fx");
    let entries = patient.nodes(NodeType::Dentry);
    let keys: Vec<Key> = entries.iter().map(|&at| key(patient.bytes(at))).collect();
    // The directory with the most entries, so that its part of the index has several nodes.
    let dir = keys.iter().map(|k| k.ino).max_by_key(|&ino| keys.iter().filter(|k| k.ino == ino).count()).expect("one");
    let own: Vec<At> = entries.iter().zip(&keys).filter(|(_, k)| k.ino == dir).map(|(&at, _)| at).collect();
    assert!(own.len() > 3 * 8, "{} entries", own.len());
    let (all, damaged) = around(&patient.image, dir);
    assert_eq!((all.len(), damaged), (own.len(), Vec::new()));
    let whole = patient.image.clone();

    // Entries, the first and the last of the directory among them.
    let mut by_key = own.clone();
    by_key.sort_by_key(|&at| key(patient.bytes(at)));
    let mut lost = Vec::new();
    for &at in by_key.iter().step_by(3).chain(by_key.last()) {
        let node = patient.bytes(at);
        let name: Box<[u8]> = node[56..node.len() - 1].into();
        if !lost.contains(&name) {
            node[57] ^= 0xFF;
            lost.push(name);
        }
    }
    let (found, damaged) = around(&patient.image, dir);
    let reachable: Vec<Box<[u8]>> = all.iter().filter(|name| !lost.contains(name)).cloned().collect();
    assert_eq!(found, reachable);
    assert_eq!(damaged.len(), lost.len());
    assert!(damaged.iter().all(|d| d.kind == DamageKind::BadNode && own.iter().any(|at| at.0 == d.place.lnum)));

    // An index node with some of the entries.
    patient.image = whole;
    let (node, _) = patient.branch_to(by_key[by_key.len() / 2]);
    let bytes = patient.bytes(node);
    let count = usize::from(le16(bytes, 24));
    let here = (0..count)
        .map(|i| key(&bytes[16 + 20 * i..]))
        .filter(|k| k.ino == dir && k.kind() == Some(KeyType::Dentry))
        .count();
    bytes[30] ^= 1;
    let (found, damaged) = around(&patient.image, dir);
    assert_eq!(found.len(), all.len() - here, "{here} of the node's {count} branches are of the directory");
    let places: Vec<_> = damaged.iter().map(|d| (d.kind, d.place.lnum, d.place.offset)).collect();
    assert_eq!(places, [(DamageKind::BadIndex, node.0, node.1)]);
}
