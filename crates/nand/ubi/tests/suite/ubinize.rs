// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images: those of mtd-utils, ours compared with them byte by byte, and the contents of a device that they were
//! flashed to.

use crate::common::{OnePage, one_page};
use readpath_kit::Prng;
use readpath_nand_testkit::{Device, Ecc, Nand, NewVolume, Options};
use readpath_ubi::guess::{Known, guess};
use readpath_ubi::layout::Layout;
use readpath_ubi::mtd::{Geometry, Image, Logged, Why};
use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};
use readpath_ubi::{NoCache, Ubi, attach};
use std::fs;
use std::path::Path;
use std::process::Command;

const GEOMETRIES: [Geometry; 3] = [
    Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 64 },
    Geometry { peb_bytes: 256 << 10, page_bytes: 4096, subpage_bytes: 4096, pebs: 64 },
    Geometry { peb_bytes: 2 << 20, page_bytes: 16 << 10, subpage_bytes: 16 << 10, pebs: 40 },
];

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut p = Prng::new(seed);
    (0..bytes).map(|_| p.next_u64() as u8).collect()
}

fn leb_bytes(geometry: &Geometry, vid_offset: Option<u32>) -> u32 {
    Layout::new(geometry, vid_offset).expect("a layout").leb_bytes
}

/// Contents of five volumes: dynamic ones with a hole of 0xFF, an alignment and none at all, static ones.
fn contents(leb_bytes: usize) -> [Vec<u8>; 5] {
    let mut holed = noise(1, leb_bytes / 3);
    holed.resize(2 * leb_bytes + 100, 0xFF);
    holed.extend(noise(2, 5000));
    [noise(3, leb_bytes + 77_777), holed, noise(4, 2 * leb_bytes + 1), Vec::new(), noise(5, 10)]
}

fn volumes<'a>(data: &'a [Vec<u8>; 5], leb_bytes: u64, page: u32) -> Vec<ImageVolume<'a>> {
    let volume = |id, name, data: &'a Vec<u8>| ImageVolume {
        bytes: Some(4 * leb_bytes),
        ..ImageVolume::dynamic(id, name, data)
    };
    vec![
        volume(0, "first", &data[0]),
        volume(6, "holed", &data[1]),
        ImageVolume { is_static: true, bytes: None, ..volume(3, "static", &data[2]) },
        ImageVolume { autoresize: true, alignment: 2 * page, ..volume(5, "the rest", &data[3]) },
        ImageVolume { is_static: true, skip_crc: true, bytes: None, ..volume(7, "unchecked", &data[4]) },
    ]
}

/// The image that ubinize makes of the same volumes, or `None` if it is not installed.
fn theirs(folder: &Path, head: &ImageHead, volumes: &[ImageVolume]) -> Option<Vec<u8>> {
    let mut ini = String::new();
    for v in volumes {
        let file = folder.join(format!("volume{}", v.id));
        fs::write(&file, v.data).expect("a file");
        ini += &format!("[v{}]\nmode=ubi\nvol_id={}\nvol_name={}\nvol_alignment={}\n", v.id, v.id, v.name, v.alignment);
        ini += if v.is_static { "vol_type=static\n" } else { "vol_type=dynamic\n" };
        ini += &v.bytes.map(|b| format!("vol_size={b}\n")).unwrap_or_default();
        ini += if v.data.is_empty() { String::new() } else { format!("image={}\n", file.display()) }.as_str();
        ini += if v.autoresize { "vol_flags=autoresize\n" } else { "" };
        ini += if v.skip_crc { "vol_flags=skip-check\n" } else { "" };
    }
    let (config, image) = (folder.join("config.ini"), folder.join("image"));
    fs::write(&config, ini).expect("a file");
    let Geometry { peb_bytes, page_bytes, subpage_bytes, .. } = head.geometry;
    let number = |n: u32| n.to_string();
    let run = Command::new("ubinize")
        .args(["-p", &number(peb_bytes), "-m", &number(page_bytes), "-s", &number(subpage_bytes)])
        .args(["-Q", &number(head.image_seq), "-e", &number(head.erase_counter)])
        .args(head.vid_offset.map(|o| format!("-O{o}")))
        .arg("-o")
        .arg(&image)
        .arg(&config)
        .output();
    let Ok(run) = run else {
        println!("SKIPPED: ubinize of mtd-utils is not installed");
        return None;
    };
    assert!(run.status.success(), "ubinize: {}", String::from_utf8_lossy(&run.stderr));
    Some(fs::read(&image).expect("an image"))
}

#[test]
fn images_equal_those_of_ubinize() {
    let folder = tempfile::tempdir().expect("a folder");
    for geometry in GEOMETRIES {
        // Also a VID header right behind the EC header, in one sub-page with it.
        for vid_offset in [None, Some(2 * geometry.page_bytes), Some(64)] {
            let head = ImageHead { geometry, vid_offset, image_seq: 0xABCD_1234, erase_counter: 7 };
            let leb_bytes = leb_bytes(&geometry, vid_offset);
            let data = contents(leb_bytes as usize);
            let volumes = volumes(&data, leb_bytes.into(), geometry.page_bytes);
            let mut ours = Vec::new();
            let pebs = write_image(&head, &volumes, &mut ours).expect("an image");
            assert_eq!(ours.len() as u64, u64::from(pebs) * u64::from(geometry.peb_bytes));
            let Some(theirs) = theirs(folder.path(), &head, &volumes) else { return };
            assert_eq!(ours.len(), theirs.len());
            let differs = ours.iter().zip(&theirs).position(|(a, b)| a != b);
            assert_eq!(differs, None, "first byte that differs, {geometry:?} {vid_offset:?}");
        }
    }
}

#[test]
fn images_with_both_headers_in_one_subpage_can_be_read() {
    for geometry in GEOMETRIES {
        let head = ImageHead { geometry, vid_offset: Some(64), image_seq: 5, erase_counter: 3 };
        let leb_bytes = leb_bytes(&geometry, Some(64));
        let data = contents(leb_bytes as usize);
        let volumes = volumes(&data, leb_bytes.into(), geometry.page_bytes);
        let mut image = Vec::new();
        write_image(&head, &volumes, &mut image).expect("an image");
        let guessed = guess(&image, &Known::default()).expect("a guess");
        let sizes = (guessed.geometry.page_bytes, guessed.geometry.subpage_bytes, guessed.vid_offset);
        // The headers do not show the size of sub-pages.
        assert_eq!(sizes, (geometry.page_bytes, geometry.page_bytes, Some(64)));
        let whole = Geometry { pebs: geometry.pebs, ..guessed.geometry };
        let device = Logged::new(Image::new(image.clone(), whole).expect("it"));
        let options = attach::Options { vid_offset: Some(64), ..attach::Options::image() };
        let mut ubi = Ubi::attach(device, NoCache, &options).expect("an image");
        // As Linux reads it: from the beginning of the sub-page to the end of the header.
        let vid = ubi.mtd().records.iter().find(|r| r.why == Why::VidHeader).expect("a VID header");
        assert_eq!((vid.offset, vid.len), (0, 128));
        for v in &volumes {
            let mut read = vec![0; v.data.len()];
            let usable = ubi.volume(v.id).expect("a volume").leb_bytes as usize;
            for (lnum, piece) in (0..).zip(read.chunks_mut(usable)) {
                ubi.read(v.id, lnum, 0, piece, 0).expect("data");
            }
            assert!(read == v.data, "volume {}", v.id);
        }
        let mut nand = Nand::new(geometry, Ecc::new(512, 8), 1).expect("a device");
        nand.load(&image).expect("it fits");
        let writing = Options { vid_offset: Some(64), ..Options::default() };
        let e = Device::attach(nand, NoCache, &writing).expect_err("a sub-page is programmed once");
        assert!(e.to_string().ends_with("such a device can only be attached read-only"), "{e}");
    }
}

#[test]
fn flashed_images_come_back() {
    for geometry in GEOMETRIES {
        let head = ImageHead { geometry, vid_offset: None, image_seq: 5, erase_counter: 3 };
        let leb_bytes = leb_bytes(&geometry, None);
        let data = contents(leb_bytes as usize);
        let volumes = volumes(&data, leb_bytes.into(), geometry.page_bytes);
        let mut image = Vec::new();
        write_image(&head, &volumes, &mut image).expect("an image");
        let guessed = guess(&image, &Known::default()).expect("a guess");
        assert_eq!(
            (guessed.geometry.page_bytes, guessed.geometry.peb_bytes),
            (geometry.page_bytes, geometry.peb_bytes),
            "{guessed:?}"
        );

        let mut nand = Nand::new(geometry, Ecc::new(512, 8), 1).expect("a device");
        nand.load(&image).expect("it fits");
        let mut ubi = Device::attach(nand, one_page(geometry.page_bytes), &Options::default()).expect("an image");
        let free = ubi.available + ubi.bad_reserve;
        // All space but the reserve went to the autoresize volume.
        assert_eq!((ubi.available, ubi.bad_reserve), (0, geometry.pebs * 20 / 1024 + 1));
        assert_eq!(ubi.volume(5).expect("it").record.reserved_pebs, geometry.pebs - 4 - free - 4 - 4 - 3 - 1);
        ubi.work_all().expect("no faults");
        let check = |ubi: &mut Device<Nand, OnePage>| {
            for v in &volumes {
                let mut read = vec![0; v.data.len()];
                let usable = ubi.volume(v.id).expect("a volume").leb_bytes as usize;
                for (lnum, piece) in (0..).zip(read.chunks_mut(usable)) {
                    for (i, part) in piece.chunks_mut(3000).enumerate() {
                        ubi.read(v.id, lnum, i as u32 * 3000, part, 0).expect("data");
                    }
                }
                assert!(read == v.data, "volume {}", v.id);
                if v.is_static {
                    ubi.check_static(v.id).expect("good data");
                    assert_eq!(ubi.volume(v.id).expect("it").bytes(), v.data.len() as u64);
                }
            }
        };
        check(&mut ubi);
        // The same from a dump of the device after a write.
        ubi.write(0, 3, 0, &vec![0x5A; geometry.page_bytes as usize]).expect("a page");
        ubi.remove_volume(7).expect("it was there");
        ubi.update_volume(3, &data[4]).expect("it fits");
        let mut dump = Vec::new();
        ubi.mtd().write_image(&mut dump).expect("memory");
        assert_eq!(dump.len() as u64, geometry.bytes());
        let dumped = Image::new(dump, geometry).expect("a dump");
        let mut again = Ubi::attach(dumped, NoCache, &attach::Options::default()).expect("a dump");
        let mut page = vec![0; geometry.page_bytes as usize];
        again.read(0, 3, 0, &mut page, 0).expect("the page");
        assert!(page.iter().all(|&b| b == 0x5A));
        assert!(again.volume(7).is_err());
        let mut ten = [0; 10];
        again.read(3, 0, 0, &mut ten, 0).expect("the update");
        assert_eq!(ten[..], data[4]);
    }
}

#[test]
fn a_file_system_of_mkfs_ubifs_is_what_the_volume_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).expect("a folder");
    for i in 0..40 {
        fs::write(tree.join(format!("file{i}")), noise(i, 1000 * i as usize)).expect("a file");
    }
    for geometry in GEOMETRIES {
        let head = ImageHead { geometry, vid_offset: None, image_seq: 77, erase_counter: 0 };
        let leb_bytes = leb_bytes(&geometry, None);
        let file = folder.path().join("ubifs");
        let run = Command::new("mkfs.ubifs")
            .args(["-m", &geometry.page_bytes.to_string(), "-e", &leb_bytes.to_string(), "-c", "30", "-r"])
            .arg(&tree)
            .arg("-o")
            .arg(&file)
            .output();
        let Ok(run) = run else {
            println!("SKIPPED: mkfs.ubifs of mtd-utils is not installed");
            return;
        };
        assert!(run.status.success(), "mkfs.ubifs: {}", String::from_utf8_lossy(&run.stderr));
        let data = fs::read(&file).expect("a file system");
        let volume = ImageVolume { bytes: Some(30 * u64::from(leb_bytes)), ..ImageVolume::dynamic(0, "rootfs", &data) };
        let Some(image) = theirs(folder.path(), &head, std::slice::from_ref(&volume)) else { return };
        let mut ours = Vec::new();
        write_image(&head, &[volume], &mut ours).expect("an image");
        assert!(ours == image);
        let guessed = guess(&image, &Known::default()).expect("a guess").geometry;
        let image = Image::new(image, guessed).expect("it");
        let mut ubi = Ubi::attach(image, NoCache, &attach::Options::image()).expect("it");
        let mut read = vec![0; data.len()];
        for (lnum, piece) in (0..).zip(read.chunks_mut(leb_bytes as usize)) {
            ubi.read(0, lnum, 0, piece, 0).expect("data");
        }
        assert!(read == data, "{geometry:?}");
    }
}

#[test]
fn volumes_that_do_not_fit_together_are_refused() {
    let geometry = GEOMETRIES[0];
    let head = ImageHead { geometry, vid_offset: None, image_seq: 1, erase_counter: 0 };
    let data = contents(129_024);
    let good = volumes(&data, 129_024, 2048);
    for (right, change) in [
        ("identifiers go up to 127", ImageVolume { id: 128, ..good[0].clone() }),
        ("identifier or name is taken", ImageVolume { id: 6, ..good[0].clone() }),
        ("a name of 1 to 127 bytes", ImageVolume { name: "", ..good[0].clone() }),
        ("for contents of", ImageVolume { bytes: Some(9), ..good[0].clone() }),
        ("not a multiple of the page", ImageVolume { alignment: 3000, ..good[0].clone() }),
        (
            "need 2 LEBs",
            ImageVolume { alignment: 16_384, bytes: Some(120_000), data: &data[0][..120_000], ..good[0].clone() },
        ),
        ("only static volumes", ImageVolume { skip_crc: true, ..good[0].clone() }),
    ] {
        let mut out = Vec::new();
        let volumes = [change].into_iter().chain(good[1..].iter().cloned()).collect::<Vec<_>>();
        let e = write_image(&head, &volumes, &mut out).expect_err(right);
        assert!(e.to_string().contains(right), "{e}");
        assert!(out.is_empty());
    }
    let nand = Nand::new(geometry, Ecc::new(512, 8), 1).expect("a device");
    let mut ubi = Device::attach(nand, NoCache, &Options::default()).expect("an empty device");
    for (right, change) in [
        ("58 are available", NewVolume::dynamic("large", 59)),
        ("a name of", NewVolume::dynamic("", 1)),
        ("identifier 128", NewVolume { id: Some(128), ..NewVolume::dynamic("x", 1) }),
        ("not a multiple", NewVolume { alignment: 3, ..NewVolume::dynamic("x", 1) }),
    ] {
        let e = ubi.create_volume(&change).expect_err(right);
        assert!(e.to_string().contains(right), "{e}");
    }
}
