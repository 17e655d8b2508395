// SPDX-License-Identifier: MIT OR Apache-2.0
//! RPMB in an image: key, write counter and blocks change together or not at all, wherever a write ends.

use crate::both::image;
use crate::images::RPMB_BYTES;
use readpath_device::{FlashArray, Own, RpmbState, RpmbUpdate, Without};
use readpath_kit::Prng;
use readpath_proto::rpmb::{BLOCK_BYTES, BLOCKS};
use readpath_stack::Payload;
use readpath_store::{Disk, FileDisk, Image, MemoryDisk, Store};
use readpath_testkit::full::full_device;
use std::io::{self, ErrorKind};

const KEY: [u8; 32] = *b"a key that is nowhere else here.";

/// A disk that counts every call but reads as a step, and ends before one of them.
pub struct Cut {
    pub disk: MemoryDisk,
    left: u64,
}

impl Cut {
    fn step<T>(&mut self, what: impl FnOnce(&mut MemoryDisk) -> io::Result<T>) -> io::Result<T> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::from(ErrorKind::Other))?;
        what(&mut self.disk)
    }
}

impl Disk for Cut {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk.read_at(bytes, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.step(|disk| disk.write_at(bytes, offset))
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.step(|disk| disk.zero(offset, bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step(Disk::sync)
    }
}

pub fn fresh() -> MemoryDisk {
    image(&full_device(Without::NOTHING), false).array.disk().clone()
}

fn store<D: Disk>(disk: D, bytes: u64) -> Store<D> {
    Store::new(Image::on(disk, bytes, true, Default::default()).unwrap().array)
}

pub fn on(mut disk: MemoryDisk, left: u64) -> Store<Cut> {
    let bytes = disk.bytes_mut().len() as u64;
    store(Cut { disk, left }, bytes)
}

/// The state in the form that an image returns: without zeros at its end.
fn trimmed(state: &Option<RpmbState>) -> Option<RpmbState> {
    let mut state = state.clone()?;
    let used = state.data.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    state.data.truncate(used.next_multiple_of(BLOCK_BYTES));
    Some(state)
}

fn changed(state: &Option<RpmbState>, update: &RpmbUpdate) -> Option<RpmbState> {
    let empty = RpmbState { key: update.key, counter: 0, data: Vec::new() };
    let mut state = state.clone().unwrap_or(empty);
    state.apply(update);
    Some(state)
}

/// A key, and writes that often overlap.
fn updates(rng: &mut Prng, writes: u32) -> Vec<RpmbUpdate> {
    let key = RpmbUpdate { key: KEY, counter: 0, first: 0, data: Vec::new() };
    let write = |counter| {
        let blocks = [1, 2, 1 + rng.below(64)][rng.below(3) as usize];
        let first = [rng.below(4), u64::from(BLOCKS) - blocks][rng.below(2) as usize] as u16;
        let data = (0..blocks as usize * BLOCK_BYTES).map(|_| rng.below(256) as u8).collect();
        RpmbUpdate { key: KEY, counter, first, data }
    };
    std::iter::once(key).chain((1..=writes).map(write)).collect()
}

/// Every step at which it can end, as a process or as a machine whose disk keeps any part of unsynced writes. The old
/// state is there, or the whole new one; and completed changes stay.
#[test]
fn a_change_is_there_as_a_whole_or_not_at_all() {
    let fresh = fresh();
    let (mut both, mut none, mut whole, mut cuts) = (0, 0, 0, 0);
    for seed in 0..4 {
        let rng = &mut Prng::stream(seed, "rpmb", 0);
        let updates = updates(rng, 4);
        for left in 0.. {
            let mut store = on(fresh.clone(), left);
            assert_eq!(store.array_mut().rpmb(), Ok(None));
            let (mut before, mut after) = (None, None);
            for update in &updates {
                after = changed(&before, update);
                store.keep(Own::Rpmb(update.clone()));
                if store.array().failure().is_some() {
                    break;
                }
                before = after.clone();
            }
            let is_over = store.array().failure().is_none();
            for crash in 0..5 {
                let what = format!("seed {seed}, {left} steps, crash {crash}");
                let mut disk = store.array().disk().disk.clone();
                let lose = |disk: &mut MemoryDisk, rng: &mut Prng| match crash {
                    0 => {}
                    1 => disk.crash(|_| 0),
                    _ => disk.crash(|bytes| [0, bytes, rng.below(bytes as u64 + 1) as usize][rng.below(3) as usize]),
                };
                lose(&mut disk, rng);
                // Ended again, during the repair after the first end.
                let mut again = on(disk, rng.below(6));
                let first = again.array_mut().rpmb();
                let was_cut = again.array().failure().is_some();
                let mut disk = again.array().disk().disk.clone();
                lose(&mut disk, rng);
                let mut last = on(disk, u64::MAX);
                let found = last.array_mut().rpmb().unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(was_cut || first.as_ref() == Ok(&found), "{what}: it is another after the second crash");
                cuts += u32::from(was_cut);
                let (is_before, is_after) = (found == trimmed(&before), found == trimmed(&after));
                assert!(is_before || is_after, "{what}: counter {:?}", found.map(|found| found.counter));
                none += u32::from(is_before && !is_after);
                both += u32::from(is_after && !is_before);
                whole += u32::from(is_before && is_after);
                // It continues from there.
                let next = RpmbUpdate { key: KEY, counter: 100, first: 1, data: vec![7; 3 * BLOCK_BYTES] };
                let wanted = changed(&found, &next);
                last.keep(Own::Rpmb(next));
                let mut disk = last.array().disk().disk.clone();
                disk.crash(|_| 0);
                let bytes = disk.bytes_mut().len() as u64;
                let mut image = Image::on(disk, bytes, true, Default::default()).unwrap();
                assert!(image.array.rpmb() == Ok(trimmed(&wanted)), "{what}: what followed was lost");
                let faults = image.examine(|_| {}).faults;
                assert!(faults.is_empty(), "{what}: {faults:?}");
            }
            if is_over {
                break;
            }
        }
    }
    println!("{none} before, {both} after, {whole} at rest; {cuts} cut again");
    assert!(none > 50 && both > 50 && whole > 0 && cuts > 10);
}

/// A crash loses blocks of two changes but keeps their records. They are written again when the image is opened, and
/// another crash, while the next change replaces one of the records, keeps that change alone.
#[test]
fn what_is_written_again_is_durable_before_its_record_goes() {
    let change = |counter, first| RpmbUpdate { key: KEY, counter, first, data: vec![counter as u8; BLOCK_BYTES] };
    let changes = [change(1, 10), change(2, 20), change(3, 30)];
    // A record of one block; blocks and their checks are shorter.
    let record_only = |bytes: usize| if bytes > BLOCK_BYTES { bytes } else { 0 };
    let mut states = vec![changed(&None, &RpmbUpdate { key: KEY, counter: 0, first: 0, data: Vec::new() })];
    changes.iter().for_each(|change| states.push(changed(states.last().unwrap(), change)));
    let mut store = on(fresh(), u64::MAX);
    store.keep(Own::Rpmb(RpmbUpdate { key: KEY, counter: 0, first: 0, data: Vec::new() }));
    store.keep(Own::Rpmb(changes[0].clone()));
    let mut store = on(store.array().disk().disk.clone(), 1);
    store.keep(Own::Rpmb(changes[1].clone()));
    let mut crashed = store.array().disk().disk.clone();
    crashed.crash(record_only);
    let mut was_kept = false;
    for left in 0..12 {
        let mut store = on(crashed.clone(), left);
        store.keep(Own::Rpmb(changes[2].clone()));
        let mut disk = store.array().disk().disk.clone();
        disk.crash(record_only);
        let found = on(disk, u64::MAX).array_mut().rpmb().unwrap();
        let is_after = found == trimmed(&states[3]);
        assert!(
            is_after || found == trimmed(&states[2]),
            "{left} steps: counter {:?}",
            found.map(|found| found.counter)
        );
        was_kept |= is_after;
    }
    assert!(was_kept);
}

/// Where the part of RPMB begins in an image.
fn part(disk: &mut MemoryDisk) -> usize {
    disk.bytes_mut().len() - RPMB_BYTES as usize
}

#[test]
fn damage_is_told_and_never_taken_for_an_older_state() {
    let rng = &mut Prng::new(1);
    let updates = updates(rng, 5);
    let mut store = on(fresh(), u64::MAX);
    updates.iter().for_each(|update| store.keep(Own::Rpmb(update.clone())));
    let good = store.array_mut().rpmb();
    let mut disk = store.array().disk().disk.clone();
    let part = part(&mut disk);
    // Mark, the newest record (number 6), blocks and checks; damage to unused parts is harmless.
    let in_block = part + 110_592 + BLOCKS as usize * BLOCK_BYTES - 10;
    for (at, what) in [(part + 3, "mark"), (part + 4096 + 8, "record of change 6"), (in_block, "block 16383")] {
        let mut damaged = disk.clone();
        damaged.bytes_mut()[at] ^= 1;
        let told = on(damaged.clone(), u64::MAX).array_mut().rpmb();
        // Blocks of the newest two changes are written again.
        if what.starts_with("block") && told == good {
            continue;
        }
        let told = told.expect_err(what);
        assert!(told.contains(what), "{told}");
        let bytes = damaged.bytes_mut().len() as u64;
        let mut image = Image::on(damaged, bytes, true, Default::default()).unwrap();
        assert_eq!(image.examine(|_| {}).faults, [told]);
    }
    let mut unused = disk.clone();
    unused.bytes_mut()[part + 600] ^= 1;
    assert_eq!(on(unused, u64::MAX).array_mut().rpmb(), good);
    let mut blank = fresh();
    blank.bytes_mut()[in_block] = 1;
    let bytes = blank.bytes_mut().len() as u64;
    let faults = Image::on(blank, bytes, true, Default::default()).unwrap().examine(|_| {}).faults;
    assert!(faults.len() == 1 && faults[0].contains("block 16383"), "{faults:?}");
}

#[test]
fn a_reset_forgets_the_key_and_everything_else() {
    let rng = &mut Prng::new(2);
    for left in [u64::MAX, 1, 2, 3, 4, 5, 6, 7] {
        let mut store = on(fresh(), u64::MAX);
        let mut state = None;
        for update in updates(rng, 3) {
            state = changed(&state, &update);
            store.keep(Own::Rpmb(update));
        }
        let mut store = on(store.array().disk().disk.clone(), left);
        let was_reset = store.array_mut().reset_rpmb();
        let mut disk = store.array().disk().disk.clone();
        if was_reset == Ok(true) {
            disk.crash(|_| 0);
            assert!(!disk.bytes_mut().windows(32).any(|bytes| bytes == KEY), "the key is still there");
        } else {
            assert!(left < 8, "{was_reset:?}");
            disk.crash(|bytes| rng.below(bytes as u64 + 1) as usize);
        }
        let mut last = on(disk, u64::MAX);
        let found = last.array_mut().rpmb().unwrap();
        assert!(found.is_none() || left < 8 && found == trimmed(&state), "{left} steps");
        if found.is_none() {
            assert_eq!(last.array_mut().reset_rpmb(), Ok(false));
            let update = RpmbUpdate { key: [3; 32], counter: 0, first: 0, data: Vec::new() };
            last.keep(Own::Rpmb(update));
            let disk = last.array().disk().disk.clone();
            let again = on(disk, u64::MAX).array_mut().rpmb();
            assert_eq!(again, Ok(Some(RpmbState { key: [3; 32], counter: 0, data: Vec::new() })));
        }
    }
}

/// An image of version 1 has no part for RPMB. It is opened, and gets one with the first change.
#[test]
fn an_image_of_version_1_is_opened_and_grows() {
    let mut disk = fresh();
    let part = part(&mut disk);
    let mut bytes = disk.bytes_mut()[..part].to_vec();
    bytes[16] = 1;
    let check = crc32fast::hash(&bytes[..4092]);
    bytes[4092..4096].copy_from_slice(&check.to_le_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.img");
    std::fs::write(&path, &bytes).unwrap();
    let open = |writable| Image::<FileDisk>::open(&path, writable, true).unwrap();
    let mut image = open(true);
    assert_eq!((image.array.format().version, image.array.rpmb()), (1, Ok(None)));
    assert_eq!((image.examine(|_| {}).faults, image.array.reset_rpmb()), (Vec::new(), Ok(false)));
    drop(image);
    assert!(std::fs::read(&path).unwrap() == bytes, "nothing has changed");
    let mut state = None;
    for update in updates(&mut Prng::new(3), 3) {
        state = changed(&state, &update);
        Store::new(open(true).array).keep(Own::Rpmb(update));
        let mut image = open(false);
        assert!(image.array.rpmb() == Ok(trimmed(&state)) && image.examine(|_| {}).faults.is_empty());
    }
    assert_eq!(std::fs::metadata(&path).unwrap().len(), disk.bytes_mut().len() as u64);
}
