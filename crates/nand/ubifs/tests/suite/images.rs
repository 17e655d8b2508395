// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images made by mkfs.ubifs and ubinize: three geometries, three compressors, more than 5000 files each. Without
//! these tools the tests say so and pass.

use crate::common::{bytes_of, volume};
use readpath_kit::Prng;
use readpath_ubi::mtd::Geometry;
use readpath_ubifs::{Entry, FileType, FlashRead, Lebs, MountMode, NameHash, Recorder, Ubifs, check};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A device and the parameters of the tools for it.
struct Device {
    geometry: Geometry,
    leb_bytes: u32,
    /// The most blocks that the volume may grow to; many of them require the large model of the properties tree.
    max_lebs: u32,
    lebs: u32,
}

const DEVICES: [Device; 3] = [
    Device {
        geometry: Geometry { peb_bytes: 128 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 700 },
        leb_bytes: 129_024,
        max_lebs: 60_000,
        lebs: 600,
    },
    Device {
        geometry: Geometry { peb_bytes: 256 << 10, page_bytes: 4096, subpage_bytes: 4096, pebs: 400 },
        leb_bytes: 253_952,
        max_lebs: 400,
        lebs: 350,
    },
    Device {
        geometry: Geometry { peb_bytes: 2 << 20, page_bytes: 16_384, subpage_bytes: 16_384, pebs: 80 },
        leb_bytes: 2_064_384,
        max_lebs: 100,
        lebs: 70,
    },
];

fn has_tools() -> bool {
    let found = ["mkfs.ubifs", "ubinize"].iter().all(|tool| Command::new(tool).arg("--version").output().is_ok());
    if !found {
        println!("SKIPPED: mkfs.ubifs and ubinize are not installed");
    }
    found
}

/// Names with equal hashes, in pairs.
fn colliding_names() -> Vec<Vec<u8>> {
    let mut prng = Prng::new(4);
    let mut seen: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut pairs = Vec::new();
    for _ in 0..120_000 {
        let name = format!("c{:08x}", prng.below(1 << 32)).into_bytes();
        if let Some(other) = seen.insert(NameHash::R5.of(&name), name.clone())
            && other != name
        {
            pairs.extend([other, name]);
        }
    }
    assert!(pairs.len() >= 8, "{} names collide", pairs.len());
    pairs
}

fn text(prng: &mut Prng, bytes: usize) -> Vec<u8> {
    // Words repeat, so that compressors have an effect; every tenth file is noise.
    if prng.below(10) == 0 {
        return (0..bytes).map(|_| prng.below(256) as u8).collect();
    }
    let mut out = Vec::new();
    while out.len() < bytes {
        out.extend_from_slice(format!("line {} of flash {}\n", out.len(), prng.below(50)).as_bytes());
    }
    out.truncate(bytes);
    out
}

/// A tree with everything that a user other than root can create.
fn make_tree(root: &Path) {
    let mut prng = Prng::new(1);
    let write = |path: PathBuf, bytes: &[u8]| fs::write(path, bytes).expect("a file");
    for dir in 0..40 {
        let mut path = root.join(format!("d{dir:02}"));
        for level in 0..1 + dir % 5 {
            fs::create_dir_all(&path).expect("a directory");
            for file in 0..44 {
                let bytes = match prng.below(20) {
                    0 => 0,
                    1 => 4096,
                    2 => 4000 + prng.below(20_000) as usize,
                    _ => prng.below(1500) as usize,
                };
                write(path.join(format!("f{file:03}.txt")), &text(&mut prng, bytes));
            }
            path = path.join(format!("level{level}"));
        }
    }
    let mut deep = root.join("deep");
    for i in 0..60 {
        deep = deep.join(format!("d{i}"));
    }
    fs::create_dir_all(&deep).expect("a deep directory");
    write(deep.join("bottom"), b"the bottom");
    fs::create_dir(root.join("names")).expect("a directory");
    for i in 0..20u8 {
        let mut name = vec![b'a' + i; 255];
        name[254] = 0xC3;
        write(root.join("names").join(std::ffi::OsString::from_vec(name)), &[i]);
    }
    fs::create_dir(root.join("collide")).expect("a directory");
    for name in colliding_names() {
        write(root.join("collide").join(std::ffi::OsStr::from_bytes(&name)), &name);
    }
    write(root.join("empty"), b"");
    write(root.join("linked"), b"one file, three names");
    for name in ["names/second", "third"] {
        fs::hard_link(root.join("linked"), root.join(name)).expect("a hard link");
    }
    symlink("d00/f000.txt", root.join("link")).expect("a symbolic link");
    symlink("/deep/d0/d1/../d1", root.join("absolute")).expect("a symbolic link");
    symlink("loop", root.join("loop")).expect("a symbolic link");
    symlink("x".repeat(1000), root.join("long_link")).expect("a symbolic link");
    let mut sparse = fs::File::create(root.join("sparse")).expect("a file");
    for at in [0u64, 5000, 1 << 20, (3 << 20) + 17] {
        sparse.seek(SeekFrom::Start(at)).expect("a seek");
        sparse.write_all(&text(&mut prng, 3000)).expect("data");
    }
    sparse.set_len((4 << 20) + 5).expect("a hole at the end");
    write(root.join("large"), &text(&mut prng, 700_000));
    write(root.join("mode"), b"");
    fs::set_permissions(root.join("mode"), fs::Permissions::from_mode(0o4751)).expect("a mode");
}

/// Runs an image tool in `dir`.
fn run(dir: &Path, tool: &str, args: &[&str]) {
    let out = Command::new(tool).args(args).current_dir(dir).output().expect("the tool runs");
    assert!(out.status.success(), "{tool} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

fn make_image(dir: &Path, device: &Device, compression: &str) -> Vec<u8> {
    let Device { geometry, leb_bytes, max_lebs, lebs } = device;
    fs::write(
        dir.join("devices"),
        "/dev d 755 0 0 - - - - -\n/dev/null c 666 0 0 1 3 - - -\n/dev/sda b 660 0 6 8 0 - - -\n/dev/pipe p 600 0 0 - \
                                    - - - -\n",
    )
    .expect("a table");
    let (page, leb, max) = (geometry.page_bytes.to_string(), leb_bytes.to_string(), max_lebs.to_string());
    let args =
        ["-r", "tree", "-m", &page, "-e", &leb, "-c", &max, "-x", compression, "-D", "devices", "-o", "fs.ubifs"];
    run(dir, "mkfs.ubifs", &args);
    let size = u64::from(*lebs) * u64::from(*leb_bytes);
    let config =
        format!("[v]\nmode=ubi\nimage=fs.ubifs\nvol_id=0\nvol_type=dynamic\nvol_name=rootfs\nvol_size={size}\n");
    fs::write(dir.join("ubi.ini"), config).expect("a file");
    let (peb, sub) = (geometry.peb_bytes.to_string(), geometry.subpage_bytes.to_string());
    run(dir, "ubinize", &["-p", &peb, "-m", &page, "-s", &sub, "-o", "image", "-Q", "7", "ubi.ini"]);
    fs::read(dir.join("image")).expect("an image")
}

/// Compares a directory of the volume with one of this system, and counts entries.
fn compare<L: Lebs>(fs: &mut Ubifs<L>, ino: u32, path: &Path, inodes: &mut BTreeMap<u64, u32>) -> usize {
    let entries: BTreeMap<Vec<u8>, Entry> =
        fs.read_dir(ino).expect("a directory").into_iter().map(|e| (e.name.to_vec(), e)).collect();
    let wanted: BTreeMap<Vec<u8>, fs::DirEntry> = fs::read_dir(path)
        .expect("a directory")
        .map(|e| e.expect("an entry"))
        .map(|e| (e.file_name().into_vec(), e))
        .collect();
    let is_root = ino == 1;
    let names: Vec<_> = entries.keys().filter(|name| !(is_root && name.as_slice() == b"dev")).collect();
    assert_eq!(names, wanted.keys().collect::<Vec<_>>(), "{}", path.display());
    let mut count = names.len();
    for (name, wanted) in &wanted {
        let entry = &entries[name];
        let meta = wanted.path().symlink_metadata().expect("attributes");
        let inode = fs.inode(entry.target as u32).expect("an inode");
        let path = wanted.path();
        assert_eq!(inode.mode, meta.mode(), "{}", path.display());
        assert_eq!((inode.uid, inode.gid), (meta.uid(), meta.gid()), "{}", path.display());
        // mkfs.ubifs keeps whole seconds; the format has nanoseconds, which a kernel writes.
        assert_eq!((inode.mtime.s, inode.mtime.ns), (meta.mtime(), 0), "{}", path.display());
        assert_eq!(u64::from(inode.nlink), meta.nlink(), "{}", path.display());
        assert_eq!(fs.lookup(ino, name).expect("a lookup").as_ref(), Some(entry), "{}", path.display());
        // Each inode of this system is one inode of the volume.
        assert_eq!(*inodes.entry(meta.ino()).or_insert(inode.ino), inode.ino, "{}", path.display());
        match inode.file_type() {
            Some(FileType::Directory) => count += compare(fs, inode.ino, &path, inodes),
            Some(FileType::Symlink) => {
                assert_eq!(*inode.data, *fs::read_link(&path).expect("a link").as_os_str().as_bytes());
            }
            _ => assert!(bytes_of(fs, &inode) == fs::read(&path).expect("a file"), "{}", path.display()),
        }
    }
    count
}

/// Reads of flash for a file with holes: as a whole, or block by block.
fn hole_reads(image: &[u8], device: &Device, by_block: bool) -> Vec<FlashRead> {
    let lebs = Recorder::new(volume(image.to_vec(), device.geometry));
    let mut fs = Ubifs::mount(lebs, MountMode::ReadWrite).expect("a volume");
    let inode = fs.resolve(b"sparse", false).expect("a file");
    fs.lebs().take();
    if by_block {
        for block in 0..inode.size.div_ceil(4096) as u32 {
            fs.read_block(inode.ino, block, &mut [0; 4096]).expect("a block");
        }
    } else {
        fs.read_file(&inode, |_| -> readpath_ubifs::Result<()> { Ok(()) }).expect("a file");
    }
    fs.lebs().take()
}

#[test]
fn what_went_in_comes_out() {
    if !has_tools() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("tree")).expect("a directory");
    make_tree(&dir.path().join("tree"));
    for device in &DEVICES {
        for compression in ["lzo", "zlib", "zstd"] {
            let name = format!("{} bytes, {compression}", device.leb_bytes);
            let image = make_image(dir.path(), device, compression);
            let mut fs = Ubifs::mount(volume(image.clone(), device.geometry), MountMode::ReadWrite)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(fs.superblock().big_lpt, device.max_lebs == 60_000, "{name}");
            let count = compare(&mut fs, 1, &dir.path().join("tree"), &mut BTreeMap::new());
            assert!(count > 5000, "{count} entries");
            for (path, kind, number) in [
                ("dev/null", FileType::Character, Some((1, 3))),
                ("dev/sda", FileType::Block, Some((8, 0))),
                ("dev/pipe", FileType::Fifo, None),
            ] {
                let inode = fs.resolve(path.as_bytes(), false).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert_eq!((inode.file_type(), inode.device()), (Some(kind), number), "{path}");
            }
            // Reading entries in one pass, and holes without a search for each block, finds and reads the same as the
            // kernel.
            let dir = fs.resolve(b"collide", false).expect("a directory").ino;
            let in_order = fs.read_dir(dir).expect("entries");
            let mut plain = Ubifs::mount(volume(image.clone(), device.geometry), MountMode::Inspect).expect("a volume");
            assert_eq!(plain.read_dir(dir).expect("entries"), in_order, "{name}");
            assert_eq!(hole_reads(&image, device, false), hole_reads(&image, device, true), "{name}");
            // 4096 bytes of the superblock, however large a page is (recorded on NAND with pages of 16 KiB).
            let lebs = Recorder::new(volume(image.clone(), device.geometry));
            let mut mounted = Ubifs::mount(lebs, MountMode::ReadWrite).expect("a volume");
            let first = mounted.lebs().take()[0];
            assert_eq!((first.lnum, first.offset, first.len), (0, 0, 4096), "{name}");
            let followed = fs.resolve(b"absolute/d2", true).expect("a way over a link");
            assert_eq!(followed.ino, fs.resolve(b"/deep/d0/d1/d2/.", true).expect("the same").ino);
            // A slash at the end requires a directory.
            for (path, follow) in [("absolute/", false), ("deep/d0/d1/", false), ("/", true)] {
                assert_eq!(fs.resolve(path.as_bytes(), follow).expect(path).file_type(), Some(FileType::Directory));
            }
            for path in ["empty/", "link/"] {
                let error = fs.resolve(path.as_bytes(), true).expect_err(path).to_string();
                assert!(error.ends_with("a part of it is not a directory"), "{error}");
            }
            let endless = fs.resolve(b"loop", true).expect_err("a link to itself").to_string();
            assert_eq!(endless, "loop: more than 40 symbolic links");
            let report = check(volume(image, device.geometry), 10).expect("a volume that is supported");
            assert!(report.is_clean(), "{name}: {:#?}", report.findings);
        }
    }
}

#[test]
fn nearly_empty_trees_are_volumes() {
    if !has_tools() {
        return;
    }
    for device in &DEVICES {
        let dir = tempfile::tempdir().expect("a directory");
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).expect("a directory");
        for files in [0, 1] {
            if files == 1 {
                fs::write(tree.join("only"), b"one").expect("a file");
            }
            let image = make_image(dir.path(), device, "lzo");
            let mut fs = Ubifs::mount(volume(image.clone(), device.geometry), MountMode::ReadWrite)
                .unwrap_or_else(|e| panic!("{} bytes, {files} files: {e}", device.leb_bytes));
            assert_eq!(compare(&mut fs, 1, &tree, &mut BTreeMap::new()), files);
            let report = check(volume(image, device.geometry), 10).expect("a volume that is supported");
            assert!(report.is_clean(), "{:#?}", report.findings);
        }
    }
}

/// As factory images are made: ubinize derives the size of the volume, which takes all of the device at its first
/// attach.
#[test]
fn a_volume_that_will_grow_is_judged_as_grown() {
    if !has_tools() {
        return;
    }
    let device = &DEVICES[0];
    let room = tempfile::tempdir().expect("a directory");
    let dir = room.path();
    fs::create_dir(dir.join("tree")).expect("a directory");
    fs::write(dir.join("tree/file"), text(&mut Prng::new(3), 400_000)).expect("a file");
    make_image(dir, device, "zlib");
    let image = |flags: &str| {
        let config = format!("[v]\nmode=ubi\nimage=fs.ubifs\nvol_id=0\nvol_type=dynamic\nvol_name=rootfs\n{flags}");
        fs::write(dir.join("ubi.ini"), config).expect("a file");
        run(dir, "ubinize", &["-p", "131072", "-m", "2048", "-s", "512", "-o", "small", "ubi.ini"]);
        let bytes = fs::read(dir.join("small")).expect("an image");
        let pebs = (bytes.len() / (128 << 10)) as u32;
        volume(bytes, Geometry { pebs, ..device.geometry })
    };
    let mut fs = Ubifs::mount(image("vol_flags=autoresize\n"), MountMode::ReadWrite).expect("a volume");
    assert_eq!(fs.superblock().leb_count, device.max_lebs, "all that it may have");
    assert_eq!(compare(&mut fs, 1, &dir.join("tree"), &mut BTreeMap::new()), 1);
    let report = check(image("vol_flags=autoresize\n"), 10).expect("a volume that is supported");
    assert!(report.is_clean(), "{:#?}", report.findings);
    // Without the flag it stays small, and its journal does not fit: Linux refuses it too (validate_sb).
    let error = Ubifs::mount(image(""), MountMode::ReadWrite).expect_err("a small volume").to_string();
    assert!(error.contains("bytes of journal, expected 3 blocks to"), "{error}");
}
