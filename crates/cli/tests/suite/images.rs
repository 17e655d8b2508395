// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath image`, `serve` and `ctl` as a user types them: what they print, and what becomes of mistakes.

use crate::common::{Room, text};
use readpath_device::{Own, RpmbUpdate};
use readpath_stack::Payload;
use readpath_store::{Image, Store};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command as Process, Output, Stdio};

/// A device of 19 MiB.
const SMALL: [&str; 6] =
    ["--set", "lu.0.blocks=4800", "--set", "geometry.blocks_per_plane=30", "--set", "geometry.pages_per_block=16"];

fn create(room: &Room, more: &[&str]) -> String {
    room.good(&[&["image", "create", "dev.img"], &SMALL[..], more].concat())
}

/// A server. It ends with the test, however that ends.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.kill().ok();
    }
}

impl Serving {
    /// Ends it as Ctrl-C does; it has to end well.
    fn stop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.0.id() as i32).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

/// A server, once clients can connect.
fn serve(room: &Room, more: &[&str]) -> (Serving, BufReader<std::process::ChildStdout>) {
    let program = room.command(&[]).get_program().to_owned();
    let child = Process::new(program)
        .current_dir(room.path(""))
        .args(["serve", "dev.img", "--nbd", "unix:s"])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let mut child = Serving(child);
    let mut lines = BufReader::new(child.0.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.starts_with("serving ") {
        line.clear();
        assert!(lines.read_line(&mut line).expect("a line") > 0, "the server has ended");
    }
    (child, lines)
}

#[test]
fn a_program_runs_as_long_as_the_device_is_served() {
    let room = Room::new();
    create(&room, &[]);
    let run = |program: &str, more: &[&str]| room.output(&[&["serve", "dev.img", "--run", program], more].concat());
    let printed = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    // Its own words come first, and its sockets are gone afterwards.
    let output = run("test -S \"$control\" && echo \"$uri\" && \"$readpath\" ctl \"$control\" lie on >answer", &[]);
    let printed_by = printed(&output);
    let socket = printed_by.lines().next().and_then(|line| line.strip_prefix("nbd+unix:///?socket=")).expect("a place");
    assert!(output.status.success() && printed_by.lines().nth(1).is_some_and(|l| l.starts_with("0 requests of 0")));
    assert!(socket.ends_with("/nbd.sock") && !Path::new(socket).parent().expect("a folder").exists(), "{printed_by}");
    assert_ne!(room.read("answer"), "");
    let output = run("echo $uri $control", &["--nbd", "unix:s", "--control", "c"]);
    assert!(printed(&output).starts_with("nbd+unix:///?socket=s c\n"));
    // Its failure is the command's.
    for (program, status) in [("exit 7", 7), ("kill -9 $$", 137), ("/none", 127)] {
        let output = run(program, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = format!("readpath: the program of --run ended with status {status}\n");
        assert!(output.status.code() == Some(status) && said.ends_with(&expected), "{program}: {said}");
    }
    assert_eq!(run("touch ran", &["--faults", "none"]).status.code(), Some(2));
    assert!(!room.path("ran").exists(), "it does not start without a device");
    // A signal to the server ends both.
    let mut child = Process::new(room.command(&[]).get_program())
        .current_dir(room.path(""))
        .args(["serve", "dev.img", "--run", "echo up; exec sleep 600"])
        .stdout(Stdio::piped())
        .spawn()
        .map(Serving)
        .expect("the program");
    let mut lines = BufReader::new(child.0.stdout.take().expect("a pipe"));
    lines.read_line(&mut String::new()).expect("a line");
    let pid = rustix::process::Pid::from_child(&child.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(143));
    room.good(&["image", "check", "dev.img"]);
}

#[test]
fn an_image_is_made_described_checked_copied_and_emptied() {
    let room = Room::with("age.fio", "[j]\nfilename=/dev/sda\nrw=randwrite\nbs=4k\niodepth=8\nsize=12m\nloops=3\n");
    let made = create(&room, &["--fill", "sequential", "--age", "age.fio"]);
    assert!(made.starts_with("dev.img: ufs21-64g with 0.02 GiB, aged by age.fio"), "{made}");
    let info = room.good(&["image", "info", "dev.img"]);
    assert!(info.contains("written     0.02 GiB are mapped") && info.contains("erases of a superblock"), "{info}");
    let checked = room.good(&["image", "check", "dev.img"]);
    assert!(checked.ends_with("The device recovers from it, and everything adds up.\n"), "{checked}");
    room.good(&["image", "clone", "dev.img", "--output", "copy.img"]);
    let bytes = |name: &str| fs::read(room.path(name)).expect("an image");
    assert!(bytes("dev.img") == bytes("copy.img"));
    fs::write(room.path("other"), "mine").unwrap();
    room.bad(&["image", "clone", "dev.img", "--output", "other"], &["other: ", "exists"]);
    assert_eq!(bytes("other"), b"mine");
    let hidden = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    assert_eq!(fs::read_dir(room.path("")).unwrap().flatten().filter(hidden).count(), 0, "nothing is left over");
    assert!(std::process::Command::new("mkfifo").arg(room.path("pipe")).status().expect("mkfifo").success());
    room.bad(&["image", "check", "pipe"], &["pipe: it is no regular file"]);
    // The same command makes the same image, bit by bit.
    fs::remove_file(room.path("dev.img")).unwrap();
    create(&room, &["--fill", "sequential", "--age", "age.fio"]);
    assert!(bytes("dev.img") == bytes("copy.img"), "an image does not depend on anything but what was asked for");
    assert_eq!(room.good(&["image", "reset", "dev.img"]), "dev.img: empty\n");
    assert!(room.good(&["image", "info", "dev.img"]).contains("written     0.00 GiB are mapped"));
}

/// Changes the format in the first page of an image.
fn be_of_format(bytes: &mut [u8], format: u32) {
    bytes[16..20].copy_from_slice(&format.to_le_bytes());
    let check = crc32fast::hash(&bytes[..4092]);
    bytes[4092..4096].copy_from_slice(&check.to_le_bytes());
}

/// The example of a device with a zoned unit, which NBD clients cannot use.
#[test]
fn zones_are_told_and_not_served() {
    let room = Room::new();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/zoned.toml");
    room.good(&["image", "create", "dev.img", "--device", example, "--set", "lu.1.zones.size_mib=64"]);
    let info = room.good(&["image", "info", "dev.img"]);
    assert!(info.contains("zones       unit 1, of 64 MiB: 128 empty, 0 written in part, 0 full\n"), "{info}");
    assert!(info.contains("format      3\n"), "{info}");
    room.good(&["image", "check", "dev.img"]);
    // Zones of format 2 may lie in superblocks of their own too.
    let file = fs::File::options().read(true).write(true).open(room.path("dev.img")).unwrap();
    let mut page = vec![0; 4096];
    file.read_exact_at(&mut page, 0).unwrap();
    be_of_format(&mut page, 2);
    file.write_all_at(&page, 0).unwrap();
    assert_eq!(room.good(&["image", "info", "dev.img"]), info.replace("format      3", "format      2"));
    let says = ["logical unit 1 has zones, and NBD has no commands for them", "readpath attach"];
    room.bad(&["serve", "dev.img", "--nbd", "unix:s"], &says);
}

/// What is refused because another version made it is told with what can be done, and keeps every byte.
#[test]
fn images_of_other_formats_are_told_and_left_alone() {
    let room = Room::new();
    // `image create` of commit 910519b9 made it of docs/examples/zoned.toml, with 40 blocks a plane. All behind it is a
    // hole.
    let packed = &include_bytes!("../data/zones_in_page_map.img.xz")[..];
    let mut old = Vec::new();
    liblzma::read::XzDecoder::new(packed).read_to_end(&mut old).expect("an xz file");
    fs::write(room.path("old.img"), &old).unwrap();
    let length = 134_828_032;
    fs::File::options().write(true).open(room.path("old.img")).and_then(|file| file.set_len(length)).unwrap();
    create(&room, &[]);
    let whole = fs::read(room.path("dev.img")).unwrap();
    let newer = readpath_store::VERSION + 1;
    let mut bytes = whole.clone();
    be_of_format(&mut bytes, newer);
    fs::write(room.path("newer.img"), &bytes).unwrap();
    // Of a program that knows another key.
    let mut bytes = whole;
    let end = 8192 + u32::from_le_bytes(bytes[32..36].try_into().unwrap()) as usize;
    let at = text(&bytes[8192..end]).find("pinned_start").expect("a key");
    bytes[8192 + at] = b'q';
    let check = crc32fast::hash(&bytes[8192..end]);
    bytes[end..end + 4].copy_from_slice(&check.to_le_bytes());
    fs::write(room.path("key.img"), &bytes).unwrap();
    let reads = format!("reads formats 1 to {}", newer - 1);
    let old_says = ["old.img: it has format 2, with zones in the page map", &reads, "commit 910519b9 reads it", "copy"];
    let newer_says = [&format!("newer.img: it has format {newer}, and")[..], &reads, "use the newer one", "copy"];
    let key_says = ["key.img: the device file in it:", "qinned_start: is not a key", "of format 2: use that", "copy"];
    for (name, says) in [("old.img", old_says), ("newer.img", newer_says), ("key.img", key_says)] {
        let modified = || fs::metadata(room.path(name)).and_then(|file| file.modified()).unwrap();
        let before = (modified(), fs::read(room.path(name)).unwrap());
        for command in ["info", "check", "reset", "rpmb"] {
            room.bad(&["image", command, name], &says);
        }
        room.bad(&["image", "clone", name, "--output", "copy.img"], &says);
        room.bad(&["serve", name, "--nbd", "unix:s"], &says);
        room.bad(&["attach", name, "--socket", "s"], &says);
        assert!(before == (modified(), fs::read(room.path(name)).unwrap()), "{name} is as it was");
    }
    // Without zones, nothing of the newest format is needed, and older programs read the image.
    assert!(room.good(&["image", "info", "dev.img"]).contains("format      2\n"));
}

/// Whatever an image holds of RPMB: shown without its key, copied with the image, and forgotten when that is asked for.
#[test]
fn rpmb_is_shown_and_forgotten() {
    let room = Room::new();
    create(&room, &[]);
    let show = |name: &str| room.good(&["image", "rpmb", name]);
    let size = "size        4.00 MiB, 16384 blocks of 256 bytes\n";
    let new = format!("key         not programmed\ncounter     0\n{size}written     0 blocks are not zero\n");
    assert_eq!(show("dev.img"), new);
    assert!(room.good(&["image", "rpmb", "dev.img", "--reset"]).contains("has no key, and nothing was changed"));
    let key = *b"0123456789abcdefghijklmnopqrstuv";
    let keep = |counter, first, data: Vec<u8>| {
        let image = Image::open(&room.path("dev.img"), true, true).expect("an image");
        let mut store = Store::new(image.array);
        store.keep(Own::Rpmb(RpmbUpdate { key, counter, first, data }));
        assert_eq!(store.array().failure(), None);
    };
    keep(0, 0, Vec::new());
    keep(1, 16_380, [[0; 256], [1; 256], [2; 256]].concat());
    let written = format!("key         programmed\ncounter     1\n{size}written     2 blocks are not zero\n");
    assert_eq!(show("dev.img"), written);
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(room.good(&["image", "rpmb", "dev.img", "--key"]).starts_with(&format!("key         {hex}\n")));
    room.good(&["image", "check", "dev.img"]);
    room.good(&["image", "clone", "dev.img", "--output", "copy.img"]);
    room.good(&["image", "clone", "dev.img", "--output", "damaged.img"]);
    let told = room.good(&["image", "rpmb", "dev.img", "--reset"]);
    assert_eq!(told, "dev.img: key, write counter and blocks of RPMB are forgotten\n");
    assert_eq!(show("dev.img"), new);
    room.good(&["image", "check", "dev.img"]);
    assert_eq!(show("copy.img"), written);
    room.good(&["image", "reset", "copy.img"]);
    assert_eq!(show("copy.img"), new);
    // A block from the middle is only read.
    let path = room.path("damaged.img");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() - 300 * 256;
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    for command in [&["image", "rpmb", "damaged.img"][..], &["image", "check", "damaged.img"]] {
        let output = room.output(command);
        assert_eq!(output.status.code(), Some(4), "{command:?}");
        let said = text(&output.stderr).to_owned() + text(&output.stdout);
        assert!(said.contains("RPMB: block 16084 (byte "), "{said}");
    }
    room.bad(&["image", "rpmb", "none.img"], &["none.img", "No such file"]);
}

#[test]
fn mistakes_with_images_are_told() {
    let room = Room::with("no.img", "not an image");
    create(&room, &[]);
    room.bad(&["image", "create", "dev.img"], &["dev.img: already exists"]);
    room.bad(&["image", "create", "new.img", "--device", "nothing"], &["nothing"]);
    room.bad(&["image", "create", "new.img", "--age", "none.fio"], &["none.fio"]);
    room.bad(&["image", "clone", "dev.img", "--output", "no.img"], &["no.img"]);
    for command in ["info", "check", "reset"] {
        room.bad(&["image", command, "no.img"], &["no.img: it does not begin with 'readpath-image'"]);
        room.bad(&["image", command, "none.img"], &["none.img", "No such file"]);
    }
    let whole = fs::read(room.path("dev.img")).unwrap();
    fs::write(room.path("cut.img"), &whole[..whole.len() / 2]).unwrap();
    room.bad(&["image", "info", "cut.img"], &["cut.img", "it is cut off"]);
    room.bad(&["serve", "no.img"], &["no.img: it does not begin with"]);
    room.bad(&["serve", "dev.img", "--nbd", "tcp:0.0.0.0:1"], &["other machines", "--public"]);
    room.bad(&["serve", "dev.img", "--nbd", "here"], &["'here' is not an address", "unix:PATH"]);
    room.bad(&["serve", "dev.img", "--scale", "0"], &["--scale 0 is not possible"]);
    room.bad(&["serve", "dev.img", "--hpb", "prototype-host"], &["possible values: off, dcm, hcm"]);
    room.bad(&["ctl", "none.sock", "stats"], &["none.sock: no server listens there"]);
    // Damage is another exit status, as that of fsck.
    let mut damaged = whole;
    let at = damaged.len() - 5;
    damaged[at] ^= 1;
    let text_at = 8192 + 40;
    damaged[text_at] ^= 1;
    fs::write(room.path("damaged.img"), &damaged).unwrap();
    let output = room.output(&["image", "check", "damaged.img"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("the device file (byte 8192 of the image) is damaged"));
}

#[test]
fn a_server_is_told_what_to_do_and_ends_in_order() {
    let room = Room::new();
    create(&room, &["--fill", "random"]);
    let (mut child, mut lines) = serve(&room, &["--control", "c", "--hpb", "dcm"]);
    room.bad(&["image", "info", "dev.img"], &["dev.img: it is in use"]);
    room.bad(&["serve", "dev.img"], &["dev.img: it is in use"]);
    let stats = room.good(&["ctl", "c", "stats"]);
    assert!(
        stats.contains("readpath_connections_total 0\n") && stats.contains("readpath_hpb_hit_cnt_total{lun=\"0\"} 0\n"),
        "{stats}"
    );
    room.bad(&["ctl", "c", "lie on\ncut"], &["an order is one line"]);
    let cut = room.good(&["ctl", "c", "cut", "5ms"]);
    assert!(cut.contains("for 5.000 ms with 0 requests in flight") && cut.contains("recovered in"), "{cut}");
    room.bad(&["ctl", "c", "stall"], &["stall: is not an order", "stall TIME"]);
    let mode = fs::metadata(room.path("s")).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o022, 0, "only its user may connect");
    child.stop();
    let mut report = String::new();
    lines.read_to_string(&mut report).unwrap();
    assert!(report.starts_with("0 requests of 0 connections"), "{report}");
    assert!(!room.path("s").exists() && !room.path("c").exists(), "sockets are removed");
    room.good(&["image", "check", "dev.img"]);
}

/// A server is watched by Prometheus, by `readpath stats`, and by `readpath ctl watch`.
#[test]
fn a_server_is_watched() {
    let room = Room::new();
    create(&room, &[]);
    // A free port.
    let at = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").to_string();
    let (mut child, _lines) = serve(&room, &["--metrics", &at, "--stats=live", "--hpb", "dcm", "--control", "c"]);
    let get = |what: &str| {
        let mut socket = TcpStream::connect(&at).expect("it listens");
        write!(socket, "GET {what} HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    let metrics = get("/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    assert!(metrics.contains("\nreadpath_device_programs_total "), "{metrics}");
    assert!(get("/").starts_with("HTTP/1.1 404 "));
    let stats = room.good(&["stats", "live"]);
    assert!(stats.contains("hit_cnt"), "{stats}");
    let mut watch = Process::new(room.command(&[]).get_program());
    let watch = watch.current_dir(room.path("")).args(["ctl", "c", "watch"]).stdout(Stdio::piped()).spawn();
    let mut watch = watch.expect("the program");
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe"));
    let (mut names, mut values) = (String::new(), String::new());
    lines.read_line(&mut names).unwrap();
    lines.read_line(&mut values).unwrap();
    assert!(names.starts_with("requests/s,") && values.starts_with("0,"), "{names}{values}");
    child.stop();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("the server has ended\n") && watch.wait().unwrap().success(), "{rest}");
}

/// A recording is replayed on the image that it began with; orders of a file are part of it.
#[test]
fn a_server_is_recorded_and_replayed() {
    let room = Room::new();
    create(&room, &["--fill", "random"]);
    room.good(&["image", "clone", "dev.img", "--output", "start.img"]);
    room.write("faults", "0s slow read 5ms\n1ms cut 2ms # and nothing else\n");
    let more = ["--hpb", "hcm", "--control", "c", "--record", "rec", "--faults", "faults"];
    let (mut child, _lines) = serve(&room, &more);
    let told = room.good(&["ctl", "c", "host", "policy=lru", "memory=1M"]);
    assert_eq!(told, "host policy=lru memory=1M\n");
    child.stop();
    let replayed = room.good(&["replay", "rec", "--image", "start.img"]);
    assert!(replayed.contains("hpb=hcm\n2 requests in "), "{replayed}");
    assert!(replayed.contains("each took as long as when it was served"), "{replayed}");
    assert!(replayed.contains("host and device counted what they counted then"), "{replayed}");
    room.good(&[&["image", "create", "empty.img"], &SMALL[..]].concat());
    room.bad(&["replay", "rec", "--image", "empty.img"], &["rec: it did not begin with this image"]);
    let both = room.output(&["replay", "rec", "--image", "start.img", "--hpb", "off"]);
    assert!(text(&both.stderr).contains("cannot be used with '--hpb"), "{}", text(&both.stderr));
    let described = room.good(&["trace", "info", "rec"]);
    assert!(described.contains("flush"), "{described}");
    room.bad(&["replay", "faults", "--image", "start.img"], &["faults: it does not begin with"]);
    room.bad(&["serve", "dev.img", "--record", "rec"], &["rec: File exists"]);
    assert!(fs::metadata(room.path("rec")).expect("the recording stays").len() > 100);
    // A server that does not start leaves no recording behind.
    let taken = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr().map(|at| (listener, at)));
    let (_listener, at) = taken.expect("a port");
    let (nbd, at) = (format!("tcp:{at}"), at.to_string());
    let hears_nobody = ["serve", "dev.img", "--record", "none"];
    room.bad(&[&hears_nobody[..], &["--nbd", &nbd]].concat(), &[&at, "in use"]);
    room.bad(&[&hears_nobody[..], &["--nbd", "unix:s", "--metrics", &at]].concat(), &[&at, "in use"]);
    room.bad(&[&hears_nobody[..], &["--nbd", "unix:nowhere/s"]].concat(), &["nowhere/s", "No such file"]);
    assert!(!room.path("none").exists(), "an empty recording was left behind");
    room.write("wrong", "5s stall\n");
    room.bad(&["serve", "dev.img", "--faults", "wrong"], &["wrong: line 1, column 4: stall: is not an order"]);
    room.write("wrong", "5s lie on\n6s host hpb=hcm activation_thld=0\n");
    let refused =
        "wrong: line 2, column 4: host hpb=hcm activation_thld=0: host: activation_thld: is 0; it must be 1 to";
    room.bad(&["serve", "dev.img", "--faults", "wrong"], &[refused]);
    room.bad(&["serve", "dev.img", "--instant", "--scale", "2"], &["'--instant' cannot be used with '--scale"]);
    room.bad(&["serve", "dev.img", "--metrics", "0.0.0.0:1"], &["other machines", "--public"]);
    room.bad(&["serve", "dev.img", "--policy", "best"], &["--policy", "best"]);
}
