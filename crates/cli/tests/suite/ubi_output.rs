// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `readpath ubi` prints where that is not easy: names that are no text, files that are no images, a full disk,
//! and a reader that has gone.

use crate::common::{Room, text};
use readpath_ubi::mtd::Geometry;
use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};
use readpath_ubifs::sample::{self, seal};
use readpath_ubifs::{Key, NameHash, NodeType, scan_leb};
use std::fs::{self, File};
use std::process::{Command, Output, Stdio};

const GEOMETRY: Geometry = Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 64 };
const LEB_BYTES: usize = 129_024;
/// A byte that is no UTF-8, a control character of two bytes, a backslash, a control character and a letter.
const DIR: &[u8; 6] = b"\xff\xc2\x9b\\\x7fq";
/// A name that clears a terminal and contains a newline.
const FILE: &[u8; 6] = b"\x1b[2J\nx";
/// The two, as they are printed.
const DIR_PRINTED: &str = r"\xff\u{9b}\\\u{7f}q";
const FILE_PRINTED: &str = r"\u{1b}[2J\nx";

fn put_image(room: &Room, name: &str, volumes: &[ImageVolume]) {
    let head = ImageHead { geometry: GEOMETRY, vid_offset: None, image_seq: 1, erase_counter: 0 };
    let mut image = Vec::new();
    write_image(&head, volumes, &mut image).expect("an image");
    fs::write(room.path(name), image).expect("a file");
}

/// Gives the entry `old` of a volume another name of the same length.
fn rename(volume: &mut [u8], dir: u32, old: &[u8], new: &[u8]) {
    let (old, rest) =
        (Key::dentry(dir, NameHash::R5.of(old)), Key::dentry(dir, NameHash::R5.of(new)).rest.to_le_bytes());
    let key = [old.ino.to_le_bytes(), old.rest.to_le_bytes()].concat();
    for leb in volume.chunks_mut(LEB_BYTES) {
        let Ok(scanned) = scan_leb(leb, 0, GEOMETRY.page_bytes, 8) else { continue };
        for found in &scanned.nodes {
            let node = &mut leb[found.offset as usize..][..found.header.len as usize];
            let at = node.windows(8).position(|bytes| bytes == key);
            match (found.header.kind, at) {
                (NodeType::Dentry, Some(at)) => {
                    node[at + 4..at + 8].copy_from_slice(&rest);
                    node[56..56 + new.len()].copy_from_slice(new);
                }
                (NodeType::Index, Some(at)) => node[at + 4..at + 8].copy_from_slice(&rest),
                _ => continue,
            }
            seal(node);
        }
    }
}

/// An image whose only directory and only file have names that are no text.
fn odd_names(room: &Room) {
    let mut volume = sample::volume(1, 1, LEB_BYTES as u32, GEOMETRY.page_bytes);
    rename(&mut volume, 1, b"d00000", DIR);
    rename(&mut volume, 64, b"f00000", FILE);
    put_image(room, "odd.ubi", &[ImageVolume::dynamic(0, "v", &volume)]);
}

/// The program with any bytes as its arguments.
fn run(room: &Room, args: &[&[u8]]) -> Output {
    use std::os::unix::ffi::OsStrExt;
    let args = args.iter().map(|arg| std::ffi::OsStr::from_bytes(arg));
    Command::new(assert_cmd::cargo::cargo_bin("readpath"))
        .args(args)
        .current_dir(room.path(""))
        .output()
        .expect("it runs")
}

#[test]
fn names_are_escaped_where_somebody_reads_them() {
    let room = Room::new();
    odd_names(&room);
    let file = [b"/", &DIR[..], b"/", FILE].concat();
    let dir = [b"/", &DIR[..]].concat();
    for args in [
        &[&b"ls"[..], b"--json", b"odd.ubi"][..],
        &[b"find", b"--json", b"odd.ubi"],
        &[b"stat", b"odd.ubi", &file],
        &[b"stat", b"--json", b"odd.ubi", &file],
        &[b"cat", b"odd.ubi", &dir],
        &[b"stat", b"odd.ubi", &[&file[..], b"\x1b[2J"].concat()],
    ] {
        let output = run(&room, &[&[&b"ubi"[..]], args].concat());
        let printed = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(printed.chars().all(|c| c == '\n' || !c.is_control()), "{args:?}: {printed:?}");
        assert!(printed.contains(['q', 'x']), "{args:?}: {printed:?}");
    }
    let stat = run(&room, &[b"ubi", b"stat", b"odd.ubi", &file]);
    assert!(text(&stat.stdout).contains(&format!("path: /{DIR_PRINTED}/{FILE_PRINTED}\n")));
}

#[test]
fn programs_get_the_bytes_of_names() {
    let room = Room::new();
    odd_names(&room);
    // Standard output is a pipe.
    let lines = [b"/\n/", &DIR[..], b"\n/", DIR, b"/", FILE, b"\n"].concat();
    assert_eq!(room.output(&["ubi", "find", "odd.ubi"]).stdout, lines);
    let listed = run(&room, &[b"ubi", b"ls", b"odd.ubi", &[b"/", &DIR[..]].concat()]).stdout;
    assert!(listed.ends_with(&[&b" "[..], FILE, b"\n"].concat()), "{listed:?}");
    let output = room.output(&["ubi", "find", "--print0", "odd.ubi"]);
    let whole = [b"/\0/", &DIR[..], b"\0/", DIR, b"/", FILE, b"\0"].concat();
    assert_eq!(output.stdout, whole);
    let json = room.json(&["ubi", "find", "--json", "odd.ubi"]);
    let hex: String = [b"/", &DIR[..], b"/", FILE].concat().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(json[2]["path_hex"], hex);
    assert_eq!(json[2]["path"], "/\u{fffd}\u{9b}\\\u{7f}q/\u{1b}[2J\nx");
    let refused = room.output(&["ubi", "find", "--print0", "--ls", "odd.ubi"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// Commands that print.
const PRINTING: [&[&str]; 7] = [
    &["ls", "odd.ubi"],
    &["find", "odd.ubi"],
    &["find", "--json", "odd.ubi"],
    &["stat", "odd.ubi", "/"],
    &["check", "odd.ubi", "--json"],
    &["check", "odd.ubi"],
    &["attach", "odd.ubi"],
];

#[test]
fn a_full_disk_is_an_error() {
    let room = Room::new();
    odd_names(&room);
    for args in PRINTING {
        let full = File::options().write(true).open("/dev/full").expect("/dev/full");
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("readpath"));
        let output = command.arg("ubi").args(args).current_dir(room.path("")).stdout(full).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{args:?}: {}", text(&output.stderr));
        let says = "readpath: standard output: cannot write: No space left on device (os error 28)\n";
        assert_eq!(text(&output.stderr), says, "{args:?}");
    }
}

/// A pipe that is not read.
fn unread() -> Stdio {
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().expect("true");
    let pipe = reader.stdin.take().expect("a pipe");
    reader.wait().expect("it ends");
    pipe.into()
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    let room = Room::new();
    odd_names(&room);
    for args in PRINTING {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("readpath"));
        let command = command.arg("ubi").args(args).current_dir(room.path("")).stdout(unread());
        let output = command.stderr(Stdio::piped()).output().expect("it runs");
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{args:?}");
    }
    // Also where the report of damage has no reader.
    let mut image = fs::read(room.path("odd.ubi")).expect("a file");
    let at = image.windows(6).position(|bytes| bytes == FILE).expect("the name");
    image[at] ^= 1;
    fs::write(room.path("bad.ubi"), image).expect("a file");
    for args in [["find", "bad.ubi"], ["check", "bad.ubi"]] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("readpath"));
        let command = command.arg("ubi").args(args).current_dir(room.path("")).stderr(unread());
        let output = command.stdout(Stdio::piped()).output().expect("it runs");
        assert_eq!(output.status.code(), Some(4), "{args:?}");
    }
}

#[test]
fn files_that_are_no_images_are_told_apart() {
    let room = Room::new();
    odd_names(&room);
    let packed = |name: &str, first: &[u8]| {
        fs::write(room.path(name), [first, &[7; 5000]].concat()).expect("a file");
    };
    for (name, first, says) in [
        ("i.gz", &[0x1F, 0x8B, 8][..], "i.gz: cannot be read: its packed content is damaged: "),
        ("i.xz", b"\xFD7zXZ\0", "i.xz: cannot be read: its packed content is damaged: "),
        ("i.zst", &[0x28, 0xB5, 0x2F, 0xFD], "i.zst: cannot be read: its packed content is damaged: "),
        ("i.bz2", b"BZh9", "i.bz2: is packed with bzip2; unpack it first: bzip2 -dk i.bz2\n"),
        ("i.lz4", &[0x04, 0x22, 0x4D, 0x18], "i.lz4: is packed with lz4; unpack it first: lz4 -d i.lz4\n"),
        ("i.zip", b"PK\x03\x04", "i.zip: is packed with zip; unpack it first: unzip i.zip\n"),
    ] {
        packed(name, first);
        for command in ["check", "ls", "attach"] {
            room.bad(&["ubi", command, name], &[says]);
        }
    }
    fs::write(room.path("v.ubifs"), sample::volume(1, 1, LEB_BYTES as u32, 2048)).expect("a file");
    room.bad(&["ubi", "check", "v.ubifs"], &["v.ubifs: is a volume of UBIFS without UBI around it"]);
}

#[test]
fn a_static_volume_has_only_checksums_to_compare() {
    let room = Room::new();
    let kernel = vec![0x42; 200_000];
    let fixed = ImageVolume { is_static: true, ..ImageVolume::dynamic(0, "kernel", &kernel) };
    put_image(&room, "one.ubi", &[fixed]);
    let checked =
        "volume 0 \"kernel\" is static and holds no UBIFS: its 200000 bytes were compared with their checksums";
    assert_eq!(room.good(&["ubi", "check", "one.ubi"]), format!("clean: {checked}\n"));
    let json = room.json(&["ubi", "check", "--json", "one.ubi"]);
    assert_eq!(json["without_ubifs"], checked);
    for args in [&["ubi", "ls", "one.ubi"][..], &["ubi", "cat", "one.ubi", "x"], &["ubi", "stat", "one.ubi"]] {
        room.bad(args, &["one.ubi: volume 0 \"kernel\" holds no UBIFS\n"]);
    }
    // Its data are damaged.
    let mut image = fs::read(room.path("one.ubi")).expect("a file");
    let at = image.windows(64).rposition(|bytes| bytes == [0x42; 64]).expect("data");
    image[at] ^= 1;
    fs::write(room.path("bad.ubi"), image).expect("a file");
    let output = room.output(&["ubi", "check", "bad.ubi"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stdout).contains("bad-static-data: LEB 1 of volume 0: data CRC"), "{output:?}");
    assert_eq!(text(&output.stderr), "readpath: bad.ubi: 1 thing is wrong\n");

    // Linux mounts UBIFS of a static volume; and which volumes are static is said where one has to be chosen.
    let volume = sample::volume(1, 1, LEB_BYTES as u32, 2048);
    let fixed = ImageVolume { is_static: true, ..ImageVolume::dynamic(0, "kernel", &kernel) };
    let root = ImageVolume { is_static: true, ..ImageVolume::dynamic(1, "root", &volume) };
    put_image(&room, "two.ubi", &[fixed, root]);
    room.bad(&["ubi", "ls", "two.ubi"], &["--volume says which: 0 \"kernel\" (static), 1 \"root\" (static)"]);
    assert_eq!(room.good(&["ubi", "find", "--volume", "root", "two.ubi"]), "/\n/d00000\n/d00000/f00000\n");
}
