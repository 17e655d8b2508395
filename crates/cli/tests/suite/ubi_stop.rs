// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C ends the commands about raw NAND at once, with the status of all others, and leaves nothing in part.

use crate::common::running::Running;
use crate::common::{Room, text};
use assert_cmd::cargo::cargo_bin;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A stream that takes long with all sizes of a cache, and none of it is in a cache before.
fn long_stream() -> String {
    let read = |i: u32| format!("r,{},{},60,0,idx\n", i.wrapping_mul(2_654_435_761) >> 20, 32_768 + (i % 97) * 16_384);
    (0..200_000).map(read).collect()
}

/// Sizes enough for minutes.
fn sizes() -> String {
    (1..=400).map(|n| (n * 16).to_string()).collect::<Vec<_>>().join(",")
}

/// Interrupts a command after it has worked for some time, and a little later the next time.
fn interrupted(room: &Room, args: &[&str]) {
    let before = room.files();
    for ms in [150, 400, 900] {
        let mut running = Running::start(room, args);
        running.listens();
        running.has_worked(Duration::from_millis(ms));
        let begun = Instant::now();
        running.interrupt();
        let output = running.end();
        assert!(begun.elapsed() < Duration::from_secs(20), "{args:?}: {:?}", begun.elapsed());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{args:?}: {said}");
        assert_eq!(said, "readpath: interrupted; nothing was written\n", "{args:?}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
        assert_eq!(room.files(), before, "{args:?} leaves nothing behind");
    }
}

#[test]
fn a_replay_leaves_nothing() {
    let room = Room::with("s.csv", &long_stream());
    let sizes = sizes();
    let caches = ["--cache", "lru,arc+split,opt,adaptive+split", "--lines", &sizes];
    interrupted(&room, &[&["ubi", "replay", "s.csv", "--page-size", "16K", "--out", "o/p"][..], &caches].concat());
    interrupted(&room, &[&["ubi", "replay", "s.csv", "--page-size", "16K"][..], &caches].concat());
}

#[test]
fn the_experiment_leaves_nothing() {
    let room = Room::new();
    fs::create_dir(room.path("t")).expect("a folder");
    let stream = long_stream();
    for i in 0..8 {
        room.write(&format!("t/x{i}_find.csv"), &stream);
    }
    interrupted(&room, &["reproduce", "ubi", "--traces", "t", "--out", "o"]);
}

#[test]
fn what_prints_as_it_goes_ends_where_nobody_reads() {
    let room = Room::with_dump("fx.mtd");
    let mut bytes = fs::read(room.path("fx.mtd")).expect("a file");
    // Something wrong in every 256 bytes of a few blocks: more findings than a pipe takes.
    (10..22)
        .flat_map(|peb| (2048..131_072).step_by(256).map(move |at| peb * 131_072 + at))
        .for_each(|at| bytes[at] ^= 1);
    fs::write(room.path("bad.mtd"), bytes).expect("a file");
    for (args, says) in [
        (&["ubi", "cat", "fx.mtd", "special/text300k"][..], "readpath: interrupted\n"),
        (&["ubi", "find", "--json", "fx.mtd"], "readpath: interrupted\n"),
        (&["ubi", "check", "bad.mtd", "--most", "100000"], "readpath: interrupted\n"),
        (
            &["ubi", "stream", "fx.mtd", "cat", "/", "--output", "/dev/stdout", "--with-mount", "--pebs", "9000"],
            "readpath: interrupted; nothing was written\n",
        ),
    ] {
        let before = room.files();
        for signal in [Signal::INT, Signal::TERM] {
            let mut child = Command::new(cargo_bin("readpath"))
                .current_dir(room.path("."))
                .args(args)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the program starts");
            // It has begun to print, so it heard of signals before, and will soon wait for a reader of more.
            let mut out = child.stdout.take().expect("a pipe");
            out.read_exact(&mut [0; 100]).expect("some of it");
            kill_process(Pid::from_child(&child), signal).expect("a signal");
            let status = child.wait().expect("an end");
            let mut said = String::new();
            child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
            assert_eq!((status.code(), said.as_str()), (Some(130), says), "{args:?}");
            drop(out);
        }
        assert_eq!(room.files(), before, "{args:?} leaves nothing behind");
    }
}
