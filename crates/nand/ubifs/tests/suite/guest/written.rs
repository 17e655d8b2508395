// SPDX-License-Identifier: MIT OR Apache-2.0
//! The image that Readpath writes for the guest: three volumes on a device with a history of its own.

use crate::common::sha256;
use readpath_kit::Prng;
use readpath_nand_testkit::{Device, Ecc, Nand, Options};
use readpath_ubi::layout::Layout;
use readpath_ubi::mtd::Geometry;
use readpath_ubi::ubinize::{ImageHead, ImageVolume, write_image};
use readpath_ubi::{NoCache, UbiError};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// A dump of a device and its contents.
pub struct Written {
    pub image: Vec<u8>,
    /// Entries of the file system, with its root. `None` if mkfs.ubifs makes no file system: then the kernel does.
    pub entries: Option<usize>,
    pub static_sha256: String,
    pub scratch_sha256: String,
    /// Offset of data in an erase block.
    pub data_offset: u32,
}

fn noise(prng: &mut Prng, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|_| prng.below(256) as u8).collect()
}

/// Makes a tree of a few hundred entries; returns their number.
fn make_tree(root: &Path, prng: &mut Prng) -> usize {
    let mut entries = 1;
    for i in 0..12 {
        let dir = root.join(format!("dir{i}"));
        fs::create_dir_all(&dir).expect("a folder");
        for j in 0..15 {
            let bytes = prng.below(9000) as usize;
            let data = if j % 3 == 0 { noise(prng, bytes) } else { format!("{i} {j};").repeat(bytes / 6).into_bytes() };
            fs::write(dir.join(format!("file{j}")), data).expect("a file");
        }
        symlink(format!("file{i}"), dir.join("link")).expect("a link");
        entries += 17;
    }
    fs::write(root.join("large"), noise(prng, 600_000)).expect("a file");
    fs::hard_link(root.join("large"), root.join("also_large")).expect("a link");
    fs::write(root.join("x".repeat(255)), "a long name").expect("a file");
    entries + 3
}

/// A file system of `tree` in the folder, made by mkfs.ubifs with its default fanout.
pub fn make_ubifs(geometry: &Geometry, layout: &Layout, lebs: u32, folder: &Path) -> Vec<u8> {
    let out = folder.join("ubifs");
    let run = Command::new("mkfs.ubifs")
        .args(["-m", &geometry.page_bytes.to_string(), "-e", &layout.leb_bytes.to_string(), "-c", &lebs.to_string()])
        .args(["-f", "8", "-x", "lzo", "-r"])
        .arg(folder.join("tree"))
        .arg("-o")
        .arg(&out)
        .output()
        .expect("mkfs.ubifs of the package mtd-utils");
    assert!(run.status.success(), "mkfs.ubifs: {}", String::from_utf8_lossy(&run.stderr));
    fs::read(out).expect("a file system")
}

/// Attaches the device after a power cut.
fn attach(nand: Nand) -> Device<Nand, NoCache> {
    Device::attach(nand, NoCache, &Options::default()).expect("a device")
}

/// The largest logical block supported by mkfs.ubifs; the kernel supports larger ones.
const MOST_LEB_BYTES: u32 = 2 << 20;

/// Writes the volumes; then changes, moves and power cuts follow.
pub fn write(geometry: Geometry, folder: &Path) -> Written {
    let prng = &mut Prng::new(geometry.page_bytes.into());
    let layout = Layout::new(&geometry, None).expect("a layout");
    fs::create_dir(folder.join("tree")).expect("a folder");
    let lebs = geometry.pebs * 3 / 4;
    let (entries, rootfs) = if layout.leb_bytes <= MOST_LEB_BYTES {
        let entries = make_tree(&folder.join("tree"), prng);
        (Some(entries), make_ubifs(&geometry, &layout, lebs, folder))
    } else {
        (None, Vec::new())
    };
    let contents = noise(prng, 3 * layout.leb_bytes as usize + 1234);
    let volume = ImageVolume::dynamic;
    let scratch_lebs = 6;
    let volumes = [
        ImageVolume { bytes: Some(u64::from(lebs) * u64::from(layout.leb_bytes)), ..volume(0, "rootfs", &rootfs) },
        ImageVolume { is_static: true, ..volume(1, "static", &contents) },
        ImageVolume { bytes: Some(scratch_lebs * u64::from(layout.leb_bytes)), ..volume(2, "scratch", &[]) },
    ];
    let head = ImageHead { geometry, vid_offset: None, image_seq: 20_160, erase_counter: 2 };
    let mut image = Vec::new();
    write_image(&head, &volumes, &mut image).expect("an image");

    let mut nand = Nand::new(geometry, Ecc::new(256.min(geometry.subpage_bytes), 4), 1).expect("a device");
    nand.load(&image).expect("it fits");
    let mut ubi = attach(nand);
    ubi.work_all().expect("erases");
    let mut cuts = 0;
    for step in 0..400 {
        let lnum = prng.below(scratch_lebs) as u32;
        if step % 20 == 0 {
            ubi.mtd_mut().cut_after(1 + prng.below(40));
        }
        if step % 7 == 0 {
            // Enough flips that the block is moved once it is read.
            let peb = ubi.volume(0).expect("it").peb(prng.below(8) as u32);
            if let Some(peb) = peb {
                ubi.mtd_mut().flip(peb, layout.data_offset, 3);
            }
        }
        if let Err(e) = live(&mut ubi, lnum, prng, layout.leb_bytes) {
            assert!(ubi.mtd().is_off(), "{e}");
            let mut nand = ubi.into_mtd();
            nand.power_on();
            ubi = attach(nand);
            cuts += 1;
        }
    }
    // A pending cut would hit the last work.
    let mut nand = ubi.into_mtd();
    nand.power_on();
    ubi = attach(nand);
    ubi.work_all().expect("erases and moves");
    let mut scratch = Vec::new();
    for lnum in 0..scratch_lebs as u32 {
        let mut leb = vec![0; layout.leb_bytes as usize];
        ubi.read(2, lnum, 0, &mut leb, 0).expect("data");
        scratch.extend(leb);
    }
    assert!(cuts >= 10, "power was cut {cuts} times");
    let mut dump = Vec::new();
    ubi.mtd().write_image(&mut dump).expect("memory");
    Written {
        image: dump,
        entries,
        static_sha256: sha256(&contents),
        scratch_sha256: sha256(&scratch),
        data_offset: layout.data_offset,
    }
}

/// One step: a write to the frequently written volume, a read of the file system, some background work.
fn live(ubi: &mut Device<Nand, NoCache>, lnum: u32, prng: &mut Prng, leb_bytes: u32) -> Result<(), UbiError> {
    let page_bytes = ubi.layout().page_bytes;
    match prng.below(4) {
        0 => ubi.unmap(2, lnum)?,
        1 if !ubi.is_mapped(2, lnum)? => ubi.write(2, lnum, 0, &noise(prng, page_bytes.max(4096) as usize))?,
        _ => {
            let bytes = prng.below(u64::from(leb_bytes / page_bytes) + 1) as usize * page_bytes as usize;
            ubi.change(2, lnum, &noise(prng, bytes))?;
        }
    }
    let mut page = [0; 256];
    ubi.read(0, prng.below(8) as u32, 0, &mut page, 0)?;
    for _ in 0..prng.below(4) {
        ubi.work()?;
    }
    Ok(())
}
