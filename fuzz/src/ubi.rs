// SPDX-License-Identifier: MIT OR Apache-2.0
//! UBI images and volume tables, valid and invalid.

use readpath_nand_testkit::{Device, Ecc, Nand, NewVolume, Options, PebState, Work};
use readpath_ubi::cache::{Lines, NandPage};
use readpath_ubi::layout::{Layout, RECORD_BYTES};
use readpath_ubi::mtd::{Geometry, Image, Mtd};
use readpath_ubi::vtbl::{parse_table, table_to_bytes};
use readpath_ubi::{NoCache, ReadCache, Ubi, attach, guess};

/// As small as a device can be, so that an input has several blocks.
const GEOMETRY: Geometry = Geometry { peb_bytes: 1024, page_bytes: 256, subpage_bytes: 64, pebs: 16 };

fn seal(bytes: &mut [u8], protected: usize) {
    let crc = !crc32fast::hash(&bytes[..protected]);
    bytes[protected..protected + 4].copy_from_slice(&crc.to_be_bytes());
}

/// Gives headers and records of the table the right checksums, so that what is inside is looked at.
fn seal_all(image: &mut [u8], layout: &Layout) {
    for block in image.chunks_exact_mut(GEOMETRY.peb_bytes as usize) {
        let vid = layout.vid_offset as usize;
        if block[..4] == *b"UBI#" {
            seal(&mut block[..64], 60);
        }
        if block[vid..vid + 4] == *b"UBI!" {
            if block[vid + 8..vid + 12] == [0x7F, 0xFF, 0xEF, 0xFF] {
                for record in block[layout.data_offset as usize..].chunks_exact_mut(RECORD_BYTES) {
                    seal(record, 168);
                }
            }
            seal(&mut block[vid..vid + 64], 60);
        }
    }
}

/// What holds for every device that attached: each block serves one logical block at most.
fn check<M: Mtd, C: ReadCache>(ubi: &mut Ubi<M, C>) {
    let pebs = ubi.mtd().geometry().pebs;
    let mut owner = vec![false; pebs as usize];
    let volumes: Vec<(u32, u32, u32)> =
        ubi.volumes().map(|v| (v.id, v.record.reserved_pebs.min(64), v.leb_bytes)).collect();
    for (id, lebs, leb_bytes) in volumes {
        for lnum in 0..lebs {
            let Some(peb) = ubi.volume(id).expect("a volume").peb(lnum) else { continue };
            assert!(!std::mem::replace(&mut owner[peb as usize], true), "PEB {peb} has two logical blocks");
            let mut data = vec![0; leb_bytes as usize];
            let _ = ubi.read(id, lnum, 0, &mut data, 0);
            let _ = ubi.read(id, lnum, leb_bytes - 1, &mut data[..1], 0);
        }
        let _ = ubi.check_static(id);
    }
}

/// The same where it is written, and that a block that serves one is in use.
fn check_device<C: ReadCache>(ubi: &mut Device<Nand, C>) {
    check(ubi);
    for (_, peb) in ubi.volumes().flat_map(|v| v.pebs()) {
        let state = ubi.wear.state(peb);
        assert!(!matches!(state, PebState::Free | PebState::ToErase | PebState::Bad | PebState::Corrupted));
    }
    let ids: Vec<u32> = ubi.volumes().map(|v| v.id).collect();
    for id in ids {
        let _ = ubi.read(id, 0, 0, &mut [0; 64], 0);
    }
}

/// An image: attached to be read, and flashed to a device that is then written to and attached again. The first byte
/// says whether checksums are made right, and whether blocks beyond the input are there.
pub fn ubi_attach(data: &[u8]) {
    let Some((&how, data)) = data.split_first() else { return };
    let block = GEOMETRY.peb_bytes as usize;
    let mut image = data[..data.len().min(16 * block)].to_vec();
    if how & 2 != 0 || image.is_empty() {
        image.resize(image.len().next_multiple_of(block).max(block), 0xFF);
    }
    let layout = Layout::new(&GEOMETRY, None).expect("a layout");
    if how & 1 != 0 {
        seal_all(&mut image, &layout);
    }
    if let Ok(guess) = guess::guess(&image, &guess::Known::default()) {
        guess.geometry.check().expect("a guess is a geometry");
    }
    let Ok(device) = Image::new(image.as_slice(), GEOMETRY) else { return };
    for options in [attach::Options::image(), attach::Options { fastmap: false, ..attach::Options::image() }] {
        match Ubi::attach(Image::new(image.as_slice(), *device.geometry()).expect("as before"), NoCache, &options) {
            Ok(mut ubi) => check(&mut ubi),
            Err(e) => assert!(!e.to_string().is_empty()),
        }
    }
    let mut nand = Nand::new(GEOMETRY, Ecc::new(64, 2), 1).expect("a device");
    nand.load(&image.as_slice()).expect("it fits");
    if how & 4 != 0 {
        nand.flip(u32::from(how) / 16, 64, 2);
    }
    let Ok(mut ubi) = Device::attach(nand, NandPage::new(256, Lines::new(256, 1)), &Options::default()) else { return };
    check_device(&mut ubi);
    let mut steps = 0;
    while !matches!(ubi.work(), Ok(Work::Idle) | Err(_)) {
        steps += 1;
        assert!(steps < 1000, "background work comes to an end");
    }
    let _ = ubi.create_volume(&NewVolume::dynamic("fuzz", 1));
    let first = ubi.volumes().next().map(|v| (v.id, v.record.reserved_pebs));
    if let Some((id, lebs)) = first {
        let _ = ubi.change(id, lebs - 1, &[how; 256]);
        let _ = ubi.unmap(id, 0);
        let _ = ubi.update_volume(id, &[how; 300]);
    }
    check_device(&mut ubi);
    let mut before: Vec<_> = ubi.volumes().map(|v| (v.id, v.record.clone())).collect();
    if let Ok(mut again) = Ubi::attach(ubi.into_mtd(), NoCache, &attach::Options::default()) {
        check(&mut again);
        before.retain(|(id, _)| again.volume(*id).is_err());
        assert!(before.is_empty(), "volumes are gone: {before:?}");
    }
}

/// A volume table.
pub fn ubi_volume_table(data: &[u8]) {
    let Some((&how, data)) = data.split_first() else { return };
    let geometry = Geometry { peb_bytes: 16 << 10, page_bytes: 2048, subpage_bytes: 512, pebs: 16 };
    let layout = Layout::new(&geometry, None).expect("a layout");
    let mut bytes = data.to_vec();
    let mut empty = [0; RECORD_BYTES];
    seal(&mut empty, 168);
    while bytes.len() < layout.volume_table_bytes() as usize {
        bytes.extend(empty);
    }
    bytes.truncate(layout.volume_table_bytes() as usize);
    if how & 1 != 0 {
        bytes.chunks_exact_mut(RECORD_BYTES).for_each(|record| seal(record, 168));
    }
    match parse_table(&bytes, &layout, 1000) {
        Ok(table) => {
            assert_eq!(table.len(), layout.volume_slots() as usize);
            let written = table_to_bytes(&table, &layout);
            assert_eq!(parse_table(&written, &layout, 1000), Ok(table));
        }
        Err(fault) => assert!(!fault.to_string().is_empty()),
    }
}
