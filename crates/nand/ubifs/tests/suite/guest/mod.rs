// SPDX-License-Identifier: MIT OR Apache-2.0
//! Against Linux itself: a guest in QEMU attaches and mounts volumes that Readpath wrote, changes them, and dumps its
//! NAND; Readpath reads the dumps. Trees, attributes and bytes are equal on both sides, and so is every read of the
//! kernel.
//!
//! `make test-guest` runs this; it needs Debian's packages of QEMU, a kernel and mtd-utils (`setup.sh` names them).
//! `large.rs` has what `make test-guest-large` runs.

mod large;
mod linux;
mod reads;
mod tree;
mod written;

use crate::common::{listing, volume};
use linux::{Guest, assert_equal, lines, manifest};
use readpath_ubi::mtd::Geometry;
use readpath_ubifs::MountMode;
use reads::{Device, Read, Work, assert_same_reads, recorded};
use std::fs;

/// A NAND of the guest.
struct Nand {
    geometry: Geometry,
    /// Identifier bytes from which the kernel's simulator `nandsim` derives the geometry. Empty if it cannot: then
    /// our own module `ramnand.c` is used.
    ids: &'static str,
    /// Compressor of the kernel's writes.
    compr: &'static str,
    /// Bytes of its file `new/big`.
    big: u32,
    /// The file that is removed.
    gone: &'static str,
}

const NANDS: [Nand; 5] = [
    Nand {
        geometry: Geometry { peb_bytes: 16 << 10, page_bytes: 512, subpage_bytes: 256, pebs: 1024 },
        ids: "0x20,0x73",
        compr: "zlib",
        big: 0,
        gone: "new/large",
    },
    Nand {
        geometry: Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 256 },
        ids: "0x20,0xa2,0x00,0x15",
        compr: "zstd",
        big: 0,
        gone: "new/large",
    },
    Nand {
        geometry: Geometry { peb_bytes: 256 << 10, page_bytes: 4096, subpage_bytes: 1024, pebs: 128 },
        ids: "0x20,0xa2,0x00,0x26",
        compr: "lzo",
        big: 0,
        gone: "new/large",
    },
    Nand {
        geometry: Geometry { peb_bytes: 2 << 20, page_bytes: 16 << 10, subpage_bytes: 16 << 10, pebs: 96 },
        ids: "",
        compr: "lzo",
        big: 60_000_000,
        gone: "new/big",
    },
    Nand {
        geometry: Geometry { peb_bytes: 4 << 20, page_bytes: 16 << 10, subpage_bytes: 16 << 10, pebs: 64 },
        ids: "",
        compr: "zlib",
        big: 60_000_000,
        gone: "new/big",
    },
];

/// With files that only the kernel's volume has.
const BULK: Work = Work {
    name: "bulk",
    bulk_read: true,
    run: |s, _| s.read_files([&b"new/large"[..], b"new/counting", b"new/big"], |_| {}),
};

#[test]
#[ignore = "needs QEMU and a kernel: make test-guest"]
fn linux_and_readpath_read_each_others_flash() {
    // READPATH_GUEST_PAGE=n runs only devices with pages of n bytes.
    let page: Option<u32> = std::env::var("READPATH_GUEST_PAGE").ok().map(|n| n.parse().expect("bytes of a page"));
    for nand in NANDS.iter().filter(|d| page.is_none_or(|n| n == d.geometry.page_bytes)) {
        let Nand { geometry, ids, compr, big, gone } = *nand;
        println!("page {} of {} bytes", geometry.page_bytes, geometry.peb_bytes);
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let written = written::write(geometry, folder);
        fs::write(folder.join("input"), &written.image).expect("a file");
        let parameters = format!("ids={ids} compr={compr} big={big} gone={gone}");
        Guest { geometry, work: "work", parameters, memory_mib: 3072, patience: 900 }.run(folder, "input", None);

        // Volumes that Readpath wrote, in Linux.
        let sum = |name: &str| lines(folder, name)[0].split(' ').next().expect("a sum").to_owned();
        assert_eq!(sum("static.sha"), written.static_sha256, "the static volume");
        assert_eq!(sum("scratch.sha"), written.scratch_sha256, "the volume that was written often");
        let data_offset = written.data_offset;
        let ours = Device { name: "ours", image: &written.image, geometry, data_offset, folder };
        if let Some(entries) = written.entries {
            let found = listing(&mut ours.mount(MountMode::ReadOnly));
            assert_equal("ours", &found, &manifest(folder, "ours"));
            assert_eq!(found.len(), entries);
            ours.assert_streams(b".");
        } else {
            ours.assert_attach();
        }

        // Volumes that Linux wrote, in Readpath.
        for (name, at_least) in [("clean", 150), ("cut", 170)] {
            let dump = fs::read(folder.join(format!("{name}.mtd"))).expect("a dump");
            let report = readpath_ubifs::check(volume(&dump, geometry), 100).expect("it is supported");
            assert!(report.is_clean(), "{name}: {:#?}", report.findings);
            let device = Device { name, image: &dump, ..ours };
            let found = listing(&mut device.mount(MountMode::ReadWrite));
            assert_equal(name, &found, &manifest(folder, name));
            assert!(found.len() >= at_least, "{name}: {} entries", found.len());
            if name == "clean" {
                device.assert_streams(b".");
                device.assert_work(&BULK, b"");
                device.assert_work(&reads::RM, gone.as_bytes());
            } else {
                device.assert_attach();
                let reads =
                    |r: Vec<Read>| r.into_iter().map(|[_, at, bytes, leb]| [0, at, bytes, leb]).collect::<Vec<_>>();
                // Recovery rewrites blocks, so the erase blocks may differ.
                let ours = reads(device.taken(&mut device.mount(MountMode::ReadWrite)));
                assert_same_reads("cut mount", &ours, &reads(recorded(folder, "cut_mount", "r")));
            }
        }
    }
}
