// SPDX-License-Identifier: MIT OR Apache-2.0
//! The comparison at the size of the published experiment: a device of 4 GiB with pages of 16 KiB, `find` over as
//! many entries as in a Debian's `/usr`, and `rm` of 1 GiB. Here mkfs.ubifs and ubinize make the image, not Readpath.

use super::linux::{self, Guest, assert_equal, manifest};
use super::reads::{Device, RM, Read, Work};
use super::{tree, written};
use crate::common::listing;
use readpath_ubi::layout::Layout;
use readpath_ubi::mtd::Geometry;
use readpath_ubi::preset::CostPreset;
use readpath_ubi::stream::{Op, Pressure, Record, Setup, run};
use readpath_ubi::variant::Variant;
use readpath_ubifs::MountMode;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

const GEOMETRY: Geometry = Geometry { peb_bytes: 2 << 20, page_bytes: 16 << 10, subpage_bytes: 16 << 10, pebs: 2048 };
/// Logical blocks of the volume: nearly all that UBI offers.
const LEBS: u32 = 2000;
/// MiB of the file that is removed, and of one that is read.
const BIG_MIB: u32 = 1024;
const PART_MIB: u32 = 64;

/// An image of the tree, `mkfs.ubi` in the folder.
fn make_image(layout: &Layout, folder: &Path) {
    fs::create_dir(folder.join("tree")).expect("a folder");
    let tree = tree::make(&folder.join("tree"));
    println!("{} entries, of these below usr {}, in {} folders", tree.entries, tree.in_usr, tree.folders_in_usr);
    assert!(tree.in_usr >= 17_000 && (1500..2000).contains(&tree.folders_in_usr), "not the size of a /usr");
    written::make_ubifs(&GEOMETRY, layout, LEBS, folder);
    fs::remove_dir_all(folder.join("tree")).expect("a folder");
    let bytes = u64::from(LEBS) * u64::from(layout.leb_bytes);
    let volume = format!(
        "[rootfs]\nmode=ubi\nimage={}\nvol_id=0\nvol_type=dynamic\nvol_name=rootfs\nvol_size={bytes}\n",
        folder.join("ubifs").display()
    );
    fs::write(folder.join("ubinize.cfg"), volume).expect("a file");
    let run = Command::new("ubinize")
        .args(["-m", &GEOMETRY.page_bytes.to_string(), "-p", &GEOMETRY.peb_bytes.to_string(), "-Q", "20160", "-o"])
        .args([folder.join("mkfs.ubi"), folder.join("ubinize.cfg")])
        .output()
        .expect("ubinize of the package mtd-utils");
    assert!(run.status.success(), "ubinize: {}", String::from_utf8_lossy(&run.stderr));
    fs::remove_file(folder.join("ubifs")).expect("a file");
}

/// Seconds of reads of a stream through the caches of the published table, and through a better one.
fn print_caches(what: &str, reads: &[Read]) -> Vec<f64> {
    let records: Vec<Record> =
        reads.iter().map(|&[peb, offset, bytes, _]| Record { peb, offset, bytes, op: Op::Read }).collect();
    let seconds = |cache: &&str| {
        let variant = Variant::parse(cache, 61).expect("a cache");
        let costs = CostPreset::builtin("mlc-16k").expect("a preset").model(GEOMETRY.page_bytes);
        let outcome = run(&records, &Setup { variant, costs, pressure: &Pressure::default() }).expect("it is small");
        let (c, seconds) = (outcome.counters, outcome.totals.cost.seconds());
        println!("  {what}, {cache}: {} hits, {} misses, {} no_query, {seconds:.2} s", c.hits, c.misses, c.no_query);
        seconds
    };
    ["none", "nand-page", "one-line", "peb-hash", "lru+split"].iter().map(seconds).collect()
}

#[test]
#[ignore = "needs QEMU, a kernel and minutes: make test-guest-large"]
fn at_the_size_of_the_published_experiment() {
    // The results are kept for inspection. With READPATH_GUEST_AGAIN they are only read again.
    let folder = &linux::folder().join("large");
    let layout = Layout::new(&GEOMETRY, None).expect("a layout");
    if std::env::var_os("READPATH_GUEST_AGAIN").is_none() {
        if folder.exists() {
            fs::remove_dir_all(folder).expect("a folder");
        }
        fs::create_dir(folder).expect("a folder");
        make_image(&layout, folder);
        let parameters = format!("big_mib={BIG_MIB} part_mib={PART_MIB}");
        let guest = Guest { geometry: GEOMETRY, work: "large", parameters, memory_mib: 6144, patience: 3600 };
        guest.run(folder, "mkfs.ubi", Some("used.mtd"));
    }

    // The tree that mkfs.ubifs wrote, and its copy made by the kernel.
    for (name, image, path) in [("mkfs", "mkfs.ubi", "usr"), ("used", "used.mtd", "copy")] {
        let image = File::open(folder.join(image)).expect("an image");
        let device = Device { name, image: &image, geometry: GEOMETRY, data_offset: layout.data_offset, folder };
        let [find, ..] = device.assert_streams(path.as_bytes());
        print_caches("find", &find);
        if name == "used" {
            let read = |name, bulk_read| Work { name, bulk_read, run: |s, path| s.read_files([path], |_| {}) };
            device.assert_work(&read("part", false), b"part");
            device.assert_work(&read("bulk", true), b"part");
            let seconds = print_caches("rm", &device.assert_work(&RM, b"big"));
            assert!(seconds[1..].iter().all(|s| *s < seconds[0]), "rm is slowest without a cache");
        }
        let found = listing(&mut device.mount(MountMode::ReadWrite));
        assert_equal(name, &found, &manifest(folder, name));
        println!("{name}: {} entries are equal", found.len());
    }
}
