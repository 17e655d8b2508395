// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath reproduce hmb`: how much host memory a DRAM-less SSD should get.

use crate::common::{Room, figure, notes};
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
    assert!(of("16 MiB", "read_iops") > 1.5 * of("no host memory", "read_iops"));
    assert_eq!(of("8 pieces: 32 MiB", "host_memory"), f64::from(32 << 20));
    assert_eq!(of("200 MiB", "host_memory"), f64::from(200 << 20));
    let (saves, half) = (of("no host memory", "memory_would_save"), of("no host memory", "memory_would_save_error"));
    // What is saved of the time of a request is what the rates say, since 32 are under way all the time.
    let rates = 100.0 * (1.0 - of("no host memory", "read_iops") / of("200 MiB", "read_iops"));
    assert!((saves - rates).abs() < 3.0 * half && half > 0.0 && half < 1.0, "{saves} ± {half}, {rates}");
    let notes = notes(&doc);
    assert!(notes.contains("RECOMMENDED: 4 GB, depth 32: 16 MiB; 200 MiB save less than 1 %"), "{notes}");
    assert!(notes.contains("Without --traces"), "{notes}");
    assert!(room.read("out/report.html").contains("RECOMMENDED"));
    // With a chosen case, claims about others are left out.
    assert!(!notes.contains("NOT CHECKED"), "{notes}");
    assert!(notes.contains("4 of 5 claims are about cases or variants that were left out here\n"), "{notes}");
}

/// Where there is no recommendation, the result says why.
#[test]
fn without_a_recommendation_there_is_a_reason() {
    let room = Room::with("one.csv", &trace(1, 1));
    let args = ["reproduce", "hmb", "--traces", "one.csv", "--case", "one.csv", "--out", "out", "--json"];
    let of_one = notes(&room.document(&args));
    let says = "one.csv: NO RECOMMENDATION: 1 of its 20 parts have requests, and its interval needs 2 such parts";
    assert!(of_one.contains(says) && !of_one.contains("RECOMMENDED"), "{of_one}");
    let one_size = notes(&room.document(&[&args[..], &["--variant", "16 MiB"]].concat()));
    assert!(one_size.contains("NO RECOMMENDATION: only one size of memory was run"), "{one_size}");
}

#[test]
fn coarse_times_are_told() {
    let room = Room::new();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../workload/tests/data/own_cloudphysics.csv.gz");
    let args = ["reproduce", "hmb", "--traces", trace, "--case", "own_cloudphysics.csv.gz", "--out", "out"];
    let doc = room.document(&[&args[..], &["--json"]].concat());
    let notes = notes(&doc);
    assert!(notes.contains("COARSE TIMES: its times are whole multiples of 1.000 s"), "{notes}");
    // The command itself has no such option.
    assert!(notes.contains("; --spread-ties of replay spreads them\n"), "{notes}");
    // Every size runs it alike, but for having no memory.
    let error = |variant: &str| figure(&doc, &[("variant", variant), ("metric", "memory_would_save_error")]);
    assert!(error("no host memory").is_some() && error("16 MiB").is_none(), "{:?}", error("16 MiB"));
    let advice = notes.lines().find(|line| line.starts_with("RECOMMENDED")).expect("a recommendation");
    assert!(!advice.contains("± 0.00"), "{advice}");
}

#[test]
fn a_trace_gets_a_recommendation_of_its_own() {
    let room = Room::with("t.csv", &trace(3, 4_000));
    let args = ["reproduce", "hmb", "--traces", "t.csv", "--case", "t.csv", "--out", "out"];
    let doc = room.document(&[&args[..], &["--json"]].concat());
    let notes = notes(&doc);
    assert!(notes.contains("RECOMMENDED: t.csv: 16 MiB; 200 MiB save less than 1 % more"), "{notes}");
    let loads = |variant: &str| {
        figure(&doc, &[("case", "t.csv"), ("variant", variant), ("metric", "map_loads")]).expect("map loads")
    };
    assert_eq!(loads("16 MiB"), 192.0, "each of 192 map pages is read once");
    assert!(loads("no host memory") > 2_000.0);
    let shown = |more: &[&str]| {
        let text = room.good(&[&args[..], more].concat());
        text.lines().filter(|line| !line.contains("CPU time")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(shown(&[]), shown(&["--threads", "1"]), "on any number of threads");
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
    let args = ["reproduce", "hmb", "--traces", "t.csv", "--case", "t.csv", "--out", "out"];
    let beyond = room.bad(&args, &["t.csv:", "beyond the device of 1000204886016 bytes", "--fold"]);
    assert!(!beyond.contains("--device") && !beyond.contains("--lenient"), "{beyond}");
    let of = |file: &str, says: &[&str]| room.bad(&["reproduce", "hmb", "--traces", file, "--out", "out"], says);
    room.write("long.csv", &format!("{HEADER}0,R,0,4096,,\n{},R,0,4096,,\n", 40 * 86_400_000_000_000_u64));
    let long = of("long.csv", &["long.csv: takes 3456000.000 s of virtual time", "; give a shorter part of it"]);
    assert!(!long.contains("--"), "{long}");
    room.write("two.csv", "process,device,rw_flag,sector,size,timestamp\nx-7,1,R,80,8,1\nx-7,2,R,8,8,2\n");
    let two = of("two.csv", &["two.csv:3: ", "'readpath trace convert' has options for that"]);
    assert!(!two.contains("--"), "{two}");
    room.write("prose.txt", "It was a dark and stormy night.\n");
    of("prose.txt", &["prose.txt: the format is not recognised", "'readpath trace convert' has options for that"]);
    // A case is one of the experiment or a trace.
    room.write("s.csv", &trace(1, 10));
    let unknown = ["reproduce", "hmb", "--case", "none", "--out", "out"];
    room.bad(&unknown, &["--case 'none' is not one of: 1 GB, depth 32, ", ", sequential copy\n"]);
    room.bad(&[&unknown[..], &["--traces", "s.csv"]].concat(), &[", sequential copy, s.csv\n"]);
    room.bad(&["reproduce", "hmb", "--traces", "nothing.csv"], &["nothing.csv"]);
    room.bad(&["reproduce", "iozone", "--fold", "--traces", "t.csv"], &["--fold goes with reproduce hmb"]);
    room.bad(&["reproduce", "hmb", "--fold"], &["required arguments were not provided"]);
    assert!(room.good(&[&args[..], &["--fold"]].concat()).contains("FOLDED"));
}
