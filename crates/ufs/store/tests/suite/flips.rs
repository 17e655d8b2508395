// SPDX-License-Identifier: MIT OR Apache-2.0
//! One bit of an image flips while it is not in use. Then the device does not begin, or a read fails, or everything
//! reads as it was written; older data never returns.
//!
//! Every bit is flipped. A device is switched on once for all bits that it cannot tell apart: bytes that it never
//! reads are traced, and of others the array gives the same answers. Data is asked for at some bits, because a check
//! of 32 bits changes with any single one ([`any_single_bit_changes_a_check`]).

use readpath_device::{DeviceConfig, FlashArray, SPARE_REST_BYTES, Without};
use readpath_flash::{Lean, Ppn};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};
use readpath_stack::{Payload, Stack, Typed};
use readpath_store::{Disk, FlashFile, Format, Image, MemoryDisk, Store};
use readpath_testkit::full::{any_full_device, full_device};
use readpath_testkit::{DELAYS, chosen, host, settle};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::rc::Rc;

const SLICE: usize = 4096;
const HEAD: u64 = 24;
const REST: u64 = SPARE_REST_BYTES as u64;
const RECORD: u64 = 128;

/// A disk that exists many times and differs in a few pages.
#[derive(Clone)]
struct Changed {
    base: Rc<Vec<u8>>,
    pages: BTreeMap<usize, Vec<u8>>,
    /// Whether each byte was read, if that is of interest.
    reads: Option<Rc<RefCell<Vec<bool>>>>,
}

impl Changed {
    fn page(&mut self, number: usize) -> &mut [u8] {
        let base = &self.base;
        self.pages.entry(number).or_insert_with(|| {
            let from = number * SLICE;
            base[from..(from + SLICE).min(base.len())].to_vec()
        })
    }

    fn flip(&mut self, bit: u64) {
        let at = (bit / 8) as usize;
        self.page(at / SLICE)[at % SLICE] ^= 1 << (bit % 8);
    }

    /// Lets `set` change the bytes of a range, a page at a time; it also gets where in the range they are.
    fn each(&mut self, offset: u64, bytes: usize, mut set: impl FnMut(&mut [u8], usize)) {
        let (mut done, mut at) = (0, offset as usize);
        while done < bytes {
            let n = (SLICE - at % SLICE).min(bytes - done);
            set(&mut self.page(at / SLICE)[at % SLICE..at % SLICE + n], done);
            (done, at) = (done + n, at + n);
        }
    }
}

impl Disk for Changed {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let (mut done, mut at) = (0, offset as usize);
        if let Some(reads) = &self.reads {
            reads.borrow_mut()[at..at + bytes.len()].fill(true);
        }
        while done < bytes.len() {
            let n = (SLICE - at % SLICE).min(bytes.len() - done);
            let to = &mut bytes[done..done + n];
            match self.pages.get(&(at / SLICE)) {
                Some(page) => to.copy_from_slice(&page[at % SLICE..at % SLICE + n]),
                None => to.copy_from_slice(&self.base[at..at + n]),
            }
            (done, at) = (done + n, at + n);
        }
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.each(offset, bytes.len(), |part, from| part.copy_from_slice(&bytes[from..from + part.len()]));
        Ok(())
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.each(offset, bytes as usize, |part, _| part.fill(0));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A running device, and the expected contents of its blocks.
struct On<D: Disk> {
    stack: Stack<Lean, Store<D>, (), Typed>,
    now: Ns,
}

impl<D: Disk> On<D> {
    /// # Errors
    /// The device does not begin from it.
    fn switch(config: &DeviceConfig, image: Image<D>) -> Result<On<D>, String> {
        let store = Store::new(image.array);
        let mut stack = Stack::new(config, host(None), DELAYS, store, (), Typed).unwrap();
        let recovery = stack.power_on_with(Ns::ZERO, Store::array_mut, &mut |_| {});
        let recovery = recovery.map_err(|error| error.to_string())?;
        stack.payload.array_mut().sync().unwrap();
        let now = stack.start(recovery.ready_at).unwrap();
        Ok(On { stack, now })
    }

    /// Runs one request; returns its data, or its error.
    fn run(&mut self, op: BlockOp, block: u32, blocks: u32, stamp: u64) -> Result<Vec<u8>, String> {
        let data = stamp.to_le_bytes().repeat(blocks as usize * SLICE / 8);
        self.stack.payload.bring(0, block, data);
        self.stack.submit(self.now, &BlockRequest { cookie: 0, lun: 0, op, block, blocks });
        settle(&mut self.stack, &mut self.now);
        let done = self.stack.poll_done().unwrap();
        let (data, fault) = self.stack.payload.take(0);
        match (done.error, fault) {
            (None, None) => Ok(data),
            wrong => Err(format!("{wrong:?}")),
        }
    }

    /// The stamps of blocks.
    fn read(&mut self, block: u32, blocks: u32) -> Result<Vec<u64>, String> {
        let data = self.run(BlockOp::Read, block, blocks, !0)?;
        let stamp_of = |block: &[u8]| {
            let words: Vec<u64> = block.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
            assert!(words.iter().all(|word| *word == words[0]), "a block is of one write");
            words[0]
        };
        Ok(data.chunks(SLICE).map(stamp_of).collect())
    }

    /// Compares all blocks with the expected ones; returns how many cannot be read.
    fn compare(&mut self, expected: &[u64], what: &str) -> u32 {
        let mut unreadable = 0;
        for (i, together) in expected.chunks(16).enumerate() {
            let first = i as u32 * 16;
            match self.read(first, together.len() as u32) {
                Ok(stamps) => assert_eq!(stamps, together, "{what}: from block {first} on"),
                Err(_) => {
                    for (block, stamp) in (first..).zip(together) {
                        match self.read(block, 1) {
                            Ok(stamps) => assert_eq!(stamps, [*stamp], "{what}: block {block}"),
                            Err(_) => unreadable += 1,
                        }
                    }
                }
            }
        }
        unreadable
    }

    /// Overwrites, trims and flushes blocks, one after the other.
    fn work(&mut self, rng: &mut Prng, requests: u64, expected: &mut [u64]) {
        for i in 1..=requests {
            let op = match rng.below(20) {
                0 => BlockOp::Flush,
                1 => BlockOp::WriteFua,
                2 => BlockOp::Discard,
                _ => BlockOp::Write,
            };
            let n = if op == BlockOp::Flush { 0 } else { 1 + rng.below(6) as u32 };
            // Every fourth write is of zeros, and the last quarter of the device is left as it is.
            let stamp = if i % 4 == 0 || op == BlockOp::Discard { 0 } else { rng.below(u64::MAX - 1) };
            let block = rng.below((expected.len() / 4 * 3) as u64) as u32;
            self.run(op, block, n, stamp).unwrap();
            expected[block as usize..(block + n) as usize].fill(stamp);
        }
        self.run(BlockOp::Flush, 0, 0, 0).unwrap();
    }
}

/// State in which the image was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Left {
    /// The server was stopped, and the machine was restarted.
    Stopped,
    /// The server was killed after a flush.
    Killed,
    /// The machine crashed after a flush.
    Crashed,
}

/// An image, and the expected contents of its blocks.
struct Made {
    config: DeviceConfig,
    left: Left,
    bytes: Rc<Vec<u8>>,
    format: Format,
    expected: Vec<u64>,
}

/// Result of a flipped bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Came {
    Refused,
    Unreadable,
    Harmless,
}

impl Made {
    fn new(config: DeviceConfig, seed: u64, left: Left) -> Made {
        let mut image = crate::both::image(&config, false);
        let size = image.array.disk_mut().bytes_mut().len() as u64;
        let image = Image::on(image.array.disk().clone(), size, true, [1; 16]).unwrap();
        let format = *image.array.format();
        let mut expected = vec![0; config.lus[0].blocks as usize];
        let mut on: On<MemoryDisk> = On::switch(&config, image).unwrap();
        let blocks = expected.len() as u32;
        for block in (0..blocks).step_by(6) {
            let n = (blocks - block).min(6);
            on.run(BlockOp::Write, block, n, u64::from(block) + 1).unwrap();
            expected[block as usize..(block + n) as usize].fill(u64::from(block) + 1);
        }
        on.work(&mut Prng::stream(seed, "work", 0), 600, &mut expected);
        if left == Left::Stopped {
            on.stack.payload.array_mut().seal().unwrap();
        }
        let bytes = std::mem::take(on.stack.payload.array_mut().disk_mut().bytes_mut());
        Made { config, left, bytes: Rc::new(bytes), format, expected }
    }

    fn boot(&self) -> [u8; 16] {
        if self.left == Left::Killed { [1; 16] } else { [2; 16] }
    }

    fn disk(&self) -> Changed {
        Changed { base: self.bytes.clone(), pages: BTreeMap::new(), reads: None }
    }

    fn image(&self, disk: Changed) -> Result<Image<Changed>, String> {
        Image::on(disk, self.bytes.len() as u64, true, self.boot()).map_err(|error| error.to_string())
    }

    /// Whether each byte is read when the device is switched on and everything is read.
    fn reads(&self) -> Vec<bool> {
        let reads = Rc::new(RefCell::new(vec![false; self.bytes.len()]));
        let disk = Changed { reads: Some(reads.clone()), ..self.disk() };
        let mut on = On::switch(&self.config, self.image(disk).unwrap()).unwrap();
        assert_eq!(on.compare(&self.expected, "nothing flipped"), 0);
        drop(on);
        Rc::into_inner(reads).unwrap().into_inner()
    }

    /// Switches the device on with one bit flipped, and reads everything. If some of it cannot be read and `goes_on`
    /// is set, the device works for a while and is switched off and on, before everything is read again.
    fn flip(&self, bit: u64, goes_on: bool) -> Came {
        let what = format!("{:?}, bit {} of byte {}", self.left, bit % 8, bit / 8);
        let mut disk = self.disk();
        disk.flip(bit);
        let size = self.bytes.len() as u64;
        let Ok(image) = self.image(disk) else { return Came::Refused };
        let Ok(mut on) = On::switch(&self.config, image) else { return Came::Refused };
        on.stack.device.check_consistency().unwrap_or_else(|e| panic!("{what}: {e}"));
        let unreadable = on.compare(&self.expected, &what);
        assert!(unreadable <= 1, "{what}: {unreadable} blocks cannot be read");
        if goes_on && unreadable > 0 {
            let mut expected = self.expected.clone();
            on.work(&mut Prng::stream(bit, "more work", 0), 200, &mut expected);
            let still = on.compare(&expected, &what);
            assert!(still <= unreadable, "{what}");
            on.stack.payload.array_mut().seal().unwrap();
            let disk = on.stack.payload.array().disk().clone();
            let image = Image::on(disk, size, true, [3; 16]).unwrap();
            // The unreadable data may be part of the map, which is only read when the device begins.
            if let Ok(mut on) = On::switch(&self.config, image) {
                assert!(on.compare(&expected, &what) <= still, "{what}");
            }
        }
        if unreadable > 0 { Came::Unreadable } else { Came::Harmless }
    }

    /// Offsets of the records of superblocks, the heads of spare areas, their rests, data, and RPMB.
    fn parts(&self) -> [u64; 5] {
        let slices = self.format.shape.slices();
        let rpmb = self.format.bytes() - crate::images::RPMB_BYTES;
        let data = rpmb - slices * SLICE as u64;
        let up = |bytes: u64| bytes.next_multiple_of(SLICE as u64);
        let rests = data - up(slices * REST);
        let heads = rests - up(slices * HEAD);
        [heads - up(u64::from(self.format.shape.superblocks) * RECORD), heads, rests, data, rpmb]
    }

    /// Flips bits of the image: of each `one_in`th record and slice, or all. Returns how many were refused, unreadable
    /// and harmless.
    fn flip_many(&self, one_in: u64) -> [u64; 3] {
        let [records, heads, rests, data, rpmb] = self.parts();
        let reads = self.reads();
        let (mut came, mut turn) = ([0; 3], 0);
        // Bits of one place: those of which the array says the same are flipped once in the image of a device.
        let mut flip = |bits: &mut dyn Iterator<Item = u64>, each: u64, says: &mut dyn FnMut(u64) -> String| {
            let mut known = HashMap::new();
            for bit in bits {
                let is_read = reads[(bit / 8) as usize];
                let new = || {
                    turn += 1;
                    self.flip(bit, turn % 7 == 0)
                };
                let how = if is_read { *known.entry(says(bit)).or_insert_with(new) } else { Came::Harmless };
                came[how as usize] += each;
            }
        };
        let flipped = |bit: u64| {
            let mut disk = self.disk();
            disk.flip(bit);
            self.image(disk)
        };
        let bits = |offset: u64, bytes: u64| offset * 8..(offset + bytes) * 8;
        flip(&mut bits(0, records).step_by(one_in as usize), 1, &mut |bit| match flipped(bit) {
            Ok(mut image) => {
                format!("{:?}", (image.text, image.array.kept(), image.array.settings(), image.array.factory()))
            }
            Err(error) => error,
        });
        let mut array = self.image(self.disk()).unwrap().array;
        let mut with = |bit: u64, says: fn(&mut FlashFile<Changed>, u32) -> String, number: u32| {
            array.disk_mut().flip(bit);
            let said = says(&mut array, number);
            array.disk_mut().flip(bit);
            said
        };
        for superblock in (0..self.format.shape.superblocks).step_by(one_in.min(8) as usize) {
            let record = records + u64::from(superblock) * RECORD;
            let says = |array: &mut FlashFile<Changed>, number| format!("{:?}", array.block_record(number));
            flip(&mut bits(record, RECORD), 1, &mut |bit| with(bit, says, superblock));
        }
        for slice in (0..self.format.shape.slices()).filter(|slice| (slice * 7919) % one_in == 0) {
            let number = slice as u32;
            flip(&mut bits(heads + slice * HEAD, HEAD), 1, &mut |bit| with(bit, head_said, number));
            flip(&mut bits(rests + slice * REST, REST), 1, &mut |bit| with(bit, slice_said, number));
            // Of data every 1024th bit stands for all.
            let some = &mut bits(data + slice * SLICE as u64, SLICE as u64).step_by(1024);
            flip(some, 1024, &mut |bit| with(bit, slice_said, number));
        }
        // No key is set. Of a blank record only the first bytes are looked at.
        let mut of_rpmb = bits(rpmb, 64).chain(bits(rpmb + 64, crate::images::RPMB_BYTES - 64).step_by(1009));
        flip(&mut of_rpmb, 1, &mut |bit| format!("{:?}", flipped(bit).unwrap().array.rpmb()));
        came
    }
}

/// What the array says of a head.
fn head_said(array: &mut FlashFile<Changed>, slice: u32) -> String {
    let (mut seen, slices) = (Vec::new(), array.format().shape.superblock_slices);
    array.look(slice / slices, &mut seen).unwrap();
    format!("{:?}, {}", seen[(slice % slices) as usize], slice_said(array, slice))
}

/// What it says of a slice that is read.
fn slice_said(array: &mut FlashFile<Changed>, slice: u32) -> String {
    let (mut rest, mut data) = ([0; REST as usize], [0; SLICE]);
    let read = array.read(Ppn(slice), &mut rest, &mut data);
    if read.is_err() { format!("{read:?}") } else { format!("{read:?} {rest:?} {data:?}") }
}

/// Counts the flips that were refused, unreadable and harmless.
fn flips(config: &DeviceConfig, seed: u64, one_in: u64) {
    for left in [Left::Stopped, Left::Killed, Left::Crashed] {
        let came = Made::new(config.clone(), seed, left).flip_many(one_in);
        println!("seed {seed}, {left:?}: {came:?} flips refused, unreadable, harmless");
        assert!(came.iter().all(|&times| times > 0), "seed {seed}, {left:?}: {came:?}");
    }
}

#[test]
fn no_flipped_bit_brings_older_data_back() {
    flips(&full_device(Without::NOTHING), 0, 61);
    let (seeds, _) = chosen(2..3);
    seeds.for_each(|seed| flips(&any_full_device(seed), seed, 97));
}

#[test]
#[ignore = "takes minutes"]
fn no_flipped_bit_of_a_whole_image_brings_older_data_back() {
    let (seeds, _) = chosen(0..8);
    for seed in seeds {
        let config = if seed == 0 { full_device(Without::NOTHING) } else { any_full_device(seed) };
        flips(&config, seed, 1);
    }
}

/// The check is linear: whatever the bytes are, it changes as it does for one bit among zeros.
#[test]
fn any_single_bit_changes_a_check() {
    for bytes in [REST as usize, SLICE, SLICE + REST as usize] {
        let mut zeros = vec![0; bytes];
        let check = crc32fast::hash(&zeros);
        for bit in 0..bytes * 8 {
            zeros[bit / 8] = 1 << (bit % 8);
            assert_ne!(crc32fast::hash(&zeros), check, "bit {bit} of {bytes} bytes");
            zeros[bit / 8] = 0;
        }
    }
}

/// The known case: A, flush, B, flush, stop; each bit of each head of a spare area flips.
#[test]
fn a_flipped_bit_does_not_bring_the_write_before_back() {
    let config = full_device(Without::NOTHING);
    let image = crate::both::image(&config, false);
    let mut disk = image.array.disk().clone();
    let size = disk.bytes_mut().len() as u64;
    let mut on = On::switch(&config, Image::on(disk, size, true, [1; 16]).unwrap()).unwrap();
    let mut expected = vec![0; config.lus[0].blocks as usize];
    for stamp in [7, 8] {
        on.run(BlockOp::Write, 3, 1, stamp).unwrap();
        on.run(BlockOp::Flush, 0, 0, 0).unwrap();
    }
    expected[3] = 8;
    on.stack.payload.array_mut().seal().unwrap();
    let (format, bytes) = (*on.stack.payload.array().format(), on.stack.payload.array().disk().clone());
    let bytes = Rc::new(std::mem::take(bytes.clone().bytes_mut()));
    let made = Made { config, left: Left::Stopped, bytes, format, expected };
    let [_, heads, rests, ..] = made.parts();
    let (mut refused, mut flips) = (0, 0);
    for head in (heads..rests).step_by(HEAD as usize) {
        if made.bytes[head as usize + 6] == 1 {
            flips += HEAD * 8;
            let bits = head * 8..(head + HEAD) * 8;
            refused += bits.filter(|&bit| made.flip(bit, false) == Came::Refused).count() as u64;
        }
    }
    assert_eq!((flips, refused), (2 * HEAD * 8, 2 * HEAD * 8), "no map page knows of either write");
}
