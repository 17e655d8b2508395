// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dumps of a real flash, and what a real kernel (Linux 6.1) read from it when it attached them.

mod common;

use common::{SLC, device, dump, stream};
use readpath_ubi::attach::Method;
use readpath_ubi::device::Options;
use readpath_ubi::guess::{Known, guess};
use readpath_ubi::mtd::{Image, Logged, write_stream};
use readpath_ubi::nand::{Ecc, Nand};
use readpath_ubi::{NoCache, Ubi};

#[test]
fn dumps_attach() {
    // Blocks with data of the volume were counted with a script of a few lines over the VID headers.
    for (name, free, erase) in [("fx.mtd.xz", 0, 485), ("fxj.mtd.xz", 0, 0), ("fxu.mtd.xz", 0, 0)] {
        let mut ubi =
            Ubi::attach(device(name), NoCache, &Options { read_only: true, ..Options::default() }).expect(name);
        let found = ubi.found().clone();
        assert_eq!((found.method, found.image_seq), (Method::Scan, 99), "{name}");
        assert_eq!((found.corrupted.len(), found.bad.len()), (0, 0), "{name}");
        let volume = ubi.volume_by_name("rootfs").expect("the volume").clone();
        assert_eq!((volume.id, volume.record.reserved_pebs, volume.leb_bytes), (0, 400, 129_024), "{name}");
        assert_eq!(ubi.found_table().rewrite, [false; 2]);
        if name == "fx.mtd.xz" {
            assert_eq!((found.free.len(), found.erase.len(), volume.mapped()), (free, erase, 25));
        } else {
            let used = volume.mapped() as usize + 2;
            assert_eq!(found.free.len() + found.erase.len() + used, 512);
        }
        // The superblock of the file system: magic number and node type.
        let mut node = [0; 24];
        ubi.read(0, 0, 0, &mut node, 0).expect("LEB 0");
        assert_eq!((&node[..4], node[20]), (&[0x31, 0x18, 0x10, 0x06][..], 6));
        // Nothing is mapped there.
        let mut end = [0; 8];
        ubi.read(0, 399, 129_016, &mut end, 0).expect("LEB 399");
        assert_eq!(end, [0xFF; 8]);
        assert!(ubi.read(0, 400, 0, &mut end, 0).is_err() && ubi.read(0, 0, 129_017, &mut end, 0).is_err());
    }
}

/// Op, block, offset and length of a line.
fn place(line: &str) -> String {
    line.split(',').take(4).collect::<Vec<_>>().join(",")
}

#[test]
fn reads_of_the_attach_are_those_of_the_kernel() {
    for (dump, recorded) in [
        ("fx.mtd.xz", "fx_pristine_attach.csv.gz"),
        ("fxj.mtd.xz", "fx_journal_attach.csv.gz"),
        ("fxu.mtd.xz", "fx_unclean_attach.csv.gz"),
    ] {
        let mtd = Logged::new(device(dump));
        let ubi = Ubi::attach(mtd, NoCache, &Options { read_only: true, ..Options::default() }).expect(dump);
        let mut ours = Vec::new();
        write_stream(&ubi.mtd().records, &mut ours, |_| "").expect("memory");
        let ours: Vec<String> = String::from_utf8(ours).expect("text").lines().map(place).collect();
        let theirs: Vec<String> = stream(recorded).iter().filter(|l| l.starts_with('R')).map(|l| place(l)).collect();
        assert!(!theirs.is_empty());
        assert_eq!(ours, theirs, "{dump}");
    }
}

/// With a device that can be written, everything that the kernel did: reads, then in the background an erase and an EC
/// header for each block that had none. The kernel stops its background work with nothing left to do.
#[test]
fn background_work_after_the_attach_is_that_of_the_kernel() {
    for (dump_name, recorded) in [
        ("fx.mtd.xz", "fx_pristine_attach.csv.gz"),
        ("fxj.mtd.xz", "fx_journal_attach.csv.gz"),
        ("fxu.mtd.xz", "fx_unclean_attach.csv.gz"),
    ] {
        let mut nand = Nand::new(SLC, Ecc::new(512, 4), 1).expect("a device");
        nand.load(&dump(dump_name)).expect("it fits");
        let mut ubi = Ubi::attach(Logged::new(nand), NoCache, &Options::default()).expect(dump_name);
        ubi.work_all().expect("no faults");
        let mut ours = Vec::new();
        write_stream(&ubi.mtd().records, &mut ours, |_| "").expect("memory");
        let ours: Vec<String> = String::from_utf8(ours).expect("text").lines().map(place).collect();
        let theirs: Vec<String> = stream(recorded).iter().map(|l| place(l)).collect();
        assert_eq!(ours, theirs, "{dump_name}");
    }
}

#[test]
fn an_image_of_the_first_blocks_attaches() {
    let bytes = dump("fx.mtd.xz");
    let guess = guess(&bytes, &Known::default()).expect("a guess");
    assert_eq!(guess.geometry, readpath_ubi::mtd::Geometry { pebs: 27, ..SLC });
    assert_eq!((guess.vid_offset, guess.ambiguous), (None, false));
    let image = Image::new(bytes, guess.geometry).expect("27 blocks");
    let ubi = Ubi::attach(image, NoCache, &Options::image()).expect("an image");
    assert_eq!(ubi.volume_by_name("rootfs").expect("it").mapped(), 25);

    // As a device of 27 blocks it does not hold a volume of 400.
    let image = Image::new(dump("fx.mtd.xz"), guess.geometry).expect("27 blocks");
    let e = Ubi::attach(image, NoCache, &Options { partial: false, ..Options::image() }).expect_err("too small");
    assert_eq!(e.to_string(), "PEB 0 offset 2048: volume table: record 0: 400 reserved PEBs, but only 27 good ones");
}

#[test]
fn wrong_sizes_are_named() {
    let bytes = dump("fx.mtd.xz");
    let geometry = readpath_ubi::mtd::Geometry { pebs: 27, subpage_bytes: 2048, ..SLC };
    let image = Image::new(bytes.clone(), geometry).expect("sizes");
    let e = Ubi::attach(image, NoCache, &Options::image()).expect_err("no sub-pages");
    assert_eq!(e.to_string(), "PEB 0 offset 0: EC header: VID header offset 512 where 2048 is expected");
    let e = Image::new(bytes[..100_000].to_vec(), SLC).expect_err("cut off");
    assert!(e.to_string().starts_with("image size = 100000: a whole number of PEBs is needed"), "{e}");
}
