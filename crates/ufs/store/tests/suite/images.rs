// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images as a whole: flipped bits, truncated images, and a full disk.

use crate::both::{Both, Kept, Left, check, image, switch_on_full};
use readpath_device::{
    DeviceConfig, FlashArray, MediaOp, Own, OwnSlice, SPARE_REST_BYTES, Seen, SliceKind, Spare, Stream, Without,
};
use readpath_flash::{Lean, Ppn};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};
use readpath_stack::{Fault, Payload, Stack, Typed};
use readpath_store::{FormatError, Image, ImageError, MemoryDisk, Store};
use readpath_testkit::full::{Load, any_full_device, full_device};
use readpath_testkit::{DELAYS, host};
use std::collections::BTreeSet;

/// A stack that has done some work and has been flushed.
fn worked(config: &DeviceConfig, seed: u64) -> (Kept, Ns) {
    let (mut stack, mut now) = switch_on_full(config);
    let mut load = Load::new(seed, 300);
    while load.step(&mut stack, &mut now) {}
    stack.submit(now, &BlockRequest { cookie: 0, lun: 0, op: BlockOp::Flush, block: 0, blocks: 0 });
    readpath_testkit::settle(&mut stack, &mut now);
    (stack, now)
}

fn on(mut disk: MemoryDisk) -> Result<Image<MemoryDisk>, ImageError> {
    let bytes = disk.bytes_mut().len() as u64;
    Image::on(disk, bytes, true, Default::default())
}

#[test]
fn an_image_says_what_it_is() {
    let config = full_device(Without::NOTHING);
    let whole = image(&config, true);
    let (format, mut disk) = (*whole.array.format(), whole.array.disk().clone());
    assert_eq!((whole.text.as_str(), format.seed), ("a device file", 7));
    assert_eq!(disk.bytes_mut().len() as u64, format.bytes());
    let cut_off = Image::on(disk.clone(), format.bytes() - 1, true, Default::default());
    assert!(matches!(cut_off, Err(ImageError::CutOff { .. })), "{cut_off:?}");
    let empty = Image::on(MemoryDisk::new(100), 100, true, Default::default());
    assert!(matches!(empty, Err(ImageError::Format(FormatError::NoImage))), "{empty:?}");
    disk.bytes_mut()[0] = b'R';
    assert!(matches!(on(disk), Err(ImageError::Format(FormatError::NoImage))));
    let found = on(image(&config, true).array.disk().clone()).unwrap().examine(|_| {});
    assert!(found.faults.is_empty() && found.damage.torn == 0, "{found:?}");
}

/// A seal records that nothing can be torn. It lasts until a slice is torn, erased or programmed, in this process or
/// in another; without syncs there is none.
#[test]
fn a_seal_lasts_until_something_is_written() {
    let slices = Ppn(600);
    type Write<'a> = &'a dyn Fn(&mut Store<MemoryDisk>);
    let writes: [Write; 3] = [
        &|store| store.execute(MediaOp::Torn { first: slices, slices: 1 }),
        &|store| store.execute(MediaOp::Erase { first: slices, slices: 2 }),
        &|store| {
            let spare = Spare {
                kind: SliceKind::Journal,
                stream: Stream::Meta,
                page: None,
                sequence: 0,
                program: 9,
                ends_unit: true,
            };
            store.keep(Own::Unit(vec![OwnSlice { ppn: slices, spare, rest: [1; SPARE_REST_BYTES], data: vec![1] }]));
        },
    ];
    let mut boot = 1;
    let mut open = |store: &Store<MemoryDisk>, syncs| {
        let mut disk = store.array().disk().clone();
        let bytes = disk.bytes_mut().len() as u64;
        boot += 1;
        let image = Image::on(disk, bytes, syncs, [boot; 16]).unwrap();
        let kept = image.array.kept();
        (Store::new(image.array), kept.is_none())
    };
    let made = Store::new(image(&full_device(Without::NOTHING), false).array);
    for write in writes {
        let (mut store, is_sealed) = open(&made, true);
        assert!(is_sealed, "as it was made");
        for _ in 0..2 {
            write(&mut store);
            assert!(!open(&store, true).1, "it was written");
            store.array_mut().seal().unwrap();
            assert!(open(&store, true).1, "and sealed again");
        }
        let (mut store, _) = open(&store, false);
        write(&mut store);
        store.array_mut().seal().unwrap();
        assert!(!open(&store, true).1, "nothing was synced");
    }
}

/// Two images of one device are equal to the bit.
#[test]
fn images_are_reproducible() {
    let config = any_full_device(4);
    let bytes = |image: Image<MemoryDisk>| std::mem::take(image.array.disk().clone().bytes_mut());
    assert!(bytes(image(&config, true)) == bytes(image(&config, true)));
}

/// Bytes of an image behind its data.
pub const RPMB_BYTES: u64 = 110_592 + (4 << 20);

/// Any flipped bit is either reported or changes no read.
#[test]
fn a_flipped_bit_is_found_or_does_no_harm() {
    let (mut found, mut refused, mut harmless) = (0, 0, 0);
    for seed in 0..4 {
        let config = any_full_device(seed);
        let (stack, now) = worked(&config, seed);
        let left = Left::kill(stack, now);
        let rng = &mut Prng::stream(seed, "flips", 0);
        let (size, data) = {
            let format = *open(&left.disk).array.format();
            (format.bytes(), format.bytes() - RPMB_BYTES - format.shape.slices() * 4096)
        };
        for flip in 0..150 {
            let mut disk = left.disk.clone();
            // Most of an image is data; the metadata before it is chosen more often.
            let range = if flip % 3 == 0 { size } else { data };
            let bit = rng.below(range * 8);
            disk.bytes_mut()[(bit / 8) as usize] ^= 1 << (bit % 8);
            let what = format!("seed {seed}, bit {bit}");
            let mut image = match on(disk) {
                Ok(image) => image,
                Err(_) => {
                    refused += 1;
                    continue;
                }
            };
            let examined = image.examine(|_| {});
            let both = Both::new(Store::new(image.array));
            let mut stack = Kept::new(&config, host(None), DELAYS, both, (), Typed).unwrap();
            let recovered = stack.power_on_with(Ns::ZERO, |both: &mut Both| both.store.array_mut(), &mut |_| {});
            if !examined.faults.is_empty() {
                found += 1;
            } else if recovered.is_err() {
                refused += 1;
            } else {
                let consistent = stack.device.check_consistency();
                assert!(consistent.is_ok(), "{what}: {consistent:?}");
                harmless += 1;
            }
        }
    }
    println!("{found} found, {refused} refused, {harmless} where nothing is");
    assert!(found > 50 && refused > 0 && harmless > 50);
}

fn open(disk: &MemoryDisk) -> Image<MemoryDisk> {
    on(disk.clone()).unwrap()
}

/// Units that are gathered are on the disk when they are settled, as if they had been written at once. A process that
/// dies while it settles them leaves the first ones.
#[test]
fn gathered_units_are_written_in_order() {
    let numbers = |disk: &MemoryDisk| {
        let mut image = open(disk);
        let (mut seen, mut numbers) = (Vec::new(), BTreeSet::new());
        for superblock in 0..image.array.format().shape.superblocks {
            image.array.look(superblock, &mut seen).unwrap();
            numbers.extend(seen.iter().filter_map(|seen| match seen {
                Seen::Programmed(spare) if spare.ends_unit => Some(spare.program),
                _ => None,
            }));
        }
        numbers
    };
    let mut most = 0;
    for seed in 0..3 {
        let config = any_full_device(seed);
        let (mut at_once, mut now) = switch_on_full(&config);
        let (mut gathered, mut then) = switch_on_full(&config);
        gathered.payload.store.array_mut().gather();
        let (mut load, mut again) = (Load::new(seed, 300), Load::new(seed, 300));
        let rng = &mut Prng::stream(seed, "gathered", 0);
        while load.step(&mut at_once, &mut now) {
            assert!(again.step(&mut gathered, &mut then));
            if rng.below(40) != 0 {
                continue;
            }
            let before = gathered.payload.store.array().disk().clone();
            gathered.payload.settle();
            let after = gathered.payload.store.array_mut().disk_mut();
            assert!(after.bytes_mut() == at_once.payload.store.array_mut().disk_mut().bytes_mut(), "seed {seed}");
            let (had, has) = (numbers(&before), numbers(after));
            let new: Vec<u64> = has.difference(&had).copied().collect();
            most = most.max(new.len());
            let mut came = new.clone();
            for lost in 1.. {
                if came.is_empty() {
                    break;
                }
                // The last so many writes have not been made.
                let (mut disk, mut left) = (after.clone(), lost);
                disk.crash(|bytes| {
                    left -= 1;
                    if left >= 0 { 0 } else { bytes }
                });
                let found = open(&disk).examine(|_| {});
                assert!(found.faults.is_empty(), "seed {seed}, without {lost} writes: {found:?}");
                came = numbers(&disk).difference(&had).copied().collect();
                assert!(new.starts_with(&came), "seed {seed}, without {lost} writes: {came:?} of {new:?}");
            }
        }
    }
    assert!(most > 3, "at most {most} units were gathered");
}

/// The disk is full: writes and flushes fail from then on, and data flushed before is there when the device is
/// switched on again.
#[test]
fn a_full_disk_loses_nothing_that_was_flushed() {
    for seed in 0..12 {
        let config = any_full_device(seed);
        let (mut stack, mut now) = switch_on_full(&config);
        let rng = &mut Prng::stream(seed, "full", 0);
        stack.payload.store.array_mut().disk_mut().writes_left = Some(rng.below(400));
        let mut load = Load::new(seed, 400);
        while load.step(&mut stack, &mut now) && stack.payload.store.array().failure().is_none() {}
        while load.step(&mut stack, &mut now) && stack.payload.faults.len() < 3 {}
        let what = format!("seed {seed}");
        assert!(stack.payload.store.array().failure().is_some(), "{what}: the disk did not fill");
        let faults = std::mem::take(&mut stack.payload.faults);
        assert!(faults.iter().any(|fault| matches!(fault, Fault::Write(_))), "{what}: {faults:?}");
        let mut left = Left::kill(stack, now);
        left.disk.writes_left = None;
        let (mut stack, mut now, _) = left.switch_on(&config, &what);
        check(&mut stack, &mut now, &what);
    }
}

type Plain = Stack<Lean, Store<MemoryDisk>, (), Typed>;

/// Makes a request and waits for its end.
fn ask(stack: &mut Plain, now: &mut Ns, op: BlockOp, (block, blocks): (u32, u32), data: Vec<u8>) -> (Vec<u8>, bool) {
    stack.payload.bring(0, block, data);
    stack.submit(*now, &BlockRequest { cookie: 0, lun: 0, op, block, blocks });
    loop {
        if let Some(done) = stack.poll_done() {
            let (data, fault) = stack.payload.take(0);
            return (data, done.error.is_none() && fault.is_none());
        }
        *now = stack.advance_to_reply(Ns::NEVER);
        assert_ne!(*now, Ns::NEVER, "every request ends");
    }
}

/// The disk is full, and the device goes on: it moves data that was flushed, which can be read where the disk holds it.
#[test]
fn what_a_full_disk_holds_can_be_read_while_writes_are_refused() {
    let mut moved = 0;
    for seed in 0..24 {
        let config = any_full_device(seed);
        let store = Store::new(image(&config, true).array);
        let mut stack = Plain::new(&config, host(None), DELAYS, store, (), Typed).unwrap();
        let ready = stack.power_on_with(Ns::ZERO, Store::array_mut, &mut |_| {}).unwrap().ready_at;
        let mut now = stack.start(ready).unwrap();
        let (rng, blocks) = (&mut Prng::stream(seed, "full disk", 0), config.lus[0].blocks);
        let content = |block: u32| vec![(block % 255) as u8 + 1; 4096];
        for block in 0..blocks {
            assert!(ask(&mut stack, &mut now, BlockOp::Write, (block, 1), content(block)).1);
        }
        assert!(ask(&mut stack, &mut now, BlockOp::Flush, (0, 0), Vec::new()).1);
        stack.payload.array_mut().disk_mut().writes_left = Some(rng.below(300));
        // What is asked to change may be there or not, whether it is refused or not.
        let mut is_touched = vec![false; blocks as usize];
        let before = stack.device.stats().slices_moved;
        for _ in 0..2000 {
            let block = rng.below(u64::from(blocks) / 2) as u32 * 2;
            is_touched[block as usize] = true;
            let (op, data) = match rng.below(4) {
                0 => (BlockOp::Discard, Vec::new()),
                _ => (BlockOp::Write, vec![0xff; 4096]),
            };
            let was_full = stack.payload.array().failure().is_some();
            let (_, is_good) = ask(&mut stack, &mut now, op, (block, 1), data);
            assert!(!(is_good && was_full), "seed {seed}: {op:?}");
        }
        moved += stack.device.stats().slices_moved - before;
        for block in (0..blocks).filter(|&block| !is_touched[block as usize]) {
            let (data, is_good) = ask(&mut stack, &mut now, BlockOp::Read, (block, 1), vec![0; 4096]);
            assert!(is_good && data == content(block), "seed {seed}: block {block} was flushed");
        }
    }
    assert!(moved > 1000, "{moved} slices were moved");
}
