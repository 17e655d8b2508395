// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath replay` and `readpath trace`: small traces with a known outcome, every kind of mistake, and the same
//! results for any number of threads.

use crate::common::{HEADER, Room, figure, json, notes, row, text};
use serde_json::Value;
use std::fmt::Write as _;

/// A read of one block of the preset `ufs21-64g` at queue depth 1, as `device show` tells: with its map page in SRAM,
/// and without.
const HIT_US: f64 = 100.5;
const MISS_US: f64 = 195.5;

/// A trace in our own table, of rows (time in us, operation, offset in blocks, bytes).
fn table(rows: &[(u64, &str, u64, u64)]) -> String {
    let rows = rows.iter().map(|(us, op, block, bytes)| format!("{},{op},{},{bytes},,\n", us * 1000, block * 4096));
    HEADER.to_owned() + &rows.collect::<String>()
}

/// The document of a replay, without what depends on the machine.
fn document(room: &Room, args: &[&str]) -> Value {
    room.document(&[&["replay", "--json"], args].concat())
}

fn find(doc: &Value, case: &str, variant: &str, metric: &str) -> Option<f64> {
    let row = row(doc, &[("case", case), ("variant", variant), ("metric", metric)])?;
    assert_eq!(row["origin"].as_str(), Some(if doc["experiment"] == "replay" { "predicted" } else { "measured" }));
    row["simulated"].as_f64()
}

fn value(doc: &Value, case: &str, variant: &str, metric: &str) -> f64 {
    find(doc, case, variant, metric).unwrap_or_else(|| panic!("{case}, {variant}: no {metric} in {:#}", doc["rows"]))
}

#[test]
fn times_count_when_they_are_to() {
    let room = Room::with("t.csv", &table(&[(0, "R", 0, 4096), (1_000_000, "R", 8, 4096)]));
    let timed = document(&room, &["t.csv", "--hpb", "off"]);
    let of = |doc: &Value, metric: &str| value(doc, "t.csv", "HPB off", metric);
    assert_eq!(of(&timed, "read_latency_mean"), (MISS_US + HIT_US) / 2.0);
    assert_eq!(of(&timed, "virtual_duration"), 1.0 + HIT_US / 1e6);
    assert_eq!((of(&timed, "requests"), of(&timed, "map_loads"), of(&timed, "map_hit_ratio")), (2.0, 1.0, 50.0));

    let closed = document(&room, &["t.csv", "--hpb", "off", "--iodepth", "1"]);
    assert_eq!(of(&closed, "read_latency_mean"), (MISS_US + HIT_US) / 2.0);
    assert!((of(&closed, "virtual_duration") - (MISS_US + HIT_US) / 1e6).abs() < 1e-9);

    let fast = document(&room, &["t.csv", "--hpb", "off", "--speed", "4"]);
    assert_eq!(of(&fast, "virtual_duration"), 0.25 + HIT_US / 1e6);
    // Pauses are cut before the speed applies.
    let cut = document(&room, &["t.csv", "--hpb", "off", "--max-idle", "10ms", "--speed", "2"]);
    assert_eq!(of(&cut, "virtual_duration"), 0.005 + HIT_US / 1e6);
    assert!(notes(&cut).contains("1 pauses were cut by 990.000 ms"), "{}", notes(&cut));
}

#[test]
fn waiting_for_the_queue_is_latency() {
    let room = Room::new();
    let rows: Vec<_> = (0..200).map(|i| (0, "R", i, 4096)).collect();
    room.write("burst.csv", &table(&rows));
    let of = |doc: &Value, metric: &str| value(doc, "burst.csv", "HPB off", metric);
    let timed = document(&room, &["burst.csv", "--hpb", "off"]);
    let deep = document(&room, &["burst.csv", "--hpb", "off", "--iodepth", "31"]);
    let one = document(&room, &["burst.csv", "--hpb", "off", "--iodepth", "1"]);
    assert_eq!(of(&timed, "most_outstanding"), 200.0);
    assert_eq!(of(&deep, "most_outstanding"), 31.0);
    assert_eq!(of(&one, "most_outstanding"), 1.0);
    // The controller is as busy either way, so both end alike; only from when a request counts as waiting differs.
    let end = of(&timed, "virtual_duration") * 1e6;
    assert!((end / (of(&deep, "virtual_duration") * 1e6) - 1.0).abs() < 0.05, "{end}");
    assert!(of(&timed, "read_latency_p99") > 0.9 * end && of(&deep, "read_latency_p99") < 0.5 * end);
    assert!((of(&one, "read_latency_mean") - (199.0 * HIT_US + MISS_US) / 200.0).abs() < 1e-6);
}

#[test]
fn what_is_read_before_it_is_written_is_preloaded() {
    let room = Room::with("before.csv", &table(&[(0, "W", 100, 8 * 4096), (10, "R", 5000, 4096)]));
    room.write(
        "t.csv",
        &table(&[(0, "R", 96, 8 * 4096), (500, "W", 200, 4096), (1000, "R", 200, 4096), (2000, "R", 300, 4096)]),
    );
    // 96..104 and 300: 9 blocks; 200 is written first.
    let alone = document(&room, &["t.csv"]);
    assert!(notes(&alone).contains("t.csv: 9 blocks of 4 KiB in 2 ranges"), "{}", notes(&alone));
    assert_eq!(alone["configuration"]["traces"]["cases"][0]["preloaded_blocks"], 9);
    assert_eq!(find(&alone, "t.csv: precondition", "HPB off", "requests"), None);
    // 100..104 are written by the trace before, which needs 5000 itself.
    let after = document(&room, &["t.csv", "--precondition", "before.csv"]);
    assert!(notes(&after).contains("t.csv: 6 blocks of 4 KiB in 3 ranges"), "{}", notes(&after));
    assert_eq!(value(&after, "t.csv: precondition", "HPB off", "requests"), 2.0);
    assert_eq!(value(&after, "t.csv", "HPB off", "requests"), 4.0);
    assert_eq!(value(&after, "t.csv", "HPB off", "read_requests"), 3.0);
    assert_eq!(after["simulated_ios"], 2 * (2 + 4));
    // A block that was preloaded is read from flash, which takes a map page.
    assert_eq!(value(&alone, "t.csv", "HPB off", "map_loads"), 1.0);
    let two = document(&room, &["t.csv", "--precondition", "before.csv", "--precondition", "t.csv", "--hpb", "off"]);
    assert_eq!(value(&two, "t.csv: precondition 2", "HPB off", "requests"), 4.0);
}

#[test]
fn scattered_blocks_fit_onto_the_device() {
    let room = Room::new();
    // Every other block of a unit of 4 MiB: as programs of their own they would take twice the device.
    let rows: Vec<_> = (0..512).map(|i| (i * 200, "R", 2 * i, 4096)).collect();
    room.write("t.csv", &table(&rows));
    let small =
        ["--set", "lu[0].blocks=1024", "--set", "geometry.blocks_per_plane=19", "--set", "geometry.pages_per_block=8"];
    let doc = document(&room, &[&["t.csv", "--hpb", "off"], &small[..]].concat());
    assert!(notes(&doc).contains("t.csv: 512 blocks of 4 KiB in 512 ranges"), "{}", notes(&doc));
    assert_eq!(value(&doc, "t.csv", "HPB off", "requests"), 512.0);
}

#[test]
fn requests_that_are_not_whole_blocks() {
    let room = Room::new();
    let run = |rows: &[(u64, &str, u64, u64)]| {
        room.write("t.csv", &table(rows));
        document(&room, &["t.csv", "--hpb", "off"])
    };
    let of = |doc: &Value, metric: &str| value(doc, "t.csv", "HPB off", metric);
    let whole = run(&[(0, "W", 8, 4096)]);
    let part = run(&[(0, "W", 8, 512)]);
    assert_eq!((of(&whole, "map_loads"), of(&part, "map_loads")), (0.0, 1.0), "the old block is read first");
    let more = of(&part, "write_latency_mean") - of(&whole, "write_latency_mean");
    assert!((more - MISS_US).abs() < 1e-6, "{more}");
    assert!(notes(&part).contains("1 of 1 requests write parts of blocks"), "{}", notes(&part));
    assert_eq!(find(&part, "t.csv", "HPB off", "read_latency_mean"), None, "it is no request of the trace");
    // Longer than a command, longer than 65535 blocks: one request all the same.
    let long = run(&[(0, "R", 0, 70_000 * 4096)]);
    assert_eq!((of(&long, "requests"), of(&long, "read_requests"), of(&long, "most_outstanding")), (1.0, 1.0, 1.0));
    assert!(of(&long, "read_latency_mean") > 70_000.0 * 3.9, "the link takes 3.9 us for each block");
}

#[test]
fn flushes_and_trims() {
    let room = Room::new();
    let programs = |second: &str| {
        room.write("t.csv", &table(&[(0, "W", 0, 4096), (1000, second, 64, 4096)]));
        value(&document(&room, &["t.csv", "--hpb", "off"]), "t.csv", "HPB off", "programs")
    };
    // A block stays in the write buffer until it is full, or a flush or FUA asks for it.
    assert_eq!(programs("W"), 0.0);
    assert!(programs("FW") >= 1.0);
    assert!(programs("WF") >= 1.0);
    room.write("t.csv", &table(&[(0, "W", 0, 4096), (1000, "F", 0, 0), (9000, "D", 0, 4096), (9900, "D", 9, 100)]));
    let doc = document(&room, &["t.csv", "--hpb", "off"]);
    assert_eq!(value(&doc, "t.csv", "HPB off", "flush_requests"), 1.0);
    assert_eq!(value(&doc, "t.csv", "HPB off", "trim_requests"), 1.0);
    assert!(value(&doc, "t.csv", "HPB off", "flush_latency_mean") > 500.0, "a program takes 500 us");
    assert!(notes(&doc).contains("discard parts of blocks"), "{}", notes(&doc));
}

/// Reads spread over 64 map pages, with some writes.
fn spread() -> String {
    let row = |i: u64| {
        (i * 20, if i.is_multiple_of(7) { "W" } else { "R" }, (i * 2_654_435_761) % (64 << 12), 4096 * (1 + i % 3))
    };
    table(&(0..3000).map(row).collect::<Vec<_>>())
}

#[test]
fn threads_change_nothing_and_variants_do() {
    let room = Room::with("a.csv", &spread());
    room.write("b.csv", &table(&[(0, "R", 0, 4096)]));
    let args = ["a.csv", "b.csv", "--vary", "map_cache.size_kib=256,4096", "--precondition", "b.csv"];
    let with = |threads| document(&room, &[&args[..], &["--threads", threads]].concat());
    let doc = with("1");
    assert_eq!(doc, with("2"));
    assert_eq!(doc, with("7"));
    let of = |variant: &str, metric: &str| value(&doc, "a.csv", variant, metric);
    // 64 map pages of 16 KiB are 1 MiB.
    let (small, large) = ("HPB off, map_cache.size_kib=256", "HPB off, map_cache.size_kib=4096");
    assert!(of(small, "map_loads") > 500.0 && of(large, "map_loads") <= 64.0);
    assert!(of(small, "read_latency_mean") > of(large, "read_latency_mean"));
    assert!(of(small, "device_map_memory") + 3.5e6 < of(large, "device_map_memory"));
    let on = "HPB dcm, map_cache.size_kib=256";
    assert!(of(on, "hpb_hit_ratio") > 5.0 && of(small, "hpb_hit_ratio") == 0.0);
    assert!(of(on, "host_memory") > 64.0 * 32768.0 && of(small, "host_memory") == 0.0);
    // Four regions' maps of 32 KiB, their bitmaps, and tables.
    let capped =
        document(&room, &["a.csv", "--hpb", "dcm", "--vary", "map_cache.size_kib=256", "--vary", "max_map=128K"]);
    assert!(
        value(&capped, "a.csv", &format!("{on}, max_map=128K"), "host_memory") < of(on, "host_memory") - 50.0 * 32768.0
    );
}

#[test]
fn one_run_can_be_chosen_and_recorded() {
    let room = Room::with("a.csv", &spread());
    room.write("b.csv", &table(&[(0, "R", 0, 4096), (100, "W", 9, 4096)]));
    let all = document(&room, &["a.csv", "b.csv", "--precondition", "b.csv"]);
    let only =
        document(&room, &["a.csv", "b.csv", "--precondition", "b.csv", "--case", "b.csv", "--variant", "HPB dcm"]);
    let rows = |doc: &Value| doc["rows"].as_array().expect("rows").clone();
    let kept: Vec<Value> = rows(&all)
        .into_iter()
        .filter(|r| r["case"].as_str().is_some_and(|c| c.starts_with("b.csv")) && r["variant"] == "HPB dcm")
        .collect();
    assert!(kept.len() > 20);
    assert_eq!(rows(&only), kept);

    let recorded = |more: &[&str]| {
        let args = ["replay", "a.csv", "--hpb", "dcm", "--json", "--trace-io", "t.json"];
        let output = room.output(&[&args[..], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut doc = json(text(&output.stdout));
        doc.as_object_mut().expect("an object").remove("process");
        let trace = json(&room.read("t.json"));
        let events = trace.as_array().expect("an array").len();
        assert_eq!(text(&output.stderr), format!("t.json: {events} events\n"));
        (doc, events)
    };
    let (doc, events) = recorded(&[]);
    assert!(events > 4 * 3000, "{events} events of 3000 requests");
    assert_eq!(doc, document(&room, &["a.csv", "--hpb", "dcm"]), "being watched changes nothing");
    assert!(room.read("t.json").contains("a.csv, HPB dcm"), "the run is named");
    assert!(recorded(&["--trace-io-limit", "10"]).1 < 400);
    std::fs::remove_file(room.path("t.json")).expect("it is there");
    for (args, says) in [
        (&["a.csv", "--trace-io", "t.json"][..], "--trace-io records one run, but this makes 2: "),
        (&["a.csv", "--case", "x"], "--case 'x' is not one of: a.csv\n"),
        (&["a.csv", "--variant", "HPB"], "--variant 'HPB' is not one of: HPB off, HPB dcm\n"),
        (&["a.csv", "--hpb", "off", "--trace-io", "no/such/t.json"], "no/such/t.json: cannot be written"),
    ] {
        room.bad(&[&["replay"], args].concat(), &[says]);
    }
}

#[test]
fn formats_and_folders() {
    let room = Room::new();
    room.write(
        "mobile.csv",
        "process,device,rw_flag,sector,size,timestamp\nx-7,8388608,R,80,8,100.5\nx-7,8388608,W,8,8,100.6\n",
    );
    room.write("mine.txt", "0;r;40960;8\n100;w;4096;8\n");
    let columns = ["--columns", "time=0:ms,op=1:r/w,offset=2:bytes,size=3:sectors,sep=semicolon"];
    assert_eq!(
        room.good(&["trace", "convert", "mobile.csv", "--output", "own.csv"]).lines().last(),
        Some("own.csv: 2 requests")
    );
    assert_eq!(room.read("own.csv"), format!("{HEADER}0,R,40960,4096,7,\n100000000,W,4096,4096,7,\n"));
    room.good(&[
        "trace",
        "convert",
        "own.csv",
        "--output",
        "own.fio",
        "--output-format",
        "fio",
        "--filename",
        "/dev/x",
    ]);
    assert!(
        room.read("own.fio")
            .ends_with("0 /dev/x read 40960 4096\n100000 /dev/x write 4096 4096\n100000 /dev/x close\n")
    );
    let rows = |file: &str, more: &[&str]| {
        let mut doc = document(&room, &[&[file, "--hpb", "off"], more].concat());
        doc["rows"].as_array_mut().expect("rows").iter_mut().for_each(|r| r["case"] = "".into());
        doc["rows"].take()
    };
    let own = rows("own.csv", &[]);
    for (file, more) in
        [("mobile.csv", &[][..]), ("own.fio", &[]), ("own.fio", &["--format", "fio3"]), ("mine.txt", &columns)]
    {
        assert_eq!(rows(file, more), own, "{file}");
    }
    let shown = room.good(&["replay", "own.csv", "--out", "made/here"]);
    assert!(shown.starts_with("'HPB off' and 'HPB dcm' are alike: reads take "), "{shown}");
    assert!(shown.contains("\n\nReplay of own.csv\n") && shown.contains("Note: own.csv: format csv"), "{shown}");
    let kept = json(&room.read("made/here/result.json"));
    assert_eq!(kept["experiment"], "replay");
    assert!(room.read("made/here/report.html").contains("Read latency, own.csv"));
}

#[test]
fn folding_is_said_loudly() {
    let room = Room::with("far.csv", &table(&[(0, "R", 16 << 20, 4096), (10, "R", 1, 4096)]));
    let message =
        room.bad(&["replay", "far.csv", "--out", "x"], &["far.csv:2: ", "68719480832 bytes", "--fold", "--lenient"]);
    assert!(message.contains("beyond the device of 68719476736 bytes"), "{message}");
    let kept = document(&room, &["far.csv", "--lenient"]);
    let note = "far.csv: 1 rows were SKIPPED (beyond the device); the first at line 2: it ends at byte";
    assert!(notes(&kept).lines().any(|n| n.starts_with(note)), "{}", notes(&kept));
    assert_eq!(figure(&kept, &[("metric", "requests")]), Some(1.0));
    let shown = room.good(&["replay", "far.csv", "--fold"]);
    assert!(shown.contains("\n\nReplay of far.csv (addresses FOLDED)\n"), "{shown}");
    let doc = document(&room, &["far.csv", "--fold"]);
    assert!(
        notes(&doc).lines().next().is_some_and(|n| n.contains("1 of 2 requests lie beyond the device and were FOLDED"))
    );
}

#[test]
fn mistakes() {
    let room = Room::with("t.csv", &table(&[(0, "R", 0, 4096)]));
    room.write("empty.csv", "");
    room.write("header.csv", HEADER);
    room.write("bad.csv", &format!("{HEADER}0,R,0,4096,,\n5,R,x,4096,,\n9,R,0,4096,,\n"));
    room.write("prose.txt", "It was a dark and stormy night.\n");
    room.write("two.csv", "process,device,rw_flag,sector,size,timestamp\nx-7,1,R,80,8,1\nx-7,2,R,8,8,2\n");
    room.write("trim.csv", &table(&[(0, "D", 0, 100)]));
    room.write("long.csv", &table(&[(0, "R", 0, 4096), (40 * 86_400_000_000, "R", 0, 4096)]));
    std::fs::create_dir(room.path("folder")).expect("a folder");
    for (args, says) in [
        (&["none.csv"][..], &["none.csv: cannot be read"][..]),
        (&["folder"], &["folder: is a folder"]),
        (&["empty.csv"], &["empty.csv: it is empty"]),
        (&["header.csv"], &["header.csv: there is no request"]),
        (&["bad.csv"], &["bad.csv:3: ", "\"x\""]),
        (&["t.csv", "--precondition", "bad.csv"], &["bad.csv:3: "]),
        (&["prose.txt"], &["prose.txt: the format is not recognised"]),
        (&["prose.txt", "--lenient"], &["prose.txt: the format is not recognised"]),
        (&["prose.txt", "--format", "msr"], &["prose.txt:1: "]),
        (&["t.csv", "--format", "nonsense"], &["--format: \"nonsense\" is not a format"]),
        (&["t.csv", "--format", "csv"], &["--format: csv needs columns"]),
        (&["t.csv", "--columns", "time=0"], &["--columns: \"op\" is missing"]),
        (&["two.csv"], &["two.csv:3: "]),
        (&["two.csv", "--trace-device", "1", "--merge-devices"], &["error: "]),
        (&["trim.csv"], &["trim.csv: no request is left"]),
        (&["long.csv"], &["long.csv: takes 3456000.000 s of virtual time", "--max-idle"]),
        (&["t.csv", "t.csv"], &["t.csv: is given twice"]),
        (&["t.csv", "--device", "nothing"], &["there is no device of this name"]),
        (&["t.csv", "--set", "a"], &["has no '='"]),
        (&["t.csv", "--vary", "map_cache.size_kib=1X"], &["--vary: map_cache.size_kib: is the text \"1X\""]),
        (&["t.csv", "--vary", "map_cache.size_kib=64,64"], &["64 is given twice"]),
        (&["t.csv", "--vary", "map_cache.size_kib=1"], &["map_cache.size_kib: "]),
        (&["t.csv", "--hpb", "dcm", "--vary", "max_map=1K"], &["--vary: max_map: 1024 bytes do not hold", "32768"]),
        (&["t.csv", "--vary", "max_map=1M", "--hpb", "off"], &["--vary: max_map: has no meaning"]),
        (&["t.csv", "--fill", "none"], &["--fill none is for jobs"]),
        (&["t.csv", "--iodepth", "4", "--speed", "2"], &["--speed, --max-idle and --spread-ties change times"]),
        (&["t.csv", "--speed", "0"], &["--speed: "]),
        (&["t.csv", "--max-idle", "10"], &["--max-idle: \"10\" is not a time"]),
        (&["t.csv", "--shift-sectors", "8"], &["error: "]),
        (&["t.csv", "--threads", "0"], &["error: "]),
        (&[], &["error: "]),
    ] {
        room.bad(&[&["replay"], args, &["--out", "new/folder"]].concat(), says);
    }
    for (args, says) in [
        (&["info", "bad.csv", "--out", "new"][..], &["bad.csv:3: "][..]),
        (&["info", "empty.csv"], &["empty.csv: it is empty"]),
        (&["convert", "bad.csv", "--output", "out.csv"], &["bad.csv:3: "]),
        (&["convert", "t.csv", "--output", "out.csv", "--output-format", "tape"], &["error: "]),
        (&["convert", "t.csv", "--output", "no/such/out.csv"], &["no/such/out.csv: cannot be written"]),
        (
            &["convert", "t.csv", "--output", "out.csv", "--output-format", "fio", "--filename", "a b"],
            &["--filename: "],
        ),
    ] {
        room.bad(&[&["trace"], args].concat(), says);
    }
}

#[test]
fn lenient_reading_counts_what_it_skips() {
    let room =
        Room::with("bad.csv", &format!("{HEADER}0,R,0,4096,,\n5,R,x,4096,,\n6,R,y,4096,,\n9000000,R,0,4096,,\n"));
    let doc = document(&room, &["bad.csv", "--lenient", "--hpb", "off"]);
    assert_eq!(value(&doc, "bad.csv", "HPB off", "requests"), 2.0);
    assert!(notes(&doc).contains("bad.csv: 2 rows were SKIPPED"), "{}", notes(&doc));
    assert!(notes(&doc).contains("the first at line 3: "), "{}", notes(&doc));
    // The device that is advised is one for all, not for the first that needs a larger one.
    room.write("far.csv", &table(&[(0, "R", 0, 4096), (5, "R", 1 << 30, 4096), (9, "R", 3 << 30, 4096)]));
    let doc = document(&room, &["far.csv", "--lenient", "--hpb", "off"]);
    let says = "far.csv: 2 requests that do not lie on the device would on one of at least 13194139537408 bytes";
    assert!(notes(&doc).contains("2 rows were SKIPPED (beyond the device)"), "{}", notes(&doc));
    assert!(notes(&doc).contains(says), "{}", notes(&doc));
    let says = "2 requests of the trace lie beyond it; take a device of at least 13194139537408 bytes (12288.0 GiB, \
                3221225473 blocks)";
    let way = "the largest preset is nvme-dramless-1t with 931.5 GiB";
    room.bad(&["replay", "far.csv"], &["far.csv:3: ", says, way, "--fold to fold them"]);
    // The smallest preset of the device's kind; of another kind, where none is large enough.
    for (block, device, way) in [
        (
            25 << 20,
            "ufs21-64g",
            "(--device ufs31-128g has 128.0 GiB; --fold to fold them, --lenient to leave them out)",
        ),
        (40 << 20, "ufs21-64g", "(--device ufs31-256g has 256.0 GiB; "),
        (130 << 20, "nvme-dramless-512g", "(--device nvme-dramless-1t has 931.5 GiB; "),
        (200 << 20, "ufs21-64g", "(--device nvme-dramless-1t has 931.5 GiB; "),
    ] {
        room.write("beyond.csv", &table(&[(0, "R", block, 4096)]));
        room.bad(&["replay", "beyond.csv", "--device", device], &["beyond.csv", way]);
    }
}

#[test]
fn what_a_trace_is_like() {
    let room = Room::new();
    let text =
        format!("{HEADER}0,R,0,4096,,1000\n500,R,4096,8192,,1000\n1000000,W,1048576,512,,100\n3000000,R,0,4096,,\n");
    room.write("t.csv", &text);
    let doc = room.json(&["trace", "info", "t.csv", "--json"]);
    for (metric, expected) in [
        ("requests", 4.0),
        ("span", 0.003),
        ("read_ratio", 75.0),
        ("read_requests", 3.0),
        ("read_bytes", 16384.0),
        ("read_size_up_to_4096_bytes", 2.0),
        ("read_size_up_to_8192_bytes", 1.0),
        ("write_unaligned", 100.0),
        ("footprint_blocks", 4.0),
        ("footprint_read_first_blocks", 3.0),
        ("block_reads_again", 25.0),
        ("map_pages_16mib", 1.0),
        ("map_page_accesses_16mib", 3.0),
        ("map_pages_touched_16mib", 1.0),
        ("hottest_4mib_1_percent", 100.0),
        ("queue_depth_most", 2.0),
        ("pauses_from_1_ms", 1.0),
    ] {
        assert_eq!(value(&doc, "t.csv", "", metric), expected, "{metric}");
    }
    let shown = room.good(&["trace", "info", "t.csv", "--out", "made"]);
    for part in [
        "requests    4 over 3.000 ms",
        "75.0 % of reads",
        "4 blocks of 4 KiB",
        "1 touched, 1 read; reads of the hottest 1 %: 100.0 %",
        "2 at most",
        "Note: t.csv: format csv",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(room.read("made/report.html").contains("Requests over time"));
}

/// A device of two logical units with HPB: 16 and 48 GiB.
fn two_units() -> String {
    let preset = include_str!("../../../../presets/ufs21-64g.toml");
    let (before, unit) = preset.split_once("[[lu]]").expect("a unit");
    let (unit, behind) = unit.split_at(unit.find("\n\n").expect("what is behind"));
    let sized = |gib: &str| {
        format!("[[lu]]{}", unit.replace("capacity_gib = 64", &format!("capacity_gib = {gib}")).replace("1920", "900"))
    };
    format!("{before}{}\n{}{behind}", sized("16"), sized("48"))
}

#[test]
fn devices_of_a_trace_on_units_of_their_own() {
    let room = Room::with("two.toml", &two_units());
    // Reads of two volumes at the same addresses, and of a third that is on no unit.
    let mut table = String::new();
    for i in 0..300u64 {
        for (volume, every) in [(419, 1), (420, 3), (7, 50)] {
            if i % every == 0 {
                let _ = writeln!(
                    table,
                    "{volume},R,{},4096,{}",
                    i % 100 * 4096 * 10,
                    1_577_808_144_000_000 + i * 500 + volume
                );
            }
        }
    }
    room.write("t.csv", &table);
    let common = ["replay", "t.csv", "--format", "alibaba", "--device", "./two.toml"];
    let doc = room.json(&[&common[..], &["--units", "419=0,420=1", "--hpb", "dcm", "--json"]].concat());
    let of = |case: &str, metric: &str| {
        figure(&doc, &[("case", case), ("metric", metric)]).unwrap_or_else(|| panic!("{case}: {metric}: {doc}"))
    };
    assert_eq!(of("t.csv", "read_requests"), 400.0);
    let reads = |unit: &str| of(unit, "hit_cnt") + of(unit, "miss_cnt");
    assert_eq!((reads("t.csv: logical unit 0"), reads("t.csv: logical unit 1")), (300.0, 100.0));
    assert!(notes(&doc).contains("6 requests to other devices were left out"), "{}", notes(&doc));
    // The two volumes are different blocks, though they have the same addresses.
    let loads = |rest: &[&str]| {
        let doc = room.json(&[&common[..], rest, &["--hpb", "off", "--json"]].concat());
        figure(&doc, &[("case", "t.csv"), ("metric", "map_loads")]).expect("map loads")
    };
    assert_eq!((loads(&["--units", "419=0,420=1"]), loads(&["--merge-devices"])), (2.0, 1.0));
    let bad = |units: &str, says: &[&str]| room.bad(&[&common[..], &["--units", units]].concat(), says);
    bad("419", &["--units 419: expected DEVICE=LUN, such as sda=0"]);
    bad("419=2", &["--units 419=2: the device has logical units 0 to 1"]);
    bad("419=0,420=0", &["--units 420=0: each device of the trace, and each logical unit, can be named once"]);
    let shown = room.good(&[&common[..], &["--units", "419=0,999=1", "--hpb", "off"]].concat());
    assert!(shown.contains("t.csv: --units: no request is to 999"), "{shown}");
    bad("1=0", &["there is no request", "are for other devices"]);
    room.bad(&[&common[..], &["--units", "419=0", "--fold"]].concat(), &["cannot be used with"]);
    room.write("t.csv", &format!("{table}419,R,{},4096,1577808145000000\n", 17u64 << 30));
    let past = ["t.csv:407: ", "expected a request that ends within its logical unit"];
    room.bad(&[&common[..], &["--units", "419=0,420=1"]].concat(), &past);
    room.good(&[&common[..], &["--units", "419=1,420=0", "--hpb", "off"]].concat());
}
