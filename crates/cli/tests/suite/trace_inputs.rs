// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces from standard input and from pipes, traces that memory does not hold, and a program that is stopped while it
//! waits for a trace.

use crate::common::running::Running;
use crate::common::{Room, figure, text};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

const TRACE: &str = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n1000,R,8192,4096,,\n";

fn gz(name: &str, room: &Room) -> Vec<u8> {
    assert!(Command::new("gzip").arg(room.path(name)).status().expect("gzip").success());
    std::fs::read(room.path(&format!("{name}.gz"))).expect("a file")
}

/// The program, which reads `input`.
fn fed(room: &Room, args: &[&str], input: &[u8]) -> Output {
    room.command(args).write_stdin(input).output().expect("the program runs")
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("a document")
}

#[test]
fn a_trace_may_come_from_standard_input() {
    let room = Room::with("t.csv", TRACE);
    let rows = |doc: &Value| doc["rows"].to_string().replace("\"t.csv\"", "\"stdin\"");
    for args in
        [&["trace", "info", "t.csv", "--json"][..], &["replay", "t.csv", "--json"], &["compare", "t.csv", "--json"]]
    {
        let of_file = document(&room.output(args));
        let piped: Vec<&str> = args.iter().map(|a| if *a == "t.csv" { "-" } else { a }).collect();
        let of_pipe = document(&fed(&room, &piped, TRACE.as_bytes()));
        assert_eq!(rows(&of_pipe), rows(&of_file), "{args:?}");
        assert_eq!(of_pipe["inputs"][0]["file"], "stdin");
        assert_eq!(of_pipe["inputs"][0]["sha256"], of_file["inputs"][0]["sha256"], "{args:?}");
        assert!(of_pipe["inputs"][0]["sha256"].is_string());
    }
    room.write("before.csv", TRACE);
    let doc =
        document(&fed(&room, &["replay", "t.csv", "--precondition", "-", "--json", "--hpb", "off"], TRACE.as_bytes()));
    assert_eq!((&doc["inputs"][0]["file"], &doc["inputs"][1]["file"]), (&"stdin".into(), &"t.csv".into()));
    // Standard input is decompressed, and converts to the same file as a file does.
    let packed = gz("before.csv", &room);
    let output = fed(&room, &["trace", "convert", "-", "--output", "new.csv"], &packed);
    assert!(output.status.success() && text(&output.stdout).contains("stdin: format csv, gzip"), "{output:?}");
    assert_eq!(room.read("new.csv"), TRACE);
    // A file named "stdin" is not standard input, and ./- is a file.
    room.write("stdin", TRACE);
    room.write("-", TRACE);
    let doc = document(&fed(&room, &["replay", "-", "stdin", "./-", "--json", "--hpb", "off"], TRACE.as_bytes()));
    let cases: Vec<&str> = doc["rows"].as_array().expect("rows").iter().filter_map(|r| r["case"].as_str()).collect();
    for name in ["-", "stdin", "./-"] {
        assert!(cases.contains(&name), "{name}: {cases:?}");
    }
}

#[test]
fn standard_input_is_read_once_and_never_written_to() {
    let room = Room::with("t.csv", TRACE);
    let twice = ["- is standard input, which can be read once, but it is given 2 times"];
    room.bad(&["replay", "-", "--precondition", "-", "--out", "new"], &twice);
    room.bad(&["replay", "t.csv", "--precondition", "-", "--precondition", "-"], &twice);
    room.bad(&["compare", "-", "--precondition", "-"], &twice);
    room.bad(&["replay", "-", "-"], &["-: is given twice"]);
    // Here it is empty.
    room.bad(&["trace", "info", "-", "--out", "new"], &["stdin: it is empty"]);
    let output = fed(&room, &["trace", "info", "-"], b"0,R,0,4096,,\nx\n");
    assert!(text(&output.stderr).starts_with("readpath: stdin: the format is not recognised"), "{output:?}");
    std::fs::create_dir(room.path("made")).expect("a folder");
    room.write("made/result.json", TRACE);
    let input = File::open(room.path("made/result.json")).expect("a file");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("readpath"));
    let output = command.current_dir(room.path("")).args(["replay", "-", "--out", "made"]).stdin(input).output();
    let output = output.expect("the program runs");
    assert_eq!((output.status.code(), room.read("made/result.json")), (Some(2), TRACE.into()));
    assert!(text(&output.stderr).contains("result.json: this is the input"), "{output:?}");
}

/// A trace that memory does not hold, while the rest of the program has room.
#[test]
fn a_trace_that_memory_does_not_hold_is_refused() {
    let room = Room::new();
    // 4 million requests take 64 MiB.
    let rows = "3,W,0,512,,\n".repeat(4 << 20);
    let file = File::create(room.path("long.csv.gz")).expect("a file");
    let mut gzip =
        Command::new("gzip").arg("-1").stdin(std::process::Stdio::piped()).stdout(file).spawn().expect("gzip");
    let mut into = gzip.stdin.take().expect("a pipe");
    into.write_all(TRACE.as_bytes()).and_then(|()| into.write_all(rows.as_bytes())).expect("rows");
    drop(into);
    assert!(gzip.wait().expect("gzip").success());
    let script = "ulimit -v 80000; exec \"$0\" replay long.csv.gz --hpb off --out made";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(assert_cmd::cargo::cargo_bin("readpath")).current_dir(room.path(""));
    let output = shell.output().expect("a shell");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let message = text(&output.stderr);
    assert!(message.starts_with("readpath: long.csv.gz: request "), "{message}");
    let says = "; split the trace, or replay it on a machine with more memory";
    assert!(message.contains("there is no memory for more than the first ") && message.contains(says), "{message}");
    assert_eq!(room.files(), [room.path("long.csv.gz")]);
}

fn pipe(room: &Room, name: &str) -> PathBuf {
    let pipe = room.path(name);
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    pipe
}

/// Whether the trace never begins, stops in its first bytes or in the middle of a row.
#[test]
fn who_is_stopped_while_a_trace_does_not_come_leaves_nothing() {
    for command in [&["replay", "trace"][..], &["compare", "trace"], &["replay", "t.csv", "--precondition", "trace"]] {
        for sent in [None, Some("ti"), Some(&TRACE[..TRACE.len() - 9])] {
            let room = Room::with("t.csv", TRACE);
            let pipe = pipe(&room, "trace");
            let mut running = Running::start(&room, &[command, &["--out", "made/here"]].concat());
            running.until(|| room.path("made/here").exists().then_some(()));
            // Kept open, so that there is no end.
            let writer = sent.map(|sent| {
                let mut writer = OpenOptions::new().write(true).open(&pipe).expect("a pipe with a reader");
                writer.write_all(sent.as_bytes()).expect("bytes");
                writer
            });
            running.interrupt();
            let output = running.end();
            assert_eq!(output.status.code(), Some(130), "{command:?} {sent:?}: {}", text(&output.stderr));
            assert_eq!(text(&output.stderr), "readpath: interrupted; nothing was written\n");
            assert_eq!(room.files(), [room.path("t.csv"), pipe], "{command:?} {sent:?}");
            drop(writer);
        }
    }
}

/// What the command shows of its runs is removed as well.
#[test]
fn who_is_stopped_while_reading_shows_nothing_any_more() {
    let room = Room::new();
    let pipe = pipe(&room, "trace");
    let mut running = Running::start(&room, &["replay", "trace", "--hpb", "off", "--stats=socket", "--out", "made"]);
    running.until(|| room.path("made").exists().then_some(()));
    assert!(room.path("socket").exists());
    running.interrupt();
    assert_eq!(running.end().status.code(), Some(130));
    assert_eq!(room.files(), [pipe]);
}

/// Times recorded in whole seconds come in bursts, and latencies are those of the bursts. A note says so first, and
/// with the requests spread over their seconds latencies are those of the device.
#[test]
fn coarse_times_are_told_and_spread() {
    let room = Room::new();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../workload/tests/data/own_cloudphysics.csv.gz");
    let fine = concat!(env!("CARGO_MANIFEST_DIR"), "/../workload/tests/data/own_mobile.csv.gz");
    let run = |args: &[&str]| -> (String, f64) {
        let doc = room.json(&[&["replay", "--json", "--hpb", "off"][..], args].concat());
        let mean = figure(&doc, &[("metric", "read_latency_mean")]).expect("a mean");
        (doc["notes"][0]["text"].as_str().expect("a note").to_owned(), mean)
    };
    let (note, bursts) = run(&[trace]);
    assert!(note.contains("COARSE TIMES: its times are whole multiples of 1.000 s: 99.7 %"), "{note}");
    assert!(note.contains("up to 528 start at once") && note.contains("--spread-ties"), "{note}");
    let (note, spread) = run(&[trace, "--spread-ties"]);
    assert!(note.contains("1562 of 1566 requests had the time of the one before and were SPREAD evenly"), "{note}");
    let (note, recorded) = run(&[fine]);
    assert!(!note.contains("COARSE"), "{note}");
    // The same requests, with times in microseconds.
    assert!(bursts > 10.0 * recorded && (spread / recorded - 1.0).abs() < 0.3, "{bursts} {spread} {recorded}");
    let shown = room.good(&["trace", "info", trace]);
    let notes = shown.lines().find(|l| l.starts_with("Note: ")).expect("a note");
    assert!(notes.contains("COARSE TIMES"), "{shown}");
    room.bad(&["replay", trace, "--spread-ties", "--iodepth", "4"], &["--spread-ties", "--iodepth"]);
    room.bad(&["replay", trace, "--spread-ties", "--max-idle", "1ms"], &["--max-idle"]);
}

/// Units of a device are named, and so are the options that choose.
#[test]
fn units_of_ftrace() {
    let room = Room::new();
    let row = |i: u32, unit: u32| {
        format!(
            " kw-2   [003] d..1.   832.24570{i}: ufshcd_command: send_req: 0:0:0:{unit}: tag: {i}, DB: 0x20, size: \
             4096, IS: 0, LBA: {i}, opcode: 0x28 (READ_10), group_id: 0x0\n"
        )
    };
    room.write("units.txt", &format!("# tracer: nop\n{}{}{}", row(1, 0), row(2, 1), row(3, 1)));
    room.bad(&["trace", "info", "units.txt"], &["units.txt:3:", "--trace-device NAME", "--merge-devices"]);
    room.bad(&["replay", "units.txt"], &["units.txt:3:", "--trace-device NAME", "--merge-devices"]);
    let one = room.good(&["trace", "info", "units.txt", "--trace-device", "0:0:0:1"]);
    assert!(one.contains("requests    2 over"), "{one}");
    assert!(room.good(&["trace", "info", "units.txt", "--merge-devices"]).contains("requests    3 over"));
}

/// What other programs write, and what the options have to say where it does not.
#[test]
fn traces_of_other_programs() {
    let room = Room::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../workload/tests/data/formats");
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), room.path(&entry.file_name().to_string_lossy())).expect("a copy");
    }
    let info = |rest: &[&str]| room.good(&[&["trace", "info"], rest].concat());
    let refused = |rest: &[&str], says: &[&str]| room.bad(&[&["trace", "info"], rest].concat(), says);
    refused(&["alibaba.csv"], &["not recognised", "; rows of format alibaba look like this one"]);
    refused(&["alibaba.csv", "--format", "alibaba"], &["alibaba.csv:2: ", "--trace-device NAME", "--merge-devices"]);
    let one = info(&["alibaba.csv", "--format", "alibaba", "--trace-device", "420"]);
    assert!(one.contains("requests to other devices were left out"), "{one}");
    refused(&["requests.v2.lcs.zst"], &["requests.v2.lcs.zst: lcs numbers objects", "(--object-bytes)"]);
    let shown = info(&["requests.v2.lcs.zst", "--object-bytes", "512", "--merge-devices"]);
    assert!(shown.contains("addresses are numbers of objects times 512 bytes") && !shown.contains("READS"), "{shown}");
    let shown = info(&["requests.oracleGeneral.zst", "--format", "oracle-general", "--object-bytes", "512"]);
    assert!(shown.contains("its accesses have no operation; all were taken for READS"), "{shown}");
    refused(&["requests.v1.vscsi", "--object-bytes", "512"], &["go with oracle-general and lcs, not with vscsi"]);
    room.bad(&["trace", "info", "x", "--object-bytes", "0"], &["invalid value '0' for '--object-bytes"]);
    let folded = room.good(&["replay", "requests.v2.vscsi", "--fold", "--hpb", "off"]);
    assert!(folded.contains("requests.v2.vscsi: format vscsi"), "{folded}");
    let shown = info(&["zlib.pftrace"]);
    let other = "52 requests of the other layer were left out (--format perfetto-block takes those instead)";
    assert!(shown.contains("format perfetto-ufs") && shown.contains(other), "{shown}");
    let options = ["--format", "perfetto-block", "--merge-devices"];
    room.good(&[&["trace", "convert", "zstd.pftrace", "--output", "new.csv"], &options[..]].concat());
    assert_eq!(room.read("new.csv").lines().count(), 53);
    let whole = std::fs::read(room.path("plain.pftrace")).expect("a file");
    std::fs::write(room.path("cut.pftrace"), &whole[..whole.len() - 1]).expect("a file");
    let says = ["cut.pftrace: byte ", "the packet that begins here is cut off: 1 of its bytes are missing"];
    refused(&["cut.pftrace"], &says);
}

/// A trace from behind a partition that is not aligned says so, and how that is put right.
#[test]
fn a_shift_is_suggested_and_taken() {
    let room = Room::new();
    let rows: String = (0..20).map(|i| format!("{i},R,{},4096,,\n", (i * 8 + 7) * 512)).collect();
    room.write("t.csv", &format!("time_ns,op,offset_bytes,size_bytes,process,latency_ns\n{rows}"));
    let shown = room.good(&["trace", "info", "t.csv"]);
    let says = "100.0 % of its requests begin 7 sectors behind a block of 4 KiB";
    assert!(shown.contains(says) && shown.contains("--shift-sectors 1 puts them right"), "{shown}");
    let shifted = room.good(&["trace", "info", "t.csv", "--shift-sectors", "1"]);
    assert!(!shifted.contains(says) && shifted.contains("shifted by 1 sectors"), "{shifted}");
    assert!(shifted.contains("      0.0 %\n"), "none is unaligned: {shifted}");
}

/// Messages on wrong arguments suggest the right one.
#[test]
fn mistakes_in_typing() {
    let room = Room::new();
    room.bad(&["foi", "job.fio"], &["unrecognized subcommand 'foi'", "'fio'"]);
    let message = room.bad(&["iozone", "--seed", "-1", "--", "-r", "4k"], &["invalid value '-1' for '--seed"]);
    assert!(!message.contains("-- -1"), "{message}");
    room.write("t.csv", "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n");
    room.bad(&["replay", "t.csv", "--host-memory", "16MB"], &["write 16MiB: sizes here are multiples of 1024"]);
}
