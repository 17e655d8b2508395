// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--sysfs`: the files of runs in progress as the kernel shows them, through a real mount. Where FUSE cannot be used,
//! the tests that mount say so and do nothing.

use crate::common::running::{LONG_JOB, Running};
use crate::common::{EXPERIMENT, Room, text, texts};
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const UNIT: &str = "class/scsi_device/0:0:0:0/device";

/// Whether a tree can be mounted here.
fn is_usable(test: &str) -> bool {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let may = rustix::process::geteuid().is_root() || Path::new("/usr/bin/fusermount3").exists();
    match device {
        Ok(_) if may => true,
        Ok(_) => {
            eprintln!("{test} SKIPPED: neither superuser nor fusermount3");
            false
        }
        Err(e) => {
            eprintln!("{test} SKIPPED: /dev/fuse: {e}");
            false
        }
    }
}

/// A room with an empty folder and a long job.
fn room() -> (Room, PathBuf) {
    let room = Room::with("long.fio", LONG_JOB);
    let folder = room.path("sys");
    fs::create_dir(&folder).expect("a folder");
    (room, folder)
}

fn read(path: &Path) -> Result<String, i32> {
    fs::read_to_string(path).map_err(|e| e.raw_os_error().expect("an error number"))
}

/// Writes as a shell does: truncates and writes once.
fn write(path: &Path, value: &str) -> Result<(), i32> {
    let file = OpenOptions::new().write(true).truncate(true).open(path);
    file.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|e| e.raw_os_error().expect("an error number"))
}

/// Waits until a host has appeared.
fn appeared(run: &mut Running, folder: &Path) {
    run.until(|| folder.join(UNIT).exists().then_some(()));
}

fn is_mounted(folder: &Path) -> bool {
    let inside = fs::metadata(folder).expect("a folder").dev();
    inside != fs::metadata(folder.parent().expect("a folder")).expect("a folder").dev()
}

#[test]
fn files_of_a_run_in_progress() {
    if !is_usable("files_of_a_run_in_progress") {
        return;
    }
    let (room, folder) = room();
    let mut run = Running::start(&room, &["fio", "long.fio", "--hpb", "dcm", "--sysfs", "sys"]);
    appeared(&mut run, &folder);
    let unit = folder.join(UNIT);
    // All paths lead to the same folder.
    let place = folder.join("devices/platform/0.ufs/host0/target0:0:0/0:0:0:0");
    assert_eq!(unit.canonicalize().expect("a path"), place.canonicalize().expect("a path"));
    let device = folder.join("bus/platform/drivers/ufshcd/0.ufs");
    assert_eq!(read(&device.join("device_descriptor/hpb_version")).as_deref(), Ok("0x0100\n"));
    assert_eq!(read(&device.join("flags/hpb_enable")), Err(22), "HPB 1.0 has no such flag");
    assert_eq!(read(&device.join("flags/device_init")).as_deref(), Ok("false\n"));
    assert_eq!(read(&folder.join("readpath/host0/variant")).as_deref(), Ok("HPB dcm\n"));
    // Modes and sizes as in sysfs.
    let stat = |path: &str| {
        let data = fs::metadata(unit.join(path)).expect("a file");
        (data.permissions().mode() & 0o7777, data.len())
    };
    assert_eq!((stat("hpb_stats/hit_cnt"), stat("hpb_params/activation_thld")), ((0o444, 4096), (0o644, 4096)));
    // Counters grow.
    let hits =
        || read(&unit.join("hpb_stats/hit_cnt")).expect("a counter").trim_end().parse::<u64>().expect("a number");
    let first = hits();
    run.until(|| (hits() > first).then_some(()));
    // Device control mode has one parameter.
    assert_eq!(write(&unit.join("hpb_params/activation_thld"), "9\n"), Err(95));
    assert_eq!(write(&unit.join("hpb_params/requeue_timeout_ms"), "9\n"), Ok(()));
    assert_eq!(read(&unit.join("hpb_params/requeue_timeout_ms")).as_deref(), Ok("9\n"));
    // A program that has begun to read a value gets the rest of that value.
    let mut open = File::open(unit.join("hpb_params/requeue_timeout_ms")).expect("a file");
    let (mut begin, mut rest) = ([0; 1], String::new());
    open.read_exact(&mut begin).expect("a digit");
    assert_eq!(write(&unit.join("hpb_params/requeue_timeout_ms"), "1234\n"), Ok(()));
    open.read_to_string(&mut rest).expect("the rest");
    assert_eq!((&begin, rest.as_str()), (b"9", "\n"));
    drop(open);
    assert_eq!(write(&unit.join("hpb_params/requeue_timeout_ms"), "nine\n"), Err(22));
    let module = folder.join("module/ufshcd_core/parameters/ufshpb_host_map_kbytes");
    assert_eq!((write(&module, "4096\n"), write(&module, "4294967296")), (Ok(()), Err(34)));
    assert_eq!(read(&module).as_deref(), Ok("4096\n"));
    // What sysfs does not do.
    let denied = |result: std::io::Result<()>| result.expect_err("it is denied").raw_os_error();
    assert_eq!(write(&unit.join("hpb_stats/hit_cnt"), "0"), Err(13), "not even the superuser");
    assert_eq!(denied(File::create(unit.join("new")).map(drop)), Some(13));
    assert_eq!(denied(fs::create_dir(folder.join("new"))), Some(1));
    assert_eq!(denied(fs::remove_file(unit.join("hpb_stats/hit_cnt"))), Some(1));
    assert_eq!(denied(fs::rename(unit.join("hpb_stats"), folder.join("new"))), Some(1));
    assert_eq!(read(&unit.join("hpb_stats/none")), Err(2));
    // A folder that is open does not keep the file system mounted.
    let open = File::open(unit.join("hpb_stats")).expect("a folder");
    run.interrupt();
    let output = run.end();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    drop(open);
    assert!(!is_mounted(&folder) && fs::read_dir(&folder).expect("a folder").next().is_none());
}

/// Parameters of host control mode reach the run, which says so in its results.
#[test]
fn parameters_that_are_written_are_noted() {
    if !is_usable("parameters_that_are_written_are_noted") {
        return;
    }
    let (room, folder) = room();
    // Runs for some seconds: long enough for a write, and it ends by itself.
    room.write("some.fio", &LONG_JOB.replace("loops=1000", "loops=20"));
    let args = ["fio", "some.fio", "--hpb", "hcm", "--sysfs", "sys", "--hold", "--json"];
    let mut run = Running::start(&room, &args);
    appeared(&mut run, &folder);
    let param = |name: &str| folder.join(UNIT).join("hpb_params").join(name);
    assert_eq!(read(&param("activation_thld")).as_deref(), Ok("8\n"));
    assert_eq!(write(&param("eviction_thld_exit"), "8\n"), Err(22));
    assert_eq!(write(&param("activation_thld"), "0x10\n"), Ok(()));
    assert_eq!(read(&param("activation_thld")).as_deref(), Ok("16\n"));
    assert_eq!(read(&folder.join("readpath/host0/state")).as_deref(), Ok("running\n"), "it was quick enough");
    run.until(|| (read(&folder.join("readpath/host0/state")).as_deref() == Ok("over\n")).then_some(()));
    // The final counters stay; there is no host to write to.
    let hits = read(&folder.join(UNIT).join("hpb_stats/hit_cnt")).expect("a counter");
    assert!(hits.trim_end().parse::<u64>().expect("a number") > 0);
    assert_eq!(write(&param("activation_thld"), "8\n"), Err(19));
    run.interrupt();
    let output = run.end();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let notes = texts(&document);
    let about =
        notes.iter().filter(|n| n.starts_with("host0 (some, ") && n.contains("activation_thld = 16 of logical unit 0"));
    assert_eq!(about.count(), 1, "{notes:?}");
    assert!(!is_mounted(&folder));
}

/// A program that is killed leaves its mount behind; the next one says what to do.
#[test]
fn what_was_left_behind_is_named() {
    if !is_usable("what_was_left_behind_is_named") || !rustix::process::geteuid().is_root() {
        return;
    }
    let (room, folder) = room();
    let mut run = Running::start(&room, &["fio", "long.fio", "--hpb", "dcm", "--sysfs", "sys"]);
    appeared(&mut run, &folder);
    let pid = rustix::process::Pid::from_raw(run.pid() as i32).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("a signal");
    run.end();
    let output = room.output(&["fio", "long.fio", "--sysfs", "sys"]);
    rustix::mount::unmount(&folder, rustix::mount::UnmountFlags::DETACH).expect("it is unmounted");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("left it mounted; unmount it first"), "{}", text(&output.stderr));
}

#[test]
fn wrong_folders() {
    let room = Room::with("small.toml", EXPERIMENT);
    fs::create_dir(room.path("full")).expect("a folder");
    room.write("full/file", "precious");
    room.bad(&["reproduce", "small.toml", "--sysfs", "none"], &["--sysfs none: there is no such folder"]);
    room.bad(&["reproduce", "small.toml", "--sysfs", "full"], &["--sysfs full: is not empty"]);
    room.bad(&["reproduce", "small.toml", "--sysfs", "small.toml"], &["--sysfs small.toml: is no folder"]);
    room.bad(
        &["reproduce", "small.toml", "--sysfs", "/proc"],
        &["--sysfs /proc: another file system is mounted there"],
    );
    room.bad(&["reproduce", "ubi", "--sysfs", "full"], &["--sysfs is for experiments on a UFS device"]);
    assert_eq!(room.read("full/file"), "precious");
}
