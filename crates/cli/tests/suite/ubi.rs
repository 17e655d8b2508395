// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi replay` and `readpath reproduce ubi`: a small stream whose outcome is known, and every kind of
//! mistake.

use crate::common::{Room, figure, row, texts, value};
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
    room.document(&[&["ubi", "replay", "--json"], args].concat())
}

#[test]
fn rows_as_csv() {
    let room = Room::with("s.csv", STREAM);
    let args = ["ubi", "replay", "s.csv", "--cache", "none,lru", "--page-size", "16K"];
    room.good(&[&args[..], &["--csv", "rows.csv"]].concat());
    let rows = room.read("rows.csv");
    assert_eq!(rows.lines().count() - 1, document(&room, &args[2..])["rows"].as_array().map_or(0, Vec::len));
    let printed = room.output(&[&args[..], &["--csv", "-"]].concat());
    assert_eq!(crate::common::text(&printed.stdout), rows);
    room.bad(&[&args[..], &["--csv", "-", "--json"]].concat(), &["--csv - and --json both print"]);
    room.bad(&[&args[..], &["--csv", "s.csv"]].concat(), &["s.csv: this is the input"]);
    room.bad(&[&args[..], &["--csv", "none/x.csv"]].concat(), &["none/x.csv: cannot be written"]);
}

#[test]
fn every_variant_counts_and_is_priced() {
    let room = Room::with("s.csv", STREAM);
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
    let room = Room::with("s.csv", STREAM);
    room.write("p.txt", "# read,bytes\n0,0\n");
    let doc = document(&room, &["s.csv", "--cache", "none,lru", "--lines", "1,2", "--pressure", "p.txt"]);
    for lines in ["lru, 1 line", "lru, 2 lines"] {
        assert_eq!((value(&doc, lines, "hits"), value(&doc, lines, "lines_memory")), (0.0, 0.0));
        assert_eq!(value(&doc, lines, "seconds"), value(&doc, "none", "seconds"));
    }
    assert!(!doc["notes"].to_string().contains("did not come"));
    let ids: Vec<&str> = doc["charts"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["seconds_by_lines_1", "hits_by_lines_1"]);
    let same = document(&room, &["s.csv", "--cache", "none,lru", "--lines", "1,2", "--pressure", "p.txt"]);
    assert_eq!(doc, same);
    // The charts of several streams begin with all of them together.
    room.write("b.csv", &STREAM.replace("188,0,idx", "100,0,idx"));
    for (how, first) in [("1,2", "seconds_by_lines"), ("2", "seconds")] {
        let both = document(&room, &["s.csv", "b.csv", "--cache", "none,lru", "--lines", how]);
        let charts = both["charts"].as_array().expect("charts");
        assert_eq!(
            (&charts[0]["id"], &charts[0]["title"].to_string().contains("2 streams together")),
            (&first.into(), &true)
        );
        let y = |id: &str, series: usize| {
            let chart = charts.iter().find(|chart| chart["id"] == id).expect("a chart");
            chart["series"][series]["points"][0]["y"].as_f64().expect("seconds")
        };
        for series in 0..if how == "2" { 1 } else { 2 } {
            let sum = y(&format!("{first}_1"), series) + y(&format!("{first}_2"), series);
            assert!((y(first, series) - sum).abs() < 1e-12 && sum > 0.0, "{how}, {series}");
        }
    }
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
    let room = Room::with("s.csv", STREAM);
    room.write("bad.csv", "r,1,0,4,0,a\nr,1,x,4,0,a\n");
    room.write("none.csv", "e,1,0,0,,\n");
    room.write("p.txt", "5,1\n5,1\n");
    // 2,000 pages in parts, then whole, again and again.
    let read =
        |i: u32| format!("r,{},{},{},0,a\n", i % 2000 / 64, i % 64 * 16384, [64, 16384][(i / 2000 % 2) as usize]);
    room.write("many.csv", &(0..1_080_000).map(read).collect::<String>());
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
        (&["none.csv"], "none.csv: no line is a read (r or R), so there is nothing to replay"),
        (&["gone.csv"], "gone.csv: cannot be read"),
        (&["s.csv", "--cache", "lrv"], "--cache lrv: \"lrv\" is not a cache; there are none, nand-page"),
        (&["s.csv", "--cache", "lru,lru"], "--cache lru with 61 lines: is asked for twice"),
        (
            &["many.csv", "--cache", "opt+split", "--lines", "1999"],
            "many.csv: opt+split, 1999 lines: the optimum is planned for ",
        ),
        (&["s.csv", "--lines", "0"], "--lines 0: expected 1 to 1048576"),
        (&["s.csv", "--pressure", "p.txt"], "p.txt:2: read: expected a read after 5, found 5"),
        (&["s.csv", "--cost", "slc"], "--cost: there is no preset 'slc' (built in: slc-512, slc-2k, "),
        (&["s.csv", "--cost", "c.toml"], "c.toml:2:8: invalid type: integer `3`, expected a string"),
    ] {
        room.bad(&[&["ubi", "replay", "--out", "o"], args].concat(), &[says]);
    }
    let doc = document(&room, &["bad.csv", "--lenient"]);
    note(&doc, "1 lines were SKIPPED; the first is line 2: offset: expected");
}

/// The one note that has this part.
fn note<'a>(doc: &'a Value, part: &str) -> &'a str {
    let notes = texts(doc);
    let mut with = notes.iter().filter(|n| n.contains(part));
    let found = with.next().unwrap_or_else(|| panic!("{part} in {notes:#?}"));
    assert!(with.next().is_none(), "{part} once in {notes:#?}");
    found
}

#[test]
fn who_says_how_large_pages_are_is_told_and_what_speaks_against_it() {
    let room = Room::with("s.csv", STREAM);
    // An attach of a device with pages of 8 KiB: headers, then a copy of the volume table; and a walk there.
    let attach = "R,0,0,64,,ubiattach\nR,0,8192,64,,ubiattach\nR,0,16384,24576,,ubiattach\n";
    room.write("attach.csv", attach);
    room.write("find.csv", "# find\nr,5,40000,188,2,idx\nr,5,16576,60,2,dent\n");
    room.write("said.csv", &format!("# page_bytes=8192\n{attach}"));
    let from = |doc: &Value| doc["configuration"]["streams"]["page_bytes_from"].as_str().unwrap().to_owned();
    let assumed = "pages were ASSUMED to have 16384 bytes; neither the stream nor --page-size says it";
    let doc = document(&room, &["s.csv", "attach.csv", "find.csv"]);
    assert_eq!(note(&doc, "ASSUMED"), format!("s.csv, attach.csv, find.csv: {assumed}"));
    assert_eq!(from(&doc), "assumed");
    assert_eq!(
        [note(&doc, "does NOT FIT"), note(&doc, "MAY NOT FIT")],
        [
            "attach.csv: line 3 does NOT FIT pages of 16384 bytes: it reads 24576 bytes at byte 16384, which are whole \
             pages; --page-size 8192 fits",
            "find.csv: line 3 MAY NOT FIT pages of 16384 bytes: it reads data at byte 16576 of an erase block, where \
             headers are unless the chip has sub-pages; --page-size 8192 would fit",
        ]
    );
    let text = room.good(&["ubi", "replay", "attach.csv"]);
    assert!(text.contains(&format!("\nNote: attach.csv: {assumed}\nNote: attach.csv: line 3 does NOT FIT")), "{text}");
    // A given size may be one with sub-pages, but no chip reads half pages of a table.
    let doc = document(&room, &["attach.csv", "find.csv", "--page-size", "16K"]);
    assert_eq!(from(&doc), "--page-size");
    note(&doc, "does NOT FIT");
    assert!(!doc["notes"].to_string().contains("ASSUMED") && !doc["notes"].to_string().contains("MAY NOT"));
    for (args, says) in
        [(&["attach.csv", "find.csv", "--page-size", "8K"][..], "--page-size"), (&["said.csv"], "streams")]
    {
        let doc = document(&room, args);
        assert_eq!(from(&doc), says);
        let notes = doc["notes"].to_string();
        assert!(!notes.contains("ASSUMED") && !notes.contains("NOT FIT"), "{notes}");
    }
}

/// Costs are those of the pages, not always those of the one NAND that was measured.
#[test]
fn the_kind_of_nand_follows_from_the_pages() {
    let room = Room::with("s.csv", &format!("# page_bytes=2048\n{STREAM}"));
    let settings = |doc: &Value| {
        let of = &doc["configuration"]["streams"];
        (
            of["cost"].as_str().unwrap().to_owned(),
            of["cost_from"].as_str().unwrap().to_owned(),
            of["cost_scaled"] == true,
        )
    };
    let own = document(&room, &["s.csv", "--cache", "none"]);
    assert_eq!(settings(&own), ("slc-2k".into(), "page size".into(), false));
    note(&own, "Reads cost: slc-2k, waiting only: the CPU time was not measured. They were chosen by the page size;");
    let scaled = document(&room, &["s.csv", "--cache", "none", "--cost", "mlc-16k"]);
    assert_eq!(settings(&scaled), ("mlc-16k".into(), "--cost".into(), true));
    note(&scaled, "mlc-16k, SCALED from pages of 16384 bytes to 2048 by the number of ECC steps, not measured");
    assert!(value(&own, "none", "seconds") < value(&scaled, "none", "seconds") / 5.0);
    // The published table keeps its own costs; streams take the given ones.
    std::fs::create_dir(room.path("t")).expect("a folder");
    room.write("t/x_find.csv", STREAM);
    let reproduced = |cost| room.json(&[&["reproduce", "ubi", "--traces", "t", "--json"][..], cost].concat());
    let (plain, given) = (reproduced(&[]), reproduced(&["--cost", "mlc-8k"]));
    let seconds = |doc, case| figure(doc, &[("case", case), ("metric", "real_seconds")]).expect("it");
    assert_eq!(seconds(&plain, "find"), seconds(&given, "find"));
    assert_ne!(seconds(&plain, "find, recorded: x_find.csv"), seconds(&given, "find, recorded: x_find.csv"));
    assert_eq!(given["configuration"]["streams"][0]["cost"], "mlc-8k");
}

#[test]
fn an_attach_is_counted_as_what_it_is_and_what_has_no_reads_is_left_out() {
    let room = Room::with("s.csv", STREAM);
    room.write("attach.csv", "R,0,0,64,,ubiattach\nR,0,16384,64,,ubiattach\nR,0,32768,32768,,ubiattach\n");
    room.write("none.csv", "e,1,0,0,,\n");
    let caches = ["--cache", "none,nand-page,lru", "--page-size", "16K"];
    let alone = document(&room, &[&["s.csv"][..], &caches].concat());
    let both = document(&room, &[&["s.csv", "attach.csv"][..], &caches].concat());
    let of = |doc: &Value, case: &str| -> Vec<Value> {
        doc["rows"].as_array().unwrap().iter().filter(|r| r["case"] == case).cloned().collect()
    };
    assert_eq!(of(&alone, "s.csv"), of(&both, "s.csv"), "the other stream is as it would be alone");
    assert_eq!(alone["charts"], both["charts"], "there is nothing to draw of an attach");
    let rows: Vec<(String, String, f64)> = of(&both, "attach.csv")
        .iter()
        .map(|r| {
            let text = |key: &str| r[key].as_str().unwrap().to_owned();
            (text("variant"), text("metric"), (r["simulated"].as_f64().unwrap() * 1e5).round() / 1e5)
        })
        .collect();
    // Two headers in a step of ECC each, and a table of two pages.
    let row = |variant: &str, metric: &str, value| (variant.to_owned(), metric.to_owned(), value);
    let parts = 2.0 * 0.84e-3 + 2.0 * 1.3e-3;
    assert_eq!(
        rows,
        [
            row("none", "other_page_reads", 4.0),
            row("none", "other_seconds", parts),
            row("nand-page", "other_page_reads", 4.0),
            row("nand-page", "other_seconds", 4.0 * 1.3e-3),
            row("lru, 61 lines", "other_page_reads", 4.0),
            row("lru, 61 lines", "other_seconds", parts),
        ]
    );
    note(&both, "attach.csv: none of its 3 reads passes ubi_eba_read_leb");
    let text = room.good(&["ubi", "replay", "attach.csv", "--cache", "none"]);
    assert!(text.contains("other reads") && !text.contains("misses"), "{text}");
    // A trace without a read does not end the replay of the others, but the results are incomplete.
    let output = room.output(&["ubi", "replay", "none.csv", "s.csv", "--json", "--cache", "none,nand-page,lru"]);
    assert_eq!(output.status.code(), Some(1));
    let why = "none.csv: no line is a read (r or R), so there is nothing to replay";
    assert_eq!(crate::common::text(&output.stderr), format!("readpath: results are incomplete: {why}\n"));
    let doc: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(doc["notes"][0], serde_json::json!({ "kind": "incomplete", "text": why }));
    assert_eq!(of(&doc, "s.csv"), of(&alone, "s.csv"));
}

#[test]
fn the_published_table_stands_beside_the_model() {
    let room = Room::new();
    let text = room.good(&["reproduce", "ubi"]);
    assert!(text.contains("Why find became slower with a cache"), "{text}");
    assert!(text.contains("Without streams: the model ran on the counts that the thread published"), "{text}");
    let hint = "\nLeft out: recorded streams of attach, boot, find and rm. 'readpath reproduce ubi --traces DIR' adds \
                them, with more caches.\nLeft out: what our reader of UBIFS makes of an image: attach and mount, find, \
                find -ls, reading all files, boot-like reading, rm. 'readpath reproduce ubi --image FILE' adds them, \
                with more caches.\n";
    assert!(text.ends_with(hint), "{text}");
    assert!(room.read("out/ubi/report.html").contains("When a cache of pages pays"));
    std::fs::create_dir(room.path("t")).expect("a folder");
    room.write("t/x_find.csv", STREAM);
    room.write("t/x_attach.csv", "R,1,0,64,,ubiattach\n");
    let doc = room.json(&["reproduce", "ubi", "--traces", "t", "--json"]);
    let misses = row(&doc, &[("case", "find, recorded: x_find.csv"), ("metric", "misses")]).expect("a row");
    assert_eq!((&misses["variant"], misses["simulated"].as_f64()), (&Value::from("B: NAND core, one page"), Some(4.0)));
    assert!(row(&doc, &[("case", "attach, recorded: x_attach.csv"), ("metric", "header_seconds")]).is_some());
    // The layout of a folder with inputs of all experiments.
    std::fs::create_dir_all(room.path("all/ubi")).expect("a folder");
    room.write("all/ubi/x_find.csv", STREAM);
    assert!(room.good(&["reproduce", "ubi", "--traces", "all", "--json"]).contains("find, recorded: x_find.csv"));
    for (args, says) in [
        (&["reproduce", "ubi", "--traces", "out"][..], "--traces: out/ubi has no recorded stream"),
        (&["reproduce", "ubi", "--set", "a=1"], "--set is for experiments on a UFS device"),
        (&["reproduce", "iozone", "--traces", "t"], "--traces goes with reproduce policies, zones and ubi"),
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
