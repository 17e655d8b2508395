// SPDX-License-Identifier: MIT OR Apache-2.0
//! Against Linux itself: a guest in QEMU attaches and mounts what Readpath wrote, changes it, and dumps its NAND; Readpath
//! reads the dumps. Trees, attributes and bytes are equal on both sides, and so is every read that the kernel made.
//!
//! `make test-guest` runs this; it needs Debian's packages of QEMU, a kernel and mtd-utils (`setup.sh` names them).

#[path = "../common/mod.rs"]
mod common;
mod written;

use common::{listing, volume};
use readpath_ubi::mtd::{Geometry, Image, Logged};
use readpath_ubi::{NoCache, Ubi, device::Options};
use readpath_ubifs::{Lebs, MountMode, Recorder, Session, Ubifs};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A NAND of the guest.
struct Device {
    geometry: Geometry,
    /// Identifier bytes from which the kernel's simulator `nandsim` derives the geometry. Empty where it cannot be that: then
    /// it is our own module `ramnand.c`.
    ids: &'static str,
    /// Compressor of what the kernel writes.
    compr: &'static str,
    /// Bytes of its file `new/big`.
    big: u32,
    /// The file that is removed.
    gone: &'static str,
}

const DEVICES: [Device; 5] = [
    Device {
        geometry: Geometry { peb_bytes: 16 << 10, page_bytes: 512, subpage_bytes: 256, pebs: 1024 },
        ids: "0x20,0x73",
        compr: "zlib",
        big: 0,
        gone: "new/large",
    },
    Device {
        geometry: Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 256 },
        ids: "0x20,0xa2,0x00,0x15",
        compr: "zstd",
        big: 0,
        gone: "new/large",
    },
    Device {
        geometry: Geometry { peb_bytes: 256 << 10, page_bytes: 4096, subpage_bytes: 1024, pebs: 128 },
        ids: "0x20,0xa2,0x00,0x26",
        compr: "lzo",
        big: 0,
        gone: "new/large",
    },
    Device {
        geometry: Geometry { peb_bytes: 2 << 20, page_bytes: 16 << 10, subpage_bytes: 16 << 10, pebs: 96 },
        ids: "",
        compr: "lzo",
        big: 60_000_000,
        gone: "new/big",
    },
    Device {
        geometry: Geometry { peb_bytes: 4 << 20, page_bytes: 16 << 10, subpage_bytes: 16 << 10, pebs: 64 },
        ids: "",
        compr: "zlib",
        big: 60_000_000,
        gone: "new/big",
    },
];

/// The folder that `setup.sh` filled.
fn guest() -> PathBuf {
    let folder = std::env::var_os("READPATH_GUEST").expect("READPATH_GUEST: run this by `make test-guest`");
    PathBuf::from(folder)
}

/// Runs the guest with `image` as what it flashes; the folder gets the files that the guest wrote.
fn run_guest(device: &Device, image: &[u8], folder: &Path) {
    let (input, output, console) = (folder.join("input"), folder.join("output"), folder.join("console"));
    // A disk has whole sectors; pages are larger than those.
    fs::write(&input, image).expect("a file");
    fs::File::create(&output).and_then(|f| f.set_len(1 << 30)).expect("a sparse file");
    let drive = |path: &Path, rest: &str| format!("file={},format=raw,if=virtio{rest}", path.display());
    let Geometry { page_bytes, peb_bytes, pebs, .. } = device.geometry;
    // On a busy host the emulated timer comes too late for the kernel's test of it.
    let parameters = format!(
        "console=ttyS0 panic=-1 quiet no_timer_check mitigations=off ids={} page={page_bytes} block={peb_bytes} \
         blocks={pebs} compr={} big={} gone={}",
        device.ids, device.compr, device.big, device.gone
    );
    let mut qemu = Command::new("qemu-system-x86_64")
        .args(["-accel", "tcg", "-machine", "q35", "-cpu", "max", "-m", "3072", "-nodefaults", "-no-user-config"])
        .args(["-display", "none", "-no-reboot", "-serial"])
        .arg(format!("file:{}", console.display()))
        .arg("-kernel")
        .arg(guest().join("vmlinuz"))
        .arg("-initrd")
        .arg(guest().join("initrd.gz"))
        .args(["-append", &parameters, "-drive", &drive(&input, ",readonly=on"), "-drive", &drive(&output, "")])
        .stdin(Stdio::null())
        .spawn()
        .expect("qemu-system-x86_64 of the package qemu-system-x86");
    let begin = Instant::now();
    let ended = loop {
        match qemu.try_wait().expect("a child") {
            Some(_) => break true,
            None if begin.elapsed() > Duration::from_secs(900) => break false,
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

fn lines(folder: &Path, name: &str) -> Vec<String> {
    let path = folder.join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// What the kernel shows, in the form of [`listing`].
fn manifest(folder: &Path, name: &str) -> Vec<String> {
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

fn assert_equal(what: &str, ours: &[String], linux: &[String]) {
    if let Some((ours, linux)) = ours.iter().zip(linux).find(|(a, b)| a != b) {
        panic!("{what}: Readpath has {ours}, Linux {linux}");
    }
    assert_eq!(ours.len(), linux.len(), "{what}");
}

/// A read of a logical block, as the probes in the kernel see it: erase block, offset in it, bytes, logical block.
type Read = [u32; 4];

/// The reads of a recording that were made of volumes (`r`), or by UBI for itself (`R`).
fn recorded(folder: &Path, name: &str, op: &str) -> Vec<Read> {
    let numbers = |line: &String| {
        let rest = line.strip_prefix(op)?.strip_prefix(',')?.split(',');
        let mut numbers = rest.map(|n| n.parse().unwrap_or(u32::MAX));
        Some(std::array::from_fn(|_| numbers.next().expect("four numbers")))
    };
    lines(folder, &format!("{name}.csv")).iter().filter_map(numbers).collect()
}

fn assert_same_reads(what: &str, ours: &[Read], linux: &[Read]) {
    assert!(!linux.is_empty(), "{what}: nothing was recorded");
    let equal = ours.iter().zip(linux).take_while(|(a, b)| a == b).count();
    let next = |r: &[Read]| r[equal..].iter().take(8).copied().collect::<Vec<_>>();
    assert!(
        equal == ours.len() && equal == linux.len(),
        "{what}: {equal} reads are equal, then of {} Readpath {:?}, of {} Linux {:?}",
        ours.len(),
        next(ours),
        linux.len(),
        next(linux)
    );
    println!("{what}: {equal} of {equal} reads");
}

/// What is done with a freshly mounted volume.
struct Work {
    name: &'static str,
    bulk_read: bool,
    run: fn(&mut Session<Recorder<common::Volume>>, &Device) -> readpath_ubifs::Result<()>,
}

const WALKS: [Work; 3] = [
    Work { name: "find", bulk_read: false, run: |s, _| s.find(b".", |_, _| {}) },
    Work { name: "findls", bulk_read: false, run: |s, _| s.find_ls(b".", |_, _| {}) },
    Work { name: "catall", bulk_read: false, run: |s, _| s.cat_all(b".", |_| {}) },
];

/// With files that only the kernel's volume has.
const MORE: [Work; 2] = [
    Work {
        name: "bulk",
        bulk_read: true,
        run: |s, _| s.read_files([&b"new/large"[..], b"new/counting", b"new/big"], |_| {}),
    },
    Work { name: "rm", bulk_read: false, run: |s, device| s.rm(device.gone.as_bytes()) },
];

fn mount(image: &[u8], device: &Device, mode: MountMode) -> Ubifs<Recorder<common::Volume>> {
    Ubifs::mount(Recorder::new(volume(image.to_vec(), device.geometry)), mode).expect("a volume")
}

fn taken(fs: &mut Ubifs<Recorder<common::Volume>>, data_offset: u32) -> Vec<Read> {
    let reads = fs.lebs().take();
    let mut peb = |lnum| fs.lebs().peb(lnum).expect("what was read is mapped");
    reads.iter().map(|r| [peb(r.lnum), data_offset + r.offset, r.len, r.lnum]).collect()
}

/// Attach, mount and work on an image: all reads equal those of the kernel.
fn assert_streams(what: &str, image: &[u8], device: &Device, folder: &Path, data_offset: u32) {
    assert_attach(what, image, device, folder);
    let mut fs = mount(image, device, MountMode::ReadWrite);
    assert_same_reads(
        &format!("{what} mount"),
        &taken(&mut fs, data_offset),
        &recorded(folder, &format!("{what}_mount"), "r"),
    );
    let more: &[Work] = if what == "clean" { &MORE } else { &[] };
    for Work { name, bulk_read, run } in WALKS.iter().chain(more) {
        let mut fs = mount(image, device, MountMode::ReadWrite);
        fs.lebs().take();
        let mut session = Session::new(fs, *bulk_read);
        let name = format!("{what}_{name}");
        run(&mut session, device).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_same_reads(&name, &taken(session.fs(), data_offset), &recorded(folder, &name, "r"));
    }
}

/// The headers and the volume table that an attach reads.
fn assert_attach(what: &str, image: &[u8], device: &Device, folder: &Path) {
    if !folder.join(format!("{what}_attach.csv")).exists() {
        return;
    }
    let mtd = Logged::new(Image::new(image.to_vec(), device.geometry).expect("an image"));
    let ubi = Ubi::attach(mtd, NoCache, &Options { read_only: true, ..Options::default() }).expect("an image of UBI");
    let ours: Vec<[u32; 3]> = ubi.mtd().records.iter().map(|r| [r.peb, r.offset, r.len]).collect();
    let path = format!("{what}_attach");
    let linux: Vec<[u32; 3]> = recorded(folder, &path, "R").iter().map(|r| [r[0], r[1], r[2]]).collect();
    let equal = ours.iter().zip(&linux).take_while(|(a, b)| a == b).count();
    assert_eq!((equal, equal), (ours.len(), linux.len()), "{path}: reads that are equal, ours and the kernel's");
    println!("{path}: {equal} of {equal} reads");
}

#[test]
#[ignore = "needs QEMU and a kernel: make test-guest"]
fn linux_and_readpath_read_each_others_flash() {
    // READPATH_GUEST_PAGE=n runs only devices with pages of n bytes.
    let page: Option<u32> = std::env::var("READPATH_GUEST_PAGE").ok().map(|n| n.parse().expect("bytes of a page"));
    for device in DEVICES.iter().filter(|d| page.is_none_or(|n| n == d.geometry.page_bytes)) {
        println!("page {} of {} bytes", device.geometry.page_bytes, device.geometry.peb_bytes);
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let written = written::write(device.geometry, folder);
        run_guest(device, &written.image, folder);

        // What Readpath wrote, in Linux.
        let sum = |name: &str| lines(folder, name)[0].split(' ').next().expect("a sum").to_owned();
        assert_eq!(sum("static.sha"), written.static_sha256, "the static volume");
        assert_eq!(sum("scratch.sha"), written.scratch_sha256, "the volume that was written often");
        if let Some(entries) = written.entries {
            let ours = listing(&mut mount(&written.image, device, MountMode::ReadOnly));
            assert_equal("ours", &ours, &manifest(folder, "ours"));
            assert_eq!(ours.len(), entries);
            assert_streams("ours", &written.image, device, folder, written.data_offset);
        } else {
            assert_attach("ours", &written.image, device, folder);
        }

        // What Linux wrote, in Readpath.
        for (name, at_least) in [("clean", 150), ("cut", 170)] {
            let dump = fs::read(folder.join(format!("{name}.mtd"))).expect("a dump");
            let report = readpath_ubifs::check(volume(dump.clone(), device.geometry), 100).expect("it is supported");
            assert!(report.is_clean(), "{name}: {:#?}", report.findings);
            let found = listing(&mut mount(&dump, device, MountMode::ReadWrite));
            assert_equal(name, &found, &manifest(folder, name));
            assert!(found.len() >= at_least, "{name}: {} entries", found.len());
            assert_attach(name, &dump, device, folder);
            if name == "clean" {
                assert_streams(name, &dump, device, folder, written.data_offset);
            } else {
                let mut fs = mount(&dump, device, MountMode::ReadWrite);
                let reads =
                    |r: Vec<Read>| r.into_iter().map(|[_, at, bytes, leb]| [0, at, bytes, leb]).collect::<Vec<_>>();
                // Recovery writes blocks anew, so the erase blocks may be others.
                let ours = reads(taken(&mut fs, written.data_offset));
                assert_same_reads("cut mount", &ours, &reads(recorded(folder, "cut_mount", "r")));
            }
        }
    }
}
