// SPDX-License-Identifier: MIT OR Apache-2.0
//! `crash`: from a served device to the states that are not survived.

use crate::common::running::Running;
use crate::common::{Room, json, text, value, verdict};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// An NBD client that waits for each answer.
struct Client(UnixStream);

impl Client {
    fn ask(&mut self, command: u16, offset: u64, data: &[u8]) {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend([0, 0]);
        request.extend(command.to_be_bytes());
        request.extend(7u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend((data.len() as u32).to_be_bytes());
        request.extend(data);
        self.0.write_all(&request).expect("a server");
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply).expect("an answer");
        assert_eq!(reply[4..8], [0; 4], "no error");
    }
}

/// A folder with the recording of some writes and flushes, and the image with which it began.
fn recorded(more: &[&str]) -> Room {
    let room = Room::new();
    let small = ["geometry.blocks_per_plane=30", "geometry.pages_per_block=16", "lu[0].blocks=4800"];
    let set = small.iter().flat_map(|set| ["--set", set]);
    room.good(&["image", "create", "start.img"].into_iter().chain(set).collect::<Vec<_>>());
    std::fs::copy(room.path("start.img"), room.path("dev.img")).expect("a copy");
    let serve = ["serve", "dev.img", "--nbd", "unix:nbd", "--instant", "--control", "ctl", "--record", "day.rec"];
    let mut server = Running::start(&room, &[&serve[..], more].concat());
    let stream = server.until(|| UnixStream::connect(room.path("nbd")).ok());
    let mut client = Client(stream);
    client.0.read_exact(&mut [0; 18]).expect("a greeting");
    client.0.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").expect("a server");
    client.0.read_exact(&mut [0; 10]).expect("an export");
    for i in 1..=6u8 {
        client.ask(WRITE, u64::from(i) * 4096, &[i; 4096]);
        if i % 3 == 0 {
            client.ask(FLUSH, 0, &[]);
            room.good(&["ctl", "ctl", "mark", "written", &i.to_string()]);
        }
    }
    drop(client);
    server.interrupt();
    assert!(server.end().status.success());
    room
}

#[test]
fn states_are_tried_and_the_smallest_that_fails_is_named() {
    let room = recorded(&["--data"]);
    let crash = ["crash", "day.rec", "--image", "start.img", "--budget", "60"];
    for states in ["permitted", "device"] {
        let said = room.good(&[&crash[..], &["--states", states, "--", "true"]].concat());
        assert!(said.starts_with("CHECK survived all "), "{said}");
    }
    // Where the second of two writes is lost that are not durable yet.
    let check = ["--", "sh", "-c", "case $STATE in *lost=2*) echo it is lost; exit 9;; esac"];
    let output = room.output(&[&crash[..], &["--out", "out", "--keep", "kept"], &check].concat());
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.starts_with("CHECK did not survive "), "{said}");
    assert!(said.contains("the smallest loses 1 request: permitted:") && said.contains("it is lost"), "{said}");
    let document = json(&room.read("out/result.json"));
    assert!(verdict(&document).starts_with("CHECK did not survive"));
    assert!(value(&document, "permitted", "crash_states") > 20.0);
    assert!(room.read("out/report.html").contains("CHECK did not survive"));
    let again = room.output(&[&crash[..], &["--keep", "kept"], &check].concat());
    assert!(text(&again.stdout).contains(" outcomes were known"), "{}", text(&again.stdout));
    let name = document["configuration"]["failed"][0]["state"].as_str().expect("a name");
    let one = room.output(&[&crash[..], &["--state", name], &check].concat());
    assert_eq!((one.status.code(), text(&one.stdout)), (Some(3), "it is lost\n"));
    let marked = ["--timeout", "1m", "--state", "permitted:sent=8", "--", "sh", "-c", "test \"$MARK\" = 'written 3'"];
    assert_eq!(room.good(&[&crash[..], &marked].concat()), "CHECK survived permitted:sent=8.\n");
}

#[test]
fn what_cannot_be_tried_is_told() {
    let room = recorded(&[]);
    let crash = ["crash", "day.rec", "--image", "start.img"];
    room.bad(&[&crash[..], &["--", "true"]].concat(), &["day.rec: write 1 has no data", "--record --data"]);
    let room = recorded(&["--data"]);
    room.bad(&["crash", "day.rec", "--image", "dev.img", "--", "true"], &["it did not begin with this image"]);
    room.bad(&["crash", "start.img", "--image", "start.img", "--", "true"], &["it is no recording of a server"]);
    room.bad(&crash, &["required", "-- <CHECK>"]);
    for (more, says) in [
        (&["--", "./missing"][..], "./missing: cannot be started"),
        (&["--", "false"], "nothing is lost (exit status 1)"),
        (&["--budget", "0", "--", "true"], "at least one state"),
        (&["--timeout", "5", "--", "true"], "units are"),
        (&["--state", "permitted:sent=99", "--", "true"], "names no state"),
        (&["--keep", "day.rec", "--", "true"], "day.rec"),
    ] {
        room.bad(&[&crash[..], more].concat(), &[says]);
    }
}

#[test]
fn who_interrupts_leaves_nothing_behind_and_goes_on_later() {
    let room = recorded(&["--data"]);
    let check = "echo $SOCKET $$ >was.new; mv was.new was; case $STATE in *lost*) sleep 1000;; esac";
    let crash = ["crash", "day.rec", "--image", "start.img", "--keep", "kept", "--threads", "1", "--", "sh", "-c"];
    let mut running = Running::start(&room, &[&crash[..], &[check]].concat());
    let outcomes = || std::fs::read_to_string(room.path("kept/outcomes.jsonl")).ok().map(|text| text.lines().count());
    running.until(|| outcomes().filter(|&lines| lines > 2));
    let (socket, pid) = running.until(|| {
        let was = std::fs::read_to_string(room.path("was")).ok()?;
        let (socket, pid) = was.trim().split_once(' ')?;
        let state = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        (!state.is_empty()).then(|| (socket.to_owned(), pid.parse::<i32>().expect("a number")))
    });
    running.interrupt();
    let output = running.end();
    assert_eq!(output.status.code(), Some(130));
    assert!(text(&output.stderr).contains("are kept: the same command goes on"), "{}", text(&output.stderr));
    assert!(!std::path::Path::new(&socket).parent().expect("a folder").exists());
    let pid = Pid::from_raw(pid).expect("a process");
    assert!(test_kill_process(pid).is_err() || kill_process(pid, Signal::KILL).is_err(), "CHECK is still there");
    assert!(outcomes().expect("outcomes") > 2);
}

/// The file of outcomes cannot grow, as on a full disk. What it has counts when there is space again.
#[test]
fn a_full_disk_is_told_and_loses_no_outcome() {
    let room = recorded(&["--data"]);
    let crash = ["crash", "day.rec", "--image", "start.img", "--keep", "kept", "--threads", "2", "--", "true"];
    let limited = "ulimit -f 2; trap '' XFSZ; exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_readpath");
    let mut full = std::process::Command::new("sh");
    full.args(["-c", limited, program]).args(crash).current_dir(room.path(""));
    let output = full.output().expect("sh runs");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    for says in ["kept/outcomes.jsonl: File too large", "the outcomes so far are kept"] {
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
    let kept = room.read("kept/outcomes.jsonl");
    assert!(kept.ends_with('\n') && kept.len() > 800, "{kept}");
    let known = kept.lines().count() - 1;
    let again = room.good(&crash);
    assert!(again.contains(&format!("\n{known} outcomes were known")), "{known}: {again}");
}
