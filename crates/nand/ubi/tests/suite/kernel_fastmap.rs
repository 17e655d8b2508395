// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fastmaps that Linux wrote, and its reads when it attached by them.
//!
//! Debian's kernels are built without fastmaps. The dumps are those of Linux 6.1.192 whose modules `ubi` and `ubifs`
//! were built from Debian's source with CONFIG_MTD_UBI_FASTMAP, loaded with `fm_autoconvert=1`, on a simulated NAND
//! of 16 MiB: `fm_clean` after a detach, `fm_cut` in the middle of writes later than the fastmap.

use crate::common::{SLC, dump, place, stream};
use readpath_nand_testkit::{Device, Ecc, Nand, Options};
use readpath_ubi::attach::{self, Method};
use readpath_ubi::mtd::{Geometry, Image, Logged};
use readpath_ubi::{NoCache, Ubi};

const DEVICE: Geometry = Geometry { pebs: 128, ..SLC };

type Attached = Ubi<Logged<Image<Vec<u8>>>>;

fn attach(bytes: Vec<u8>, fastmap: bool) -> Attached {
    let mtd = Logged::new(Image::new(bytes, DEVICE).expect("a dump of 16 MiB"));
    Ubi::attach(mtd, NoCache, &attach::Options { fastmap, ..attach::Options::default() }).expect("a device")
}

/// The cut device, writable.
fn cut(options: &Options) -> Device<Nand> {
    let mut nand = Nand::new(DEVICE, Ecc::new(512, 4), 1).expect("a device");
    nand.load(&dump("fm_cut.mtd.xz")).expect("it fits");
    Device::attach(nand, NoCache, options).expect("a device")
}

/// Erase blocks of all logical blocks.
fn places(ubi: &Attached) -> Vec<Vec<Option<u32>>> {
    ubi.volumes().map(|v| (0..v.record.reserved_pebs).map(|lnum| v.peb(lnum)).collect()).collect()
}

#[test]
fn reads_of_an_attach_by_fastmap_are_those_of_the_kernel() {
    for name in ["fm_clean", "fm_cut"] {
        let ubi = attach(dump(&format!("{name}.mtd.xz")), true);
        assert!(matches!(ubi.found().method, Method::Fastmap { .. }), "{name}: {:?}", ubi.found().fastmap_fault);
        let ours = crate::common::places(&ubi.mtd().records);
        let theirs: Vec<String> = stream(&format!("{name}_attach.csv.gz")).iter().map(|l| place(l)).collect();
        assert_eq!(ours, theirs, "{name}");
        assert!(ours.len() < 2 * DEVICE.pebs as usize, "{name}: a scan reads two headers of each block");
    }
}

/// A block that was unmapped after the fastmap was written has been erased since: a read of it notices that.
#[test]
fn what_a_fastmap_of_the_kernel_says_and_reads_correct_is_what_a_scan_finds() {
    let mut erased_since = 0;
    for name in ["fm_clean", "fm_cut"] {
        let bytes = dump(&format!("{name}.mtd.xz"));
        let (mut by_map, by_scan) = (attach(bytes.clone(), true), attach(bytes, false));
        assert_eq!(by_scan.found().method, Method::Scan, "{name}");
        assert_eq!(by_map.found().image_seq, by_scan.found().image_seq, "{name}");
        let told = places(&by_map);
        for (id, lebs) in (0..).zip(&told) {
            for lnum in 0..lebs.len() as u32 {
                let mut byte = [0];
                by_map.read(id, lnum, 0, &mut byte, 0).expect("a read");
                assert!(
                    by_scan.volume(id).expect("a volume").peb(lnum).is_some() || byte == [0xFF],
                    "{name}: LEB {lnum}"
                );
            }
        }
        let (seen, scanned) = (places(&by_map), places(&by_scan));
        assert_eq!(seen, scanned, "{name}");
        let mapped = scanned.concat().iter().flatten().count();
        assert!(mapped >= 10, "{name}: {mapped} logical blocks");
        erased_since += told.concat().iter().flatten().count() - mapped;
    }
    assert!(erased_since > 0);
}

/// Without a check of the VID header data would be written to a block without one, and be lost.
#[test]
fn what_is_written_to_a_block_that_was_erased_since_is_there_after_the_next_attach() {
    let mut ubi = cut(&Options::default());
    assert!(matches!(ubi.found().method, Method::Fastmap { .. }));
    let scanned = places(&attach(dump("fm_cut.mtd.xz"), false));
    let lebs = 0..ubi.volume(0).expect("a volume").record.reserved_pebs;
    let is_gone = |lnum: &u32| scanned[0][*lnum as usize].is_none();
    let gone: Vec<u32> = lebs.filter(|l| ubi.volume(0).expect("a volume").peb(*l).is_some() && is_gone(l)).collect();
    assert!(!gone.is_empty());
    for &lnum in &gone {
        ubi.write(0, lnum, 0, &[0x5A; 2048]).expect("room");
    }
    ubi.work_all().expect("no faults");
    let mut again = Device::attach(ubi.into_mtd(), NoCache, &Options::default()).expect("a device");
    assert_eq!(again.found().method, Method::Scan, "what a fastmap said is no longer true");
    for lnum in gone {
        let mut page = [0; 2048];
        again.read(0, lnum, 0, &mut page, 0).expect("a read");
        assert_eq!(page, [0x5A; 2048], "LEB {lnum}");
    }
}

/// Moves may be the first reads of such blocks.
#[test]
fn moves_leave_out_what_was_erased_since() {
    let mut ubi = cut(&Options { wear_threshold: 1, ..Options::default() });
    let mapped = ubi.volume(0).expect("a volume").mapped();
    let scanned = attach(dump("fm_cut.mtd.xz"), false).volume(0).expect("a volume").mapped();
    assert!(mapped > scanned);
    // Frequent writes wear their blocks, until static data is moved onto them.
    for i in 0..600 {
        ubi.change(0, 5, &[i as u8; 2048]).expect("room");
        ubi.work_all().expect("no faults");
    }
    assert!(ubi.moves > 0);
    assert!(ubi.volume(0).expect("a volume").mapped() < mapped, "a move met one of them");
}
