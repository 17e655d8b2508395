// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi ls|cat|find|stat|check|stream` on recorded dumps.

mod common;

use common::Room;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Puts a dump into a room.
fn dump(room: &Room, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ubi/tests/data").join(format!("{name}.xz"));
    let packed = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    liblzma::read::XzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("an xz file");
    fs::write(room.path(name), bytes).expect("a file");
}

#[test]
fn what_is_in_an_image() {
    let room = Room::new();
    dump(&room, "fx.mtd");
    let list = room.good(&["ubi", "ls", "fx.mtd", "/special"]);
    let line = |name: &str| list.lines().find(|l| l.contains(name)).unwrap_or_else(|| panic!("{name} in {list}"));
    assert_eq!(line("blk"), "brw-------   1     0     0       8, 1 2026-11-21T00:54:02Z blk");
    assert!(line("short_link").starts_with("lrwxrwxrwx") && line("short_link").ends_with(" short_link -> text300k"));
    assert!(line("hardlink").starts_with("-rw-r--r--   2     0     0     307200"));

    let found = room.good(&["ubi", "find", "fx.mtd"]);
    assert_eq!(found.lines().count(), 628);
    assert!(found.starts_with("/\n/collide\n"), "sorted by name");
    let json: serde_json::Value = serde_json::from_str(&room.good(&["ubi", "find", "--json", "fx.mtd"])).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(628));

    let through_link = room.good(&["ubi", "cat", "fx.mtd", "special/short_link"]);
    assert_eq!(through_link.len(), 307_200);
    assert_eq!(through_link, room.good(&["ubi", "cat", "--volume", "rootfs", "fx.mtd", "special/hardlink"]));

    let stat: serde_json::Value =
        serde_json::from_str(&room.good(&["ubi", "stat", "--json", "fx.mtd", "special/null"])).expect("JSON");
    assert_eq!((stat["device"].as_str(), stat["mode"].as_str()), (Some("1:3"), Some("0644")));
}

#[test]
fn what_is_wrong_with_an_image() {
    let room = Room::new();
    dump(&room, "fx.mtd");
    let clean = room.good(&["ubi", "check", "fx.mtd"]);
    assert!(clean.starts_with("627 inodes, 627 entries, 0 attributes, 839 data nodes"), "{clean}");
    let mut bytes = fs::read(room.path("fx.mtd")).expect("a file");
    bytes[19 * 131_072 + 60_000] ^= 1;
    fs::write(room.path("bad.mtd"), bytes).expect("a file");
    let output = room.output(&["ubi", "check", "bad.mtd"]);
    assert_eq!(output.status.code(), Some(2));
    let text = common::text(&output.stdout);
    assert!(text.starts_with("LEB 17 (PEB 19) offset 53872: bad-node: expected a data node: checksum"), "{text}");
    assert_eq!(common::text(&output.stderr), "readpath: bad.mtd: 1 thing is wrong\n");
    let output = room.output(&["ubi", "check", "--json", "bad.mtd"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let finding = &json["findings"][0];
    assert_eq!((finding["kind"].as_str(), finding["peb"].as_u64()), (Some("bad-node"), Some(19)));
}

#[test]
fn streams_can_be_replayed() {
    let room = Room::new();
    dump(&room, "fxj.mtd");
    assert_eq!(room.good(&["ubi", "stream", "find", "/", "fxj.mtd", "--out", "find.csv"]), "966 reads in find.csv\n");
    let stream = room.read("find.csv");
    assert!(stream.starts_with("# op,peb,offset,len,lnum,what\nr,24,104448,60,22,dent\nr,22,89528,74,20,dent\n"));
    let table = room.good(&["ubi", "replay", "find.csv", "--page-size", "2048", "--cache", "none,lru"]);
    assert!(table.contains("lru"), "{table}");
    // Attach, mount, and then the same.
    room.good(&["ubi", "stream", "find", "/", "fxj.mtd", "--out", "all.csv", "--with-mount"]);
    let all = room.read("all.csv");
    assert!(all.lines().nth(1).is_some_and(|l| l.starts_with("R,0,0,64,,")), "the attach comes first");
    assert!(all.ends_with(stream.split_once('\n').expect("lines").1), "the walk comes last");
    room.write("list", "special/empty\nspecial/text300k\n");
    let told = room.good(&["ubi", "stream", "read", "list", "fxj.mtd", "--out", "read.csv"]);
    assert_eq!(room.read("read.csv").lines().filter(|l| l.ends_with(",data")).count(), 75, "{told}");
}

#[test]
fn mistakes_are_named_and_leave_nothing() {
    let room = Room::new();
    dump(&room, "fx.mtd");
    room.write("text", "not an image");
    room.bad(&["ubi", "ls", "text"], &["text: no UBI"]);
    room.bad(&["ubi", "ls", "nothing"], &["nothing: cannot be read"]);
    room.bad(&["ubi", "ls", "fx.mtd", "nowhere"], &["fx.mtd: nowhere: no such file or directory"]);
    room.bad(&["ubi", "ls", "fx.mtd", "--volume", "x"], &["no volume \"x\"", "0 \"rootfs\""]);
    room.bad(&["ubi", "ls", "fx.mtd", "--page-size", "3000"], &["fx.mtd: "]);
    room.bad(&["ubi", "cat", "fx.mtd", "special"], &["fx.mtd: special: it is a directory"]);
    room.bad(&["ubi", "stream", "find", "/no", "fx.mtd", "--out", "s.csv"], &["no such file or directory"]);
    room.bad(&["ubi", "stream", "mount", "/x", "fx.mtd", "--out", "s.csv"], &["/x: "]);
    room.bad(&["ubi", "stream", "rm", "/special", "fx.mtd", "--out", "s.csv"], &["it is a directory"]);
}
