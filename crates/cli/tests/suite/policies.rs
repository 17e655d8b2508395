// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of host memory on the command line: what they are called, their limit of memory, and mistakes.

use crate::common::{HEADER, Room, figure, json, texts, value};
use serde_json::Value;

/// Reads of 40 areas of 16 MiB, one a millisecond, three times.
fn areas() -> String {
    let rows = (0..120u64).map(|i| format!("{},R,{},4096,,\n", i * 1_000_000, (i % 40) << 24));
    HEADER.to_owned() + &rows.collect::<String>()
}

fn document(room: &Room, args: &[&str]) -> Value {
    room.json(&[&["replay", "t.csv", "--json"], args].concat())
}

#[test]
fn memory_is_limited_and_the_limit_changes() {
    let room = Room::with("t.csv", &areas());
    room.write("pressure.csv", "# less in the middle\n50, 300K\n90, 2M\n");
    let calm = document(&room, &["--policy", "lru", "--host-memory", "2M"]);
    assert_eq!((value(&calm, "lru", "hit_cnt"), value(&calm, "lru", "shrink_cnt")), (80.0, 0.0));
    let pressed = document(&room, &["--policy", "lru,cost-aware", "--host-memory", "2M", "--pressure", "pressure.csv"]);
    for policy in ["lru", "cost-aware"] {
        // 300 KiB less the tables are 6 maps; 10 areas were read again before, 30 after the first round and before the
        // end.
        let (hits, shrunk) = (value(&pressed, policy, "hit_cnt"), value(&pressed, policy, "shrink_cnt"));
        assert!((30.0..=36.0).contains(&shrunk), "{policy}: {shrunk} maps dropped");
        assert!((10.0..=30.0).contains(&hits), "{policy}: {hits} hits");
        assert_eq!(value(&pressed, policy, "requests"), 120.0);
        assert!(value(&pressed, policy, "host_memory") <= f64::from(2 << 20));
    }
    assert!(!pressed["notes"].to_string().contains("did not come"));
    room.write("late.csv", "50, 300K\n900000, 2M\n900001, 1M\n");
    let late = document(&room, &["--policy", "lru", "--host-memory", "2M", "--pressure", "late.csv"]);
    let says = "t.csv, lru: limits 2 to 3 of memory did not come: the run was over before";
    assert!(late["notes"].to_string().contains(says), "{}", late["notes"]);
    assert_eq!(pressed["configuration"]["host_by_variant"]["lru"]["policy"], "lru");
    assert_eq!(pressed["configuration"]["host_by_variant"]["lru"]["mode"], "host");
    let linux = document(&room, &["--policy", "linux-dcm,linux-hcm", "--host-memory", "2M"]);
    assert!(value(&linux, "linux-dcm", "host_memory") <= f64::from(2 << 20));
    assert_eq!(linux["configuration"]["host_by_variant"]["linux-dcm"]["mode"], "device");
}

#[test]
fn events_in_the_middle_of_a_trace() {
    let room = Room::with("t.csv", &areas());
    room.write("events.csv", "0,suspend\n50,pressure,300K\n60,resume\n70,power-cycle,30ms # late\n9000000,resume\n");
    let doc = document(&room, &["--policy", "lru", "--events", "events.csv"]);
    let in_span = |name: &str, metric: &str| {
        let figure = figure(&doc, &[("case", &format!("t.csv: {name}")), ("metric", metric)]);
        figure.unwrap_or_else(|| panic!("{name}: no {metric}"))
    };
    assert_eq!(in_span("after event 1 (suspend at 0 ms)", "hit_cnt"), 0.0);
    assert!(in_span("after event 4 (power-cycle of 30.000 ms at 70 ms)", "recovery") > 0.0);
    assert!(in_span("after event 3 (resume at 60 ms)", "map_req_cnt") > 0.0);
    assert!(in_span("after event 2 (pressure 307200 bytes at 50 ms)", "host_memory_held") <= 307_200.0);
    assert_eq!(value(&doc, "lru", "requests"), 120.0);
    assert_eq!(doc["configuration"]["host_by_variant"]["lru"]["events"][3]["off_ms"], 30.0);
    let notes = texts(&doc);
    assert!(notes.contains(&"t.csv, lru: event 5 did not come: the run was over before"), "{notes:?}");
    let bad =
        |hpb: &str, says: &str| room.bad(&["replay", "t.csv", "--policy", hpb, "--events", "events.csv"], &[says]);
    bad("linux-dcm", "--events: the host of variant 'linux-dcm' never gives memory back");
    room.write("events.csv", "1,pressure,1K\n");
    bad("lru", "--events events.csv: t.csv, lru: event 1 (pressure 1024 bytes at 1 ms): ");
    room.write("events.csv", "1,resume\n2,sleep\n");
    bad("lru", "events.csv: line 2: \"sleep\" is no event");
}

#[test]
fn mistakes() {
    let room = Room::with("t.csv", &areas());
    room.write("low.csv", "10,64K\n");
    room.write("wrong.csv", "10,64K\n5,2M\n");
    let bad = |args: &[&str], says: &[&str]| {
        let mut all = vec!["replay", "t.csv"];
        all.extend(args);
        room.bad(&all, says);
    };
    let five = r#"expected "linux-dcm" or "linux-hcm" or "lru" or "cost-aware" or "exclusive""#;
    // A name of an earlier version is as unknown as any other.
    for unknown in ["lur", "lfu", "preload", "sram-aware", "dirty-refresh"] {
        bad(&["--policy", unknown], &["--policy: policy: is \"", unknown, five]);
    }
    for none in ["", "lru,", ",lru"] {
        bad(&["--policy", none], &["--policy: policy: is \"\"; expected \"linux-dcm\" or ", "or \"exclusive\""]);
    }
    bad(&["--policy", "lru", "--hpb", "dcm"], &["\"lru\" takes host control mode, unlike hpb=dcm, which --hpb says"]);
    bad(&["--policy", "linux-dcm", "--hpb", "hcm"], &["\"linux-dcm\" takes device control mode"]);
    for off in ["off", "off,dcm", "off,hcm"] {
        bad(&["--policy", "lru", "--hpb", off], &["policy: has no meaning with hpb=off, which --hpb says"]);
    }
    bad(&["--policy", "lru,lru"], &["lru is given twice"]);
    for policy in ["lru", "linux-dcm", "linux-hcm"] {
        bad(
            &["--policy", policy, "--host-memory", "64K"],
            &["--host-memory: ", "memory of 65536 bytes is too little for HPB"],
        );
    }
    let region = ["tables and the map of a region take"];
    // Room for the tables and no region: Linux's policies would run without HPB.
    bad(&["--policy", "linux-dcm", "--host-memory", "80K"], &region);
    bad(&["--policy", "linux-hcm", "--host-memory", "100K"], &region);
    bad(&["--policy", "lru", "--host-memory", "100K"], &["tables and the map of a sub-region take"]);
    bad(&["--hpb", "prototype-host", "--vary", "max_map=1K"], &["--vary: ", "tables and the map of a group take"]);
    let pressed = |policy, file| ["--policy", policy, "--host-memory", "2M", "--pressure", file];
    bad(&pressed("lru", "low.csv"), &["--pressure low.csv: ", "limit 1 of host memory, from 10 ms on: "]);
    bad(&pressed("lru", "wrong.csv"), &["wrong.csv: line 2: 5 ms is before the line above"]);
    bad(&pressed("linux-hcm", "low.csv"), &["--pressure: variant 'linux-hcm' has a host that does not change"]);
    bad(&pressed("lru", "none.csv"), &["none.csv: cannot be read"]);
    room.bad(&["reproduce", "iozone", "--traces", "."], &["--traces goes with reproduce policies, zones and ubi"]);
    room.bad(&["reproduce", "policies", "--traces", "."], &["there is no trace in"]);
    room.bad(&["reproduce", "policies", "--variant", "lru"], &["--variant 'lru' is not one of"]);
    room.bad(
        &["reproduce", "policies", "--case", "x"],
        &["--case 'x' is not one of: applications, appstart, 4 cycles"],
    );
}

#[test]
fn one_policy_on_the_built_in_workload() {
    let room = Room::new();
    let text = room.good(&["reproduce", "policies", "--case", "applications", "--variant", "lru, 8 MiB", "--json"]);
    let doc = json(&text);
    let loads = value(&doc, "lru, 8 MiB", "map_loads");
    let optimum = value(&doc, "optimum, 8 MiB", "map_loads");
    assert!(optimum > 600.0 && optimum < loads, "{optimum} of {loads}");
    assert!(value(&doc, "lru, 8 MiB", "host_memory") <= f64::from(8 << 20));
    assert!(text.contains("only the built-in workloads were run"));
    assert!(room.path("out/policies/report.html").exists());
}

#[test]
fn a_folder_that_is_missing_among_the_traces_is_noted() {
    let room = Room::new();
    std::fs::create_dir_all(room.path("t/block")).expect("a folder");
    room.write("t/block/areas.csv", &areas());
    let args = ["reproduce", "policies", "--traces", "t", "--case", "areas.csv", "--variant", "lru, 8 MiB"];
    let note = "--traces t: has no folder mobile; left out.";
    assert!(room.good(&args).contains(&format!("Note: {note}\n")));
    let doc = json(&room.read("out/policies/result.json"));
    assert_eq!(texts(&doc).iter().filter(|n| **n == note).count(), 1);
}

/// A recording of our own.
fn recording(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../workload/tests/data").join(name)
}

/// The mean read, map pages read and maps loaded with each of Linux's policies and with `exclusive`.
fn beside_linux(room: &Room, trace: &str, more: &[&str]) -> [[f64; 3]; 3] {
    let policies = ["--policy", "linux-dcm,linux-hcm,exclusive", "--host-memory", "2M", "--json"];
    let doc = room.json(&[&["replay", trace, "--device", "ufs31-256g"], &policies[..], more].concat());
    ["linux-dcm", "linux-hcm", "exclusive"]
        .map(|policy| ["read_latency_mean", "map_loads", "map_req_cnt"].map(|metric| value(&doc, policy, metric)))
}

#[test]
fn exclusive_leaves_a_recording_alone_whose_map_the_device_holds() {
    let path = recording("own_mobile.csv.gz");
    let [dcm, hcm, own] = beside_linux(&Room::new(), path.to_str().expect("a path"), &[]);
    assert!(own[0] <= dcm[0] && own[0] <= hcm[0], "{own:?}, {dcm:?}, {hcm:?}");
    assert!(own[1] <= hcm[1] && own[2] == 0.0 && hcm[2] > 0.0, "{own:?}, {hcm:?}");
}

#[test]
fn exclusive_reads_faster_than_linux_where_sram_is_short() {
    // Sixteen blocks of the recording have a map page each now, of which SRAM holds sixteen.
    let text = std::fs::read_to_string(recording("own_msr.csv")).expect("a recording");
    let spread = |line: &str| {
        let mut cells: Vec<String> = line.split(',').map(str::to_owned).collect();
        let offset: u64 = cells[4].parse().expect("an offset");
        cells[4] = ((offset >> 16 << 24) + (offset & 0xffff)).to_string();
        cells.join(",") + "\n"
    };
    let room = Room::with("spread.csv", &text.lines().map(spread).collect::<String>());
    let [dcm, hcm, own] = beside_linux(&room, "spread.csv", &["--set", "map_cache.size_kib=256"]);
    assert!(own[0] < 0.99 * dcm[0] && own[0] < 0.99 * hcm[0] && own[2] > 30.0, "{own:?}, {dcm:?}, {hcm:?}");
}
