// SPDX-License-Identifier: MIT OR Apache-2.0
//! Volumes of devices that attach by a fastmap of Linux: trees and bytes are the kernel's, and so are the reads of a
//! mount, including those with which UBI checks the fastmap's mappings.
//! `crates/nand/ubi/tests/suite/kernel_fastmap.rs` tells how the dumps were made.

use crate::common::{SLC, dump, listing, manifest_of};
use readpath_ubi::attach::{Method, Options};
use readpath_ubi::mtd::{Geometry, Image, Logged};
use readpath_ubi::{NoCache, Ubi};
use readpath_ubifs::{MountMode, UbiVolume, Ubifs};
use std::io::Read;
use std::path::Path;

type Volume = UbiVolume<Logged<Image<Vec<u8>>>, NoCache>;

/// Attached; the log is empty.
fn volume(name: &str) -> Volume {
    let mtd = Logged::new(Image::new(dump(name), Geometry { pebs: 128, ..SLC }).expect("a dump of 16 MiB"));
    let options = Options::default();
    let mut ubi = Ubi::attach(mtd, NoCache, &options).expect("a device");
    assert!(matches!(ubi.found().method, Method::Fastmap { .. }), "{name}");
    ubi.mtd_mut().records.clear();
    UbiVolume::new(ubi, 0).expect("volume 0")
}

/// Erase block, offset and bytes of each recorded read.
fn recorded(name: &str) -> Vec<[u32; 3]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../ubi/tests/data/{name}_mount.csv.gz"));
    let packed = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("a gzip file");
    let numbers = |line: &str| {
        let mut numbers = line.split(',').skip(1).map(|n| n.parse().unwrap_or(u32::MAX));
        std::array::from_fn(|_| numbers.next().expect("three numbers"))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(numbers).collect()
}

#[test]
fn trees_found_by_a_fastmap_are_the_kernels() {
    for name in ["fm_clean", "fm_cut"] {
        let mut fs = Ubifs::mount(volume(name), MountMode::ReadOnly).unwrap_or_else(|e| panic!("{name}: {e}"));
        let found = listing(&mut fs);
        assert_eq!(found, manifest_of(name), "{name}");
        assert!(found.len() > 80, "{name}");
    }
}

#[test]
fn reads_of_a_mount_are_those_of_the_kernel() {
    for name in ["fm_clean", "fm_cut"] {
        let fs = Ubifs::mount(volume(name), MountMode::ReadWrite).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut lebs = fs.into_lebs();
        let ours: Vec<[u32; 3]> = lebs.ubi().mtd().records.iter().map(|r| [r.peb, r.offset, r.len]).collect();
        assert_eq!(ours, recorded(name), "{name}");
        assert!(ours.iter().filter(|r| r[1..] == [512, 64]).count() > 5, "{name}: VID headers are looked at");
    }
}
