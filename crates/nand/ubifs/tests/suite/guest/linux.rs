// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest: its start, and its results.

use readpath_ubi::mtd::Geometry;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The folder that `setup.sh` filled.
pub fn folder() -> PathBuf {
    let folder = std::env::var_os("READPATH_GUEST").expect("READPATH_GUEST: run this by `make`");
    PathBuf::from(folder)
}

/// A machine with a NAND.
pub struct Guest<'a> {
    pub geometry: Geometry,
    /// The script that it runs, with parameters.
    pub work: &'a str,
    pub parameters: String,
    pub memory_mib: u32,
    /// Seconds after which it is stopped.
    pub patience: u64,
}

impl Guest<'_> {
    /// Runs the guest with the file `flash` of the folder as the image to flash; the folder gets the files that the
    /// guest wrote. `disk` is a further file of the folder for output, as large as the NAND.
    pub fn run(&self, folder: &Path, flash: &str, disk: Option<&str>) {
        let Geometry { page_bytes, peb_bytes, pebs, .. } = self.geometry;
        let (output, console) = (folder.join("output"), folder.join("console"));
        let sparse = |path: &Path, bytes| fs::File::create(path).and_then(|f| f.set_len(bytes)).expect("a sparse file");
        sparse(&output, 1 << 30);
        let drive = |name: &str, rest| format!("file={},format=raw,if=virtio{rest}", folder.join(name).display());
        // On a busy host the emulated timer is too late for the kernel's timer check.
        let parameters = format!(
            "console=ttyS0 panic=-1 quiet no_timer_check mitigations=off work={} page={page_bytes} block={peb_bytes} \
             blocks={pebs} {}",
            self.work, self.parameters
        );
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-accel", "tcg", "-machine", "q35", "-cpu", "max", "-nodefaults", "-no-user-config"])
            .args(["-m", &self.memory_mib.to_string(), "-display", "none", "-no-reboot", "-serial"])
            .arg(format!("file:{}", console.display()))
            .arg("-kernel")
            .arg(self::folder().join("vmlinuz"))
            .arg("-initrd")
            .arg(self::folder().join("initrd.gz"))
            .args(["-append", &parameters])
            .args(["-drive", &drive(flash, ",readonly=on"), "-drive", &drive("output", "")]);
        if let Some(disk) = disk {
            sparse(&folder.join(disk), self.geometry.bytes());
            qemu.args(["-drive", &drive(disk, "")]);
        }
        let mut qemu = qemu.stdin(Stdio::null()).spawn().expect("qemu-system-x86_64 of the package qemu-system-x86");
        let begin = Instant::now();
        let ended = loop {
            match qemu.try_wait().expect("a child") {
                Some(_) => break true,
                None if begin.elapsed() > Duration::from_secs(self.patience) => break false,
                None => std::thread::sleep(Duration::from_millis(200)),
            }
        };
        if !ended {
            qemu.kill().expect("a child");
            qemu.wait().expect("a child");
        }
        let said = fs::read_to_string(&console).unwrap_or_default();
        assert!(ended && said.contains("WORK IS DONE"), "the guest ended: {ended}; it said:\n{said}");
        let tar = Command::new("tar").arg("xf").arg(&output).arg("-C").arg(folder).status().expect("tar");
        assert!(tar.success(), "what the guest wrote is an archive");
    }
}

/// The lines of a file that the guest wrote.
pub fn lines(folder: &Path, name: &str) -> Vec<String> {
    let path = folder.join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// The kernel's listing of a volume, in the form of `common::listing`.
pub fn manifest(folder: &Path, name: &str) -> Vec<String> {
    let sums = lines(folder, &format!("{name}.sha"));
    let sums = sums.iter().map(|l| l.split_once("  ").expect("a sum and a path")).map(|(sum, path)| (path, sum));
    let links = lines(folder, &format!("{name}.links"));
    let links = links.iter().map(|l| l.split_once('|').expect("a path and where it leads"));
    let last: BTreeMap<&str, &str> = sums.chain(links).collect();
    let stats = lines(folder, &format!("{name}.stat"));
    let mut all: Vec<String> = stats
        .iter()
        .map(|line| format!("{line}|{}", last.get(line.split('|').next().expect("a path")).unwrap_or(&"-")))
        .collect();
    all.sort();
    all
}

/// Compares two listings.
pub fn assert_equal(what: &str, ours: &[String], linux: &[String]) {
    if let Some((ours, linux)) = ours.iter().zip(linux).find(|(a, b)| a != b) {
        panic!("{what}: Readpath has {ours}, Linux {linux}");
    }
    assert_eq!(ours.len(), linux.len(), "{what}");
}
