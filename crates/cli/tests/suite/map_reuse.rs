// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath trace mrc`: how much memory a map needs under a trace.

use crate::common::{Room, json};
use std::fmt::Write as _;

/// Reads, half of them of few map pages, and every fifth request a write, a microsecond apart.
fn trace() -> String {
    trace_every(1_000)
}

fn trace_every(ns: u64) -> String {
    let mut table = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
    let mut state = 7u64;
    for i in 0..6_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let page = if i % 2 == 0 { (state >> 33) % 8 } else { (state >> 33) % 500 };
        let (op, blocks) = if i % 5 == 4 { ("W", 2) } else { ("R", 1 + i % 3 * 40) };
        let _ = writeln!(table, "{},{op},{},{},,", i * ns, (page * 1024 + 3) * 4096, blocks * 4096);
    }
    table
}

#[test]
fn curves_are_what_the_simulator_does_at_depth_one() {
    let room = Room::with("t.csv", &trace());
    let args = ["trace", "mrc", "t.csv", "--check", "ufs21-64g", "--json"];
    let doc = room.json(&args);
    let rows = doc["rows"].as_array().expect("rows").clone();
    let hits = |variant: &str| -> Vec<(String, f64)> {
        let of = rows.iter().filter(|row| row["variant"] == variant);
        let hits = of.filter(|row| row["metric"].as_str().expect("a name").starts_with("map_hits_at_"));
        hits.map(|row| (row["metric"].to_string(), row["simulated"].as_f64().expect("a value"))).collect()
    };
    let simulated = hits("pages of 16 KiB, simulated at depth 1");
    let counted = hits("pages of 16 KiB, reads");
    assert_eq!(simulated.len(), 8, "{simulated:?}");
    for (metric, value) in &simulated {
        let (_, counted) = counted.iter().find(|(other, _)| other == metric).expect("the same sizes");
        assert!((value - counted).abs() < 0.5, "{metric}: {value} and {counted}");
    }
    assert!(simulated[0].1 < 20.0 && simulated.last().expect("some").1 > 85.0);
    assert_eq!(hits("pages of 16 KiB, simulated at depth 16").len(), simulated.len());
    // Curves of other kinds of requests of the same trace.
    assert!(hits("HPB regions of 16 MiB, all").len() > 5 && hits("pages of 4 KiB, writes").len() > 5);
}

/// Runs and reading ahead, by a model without time: what is simulated one request at a time, and far from what pages
/// alone would hit. What was read lies in pieces, so that a map page has many runs; host memory does not help.
#[test]
fn runs_and_reading_ahead_are_predicted() {
    let mut table = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
    let mut state = 7u64;
    for i in 0..6_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Half of the reads go on from one map page of 16 MiB to the next, the others are random.
        let page = if i % 2 == 0 { i / 8 % 400 } else { (state >> 33) % 400 };
        let block = page * 4096 + i % 7 * 500 + (state >> 20) % 40;
        let _ = writeln!(table, "{},R,{},{},,", i * 1_000, block * 4096, (1 + i % 3) * 4096);
    }
    let room = Room::with("t.csv", &table);
    let hits = |device: &str, keys: &[&str]| -> Vec<[f64; 2]> {
        let mut args = vec!["trace", "mrc", "t.csv", "--check", device, "--json"];
        args.extend(keys.iter().flat_map(|key| ["--set", key]));
        let doc = room.json(&args);
        let rows = doc["rows"].as_array().expect("rows").clone();
        let of = |variant: &str| -> Vec<f64> {
            let of = rows.iter().filter(|row| row["variant"] == format!("pages of 16 KiB, {variant}"));
            let of = of.filter(|row| row["metric"].as_str().expect("a name").starts_with("map_hits_at_"));
            of.map(|row| row["simulated"].as_f64().expect("a value")).collect()
        };
        let simulated = of("simulated at depth 1");
        let said = of(if keys.is_empty() { "reads" } else { "predicted with runs and reading ahead" });
        said.into_iter().zip(simulated).map(|(said, simulated)| [said, simulated]).collect()
    };
    let [ufs, nvme] = ["ufs21-64g", "nvme-dramless-512g"];
    let plain = [ufs, nvme].map(|device| hits(device, &[]));
    for [counted, simulated] in plain.iter().flatten() {
        assert!((counted - simulated).abs() < 0.01, "{counted} and {simulated} of {plain:?}");
    }
    for (device, keys) in [
        (ufs, &["map_cache.runs_kib=1"][..]),
        (nvme, &["map_cache.runs_kib=16"]),
        (ufs, &["map_cache.runs_kib=64"]),
        (ufs, &["map_cache.read_ahead=2"]),
        (ufs, &["map_cache.runs_kib=4", "map_cache.read_ahead=1"]),
    ] {
        let with = hits(device, keys);
        assert!(with.len() > 5, "{with:?}");
        for [said, simulated] in &with {
            assert!((said - simulated).abs() < 0.1, "{device} {keys:?}: {said} and {simulated} of {with:?}");
        }
        // The largest sizes hit all either way.
        let plain = &plain[usize::from(device == nvme)];
        let gains = with.iter().zip(&plain[plain.len() - with.len()..]).map(|(with, plain)| with[1] - plain[1]);
        let most = gains.fold(0.0, f64::max);
        assert!(most > 0.5, "{device} {keys:?}: {most}");
    }
    let zoned = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/zoned.toml");
    room.bad(&["trace", "mrc", "t.csv", "--check", zoned], &["--check zoned-example: has zones, or its map in DRAM"]);
}

#[test]
fn tables_say_where_more_memory_gains_nothing() {
    let room = Room::with("t.csv", &trace());
    let text = room.good(&["trace", "mrc", "t.csv"]);
    let line = |has: &str| text.lines().find(|l| l.contains(has)).unwrap_or_else(|| panic!("{has}: {text}"));
    assert_eq!(text.lines().next(), Some("Map hits by memory: t.csv"));
    line("hits of reads in %, if they alone use the map");
    line("hits of writes in %, if they alone use the map");
    line("hits of reads and writes in %, if they share a map");
    assert!(
        line("pages of 4 KiB: 498 touched; beyond 1988 KiB (91.7 %)").ends_with("1988 KiB hold all that comes again"),
        "{text}"
    );
    // A sample of more pages than there are has all of them, and sizes to one in a hundred.
    let sampled = room.good(&["trace", "mrc", "t.csv", "--sample", "1000"]);
    let touched = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| Some(line.split_once(" touched")?.0.to_owned())).collect()
    };
    assert_eq!((touched(&sampled), touched(&sampled).len()), (touched(&text), 9));
    assert_eq!(sampled.lines().count(), text.lines().count());
    // With few pages in the sample, the output says so, and has no figures of small maps.
    let small = room.good(&["trace", "mrc", "t.csv", "--sample", "100", "--page-kib", "4"]);
    assert!(small.contains("Note: t.csv: ESTIMATED from a sample of the pages"), "{small}");
    let cells = |text: &str, size: &str| text.lines().find(|l| l.trim().starts_with(size)).map(str::trim).map(str::len);
    assert_eq!(cells(&small, "4 KiB"), Some(5));
    assert!(cells(&text, "4 KiB") > Some(20) && cells(&small, "2 MiB") > Some(20), "{small}");
    room.write("u.csv", &trace());
    let two = room.good(&["trace", "mrc", "t.csv", "u.csv", "--out", "out"]);
    assert_eq!(two.matches("Map hits by memory: ").count(), 2);
    let doc = json(&room.read("out/result.json"));
    assert_eq!(doc["charts"].as_array().expect("charts").len(), 6);
    assert!(room.read("out/report.html").contains("one map for reads and writes"));
}

#[test]
fn mistakes_are_named() {
    let room = Room::with("t.csv", &trace());
    room.write("w.csv", "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,F,0,0,,\n");
    let says = room.good(&["trace", "mrc", "w.csv"]);
    assert!(says.starts_with("Map hits by memory: w.csv\n\nno read or write has an address\n"), "{says}");
    room.write("once.csv", "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n");
    let says = room.good(&["trace", "mrc", "once.csv", "--check", "ufs21-64g"]);
    assert!(says.contains("nothing to compare: no page is read twice\n"), "{says}");
    room.bad(&["trace", "mrc", "t.csv", "--page-kib", "5"], &["--page-kib: 5: expected a power of two, 1024 at most"]);
    room.bad(&["trace", "mrc", "t.csv", "--page-kib", "4,4"], &["pages of 4 KiB are given twice"]);
    room.bad(&["trace", "mrc", "t.csv", "t.csv"], &["t.csv: is given twice"]);
    room.bad(&["trace", "mrc", "-", "--check", "ufs21-64g"], &["--check reads the trace a second time"]);
    room.bad(&["trace", "mrc", "t.csv", "--check", "none"], &["none"]);
    room.bad(&["trace", "mrc", "t.csv", "--check", "ufs21-64g", "--set", "lu.0.blocks=99"], &["t.csv:2: "]);
    room.bad(&["trace", "mrc", "t.csv", "--sample", "9"], &["--sample", "64"]);
    // Only options that it has are advised.
    room.write(
        "far.csv",
        &format!("time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,{},4096,,\n", 1_u64 << 41),
    );
    let far = room.bad(&["trace", "mrc", "far.csv", "--check", "ufs21-64g"], &["(--check and --gain: ", "--fold"]);
    assert!(!far.contains("--device"), "{far}");
    let late = 40 * 86_400_000_000_000_u64;
    room.write(
        "long.csv",
        &format!("time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n{late},R,0,4096,,\n"),
    );
    let long = room.bad(&["trace", "mrc", "long.csv", "--gain", "ufs31-256g"], &["; give a shorter part of it"]);
    assert!(!long.contains("--"), "{long}");
}

#[test]
fn what_a_map_of_the_size_of_the_knee_brings() {
    let room = Room::with("t.csv", &trace_every(1_000_000));
    let doc = room.json(&["trace", "mrc", "t.csv", "--gain", "ufs31-256g", "--json"]);
    let value = |variant: &str, metric: &str| {
        let rows = doc["rows"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["variant"] == variant && row["metric"] == metric);
        row.and_then(|row| row["simulated"].as_f64()).unwrap_or_else(|| panic!("{variant}: {metric}"))
    };
    // The reads come back to 500 pages of 4 MiB, so to 125 of 16 MiB: the knee is at 2 MiB of them.
    let [as_it_is, sram, hmb] = ["SRAM of the device", "SRAM, 2000 KiB", "HMB, 2 MiB"];
    assert!(value(sram, "map_loads") < 0.5 * value(as_it_is, "map_loads"));
    assert_eq!(value(hmb, "host_memory"), f64::from(2 << 20));
    assert_eq!((value(as_it_is, "host_memory"), value(sram, "host_memory")), (0.0, 0.0));
    assert!(value(sram, "read_latency_mean") < value(as_it_is, "read_latency_mean"));
    assert!(value("HPB, 4 MiB", "host_memory") > 0.0);
    // A millisecond apart, at queue depth 1: no read waits for the map, which the mapper has on the host.
    let zones = "zones, 13 KiB";
    assert_eq!(value(zones, "map_loads"), 0.0);
    assert!(value(zones, "host_memory") > 0.0 && value(zones, "device_map_memory") < f64::from(13 << 10));
    assert!(value(zones, "read_latency_mean") < value(as_it_is, "read_latency_mean"));
    // The last MiB of the device is more than a mapper leaves of it.
    let mut far = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
    for i in 0..200u64 {
        let _ = writeln!(far, "{},R,{},4096,,", i * 1_000_000, if i % 2 == 0 { 0 } else { (256u64 << 30) - (1 << 20) });
    }
    room.write("far.csv", &far);
    let shown = room.good(&["trace", "mrc", "far.csv", "--gain", "ufs31-256g"]);
    assert!(shown.contains("\nSRAM of the device ") && !shown.contains("\nzones, "), "{shown}");
    let zoned = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/zoned.toml");
    room.bad(&["trace", "mrc", "t.csv", "--gain", zoned], &["zoned-example: has zones, or its map in DRAM"]);
    let notes = doc["notes"].to_string();
    assert!(
        notes.contains("takes the place of the device's own map cache") && notes.contains("log-structured mapper"),
        "{notes}"
    );
    let shown = room.good(&["trace", "mrc", "t.csv", "--gain", "nvme-dramless-1t"]);
    assert!(shown.contains("map in") && shown.contains("HMB, 4 MiB") && !shown.contains("HPB, "), "{shown}");
    assert!(shown.contains("\nzones, 14 KiB ") && shown.contains("Note: Map in SRAM: it takes the place"), "{shown}");
    let args = ["trace", "mrc", "t.csv", "--gain", "ufs31-256g", "--page-kib", "4"];
    room.bad(&args, &["--gain ufs31-256g: it has pages of 16 KiB; name that size with --page-kib"]);
    let coarse = concat!(env!("CARGO_MANIFEST_DIR"), "/../workload/tests/data/own_cloudphysics.csv.gz");
    let shown = room.good(&["trace", "mrc", coarse, "--gain", "ufs31-256g"]);
    assert!(shown.contains("COARSE TIMES") && shown.contains("--spread-ties of replay spreads them"), "{shown}");
    assert!(!room.good(&["trace", "mrc", coarse]).contains("COARSE TIMES"), "hits do not depend on times");
    room.bad(&["trace", "mrc", "t.csv", "--fold"], &["required arguments were not provided"]);
    room.bad(&["trace", "mrc", "-", "--gain", "ufs31-256g"], &["--gain reads the trace a second time"]);
}
