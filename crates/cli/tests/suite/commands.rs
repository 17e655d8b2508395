// SPDX-License-Identifier: MIT OR Apache-2.0
//! Successful commands: what they print and write, and that it is reproducible.

use crate::common::running::Running;
use crate::common::{EXPERIMENT, HEADER, JOB, Room, figure, json, row, text, value};
use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

fn without_process(mut document: Value) -> Value {
    assert!(document["process"]["cpu_seconds"].is_number() && document["process"]["peak_rss_bytes"].is_u64());
    document.as_object_mut().expect("an object").remove("process");
    document
}

/// The document of an experiment has the fields of docs/formats/results.md.
#[test]
fn run_writes_document_and_page() {
    let room = Room::with("small.toml", EXPERIMENT);
    let shown = room.good(&["reproduce", "small.toml"]);
    for part in ["A small experiment", "HPB off", "HPB dcm", "random read", "out/small/result.json"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let document = json(&room.read("out/small/result.json"));
    let keys: Vec<&String> = document.as_object().expect("an object").keys().collect();
    let wanted =
        "schema experiment title description rows charts simulated_ios seed configuration notes citations process";
    for key in wanted.split(' ') {
        assert!(keys.iter().any(|k| *k == key), "{key} in {keys:?}");
    }
    assert_eq!(document["schema"], "readpath-results/2");
    assert_eq!((&document["experiment"], &document["seed"]), (&Value::from("small"), &Value::from(7)));
    assert_eq!(document["citations"][0], "nobody");
    assert_eq!(document["process"]["command"], serde_json::json!(["readpath", "reproduce", "small.toml"]));
    assert!(room.read("out/small/report.html").contains(">readpath reproduce small.toml</pre>"));
    assert!(document["simulated_ios"].as_u64() >= Some(2 * 4 * 1024), "every record of every variant is read");
    assert_eq!(document["configuration"]["experiment"]["workload"]["args"][0], "-r");
    let rows = document["rows"].as_array().expect("rows");
    for row in rows {
        assert_eq!(row["case"], "reads");
        assert!(row["variant"] == "HPB off" || row["variant"] == "HPB dcm", "{row}");
        assert!(row["metric"].is_string() && row["unit"].is_string() && row["simulated"].is_number(), "{row}");
        assert!(["fit", "predicted", "measured"].contains(&row["origin"].as_str().unwrap_or("")), "{row}");
    }
    let published: Vec<&Value> = rows.iter().filter(|r| !r["published"].is_null()).collect();
    assert_eq!(published.len(), 1);
    let value = |row: &Value, key: &str| row[key].as_f64().expect("a number");
    let error = 100.0 * (value(published[0], "simulated") - 294.8) / 294.8;
    assert!((value(published[0], "error_percent") - error).abs() < 1e-6);
    // A page that loads nothing from anywhere.
    let page = room.read("out/small/report.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for outside in ["src=\"http", "href=\"http", "<script src", "<link", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert_eq!(room.files().iter().filter(|f| f.to_string_lossy().contains(".part")).count(), 0);
    // The document gives the same page.
    assert_eq!(room.good(&["report", "out/small/result.json", "--output", "again.html"]), "again.html\n");
    assert_eq!(room.read("again.html"), page);
}

#[test]
fn the_same_every_time() {
    let room = Room::with("small.toml", EXPERIMENT);
    let run = |more: &[&str], out: &str| {
        let printed = room.good(&[&["reproduce", "small.toml", "--json", "--out", out], more].concat());
        assert_eq!(json(&printed), json(&room.read(&format!("{out}/result.json"))), "printed as written");
        // All the text but for the process, not only the values.
        let (rest, process) = printed.split_once("\"process\"").expect("a process");
        assert!(!process.contains("rows"), "the process comes last");
        rest.to_owned()
    };
    let one = run(&["--threads", "1"], "one");
    assert_eq!(run(&["--threads", "1"], "again"), one);
    assert_eq!(run(&["--threads", "2"], "two"), one);
    assert_eq!(run(&["--threads", "4000000000"], "many"), one);
    assert_eq!(run(&[], "all"), one);
    let page = |out| room.read(&format!("{out}/report.html")).lines().filter(|l| !l.contains("CPU")).count();
    assert_eq!(page("one"), page("two"));
    assert_ne!(run(&["--set", "flash.read_us=60"], "other"), one, "an override changes results");
    let rows = |text: &str| json(&format!("{}}}", text.trim_end().trim_end_matches(',')))["rows"].clone();
    assert_eq!(rows(&run(&["--wire"], "wire")), rows(&one), "through UPIUs as bytes, nothing is different");
    let chosen = room.json(&["reproduce", "small.toml", "--json", "--variant", "HPB dcm"]);
    assert!(chosen["rows"].as_array().expect("rows").iter().all(|r| r["variant"] == "HPB dcm"));
}

/// The published command line, with another size.
#[test]
fn iozone_as_published() {
    let room = Room::new();
    let names: Vec<String> = (1..=16).map(|i| format!("mnt/tmp_{i}")).collect();
    let line = "iozone --hpb dcm --json -- -r 4k -+n -i2 -ecI -t 16 -l 16 -u 16 -s 1m -F";
    let args: Vec<&str> = line.split(' ').chain(names.iter().map(String::as_str)).collect();
    let document = without_process(room.json(&args));
    let read = row(&document, &[("metric", "random_read_throughput")]).expect("the row");
    assert_eq!((&read["unit"], &read["variant"]), (&Value::from("MiB/s"), &Value::from("HPB dcm")));
    assert!(read["simulated"].as_f64() > Some(10.0));
    assert!(row(&document, &[("metric", "random_write_throughput")]).is_some(), "-i2 writes too");
    assert!(room.files().is_empty(), "nothing is written without --out");
    // Both sides by default, and the table.
    let shown = room.good(&["iozone", "--fill", "random", "--seed", "3", "--", "-i2", "-s", "1m"]);
    assert!(shown.contains("HPB off") && shown.contains("HPB dcm") && shown.contains("requests simulated"), "{shown}");
}

#[test]
fn fio_in_both_shapes() {
    let room = Room::with("job.fio", JOB);
    let shown = room.good(&["fio", "job.fio", "--fill", "none"]);
    assert!(shown.contains("read IOPS") && shown.contains("HPB dcm"), "{shown}");
    let args = ["fio", "job.fio", "--hpb", "dcm", "--output-format"];
    let plain = room.good(&[&args[..], &["json"]].concat());
    let document = json(&plain);
    assert!(document["fio version"].as_str().is_some_and(|v| v.starts_with("fio-")));
    let job = &document["jobs"][0];
    assert_eq!((&job["jobname"], &job["job options"]["iodepth"]), (&Value::from("reader"), &Value::from("8")));
    assert_eq!(job["read"]["total_ios"], 1024);
    for key in ["io_bytes", "bw_bytes", "bw", "iops", "runtime", "slat_ns", "clat_ns", "lat_ns", "iops_mean"] {
        assert!(!job["read"][key].is_null(), "{key}");
    }
    assert!(job["read"]["clat_ns"]["percentile"]["99.000000"].is_u64());
    for key in ["write", "trim", "sync", "iodepth_level", "latency_us", "usr_cpu", "error", "groupid"] {
        assert!(!job[key].is_null(), "{key}");
    }
    assert!(job["read"]["clat_ns"]["bins"].is_null());
    let plus = room.json(&[&args[..], &["json+"]].concat());
    assert!(plus["jobs"][0]["read"]["clat_ns"]["bins"].is_object());
    // Into a file, in addition to our own document.
    assert_eq!(room.good(&[&args[..], &["json", "--output", "fio.json", "--out", "out"]].concat()), "");
    assert_eq!(room.read("fio.json"), plain);
    assert_eq!(json(&room.read("out/result.json"))["schema"], "readpath-results/2");
}

/// Every command takes the mode; documents name it, and the host loads what it has counted.
#[test]
fn host_control_mode_is_a_word_away() {
    let room = Room::new();
    let job = "[job]\nrw=randread\nbs=4k\nsize=16m\nioengine=libaio\niodepth=8\ntime_based\nruntime=1\n";
    room.write("job.fio", job);
    room.write("trace.csv", &read_trace(20_000));
    let iozone = ["iozone", "--json", "--hpb", "hcm", "--", "-r", "4k", "-+n", "-i2", "-ecI", "-t", "8", "-s", "32m"];
    for (command, variant) in [
        (&["fio", "job.fio", "--json", "--hpb", "hcm"][..], "HPB hcm"),
        (&iozone, "HPB hcm"),
        (&["replay", "trace.csv", "--json", "--hpb", "hcm"], "HPB hcm"),
        (&["compare", "job.fio", "--json", "--seeds", "1", "--hpb", "off,hcm"], "HPB hcm"),
        (
            &[
                "compare",
                "job.fio",
                "--json",
                "--seeds",
                "1",
                "--vary",
                "few:hpb=hcm,activation_thld=2",
                "--vary",
                "no:hpb=off",
            ],
            "few",
        ),
    ] {
        let document = room.json(command);
        let row = |metric: &str| value(&document, variant, metric);
        assert!(row("map_req_cnt") >= 1.0 && row("hit_cnt") > 1000.0, "{command:?}");
        assert!(row("rcmd_noti_cnt") < 1.0, "{command:?}: the device recommends nothing");
        let text = document["configuration"].to_string();
        assert!(text.contains(r#""control":"host""#) && text.contains(r#""mode":"host""#), "{command:?}: {text}");
    }
    room.bad(
        &["fio", "job.fio", "--hpb", "hcm", "--set", "hpb.control_modes=device"],
        &["--hpb: hpb.control: is \"host\", but the device offers \"device\" only"],
    );
    let depth = ["compare", "job.fio", "--vary", "a:hpb=hcm,inflight_map_req=40", "--vary", "b:hpb=off"];
    room.bad(&depth, &["--vary a: inflight_map_req: is 40; it must be 1 to 30"]);
}

/// Random reads of single blocks in 16 MiB.
fn read_trace(reads: u64) -> String {
    let mut trace = HEADER.to_owned();
    (0..reads).for_each(|i| trace += &format!("{},R,{},4096,,\n", i * 50_000, i * 2_654_435_761 % 4096 * 4096));
    trace
}

/// A row that is called one with HPB is no run without.
#[test]
fn what_is_called_hpb_has_it() {
    let room = Room::with("job.fio", "[global]\nrw=randread\nsize=8m\nnumber_ios=500\n[a]\n");
    room.write("trace.csv", &read_trace(500));
    let prototype = "--set: hpb.prototype: makes the device one of the prototype";
    for (command, set, says) in [
        (&["fio", "job.fio"][..], "hpb.prototype.listed_changes=9", prototype),
        (&["replay", "trace.csv"], "hpb.prototype.group_kib=4096", prototype),
        (&["compare", "job.fio"], "hpb.prototype.group_kib=4096", prototype),
        (&["reproduce", "tiobench"], "hpb.prototype.group_kib=4096", prototype),
        (&["reproduce", "policies"], "hpb.prototype.group_kib=4096", prototype),
        (&["fio", "job.fio"], "lu[0].hpb=false", "--set: lu[0].hpb: is false, as for all logical units"),
        (&["replay", "trace.csv", "--policy", "lru"], "lu[0].hpb=false", "--set: lu[0].hpb: is false, as for all"),
        (&["fio", "job.fio", "--hpb", "hcm"], "hpb.control=device", "--set: hpb.control: is \"device\", but variant"),
    ] {
        room.bad(&[command, &["--set", set]].concat(), &[says]);
    }
    let off = ["--json", "--set", "hpb.v2.single_kib=4", "--set", "hpb.v2.enabled=false"];
    for command in [&["fio", "job.fio"][..], &["replay", "trace.csv"], &["compare", "job.fio", "--seeds", "1"]] {
        let notes = room.json(&[command, &off].concat())["notes"].to_string();
        assert_eq!(notes.matches("'HPB dcm' ran WITHOUT HPB: the device has it switched off").count(), 1, "{notes}");
        assert!(!notes.contains("'HPB off' ran"), "{notes}");
    }
}

/// HPB 2.0 is a table of the device, and what the host sends a key of a variant.
#[test]
fn longer_hpb_reads() {
    let room = Room::new();
    let job = "[job]\nrw=randread\nbs=32k\nsize=256m\nio_size=64m\nramp_time=1\ntime_based\nruntime=1\nioengine=libaio\niodepth=8\n";
    room.write("job.fio", job);
    let v2 = "hpb.v2.entries_in_ehs=true,map_cache.size_kib=32";
    let variants = [
        "one:hpb=dcm,map_cache.size_kib=32".to_owned(),
        format!("first:hpb=dcm,hpb.v2.single_kib=32,{v2}"),
        format!("announced:hpb=dcm,long_reads=pre-request,hpb.v2.single_kib=4,{v2}"),
        format!("all:hpb=dcm,long_reads=ehs,hpb.v2.single_kib=4,{v2}"),
    ];
    let mut args = vec!["compare", "job.fio", "--json", "--seeds", "1", "--fill", "random"];
    variants.iter().for_each(|v| args.extend(["--vary", v]));
    let document = room.json(&args);
    let row = |variant: &str, metric: &str| figure(&document, &[("variant", variant), ("metric", metric)]);
    assert_eq!(row("one", "hit_cnt"), Some(0.0), "HPB 1.0 has one block for each HPB READ");
    for variant in ["first", "announced", "all"] {
        assert!(row(variant, "hit_cnt") > Some(1000.0), "{variant}");
        assert_eq!(row(variant, "pre_req_cnt").is_some(), variant == "announced");
    }
    // Scattered blocks: the entry of the first does not give the place of the others.
    let hits = |variant| row(variant, "hpb_hit_ratio").expect("a ratio");
    assert!(hits("one") == 0.0 && hits("first") < 30.0 && hits("announced") > 95.0 && hits("all") > 95.0);
    let text = document["configuration"].to_string();
    assert!(text.contains(r#""v2":{"#) && text.contains(r#""single_kib":32"#), "{text}");
    let needs = ["compare", "job.fio", "--hpb", "dcm", "--vary", "long_reads=pre-request,first"];
    room.bad(&needs, &["long_reads = \"pre-request\" needs a device with HPB 2.0 (hpb.v2)"]);
    room.bad(
        &["fio", "job.fio", "--set", "hpb.v2.single_kib=30"],
        &["--set: hpb.v2.single_kib: is 30; it must be a multiple of 4"],
    );
}

/// Reads, then four times as many writes as a device of five superblocks has room for. A device that cannot write them
/// all shows its reads, says what is missing, and ends with 1; one that can shows everything.
#[test]
fn writes_go_on_when_the_spare_area_is_used_up() {
    let room = Room::new();
    let phase = |name: &str, rest: &str| {
        format!("[{name}]\nfilename=f\nbs=4k\nsize=60m\nioengine=libaio\niodepth=8\nstonewall\n{rest}\n")
    };
    let job = phase("reads", "rw=randread\nio_size=8m") + &phase("writes", "rw=randwrite\nio_size=960m\nnorandommap");
    room.write("job.fio", &job);
    let small = ["--set", "geometry.blocks_per_plane=18", "--set", "lu[0].blocks=16384"];
    let output = room.output(&[&["fio", "job.fio", "--json", "--out", "out"], &small[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document = json(text(&output.stdout));
    assert_eq!(json(&room.read("out/result.json")), document, "written as printed");
    let value = |variant: &str, metric: &str| value(&document, variant, metric);
    for variant in ["HPB off", "HPB dcm"] {
        assert!(value(variant, "read_throughput") > 0.0 && value(variant, "write_throughput") > 0.0);
        assert!(value(variant, "data_write_amplification") > 1.0 && value(variant, "superblocks_collected") > 5.0);
        assert!(value(variant, "map_writes") > 0.0);
    }
}

#[test]
fn power_cuts_are_survived_and_measured() {
    let room = Room::with("job.fio", "[job]\nrw=randrw\nbs=4k\nsize=16m\nfsync=16\n");
    let shown = room.good(&["power", "job.fio", "--cuts", "3", "--out", "cut"]);
    assert!(shown.contains("blocks wrong") && shown.contains("HPB dcm"), "{shown}");
    let document = json(&room.read("cut/result.json"));
    let value = |metric| figure(&document, &[("metric", metric)]).expect(metric);
    assert_eq!((value("power_cuts"), value("blocks_wrong")), (3.0, 0.0));
    assert!(value("blocks_checked") >= 4096.0);
    assert!(value("recovery_time_max") > 0.0 && value("recovery_time_max") <= value("recovery_time_bound"));
    room.write("timed.fio", "[job]\nrw=randread\nbs=4k\nsize=16m\nruntime=1\ntime_based=1\n");
    room.good(&["power", "timed.fio", "--cuts", "2", "--hpb", "off"]);
    let short = ["power", "timed.fio", "--cuts", "10"];
    room.bad(&short, &["10 power cuts take 1", "the workload runs for 1"]);
    room.bad(&["power", "job.fio", "--iodepth", "2"], &["--iodepth is for traces, but job.fio is a fio job"]);
    room.bad(&["power", "job.fio", "--off", "soon"], &["--off", "\"soon\""]);
    for off in ["1001s", "2000000s", "18446744073s"] {
        room.bad(&["power", "job.fio", "--off", off], &["--off: ", off, "at most 1000 s are possible"]);
    }
    let often = ["power", "job.fio", "--cuts", "1001", "--off", "1000s"];
    room.bad(&often, &["--off: 1001 times 1000s", "at most 1000000 s in all"]);
    room.good(&["power", "job.fio", "--cuts", "1", "--hpb", "off", "--off", "1000s"]);
}

#[test]
fn what_rules_take_is_lost_by_rule() {
    let room = Room::with("job.fio", "[job]\nrw=write\nbs=4k\nsize=4m\nfsync=16\n");
    room.write("rules", "0s drop write 4K-16K\n0s slow flush every 8 1ms\n9s drop off\n");
    let ask = ["power", "job.fio", "--hpb", "off", "--cuts", "1", "--faults", "rules", "--out", "cut"];
    let output = room.output(&ask);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("LOST BY RULE: of 1024 blocks") && shown.contains("lost by rule"), "{shown}");
    let document = json(&room.read("cut/result.json"));
    let value = |metric| figure(&document, &[("metric", metric)]).expect(metric);
    assert_eq!((value("blocks_wrong"), value("blocks_wrong_by_rule")), (0.0, 3.0));
    let rules: Vec<_> =
        document["notes"].as_array().expect("notes").iter().filter(|note| !note["numbers"].is_null()).collect();
    let note = rules.iter().find(|note| note["text"].as_str().is_some_and(|text| text.contains("rule 1, ")));
    let text = note.expect("a note of the rule")["text"].as_str().expect("text");
    assert!(text.ends_with("rule 1, drop write 4096-16384: acted on 3 of the 3 requests that it met"), "{text}");
    assert_eq!(document["configuration"]["power"]["faults"][1], "0s slow flush every 8 1ms");
    assert!(shown.contains("rules: line 3: the workload had ended before"), "{shown}");
    for (text, what) in [
        ("0s cut 1s\n", "rules: line 1, column 4: cut 1s: 'cut' is for a served device"),
        ("0s drop\n1s slow client 2 1ms\n", "rules: line 2, column 9: slow client 2 1ms: 'client' has no meaning"),
        ("0s drop 0-999G\n", "rules: line 1: drop 0-1072668082176: the largest unit has"),
    ] {
        room.write("rules", text);
        room.bad(&ask[..8], &[what]);
    }
    room.bad(&["power", "job.fio", "--faults", "none"], &["none"]);
}

#[test]
fn power_cuts_under_a_trace() {
    let room = Room::new();
    let mut rows = HEADER.to_owned();
    for i in 0..2000 {
        let op = if i % 3 == 0 { "W" } else { "R" };
        rows += &format!("{},{op},{},4096,,\n", i * 100_000, (i * 7919 % 5000) * 4096);
    }
    room.write("t.csv", &rows);
    let cut = ["power", "t.csv", "--cuts", "3", "--fill", "random"];
    let output = room.output(&[&cut[..], &["--hpb", "dcm", "--trace-io", "io.json", "--out", "cut"]].concat());
    let (shown, said) = (crate::common::text(&output.stdout), crate::common::text(&output.stderr));
    assert!(output.status.success() && said.starts_with("io.json: "), "{said}");
    assert!(shown.starts_with("No confirmed data was lost in 3 power cuts: all "), "{shown}");
    assert!(shown.contains("\n\nPower cuts under a replay of t.csv\n"), "{shown}");
    assert!(room.read("io.json").contains("no reply"), "requests that a cut took");
    let document = json(&room.read("cut/result.json"));
    let value = |metric| figure(&document, &[("metric", metric)]).expect(metric);
    assert_eq!((value("power_cuts"), value("blocks_wrong")), (3.0, 0.0));
    assert!(value("blocks_checked") >= 2000.0 && value("requests") > 500.0);
    assert_eq!(document["configuration"]["replay"]["preload"], "random");
    assert_eq!(document["inputs"][0]["file"], "t.csv");
    room.bad(&["power", "t.csv", "--fill", "none"], &["--fill none is for jobs"]);
    room.bad(&["power", "t.csv", "--cuts", "2001"], &["2001 power cuts", "has 2000"]);
    room.bad(&["power", "t.csv", "--iodepth", "2", "--speed", "2"], &["do not count with --iodepth"]);
}

#[test]
fn trace() {
    let room = Room::with("job.fio", JOB);
    let trace = |more: &[&str]| {
        let output = room.output(&[&["fio", "job.fio", "--hpb", "dcm", "--trace-io", "t.json"], more].concat());
        assert!(output.status.success());
        let said = text(&output.stderr).to_owned();
        (json(&room.read("t.json")).as_array().expect("an array").len(), said)
    };
    let (events, said) = trace(&[]);
    assert!(events > 4 * 1024, "{events} events of 1024 requests");
    assert_eq!(said, format!("t.json: {events} events\n"));
    let first = room.read("t.json");
    trace(&[]);
    assert_eq!(room.read("t.json"), first, "the same bytes every time");
    let (few, _) = trace(&["--trace-io-limit", "10"]);
    assert!(few < 600, "{few} events of ten requests");
    // A trace begins at a request or at a time.
    let numbers = |file: &str| -> Vec<u64> {
        let all = json(&room.read(file));
        let spans = all.as_array().expect("an array").iter().filter(|e| e["cat"] == "request");
        spans.map(|e| e["args"]["request"].as_u64().expect("a number")).collect()
    };
    trace(&["--trace-io-from", "500", "--trace-io-limit", "10"]);
    let mut found = numbers("t.json");
    found.sort_unstable();
    assert_eq!(found, (501..=510).collect::<Vec<u64>>());
    trace(&["--trace-io-from", "10ms", "--trace-io-limit", "10"]);
    let later = json(&room.read("t.json"));
    let times = later.as_array().expect("an array").iter().filter(|e| e["cat"] == "request");
    assert!(times.map(|e| e["ts"].as_f64().expect("a time")).all(|us| us >= 10_000.0));
    let (_, said) = trace(&["--trace-io-from", "1000000"]);
    assert!(said.contains("the run ended before --trace-io-from") && numbers("t.json").is_empty(), "{said}");
    room.bad(
        &["fio", "job.fio", "--trace-io", "t.json", "--trace-io-from", "x"],
        &["\"x\" is not a time such as 10ms"],
    );
    room.bad(&["fio", "job.fio", "--trace-io-from", "5"], &["required arguments were not provided"]);
    // A trace of one run of an experiment.
    room.write("small.toml", EXPERIMENT);
    let output =
        room.output(&["reproduce", "small.toml", "--variant", "HPB dcm", "--out", "out", "--trace-io", "u.json"]);
    assert!(output.status.success() && json(&room.read("u.json")).is_array());
}

#[test]
fn devices() {
    let room = Room::new();
    let list = room.good(&["device", "list"]);
    let names: Vec<&str> = list.lines().filter_map(|l| l.split(' ').next()).collect();
    for name in ["ufs21-64g", "ufs31-128g", "ufs31-256g", "ufs40-512g", "mqsim-64g"] {
        assert!(names.contains(&name), "{name} in {list}");
    }
    let files: Vec<String> = names.iter().map(|n| format!("{n}.toml")).collect();
    for (name, file) in names.iter().zip(&files) {
        // What is shown is a device file, which shows as itself and runs as itself.
        let shown = room.good(&["device", "show", name]);
        assert!(shown.lines().any(|l| l.starts_with("# ")), "facts follow as comments");
        room.write(file, &shown);
        assert_eq!(room.good(&["device", "show", file]), shown);
    }
    let mut check = vec!["device", "check"];
    check.extend(files.iter().map(String::as_str));
    let checked = room.good(&check);
    assert_eq!(checked.lines().count(), names.len());
    assert!(checked.starts_with("ufs21-64g.toml: ufs21-64g is a device\n"), "{checked}");
    let changed =
        room.good(&["device", "show", "ufs21-64g", "--set", "map_cache.size_kib=512", "--set", "lu[0].blocks=4096"]);
    assert!(changed.contains("size_kib = 512") && changed.contains("blocks = 4096"), "{changed}");
    // The example has dies and zones of the paper (FAST 2026), which names 5,376 KB for separate buffers.
    let zoned = room.good(&["device", "show", concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/zoned.toml")]);
    let says =
        ["and 147 are for data, 128 of them for zones\n", "zones of unit 1: 64, placed by 512 bytes; ", " 5376 KiB\n"];
    assert!(says.iter().all(|says| zoned.contains(says)), "{zoned}");
    room.write("job.fio", JOB);
    let run = |device| without_process(room.json(&["fio", "job.fio", "--json", "--device", device]))["rows"].clone();
    assert_eq!(run("ufs21-64g.toml"), run("ufs21-64g"));
}

#[test]
fn help_and_version() {
    let room = Room::new();
    for command in [
        &[][..],
        &["reproduce"],
        &["iozone"],
        &["fio"],
        &["replay"],
        &["compare"],
        &["device"],
        &["device", "list"],
        &["device", "show"],
        &["device", "check"],
        &["report"],
        &["dev"],
        &["dev", "bench"],
    ] {
        let help = room.good(&[command, &["--help"]].concat());
        assert!(help.contains("Usage: readpath") && help.len() > 100, "{command:?}: {help}");
    }
    assert_eq!(room.good(&["--version"]), concat!("readpath ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn bench_prints_what_was_asked_for() {
    let room = Room::new();
    let args = ["dev", "bench", "qd1-sram-hit", "--ios", "2000", "--repeat", "1"];
    assert!(room.good(&args).starts_with("qd1-sram-hit "));
    let document = room.json(&[&args[..], &["--json"]].concat());
    assert_eq!(document["rows"][0]["metric"], "simulated_ios_per_cpu_second");
    let parsed = room.good(&["dev", "bench", "parse-", "--ios", "500", "--repeat", "2"]);
    assert_eq!(parsed.lines().count(), 14, "{parsed}");
    assert!(parsed.lines().all(|l| l.starts_with("parse-") && l.contains(" MB/s ")), "{parsed}");
    let help = room.good(&["dev", "bench", "--help"]);
    for name in
        ["qd31-hpb-hit", "mix-70-30-gc", "parse-msr", "parse-mobile", "parse-blkparse", "start-1t-rand", "flat-miss-1t"]
    {
        assert!(help.contains(&format!("  {name}  ")), "{name} in {help}");
    }
}

/// Ctrl-C in a run that would take long.
#[test]
fn interrupted() {
    let room = Room::with("job.fio", "[reader]\nrw=randread\nsize=1g\ntime_based\nruntime=100000\n");
    for more in [
        &["fio", "job.fio", "--out", "out"][..],
        &["fio", "job.fio", "--hpb", "off", "--trace-io", "t.json"],
        &["compare", "job.fio", "--out", "out"],
    ] {
        let before = room.files();
        let mut running = Running::start(&room, more);
        running.listens();
        running.has_worked(Duration::from_millis(200));
        running.interrupt();
        let output = running.end();
        assert_eq!(output.status.code(), Some(130), "{more:?}");
        assert_eq!(text(&output.stderr), "readpath: interrupted; nothing was written\n");
        assert_eq!(room.files(), before, "{more:?}");
    }
}

/// The reader of the output may close the pipe at any time.
#[test]
fn closed_pipes() {
    let room = Room::with("small.toml", EXPERIMENT);
    room.write("job.fio", JOB);
    room.write("device.toml", &room.good(&["device", "show", "ufs21-64g"]));
    room.good(&["reproduce", "small.toml", "--out", "out"]);
    for args in [
        &["reproduce", "small.toml"][..],
        &["reproduce", "small.toml", "--json"],
        &["fio", "job.fio", "--hpb", "off", "--output-format", "json"],
        &["device", "list"],
        &["device", "show", "ufs21-64g"],
        &["device", "check", "device.toml", "device.toml"],
        &["report", "out/result.json"],
        &["--help"],
        &["dev", "bench", "qd1-sram-hit", "--ios", "2000", "--repeat", "1"],
    ] {
        let mut command = Command::new(cargo_bin("readpath"));
        command.current_dir(room.path("")).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
        let status = child.wait().expect("it ends");
        assert!(status.success(), "{args:?}: {status} {said}");
        assert_eq!(said, "", "{args:?}");
    }
    // Standard error closed.
    let mut command = Command::new(cargo_bin("readpath"));
    command.args(["device", "show", "none"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    drop(child.stderr.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(2));
}
