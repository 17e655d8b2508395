// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath dev bench --flat` runs each bench at three lengths and says what a request cost at each.

use crate::common::{Room, rows};

#[test]
fn flat_benches_have_three_lengths() {
    let room = Room::new();
    let args = ["dev", "bench", "--flat", "flat-hpb-64g", "--ios", "1000", "--repeat", "1"];
    let table = room.good(&args);
    let lines: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert_eq!(lines[0][..4], ["requests", "1000", "10000", "100000"]);
    assert_eq!(lines[1][0], "flat-hpb-64g");
    assert!(lines[1][1..4].iter().all(|ns| ns.parse::<f64>().is_ok_and(|ns| ns > 0.0)), "{table}");

    let doc = room.json(&[&args[..], &["--json"]].concat());
    let variants: Vec<&str> = rows(&doc).iter().map(|r| r["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, ["1000 requests", "10000 requests", "100000 requests"]);
    assert_eq!(doc["simulated_ios"], 111_000);
}

#[test]
fn flat_benches_refuse_what_makes_no_sense() {
    let room = Room::new();
    room.bad(&["dev", "bench", "--flat", "qd1"], &["no flat bench has 'qd1' in its name", "flat-hpb-64g"]);
    room.bad(&["dev", "bench", "--flat", "--ios", "0"], &["0 is not in 100..=1000000000000"]);
    room.bad(&["dev", "bench", "--repeat", "0"], &["0 is not in 1..=4294967295"]);
}

#[test]
fn zones_are_read_and_written() {
    let room = Room::new();
    let shown = room.good(&["dev", "bench", "zones", "--ios", "100000", "--repeat", "1"]);
    let names: Vec<&str> = shown.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["qd16-zones", "zones-write"], "{shown}");
}
