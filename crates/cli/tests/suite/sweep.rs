// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath sweep` as a user runs it.

use crate::common::running::Running;
use crate::common::{Room, text};
use std::fs;
use std::path::Path;

/// A study of six points, each of some milliseconds; `job` makes other points of it.
fn study(job: &str, factors: &str) -> String {
    format!(
        "schema = \"readpath-study/1\"\nname = \"small\"\ntitle = \"A small study\"\nseed = 1\ndevice = \"ufs21-64g\"\n\
         [workload]\nkind = \"fio\"\ntext = \"\"\"\n[j]\nfilename=/dev/sda\n\
         rw=randread\nbs=4k\nioengine=libaio\n{job}\n\"\"\"\n{factors}"
    )
}

const SHORT: &str = "size=1g\nio_size=400k";
const SIX: &str = "[[factor]]\nkey = \"hpb\"\nvalues = [\"off\", \"dcm\"]\n[[factor]]\nkey = \"map_cache.size_kib\"\n\
                   values = [64, 256, 1024]\n";

fn room() -> Room {
    Room::with("s.toml", &study(SHORT, SIX))
}

#[test]
fn a_study_is_made_once() {
    let room = room();
    let said = room.good(&["sweep", "s.toml"]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("Of 6 points hpb=off, map_cache.size_kib=1024 is the best in Read latency"), "{said}");
    assert!(lines[1].starts_with("map_cache.size_kib matters most for it: it alone explains "), "{said}");
    assert_eq!(lines[3..6], ["A small study", "", "6 points (cross), 0 of them made before"]);
    assert_eq!(lines.last(), Some(&"Results: out/small/points.csv and out/small/report.html"));
    assert!(said.contains("hpb=dcm, map_cache.size_kib=1024 "), "{said}");
    let doc: serde_json::Value = crate::common::json(&room.read("out/small/result.json"));
    let share = |factor| {
        let keys = [("case", "Read latency mean"), ("variant", factor), ("metric", "variance_share")];
        crate::common::figure(&doc, &keys).expect("a share")
    };
    assert!(share("hpb") > 0.0 && share("hpb") + share("map_cache.size_kib") < 100.0 + 1e-9);
    let page = room.read("out/small/report.html");
    assert!(page.contains("Read latency mean by map_cache.size_kib") && page.contains("What matters for"));
    assert!(said.contains("6 points and 600 requests simulated in "), "{said}");
    let table = room.read("out/small/points.csv");
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), 7);
    assert!(
        rows[0].starts_with("point,seed,hpb,map_cache.size_kib,read_throughput (MiB/s),read_iops (1/s),"),
        "{}",
        rows[0]
    );
    for (n, settings) in ["off,64", "off,256", "off,1024", "dcm,64", "dcm,256", "dcm,1024"].into_iter().enumerate() {
        let cells: Vec<&str> = rows[n + 1].splitn(3, ',').collect();
        assert_eq!(cells[0], n.to_string());
        assert!(cells[2].starts_with(&format!("{settings},")), "{}", rows[n + 1]);
    }
    let again = room.good(&["sweep", "s.toml", "--out", "out/small"]);
    assert!(again.contains("6 of them made before\n0 points and 0 requests"), "{again}");
    assert_eq!(room.read("out/small/points.csv"), table);
    // A point is what the command for a single run makes of the same settings and seed.
    let seed = rows[6].split(',').nth(1).expect("a seed");
    room.write("j.fio", &format!("[j]\nfilename=/dev/sda\nrw=randread\nbs=4k\nioengine=libaio\n{SHORT}\n"));
    let set = ["--set", "map_cache.size_kib=1024", "--hpb", "dcm"];
    let doc = room.document(&[&["fio", "j.fio", "--seed", seed, "--json"], &set[..]].concat());
    for (metric, unit) in [("read_latency_mean", " (us)"), ("map_loads", ""), ("hpb_hit_ratio", " (%)")] {
        let column = rows[0].split(',').position(|name| name == format!("{metric}{unit}")).expect(metric);
        let expected = crate::common::value(&doc, "HPB dcm", metric);
        assert_eq!(rows[6].split(',').nth(column), Some(expected.to_string().as_str()), "{metric}");
    }
}

#[test]
fn a_plan_is_shown_and_nothing_is_made() {
    let room = room();
    let said = room.good(&["sweep", "s.toml", "--list", "--shard", "2/4"]);
    let rows: Vec<String> =
        said.lines().map(|row| row.split(',').filter(|cell| cell.len() < 12).collect::<Vec<_>>().join(",")).collect();
    assert_eq!(rows, ["point,seed,hpb", "1,off,256", "5,dcm,1024"].map(String::from), "{said}");
    let said = room.good(&["sweep", "s.toml", "--dry-run"]);
    assert!(said.starts_with("A small study\n\n6 points (cross)\nVaried: hpb, map_cache.size_kib\nAbout "), "{said}");
    assert!(said.contains(" for 6 points with "), "{said}");
    assert!(!room.path("out").exists());
}

#[test]
fn shards_are_merged_to_the_same_tables() {
    let room = room();
    room.good(&["sweep", "s.toml", "--out", "whole", "--threads", "3"]);
    for shard in ["1/3", "2/3", "3/3"] {
        let out = format!("part{}", &shard[..1]);
        let said = room.good(&["sweep", "s.toml", "--shard", shard, "--out", &out]);
        assert!(said.contains("This folder holds 2 of 6 points; 'readpath sweep merge'"), "{said}");
    }
    let said = room.good(&["sweep", "merge", "part3", "part1", "part2", "--out", "merged"]);
    assert_eq!(said, "small: 6 of 6 points, 0 failed\nResults: merged/points.csv\n");
    assert_eq!(room.read("merged/points.csv"), room.read("whole/points.csv"));
    let output = room.output(&["sweep", "merge", "part1", "part3", "--out", "merged"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "readpath: results are incomplete: 2 of 6 points are missing: 1, 4\n");
}

#[test]
fn points_that_fail_stop_no_other() {
    let factors = SIX.replace("[64, 256, 1024]", "[64, 3, 1024]");
    let room = Room::with("s.toml", &study(SHORT, &factors));
    let output = room.output(&["sweep", "s.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    let begin = "readpath: 2 of 6 points failed; point 1 (hpb=off, map_cache.size_kib=3): ";
    assert!(said.starts_with(begin) && said.contains("s.toml:20: map_cache.size_kib: is 3072;"), "{said}");
    assert!(said.ends_with("; all are in out/small/failed.csv\n"), "{said}");
    assert_eq!(room.read("out/small/points.csv").lines().count(), 5);
    let failed = room.read("out/small/failed.csv");
    assert!(failed.starts_with("point,seed,hpb,map_cache.size_kib,error\n1,"), "{failed}");
    assert!(failed.contains(",dcm,3,"), "{failed}");
    // All points exist: the same command prints the same and makes none.
    let output = room.output(&["sweep", "s.toml"]);
    assert!(text(&output.stderr).starts_with("readpath: 2 of 6 points failed; all are in"), "{}", text(&output.stderr));
}

#[test]
fn an_interrupted_study_goes_on() {
    // The last level runs until it is stopped.
    let factors = "set = { hpb = \"off\" }\n";
    let job = study("size=4g\nio_size=400k", "[[factor]]\nkey = \"job.loops\"\nvalues = [1, 2, 10000000]\n");
    let text_of = job.replacen("device =", &format!("{factors}device ="), 1);
    let room = Room::with("s.toml", &text_of);
    let mut running = Running::start(&room, &["sweep", "s.toml", "--threads", "1", "--out", "o"]);
    running.listens();
    let segment = |room: &Room| -> Option<String> {
        let mut found = fs::read_dir(room.path("o")).ok()?.flatten().map(|e| e.path());
        fs::read_to_string(found.find(|p| p.extension().is_some_and(|e| e == "seg"))?).ok()
    };
    running.until(|| segment(&room).filter(|text| text.lines().count() == 3));
    running.interrupt();
    let output = running.end();
    assert_eq!(output.status.code(), Some(130));
    let said = "readpath: interrupted: 2 of 3 points are made; the same command goes on from there\n";
    assert_eq!(text(&output.stderr), said);
    assert!(!room.path("o/points.csv").exists());
    let said = room.output(&["sweep", "merge", "o", "--out", "m"]);
    assert!(text(&said.stderr).contains("1 of 3 points are missing: 2"), "{}", text(&said.stderr));
}

#[test]
fn a_trace_is_replayed_by_points() {
    let mut trace = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
    for i in 0..300u64 {
        trace += &format!("{},R,{},4096,,\n", i * 100_000, (i * 7919 % 5000) * (1 << 20));
    }
    let head = "schema = \"readpath-study/1\"\nname = \"t\"\ntitle = \"A trace\"\nseed = 1\ndevice = \"ufs21-64g\"\n\
                set = { hpb = \"off\" }\n[trace]\nfile = \"t.csv\"\n[[factor]]\nkeys = [\"trace.mode\", \"trace.iodepth\"]\n\
                values = [[\"closed\", 1], [\"closed\", 8]]\n";
    let room = Room::with("t.csv", &trace);
    fs::create_dir(room.path("f")).expect("a folder");
    fs::rename(room.path("t.csv"), room.path("f/t.csv")).expect("the same disk");
    room.write("f/s.toml", head);
    room.good(&["sweep", "f/s.toml", "--out", "o"]);
    let table = room.read("o/points.csv");
    let iodepth = |n: usize| table.lines().nth(n).expect("a row").to_owned();
    assert!(iodepth(1).contains(",closed,1,") && iodepth(2).contains(",closed,8,"), "{table}");
    let replayed = ["replay", "f/t.csv", "--iodepth", "8", "--hpb", "off", "--json"];
    let doc = room.document(&replayed);
    let mean = crate::common::value(&doc, "HPB off", "read_latency_mean");
    let column = table.lines().next().expect("a head").split(',').position(|name| name == "read_latency_mean (us)");
    assert_eq!(iodepth(2).split(',').nth(column.expect("a mean")), Some(mean.to_string().as_str()));
    // The trace belongs to the plan.
    fs::write(room.path("f/t.csv"), trace + "99000000,R,0,4096,,\n").expect("a file");
    room.bad(
        &["sweep", "f/s.toml", "--out", "o"],
        &["belongs to another plan of \"t\"", "a file that it names has changed"],
    );
}

#[test]
fn what_cannot_be_made_is_refused_before_anything_runs() {
    let room = room();
    let wrong = |old: &str, new: &str| room.write("w.toml", &study(SHORT, SIX).replacen(old, new, 1));
    wrong("size_kib", "size_kb");
    room.bad(
        &["sweep", "w.toml"],
        &[
            "none of 6 points of the study that were tried can be made; point 0 (hpb=off, map_cache.size_kb=64): ",
            "did you mean size_kib?",
        ],
    );
    wrong("[64, 256, 1024]", "[]");
    room.bad(&["sweep", "w.toml"], &["w.toml:22:10: factor[1].values: is empty; at least one level is needed"]);
    wrong("[\"off\", \"dcm\"]", "[\"on\"]");
    room.bad(&["sweep", "w.toml"], &["hpb: is \"on\"; expected \"off\", \"dcm\" or \"hcm\""]);
    wrong("study/1", "study/2");
    room.bad(&["sweep", "w.toml"], &["schema: is \"readpath-study/2\"; this program reads \"readpath-study/1\" here"]);
    room.bad(&["sweep", "none.toml"], &["none.toml: cannot be read"]);
    room.bad(&["sweep", "s.toml", "--shard", "3/2"], &["shard \"3/2\": expected I/N with I from 1 to N"]);
    room.bad(&["sweep", "s.toml", "--set", "hpb=off"], &["--set: hpb: is varied by a factor of the study"]);
    room.bad(&["sweep", "s.toml", "--set", "x"], &["--set: \"x\" has no '='"]);
    room.bad(&["sweep", "merge", ".", "--out", "m"], &[".: no results of a study are there"]);
    room.good(&["sweep", "s.toml", "--set", "link.request_us=0.75", "--out", "o"]);
    room.bad(
        &["sweep", "s.toml", "--out", "o"],
        &["belongs to another plan of \"small\"", "choose another folder, or move it away"],
    );
    let segment = fs::read_dir(room.path("o")).expect("a folder").flatten().map(|e| e.path());
    let segment = segment.into_iter().find(|p| p.extension().is_some_and(|e| e == "seg")).expect("a segment");
    fs::write(&segment, "no segment\n").expect("a file");
    let name = Path::new("o").join(segment.file_name().expect("a name"));
    room.bad(
        &["sweep", "merge", "o", "--out", "m"],
        &[&name.display().to_string(), "its first line is not that of a segment"],
    );
}
