// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath reproduce ubi` on streams: other caches, sizes, and what our own reader makes of an image. What `ubi
//! stream` and `ubi replay` give for the same work is the measure.
//!
//! Where mkfs.ubifs and ubinize are not installed the tests that need them say so and pass.

use crate::common::{Room, texts};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

/// Values by case, variant and metric.
type Rows = BTreeMap<(String, String, String), f64>;

fn document(room: &Room, args: &[&str]) -> Value {
    room.document(&[args, &["--json"]].concat())
}

fn rows(doc: &Value) -> Rows {
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    let rows = doc["rows"].as_array().expect("rows").iter();
    rows.map(|r| {
        let key = (text(r, "case"), text(r, "variant"), text(r, "metric"));
        (key, r["simulated"].as_f64().expect("a value"))
    })
    .collect()
}

fn note<'a>(doc: &'a Value, part: &str) -> &'a str {
    let notes = texts(doc);
    notes.iter().copied().find(|n| n.contains(part)).unwrap_or_else(|| panic!("{part} in {notes:#?}"))
}

const CACHES: &str = "none,one-line,peb-hash,lru,lru+split,set-assoc+split,clock+split,2q+split,arc+split,\
                      learned+split,adaptive+split,opt+split";

/// That the rows of `work` by `reader` are those of a replay of the file `stream`.
fn check(room: &Room, doc: &Value, work: &str, reader: &str, stream: &str) {
    let found = rows(doc);
    let value = |beyond: &str, variant: &str, metric: &str| {
        let key = (format!("{work}{beyond}, {reader}"), variant.to_owned(), metric.to_owned());
        *found.get(&key).unwrap_or_else(|| panic!("{key:?}"))
    };
    let mut checked = 0;
    let replay = rows(&document(room, &["ubi", "replay", stream, "--cache", CACHES]));
    for ((_, variant, metric), known) in &replay {
        let metric = match metric.as_str() {
            "seconds" => "read_seconds",
            same @ ("hits" | "misses" | "no_query" | "page_reads") => same,
            _ => continue,
        };
        assert_eq!(value(" beyond the table", variant, metric), *known, "{work}: {variant}, {metric}");
        checked += 1;
    }
    let replay = rows(&document(room, &["ubi", "replay", stream, "--cache", "none,nand-page,one-line,peb-hash"]));
    let names = ["none", "nand-page", "one-line", "peb-hash, 61 lines"];
    let configurations = ["A: no cache", "B: NAND core, one page", "C1: UBI, one line", "C61: UBI, 61 lines"];
    for ((_, variant, metric), known) in &replay {
        let i = names.iter().position(|n| n == variant).expect("one of four");
        let metric = match metric.as_str() {
            "seconds" => "read_seconds",
            "other_seconds" => "header_seconds",
            same @ ("hits" | "misses" | "no_query") if i > 0 => same,
            _ => continue,
        };
        assert_eq!(value("", configurations[i], metric), *known, "{work}: {variant}, {metric}");
        checked += 1;
    }
    let (lines, sized) = ("1,2,4,8,16,32,64,128,256", "none,peb-hash,lru+split,adaptive+split,opt+split");
    let replay = document(room, &["ubi", "replay", stream, "--cache", sized, "--lines", lines]);
    for ((_, variant, metric), known) in &rows(&replay) {
        let metric = match metric.as_str() {
            "seconds" => "read_seconds",
            "hit_ratio" => "hit_ratio",
            _ => continue,
        };
        assert_eq!(value(" by lines", variant, metric), *known, "{work}: {variant}, {metric}");
        checked += 1;
    }
    // Caches, configurations, and sizes with what takes no lines.
    let least = [12 * 5, 4 + 3 * 3, 4 * 9 * 2 + 1].iter().sum();
    assert!(checked >= least, "{checked} values");
    // The figures show the same points.
    let chart = |doc: &Value, title: &str| -> BTreeMap<String, Value> {
        let charts = doc["charts"].as_array().expect("charts");
        let chart = charts.iter().find(|c| c["title"] == title).unwrap_or_else(|| panic!("{title}"));
        let series = chart["series"].as_array().expect("series").iter();
        series.map(|s| (s["name"].as_str().expect("a name").to_owned(), s["points"].clone())).collect()
    };
    for what in ["Hits", "Time"] {
        let known = chart(&replay, &format!("{what} by size, {stream}"));
        assert_eq!(chart(doc, &format!("{what} by size, {work}, {reader}")), known, "{what} of {work}");
    }
}

#[test]
fn recorded_streams_go_through_all_caches_and_sizes() {
    let room = Room::new();
    fs::create_dir(room.path("t")).expect("a folder");
    // A walk with some locality: entries of 80 bytes in 40 blocks, most behind the one before, and an index between
    // them.
    let mut stream = "# op,peb,offset,len,lnum,what\nR,0,0,64,,ec\n".to_owned();
    for i in 0..3000u32 {
        let (block, at) = (i / 7 * 31 % 40, 32_768 + i / 280 * 16_384 + i % 7 * 2480);
        stream.push_str(&format!("r,{},{at},80,0,dent\n", 2 + block));
        if i % 5 == 0 {
            stream.push_str(&format!("r,1,{},188,0,idx\n", 32_768 + i / 5 * 7919 % 400_000));
        }
    }
    room.write("t/x_find.csv", &stream);
    let doc = document(&room, &["reproduce", "ubi", "--traces", "t"]);
    room.write("x_find.csv", &stream);
    check(&room, &doc, "find", "recorded: x_find.csv", "x_find.csv");
    let found = rows(&doc);
    let real = |case: &str, variant: &str| found[&(case.to_owned(), variant.to_owned(), "real_seconds".to_owned())];
    let beyond = "find beyond the table, recorded: x_find.csv";
    // A cache takes the same time in both tables, apart from the user time that was measured with each.
    let difference = real(beyond, "one-line") - real("find, recorded: x_find.csv", "C1: UBI, one line");
    assert!((difference - 0.02).abs() < 1e-9, "{difference}");
    assert!(real(beyond, "opt+split, 61 lines") < real(beyond, "lru+split, 61 lines"));
    assert!(note(&doc, "find, on x_find.csv, the fastest first").contains("in the thread 18.7 and 33.3 %"));
    // The printed table has both, and says where the rest is.
    let text = room.good(&["reproduce", "ubi", "--traces", "t"]);
    assert!(text.contains("The same streams through other caches:") && text.contains("arc+split, 61 lines"), "{text}");
    let hint = "\nLeft out: what our reader of UBIFS makes of an image: attach and mount, find, find -ls, reading all \
                files, boot-like reading, rm. 'readpath reproduce ubi --image FILE' adds them, with more caches.\n";
    assert!(text.ends_with(hint) && !text.contains("Left out: recorded streams"), "{text}");
    assert!(!text.contains("find by lines") && room.read("out/ubi/report.html").contains("find by lines"), "{text}");
}

/// Compares the streams of an image with those of the commands for single steps. The device has `pebs` blocks.
fn check_image(room: &Room, doc: &Value, image: &str, [volume, pebs]: [&str; 2], top: &str, largest: &str) {
    let reader = format!("own reader: {image}");
    for (work, command, path) in [
        ("attach and mount", "mount", "/"),
        ("find", "find", top),
        ("find -ls", "find-ls", top),
        ("reading all files", "cat", top),
        ("rm", "rm", largest),
    ] {
        let mut args =
            vec!["ubi", "stream", image, command, path, "--volume", volume, "--pebs", pebs, "--output", "s.csv"];
        if command == "mount" {
            args.push("--with-mount");
        }
        room.good(&args);
        check(room, doc, work, &reader, "s.csv");
    }
}

#[test]
fn an_image_with_other_pages_is_replayed_with_its_own() {
    let room = Room::with_dump("fx.mtd");
    let doc = document(&room, &["reproduce", "ubi", "--image", "fx.mtd"]);
    check_image(&room, &doc, "fx.mtd", ["rootfs", "27"], "/", "/special/random200k");
    // The first figure is that of the verdict: all works, of which some read nothing that a cache could save.
    let ids: Vec<&str> = doc["charts"].as_array().expect("charts").iter().filter_map(|c| c["id"].as_str()).collect();
    assert_eq!(ids[..3], ["seconds_by_lines", "hits_by_lines", "seconds_by_lines_1"]);
    let seconds = |chart: usize| -> f64 {
        let series = doc["charts"][chart]["series"].as_array().expect("series");
        let lru = series.iter().find(|one| one["name"] == "lru+split").expect("a cache");
        lru["points"][8]["y"].as_f64().expect("seconds")
    };
    let of_works: f64 = (2..ids.len()).filter(|&i| ids[i].starts_with("seconds_by_lines_")).map(seconds).sum();
    assert!((seconds(0) - of_works).abs() < 1e-9 && of_works > 0.0);
    let said = doc["verdict"][0]["text"].as_str().expect("a verdict");
    assert!(said.contains(&format!("({:.3} s instead of", seconds(0))), "{said}");
    let none =
        "; no boot-like reading, as there is no file below /etc, /lib/systemd or /usr/lib/systemd; --boot-list FILE";
    assert!(note(&doc, "fx.mtd: volume \"rootfs\"").contains(none));
    assert_eq!(doc, document(&room, &["reproduce", "ubi", "--image", "fx.mtd"]), "the same again");
    note(&doc, "Streams with pages of 2048 bytes do not stand beside published values, which are for 16384.");
    assert!(note(&doc, "fx.mtd: volume \"rootfs\", pages of 2048 bytes; ").contains("; find /: 822 reads ("));
    let of_image = |r: &&Value| r["case"].as_str().is_some_and(|case| case.contains("fx.mtd"));
    let mut of_image = doc["rows"].as_array().expect("rows").iter().filter(of_image);
    assert!(of_image.all(|r| r["published"].is_null() && r["metric"] != "real_seconds"));
    assert_eq!((&doc["inputs"][0]["file"], doc["inputs"].as_array().map(Vec::len)), (&"fx.mtd".into(), Some(1)));
}

#[test]
fn an_image_of_a_larger_device_and_a_list_of_what_a_boot_reads() {
    let room = Room::with_dump("fx.mtd");
    room.write("list", "special/text300k\n/special/hardlink\nf009_uxiqrh.txt\n");
    let args = ["reproduce", "ubi", "--image", "fx.mtd", "--pebs", "512", "--boot-list", "list"];
    let doc = document(&room, &args);
    check_image(&room, &doc, "fx.mtd", ["rootfs", "512"], "/", "/special/random200k");
    room.good(&["ubi", "stream", "fx.mtd", "read", "list", "--output", "s.csv"]);
    check(&room, &doc, "boot-like reading", "own reader: fx.mtd", "s.csv");
    let told =
        note(&doc, "fx.mtd: volume \"rootfs\", pages of 2048 bytes, a device of 512 erase blocks; attach and mount");
    assert!(told.contains("; boot-like reading of a list: ") && told.contains(" reads of 3 files"), "{told}");
    let inputs: Vec<&Value> = doc["inputs"].as_array().expect("inputs").iter().map(|input| &input["file"]).collect();
    assert_eq!(inputs, ["fx.mtd", "list"]);
    room.write("list", "special\n");
    let says = "--boot-list: list: special: it is a directory; only regular files can be read";
    room.bad(&args, &[says]);
    room.write("list", "\n");
    room.bad(&args, &["--boot-list: list: has no path; one on each line is expected"]);
    room.bad(&["reproduce", "ubi", "--boot-list", "list"], &["  --image <FILE>\n"]);
    room.bad(&["reproduce", "ubi", "--pebs", "512"], &["  --image <FILE>\n"]);
}

fn has_tools() -> bool {
    let found = ["mkfs.ubifs", "ubinize"].iter().all(|tool| Command::new(tool).arg("--version").output().is_ok());
    if !found {
        println!("SKIPPED: mkfs.ubifs and ubinize are not installed");
    }
    found
}

/// An image `name` with pages of 16 KiB, with a volume of each of `trees`, which are folders of the room.
fn make_image(room: &Room, name: &str, trees: &[&str]) {
    let run = |tool: &str, args: &[&str]| {
        let out = Command::new(tool).args(args).current_dir(room.path("")).output().expect("the tool runs");
        assert!(out.status.success(), "{tool} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    };
    let mut config = String::new();
    for (id, tree) in trees.iter().enumerate() {
        let volume = format!("{tree}.ubifs");
        run("mkfs.ubifs", &["-r", tree, "-m", "16384", "-e", "2064384", "-c", "60", "-x", "lzo", "-o", &volume]);
        config.push_str(&format!(
            "[v{id}]\nmode=ubi\nimage={volume}\nvol_id={id}\nvol_type=dynamic\nvol_name={tree}\nvol_size=60MiB\n"
        ));
    }
    config.push_str("[k]\nmode=ubi\nimage=kernel\nvol_id=7\nvol_type=static\nvol_name=kernel\nvol_size=2MiB\n");
    room.write("kernel", "no file system");
    room.write("ubi.ini", &config);
    run("ubinize", &["-p", "2MiB", "-m", "16384", "-s", "16384", "-o", name, "-Q", "7", "ubi.ini"]);
}

#[test]
fn an_image_made_now_stands_beside_published_values_where_it_is_as_large() {
    if !has_tools() {
        return;
    }
    let room = Room::new();
    // Enough names below /usr to make the find as long as the published one.
    for dir in 0..60 {
        let path = room.path(&format!("tree/usr/d{dir:02}"));
        fs::create_dir_all(&path).expect("a directory");
        for file in 0..280 {
            fs::write(path.join(format!("f{file:03}")), "").expect("a file");
        }
    }
    fs::create_dir(room.path("empty")).expect("a directory");
    let largest: Vec<u8> = (0..2_000_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    fs::write(room.path("tree/one"), &largest).expect("a file");
    fs::write(room.path("tree/two"), &largest).expect("a file");
    // Larger files, but nearly all holes or easily compressed: they take less flash.
    let sparse = fs::File::create(room.path("tree/a_hole")).expect("a file");
    sparse.set_len(100_000_000).expect("a hole");
    fs::write(room.path("tree/a_zip"), b"the same again. ".repeat(600_000)).expect("a file");
    // The data of a file with two names would stay.
    fs::write(room.path("tree/linked"), [&largest[..], b"longer"].concat()).expect("a file");
    fs::hard_link(room.path("tree/linked"), room.path("tree/again")).expect("a link");
    // What a boot reads: a link to a file counts, and a folder with two names is gone through once.
    for dir in ["tree/usr/lib/systemd/system", "tree/etc/init.d"] {
        fs::create_dir_all(room.path(dir)).expect("a directory");
    }
    symlink("usr/lib", room.path("tree/lib")).expect("a link");
    symlink("../usr/lib/systemd/system/a.service", room.path("tree/etc/default.service")).expect("a link");
    symlink("/nowhere", room.path("tree/etc/broken")).expect("a link");
    for file in ["usr/lib/systemd/system/a.service", "usr/lib/systemd/systemd", "etc/passwd", "etc/init.d/rc"] {
        fs::write(room.path("tree").join(file), file.repeat(500)).expect("a file");
    }
    make_image(&room, "image", &["tree"]);
    let doc = document(&room, &["reproduce", "ubi", "--image", "image"]);
    let bytes = fs::metadata(room.path("image")).expect("a file").len();
    check_image(&room, &doc, "image", ["tree", &(bytes >> 21).to_string()], "/usr", "/one");
    let files =
        "/etc/default.service\n/etc/init.d/rc\n/etc/passwd\n/lib/systemd/system/a.service\n/lib/systemd/systemd\n";
    room.write("boot", files);
    room.good(&["ubi", "stream", "image", "read", "boot", "--volume", "tree", "--output", "s.csv"]);
    check(&room, &doc, "boot-like reading", "own reader: image", "s.csv");
    let found = rows(&doc);
    // The same attach, by the same costs.
    let attach = document(&room, &["ubi", "attach", "image"]);
    let takes = &attach["attach"];
    for (variant, key) in [("A: no cache", "seconds"), ("B: NAND core, one page", "seconds_without_subpage_reads")] {
        let key_of =
            ("attach and mount, own reader: image".to_owned(), variant.to_owned(), "header_seconds".to_owned());
        assert_eq!(takes[key].as_f64(), Some(found[&key_of]), "{takes}");
    }
    let attach = "attach and mount, own reader: image".to_owned();
    let headers = |variant: &str| found[&(attach.clone(), variant.to_owned(), "header_seconds".to_owned())];
    // Both headers of a block have a page of their own; the volume table is read in whole pages in any case.
    assert!(headers("B: NAND core, one page") > 1.2 * headers("A: no cache"), "whole pages take longer");
    let told = note(&doc, "image: volume \"tree\", pages of 16384 bytes; ");
    assert!(
        told.contains("; boot-like reading below the folders of a Debian: ") && told.contains(" of 5 files"),
        "{told}"
    );
    assert!(
        told.contains("; rm /one: ") && told.contains("; the file that rm takes has 8000000 bytes, its data nodes "),
        "{told}"
    );
    let published = |case: &str| {
        let rows = doc["rows"].as_array().expect("rows").iter();
        rows.filter(|r| r["case"] == case && r["metric"] == "real_seconds" && !r["published"].is_null()).count()
    };
    assert_eq!((published("find, own reader: image"), published("rm, own reader: image")), (4, 0));
    note(
        &doc,
        "find, on image, the fastest first. Published: no cache, 61 lines in UBI, one line in UBI, one page in the \
         NAND core. Model: ",
    );
    // The result of the image comes first, then the published table.
    assert_eq!(doc["title"], "Read caches of UBI on image");
    assert_eq!(doc["rows"][0]["case"], "attach and mount, own reader: image");
    assert!(
        doc["notes"]
            .to_string()
            .contains("Reads of streams with pages of 16384 bytes cost: mlc-16k. --cost names others.")
    );

    make_image(&room, "none", &["empty"]);
    make_image(&room, "both", &["tree", "empty"]);
    for (image, says) in [
        ("none", "none: the volume has no regular file, so there is nothing to read or remove"),
        (
            "both",
            "both: several volumes hold UBIFS: 0 \"tree\", 1 \"empty\"; --volume says which. These are options of",
        ),
    ] {
        room.bad(&["reproduce", "ubi", "--image", image, "--out", "o"], &[says]);
    }
}

#[test]
fn what_is_no_image_is_told() {
    let room = Room::with_dump("fx.mtd");
    let bytes = fs::read(room.path("fx.mtd")).expect("a file");
    fs::write(room.path("short"), &bytes[..131_072]).expect("a file");
    fs::write(room.path("packed.gz"), [0x1F, 0x8B, 8, 0, 0, 0, 0, 0]).expect("a file");
    room.write("text", "not an image");
    fs::create_dir(room.path("folder")).expect("a folder");
    for (image, says) in [
        ("text", "text: no UBI: no EC header"),
        ("packed.gz", "packed.gz: cannot be read: its packed content is damaged: "),
        ("short", "short: a single EC header does not show the PEB size"),
        ("folder", "folder: is a folder, not an image"),
        ("gone", "gone: cannot be read"),
    ] {
        room.bad(&["reproduce", "ubi", "--image", image, "--out", "o"], &[says]);
    }
    room.bad(&["reproduce", "ubi", "--image", "fx.mtd", "--image", "fx.mtd"], &["fx.mtd: is given twice"]);
    // A document must not overwrite its inputs.
    fs::create_dir(room.path("o")).expect("a folder");
    fs::rename(room.path("fx.mtd"), room.path("o/result.json")).expect("a file");
    let args = ["reproduce", "ubi", "--image", "o/result.json", "--out", "o"];
    room.bad(&args, &["o/result.json: this is the input; write to another file"]);
}
