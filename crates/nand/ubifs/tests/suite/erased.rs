// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unused space has to be erased: every block of a volume gets a bit cleared in empty space, and the check names it.
//! Without mkfs.ubifs and ubinize, the test that needs them says so and passes.

use crate::common::patient::{LEB_BYTES, PEB_BYTES, Patient, put_bits, seal_packed};
use crate::common::{DUMPS, SLC, Volume, dump};
use readpath_ubi::attach::Options;
use readpath_ubi::mtd::{Geometry, Image};
use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};
use readpath_ubi::{NoCache, Ubi};
use readpath_ubifs::{DamageKind, LptShape, UbiVolume, check, sample};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

#[test]
fn a_cleared_bit_in_any_block_is_named() {
    for (name, _) in &DUMPS[..2] {
        let good = Patient::new(name);
        let with = |change: &dyn Fn(&mut Patient)| {
            let mut patient = good.clone();
            change(&mut patient);
            patient.report().findings
        };
        let fs = good.mounted();
        let sb = fs.superblock().clone();
        let last = LEB_BYTES as u32 - 3;
        // Blocks with empty space at the end.
        let mut patient = good.clone();
        let mapped = (0..good.pebs.len() as u32).filter(|&lnum| good.pebs[lnum as usize].is_some());
        let ends: Vec<u32> = mapped.filter(|&lnum| patient.bytes((lnum, last, 1))[0] == 0xFF).collect();
        let (front, main): (Vec<u32>, Vec<u32>) = ends.into_iter().partition(|&lnum| lnum < sb.main_first());
        let mut named = Vec::new();
        for &lnum in &front {
            let found = with(&|patient| patient.bytes((lnum, last, 1))[0] = 0xEF);
            // Empty blocks of the properties tree are unmapped at a mount, whatever their contents.
            let is_lpt = (sb.lpt_first()..sb.orphans_first()).contains(&lnum);
            if is_lpt && patient.bytes((lnum, 0, LEB_BYTES as u32)).iter().all(|&b| b == 0xFF) {
                assert!(found.is_empty(), "{name}: LEB {lnum}: {found:#?}");
                continue;
            }
            assert_eq!(found.len(), 1, "{name}: LEB {lnum}: {found:#?}");
            let place = (found[0].place.lnum, found[0].place.offset, found[0].place.peb);
            assert_eq!(place, (lnum, last, good.pebs[lnum as usize]), "{name}: {}", found[0]);
            named.push((lnum, found[0].kind));
        }
        let kind = |lnum: u32| named.iter().find(|(l, _)| *l == lnum).map(|(_, kind)| *kind);
        assert_eq!(kind(0), Some(DamageKind::NotErased), "{name}");
        assert_eq!([kind(1), kind(2)], [Some(DamageKind::BadMaster); 2], "{name}");
        assert!((3..sb.lpt_first()).filter_map(kind).any(|kind| kind == DamageKind::BadLog), "{name}: {named:?}");
        assert!((sb.lpt_first()..sb.orphans_first()).filter_map(kind).count() > 0, "{name}: {named:?}");
        // All but the journal's at once: the replay checks the space behind the journal, and without a replay the
        // rest cannot be checked.
        let of_journal: Vec<u32> = fs.buds().iter().map(|bud| bud.lnum).collect();
        for &lnum in main.iter().filter(|lnum| of_journal.contains(lnum)) {
            let found = with(&|patient| patient.bytes((lnum, last, 1))[0] = 0xEF);
            assert!(
                found.iter().any(|d| (d.place.lnum, d.place.offset) == (lnum, last)),
                "{name}: LEB {lnum}: {found:#?}"
            );
        }
        let main: Vec<u32> = main.into_iter().filter(|lnum| !of_journal.contains(lnum)).collect();
        // A block without used nodes is unmapped before it is written to, and is not reported.
        let found = with(&|patient| main.iter().for_each(|&lnum| patient.bytes((lnum, last, 1))[0] = 0xEF));
        let lnums: BTreeSet<u32> = found.iter().map(|d| d.place.lnum).collect();
        assert!(!lnums.is_empty() && lnums.iter().all(|lnum| main.contains(lnum)), "{name}: {found:#?}");
    }
}

#[test]
fn the_first_wrong_byte_behind_the_superblock_is_named() {
    for (name, at, says) in [
        // mkfs.ubifs writes a signature node there, and pads it; the kernel writes none.
        ("fx", 4100, "behind the superblock: "),
        ("fx", 6144, "behind the superblock: neither a node nor padding nor empty space: it begins with 0xfffffffb"),
        ("fx", 6152, "behind the superblock: not empty, although empty space began at 6144"),
        ("fxj", 4096, "behind the superblock: "),
        ("fxj", 70_001, "behind the superblock: not empty, although empty space began at 4096"),
        // Also after an unclean stop: the superblock is only ever replaced as a whole.
        ("fxu", 70_001, "behind the superblock: not empty, although empty space began at 4096"),
    ] {
        let mut patient = Patient::new(name);
        patient.bytes((0, at, 1))[0] ^= 4;
        let place = if at == 4100 { 4096 } else { at };
        let text = patient.expect_only(DamageKind::NotErased, (0, place, 0));
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn what_the_table_of_the_properties_tree_calls_free_is_erased() {
    let good = Patient::new("fxj");
    let fs = good.mounted();
    let (sb, head, table) = (fs.superblock().clone(), fs.master().lpt_head.0, fs.master().ltab);
    let shape = LptShape::new(&sb);
    // A block with one page of unused nodes; bytes of its second page are neither used nor free.
    let lnum = (sb.lpt_first()..sb.orphans_first()).find(|&lnum| lnum != head && lnum != table.0).expect("a block");
    let whole = LEB_BYTES as u32;
    let with = |free: u32, dirty: u32, at: u32| {
        let mut patient = good.clone();
        patient.fill_block(lnum, &[0x11; 2048]);
        patient.bytes((lnum, at, 1))[0] = 0xFE;
        let entry = 20 + (lnum - sb.lpt_first()) * 2 * shape.whole_bits;
        let bytes = patient.bytes((table.0, table.1, shape.table_bytes));
        put_bits(bytes, entry, shape.whole_bits, free);
        put_bits(bytes, entry + shape.whole_bits, shape.whole_bits, dirty);
        seal_packed(bytes);
        patient
    };
    let found = with(whole - 2048, 2048, 70_000).expect_only(DamageKind::NotErased, (lnum, 70_000, 0));
    assert!(
        found.ends_with("0xfe in the last 126976 bytes, which the table of the properties tree says are free"),
        "{found}"
    );
    with(whole - 2048, 2048, 2048).expect_only(DamageKind::NotErased, (lnum, 2048, 0));
    for (free, dirty, at) in
        [(whole - 2048, 2048, 2047), (whole - 4096, 4096, 2048), (whole, 0, 70_000), (0, whole, 70_000)]
    {
        with(free, dirty, at).assert_clean(&format!("{free} {dirty} {at}"));
    }
    let found = with(whole, 8, 2047).expect_only(DamageKind::BadProperties, (table.0, table.1, 0));
    assert!(found.ends_with(&format!("LEB {lnum} has 129024 free and 8 dirty bytes, of 129024")), "{found}");
}

#[test]
fn what_an_unclean_stop_leaves_is_no_damage() {
    let patient = Patient::new("fxu");
    patient.assert_clean("fxu");
    // A torn write into an unused block of the log, and into one of the properties tree, whose commit was in
    // progress.
    let fs = patient.mounted();
    let (lpt, end) = fs.master().lpt_head;
    let mut torn = patient.clone();
    torn.bytes((lpt, end, 700)).fill(0x11);
    torn.assert_clean("torn writes");
    // After an unmount no interrupted write explains it.
    let mut damaged = Patient::new("fxj");
    let fs = damaged.mounted();
    let (lpt, end) = fs.master().lpt_head;
    damaged.bytes((lpt, end, 700)).fill(0x11);
    damaged.expect_only(DamageKind::BadProperties, (lpt, end, 0));
}

/// Behind the volume table and behind static data, in the device below.
#[test]
fn volume_tables_and_static_volumes_end_in_erased_flash() {
    let geometry = Geometry { pebs: 64, ..SLC };
    let head = ImageHead { geometry, vid_offset: None, image_seq: 1, erase_counter: 0 };
    let data = vec![7; LEB_BYTES + 3000];
    let of_static = ImageVolume { is_static: true, ..ImageVolume::dynamic(3, "kernel", &data) };
    let mut image = Vec::new();
    write_image(&head, &[of_static], &mut image).expect("an image");
    let findings = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut image = image.clone();
        change(&mut image);
        let flash = Image::new(image, geometry).expect("an image of this device");
        let mut ubi = Ubi::attach(flash, NoCache, &Options::image()).expect("an image of UBI");
        let found = ubi.findings().expect("it can be read");
        found.iter().filter(|f| f.is_damage).map(|f| (f.kind, f.place)).collect::<Vec<_>>()
    };
    let at = |peb: usize, byte: usize| peb * PEB_BYTES + 2048 + byte;
    assert_eq!(findings(&|_| {}), []);
    // Linux pads with zeros to the end of the page at some places.
    assert_eq!(findings(&|i| i[at(0, 22_016)..at(0, 22_528)].fill(0)), []);
    assert_eq!(findings(&|i| i[at(3, 3000)..at(3, 4096)].fill(0)), []);
    for (peb, byte) in [(0, 22_016), (1, 22_528), (1, LEB_BYTES - 1), (3, 3000), (3, 4096), (3, LEB_BYTES - 1)] {
        let place = Some((peb as u32, 2048 + byte as u32));
        assert_eq!(findings(&|i| i[at(peb, byte)] = 0xFB), [("not-erased", place)], "PEB {peb}");
    }
    // Padding that is neither zeros nor erased.
    let torn = findings(&|i| {
        i[at(3, 3000)..at(3, 4096)].fill(0);
        i[at(3, 3500)] = 1;
    });
    assert_eq!(torn, [("not-erased", Some((3, 2048 + 3500)))]);
}

fn of_tools(page: u32, peb: u32, compressor: &str) -> Option<(Vec<u8>, Geometry)> {
    let room = tempfile::tempdir().expect("a folder");
    let tree = room.path().join("tree");
    fs::create_dir(&tree).expect("a folder");
    for i in 0..400u32 {
        let text = format!("{i} ").repeat(i as usize * 7);
        fs::write(tree.join(format!("file{i}")), text).expect("a file");
    }
    let run = |tool: &str, args: &[&str]| Command::new(tool).args(args).current_dir(room.path()).output();
    let data = if page == 2048 { 2048 } else { 2 * page };
    let leb = (peb - data).to_string();
    let (page_text, peb_text) = (page.to_string(), peb.to_string());
    let sub = if page == 2048 { "512" } else { &page_text };
    let made =
        run("mkfs.ubifs", &["-r", "tree", "-m", &page_text, "-e", &leb, "-c", "90", "-x", compressor, "-o", "volume"]);
    let size = 90 * (peb - data);
    let volumes = format!(
        "[v]\nmode=ubi\nimage=volume\nvol_id=0\nvol_type=dynamic\nvol_name=v\nvol_size={size}\n[k]\nmode=ubi\nimage=ini\n\
         vol_id=4\nvol_type=static\nvol_name=k\n"
    );
    fs::write(room.path().join("ini"), volumes).expect("a file");
    let Ok(made) = made else {
        println!("SKIPPED: mkfs.ubifs is not installed");
        return None;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let Ok(packed) = run("ubinize", &["-o", "image", "-p", &peb_text, "-m", &page_text, "-s", sub, "ini"]) else {
        println!("SKIPPED: ubinize is not installed");
        return None;
    };
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    let image = fs::read(room.path().join("image")).expect("an image");
    let geometry = Geometry {
        peb_bytes: peb,
        page_bytes: page,
        subpage_bytes: sub.parse().expect("a number"),
        pebs: (image.len() / peb as usize) as u32 + 2,
    };
    Some((image, geometry))
}

#[test]
fn images_that_others_and_we_make_are_in_order() {
    for (page, peb, compressor) in [(2048, 128 << 10, "lzo"), (8192, 2 << 20, "zlib"), (16_384, 2 << 20, "zstd")] {
        let Some((image, geometry)) = of_tools(page, peb, compressor) else { return };
        in_order(image, geometry, &format!("mkfs.ubifs with pages of {page}"));
    }
    for (page, leb) in [(2048, 126_976), (16_384, 2_064_384)] {
        let bytes = sample::volume(20, 30, leb, page);
        let pebs = 4 + bytes.len() as u32 / leb;
        let geometry = Geometry { peb_bytes: leb + 2 * page, page_bytes: page, subpage_bytes: page, pebs };
        let head = ImageHead { geometry, vid_offset: None, image_seq: 1, erase_counter: 0 };
        let mut image = Vec::new();
        write_image(&head, &[ImageVolume::dynamic(0, "v", &bytes)], &mut image).expect("an image");
        in_order(image, geometry, &format!("ours with pages of {page}"));
    }
    for (name, _) in DUMPS {
        in_order(dump(name), SLC, name);
    }
}

fn in_order(image: Vec<u8>, geometry: Geometry, what: &str) {
    let flash = Image::new(image, geometry).unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut ubi = Ubi::attach(flash, NoCache, &Options::image()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(ubi.findings().expect("it can be read"), [], "{what}");
    let volume: Volume = UbiVolume::new(ubi, 0).expect("volume 0");
    let found = check(volume, 100).unwrap_or_else(|e| panic!("{what}: {e}")).findings;
    assert!(found.is_empty(), "{what}: {found:#?}");
}
