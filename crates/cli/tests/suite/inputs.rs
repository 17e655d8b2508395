// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs as they come: names that are not UTF-8, byte order marks, and a program that is stopped while it reads.

use crate::common::running::Running;
use crate::common::{Room, text};
use rustix::process::{Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

const JOB: &str = "[reads]\nrw=randread\nsize=1m\n";

#[test]
fn names_of_job_files_need_not_be_utf_8() {
    let room = Room::new();
    let name = OsStr::from_bytes(b"b\xFF.fio");
    fs::write(room.path("").join(name), JOB).expect("a file");
    for (command, more) in [("fio", &[][..]), ("power", &["--cuts", "1"]), ("compare", &["--seeds", "1"])] {
        let mut args: Vec<OsString> = vec![command.into(), name.into(), "--json".into(), "--hpb".into(), "off".into()];
        args.extend(more.iter().map(Into::into));
        let output = room.command(&[]).args(&args).output().expect("the program runs");
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(document["inputs"][0]["file"], "b\u{FFFD}.fio", "{command}");
    }
}

/// Standard input is a job as any file is, for every seed of a comparison too.
#[test]
fn jobs_come_from_standard_input() {
    let room = Room::with("job.fio", JOB);
    let rows = |args: &[&str]| {
        let output = room.command(args).args(["--json", "--hpb", "off"]).write_stdin(JOB).output().expect("it runs");
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
        let rows = document["rows"].as_array().expect("rows").clone();
        rows.into_iter().map(|row| row["simulated"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(rows(&["fio", "-"]), rows(&["fio", "job.fio"]));
}

/// Whatever its name: commands that take jobs and traces look at the beginning.
#[test]
fn a_job_is_known_by_its_beginning() {
    let room = Room::with("job", &format!("# mine\n{JOB}"));
    room.write("job.fio", JOB);
    for command in ["compare", "break-even", "power"] {
        let few: &[&str] = match command {
            "compare" => &["--seeds", "2"],
            "break-even" => &["--to", "128"],
            _ => &["--cuts", "1", "--hpb", "off", "--set", "lu.0.blocks=4800", "--set", "geometry.blocks_per_plane=30"],
        };
        let figures = |file: &str| {
            let document = room.json(&[&[command, file, "--json"], few].concat());
            let rows = document["rows"].as_array().expect("rows").clone();
            rows.into_iter().map(|row| row["simulated"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(figures("job"), figures("job.fio"), "{command}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_job() {
    let room = Room::with("plain.fio", JOB);
    room.write("mark.fio", &format!("\u{feff}include more.fio\n{JOB}"));
    room.write("more.fio", "\u{feff}[global]\nbs=4k\n");
    let rows = |file: &str| {
        let document = room.json(&["fio", file, "--json", "--hpb", "off"]);
        let rows = document["rows"].as_array().expect("rows").clone();
        rows.into_iter().map(|row| row["simulated"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(rows("mark.fio"), rows("plain.fio"));
}

#[test]
fn who_is_stopped_while_reading_a_trace_leaves_no_folder() {
    let room = Room::new();
    let pipe = room.path("trace");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let mut running = Running::start(&room, &["trace", "info", "trace", "--out", "made/here"]);
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).expect("a pipe with a reader");
    let row = |i: u64| format!("{i},R,{},4096,,\n", i * 4096);
    let rows = |from: u64| (from..from + 30_000).map(row).collect::<String>();
    writer.write_all(b"time_ns,op,offset_bytes,size_bytes,process,latency_ns\n").expect("the header");
    // More than a pipe holds, so that the program has begun to read.
    writer.write_all(rows(0).as_bytes()).expect("rows");
    running.until(|| room.path("made/here").exists().then_some(()));
    let pid = rustix::process::Pid::from_raw(running.pid() as i32).expect("a process");
    kill_process(pid, Signal::TERM).expect("a signal");
    // The program checks between two batches of requests, and has ended by some later one.
    let (begun, mut next) = (Instant::now(), 30_000);
    while writer.write_all(rows(next).as_bytes()).is_ok() && begun.elapsed() < Duration::from_secs(60) {
        next += 30_000;
    }
    drop(writer);
    let output = running.end();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(!room.path("made").exists(), "nothing is left behind");
}

#[test]
fn who_is_stopped_before_any_request_leaves_nothing_either() {
    for (args, begun) in [
        (&["trace", "convert", "trace", "--output", "new.csv"][..], "new.csv.part"),
        (&["trace", "info", "trace", "--out", "made"], "made"),
    ] {
        let room = Room::new();
        let pipe = room.path("trace");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let mut running = Running::start(&room, &[args, &["--format", "msr", "--lenient"]].concat());
        let mut writer = fs::OpenOptions::new().write(true).open(&pipe).expect("a pipe with a reader");
        // Longer than it takes to stop, but not for ever.
        let (noise, until) = (vec![b'\n'; 1 << 16], Instant::now() + Duration::from_secs(300));
        let writing = std::thread::spawn(move || while Instant::now() < until && writer.write_all(&noise).is_ok() {});
        let begun = room.path(begun).display().to_string();
        running.until(|| room.files().iter().any(|f| f.display().to_string().starts_with(&begun)).then_some(()));
        running.interrupt();
        let output = running.end();
        assert_eq!(output.status.code(), Some(130), "{args:?}: {}", text(&output.stderr));
        assert_eq!(room.files(), [pipe], "{args:?}");
        writing.join().expect("the writer ends");
    }
}

/// Block requests and the UFS commands made of them are the same work twice: one kind is left out, with a note.
#[test]
fn requests_of_the_other_layer_are_told() {
    let room = Room::new();
    let ufs = " kw-2   [003] d..1.   832.245700: ufshcd_command: send_req: 14700000.ufs: tag: 5, DB: 0x20, size: 4096, \
               IS: 0, LBA: 100, opcode: 0x28 (READ_10), group_id: 0x0\n";
    let block = " kw-7   [003] ....   833.000200: block_rq_issue: 8,0 WS 4096 () 64 + 8 be,0,4 [kw]\n";
    room.write("both.txt", &format!("# tracer: nop\n{ufs}{block}{block}"));
    let shown = room.good(&["trace", "info", "both.txt"]);
    let says = "2 requests of the other layer were left out (--format ftrace-block takes those instead)";
    assert!(shown.contains(says), "{shown}");
    let shown = room.good(&["trace", "info", "both.txt", "--format", "ftrace-block"]);
    assert!(shown.contains("1 requests of the other layer were left out (--format ftrace-ufs"), "{shown}");
}
