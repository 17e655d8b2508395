// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dumps of a real kernel's volumes: trees, attributes and all bytes of files equal the kernel's.

use crate::common::patient::{Patient, key};
use crate::common::{DUMPS, listing, manifest, mount};
use readpath_ubifs::{Key, MountMode, NodeType};

#[test]
fn trees_attributes_and_bytes_are_the_kernels() {
    for (dump, name) in DUMPS {
        for mode in [MountMode::Inspect, MountMode::ReadOnly, MountMode::ReadWrite] {
            let mut fs = mount(dump, mode);
            let mut wanted = manifest(name);
            wanted.sort();
            let found = listing(&mut fs);
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(found, wanted, "{name} {mode:?}");
            }
            assert_eq!(found.len(), wanted.len(), "{name} {mode:?}");
        }
    }
}

#[test]
fn nothing_is_wrong_with_them() {
    for (dump, name) in DUMPS {
        let report = readpath_ubifs::check(crate::common::dump_volume(dump), 100).expect("a volume that is supported");
        assert!(report.is_clean(), "{name}: {:#?}", report.findings);
        assert!(report.counts.inodes > 600 && report.counts.data_nodes > 600, "{:?}", report.counts);
    }
}

#[test]
fn times_have_nanoseconds() {
    // Volumes of mkfs.ubifs keep whole seconds, also under a kernel (their `time_gran`), so nanoseconds are set here.
    let mut patient = Patient::new("fx");
    let root = patient.node(NodeType::Inode, |node| key(node) == Key::inode(1));
    patient.change(root, |node| {
        for (at, ns) in [(80, 1u32), (84, 22), (88, 333_444_555)] {
            node[at..at + 4].copy_from_slice(&ns.to_le_bytes());
        }
    });
    let mut fs = patient.mounted();
    let inode = fs.inode(1).expect("the root directory");
    assert_eq!((inode.atime.ns, inode.ctime.ns, inode.mtime.ns), (1, 22, 333_444_555));
}
