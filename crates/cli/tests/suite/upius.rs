// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces of UPIUs: what `--trace-io` and `attach --trace-io` write, listed and replayed.

use crate::common::running::Running;
use crate::common::{Room, json, text};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::net::UnixListener;

/// Requests of every kind at distances in which each ends before the next begins, of at most one command each.
fn requests() -> String {
    let mut table = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n".to_owned();
    for i in 0..400u64 {
        let (op, blocks) = match i % 10 {
            0..5 => ("R", 1),
            5 | 6 => ("W", 1 + i % 7),
            7 => ("WF", 2),
            8 => ("D", 16),
            _ => ("F", 0),
        };
        let offset = if blocks == 0 { 0 } else { (i * 37 % 4000) * 4096 };
        let _ = writeln!(table, "{},{op},{offset},{},,", i * 8_000_123, blocks * 4096);
    }
    table
}

/// The table without process and latency, which differ.
fn without_latencies(table: &str) -> Vec<String> {
    table.lines().map(|l| l.rsplitn(3, ',').nth(2).expect("fields").to_owned()).collect()
}

#[test]
fn a_traced_run_is_the_same_requests_when_it_is_replayed() {
    let room = Room::with("a.csv", &requests());
    let output = room.output(&["replay", "a.csv", "--hpb", "dcm", "--trace-io", "t.json", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let counts = |text: &str, name: &str| text.matches(name).count();
    let traced = room.read("t.json");
    assert!(counts(&traced, "\"cat\":\"request\"") >= 400 && counts(&traced, "\"name\":\"HPB READ\"") > 0);
    let said = room.good(&["trace", "convert", "t.json", "--output", "b.csv"]);
    assert!(said.starts_with("Note: t.json: format trace-io, not compressed, 400 requests over 3.192 s\n"), "{said}");
    assert_eq!(without_latencies(&room.read("b.csv")), without_latencies(&room.read("a.csv")));
    assert!(!room.read("b.csv").contains(",\n"), "every request has a latency");
    // Another device therefore gets the same requests.
    let rows = |file: &str| {
        let mut rows = room.json(&["replay", file, "--hpb", "off", "--json", "--device", "ufs31-256g"])["rows"].clone();
        rows.as_array_mut().expect("rows").iter_mut().for_each(|r| r["case"] = "".into());
        rows
    };
    assert_eq!(rows("t.json"), rows("a.csv"));
    let info = room.good(&["trace", "info", "t.json"]);
    assert!(info.contains("requests    400 over 3.192 s"), "{info}");
}

#[test]
fn upius_are_listed() {
    let room = Room::with("a.csv", &requests());
    let output = room.output(&["replay", "a.csv", "--hpb", "dcm", "--trace-io", "t.json", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let listed = room.good(&["dev", "upius", "t.json"]);
    let line = |has: &str| listed.lines().find(|l| l.contains(has)).unwrap_or_else(|| panic!("{has}: {listed}"));
    assert_eq!(listed.lines().next(), Some("#     device time (s)  real time (s)  request tag LUN"));
    assert!(line("NOP OUT").starts_with("          0.000000000                       1  31   0 > NOP OUT"));
    for has in [
        "> READ (10): LBA 37, 1 block",
        "> HPB READ: LBA ",
        "> WRITE (10): LBA 259, 2 blocks, FUA",
        "> UNMAP: LBA 296, 16 blocks",
        "> SYNCHRONIZE CACHE (10): LBA 0, 0 blocks",
        "< RESPONSE: GOOD; HPB region update, activate 0/0, after ",
    ] {
        line(has);
    }
    let upius = room.read("t.json").matches("\"cat\":\"upiu\"").count();
    let told = |arrow: &str| listed.lines().filter(|l| l.contains(arrow)).count();
    assert_eq!(told(" > ") + told(" < "), upius);
    assert_eq!(told(", after "), told(" < "));
    // Compressed, from standard input; and one that was cut off is listed up to there.
    let packed = zstd::encode_all(room.read("t.json").as_bytes(), 1).expect("bytes");
    let output = room.command(&["dev", "upius", "-"]).write_stdin(packed).output().expect("the program runs");
    assert_eq!(text(&output.stdout), listed);
    let whole = room.read("t.json");
    let end = whole.rfind("\"upiu\":").expect("a UPIU") + 20;
    room.write("cut.json", &whole[..end]);
    let output = room.output(&["dev", "upius", "cut.json"]);
    let rows = whole[..end].lines().count();
    assert_eq!(output.status.code(), Some(2));
    assert!(listed.starts_with(text(&output.stdout)) && text(&output.stdout).lines().count() > 700);
    let says = format!("readpath: cut.json:{rows}: upiu: expected bytes in hexadecimal, two digits each");
    assert!(text(&output.stderr).starts_with(&says), "{}", text(&output.stderr));
    room.bad(&["dev", "upius", "a.csv"], &["a.csv:1: expected one event per line"]);
    room.write("none.json", "[\n]\n");
    room.bad(&["dev", "upius", "none.json"], &["none.json: there is no UPIU"]);
}

const SMALL: [&str; 6] =
    ["--set", "lu.0.blocks=4800", "--set", "geometry.blocks_per_plane=30", "--set", "geometry.pages_per_block=16"];

#[test]
fn an_attached_device_leaves_a_whole_trace() {
    let room = Room::new();
    room.good(&[&["image", "create", "dev.img"], &SMALL[..]].concat());
    let args = ["attach", "dev.img", "--socket", "s", "--trace-io", "t.json"];
    let mut server = Running::start(&room, &args);
    server.until(|| room.path("s").exists().then_some(()));
    assert!(!room.path("t.json").exists(), "it takes its name when it is whole");
    server.interrupt();
    let output = server.end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let trace = json(&room.read("t.json"));
    let events = trace.as_array().expect("an array");
    assert_eq!(text(&output.stderr), format!("t.json: {} events\n", events.len()));
    assert!(room.read("t.json").contains("dev.img, ufs21-64g; wall_ns 0 is "));
    let last = events.last().expect("a mark");
    assert!(last["name"] == "reset" && last["args"]["wall_ns"].as_u64() > Some(0), "{last}");
    assert!(events.iter().all(|e| e["cat"] != "upiu"), "its own flush is not a machine's");

    // A disk that is full ends the recording, not the server; it is said at the end.
    let args = ["attach", "dev.img", "--socket", "s2", "--trace-io", "/dev/full"];
    let mut server = Running::start(&room, &args);
    server.until(|| room.path("s2").exists().then_some(()));
    server.interrupt();
    let output = server.end();
    assert_eq!(output.status.code(), Some(1));
    let says = "readpath: /dev/full: the trace is not whole: No space left on device";
    assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));

    // What does not begin leaves nothing, and takes nothing away.
    let left = || fs::read_dir(room.path("")).expect("a folder").count();
    let before = left();
    let _taken = UnixListener::bind(room.path("taken")).expect("a socket");
    for (args, says) in [
        (["--socket", "taken", "--trace-io", "new.json"], "taken"),
        (["--socket", "s", "--trace-io", "no/such/t.json"], "no/such/t.json: cannot be written"),
        (["--socket", "s", "--trace-io", "dev.img"], "dev.img: this is the input; write to another file"),
        (["--socket", "s", "--trace-io", "-"], "--trace-io: standard output has what the program says"),
    ] {
        let output = room.output(&[&["attach", "dev.img"], &args[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {}", text(&output.stderr));
    }
    assert_eq!(left(), before + 1, "only the socket is new");
    assert!(room.good(&["image", "info", "dev.img"]).contains("ufs21-64g"));
}
