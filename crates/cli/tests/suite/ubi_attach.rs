// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi attach` on recorded dumps.

use crate::common::Room;
use readpath_ubi::headers::EcHeader;
use readpath_ubi::mtd::Geometry;
use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};
use readpath_ubifs::crc32;
use serde_json::{Value, json};
use std::fs;

fn document(room: &Room, args: &[&str]) -> Value {
    room.json(&[&["ubi", "attach", "--json"], args].concat())
}

#[test]
fn what_an_attach_finds() {
    let room = Room::with_dump("fx.mtd");
    let text = room.good(&["ubi", "attach", "fx.mtd"]);
    assert!(text.starts_with("device          27 PEBs of 131072 bytes, 27 of them in the image\n"), "{text}");
    assert!(text.ends_with("  0  dynamic     400      25      51609600  rootfs\n"), "{text}");
    let all = document(&room, &["fx.mtd"]);
    assert_eq!(
        all["device"],
        json!({
            "pebs": 27, "pebs_in_image": 27, "peb_bytes": 131072, "page_bytes": 2048, "subpage_bytes": 512,
            "sizes_ambiguous": false,
        })
    );
    assert_eq!(all["layout"], json!({ "vid_offset": 512, "data_offset": 2048, "leb_bytes": 129024 }));
    assert_eq!(all["pebs"], json!({ "used": 27, "to_scrub": 0, "free": 0, "to_erase": 0, "kept": 0, "bad": 0 }));
    assert_eq!((&all["method"], &all["image_sequence"]), (&json!("scan"), &json!(99)));
    // 54 headers in one step of ECC each, and two copies of the table of 11 pages: 50 us for a page, 526 or 519 cycles
    // of 25 ns for a step.
    let page = 50_000 + (7 + 4 * 519) * 25;
    let seconds = f64::from(54 * (50_000 + (7 + 519) * 25) + 22 * page) / 1e9;
    // Without sub-page reads, both headers of a block are in the page that the NAND core keeps.
    let whole = f64::from((27 + 22) * page) / 1e9;
    let takes = json!({
        "cost": "slc-2k", "cost_scaled": false, "cost_cpu_known": false, "reads": 56, "seconds": seconds,
        "wait_seconds": seconds, "cpu_seconds": 0.0, "seconds_without_subpage_reads": whole,
    });
    assert_eq!(all["attach"], takes);
    let line = "\nattach takes    5.656 ms for 56 reads, 5.002 ms without sub-page reads\ncosts           slc-2k, \
                waiting only: the CPU time was not measured (--cost names others)\n";
    assert!(text.contains(line), "{text}");
    // An image made by ubinize has only the used blocks of the device.
    let few = "the volumes need a device of 404 PEBs at least, the image has 27: the attach of the device takes \
               longer; --pebs N says how many it has";
    assert_eq!(all["pebs_warning"], few);
    assert!(text.contains(&format!("\nwarning         {few}\n")), "{text}");
    // Other costs, by the name that all commands know.
    let mlc = document(&room, &["fx.mtd", "--cost", "mlc-16k"]);
    let of = |key: &str| mlc["attach"][key].clone();
    assert_eq!([of("cost"), of("cost_scaled"), of("cost_cpu_known")], [json!("mlc-16k"), json!(true), json!(true)]);
    let told = room.good(&["ubi", "attach", "fx.mtd", "--cost", "mlc-16k"]);
    assert!(told.contains("\ncosts           mlc-16k, SCALED from pages of 16384 bytes to 2048"), "{told}");

    // With larger sub-pages both headers share one, and the first is read along with the second.
    let shared = document(&room, &["fx.mtd", "--subpage-size", "2048"]);
    assert_eq!((&shared["layout"], &shared["volumes"]), (&all["layout"], &all["volumes"]));

    // With the size of the real device, blocks beyond the image are read too.
    let all = document(&room, &["fx.mtd", "--pebs", "512"]);
    assert_eq!((&all["attach"]["reads"], &all["pebs"]["to_erase"]), (&json!(541), &json!(485)));
    assert_eq!(all["pebs_warning"], json!(null));
}

#[test]
fn mistakes() {
    let room = Room::with_dump("fx.mtd");
    room.bad(&["ubi", "attach", "no"], &["no: cannot be read"]);
    room.bad(&["ubi", "attach", "."], &["is a folder"]);
    room.bad(
        &["ubi", "attach", "fx.mtd", "--cost", "xyz"],
        &["--cost: there is no preset 'xyz' (built in: slc-512, slc-2k, "],
    );
    room.bad(&["ubi", "attach", "fx.mtd", "--pebs", "9"], &["the image has more PEBs than that"]);
    room.bad(&["ubi", "attach", "fx.mtd", "--peb-size", "0"], &["--peb-size: \"0\" is not a size"]);
    let bytes = fs::read(room.path("fx.mtd")).expect("a file");
    fs::write(room.path("cut.mtd"), &bytes[..1_000_000]).expect("a file");
    room.bad(&["ubi", "attach", "cut.mtd"], &["cut.mtd: image size = 1000000: a whole number of PEBs is needed"]);
    fs::write(room.path("empty.mtd"), b"").expect("a file");
    let said = room.bad(&["ubi", "attach", "empty.mtd"], &["empty.mtd: the image is empty"]);
    assert!(!said.contains("--peb-size"), "{said}");
    fs::write(room.path("zero.mtd"), vec![0; 1 << 20]).expect("a file");
    room.bad(&["ubi", "attach", "zero.mtd"], &["zero.mtd: no UBI: no EC header"]);
}

/// Errors name the options for sizes only where these may help.
#[test]
fn sizes_are_doubted_where_they_may_be_wrong() {
    let room = Room::with_dump("fx.mtd");
    let hint = "if these sizes are wrong, give --peb-size";
    room.bad(&["ubi", "attach", "fx.mtd", "--page-size", "4K"], &["data offset 2048 where 4096 is expected", hint]);
    let bytes = fs::read(room.path("fx.mtd")).expect("a file");
    fs::write(room.path("one.mtd"), &bytes[..128 << 10]).expect("a file");
    room.bad(
        &["ubi", "attach", "one.mtd"],
        &["a single EC header does not show", "(--peb-size gives the size of erase blocks)"],
    );
    // A version of UBI that there is not, in a header with a good checksum.
    let geometry = Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 2048, pebs: 8 };
    made(&room, geometry, &[7; 5000]);
    let mut bytes = fs::read(room.path("made")).expect("a file");
    let header = EcHeader::parse(bytes.first_chunk().expect("a header")).expect("a good one");
    bytes[..64].copy_from_slice(&EcHeader { version: 2, ..header }.to_bytes());
    fs::write(room.path("made"), bytes).expect("a file");
    let said =
        room.bad(&["ubi", "attach", "made"], &["PEB 0 offset 0: EC header: UBI version 2 is not supported, only 1"]);
    assert!(!said.contains("--"), "{said}");
}

#[test]
fn a_size_of_erase_blocks_that_headers_speak_against_is_refused() {
    let room = Room::with_dump("fx.mtd");
    for (size, says) in [
        (
            "256K",
            "fx.mtd: PEB size = 262144: 13 EC headers of the same image are inside of such PEBs, the first at byte \
             131072; PEBs of 131072 bytes fit what is in the image",
        ),
        ("1M", "PEB size = 1048576: 23 EC headers"),
        ("64K", "fx.mtd: PEB size = 65536: only PEBs at multiples of 131072 begin with an EC header, and byte "),
        ("16K", "PEB size = 16384: only PEBs at multiples of 131072"),
    ] {
        for command in ["attach", "ls", "check"] {
            room.bad(&["ubi", command, "fx.mtd", "--peb-size", size], &[says]);
        }
    }
    let right = document(&room, &["fx.mtd", "--peb-size", "128K"]);
    assert_eq!((&right, &right["peb_size_warning"]), (&document(&room, &["fx.mtd"]), &Value::Null));
    // If the gap between the headers is empty, a smaller size is possible.
    let geometry = Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 2048, pebs: 8 };
    made(&room, geometry, &[7; 5000]);
    let warning = "--peb-size 65536 may be too small: only each block at a multiple of 131072 bytes has an EC header, \
                   as if PEBs had that size";
    let sizes = ["made", "--page-size", "2K", "--subpage-size", "2K", "--peb-size", "64K"];
    assert_eq!(document(&room, &sizes)["peb_size_warning"], json!(warning));
    let text = room.good(&[&["ubi", "attach"], &sizes[..]].concat());
    assert!(text.contains(&format!("\nwarning         {warning}\n")), "{text}");
    // An image within a volume has headers of its own, and is not what the size is of.
    let inner = fs::read(room.path("made")).expect("a file");
    made(&room, Geometry { peb_bytes: 1 << 20, pebs: 8, ..geometry }, &inner);
    let outer = document(&room, &["made", "--peb-size", "1M", "--page-size", "2K", "--subpage-size", "2K"]);
    assert_eq!((&outer["peb_size_warning"], &outer["device"]["peb_bytes"]), (&Value::Null, &json!(1 << 20)));
}

/// An image with one volume that begins with `data`.
fn made(room: &Room, geometry: Geometry, data: &[u8]) {
    let head = ImageHead { geometry, vid_offset: None, image_seq: 1, erase_counter: 0 };
    let volume = ImageVolume::dynamic(0, "v\u{1b}[2J", data);
    let mut out = Vec::new();
    write_image(&head, &[volume], &mut out).expect("an image");
    fs::write(room.path("made"), out).expect("a file");
}

#[test]
fn pages_of_a_size_that_no_nand_has() {
    let room = Room::new();
    made(&room, Geometry { peb_bytes: 64 << 10, page_bytes: 1024, subpage_bytes: 1024, pebs: 8 }, &[7; 5000]);
    let text = room.good(&["ubi", "attach", "made", "--page-size", "1K"]);
    assert!(text.contains("\ncosts           slc-512, SCALED from pages of 512 bytes to 1024"), "{text}");
    assert!(text.ends_with("  v\\u{1b}[2J\n"), "a name cannot steer the terminal: {text}");
    let all = document(&room, &["made", "--page-size", "1K", "--cost", "slc-2k"]);
    assert_eq!((&all["attach"]["cost"], &all["attach"]["cost_scaled"]), (&json!("slc-2k"), &json!(true)));
    assert!(all["attach"]["seconds"].as_f64().is_some_and(|s| s > 0.0), "{all}");
}

#[test]
fn a_superblock_decides_between_two_sizes_of_a_page() {
    let room = Room::new();
    for (page_bytes, subpage_bytes) in [(512, 256), (2048, 1024), (4096, 2048)] {
        let geometry = Geometry { peb_bytes: 64 << 10, page_bytes, subpage_bytes, pebs: 8 };
        let mut superblock = vec![0; 4096];
        superblock[..4].copy_from_slice(&0x0610_1831u32.to_le_bytes());
        superblock[16..20].copy_from_slice(&4096u32.to_le_bytes());
        superblock[20] = 6;
        for (min_io, right) in
            [(page_bytes, (page_bytes, subpage_bytes)), (subpage_bytes, (subpage_bytes, subpage_bytes))]
        {
            superblock[32..36].copy_from_slice(&min_io.to_le_bytes());
            let crc = crc32(&superblock[8..]);
            superblock[4..8].copy_from_slice(&crc.to_le_bytes());
            made(&room, geometry, &superblock);
            let device = &document(&room, &["made"])["device"];
            let found = (&device["page_bytes"], &device["subpage_bytes"], &device["sizes_ambiguous"]);
            assert_eq!(found, (&json!(right.0), &json!(right.1), &json!(false)));
        }
        made(&room, geometry, &[7; 5000]);
        assert_eq!(document(&room, &["made"])["device"]["sizes_ambiguous"], json!(true));
        let text = room.good(&["ubi", "attach", "made"]);
        let both = format!("pages of {page_bytes} bytes with sub-pages of {subpage_bytes} have the same headers");
        assert!(text.contains(&both), "{text}");
    }
}
