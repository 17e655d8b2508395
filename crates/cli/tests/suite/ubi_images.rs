// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi ls|cat|find|stat|check|stream` on recorded dumps.

use crate::common::{Room, json, texts};
use std::fs;
use std::os::unix::fs::MetadataExt;

#[test]
fn what_is_in_an_image() {
    let room = Room::with_dump("fx.mtd");
    let list = room.good(&["ubi", "ls", "fx.mtd", "/special"]);
    let line = |name: &str| list.lines().find(|l| l.contains(name)).unwrap_or_else(|| panic!("{name} in {list}"));
    assert_eq!(line("blk"), "brw-------   1     0     0       8, 1 2026-11-21T00:54:02Z blk");
    assert!(line("short_link").starts_with("lrwxrwxrwx") && line("short_link").ends_with(" short_link -> text300k"));
    assert!(line("hardlink").starts_with("-rw-r--r--   2     0     0     307200"));

    let found = room.good(&["ubi", "find", "fx.mtd"]);
    assert_eq!(found.lines().count(), 628);
    assert!(found.starts_with("/\n/collide\n"), "sorted by name");
    let json = room.json(&["ubi", "find", "--json", "fx.mtd"]);
    assert_eq!(json.as_array().map(Vec::len), Some(628));

    let through_link = room.good(&["ubi", "cat", "fx.mtd", "special/short_link"]);
    assert_eq!(through_link.len(), 307_200);
    assert_eq!(through_link, room.good(&["ubi", "cat", "--volume", "rootfs", "fx.mtd", "special/hardlink"]));

    let named = room.good(&["ubi", "find", "fx.mtd", "--name", "*link"]);
    room.bad(&["ubi", "find", "fx.mtd", "--name", "[abc"], &["--name \"[abc\": unclosed character class at byte 0"]);
    let all = found.lines().filter(|line| line.ends_with("link"));
    assert_eq!(named.lines().collect::<Vec<_>>(), all.collect::<Vec<_>>());
    assert!(named.lines().any(|line| line == "/special/hardlink"), "{named}");

    // What its data nodes take is less than its size: they are compressed.
    let stat = room.json(&["ubi", "stat", "--json", "fx.mtd", "special/hardlink"]);
    let occupied = stat["occupied"].as_u64().expect("a number");
    assert!(occupied > 0 && occupied < 307_200, "{occupied}");
    let stat = room.json(&["ubi", "stat", "--json", "fx.mtd", "special/null"]);
    assert!(stat["occupied"].is_null(), "a device has no data");
    assert_eq!((stat["device"].as_str(), stat["mode"].as_str()), (Some("1:3"), Some("0644")));
}

#[test]
fn what_is_wrong_with_an_image() {
    let room = Room::with_dump("fx.mtd");
    let clean = room.good(&["ubi", "check", "fx.mtd"]);
    assert!(clean.starts_with("clean: 627 inodes, 627 entries, 0 attributes, 839 data nodes"), "{clean}");
    let mut bytes = fs::read(room.path("fx.mtd")).expect("a file");
    bytes[19 * 131_072 + 60_000] ^= 1;
    fs::write(room.path("bad.mtd"), bytes).expect("a file");
    let output = room.output(&["ubi", "check", "bad.mtd"]);
    assert_eq!(output.status.code(), Some(4), "damage ends with 4; a mistake of the user ends with 2");
    let text = crate::common::text(&output.stdout);
    assert!(!text.contains("clean"), "{text}");
    assert!(text.starts_with("LEB 17 (PEB 19) offset 53872: bad-node: expected a data node: checksum"), "{text}");
    assert_eq!(crate::common::text(&output.stderr), "readpath: bad.mtd: 1 thing is wrong\n");
    let output = room.output(&["ubi", "check", "--json", "bad.mtd"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["clean"], false);
    let finding = &json["findings"][0];
    assert_eq!((finding["kind"].as_str(), finding["peb"].as_u64()), (Some("bad-node"), Some(19)));
}

#[test]
fn images_may_be_packed() {
    let room = Room::with_dump("fx.mtd");
    let plain = [room.good(&["ubi", "find", "fx.mtd"]), room.good(&["ubi", "attach", "--json", "fx.mtd"])];
    let bytes = fs::read(room.path("fx.mtd")).expect("a file");
    let xz = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../nand/ubi/tests/data/fx.mtd.xz");
    fs::copy(xz, room.path("i.xz")).expect("a file");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, &bytes).expect("memory");
    fs::write(room.path("i.gz"), gz.finish().expect("memory")).expect("a file");
    fs::write(room.path("i.zst"), zstd::encode_all(&bytes[..], 1).expect("memory")).expect("a file");
    for packed in ["i.xz", "i.gz", "i.zst"] {
        assert_eq!([room.good(&["ubi", "find", packed]), room.good(&["ubi", "attach", "--json", packed])], plain);
    }
}

#[test]
fn a_dump_with_spare_areas_is_told_and_read() {
    let room = Room::with_dump("fx.mtd");
    let bytes = fs::read(room.path("fx.mtd")).expect("a file");
    let with_spare: Vec<u8> = bytes.chunks(2048).flat_map(|page| [page, &[0xFF; 64]].concat()).collect();
    fs::write(room.path("oob.mtd"), with_spare).expect("a file");
    let says = "oob.mtd: looks like pages of 2048 + 64 bytes: dump it without spare areas (nanddump --omitoob), or \
                give --oob 64";
    room.bad(&["ubi", "ls", "oob.mtd"], &[says]);
    room.bad(&["ubi", "attach", "oob.mtd"], &[says]);
    room.bad(
        &["ubi", "ls", "oob.mtd", "--oob", "128"],
        &["--oob 128: the file is not UBI in pages with spare areas of 128 bytes"],
    );
    // Of a few erase blocks, whose headers lie at multiples of a fraction of the distance between them.
    let few: Vec<u8> = bytes[..15 << 17].chunks(2048).flat_map(|page| [page, &[0xFF; 64]].concat()).collect();
    fs::write(room.path("few.mtd"), few).expect("a file");
    let says = says.replace("oob.mtd", "few.mtd");
    room.bad(&["ubi", "check", "few.mtd"], &[&says]);
    room.bad(&["ubi", "check", "few.mtd", "--peb-size", "131072"], &[&says]);
    room.bad(&["ubi", "ls", "oob.mtd", "--oob", "64K"], &["--oob: \"64K\" is no number of bytes"]);
    for command in [&["find"][..], &["attach", "--json"], &["check"]] {
        let of = |image: &[&str]| room.good(&[&["ubi"], command, image].concat());
        assert_eq!(of(&["oob.mtd", "--oob", "64"]), of(&["fx.mtd"]), "{command:?}");
    }
}

#[test]
fn streams_can_be_replayed() {
    let room = Room::with_dump("fxj.mtd");
    assert_eq!(
        room.good(&["ubi", "stream", "fxj.mtd", "find", "/", "--output", "find.csv"]),
        "966 reads in find.csv\n"
    );
    let stream = room.read("find.csv");
    let begin = "# op,peb,offset,len,lnum,what\n# page_bytes=2048\nr,24,104448,60,22,dent\nr,22,89528,74,20,dent\n";
    assert!(stream.starts_with(begin));
    assert_eq!(room.good(&["ubi", "stream", "fxj.mtd", "find", "/", "--output", "/dev/stdout"]), stream);
    let files = room.files();
    assert_eq!(room.good(&["ubi", "stream", "fxj.mtd", "find", "/", "--output", "-"]), stream);
    assert_eq!(room.files(), files, "- is standard output, not a file of that name");
    let replay = |more: &[&str]| {
        let args = [&["ubi", "replay", "find.csv", "--cache", "none,lru", "--json"], more].concat();
        let doc = room.json(&args);
        doc["rows"].clone()
    };
    assert_eq!(replay(&[]), replay(&["--page-size", "2048"]), "the stream says how large its pages are");
    let says = "find.csv: has pages of 2048 bytes, --page-size of 16384; replay it apart";
    room.bad(&["ubi", "replay", "find.csv", "--page-size", "16K"], &[says]);
    room.write("other.csv", "r,1,0,64,,x\n");
    let says = "find.csv: has pages of 2048 bytes, other.csv of 16384; replay it apart";
    room.bad(&["ubi", "replay", "other.csv", "find.csv"], &[says]);
    std::fs::create_dir(room.path("t")).expect("a folder");
    room.write("t/x_find.csv", &stream);
    room.write("t/y_find.csv", "r,1,0,64,,x\n");
    room.write("t/usb8k_find.csv", "r,1,0,64,,x\n");
    room.write("t/z_find.csv", "r,1,32768,64,,x\nR,1,16384,24576,,x\n");
    room.write("t/README", "");
    let report = room.good(&["reproduce", "ubi", "--traces", "t", "--json"]);
    let doc = json(&report);
    let notes = texts(&doc);
    let left_out = ": README, usb8k_find.csv (of other pages, by its name), x_find.csv (declares pages of 2048 \
                    bytes), z_find.csv (line 2 does not fit such pages).";
    assert!(notes.iter().any(|n| n.starts_with("Left out of t, as ") && n.ends_with(left_out)), "{notes:?}");
    assert_eq!(doc["inputs"].as_array().map(Vec::len), Some(1));
    // Attach, mount, and then the same reads.
    room.good(&["ubi", "stream", "fxj.mtd", "find", "/", "--output", "all.csv", "--with-mount"]);
    let all = room.read("all.csv");
    assert!(all.lines().nth(2).is_some_and(|l| l.starts_with("R,0,0,64,,")), "the attach comes first");
    assert!(all.ends_with(stream.splitn(3, '\n').nth(2).expect("records")), "the walk comes last");
    // The device that the image is of may have more blocks: the attach looks for their headers, too.
    let larger = ["ubi", "stream", "fxj.mtd", "find", "/", "--output", "larger.csv", "--with-mount", "--pebs", "600"];
    room.good(&larger);
    let (text, pebs) = (room.read("larger.csv"), fs::read(room.path("fxj.mtd")).expect("a file").len() / 131_072);
    let lines = |text: &str, end: &str| text.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!(lines(&text, ",,ec"), 600);
    assert_eq!(lines(&all, ",,ec"), pebs);
    let without = |text: &str| text.lines().filter(|l| !l.ends_with(",,ec")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(without(&text), without(&all));
    room.write("list", "special/empty\n\nspecial/text300k\n");
    let told = room.good(&["ubi", "stream", "fxj.mtd", "read", "list", "--output", "read.csv"]);
    assert_eq!(room.read("read.csv").lines().filter(|l| l.ends_with(",data")).count(), 75, "{told}");
}

#[test]
fn mistakes_are_named_and_leave_nothing() {
    let room = Room::with_dump("fx.mtd");
    room.write("text", "not an image");
    room.bad(&["ubi", "ls", "text"], &["text: no UBI"]);
    room.bad(&["ubi", "ls", "nothing"], &["nothing: cannot be read"]);
    room.bad(&["ubi", "ls", "fx.mtd", "nowhere"], &["fx.mtd: nowhere: no such file or directory"]);
    room.bad(&["ubi", "ls", "fx.mtd", "--volume", "x"], &["no volume \"x\"", "0 \"rootfs\""]);
    room.bad(&["ubi", "ls", "fx.mtd", "--page-size", "3000"], &["fx.mtd: "]);
    room.bad(&["ubi", "cat", "fx.mtd", "special"], &["fx.mtd: special: it is a directory"]);
    room.bad(&["ubi", "stream", "fx.mtd", "find", "/no", "--output", "s.csv"], &["no such file or directory"]);
    room.bad(&["ubi", "stream", "fx.mtd", "mount", "/x", "--output", "s.csv"], &["/x: "]);
    room.bad(&["ubi", "ls", "fx.mtd", "--pebs", "9"], &["fx.mtd: ", "the image has more PEBs than that"]);
    room.bad(&["ubi", "find", "fx.mtd", "--ls", "--json"], &["'--ls' cannot be used with '--json'"]);
    room.write("list", "special/text300k\nspecial\n");
    let says = "fx.mtd: special: it is a directory; only regular files can be read";
    room.bad(&["ubi", "stream", "fx.mtd", "read", "list", "--output", "s.csv"], &[says]);
    room.write("list", "special/null\n");
    let says = "fx.mtd: special/null: it is not a regular file; only those can be read";
    room.bad(&["ubi", "stream", "fx.mtd", "read", "list", "--output", "s.csv"], &[says]);
    room.bad(&["ubi", "stream", "fx.mtd", "rm", "/special", "--output", "s.csv"], &["it is a directory"]);
}

#[test]
fn damage_below_the_volume_is_told_and_what_a_cut_leaves_is_no_damage() {
    let room = Room::with_dump("fx.mtd");
    let good = fs::read(room.path("fx.mtd")).expect("a file");
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        fs::write(room.path("bad.mtd"), bytes).expect("a file");
        let output = room.output(&["ubi", "check", "bad.mtd"]);
        (output.status.code(), crate::common::text(&output.stdout).to_owned())
    };
    let (code, text) = with(&|image| image[19 * 131_072 + 9] ^= 1);
    assert_eq!(code, Some(4));
    assert!(
        text.starts_with("PEB 19 offset 0: bad-ec-header: the EC header is damaged; the block holds LEB 17"),
        "{text}"
    );
    let (code, text) = with(&|image| image[131_072 + 2048 + 5] ^= 1);
    assert_eq!(code, Some(4));
    assert!(text.starts_with("PEB 1 offset 2048: bad-volume-table: copy 1: "), "{text}");
    // An erased block: its data is reported as missing, once.
    let (code, text) = with(&|image| image[19 * 131_072..20 * 131_072].fill(0xFF));
    assert_eq!(code, Some(4));
    assert_eq!(text.matches("LEB 17").count(), 2, "{text}");
    assert!(
        text.starts_with("LEB 17 offset 0: unmapped-leb: nodes are expected in it, but LEB 17 has no PEB"),
        "{text}"
    );
    // One more block at the end, whose header was not written completely.
    let (code, text) = with(&|image| {
        let first = image[..131_072].to_vec();
        let at = image.len();
        image.extend(first);
        image[at + 512..].fill(0xFF);
        image[at + 512..at + 520].fill(0x5A);
    });
    assert_eq!(code, Some(0));
    assert!(text.starts_with("PEB 27 offset 512: bad-vid-header (not damage): "), "{text}");
}

#[test]
fn find_goes_on_behind_damage() {
    let room = Room::with_dump("fx.mtd");
    let mut bytes = fs::read(room.path("fx.mtd")).expect("a file");
    let all = room.good(&["ubi", "find", "fx.mtd"]);
    // Inside of an entry node.
    bytes[22 * 131_072 + 2048 + 117_928 + 50] ^= 1;
    fs::write(room.path("bad.mtd"), bytes).expect("a file");
    for is_json in [false, true] {
        let output =
            room.output(if is_json { &["ubi", "find", "--json", "bad.mtd"] } else { &["ubi", "find", "bad.mtd"] });
        let (found, told) = (crate::common::text(&output.stdout), crate::common::text(&output.stderr));
        assert_eq!(output.status.code(), Some(4), "{told}");
        assert!(told.starts_with("readpath: bad.mtd: /"), "{told}");
        assert!(told.contains("LEB 20 (PEB 22) offset 117928: bad-node: expected a directory entry"), "{told}");
        assert!(told.ends_with("bad.mtd: something could not be read\n"), "{told}");
        if is_json {
            let list = json(found);
            assert!(list.as_array().is_some_and(|list| !list.is_empty()), "{list}");
        } else {
            let lost: Vec<&str> = all.lines().filter(|line| found.lines().all(|l| l != *line)).collect();
            let dir = told.trim_start_matches("readpath: bad.mtd: ").split_once(':').expect("a path").0;
            assert!(lost[0].starts_with(dir) && found.lines().count() + lost.len() == all.lines().count(), "{lost:?}");
            assert!(lost.iter().all(|path| path.starts_with(lost[0])), "what is lost is one entry: {lost:?}");
        }
    }
}

#[test]
fn an_image_is_neither_replaced_nor_waited_for() {
    let room = Room::with_dump("fx.mtd");
    let before = fs::read(room.path("fx.mtd")).expect("a file");
    std::os::unix::fs::symlink("fx.mtd", room.path("link")).expect("a link");
    for out in ["fx.mtd", "./fx.mtd", "link"] {
        room.bad(
            &["ubi", "stream", "fx.mtd", "find", "/", "--output", out],
            &[&format!("{out}: this is the input; write to another file")],
        );
    }
    assert!(before == fs::read(room.path("fx.mtd")).expect("a file"));
    for command in ["attach", "ls"] {
        room.bad(&["ubi", command, "/dev/null"], &["/dev/null: is not a file"]);
    }
}

#[test]
fn what_is_wrapped_around_an_image_is_named() {
    let room = Room::with_dump("fx.mtd");
    let bytes = fs::read(room.path("fx.mtd")).expect("a file");
    fs::write(room.path("behind"), [&[0x55; 5000], &bytes[..]].concat()).expect("a file");
    let says = "behind: UBI begins at byte 5000; cut off what is before it: tail -c +5001 behind >image.ubi";
    room.bad(&["ubi", "ls", "behind"], &[says]);
    // The header lies across the border of what is read at once.
    fs::write(room.path("across"), [&vec![0x55; (1 << 20) - 10], &bytes[..1 << 20]].concat()).expect("a file");
    room.bad(&["ubi", "ls", "across"], &["across: UBI begins at byte 1048566; cut off what is before it"]);
    fs::write(room.path("sparse"), [&[0x3A, 0xFF, 0x26, 0xED, 1, 0, 0, 0], &bytes[..]].concat()).expect("a file");
    let says = "sparse: is an Android sparse image; unpack it first: simg2img sparse image.ubi";
    room.bad(&["ubi", "check", "sparse"], &[says]);
    fs::write(room.path("other"), vec![0x55; 1 << 20]).expect("a file");
    room.bad(&["ubi", "ls", "other"], &["no UBI: no EC header"]);
}

/// A volume of OpenWrt's `rootfs` holds SquashFS: UBI knows nothing wrong with it.
#[test]
fn a_volume_without_ubifs_is_not_damaged() {
    let room = Room::with_dump("fx.mtd");
    let whole = fs::read(room.path("fx.mtd")).expect("a file");
    let with_lebs = |name: &str, lebs: &[u32]| {
        let mut bytes = whole.clone();
        for peb in bytes.chunks_mut(131_072) {
            let word = |at: usize| u32::from_be_bytes(peb[at..at + 4].try_into().expect("four bytes"));
            // The VID header, its volume and LEB.
            if &peb[512..516] == b"UBI!" && word(520) == 0 && lebs.contains(&word(524)) {
                peb[2048..2052].copy_from_slice(b"hsqs");
            }
        }
        fs::write(room.path(name), bytes).expect("a file");
    };
    with_lebs("squash.mtd", &[0, 1]);
    let said = room.good(&["ubi", "check", "squash.mtd"]);
    assert_eq!(said, "clean: volume 0 \"rootfs\" holds no UBIFS: only UBI was checked\n");
    room.bad(&["ubi", "ls", "squash.mtd"], &["squash.mtd: volume 0 \"rootfs\" holds no UBIFS"]);
    with_lebs("damaged.mtd", &[0]);
    let output = room.output(&["ubi", "check", "damaged.mtd"]);
    assert_eq!(output.status.code(), Some(4), "{}", crate::common::text(&output.stdout));
}

/// Every file that is in the image is on disk with the same bytes, and nothing is outside of the new directory.
#[test]
fn a_tree_is_extracted() {
    let room = Room::with_dump("fx.mtd");
    let output = room.output(&["ubi", "extract", "fx.mtd", "--out", "tree"]);
    assert!(output.status.success(), "{}", crate::common::text(&output.stderr));
    let all = room.json(&["ubi", "find", "--json", "fx.mtd"]);
    let (mut files, mut others) = (0, 0);
    for entry in all.as_array().expect("an array") {
        let path = room.path("tree").join(entry["path"].as_str().unwrap_or("/hex").trim_start_matches('/'));
        match entry["type"].as_str().expect("a type") {
            "regular file" => {
                let size = fs::metadata(&path).map_or(u64::MAX, |data| data.len());
                assert_eq!(Some(size), entry["size"].as_u64(), "{entry}");
                files += 1;
            }
            "directory" => assert!(path.is_dir(), "{entry}"),
            "symbolic link" => assert!(path.is_symlink(), "{entry}"),
            _ => others += 1,
        }
    }
    assert!(files > 500 && others > 0, "{files} files, {others} others");
    let bytes = fs::read(room.path("tree/special/hardlink")).expect("a file");
    assert_eq!(String::from_utf8_lossy(&bytes), room.good(&["ubi", "cat", "fx.mtd", "special/hardlink"]));
    // Both names of a file are one file, and times are those of the image.
    let stat = |path: &str| fs::symlink_metadata(room.path("tree").join(path)).expect("it is there");
    let hard = room.json(&["ubi", "stat", "--json", "fx.mtd", "special/hardlink"]);
    let same = all.as_array().expect("an array").iter().filter(|entry| entry["ino"] == hard["ino"]);
    let same: Vec<&str> = same.map(|entry| entry["path"].as_str().expect("a path").trim_start_matches('/')).collect();
    assert_eq!((same.len(), stat(same[0]).ino(), stat(same[0]).nlink()), (2, stat(same[1]).ino(), 2));
    for path in ["special/hardlink", "special/short_link"] {
        let of_image = room.json(&["ubi", "stat", "--json", "fx.mtd", path])["mtime"].clone();
        assert_eq!(
            (of_image.as_str(), stat(path).mtime()),
            (Some("2026-11-21T00:54:02.000000000Z"), 1_795_222_442),
            "{path}"
        );
    }
    let of_image = room.json(&["ubi", "stat", "--json", "fx.mtd", "special"])["mtime"].clone();
    assert_eq!((of_image.as_str(), stat("special").mtime()), (Some("2026-11-21T00:54:02.000000000Z"), 1_795_222_442));
    let said = crate::common::text(&output.stderr);
    assert!(said.contains(&format!("{others} devices, pipes and sockets are left out")), "{said}");
    room.bad(&["ubi", "extract", "fx.mtd", "--out", "tree"], &["tree: cannot be made", "exists"]);
    room.bad(&["ubi", "extract", "fx.mtd", "special/hardlink", "--out", "t2"], &["is a regular file; ubi cat prints"]);
}

/// An image whose names and links would lead elsewhere. Its nodes have the right checksums.
#[test]
fn nothing_is_extracted_outside() {
    let room = Room::with_dump("fx.mtd");
    let mut bytes = fs::read(room.path("fx.mtd")).expect("a file");
    let outside = room.path("o");
    fs::create_dir(&outside).expect("a directory");
    // A link to a directory outside, and a file with the name "short_link/N…".
    let name = [&b"short_link/"[..], &[b'N'; 244]].concat();
    let (mut entries, mut links, mut at) = (0, 0, 0);
    while let Some(found) = bytes[at..].windows(4).position(|four| four == [0x31, 0x18, 0x10, 0x06]) {
        let node = at + found;
        at = node + 4;
        let length = u32::from_le_bytes(bytes[node + 16..node + 20].try_into().expect("four")) as usize;
        let Some(body) = bytes.get(node + 8..node + length).filter(|_| length >= 24) else { continue };
        if u32::from_le_bytes(bytes[node + 4..node + 8].try_into().expect("four")) != !crc32fast::hash(body) {
            continue;
        }
        let long = body.windows(255).position(|part| part == [b'N'; 255]).filter(|_| bytes[node + 20] == 2);
        let is_link = bytes[node + 20] == 0 && body.ends_with(b"text300k");
        if let Some(place) = long {
            bytes[node + 8 + place..node + 8 + place + 255].copy_from_slice(&name);
            entries += 1;
        } else if is_link {
            bytes[node + length - 8..node + length].copy_from_slice(b"../../o/");
            links += 1;
        } else {
            continue;
        }
        let sum = !crc32fast::hash(&bytes[node + 8..node + length]);
        bytes[node + 4..node + 8].copy_from_slice(&sum.to_le_bytes());
    }
    assert!(entries > 0 && links > 0, "{entries} entries, {links} links");
    fs::write(room.path("evil.mtd"), bytes).expect("a file");
    fs::create_dir(room.path("in")).expect("a directory");
    let output = room.output(&["ubi", "extract", "evil.mtd", "special", "--out", "in/tree"]);
    let said = crate::common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("special/short_link/NNN") && said.contains("not a name of a file"), "{said}");
    assert_eq!(fs::read_link(room.path("in/tree/short_link")).expect("a link").to_str(), Some("../../o/"));
    assert_eq!(fs::read_dir(&outside).expect("a directory").count(), 0, "{said}");
    assert!(room.path("in/tree/hardlink").is_file());
}

/// A file that cannot be created is named, and all others exist.
#[test]
fn what_cannot_be_made_takes_nothing_with_it() {
    let room = Room::with_dump("fx.mtd");
    let whole = room.output(&["ubi", "extract", "fx.mtd", "--out", "whole"]);
    assert_eq!(whole.status.code(), Some(0), "{}", crate::common::text(&whole.stderr));
    let mut limited = std::process::Command::new("bash");
    let command = room.command(&["ubi", "extract", "fx.mtd", "--out", "limited"]);
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$@\"", "-"])
        .arg(command.get_program())
        .args(command.get_args());
    let output = limited.current_dir(room.path(".")).output().expect("bash");
    let said = crate::common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("text300k: cannot be made whole: File too large"), "{said}");
    assert!(said.ends_with("could not be read or made\n"), "{said}");
    let names = |tree: &str| {
        walk(&room.path(tree))
            .into_iter()
            .map(|path| path.strip_prefix(room.path(tree)).expect("below").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("limited"), names("whole"));
}

/// All that is below a directory, by name.
fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a type").is_dir() {
            found.extend(walk(&entry.path()));
        }
        found.push(entry.path());
    }
    found.sort();
    found
}
