// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath stats` of runs in progress, and of what is no such run.

use crate::common::running::{LONG_JOB, Running};
use crate::common::{EXPERIMENT, HEADER, Room, figure, json, text};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

/// Files of HPB in Linux's sysfs, below the device and below a logical unit.
const OF_DEVICE: [&str; 8] = [
    "device_descriptor/hpb_version",
    "device_descriptor/hpb_control",
    "geometry_descriptor/hpb_region_size",
    "geometry_descriptor/hpb_number_lu",
    "geometry_descriptor/hpb_subregion_size",
    "geometry_descriptor/hpb_max_active_regions",
    "attributes/max_data_size_hpb_single_cmd",
    "flags/hpb_enable",
];
const OF_UNIT: [&str; 19] = [
    "hpb_stats/hit_cnt",
    "hpb_stats/miss_cnt",
    "hpb_stats/rcmd_noti_cnt",
    "hpb_stats/rcmd_active_cnt",
    "hpb_stats/rcmd_inactive_cnt",
    "hpb_stats/map_req_cnt",
    "hpb_stats/umap_req_cnt",
    "hpb_params/requeue_timeout_ms",
    "hpb_params/activation_thld",
    "hpb_params/normalization_factor",
    "hpb_params/eviction_thld_enter",
    "hpb_params/eviction_thld_exit",
    "hpb_params/read_timeout_ms",
    "hpb_params/read_timeout_expiries",
    "hpb_params/timeout_polling_interval_ms",
    "hpb_params/inflight_map_req",
    "unit_descriptor/hpb_lu_max_active_regions",
    "unit_descriptor/hpb_pinned_region_start_offset",
    "unit_descriptor/hpb_number_pinned_regions",
];

fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('/').fold(value, |value, part| &value[part])
}

#[test]
fn counters_of_a_run_in_progress() {
    let room = Room::with("long.fio", LONG_JOB);
    let mut run = Running::start(&room, &["fio", "long.fio", "--hpb", "dcm", "--stats=its.sock"]);
    let first = run.stats(&room, "its.sock", "running");
    assert_eq!((&first["schema"], first["pid"].as_u64()), (&"readpath-stats/1".into(), Some(run.pid().into())));
    assert_eq!(first["command"], "fio long.fio --hpb dcm --stats=its.sock");
    let mode = room.path("its.sock").metadata().expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only its user may ask");
    let host = &first["runs"][0];
    assert_eq!((&host["host"], &host["case"], &host["variant"]), (&"host0".into(), &"long".into(), &"HPB dcm".into()));
    let unit = &host["units"]["0:0:0:0"];
    for path in OF_DEVICE {
        assert!(at(&host["device"], path) != &Value::Null || path == "flags/hpb_enable", "{path}");
    }
    for path in OF_UNIT {
        assert!(!at(unit, path).is_null(), "{path}");
        assert!(at(unit, path).is_u64() || path.starts_with("unit"), "{path} is a number");
    }
    assert_eq!(host["device"]["device_descriptor"]["hpb_version"], "0x0100");
    assert_eq!(first["module"]["ufshpb_host_map_kbytes"], 2048);
    // They grow.
    let count = |answer: &Value| at(&answer["runs"][0]["units"]["0:0:0:0"], "hpb_stats/hit_cnt").as_u64();
    let time = |answer: &Value| answer["runs"][0]["virtual_time_ns"].as_u64();
    run.until(|| {
        let now = room.json(&["stats", "its.sock", "--json"]);
        // Each is read separately during the run, so their ages differ.
        (count(&now) > count(&first) && time(&now) > time(&first)).then_some(())
    });
    // As text: all names of HPB, and only with --all the others.
    let shown = room.good(&["stats", "its.sock"]);
    let names = OF_DEVICE.map(str::to_owned).into_iter().chain(OF_UNIT.map(|name| format!("0:0:0:0/{name}")));
    for name in names.chain(["module/ufshcd_core/parameters/ufshpb_host_map_kbytes".into()]) {
        assert_eq!(
            shown.lines().filter(|l| l.split_whitespace().next() == Some(&name)).count(),
            1,
            "{name} in {shown}"
        );
    }
    assert!(shown.starts_with("host0 (long, HPB dcm): running, ") && !shown.contains("device_type"), "{shown}");
    assert!(room.good(&["stats", "its.sock", "--all"]).contains("device_descriptor/device_type"));
    run.interrupt();
    assert_eq!(run.end().status.code(), Some(130));
    assert!(!room.path("its.sock").exists(), "the socket goes away with the run");
    room.bad(&["stats", "its.sock"], &["its.sock: there is no such socket"]);
}

/// The socket of a run is found, unless there are none or several.
#[test]
fn the_only_run_is_found() {
    let room = Room::with("long.fio", LONG_JOB);
    let stats = |args: &[&str]| {
        let output = room.command(args).env("XDG_RUNTIME_DIR", room.path(".")).output().expect("the program runs");
        (output.status.code(), text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
    };
    let nothing = "no run in progress shows its counters";
    let (status, _, message) = stats(&["stats"]);
    assert!(status == Some(2) && message.contains(nothing) && message.contains("--stats"), "{message}");
    let mut one = Running::start(&room, &["fio", "long.fio", "--hpb", "dcm", "--stats"]);
    let socket = format!("readpath/{}.sock", one.pid());
    one.stats(&room, &socket, "running");
    // A socket left behind by a killed program is no run.
    let stale = room.path("readpath/1.sock");
    drop(UnixListener::bind(&stale).expect("a socket"));
    let (status, shown, message) = stats(&["stats"]);
    assert!(status == Some(0) && shown.contains("hpb_stats/hit_cnt"), "{message}");
    assert!(!stale.exists(), "what was left behind is removed");
    let mut two = Running::start(&room, &["fio", "long.fio", "--hpb", "off", "--stats"]);
    two.stats(&room, &format!("readpath/{}.sock", two.pid()), "running");
    let (status, _, message) = stats(&["stats"]);
    assert_eq!(status, Some(2), "{message}");
    for run in [&one, &two] {
        assert!(message.contains(&format!("{}.sock  fio long.fio", run.pid())), "{message}");
    }
    for run in [one, two] {
        run.interrupt();
        assert_eq!(run.end().status.code(), Some(130));
    }
    assert_eq!(room.files().iter().filter(|f| f.extension().is_some_and(|e| e == "sock")).count(), 0);
    assert_eq!(stats(&["stats"]).0, Some(2));
}

/// A run is not changed by being looked at, and `--watch` ends with it.
#[test]
fn looking_changes_nothing() {
    let room = Room::with("small.toml", EXPERIMENT);
    let rows = |shown: &str| {
        let document = json(shown);
        (document["rows"].clone(), document["notes"].clone())
    };
    let plain = room.good(&["reproduce", "small.toml", "--json"]);
    assert_eq!(rows(&plain), rows(&room.good(&["reproduce", "small.toml", "--json", "--stats=a.sock"])));
    // The final counters can be read for as long as they are held.
    let mut run = Running::start(&room, &["reproduce", "small.toml", "--stats=a.sock", "--hold"]);
    let last = run.stats(&room, "a.sock", "over");
    assert_eq!((&last["runs"][0]["variant"], &last["runs"][1]["host"]), (&"HPB off".into(), &"host1".into()));
    assert!(last["runs"][0]["units"]["0:0:0:0"]["hpb_stats"]["hit_cnt"].is_null(), "the host has no HPB");
    let counters = &last["runs"][1]["units"]["1:0:0:0"]["hpb_stats"];
    let document = json(&plain);
    let of = |metric: &str| figure(&document, &[("metric", metric), ("variant", "HPB dcm")]);
    let requests: f64 = last["runs"][1]["requests"].as_f64().expect("requests");
    assert_eq!(requests * 2.0, document["simulated_ios"].as_f64().expect("requests"));
    assert!(counters["hit_cnt"].as_u64() > Some(0));
    if let Some(hits) = of("hit_cnt") {
        assert_eq!(counters["hit_cnt"].as_f64(), Some(hits));
    }
    run.interrupt();
    let output = run.end();
    assert_eq!(output.status.code(), Some(0), "what was held is done");
    assert!(text(&output.stdout).contains("HPB dcm") && text(&output.stderr).contains("Holding a.sock until Ctrl-C"));
    assert!(!room.path("a.sock").exists());
}

/// Runs of a replay are hosts in the order of cases and variants.
#[test]
fn replays_have_hosts() {
    let room = Room::new();
    let rows = |requests: u64| {
        let rows = (0..requests).map(|i| format!("{},R,{},4096,,\n", i * 1_000_000, i * 4096));
        HEADER.to_owned() + &rows.collect::<String>()
    };
    room.write("a.csv", &rows(3));
    room.write("b.csv", &rows(5));
    let mut run = Running::start(&room, &["replay", "a.csv", "b.csv", "--stats=r.sock", "--hold"]);
    let last = run.stats(&room, "r.sock", "over");
    let runs = last["runs"].as_array().expect("runs").iter();
    let seen: Vec<_> = runs.map(|r| (r["case"].as_str(), r["variant"].as_str(), r["requests"].as_u64())).collect();
    assert_eq!(
        seen,
        [
            (Some("a.csv"), Some("HPB off"), Some(3)),
            (Some("a.csv"), Some("HPB dcm"), Some(3)),
            (Some("b.csv"), Some("HPB off"), Some(5)),
            (Some("b.csv"), Some("HPB dcm"), Some(5)),
        ]
    );
    run.interrupt();
    assert_eq!(run.end().status.code(), Some(0));
}

#[test]
fn wrong_sockets() {
    let room = Room::with("small.toml", EXPERIMENT);
    room.write("file", "precious");
    room.bad(&["stats", "none"], &["none: there is no such socket"]);
    room.bad(&["stats", "file"], &["file: is no socket"]);
    drop(UnixListener::bind(room.path("stale")).expect("a socket"));
    room.bad(&["stats", "stale"], &["stale: no answer", "has ended"]);
    room.bad(&["stats", "stale", "--watch", "0"], &["--watch"]);
    room.bad(&["reproduce", "small.toml", "--stats=file"], &["--stats: file: already exists and is no socket"]);
    room.bad(&["reproduce", "small.toml", "--stats=none/its.sock"], &["none/its.sock: cannot make the socket"]);
    room.bad(&["reproduce", "small.toml", "--hold"], &["--hold keeps what --stats or --sysfs shows"]);
    room.bad(&["reproduce", "all", "--stats"], &["--stats belongs to one experiment"]);
    room.bad(&["reproduce", "ubi", "--stats"], &["--stats is for experiments on a UFS device"]);
    assert_eq!(room.read("file"), "precious");
    // The socket of another program.
    let listener = UnixListener::bind(room.path("taken")).expect("a socket");
    room.bad(&["reproduce", "small.toml", "--stats=taken"], &["taken: another program serves this socket"]);
    let answer = std::thread::spawn(move || {
        use std::io::Write;
        // The first to connect was the run that looked whether the socket is in use.
        for (mut stream, _) in [listener.accept(), listener.accept()].into_iter().flatten() {
            stream.write_all(b"{\"schema\": \"other/7\"}\n").ok();
        }
    });
    room.bad(&["stats", "taken"], &["taken: answers other/7", "readpath-stats/1"]);
    answer.join().expect("no panic");
    // The stale socket is replaced.
    room.good(&["reproduce", "small.toml", "--stats=stale"]);
    assert!(!room.path("stale").exists());
}

/// Any program may serve the socket, and write anything.
#[test]
fn answers_of_strangers() {
    let room = Room::new();
    let wrong: [(&[u8], &str); 7] = [
        (b"{\"schema\": \"readpath-stats/1\"}", "its.sock: answers without runs"),
        (b"{\"schema\": \"readpath-stats/1\", \"runs\": {}}", "its.sock: answers without runs"),
        (b"{\"schema\": \"readpath-stats/1\", \"runs\": [1]}", "its.sock: answers without runs"),
        (b"{\"schema\": \"\\u001b[2J\"}", "its.sock: answers \\u{1b}[2J; this program reads readpath-stats/1"),
        (b"", "its.sock: answers no JSON document"),
        (b"\"\xff\"", "its.sock: answers no text"),
        (b"{\"schema\": 1, \"runs\": []}", "its.sock: answers something else"),
    ];
    for (answer, says) in wrong {
        let listener = UnixListener::bind(room.path("its.sock")).expect("a socket");
        let server = std::thread::spawn(move || serve_once(&listener, answer));
        room.bad(&["stats", "its.sock"], &[says]);
        server.join().expect("no panic");
        std::fs::remove_file(room.path("its.sock")).expect("the socket");
    }
    let name = r"a\u001b]0;b\u0007\u009b\u007f\n";
    let all_of_it = r"a\u{1b}]0;b\u{7}\u{9b}\u{7f}\n";
    let unit = format!(r#"{{"{name}hpb": "{name}"}}"#);
    let run = format!(
        r#"{{"host": "{name}", "case": "{name}", "variant": "{name}", "state": "{name}", "device": {unit}, "units": {{"{name}": {unit}}}}}"#
    );
    let answer = format!(
        r#"{{"schema": "readpath-stats/1", "command": "{name}", "runs": [{run}], "module": {{"{name}": "{name}"}}}}"#
    );
    for args in [&["stats", "its.sock"][..], &["stats", "its.sock", "--json"]] {
        let (listener, served) = (UnixListener::bind(room.path("its.sock")).expect("a socket"), answer.clone());
        let server = std::thread::spawn(move || serve_once(&listener, served.as_bytes()));
        let shown = room.good(args);
        server.join().expect("no panic");
        std::fs::remove_file(room.path("its.sock")).expect("the socket");
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        if args.len() == 2 {
            assert_eq!(shown.matches(all_of_it).count(), 4 + 2 + 3 + 2, "{shown}");
        } else {
            assert_eq!(serde_json::from_str::<Value>(&shown).ok(), serde_json::from_str(&answer).ok());
        }
    }
}

/// A socket that accepts and answers nothing is a mistake of the user, not a failure of this program.
#[test]
fn silence() {
    let room = Room::new();
    let listener = UnixListener::bind(room.path("its.sock")).expect("a socket");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        // Until the client has closed its end.
        std::io::Read::read(&mut stream, &mut [0]).expect("the end")
    });
    room.bad(&["stats", "its.sock"], &["its.sock: has not answered for 10 s"]);
    assert_eq!(server.join().expect("no panic"), 0);
}

fn serve_once(listener: &UnixListener, answer: &[u8]) {
    use std::io::Write;
    let (mut stream, _) = listener.accept().expect("a connection");
    stream.write_all(answer).ok();
}
