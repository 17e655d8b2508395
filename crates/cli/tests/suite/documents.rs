// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same run gives the same document, byte for byte, whether commands pass as values or as UPIUs and on however many
//! threads; and the results of two small experiments are those that are kept in `tests/golden`, on every machine.

use crate::common::{Room, json};
use readpath_results::Document;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// Random reads and then writes over eight map pages on a device that keeps two of them, with four HPB regions active
/// at most: map misses, recommendations, map loads, evictions, programs.
const READS_THEN_WRITES: &str = r#"schema = "readpath-experiment/1"
name = "reads_then_writes"
title = "Random reads, then random writes"
description = ""
citations = []
device = "ufs21-64g"
seed = 11

[precondition]
layout = "random"
range = "files"

[workload]
kind = "iozone"
case = "128 MiB"
args = ["-r", "4k", "-+n", "-i2", "-ecI", "-t", "8", "-s", "16m"]

[[variant]]
name = "HPB off"
hpb = false
set = { "map_cache.size_kib" = 32 }

[[variant]]
name = "HPB dcm"
hpb = true
set = { "map_cache.size_kib" = 32, "hpb.max_active_regions" = 4, "lu[0].max_active_regions" = 4 }
"#;

/// Reads and writes of several sizes at the same time: entries become dirty and stale while they are used.
const MIXED: &str = r#"schema = "readpath-experiment/1"
name = "mixed"
title = "Reads among writes"
description = ""
citations = []
device = "ufs31-256g"
seed = 12

[precondition]
layout = "sequential"
range = "files"

[workload]
kind = "fio"
case = "64 MiB"
text = """
[mixed]
rw=randrw
rwmixread=80
bssplit=4k/90:16k/10
size=64m
ioengine=libaio
iodepth=8
fsync=64
"""

[[variant]]
name = "HPB off"
hpb = false
set = { "map_cache.size_kib" = 32 }

[[variant]]
name = "HPB dcm"
hpb = true
order = "recency"
set = { "map_cache.size_kib" = 32, "hpb.refresh_after_reads" = 2 }
"#;

/// The host decides what it holds: of eight regions four may be active, some are read more than others and all are
/// written now and then. Once with timers that run 20 times as fast as Linux's, once exactly as Linux does.
const HOST_CONTROL: &str = r#"schema = "readpath-experiment/1"
name = "host_control"
title = "Host control mode"
description = ""
citations = []
device = "ufs21-64g"
seed = 13

[precondition]
layout = "random"
range = "files"

[workload]
kind = "fio"
case = "128 MiB"
text = """
[mixed]
rw=randrw
rwmixread=95
bs=4k
size=128m
io_size=256m
random_distribution=zipf:0.9
ioengine=libaio
iodepth=4
"""

[[variant]]
name = "fast timers"
hpb = true
mode = "host"
timeout_polling_interval_ms = 10
read_timeout_ms = 50
read_timeout_expiries = 5
eviction_thld_exit = 40
eviction_thld_enter = 80
set = { "map_cache.size_kib" = 32, "hpb.max_active_regions" = 4, "lu[0].max_active_regions" = 4 }

[[variant]]
name = "as Linux"
hpb = true
mode = "host"
strict_linux = true
set = { "map_cache.size_kib" = 32, "hpb.max_active_regions" = 4, "lu[0].max_active_regions" = 4 }
"#;

/// Reads, writes in part, trims and flushes over eight map pages, faster than the device can serve them.
fn trace() -> String {
    let mut text = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
    for i in 0..4000u64 {
        let op = ["R", "R", "W", "R", "R", "FW", "R", "D", "R", "F"][(i % 10) as usize];
        let (place, bytes) = (i * 2_654_435_761 % (8 << 12) * 4096, if op == "F" { 0 } else { 2048 * (1 + i % 9) });
        writeln!(text, "{},{op},{place},{bytes},,", i * 8_000).expect("memory");
    }
    text
}

/// A document, printed and parsed.
fn made(room: &Room, args: &[&str]) -> (String, Value) {
    let text = room.good(args);
    for row in Document::from_json(&text).expect("a document").rows {
        assert!(row.metric.definition().is_some(), "the registry has no {:?}", row.metric);
    }
    let document = json(&text);
    (text, document)
}

/// All of a document as it is printed, but for the process, which comes last.
fn without_process(printed: &str) -> &str {
    let (results, process) = printed.split_once("\n  \"process\":").expect("a process");
    assert_eq!(process.matches('{').count(), 1, "nothing comes after it: {process}");
    results
}

/// Fails with the first line that differs, as whole documents say nothing to a reader.
#[track_caller]
fn same(one: &str, other: &str, what: &str) {
    if one != other {
        let differing = one.lines().zip(other.lines()).enumerate().find(|(_, (a, b))| a != b);
        panic!("{what}: the documents differ, first in line (from 0) {differing:?}");
    }
}

#[test]
fn the_same_document_however_it_is_made() {
    let room = Room::with("reads.toml", READS_THEN_WRITES);
    room.write("mixed.toml", MIXED);
    room.write("job.fio", "[mixed]\nrw=randrw\nbs=4k\nsize=16m\nioengine=libaio\niodepth=4\n");
    room.write("trace.csv", &trace());
    room.write("host.toml", HOST_CONTROL);
    let line = "iozone --json --fill random --seed 3 --set map_cache.size_kib=32";
    let iozone: Vec<&str> = line.split(' ').collect();
    let typed = ["--", "-r", "4k", "-+n", "-i2", "-ecI", "-t", "4", "-s", "16m"];
    for (command, rest) in [
        (&["reproduce", "reads.toml", "--json"][..], &[][..]),
        (&["reproduce", "mixed.toml", "--json"], &[]),
        (&["reproduce", "host.toml", "--json"], &[]),
        (&["fio", "job.fio", "--json", "--hpb", "off,dcm,hcm"], &[]),
        (&["replay", "trace.csv", "--json", "--fill", "random", "--vary", "map_cache.size_kib=32"], &[]),
        (&iozone, &typed),
    ] {
        let run = |more: &[&str]| made(&room, &[command, more, rest].concat()).0;
        let (first, document) = made(&room, &[command, &["--threads", "1"], rest].concat());
        let has = |variant: &str, metric: &str| {
            let rows = document["rows"].as_array().expect("rows");
            rows.iter().any(|r| r["variant"] == variant && r["metric"].as_str().is_some_and(|m| m.ends_with(metric)))
        };
        let of_size = if command[0] == "replay" { ", map_cache.size_kib=32" } else { "" };
        let names = match command {
            ["reproduce", "host.toml", ..] => &["fast timers", "as Linux"][..],
            ["fio", ..] => &["HPB off", "HPB dcm", "HPB hcm"],
            _ => &["HPB off", "HPB dcm"],
        };
        for variant in names.iter().map(|name| format!("{name}{of_size}")) {
            let variant = variant.as_str();
            assert!(has(variant, "read_throughput") && has(variant, "write_throughput"), "{command:?}, {variant}");
        }
        for more in
            [&["--threads", "1"][..], &["--threads", "2"], &["--wire", "--threads", "1"], &["--wire", "--threads", "2"]]
        {
            same(without_process(&first), without_process(&run(more)), &format!("{command:?} {more:?}"));
        }
        let other = run(&["--set", "firmware.flash_op_us=12.999"]);
        assert_ne!(without_process(&first), without_process(&other), "{command:?}: a nanosecond shows");
    }
}

/// Files that were read are identified by digest, job files by text too; the version is that of the program.
#[test]
fn a_document_says_what_it_was_made_of() {
    let room = Room::new();
    let job = "[mixed]\nrw=randrw\nbs=4k\nsize=1m\n";
    room.write("job.fio", &format!("include more.fio\n{job}"));
    room.write("more.fio", "[global]\nioengine=libaio\n");
    // What `sha256sum` prints of these bytes.
    room.write("abc.csv", "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n");
    let (sum, bytes) = ("bb117dfaf9292f56d90bde060492492bbe5b96477622d07c48320b3f351dd70e", 67);
    let (_, document) = made(&room, &["fio", "job.fio", "--json", "--hpb", "off"]);
    assert_eq!(document["program"], concat!("readpath ", env!("CARGO_PKG_VERSION")));
    let files: Vec<&str> =
        document["inputs"].as_array().expect("inputs").iter().map(|i| i["file"].as_str().expect("a name")).collect();
    assert_eq!(files, ["job.fio", "more.fio"]);
    assert_eq!(document["inputs"][0]["text"], format!("include more.fio\n{job}"));
    for command in [&["replay", "abc.csv"][..], &["compare", "abc.csv"], &["trace", "info", "abc.csv"]] {
        let (_, document) = made(&room, &[command, &["--json"]].concat());
        let expected = serde_json::json!([{ "file": "abc.csv", "bytes": bytes, "sha256": sum }]);
        assert_eq!(document["inputs"], expected, "{command:?}");
    }
    let (_, document) = made(&room, &["power", "job.fio", "--json", "--hpb", "off", "--cuts", "1"]);
    assert_eq!(document["inputs"][1]["file"], "more.fio");
}

/// FNV-1a, 64 bits: enough to see that a chart has changed.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// What an experiment showed, a line for each figure. Texts, which may change without any result, are left out.
fn results(experiment: &str) -> String {
    let room = Room::with("experiment.toml", experiment);
    let (_, document) = made(&room, &["reproduce", "experiment.toml", "--json"]);
    let mut text = format!("simulated_ios = {}\n", document["simulated_ios"]);
    for row in document["rows"].as_array().expect("rows") {
        let [case, variant, metric, unit] =
            ["case", "variant", "metric", "unit"].map(|key| row[key].as_str().expect("a text"));
        writeln!(text, "{case}, {variant}, {metric} = {} {unit}", row["simulated"]).expect("memory");
    }
    for chart in document["charts"].as_array().expect("charts") {
        writeln!(text, "chart {} = {:016x}", chart["id"], fnv1a(chart["series"].to_string().as_bytes()))
            .expect("memory");
    }
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The results of this commit on this machine against those that were checked in.
#[test]
fn results_are_those_that_were_kept() {
    let mut changed = String::new();
    for (name, experiment) in
        [("reads_then_writes", READS_THEN_WRITES), ("mixed", MIXED), ("host_control", HOST_CONTROL)]
    {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
        let now = results(experiment);
        if env::var_os("READPATH_KEEP_RESULTS").is_some() {
            fs::write(&path, &now).expect("a file");
            continue;
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        if now == kept {
            continue;
        }
        writeln!(changed, "{name}.txt: {} lines were kept, {} came now", kept.lines().count(), now.lines().count())
            .expect("memory");
        let differing = kept.lines().zip(now.lines()).filter(|(old, new)| old != new);
        for (old, new) in differing.take(12) {
            writeln!(changed, "  kept {old}\n  now  {new}").expect("memory");
        }
    }
    assert!(
        changed.is_empty(),
        "results have changed:\n{changed}\
         If only the machine is another one, this is a bug: results do not depend on it. If the model was changed on \
         purpose, keep the new results with\n    READPATH_KEEP_RESULTS=1 cargo test -p readpath --test suite \
         documents::\n\
         look at `git diff crates/cli/tests/golden`, and say in the commit why they changed."
    );
}
