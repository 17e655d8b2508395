// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dumps of a real flash, and the reads of a real kernel (Linux 6.1) that attached them.

use crate::common::{SLC, device, dump, place, places, stream, traces, unpack};
use readpath_nand_testkit::{self as testkit, Device, Ecc, MtdWrite, Nand};
use readpath_ubi::attach::{Method, Options};
use readpath_ubi::guess::{Known, guess};
use readpath_ubi::headers::{EcHeader, LAYOUT_VOLUME, VidHeader, compat};
use readpath_ubi::layout::Layout;
use readpath_ubi::mtd::{Geometry, Image, Logged, Why};
use readpath_ubi::vtbl::{VolumeRecord, table_to_bytes};
use readpath_ubi::{NoCache, Ubi};

#[test]
fn dumps_attach() {
    // Blocks with data of the volume were counted by an independent script over the VID headers.
    for (name, free, erase) in [("fx.mtd.xz", 0, 485), ("fxj.mtd.xz", 0, 0), ("fxu.mtd.xz", 0, 0)] {
        let mut ubi = Ubi::attach(device(name), NoCache, &Options::default()).expect(name);
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

#[test]
fn reads_of_the_attach_are_those_of_the_kernel() {
    for (dump, recorded) in [
        ("fx.mtd.xz", "fx_pristine_attach.csv.gz"),
        ("fxj.mtd.xz", "fx_journal_attach.csv.gz"),
        ("fxu.mtd.xz", "fx_unclean_attach.csv.gz"),
    ] {
        let mtd = Logged::new(device(dump));
        let ubi = Ubi::attach(mtd, NoCache, &Options::default()).expect(dump);
        let ours = places(&ubi.mtd().records);
        let theirs: Vec<String> = stream(recorded).iter().filter(|l| l.starts_with('R')).map(|l| place(l)).collect();
        assert!(!theirs.is_empty());
        assert_eq!(ours, theirs, "{dump}");
    }
}

/// A writable device does everything that the kernel did: reads, then in the background an erase and an EC header for
/// each block that had none. The kernel stops its background work when nothing is left to do.
#[test]
fn background_work_after_the_attach_is_that_of_the_kernel() {
    for (dump_name, recorded) in [
        ("fx.mtd.xz", "fx_pristine_attach.csv.gz"),
        ("fxj.mtd.xz", "fx_journal_attach.csv.gz"),
        ("fxu.mtd.xz", "fx_unclean_attach.csv.gz"),
    ] {
        let mut nand = Nand::new(SLC, Ecc::new(512, 4), 1).expect("a device");
        nand.load(&dump(dump_name)).expect("it fits");
        let mut ubi = Device::attach(Logged::new(nand), NoCache, &testkit::Options::default()).expect(dump_name);
        ubi.work_all().expect("no faults");
        let ours = places(&ubi.mtd().records);
        let theirs: Vec<String> = stream(recorded).iter().map(|l| place(l)).collect();
        assert_eq!(ours, theirs, "{dump_name}");
    }
}

#[test]
fn an_image_of_the_first_blocks_attaches() {
    let bytes = dump("fx.mtd.xz");
    let guess = guess(&bytes, &Known::default()).expect("a guess");
    assert_eq!(guess.geometry, Geometry { pebs: 27, ..SLC });
    assert_eq!((guess.vid_offset, guess.ambiguous), (None, false));
    let image = Image::new(bytes, guess.geometry).expect("27 blocks");
    let ubi = Ubi::attach(image, NoCache, &Options::image()).expect("an image");
    assert_eq!(ubi.volume_by_name("rootfs").expect("it").mapped(), 25);

    // As a device of 27 blocks it does not hold a volume of 400.
    let image = Image::new(dump("fx.mtd.xz"), guess.geometry).expect("27 blocks");
    let e = Ubi::attach(image, NoCache, &Options::default()).expect_err("too small");
    assert_eq!(e.to_string(), "PEB 0 offset 2048: volume table: record 0: 400 reserved PEBs, but only 27 good ones");
}

#[test]
fn wrong_sizes_are_named() {
    let bytes = dump("fx.mtd.xz");
    let geometry = Geometry { pebs: 27, subpage_bytes: 2048, ..SLC };
    let image = Image::new(bytes.clone(), geometry).expect("sizes");
    let e = Ubi::attach(image, NoCache, &Options::image()).expect_err("no sub-pages");
    assert_eq!(e.to_string(), "PEB 0 offset 0: EC header: VID header offset 512 where 2048 is expected");
    let e = Image::new(bytes[..100_000].to_vec(), SLC).expect_err("cut off");
    assert!(e.to_string().starts_with("image size = 100000: a whole number of PEBs is needed"), "{e}");
}

/// Recorded attaches of 4 GiB devices whose contents are not available: the recordings show which blocks have
/// headers, and only that matters for the reads. READPATH_TRACES names their folder.
#[test]
fn attaches_of_large_devices() {
    let Some(folder) = traces() else { return };
    let (mut ran, sizes) = (0, [("m1", 16, 2048, 2048), ("k1", 16, 4096, 1024), ("mlc8k", 8, 2048, 2048)]);
    for (name, page_kib, peb_kib, pebs) in sizes {
        let path = folder.join(format!("{name}_attach.csv.gz"));
        let Ok(packed) = std::fs::read(&path) else {
            println!("SKIPPED: there is no {}", path.display());
            continue;
        };
        let theirs: Vec<String> = unpack(&packed).iter().map(|l| place(l)).collect();
        let page_bytes = page_kib << 10;
        let geometry = Geometry { peb_bytes: peb_kib << 10, page_bytes, subpage_bytes: page_bytes, pebs };
        let layout = Layout::new(&geometry, None).expect("a layout");
        let read = |peb: u32, offset: u32, len: u32| theirs.contains(&format!("R,{peb},{offset},{len}"));
        let mut nand = Nand::new(geometry, Ecc::new(1024, 40), 1).expect("a device");
        let mut write = |peb, offset, header: &[u8]| {
            let mut page = header.to_vec();
            page.resize(header.len().next_multiple_of(page_bytes as usize), 0);
            nand.write(peb, offset, &page, Why::Check).expect("erased");
        };
        let table = VolumeRecord::dynamic("rootfs", pebs - 50);
        let table = table_to_bytes(&vec![Some(table)], &layout);
        let (mut copy, mut lnum) = (0, 0);
        for peb in (0..pebs).filter(|&peb| read(peb, layout.vid_offset, 64)) {
            let (vid_offset, data_offset) = (layout.vid_offset, layout.data_offset);
            write(peb, 0, &EcHeader::new(&layout, 1, 1).to_bytes());
            let mut vid = VidHeader { version: 1, vol_type: 1, sqnum: peb.into(), lnum, ..VidHeader::default() };
            if read(peb, data_offset, layout.volume_table_bytes()) {
                (vid.volume, vid.compat, vid.lnum) = (LAYOUT_VOLUME, compat::REJECT, copy);
                copy += 1;
                write(peb, data_offset, &table);
            } else if name == "k1" && lnum == 200 {
                // Formatted by Linux: the others have no VID header.
                continue;
            } else {
                lnum += 1;
            }
            write(peb, vid_offset, &vid.to_bytes());
        }
        assert_eq!(copy, 2, "{name}");
        let mut ubi = Device::attach(Logged::new(nand), NoCache, &testkit::Options::default()).expect(name);
        ubi.work_all().expect("no faults");
        let ours = places(&ubi.mtd().records);
        // The recordings end while the kernel still works in the background.
        assert!(ours.len() >= theirs.len());
        assert_eq!(ours[..theirs.len()], theirs[..], "{name}");
        ran += 1;
    }
    println!("{ran} recordings compared");
}
