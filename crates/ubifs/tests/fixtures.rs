// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dumps of a real kernel's volumes: trees, attributes and every byte of every file are what the kernel showed.

mod common;

use common::{DUMPS, listing, manifest, mount};
use readpath_ubifs::MountMode;

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
        let report = readpath_ubifs::check(common::dump_volume(dump), 100).expect("a volume that is supported");
        assert!(report.is_clean(), "{name}: {:#?}", report.findings);
        assert!(report.counts.inodes > 600 && report.counts.data_nodes > 600, "{:?}", report.counts);
    }
}
