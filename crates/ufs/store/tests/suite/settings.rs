// SPDX-License-Identifier: MIT OR Apache-2.0
//! Non-volatile attributes and flags in an image: one record, in a sector of its own.

use crate::rpmb::{fresh, on};
use readpath_device::{FlashArray, Hpb2Config, HpbConfig, Own, SETTINGS_BYTES};
use readpath_kit::{Ns, Prng};
use readpath_proto::query::{flag, opcode};
use readpath_stack::Payload;
use readpath_store::{Disk, Image, MemoryDisk, Store};
use readpath_testkit::{Bare, HPB, device};

type Settings = [u8; SETTINGS_BYTES];

const AT: usize = 5120;

fn drawn(rng: &mut Prng) -> Settings {
    [(); SETTINGS_BYTES].map(|()| rng.below(256) as u8)
}

/// Every step at which it can end, as a process or as a machine whose disk keeps any part of unsynced writes: the old
/// record is there, or the new one; and completed changes stay.
#[test]
fn a_record_is_the_old_or_the_new_one() {
    let fresh = fresh();
    let (mut old, mut new, mut done) = (0, 0, 0);
    for seed in 0..8 {
        let rng = &mut Prng::stream(seed, "settings", 0);
        let records: Vec<Settings> = (0..4).map(|_| drawn(rng)).collect();
        for left in 0.. {
            let mut store = on(fresh.clone(), left);
            assert_eq!(store.array_mut().settings(), Ok(None));
            let (mut before, mut after) = (None, None);
            for record in &records {
                after = Some(*record);
                store.keep(Own::Settings(*record));
                if store.array().failure().is_some() {
                    break;
                }
                before = after;
            }
            let is_over = store.array().failure().is_none();
            for crash in 0..4 {
                let mut disk = store.array().disk().disk.clone();
                match crash {
                    0 => {}
                    1 => disk.crash(|_| 0),
                    _ => disk.crash(|bytes| rng.below(bytes as u64 + 1) as usize),
                }
                let mut again = on(disk, u64::MAX);
                let found = again.array_mut().settings().unwrap_or_else(|error| panic!("{left} steps: {error}"));
                assert!(found == before || found == after, "seed {seed}, {left} steps, crash {crash}");
                done += u32::from(before == after);
                old += u32::from(before != after && found == before);
                new += u32::from(before != after && found == after);
            }
            if is_over {
                break;
            }
        }
    }
    println!("{old} old, {new} new, {done} at rest");
    assert!(old > 20 && new > 20 && done > 20);
}

#[test]
fn damage_is_named() {
    let mut store = on(fresh(), u64::MAX);
    let record = drawn(&mut Prng::new(1));
    store.keep(Own::Settings(record));
    let disk = store.array().disk().disk.clone();
    let what = "the record of attributes and flags (byte 5120 of the image) is damaged";
    let image = |mut disk: MemoryDisk| {
        let bytes = disk.bytes_mut().len() as u64;
        Image::on(disk, bytes, true, Default::default()).unwrap()
    };
    for bit in 0..(SETTINGS_BYTES + 4) * 8 {
        let mut damaged = disk.clone();
        damaged.bytes_mut()[AT + bit / 8] ^= 1 << (bit % 8);
        let mut image = image(damaged);
        assert_eq!(image.array.settings(), Err(what.to_owned()), "bit {bit}");
        if bit % 100 == 0 {
            assert_eq!(image.examine(|_| {}).faults, [what], "bit {bit}");
        }
    }
    // A torn record is damage, because disks do not tear sectors; it is not read as another value.
    let mut torn = on(disk, u64::MAX);
    let mut other = record;
    other.iter_mut().for_each(|byte| *byte ^= 0x55);
    torn.array_mut().disk_mut().write_at(&other[..20], AT as u64).unwrap();
    assert_eq!(torn.array_mut().settings(), Err(what.to_owned()));
    // The next one is whole again.
    torn.keep(Own::Settings(other));
    let mut image = image(torn.array().disk().disk.clone());
    assert_eq!((image.array.settings(), image.examine(|_| {}).faults), (Ok(Some(other)), Vec::new()));
}

/// fHPBEn survives the process: the device that begins from the image has the host's last setting.
#[test]
fn hpb_is_as_the_host_left_it() {
    for enabled in [false, true] {
        let mut config = device(1000);
        let v2 = Hpb2Config { enabled: !enabled, single_blocks: 8, pre_requests: 2, entries_in_ehs: true };
        config.hpb = Some(HpbConfig { v2: Some(v2), ..HPB });
        let mut before = Bare::new(&config);
        before.device.keep_in_flash();
        let set = if enabled { opcode::SET_FLAG } else { opcode::CLEAR_FLAG };
        before.query(set, flag::HPB_EN, 0, 0);
        let mut store = Store::new(crate::both::image(&config, false).array);
        store.keep(before.device.take_own().expect("the flag is kept"));
        let mut after = Bare::new(&config);
        after.now = after.device.power_on_with(Ns::ZERO, store.array_mut()).unwrap().ready_at;
        assert_eq!(after.query(opcode::READ_FLAG, flag::HPB_EN, 0, 0).1, u32::from(enabled));
    }
}

/// An image of version 1 ends before RPMB. It has room for the record, and keeps its length.
#[test]
fn an_image_of_version_1_keeps_them_as_well() {
    let mut disk = fresh();
    let mut bytes = disk.bytes_mut().clone();
    bytes.truncate(bytes.len() - crate::images::RPMB_BYTES as usize);
    bytes[16] = 1;
    let check = crc32fast::hash(&bytes[..4092]);
    bytes[4092..4096].copy_from_slice(&check.to_le_bytes());
    let mut old = MemoryDisk::new(bytes.len() as u64);
    *old.bytes_mut() = bytes.clone();
    let mut store = on(old, u64::MAX);
    assert_eq!((store.array().format().version, store.array_mut().settings()), (1, Ok(None)));
    let record = drawn(&mut Prng::new(2));
    store.keep(Own::Settings(record));
    let mut disk = store.array().disk().disk.clone();
    let changed = |(at, _): &(usize, (&u8, &u8))| !(AT..AT + SETTINGS_BYTES + 4).contains(at);
    assert!(disk.bytes_mut().iter().zip(&bytes).enumerate().filter(changed).all(|(_, (now, then))| now == then));
    assert_eq!(disk.bytes_mut().len(), bytes.len());
    let mut again = on(disk, u64::MAX);
    assert_eq!((again.array_mut().settings(), again.array_mut().rpmb()), (Ok(Some(record)), Ok(None)));
}
