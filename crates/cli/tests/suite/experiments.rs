// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published experiments: their claims hold, and the documentation has the figures that come out.

use crate::common::{Room, figure, notes, row};
use serde_json::Value;
use std::path::Path;

/// The document of an experiment, all of whose claims hold.
fn reproduce(name: &str) -> Value {
    let room = Room::new();
    let doc = room.json(&["reproduce", name, "--json", "--out", "out"]);
    let notes = notes(&doc);
    let claims: Vec<&str> = notes.lines().filter(|n| n.starts_with("CLAIM")).collect();
    assert!(!claims.is_empty(), "{name}");
    assert!(claims.iter().all(|n| n.starts_with("CLAIM HOLDS")), "{name}: {claims:#?}");
    doc
}

fn value(doc: &Value, case: &str, variant: &str, metric: &str) -> f64 {
    let figure = figure(doc, &[("case", case), ("variant", variant), ("metric", metric)]);
    figure.unwrap_or_else(|| panic!("{case}, {variant}: no {metric}"))
}

/// How much more of a metric there is with HPB, in percent.
fn gain(doc: &Value, case: &str, metric: &str) -> f64 {
    100.0 * (value(doc, case, "HPB dcm", metric) / value(doc, case, "HPB off", metric) - 1.0)
}

/// The chapter has these words, apart from line breaks.
#[track_caller]
fn documented(words: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments.md");
    let chapter = std::fs::read_to_string(path).expect("the chapter");
    let chapter = chapter.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(chapter.contains(words), "docs/experiments.md does not say {words:?}");
}

#[test]
fn apps_start_sooner_from_cycle_to_cycle() {
    let doc = reproduce("appstart");
    for row in doc["rows"].as_array().expect("rows").iter().filter(|r| r["metric"] == "start_up_time_gain") {
        assert_eq!(row["origin"], "fit", "{row}");
    }
    let mut before = 0.0;
    for n in 1..=6 {
        let case = format!("cycle {n}");
        let (off, saving) = (value(&doc, &case, "HPB off", "start_up_time"), -gain(&doc, &case, "start_up_time"));
        assert!(saving > before - 0.1, "{case}: {saving} after {before}");
        if n >= 3 {
            assert!((225.0..=235.0).contains(&off), "{case}: {off} s");
            assert!((5.0..=8.0).contains(&saving), "{case}: {saving} %");
        }
        before = saving;
    }
}

#[test]
fn seconds_stand_beside_the_published_ones() {
    let text = Room::new().good(&["reproduce", "appstart", "--out", "out"]);
    for part in ["start-up, s", "against off", "226.2", "215.6"] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
}

#[test]
fn tiobench_gains_random_reads_and_nothing_else() {
    let doc = reproduce("tiobench");
    for (threads, words) in [("1 thread", "60.0"), ("2 threads", "61.8"), ("4 threads", "63.4"), ("8 threads", "66.6")]
    {
        let gained = gain(&doc, &format!("{threads}: Random Reads"), "read_iops");
        assert_eq!(format!("{gained:.1}"), words, "{threads}");
        assert!((58.0..=67.0).contains(&gained), "{threads}: {gained} %");
        for (test, metric) in
            [("Sequential Reads", "read_iops"), ("Sequential Writes", "write_iops"), ("Random Writes", "write_iops")]
        {
            let changed = gain(&doc, &format!("{threads}: {test}"), metric);
            assert!(changed.abs() < 2.0, "{threads}: {test}: {changed} %");
        }
    }
    documented("the gain is 60.0, 61.8, 63.4 and 66.6 % with 1, 2, 4 and 8 threads");
    let said: Vec<&str> =
        doc["verdict"].as_array().expect("a verdict").iter().filter_map(|n| n["text"].as_str()).collect();
    let [in_order, random] = said[..] else { panic!("{said:?}") };
    assert!(
        in_order.starts_with("Sequential Reads: In none of 5 cases do reads of another variant take less"),
        "{said:?}"
    );
    assert!(random.starts_with("Random Reads: ") && random.contains(" in 5 of 5 cases (1.39 to 1.60 ×"), "{said:?}");
}

/// Phases are compared one by one, each with the interval of its own time.
#[test]
fn phases_of_a_job_have_verdicts_and_intervals_of_their_own() {
    let job = "[global]\nbs=4k\nsize=1g\nruntime=50ms\ntime_based\n[in-order]\nrw=read\n\
               [at-random]\nstonewall\nrw=randread\nnorandommap\n";
    let room = Room::with("j.fio", job);
    let doc = room.document(&["fio", "j.fio", "--set", "map_cache.size_kib=64", "--json"]);
    let said: Vec<&str> =
        doc["verdict"].as_array().expect("a verdict").iter().filter_map(|n| n["text"].as_str()).collect();
    let [in_order, random] = said[..] else { panic!("{said:?}") };
    assert!(
        in_order.starts_with("j: in-order: ") && random.starts_with("j: at-random: 'HPB dcm' makes reads "),
        "{said:?}"
    );
    assert!(random.contains(" ± "), "{said:?}");
    // Reads decide where a phase has them, and a variant alone is not cut into phases.
    let texts = |job: &str, hpb: &str| -> Vec<String> {
        room.write("k.fio", job);
        let doc = room.document(&["fio", "k.fio", "--hpb", hpb, "--json"]);
        let notes = doc["verdict"].as_array().expect("a verdict").iter();
        notes.map(|note| note["text"].as_str().expect("a text").to_owned()).collect()
    };
    let writes = job.replace("rw=read\n", "rw=write\n");
    let said = texts(&writes, "off,dcm");
    assert!(said.len() == 1 && said[0].contains(" reads "), "{said:?}");
    let said = texts(job, "off");
    assert!(said.len() == 1 && said[0].starts_with("Reads of 'HPB off' take "), "{said:?}");
    let series = doc["charts"][0]["series"].as_array().expect("series");
    for point in series.iter().flat_map(|one| one["points"].as_array().expect("points")) {
        let half = point["interval"]["high"].as_f64().expect("an interval") - point["y"].as_f64().expect("a mean");
        let mean = point["y"].as_f64().expect("a mean");
        assert!(half > 0.0 && half < mean / 2.0, "{}: {mean} ± {half}", point["x"]);
    }
}

#[test]
fn hpb_is_ahead_whatever_is_written_beside_it() {
    let doc = reproduce("mixed");
    let (most, least) = (gain(&doc, "90 : 10", "read_iops"), gain(&doc, "10 : 90", "read_iops"));
    documented(&format!("by {most:.0} % at 90 reads to 10 writes, by {least:.1} % at 10 to 90"));
}

#[test]
fn hpb_is_ahead_at_every_size() {
    let doc = reproduce("chunk");
    let (small, large) = (gain(&doc, "4 KB", "read_iops"), gain(&doc, "512 KB", "read_iops"));
    documented(&format!("by {small:.0} % at 4 KB and {large:.0} % at 512 KB"));
}

#[test]
fn a_folder_without_traces_is_named_before_anything_runs() {
    let room = Room::new();
    std::fs::create_dir(room.path("empty")).expect("a folder");
    room.bad(&["reproduce", "all", "--traces", "nowhere"], &["--traces nowhere: there is none of nowhere/mobile,"]);
    room.bad(&["reproduce", "all", "--traces", "empty"], &["--traces empty: there is none of empty/mobile,"]);
}

/// The runs before their turn take minutes, and would be on standard output, and in the folder, by then.
#[test]
fn bad_traces_are_named_before_anything_runs() {
    const TRACE: &str = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n";
    let room = Room::new();
    for (folder, file, text, says) in [
        ("mobile", "x_exec.csv", "nothing\n", "x_exec.csv"),
        ("block", "y.csv", "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,what,,\n", "y.csv:2: "),
        ("ubi", "z_find.csv", "R,1,nowhere,64,,find\n", "z_find.csv:1: offset: expected"),
    ] {
        for name in ["mobile", "block", "ubi"] {
            std::fs::create_dir_all(room.path(&format!("t/{name}"))).expect("a folder");
        }
        room.write("t/mobile/a_exec.csv", TRACE);
        room.write("t/mobile/a_precond.csv", TRACE);
        room.write("t/ubi/a_find.csv", "R,1,0,64,,find\n");
        room.write(&format!("t/{folder}/{file}"), text);
        room.bad(&["reproduce", "all", "--traces", "t"], &[says]);
        std::fs::remove_dir_all(room.path("t")).expect("the folder");
    }
    std::fs::create_dir_all(room.path("t/block")).expect("a folder");
    room.bad(&["reproduce", "all", "--traces", "t"], &["--traces t: there is no trace in t/mobile"]);
    std::fs::create_dir_all(room.path("t/ubi")).expect("a folder");
    room.write("t/block/a.csv", TRACE);
    room.bad(&["reproduce", "all", "--traces", "t"], &["--traces: t/ubi has no recorded stream"]);
    room.bad(&["reproduce", "all", "--set", "nosuch=1"], &["--set: nosuch"]);
}

/// The errors of presets of today's devices. Two rows of the first were fitted, and one of the second.
#[test]
fn devices_of_today_are_as_near_as_the_book_says() {
    let room = Room::new();
    let text = room.good(&["reproduce", "devices", "--out", "out"]);
    let count = |words: &str| text.lines().filter(|line| line.ends_with(words)).count();
    assert_eq!((count("  fit"), count("  predicted"), count("  does not hold")), (15, 23, 16), "{text}");
    for line in [
        "in order, 512 KiB            3.3 GHz                 MiB/s     3814.7     4004.2     +5.0  predicted",
        "at random, 4 KiB of 512 MiB  3.3 GHz                 MiB/s      810.6      816.1     +0.7  fit",
        "at random, 4 KiB of 128 MiB  3.3 GHz                 MiB/s      953.7      867.7     -9.0  predicted",
        "1 MiB written in order   off           MiB/s      556.0      546.9     -1.6  predicted",
        "64 KiB, depth 256   Spark  MiB/s     3471.4     3667.5     +5.7  predicted",
        "64 KiB, depth 16    Spark  MiB/s     2918.2     3223.3    +10.5  does not hold",
        "18 MiB, depth 4     Spark  MiB/s     6103.5     5906.2     -3.2  predicted",
        "HP EX900 Pro  Direct write throughput, MiB/s       572.2      527.9     -7.7  predicted",
        "HP FX900      Folding from, GB                      31.2       29.6     -5.3  predicted",
        "P41 Plus  Uncached write throughput, MiB/s      249.9      258.0     +3.2  predicted",
        "1 MiB in order             Pi 5, PCIe 3.0  MiB/s      800.0      807.8     +1.0  predicted",
        "4 KiB at random            Pi 5, PCIe 2.0  MiB/s       57.3       54.6     -4.8  predicted",
        "4 KiB at random, depth 64  Pi 5, PCIe 2.0  1/s     106113.0   106190.6     +0.1  fit",
        "1 MiB written at random    Pi 5, PCIe 3.0  MiB/s      725.0      840.3    +15.9  does not hold",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    for reason in [
        "Does not hold: 64 KiB, depth 4, Spark: a request takes 250 us at depth 4",
        "Does not hold: 1 MiB written in order, Pi 5, PCIe 3.0; 1 MiB written at random, Pi 5, PCIe 3.0: iozone's time",
        "Does not hold: the drive written once, HP FX900, Folding write throughput: for each superblock",
    ] {
        assert!(text.contains(reason), "{reason}\n{text}");
    }
    let report = room.read("out/report.html");
    for part in [
        "DRAM-less NVMe drives on one lane",
        "<h2>What does not hold</h2>",
        "<li><strong>64 KiB, depth 4, Spark</strong>: a request takes 250 us",
        "<span class=\"mark off\">does not hold</span>",
        "<span class=\"mark fit\">fit</span>",
    ] {
        assert!(report.contains(part), "{part}");
    }
    room.good(&["reproduce", "iozone", "--out", "out/iozone"]);
    let all = ["iozone", "ufs31", "ufs40", "nvme_reads", "nvme_writes", "qlc_writes", "raspberry"];
    crate::device_pages::check(&room, &all.map(|name| format!("out/{name}")));
    let says = ["--case belongs to one experiment; 'devices' are several"];
    Room::new().bad(&["reproduce", "devices", "--case", "x"], &says);
    let plan = Room::new().good(&["reproduce", "zones", "--dry-run"]);
    for title in [
        "random reads",
        "fragmented data",
        "writes in place",
        "36 apps started",
        "programmed die by die",
        "ageing file",
    ] {
        assert!(plan.contains(title), "{title}: {plan}");
    }
}

/// Values and claims may be about one of several groups of jobs, and compare a group with another.
#[test]
fn groups_of_jobs_have_values_and_claims() {
    let text = r#"schema = "readpath-experiment/1"
name = "groups"
title = "Two groups"
description = ""
citations = []
device = "ufs21-64g"
seed = 1
precondition = { layout = "sequential", range = "none" }
variant = [{ name = "new", hpb = false }]

[workload]
kind = "fio"
case = "c"
text = """
[global]
filename=/dev/sda
bs=128k
size=8m
[first]
rw=write
[then]
stonewall
rw=read
[again]
stonewall
rw=read
ioengine=libaio
iodepth=8
"""

[[published]]
case = "c"
group = "then"
variant = "new"
metric = "read_throughput"
unit = "MiB/s"
value = 400.0
origin = "predicted"

[[claim]]
text = "More at once"
source = "nobody"
metric = "read_throughput"
group = "again"
base_group = "then"
variant = "new"
base = "new"
min_percent = 10.0
"#;
    let doc = Room::with("groups.toml", text).json(&["reproduce", "groups.toml", "--json", "--out", "out"]);
    let row = |case: &str, metric: &str| row(&doc, &[("case", case), ("metric", metric)]).expect("a row").clone();
    assert_eq!(row("c: then", "read_throughput")["published"], 400.0);
    assert!(row("c: again", "read_throughput")["published"].is_null());
    let ratio = value(&doc, "c: again", "new", "read_throughput") / value(&doc, "c: then", "new", "read_throughput");
    let gain = row("c: again", "read_throughput_gain")["simulated"].as_f64().expect("a number");
    assert!((gain - 100.0 * (ratio - 1.0)).abs() < 1e-6 && gain > 10.0, "{gain}, {ratio}");
    assert!(notes(&doc).contains("CLAIM HOLDS: More at once"));
    assert!(!notes(&doc).contains("NOT COMPARED"));
    let other = text.replacen("\"then\"", "\"thne\"", 1);
    let doc = Room::with("groups.toml", &other).json(&["reproduce", "groups.toml", "--json", "--out", "out"]);
    assert!(
        notes(&doc).contains("PUBLISHED VALUE NOT COMPARED: c: thne, new, read_throughput in MiB/s: nothing like it")
    );
}

/// The cells of a row of a table in Markdown, behind its name.
fn cells<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.starts_with(&format!("| {name} |")));
    let line = line.unwrap_or_else(|| panic!("no row {name}"));
    line.trim_matches('|').split('|').skip(1).map(str::trim).collect()
}

/// Figures of the chapter on zones and of README are those of the experiment.
#[test]
#[ignore = "half a minute: make test-long"]
fn tables_of_zones_are_those_of_the_book() {
    let room = Room::new();
    room.good(&["reproduce", "zones", "--out", "out"]);
    let of = |experiment: &str| crate::common::json(&room.read(&format!("out/{experiment}/result.json")));
    let docs =
        ["zones_reads", "zones_writes", "zones_apps", "zones_fragmented", "zones_programs", "zones_ageing"].map(of);
    // Of rows in MiB/s, where the book has MB/s.
    let mb = 1e6 / f64::from(1 << 20);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let [book, readme] = ["docs/zones.md", "README.md"].map(|name| std::fs::read_to_string(format!("{root}{name}")));
    let (book, readme) = (book.expect("the chapter"), readme.expect("README"));
    let rows = [
        (&book, "reads of 4 KiB over 4 GB, thousands/s", 0, "4 GB", "read_iops", 1e3),
        (&book, "over 256 GB", 0, "256 GB", "read_iops", 1e3),
        (&book, "p99 over 256 GB, µs", 0, "256 GB", "read_latency_p99", 1.0),
        (&book, "fragmented, 32 KiB, thousands/s", 3, "32 KB", "read_iops", 1e3),
        (&book, "writes in place, thousands/s", 1, "updates", "write_iops", 1e3),
        (&book, "write amplification: host × device", 1, "updates", "write_amplification", 1.0),
        (&book, "skewed writes in place, thousands/s", 1, "updates, skewed", "write_iops", 1e3),
        (&book, "F2FS ages: writes, MB/s", 5, "loop: write 1", "write_throughput", mb),
        (&book, "F2FS ages: writes, MB/s", 5, "loop: write 7", "write_throughput", mb),
        (&book, "reads, MB/s", 5, "loop: read 1", "read_throughput", mb),
        (&book, "reads, MB/s", 5, "loop: read 7", "read_throughput", mb),
        (&book, "36 apps started, s", 2, "cycle 2", "start_up_time", 1.0),
        (&readme, "reads over 256 GB, thousands/s", 0, "256 GB", "read_iops", 1e3),
        (&readme, "writes in place, thousands/s", 1, "updates", "write_iops", 1e3),
    ];
    let mut compared = 0;
    for (text, name, doc, case, metric, unit) in rows {
        for (cell, place) in cells(text, name)
            .into_iter()
            .zip(["page map, SRAM", "page map, HPB", "page map, HMB"].into_iter().chain(["page map, DRAM", "zones"]))
        {
            if cell == "–" {
                continue;
            }
            let rows = docs[doc]["rows"].as_array().expect("rows");
            let is_it = |row: &&serde_json::Value| {
                let variant = row["variant"].as_str().expect("a name");
                variant.starts_with(place) && row["case"] == case && row["metric"] == metric
            };
            let value = rows.iter().find(is_it).and_then(|row| row["simulated"].as_f64());
            let value = value.unwrap_or_else(|| panic!("{name}: {place}")) / unit;
            // The host's is asked for below.
            let cell = cell.split_once(" × ").map_or(cell, |(_, device)| device);
            let cell = cell.split_once(" → ").map_or(cell, |(new, aged)| if case.ends_with(" 1") { new } else { aged });
            let digits = cell.split_once('.').map_or(0, |(_, behind)| behind.len());
            assert_eq!(cell, format!("{value:.digits$}"), "{name}: {place}");
            compared += 1;
        }
    }
    assert_eq!(compared, 70);
    let row = |doc: usize, case: &str, variant: &str, metric: &str| {
        let rows = docs[doc]["rows"].as_array().expect("rows");
        let row = rows.iter().find(|r| r["case"] == case && r["variant"] == variant && r["metric"] == metric);
        row.and_then(|row| row["simulated"].as_f64()).unwrap_or_else(|| panic!("{case}, {variant}, {metric}"))
    };
    let (small, large) = ("192 KiB, buffer 1152", "768 KiB, buffer 1152");
    let more = row(4, "192 KB", small, "write_throughput") / row(4, "192 KB", large, "write_throughput");
    let [few, many] = ["16 KB, synced", "192 KB, synced"]
        .map(|case| ["write_amplification", "write_throughput"].map(|metric| row(4, case, small, metric)));
    let more_buffer = "zones, buffer 1536";
    let [in_place, skewed] = ["updates", "updates, skewed"].map(|case| row(1, case, more_buffer, "write_iops") / 1e3);
    let [fresh, filled] =
        ["1", "7"].map(|job| row(5, &format!("loop: write {job}"), more_buffer, "write_throughput") / mb);
    // Aged, device and host move about a block for each that is written.
    for (variant, metric, expected) in [
        ("page map, SRAM", "write_amplification", 2.0),
        ("zones", "host_write_amplification", 2.0),
        ("zones", "write_amplification", 1.0),
    ] {
        assert!((row(5, "loop: write 7", variant, metric) - expected).abs() < 0.05, "{variant}, {metric}");
    }
    let [new, aged, again] =
        ["1", "7", "7 again"].map(|job| row(5, &format!("loop: read {job}"), "page map, SRAM", "read_throughput"));
    assert!(again > 0.95 * new, "the device has collected");
    let claims: Vec<String> = notes(&docs[5]).lines().filter(|n| n.starts_with("CLAIM")).map(str::to_owned).collect();
    let holds: Vec<bool> = claims.iter().map(|claim| claim.starts_with("CLAIM HOLDS")).collect();
    assert_eq!(holds, [true, false, false, true], "{claims:#?}");
    for said in [
        format!("(here −{:.0} %, until the device has collected", 100.0 * (1.0 - aged / new)),
        format!("| {:.1} × ", row(1, "updates", "zones", "host_write_amplification")),
        format!("| {:.0} MiB |", row(0, "256 GB", "zones", "host_memory") / f64::from(1 << 20)),
        format!("16 KiB program {:.1} times what the host wrote, at {:.0} MiB/s", few[0], few[1]),
        format!("192 KiB {:.1} times, at {:.0} MiB/s", many[0], many[1]),
        format!("768 KiB bring {:.0} %", 100.0 * (more - 1.0)),
        format!("in place reach {in_place:.1} thousand/s, skewed ones {skewed:.1}, and those in order {fresh:.0} MB/s"),
        format!("above 200 MB/s if the buffer has 1,536 KiB ({filled:.0})"),
    ] {
        assert!(book.split_whitespace().collect::<Vec<_>>().join(" ").contains(&said), "{said}");
    }
}
