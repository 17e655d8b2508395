// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath compare`: a known difference, variants that do not differ, seeds that change nothing, and the same results
//! for any number of threads.

use crate::common::{self, EXPERIMENT, HEADER, JOB, Room, notes};
use serde_json::Value;

/// Reads of 4 MiB at queue depth 8 over eight map pages, of which the device keeps `size_kib` KiB.
const SMALL: [&str; 2] = ["--set", "map_cache.size_kib=64"];

/// The document of a comparison, without what depends on the machine.
fn document(room: &Room, args: &[&str]) -> Value {
    let doc = room.document(&[&["compare"], args, &["--json"]].concat());
    assert_eq!((&doc["schema"], &doc["experiment"]), (&"readpath-results/2".into(), &"compare".into()));
    doc
}

fn row<'d>(doc: &'d Value, variant: &str, metric: &str) -> &'d Value {
    common::row(doc, &[("variant", variant), ("metric", metric)]).unwrap_or_else(|| panic!("{variant} {metric}"))
}

fn values(row: &Value) -> Vec<f64> {
    row["sample"]["values"].as_array().expect("values").iter().map(|v| v.as_f64().expect("a number")).collect()
}

/// Random reads in random order: every seed reads other blocks.
fn room() -> Room {
    Room::with("job.fio", &JOB.replace("size=4m", "size=128m\nio_size=4m\nnorandommap"))
}

#[test]
fn a_known_difference_is_found_and_paired() {
    let room = room();
    // Each read takes 10 us more on its way to the device; at queue depth 1 latency grows by just that.
    room.write("one.fio", &room.read("job.fio").replace("iodepth=8", "iodepth=1"));
    let args = ["one.fio", "--hpb", "off", "--vary", "host.submit_us=10,20"];
    let doc = document(&room, &[&args[..], &SMALL].concat());
    let (base, other) = ("HPB off, host.submit_us=10", "HPB off, host.submit_us=20");
    let (a, b) = (row(&doc, base, "read_latency_mean"), row(&doc, other, "read_latency_mean"));
    let (a_values, b_values) = (values(a), values(b));
    assert_eq!((a_values.len(), b_values.len()), (5, 5));
    assert!(a_values.iter().any(|v| *v != a_values[0]), "seeds read other blocks: {a_values:?}");
    let number = |v: &Value| v.as_f64().unwrap_or_else(|| panic!("{v} is no number"));
    let mean = |v: &[f64]| v.iter().sum::<f64>() / 5.0;
    assert!((number(&a["simulated"]) - mean(&a_values)).abs() < 1e-9);
    assert!(a["difference"].is_null());
    let difference = &b["difference"];
    assert_eq!(difference["base"], base);
    assert!((number(&difference["mean"]) - 10.0).abs() < 1e-9, "{difference}");
    assert!((number(&difference["percent"]) - 1000.0 / mean(&a_values)).abs() < 1e-9);
    // The workload's own spread is far larger than the difference between pairs, which is none.
    let interval = &a["sample"]["interval"];
    assert!(number(&interval["high"]) - number(&interval["low"]) > 0.01, "{interval}");
    assert_eq!(difference["finding"], "exact", "{difference}");
    // Intervals of means and of differences are Student's: 2.776 standard errors.
    let half = |v: &[f64]| 2.776_445_105 * (v.iter().map(|x| (x - mean(v)).powi(2)).sum::<f64>() / 4.0 / 5.0).sqrt();
    assert!((number(&interval["high"]) - mean(&a_values) - half(&a_values)).abs() < 1e-6);
    let (a, b) = (row(&doc, base, "read_throughput"), row(&doc, other, "read_throughput"));
    let paired: Vec<f64> = values(b).iter().zip(values(a)).map(|(b, a)| b - a).collect();
    let difference = &b["difference"];
    assert!((number(&difference["mean"]) - mean(&paired)).abs() < 1e-9);
    assert!((number(&difference["interval"]["high"]) - mean(&paired) - half(&paired)).abs() < 1e-6);
    assert!(number(&difference["interval"]["high"]) < 0.0 && difference["finding"] == "shown");
    assert!(half(&paired) < half(&values(a)), "pairing takes the workload's noise away");
    let said = notes(&doc);
    assert!(said.contains("95 % confidence interval (Student's t, 4 degrees of freedom, 2.776"), "{said}");
    assert!(said.contains("cover the random choices of the workload. They do not"), "{said}");
}

#[test]
fn chance_is_called_chance() {
    let room = room();
    // One more frame of the map cache, which has no hits, compared under noise of several sizes.
    let args = ["job.fio", "--hpb", "off", "--vary", "map_cache.size_kib=64,80", "--seeds", "3"];
    let doc = document(&room, &args);
    let rows: Vec<&Value> =
        doc["rows"].as_array().expect("rows").iter().filter(|r| !r["difference"].is_null()).collect();
    let mut found = std::collections::BTreeSet::new();
    for row in rows {
        let d = &row["difference"];
        let interval = d["interval"].as_object().map(|i| (i["low"].as_f64().unwrap(), i["high"].as_f64().unwrap()));
        let finding = d["finding"].as_str().expect("a word");
        found.insert(finding);
        match interval {
            Some((low, high)) => assert_eq!(finding == "not_shown", low <= 0.0 && 0.0 <= high, "{row}"),
            None => assert_eq!(finding == "identical", d["mean"] == 0.0, "{row}"),
        }
    }
    assert!(found.contains("not_shown") && found.contains("shown"), "{found:?}");
    let shown = room.good(&[&["compare"], &args[..]].concat());
    assert!(shown.contains("no difference shown"), "{shown}");
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let room = room();
    let with = |threads| document(&room, &["job.fio", "--vary", "map_cache.size_kib=64,128", "--threads", threads]);
    let one = with("1");
    assert_eq!(one, with("2"));
    assert_eq!(one, with("7"));
    // Each seed's values are those of the ordinary command with that seed.
    let alone = |seed: &str| -> Value {
        let args = ["fio", "job.fio", "--json", "--seed", seed, "--set", "map_cache.size_kib=128"];
        room.json(&args)
    };
    for (i, seed) in ["1", "2", "5"].iter().zip([0, 1, 4]).map(|(s, i)| (i, alone(s))) {
        for metric in ["read_throughput", "read_latency_p99", "map_loads", "host_memory"] {
            let compared = row(&one, "HPB dcm, map_cache.size_kib=128", metric);
            assert_eq!(Some(values(compared)[i]), row(&seed, "HPB dcm", metric)["simulated"].as_f64(), "{metric}");
        }
    }
    // Another first seed shifts the seeds.
    let later = document(&room, &["job.fio", "--vary", "map_cache.size_kib=64,128", "--seed", "3", "--seeds", "2"]);
    let of = |doc: &Value| values(row(doc, "HPB off, map_cache.size_kib=64", "read_latency_mean"));
    assert_eq!(of(&later), of(&one)[2..4]);
}

#[test]
fn identical_variants_are_said_to_be() {
    let room = room();
    let args = ["job.fio", "--vary", "one:hpb=off", "--vary", "two:hpb=off", "--vary", "three:hpb=dcm"];
    let doc = document(&room, &[&args[..], &SMALL].concat());
    let rows = doc["rows"].as_array().expect("rows");
    let of_two: Vec<&Value> = rows.iter().filter(|r| r["variant"] == "two").collect();
    assert!(of_two.len() > 10);
    for row in of_two {
        assert_eq!(
            (&row["difference"]["mean"], &row["difference"]["finding"]),
            (&0.0.into(), &"identical".into()),
            "{row}"
        );
        assert!(row["difference"]["interval"].is_null());
    }
    assert!(notes(&doc).contains("'two' and 'one' are identical: every figure"), "{}", notes(&doc));
    assert!(!notes(&doc).contains("'three' and 'one' are identical"));
    // Another base.
    let doc = document(&room, &[&args[..], &SMALL, &["--base", "three"]].concat());
    assert_eq!(row(&doc, "one", "read_throughput")["difference"]["base"], "three");
    assert!(row(&doc, "three", "read_throughput")["difference"].is_null());
    assert_eq!(doc["configuration"]["compare"]["base"], "three");
    assert!(doc["configuration"]["device_by_variant"]["two"]["map_cache"]["size_kib"] == 64);
}

#[test]
fn what_does_not_depend_on_the_seed_has_no_interval() {
    let room = Room::with("job.fio", &JOB.replace("randread", "read"));
    let doc = document(&room, &["job.fio", "--seeds", "3"]);
    assert!(notes(&doc).starts_with("All 3 seeds (1 to 3) gave the same figures, to the bit"), "{}", notes(&doc));
    for row in doc["rows"].as_array().expect("rows") {
        assert_eq!(values(row).len(), 3);
        assert!(row["sample"]["interval"].is_null() && row["difference"]["interval"].is_null(), "{row}");
    }
    let shown = room.good(&["compare", "job.fio", "--seeds", "3"]);
    assert!(!shown.contains('±') && shown.contains("exact") && shown.contains("identical"), "{shown}");
    // With random order in flash, the seed matters.
    let doc = document(&room, &["job.fio", "--seeds", "3", "--fill", "random"]);
    assert!(notes(&doc).contains("and the order in which its files lie in flash"), "{}", notes(&doc));
    // A single seed says that it is one.
    let doc = document(&room, &["job.fio", "--seeds", "1"]);
    assert!(notes(&doc).starts_with("One seed (1): there are no intervals"), "{}", notes(&doc));
    assert_eq!(row(&doc, "HPB dcm", "host_memory")["difference"]["finding"], "one_seed");
}

/// Reads of eight blocks each, on 40 places.
fn trace() -> String {
    let mut text = HEADER.to_owned();
    for i in 0..400u64 {
        text.push_str(&format!("{},R,{},{},,\n", i * 3_000, (i * 7 % 40) * 65_536, 32_768));
    }
    text
}

#[test]
fn traces_vary_with_their_layout_only() {
    let room = Room::with("t.csv", &trace());
    let fixed = document(&room, &["t.csv"]);
    assert!(notes(&fixed).starts_with("One run of each variant, with seed 1: nothing"), "{}", notes(&fixed));
    assert_eq!(values(row(&fixed, "HPB off", "read_latency_mean")).len(), 1);
    assert_eq!(row(&fixed, "HPB dcm", "host_memory")["difference"]["finding"], "exact");
    // Three seeds give the same figures.
    let three = document(&room, &["t.csv", "--seeds", "3"]);
    assert!(notes(&three).starts_with("All 3 seeds (1 to 3) gave the same"), "{}", notes(&three));
    // The figures are those of the replay.
    let replayed = room.json(&["replay", "t.csv", "--json"]);
    for metric in ["read_latency_p99", "map_loads", "virtual_duration"] {
        assert_eq!(
            row(&fixed, "HPB dcm", metric)["simulated"],
            row(&replayed, "HPB dcm", metric)["simulated"],
            "{metric}"
        );
    }
    let random =
        ["t.csv", "--fill", "random", "--precondition", "t.csv", "--vary", "map_cache.size_kib=64,1024", "--threads"];
    let drawn = document(&room, &[&random[..], &["1"]].concat());
    assert!(notes(&drawn).contains("They do not cover"), "{}", notes(&drawn));
    assert!(notes(&drawn).contains("the order in which preloaded blocks lie in flash"), "{}", notes(&drawn));
    let latency = values(row(&drawn, "HPB off, map_cache.size_kib=64", "read_latency_mean"));
    assert!(latency.len() == 5 && latency.iter().any(|v| *v != latency[0]), "{latency:?}");
    assert_eq!(drawn, document(&room, &[&random[..], &["2"]].concat()));
    assert!(drawn["rows"].as_array().expect("rows").iter().any(|r| r["case"] == "t.csv: precondition"));
}

#[test]
fn experiments_have_their_own_variants() {
    let room = Room::with("small.toml", EXPERIMENT);
    let doc = document(&room, &["small.toml", "--seeds", "2"]);
    assert_eq!(doc["seed"], 7, "the experiment's");
    let published = row(&doc, "HPB dcm", "random_read_throughput");
    assert_eq!((values(published).len(), published["published"].as_f64()), (2, Some(294.80)));
    let typed =
        document(&room, &["small.toml", "--seeds", "2", "--vary", "firmware.flash_op_us=13,14", "--hpb", "off"]);
    assert_eq!(typed["configuration"]["compare"]["variants"].as_array().map(Vec::len), Some(2));
    assert!(row(&typed, "HPB off, firmware.flash_op_us=14", "random_read_throughput")["published"].is_null());
    // The folder, with figures that have error bars.
    room.good(&["compare", "small.toml", "--seeds", "3", "--out", "made"]);
    let page = room.read("made/report.html");
    assert!(
        page.contains("Difference from &#39;HPB off&#39;, reads") && page.contains("class=\"error\""),
        "no error bars"
    );
    assert!(page.contains("<h2>Comparison</h2>") && page.contains("no difference shown") | page.contains("exact"));
    room.good(&["report", "made/result.json", "--output", "again.html"]);
    assert_eq!(room.read("again.html"), page);
}

#[test]
fn mistakes() {
    let room = Room::with("job.fio", JOB);
    room.write("bad.fio", "[a]\nrw=randread\nsise=4m\n");
    room.write("small.toml", EXPERIMENT);
    room.write("t.csv", &trace());
    room.write("prose", "It was a dark and stormy night.\n");
    for (args, says) in [
        (&["none.fio"][..], &["none.fio: "][..]),
        (&["none.toml"], &["none.toml: cannot be read"]),
        (&["none"], &["none: cannot be read"]),
        (&["prose"], &["prose: the format is not recognised"]),
        (&["bad.fio"], &["bad.fio:3: "]),
        (&["job.fio", "--vary", "a"], &["--vary \"a\": is not KEY=VALUE,VALUE or NAME:KEY=VALUE,KEY=VALUE"]),
        (&["job.fio", "--vary", "a:x"], &["--vary \"a:x\": \"x\" is not KEY=VALUE"]),
        (&["job.fio", "--vary", "a:hpb=off", "--vary", "a:hpb=dcm"], &["the name is given twice"]),
        (&["job.fio", "--vary", "a:map_cache.size_kb=1"], &["--vary a: map_cache.size_kb: ", "did you mean size_kib?"]),
        (&["job.fio", "--vary", "a:hpb=yes"], &["--vary a: hpb: is \"yes\""]),
        (&["job.fio", "--vary", "map_cache.size_kib=64,sixty"], &["--vary: map_cache.size_kib: is the text \"sixty\""]),
        (&["job.fio", "--vary", "map_cache.size_kib=64,64"], &["64 is given twice"]),
        (&["job.fio", "--vary", "max_map_mib=1", "--hpb", "off"], &["--vary: max_map_mib: has no meaning"]),
        (&["job.fio", "--hpb", "off,off"], &["--hpb: off is given twice"]),
        (&["job.fio", "--hpb", "on"], &["invalid value 'on' for '--hpb"]),
        (&["job.fio", "--host-memory", "1X"], &["--host-memory: \"1X\" is not a size"]),
        (&["job.fio", "--set", "a"], &["--set: ", "has no '='"]),
        (&["job.fio", "--base", "HPB"], &["--base 'HPB' is not one of: HPB off, HPB dcm"]),
        (&["job.fio", "--seeds", "0"], &["0 is not in 1..=1000"]),
        (&["job.fio", "--seed", "18446744073709551615"], &["5 seeds from 18446744073709551615 on go beyond 64 bits"]),
        (&["job.fio", "--threads", "0"], &["0 is not in 1..="]),
        (&["job.fio", "--device", "nothing"], &["there is no device of this name"]),
        (&["job.fio", "--speed", "2"], &["--speed is for traces, but job.fio is a fio job"]),
        (&["small.toml", "--precondition", "t.csv"], &["--precondition is for traces"]),
        (&["small.toml", "--device", "ufs21-64g"], &["--device is not for experiments"]),
        (&["small.toml", "--fill", "random"], &["--fill is not for experiments"]),
        (&["small.toml", "--case", "x"], &["--case 'x' is not one of: reads"]),
        (&["t.csv", "--case", "x"], &["--case is for experiments"]),
        (&["t.csv", "--fill", "none"], &["--fill none is for jobs"]),
        (&["t.csv", "--vary", "lu[0].blocks=1048576,2097152"], &["a trace is fitted to one size"]),
        (&["t.csv", "--iodepth", "4", "--max-idle", "1ms"], &["do not count with --iodepth"]),
        (&["job.fio", "--device", "nvme-dramless-512g"], &["has no HPB, so there is one host and nothing to compare"]),
        (&[], &["error: "]),
    ] {
        room.bad(&[&["compare"], args, &["--out", "new/folder"]].concat(), says);
    }
}

/// Shards make their runs in one folder; then the same command has all, also those that depend on others.
#[test]
fn runs_are_kept_and_shared() {
    let room = room();
    let args = ["break-even", "job.fio", "--from", "64", "--to", "256", "--step", "64", "--seeds", "2"];
    let doc = room.document(&[&args[..], &["--json"]].concat());
    let kept = [&args[..], &["--keep", "runs"]].concat();
    let part = room.good(&[&kept[..], &["--shard", "2/2"]].concat());
    let says = "when all shards have ended, the same command without --shard goes on\n";
    assert!(part.contains(" points are in runs; ") && part.ends_with(says), "{part}");
    let whole = room.document(&[&kept[..], &["--json"]].concat());
    assert_eq!((&whole["rows"], &whole["notes"]), (&doc["rows"], &doc["notes"]));
    let segments = || room.files().into_iter().filter(|path| path.starts_with(room.path("runs"))).count();
    let before = segments();
    assert_eq!(room.document(&[&kept[..], &["--json", "--threads", "1"]].concat())["rows"], doc["rows"]);
    assert_eq!(segments(), before, "nothing was made again");
    room.bad(&[&kept[..], &["--seed", "9"]].concat(), &["belongs to another plan", "choose another folder"]);
    room.bad(&[&args[..], &["--shard", "2/2"]].concat(), &["not provided:\n  --keep <DIR>"]);
    room.bad(&[&kept[..], &["--shard", "3/2"]].concat(), &["I from 1 to N"]);
}

/// A trace of the same name with other requests makes other runs.
#[test]
fn runs_of_another_trace_are_refused() {
    let room = Room::new();
    let trace = |second: u64| {
        let head = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n";
        room.write("t.csv", &format!("{head}1000,R,{second},4096,,\n"));
    };
    let replay = ["replay", "t.csv", "--keep", "runs", "--json"];
    trace(8192);
    let rows = room.document(&replay)["rows"].clone();
    assert_eq!(room.document(&replay)["rows"], rows);
    trace(12_288);
    room.bad(&replay, &["belongs to another plan"]);
}

/// The answer is the least of the values: it is as good, and the one below is not. It does not depend on threads.
#[test]
fn break_even_finds_the_least_value() {
    let room = room();
    let args = ["break-even", "job.fio", "--from", "16", "--to", "256", "--step", "16", "--seeds", "2"];
    let doc = room.document(&[&args[..], &["--json", "--out", "even"]].concat());
    assert!(room.read("even/report.html").contains("map_cache.size_kib=16"));
    let note = &doc["verdict"][0];
    assert_eq!((&note["kind"], &note["numbers"][0][0]), (&"advice".into(), &"map_cache.size_kib".into()));
    let found = note["numbers"][0][1].as_f64().expect("a number") as u64;
    let answer = note["text"].as_str().expect("a text").to_owned();
    assert!(answer.starts_with(&format!("map_cache.size_kib={found} is as good as ")), "{answer}");
    let mean = |variant: &str| row(&doc, variant, "read_latency_mean")["simulated"].as_f64().unwrap();
    let of = |size: u64| mean(&format!("map_cache.size_kib={size}"));
    assert!(of(found) <= mean("hpb=dcm") && of(found - 16) > mean("hpb=dcm"), "{answer}");
    // Each run is that of a comparison.
    let one = ["compare", "job.fio", "--seeds", "2", "--hpb", "off", "--set"];
    let one = room.document(&[&one[..], &[&format!("map_cache.size_kib={found}"), "--json"]].concat());
    assert_eq!(row(&one, "HPB off", "read_latency_mean")["simulated"].as_f64(), Some(of(found)));
    let threads = room.document(&[&args[..], &["--json", "--threads", "1"]].concat());
    assert_eq!(threads["rows"], doc["rows"]);
    // Values that are all worse, and all as good.
    let least = room.good(&["break-even", "job.fio", "--from", "128", "--to", "256", "--step", "64"]);
    assert!(least.starts_with("map_cache.size_kib=128 is as good") && least.contains("it is the least that was"));
    let none = room.good(&["break-even", "job.fio", "--from", "16", "--to", "32", "--step", "16"]);
    assert!(none.starts_with("no map_cache.size_kib up to 32: even with 32"), "{none}");
    for (wrong, says) in [
        (&["--key", "host.submit_us"][..], "--from and --to are needed for --key host.submit_us"),
        (&["--from", "9", "--to", "8"], "--to 8 must be more than --from 9"),
        (
            &["--metric", "nothing", "--from", "16", "--to", "32", "--step", "16"],
            "--metric nothing: hpb=dcm does not have it; it has ",
        ),
        (&["--metric", "hit_cnt", "--from", "16", "--to", "32", "--step", "16"], "=16 does not have it; it has "),
        (&["--against", "hbp=dcm"], "hbp: is not a key"),
        (
            &["--key", "memory", "--from", "1", "--to", "2", "--with", "map_cache.size_kib=64"],
            "--key memory: only a host with HPB has it",
        ),
        (&["--key", "hpb", "--from", "1", "--to", "2"], "--key hpb: its values are no numbers"),
        (&["--against", " "], "--against: is empty; expected KEY=VALUE"),
        (&["--from", "999999"], "--from 999999 must be less than 65536, the whole map"),
        (&["--against", "max_map=4M"], "--against max_map=4M: max_map is of a host with HPB; add hpb=dcm"),
        (
            &["--key", "memory", "--from", "1", "--to", "2"],
            "--key memory: only a host with HPB has it; give --with hpb",
        ),
        (&["--within=-1"], "--within: -1 must be"),
    ] {
        room.bad(&[&["break-even", "job.fio"], wrong].concat(), &[says]);
    }
    room.bad(&["break-even", "-"], &["standard input cannot be"]);
    let without = ["break-even", "job.fio", "--device", "nvme-dramless-512g"];
    room.bad(&without, &["--against hpb=dcm: 'hpb=dcm' ran WITHOUT HPB: the device 'nvme-dramless-512g' has none"]);
    let switched_off = ["--set", "hpb.v2.single_kib=4", "--set", "hpb.v2.enabled=false"];
    room.bad(&[&["break-even", "job.fio"], &switched_off[..]].concat(), &["--against hpb=dcm: ", "switched off"]);
    // Keys that say nothing of HPB are without, also the goal's.
    let sizes = ["--from", "16", "--to", "96", "--step", "16"];
    let same = room.good(&[&["break-even", "job.fio", "--against", " map_cache.size_kib=64"], &sizes[..]].concat());
    assert!(same.contains("map_cache.size_kib=64 is as good as map_cache.size_kib=64,hpb=off"), "{same}");
    // A key of which less is better: its least value is the answer.
    let key = ["--key", "flash.read_us", "--from", "10", "--to", "100"];
    let less = room.good(&[&["break-even", "job.fio"], &key[..]].concat());
    assert!(less.contains("flash.read_us=10 is as good"), "{less}");
    // Only the trace counts, not the trace before it.
    room.write("t.csv", &format!("{HEADER}0,R,0,4096,,\n1000000,R,8192,4096,,\n"));
    let trace = ["break-even", "t.csv", "--precondition", "t.csv", "--to", "512", "--against", "hpb=off"];
    assert!(room.good(&trace).contains("map_cache.size_kib=64 is as good"));
    room.write("w.csv", &format!("{HEADER}0,W,0,4096,,\n1000000,W,8192,4096,,\n"));
    let trace = ["break-even", "t.csv", "--precondition", "w.csv", "--to", "512", "--against", "hpb=off"];
    let of_writes = [&trace[..], &["--metric", "write_latency_mean"]].concat();
    room.bad(
        &of_writes,
        &["--metric write_latency_mean: hpb=off does not have it; it has device_map_memory, host_memory"],
    );
    // The last value is --to, for any step.
    let to = ["--key", "flash.program_us", "--from", "300", "--to", "1000", "--step", "400", "--against", "hpb=off"];
    let last = [&["break-even", "t.csv", "--json"], &to[..]].concat();
    let variants: Vec<String> =
        room.document(&last)["rows"].as_array().expect("rows").iter().map(|row| row["variant"].to_string()).collect();
    assert!(variants.contains(&"\"flash.program_us=1000\"".to_owned()), "{variants:?}");
}
