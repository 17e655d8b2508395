// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath hmb` and `reproduce hmb`: how much host memory a DRAM-less SSD should get.

use crate::common::{Room, figure, notes, verdict};
use std::fmt::Write as _;

const HEADER: &str = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n";

const ONE_CASE: [&str; 6] = ["reproduce", "hmb", "--case", "4 GB, depth 32", "--out", "out"];

/// Reads of random single blocks of `gib` GiB, a millisecond apart.
fn trace(gib: u64, requests: u64) -> String {
    let mut table = HEADER.to_owned();
    let mut state = 3u64;
    for i in 0..requests {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let block = (state >> 20) % (gib << 18);
        let _ = writeln!(table, "{},R,{},4096,,", i * 1_000_000, block * 4096);
    }
    table
}

#[test]
fn the_least_memory_that_is_enough_is_recommended() {
    let room = Room::new();
    let doc = room.document(&[&ONE_CASE[..], &["--json"]].concat());
    let of = |variant: &str, metric: &str| {
        figure(&doc, &[("case", "4 GB, depth 32"), ("variant", variant), ("metric", metric)])
            .unwrap_or_else(|| panic!("{variant}: {metric}"))
    };
    assert!(of("16 MiB", "read_iops") > 1.25 * of("no host memory", "read_iops"));
    assert_eq!(of("8 pieces: 32 MiB", "host_memory"), f64::from(32 << 20));
    assert_eq!(of("200 MiB", "host_memory"), f64::from(200 << 20));
    let (saves, half) = (of("no host memory", "memory_would_save"), of("no host memory", "memory_would_save_error"));
    // What is saved of the time of a request is what the rates say, since 32 are under way all the time.
    let rates = 100.0 * (1.0 - of("no host memory", "read_iops") / of("200 MiB", "read_iops"));
    assert!((saves - rates).abs() < 3.0 * half && half > 0.0 && half < 1.0, "{saves} ± {half}, {rates}");
    let verdict = verdict(&doc);
    assert!(verdict.starts_with("Give this device 16 MiB: a request takes "), "{verdict}");
    assert!(verdict.contains("; 200 MiB saves "), "{verdict}");
    // It stands first on the page, and in what is printed.
    let page = room.read("out/report.html");
    assert!(page.find("Give this device 16 MiB").expect("a verdict") < page.find("<table>").expect("a table"));
    assert!(room.good(&ONE_CASE).starts_with("Give this device 16 MiB: "));
    // With a chosen case, claims about others are left out.
    let notes = notes(&doc);
    assert!(!notes.contains("NOT CHECKED"), "{notes}");
    assert!(notes.contains("4 of 5 claims are about cases or variants that were left out here\n"), "{notes}");
}

/// A drive written in order finds its map by runs as fast as with host memory, and reading ahead helps no random read.
#[test]
fn other_ways_to_the_map_make_host_memory_worth_less_or_as_much() {
    let room = Room::new();
    let doc = room.document(&["reproduce", "hmb_map", "--case", "64 GB, depth 32", "--json"]);
    let gain = |way: &str| {
        let iops = |memory: &str| {
            let variant = format!("{way}, {memory}");
            figure(&doc, &[("variant", &variant), ("metric", "read_iops")]).unwrap_or_else(|| panic!("{variant}"))
        };
        iops("32 MiB") / iops("none")
    };
    assert!((gain("runs") - 1.0).abs() < 0.01, "{}", gain("runs"));
    assert!(gain("as it is") > 1.1 && (gain("reading ahead") / gain("as it is") - 1.0).abs() < 0.05);
    let ratio = figure(&doc, &[("variant", "runs, none"), ("metric", "run_hit_ratio")]).expect("runs");
    assert!(ratio > 90.0, "{ratio} % were found in runs");
}

/// Where there is no recommendation, the result says why.
#[test]
fn without_a_recommendation_there_is_a_reason() {
    let room = Room::with("one.csv", &trace(1, 1));
    let of_one = verdict(&room.document(&["hmb", "one.csv", "--json"]));
    assert!(of_one.starts_with("This cannot be told from this workload: 1 of 20 parts"), "{of_one}");
}

#[test]
fn coarse_times_recommend_nothing() {
    let room = Room::new();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../workload/tests/data/own_cloudphysics.csv.gz");
    let doc = room.document(&["hmb", trace, "--json"]);
    let said = verdict(&doc);
    assert!(said.starts_with("This cannot be told from this trace. "), "{said}");
    assert!(said.contains("COARSE TIMES: its times are whole multiples of 1.000 s"), "{said}");
    assert!(said.ends_with("; --spread-ties spreads them"), "{said}");
    assert_eq!(figure(&doc, &[("variant", "16 MiB"), ("metric", "memory_would_save")]), None);
    // Nor do other questions say anything of such times.
    for args in [&["replay", trace, "--json"][..], &["compare", trace, "--json"]] {
        let said = verdict(&room.document(args));
        assert!(said.starts_with("This cannot be told from this trace. ") && !said.contains('\n'), "{args:?}: {said}");
    }
    let gain = room.good(&["trace", "mrc", trace, "--gain", "ufs31-256g"]);
    assert!(gain.starts_with("This cannot be told from this trace. "), "{gain}");
    let least = ["break-even", trace, "--from", "64", "--to", "128", "--step", "64", "--json"];
    assert!(verdict(&room.document(&least)).starts_with("This cannot be told from this trace. "));
    let spread = verdict(&room.document(&["hmb", trace, "--json", "--spread-ties"]));
    assert!(!spread.contains("cannot be told"), "{spread}");
}

#[test]
fn traces_and_jobs_of_ones_own() {
    let room = Room::new();
    std::fs::create_dir(room.path("in")).expect("a folder");
    room.write("in/t.csv", &trace(3, 4_000));
    let args = ["hmb", "in", "--sizes", "16,0,64", "--out", "out"];
    let doc = room.document(&[&args[..], &["--json"]].concat());
    let says = verdict(&doc);
    assert!(says.starts_with("Give this device 16 MiB: ") && says.contains("; 64 MiB saves 0.0"), "{says}");
    let loads = |variant: &str| {
        figure(&doc, &[("case", "t.csv"), ("variant", variant), ("metric", "map_loads")]).expect("map loads")
    };
    assert_eq!(loads("16 MiB"), 192.0, "each of 192 map pages is read once");
    assert!(loads("no host memory") > 2_000.0);
    assert_eq!(doc["charts"][0]["id"], "latency_by_size");
    assert_eq!(doc["charts"][0]["series"][0]["points"].as_array().map(Vec::len), Some(3));
    let shown = |more: &[&str]| {
        let text = room.good(&[&args[..], more].concat());
        text.lines().filter(|line| !line.contains("CPU time")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(shown(&[]), shown(&["--threads", "1"]), "on any number of threads");
    // A job without a time limit has parts too.
    room.write("in/j.fio", "[j]\nrw=randread\nbs=4k\nsize=4g\nio_size=16m\niodepth=4\nnorandommap\n");
    let both = verdict(&room.document(&["hmb", "in", "--json"]));
    let lines: Vec<&str> = both.lines().collect();
    assert!(lines[0].starts_with("j: Give this device "), "{both}");
    assert!(lines[1].starts_with("t.csv: Give this device "), "{both}");
    let dry = room.good(&["hmb", "in", "--dry-run"]);
    assert!(dry.contains("14 runs"), "{dry}");
}

#[test]
fn bad_input() {
    let room = Room::with("t.csv", &trace(2_000, 100));
    room.bad(
        &[&ONE_CASE[..], &["--set", "map_memory.min_kib=32768"]].concat(),
        &[
            "host.max_host_mem_mib: is 16, and the device needs 32768 KiB (map_memory.min_kib)",
            "Give at least 32, or 0",
        ],
    );
    let set = ["--set", "host.max_host_mem_mib=48"];
    room.bad(&[&ONE_CASE[..], &set].concat(), &["--set host.max_host_mem_mib: its variants set that key themselves"]);
    let smaller = room.good(&[&ONE_CASE[..], &["--set", "map_memory.size_mib=40"]].concat());
    assert!(smaller.contains("200 MiB: the device takes 40 of the 200 MiB that the host would give"), "{smaller}");
    room.bad(&["hmb", "t.csv"], &["t.csv:", "beyond the device of 512110190592 bytes", "--fold"]);
    assert!(room.good(&["hmb", "t.csv", "--fold"]).contains("FOLDED"));
    room.bad(&["hmb", "t.csv", "--sizes", "8"], &["--sizes: give two sizes or more, in MiB, for example 0,8,16,32"]);
    room.bad(&["hmb", "t.csv", "--sizes", "0,x"], &["'x'", "--sizes"]);
    // A variant is called by what the device takes, and what is the same is run once.
    let doc = room.document(&["hmb", "t.csv", "--fold", "--sizes", "0,64,128,256", "--json"]);
    let named = |name: &str| figure(&doc, &[("variant", name), ("metric", "host_memory")]);
    assert_eq!((named("100 MiB"), named("128 MiB"), named("256 MiB")), (Some(f64::from(100 << 20)), None, None));
    let points = doc["charts"][0]["series"][0]["points"].as_array().expect("points").iter();
    assert_eq!(points.map(|point| point["x"].as_str()).collect::<Vec<_>>(), [Some("0"), Some("64"), Some("100")]);
    assert!(notes(&doc).contains("--sizes 256: the device takes 100 MiB of that"), "{}", notes(&doc));
    let no_hmb = "--device ufs21-64g: this device takes no host memory for its map; these do: nvme-dramless-512g, ";
    room.bad(&["hmb", "t.csv", "--device", "ufs21-64g"], &[no_hmb]);
    std::fs::create_dir_all(room.path("empty/inner")).expect("a folder");
    room.bad(&["hmb", "empty"], &["empty: there is no file in this folder"]);
    room.write("long.csv", &format!("{HEADER}0,R,0,4096,,\n{},R,0,4096,,\n", 40 * 86_400_000_000_000_u64));
    room.bad(&["hmb", "long.csv"], &["long.csv: takes 3456000.000 s of virtual time"]);
    room.write("prose.txt", "It was a dark and stormy night.\n");
    room.bad(&["hmb", "prose.txt"], &["prose.txt: the format is not recognised"]);
    let unknown = ["reproduce", "hmb", "--case", "none", "--out", "out"];
    room.bad(&unknown, &["--case 'none' is not one of: 1 GB, depth 32, ", ", sequential copy\n"]);
    room.bad(
        &["reproduce", "hmb", "--traces", "t.csv"],
        &["--traces: hmb is a command for traces of your own: readpath hmb"],
    );
}

/// The device takes no host memory below what it needs (HMMIN): such sizes are left out, and a note says so.
#[test]
fn sizes_that_a_device_does_not_take_are_left_out() {
    let room = Room::with("t.csv", &trace(8, 500));
    let shown = room.good(&["hmb", "t.csv", "--device", "nvme-2230-256g"]);
    assert!(shown.contains("Note: --sizes 4: the device takes none below 14 MiB\n"), "{shown}");
    assert!(shown.contains(" 16 MiB ") && !shown.contains(" 8 MiB "), "{shown}");
    let args = ["hmb", "t.csv", "--device", "nvme-2230-256g", "--sizes", "4,8"];
    room.bad(&args, &["--sizes: the device takes none below 14 MiB; give a size that it takes"]);
    // The question whether a Raspberry Pi should give 64 MiB.
    let case = ["reproduce", "raspberry_memory", "--case", "64 GiB, depth 1", "--json"];
    let doc = room.document(&case);
    let mean = |variant: &str| {
        figure(&doc, &[("variant", variant), ("metric", "read_latency_mean")]).unwrap_or_else(|| panic!("{variant}"))
    };
    let saves = |variant: &str| 100.0 * (1.0 - mean(variant) / mean("none"));
    assert!((saves("32 MiB") - 14.0).abs() < 1.0 && (saves("64 MiB") - 28.0).abs() < 1.0, "{}", saves("64 MiB"));
}
