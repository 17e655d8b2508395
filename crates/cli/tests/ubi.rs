// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi replay` and `readpath reproduce ubi`: a small stream whose outcome is known, and every kind of mistake.

mod common;

use common::Room;
use serde_json::Value;

/// Two pages of erase block 1 and one of 62, which share a line of 61; one read crosses pages; a write drops a page.
const STREAM: &str = "\
# op,peb,offset,len,lnum,what
R,1,0,64,,ubiattach
r,1,32768,188,0,idx
r,1,32956,188,0,idx
r,62,32768,188,0,idx
r,1,32768,188,0,idx
r,1,49100,188,0,idx
w,1,32768,16384,,ubi
r,1,33000,60,0,dent
r,1,33060,60,0,dent
";

fn document(room: &Room, args: &[&str]) -> Value {
    let mut all = vec!["ubi", "replay", "--json"];
    all.extend(args);
    let mut doc: Value = serde_json::from_str(&room.good(&all)).expect("a document");
    doc.as_object_mut().expect("an object").remove("process");
    doc
}

fn value(doc: &Value, variant: &str, metric: &str) -> f64 {
    let rows = doc["rows"].as_array().expect("rows");
    let row = rows.iter().find(|r| r["variant"] == variant && r["metric"] == metric);
    row.and_then(|r| r["simulated"].as_f64()).unwrap_or_else(|| panic!("{variant}: no {metric} in {rows:#?}"))
}

#[test]
fn every_variant_counts_and_is_priced() {
    let room = Room::new();
    room.write("s.csv", STREAM);
    let caches = "none,nand-page,one-line,peb-hash,lru,lru+split,opt,learned,adaptive";
    let doc = document(&room, &["s.csv", "--page-size", "16K", "--peb-size", "2M", "--cache", caches]);
    let counts = |variant: &str| ["hits", "misses", "no_query", "page_reads"].map(|m| value(&doc, variant, m) as u32);
    assert_eq!(counts("none"), [0, 0, 7, 8]);
    // The header's page makes way at once; the crossing read finds its first page and keeps its second.
    assert_eq!(counts("nand-page"), [2, 4, 1, 5]);
    assert_eq!(counts("one-line"), [2, 4, 1, 6]);
    assert_eq!(counts("peb-hash, 61 lines"), [2, 4, 1, 6]);
    assert_eq!(counts("lru, 61 lines"), [3, 3, 1, 5]);
    assert_eq!(counts("lru+split, 61 lines"), [3, 4, 0, 4]);
    assert_eq!(counts("opt, 61 lines"), [3, 3, 1, 5]);
    assert_eq!(counts("learned, 61 lines"), [3, 3, 1, 5]);
    let us = |variant: &str| (value(&doc, variant, "seconds") * 1e6).round();
    // Part reads of one step at 0.84 ms; page reads at 1.3 ms; hits in the NAND core at 20 us.
    assert_eq!(us("none"), 8.0 * 840.0);
    assert_eq!(us("lru, 61 lines"), 3.0 * 1300.0 + 2.0 * 840.0);
    assert_eq!(us("nand-page"), 5.0 * 1300.0 + 2.0 * 20.0);
    assert_eq!(value(&doc, "lru, 61 lines", "dropped_by_write"), 1.0);
    assert_eq!(value(&doc, "none", "other_page_reads"), 1.0);
}

#[test]
fn compressed_streams_sizes_and_pressure() {
    let room = Room::new();
    room.write("s.csv", STREAM);
    room.write("p.txt", "# read,bytes\n0,0\n");
    let doc = document(&room, &["s.csv", "--cache", "none,lru", "--lines", "1,2", "--pressure", "p.txt"]);
    for lines in ["lru, 1 line", "lru, 2 lines"] {
        assert_eq!((value(&doc, lines, "hits"), value(&doc, lines, "lines_memory")), (0.0, 0.0));
        assert_eq!(value(&doc, lines, "seconds"), value(&doc, "none", "seconds"));
    }
    assert!(!doc["notes"].to_string().contains("did not come"));
    let ids: Vec<&str> = doc["charts"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["seconds_1", "hits_by_lines_1", "seconds_by_lines_1"]);
    let same = document(&room, &["s.csv", "--cache", "none,lru", "--lines", "1,2", "--pressure", "p.txt"]);
    assert_eq!(doc, same);
    // The reads are counted from 0, so that the last one is the last before which anything can change.
    let reads = STREAM.lines().filter(|line| line.starts_with("r,")).count();
    room.write("late.txt", &format!("0,0\n{},9000000\n{reads},0\n", reads - 1));
    let late = document(&room, &["s.csv", "--cache", "lru", "--pressure", "late.txt"]);
    let says = format!("s.csv: change 3 of memory did not come: the stream has {reads} reads");
    assert!(late["notes"].to_string().contains(&says), "{}", late["notes"]);
    let text = room.good(&["ubi", "replay", "s.csv", "--out", "o"]);
    assert!(text.contains("Results: o/result.json and o/report.html"), "{text}");
    assert!(room.read("o/report.html").contains("Time of reads, s.csv"));
}

#[test]
fn mistakes_name_file_line_and_field() {
    let room = Room::new();
    room.write("s.csv", STREAM);
    room.write("bad.csv", "r,1,0,4,0,a\nr,1,x,4,0,a\n");
    room.write("none.csv", "e,1,0,0,,\n");
    room.write("p.txt", "5,1\n5,1\n");
    room.write("c.toml", "schema = \"readpath-ubi-cost/1\"\nname = 3\n");
    for (args, says) in [
        (&["bad.csv"][..], "bad.csv:2: offset: expected a whole number from 0 to 4294967295, found \"x\""),
        (
            &["s.csv", "--peb-size", "32K"],
            "s.csv:3: len: 188 bytes from offset 32768 end at 32956, beyond the erase block",
        ),
        (&["s.csv", "--page-size", "5000"], "--page-size: a page of 5000 bytes: expected a power of two"),
        (
            &["s.csv", "--peb-size", "20000"],
            "--peb-size: an erase block of 20000 bytes: expected a multiple of the page",
        ),
        (&["none.csv"], "none.csv: no line is a read through ubi_eba_read_leb (r)"),
        (&["gone.csv"], "gone.csv: cannot be read"),
        (&["s.csv", "--cache", "lrv"], "--cache lrv: \"lrv\" is no cache; there are none, nand-page"),
        (&["s.csv", "--cache", "lru,lru"], "--cache lru with 61 lines: is asked for twice"),
        (&["s.csv", "--lines", "0"], "0 lines: expected 1 to 1048576"),
        (&["s.csv", "--pressure", "p.txt"], "p.txt:2: read: expected a read after 5, found 5"),
        (&["s.csv", "--cost", "slc"], "--cost: there is no preset 'slc' (built in: mlc-16k"),
        (&["s.csv", "--cost", "c.toml"], "c.toml:2:8: invalid type: integer `3`, expected a string"),
    ] {
        let mut all = vec!["ubi", "replay", "--out", "o"];
        all.extend(args);
        room.bad(&all, &[says]);
    }
    let doc = document(&room, &["bad.csv", "--lenient"]);
    assert!(doc["notes"][1].as_str().unwrap().contains("1 lines were SKIPPED; the first is line 2: offset: expected"));
}

#[test]
fn the_published_table_stands_beside_the_model() {
    let room = Room::new();
    let text = room.good(&["reproduce", "ubi"]);
    assert!(text.contains("Why find became slower with a cache"), "{text}");
    assert!(text.contains("Without streams: the model ran on the counts that the thread published"), "{text}");
    let hint = "\nLeft out: recorded streams of attach, boot, find and rm. 'readpath reproduce ubi --traces DIR' adds them, with \
                more caches.\nLeft out: what our reader of UBIFS makes of an image: attach and mount, find, find -ls, reading \
                all files, boot-like reading, rm. 'readpath reproduce ubi --image FILE' adds them, with more caches.\n";
    assert!(text.ends_with(hint), "{text}");
    assert!(room.read("out/ubi/report.html").contains("When a cache of pages pays"));
    std::fs::create_dir(room.path("t")).expect("a folder");
    room.write("t/x_find.csv", STREAM);
    room.write("t/x_attach.csv", "R,1,0,64,,ubiattach\n");
    let doc: Value = serde_json::from_str(&room.good(&["reproduce", "ubi", "--traces", "t", "--json"])).unwrap();
    let rows = doc["rows"].as_array().unwrap();
    let misses = rows.iter().find(|r| r["case"] == "find, recorded: x_find.csv" && r["metric"] == "misses").unwrap();
    assert_eq!((&misses["variant"], misses["simulated"].as_f64()), (&Value::from("B: NAND core, one page"), Some(4.0)));
    assert!(rows.iter().any(|r| r["case"] == "attach, recorded: x_attach.csv" && r["metric"] == "header_seconds"));
    for (args, says) in [
        (&["reproduce", "ubi", "--traces", "out"][..], "--traces: out has no recorded stream"),
        (&["reproduce", "ubi", "--set", "a=1"], "--set is for experiments on a UFS device"),
        (&["reproduce", "iozone", "--traces", "t"], "--traces goes with reproduce policies and ubi"),
        (&["reproduce", "iozone", "--image", "i"], "--image goes with reproduce ubi; iozone reads no image of NAND"),
        (
            &["reproduce", "policies", "--image", "i"],
            "--image goes with reproduce ubi; policies reads no image of NAND",
        ),
        (&["reproduce", "all", "--image", "i"], "--image belongs to one experiment; 'all' are several"),
    ] {
        room.bad(args, &[says]);
    }
}
