// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where output goes that is no plain file, and what is never written to.

use crate::common::Room;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};

const TRACE: &str = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n1000,R,8192,4096,,\n";

const JOB: &str = "[reads]\nrw=randread\nsize=1m\n";

fn room() -> Room {
    Room::with("plain.csv", TRACE)
}

fn convert(room: &Room, into: &str) -> std::process::Output {
    room.output(&["trace", "convert", "plain.csv", "--output", into])
}

#[test]
fn a_link_is_followed_and_stays() {
    let room = room();
    room.write("target.csv", "old");
    symlink("target.csv", room.path("link.csv")).expect("a link");
    assert!(convert(&room, "link.csv").status.success());
    assert!(fs::symlink_metadata(room.path("link.csv")).expect("it").is_symlink());
    assert!(room.read("target.csv").contains("8192"));
}

#[test]
fn a_pipe_stays_a_pipe_and_gets_what_is_written() {
    let room = room();
    let pipe = room.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).expect("text")
    });
    assert!(convert(&room, "pipe").status.success());
    let text = reader.join().expect("a reader");
    assert!(text.contains("8192"), "{text}");
    assert!(fs::symlink_metadata(&pipe).expect("it").file_type().is_fifo());
}

#[test]
fn a_dash_is_standard_output() {
    let room = room();
    let files = room.files();
    let output = convert(&room, "-");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.lines().count() == 3 && out.ends_with(",R,8192,4096,,\n"), "{out} {err}");
    assert!(err.ends_with("-: 2 requests\n"), "what is said of it goes elsewhere: {err}");
    assert_eq!(room.files(), files, "- is no file");
}

#[test]
fn the_input_is_not_written_to() {
    let room = room();
    fs::hard_link(room.path("plain.csv"), room.path("same.csv")).expect("a link");
    for into in ["plain.csv", "./same.csv"] {
        room.bad(&["trace", "convert", "plain.csv", "--output", into], &["this is the input"]);
    }
    assert_eq!(room.read("plain.csv"), TRACE);
    room.write("result.json", "{}");
    room.bad(&["report", "result.json", "--output", "result.json"], &["this is the input"]);
    assert_eq!(room.read("result.json"), "{}");
}

/// A folder's two files may be inputs under other names.
#[test]
fn no_input_is_replaced_by_a_document() {
    const STREAM: &str = "r,1,32768,188,0,idx\n";
    let room = room();
    fs::create_dir(room.path("in")).expect("a folder");
    room.write("in/result.json", STREAM);
    room.write("limits", "1,0\n");
    room.write("stream.csv", STREAM);
    symlink("../limits", room.path("in/report.html")).expect("a link");
    room.bad(&["ubi", "replay", "in/result.json", "--out", "in"], &["in/result.json: this is the input"]);
    let pressed = ["ubi", "replay", "stream.csv", "--pressure", "limits", "--out", "in"];
    room.bad(&pressed, &["in/report.html: this is the input"]);
    assert_eq!((room.read("in/result.json"), room.read("limits")), (STREAM.into(), "1,0\n".into()));
    fs::create_dir(room.path("traces")).expect("a folder");
    fs::hard_link(room.path("plain.csv"), room.path("traces/report.html")).expect("a link");
    let says = ["traces/report.html: this is the input"];
    room.bad(&["replay", "plain.csv", "--out", "traces"], &says);
    room.bad(&["replay", "stream.csv", "--precondition", "plain.csv", "--out", "traces"], &says);
    room.bad(&["trace", "info", "plain.csv", "--out", "traces"], &says);
    room.bad(&["compare", "plain.csv", "--out", "traces"], &says);
    room.bad(&["compare", "stream.csv", "--precondition", "plain.csv", "--out", "traces"], &says);
    assert_eq!(room.read("plain.csv"), TRACE);
    for (text, input) in [("1,suspend\n", "--events"), ("1,8M\n", "--pressure")] {
        room.write("plain.csv", text);
        let memory = ["--policy", "lru", "--host-memory", "8M"];
        let args = [&["replay", "stream.csv", input, "plain.csv", "--out", "traces"], &memory[..]].concat();
        room.bad(&args, &says);
        assert_eq!(room.read("plain.csv"), text);
    }
    room.write("plain.csv", JOB);
    room.bad(&["power", "plain.csv", "--out", "traces"], &says);
    room.bad(&["fio", "plain.csv", "--out", "traces"], &says);
    room.bad(&["fio", "plain.csv", "--output", "traces/report.html"], &says);
    room.bad(
        &["fio", "plain.csv", "--hpb", "dcm", "--output-format", "json", "--output", "plain.csv"],
        &["plain.csv: this is the input"],
    );
    assert_eq!(room.read("plain.csv"), JOB);
}
