// SPDX-License-Identifier: MIT OR Apache-2.0
//! One bit of an image flips while it is not in use. Then the device does not begin, or a read fails, or everything
//! reads as it was written; older data never returns.

use readpath_device::{DeviceConfig, Without};
use readpath_flash::Lean;
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};
use readpath_stack::{Payload, Stack, Typed};
use readpath_store::{Disk, Format, Image, MemoryDisk, Store};
use readpath_testkit::full::{any_full_device, full_device};
use readpath_testkit::{DELAYS, chosen, host, settle};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

const SLICE: usize = 4096;
const HEAD: u64 = 24;
const REST: u64 = 128;

/// A disk that exists many times and differs in a few pages.
#[derive(Clone)]
struct Changed {
    base: Rc<Vec<u8>>,
    pages: BTreeMap<usize, Vec<u8>>,
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

    fn each(&mut self, offset: u64, bytes: usize, mut set: impl FnMut(&mut u8, usize)) {
        let from = offset as usize;
        (0..bytes).for_each(|i| set(&mut self.page((from + i) / SLICE)[(from + i) % SLICE], i));
    }
}

impl Disk for Changed {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let (mut done, mut at) = (0, offset as usize);
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
        self.each(offset, bytes.len(), |byte, i| *byte = bytes[i]);
        Ok(())
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.each(offset, bytes as usize, |byte, _| *byte = 0);
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
#[derive(PartialEq, Eq, Debug)]
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

    /// Switches the device on with one bit flipped, and reads everything. If some of it cannot be read and `goes_on`
    /// is set, the device works for a while and is switched off and on, before everything is read again.
    fn flip(&self, bit: u64, goes_on: bool) -> Came {
        let what = format!("{:?}, bit {} of byte {}", self.left, bit % 8, bit / 8);
        let mut disk = Changed { base: self.bytes.clone(), pages: BTreeMap::new() };
        disk.flip(bit);
        let size = self.bytes.len() as u64;
        let Ok(image) = Image::on(disk, size, true, self.boot()) else { return Came::Refused };
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

    /// Offsets of the heads of spare areas, their rests, data, and RPMB.
    fn parts(&self) -> [u64; 4] {
        let slices = self.format.shape.slices();
        let rpmb = self.format.bytes() - crate::images::RPMB_BYTES;
        let data = rpmb - slices * SLICE as u64;
        let up = |bytes: u64| bytes.next_multiple_of(SLICE as u64);
        let rests = data - up(slices * REST);
        [rests - up(slices * HEAD), rests, data, rpmb]
    }

    /// Whether a head can have been torn here, so that it cannot be distinguished from damage.
    fn may_be_torn(&self, head: u64) -> bool {
        let cut_at = match self.left {
            Left::Stopped => return false,
            Left::Killed => 4096,
            Left::Crashed => 512,
        };
        head % cut_at + HEAD > cut_at
    }

    /// Flips bits of all parts, more with a smaller `one_in`: 1 means every bit of the metadata. Of data some bits of
    /// each slice are flipped: one check covers all of them.
    fn flip_many(&self, one_in: u64) -> [u32; 3] {
        let [heads, rests, data, rpmb] = self.parts();
        let mut came = [0; 3];
        let mut flip = |bit: u64, goes_on: bool| came[self.flip(bit, goes_on) as usize] += 1;
        let mut turn = 0;
        let mut is_chosen = |one_in: u64| {
            turn += 1;
            turn % one_in == 0
        };
        let is_programmed = |slice: u64| {
            let at = (heads + slice * HEAD) as usize;
            self.bytes[at..at + HEAD as usize].iter().any(|&byte| byte != 0)
        };
        let has_rest = |slice: u64| self.bytes[(heads + slice * HEAD + 7) as usize] & 1 << 5 != 0;
        for bit in (0..64).filter(|_| is_chosen(one_in.div_ceil(64))) {
            assert_eq!(self.flip(4096 * 8 + bit * 4, false), Came::Refused, "bit {bit} of a kept record");
        }
        // Many of these bytes are unused.
        (0..heads * 8).filter(|_| is_chosen(one_in * 11)).for_each(|bit| flip(bit, false));
        for slice in 0..self.format.shape.slices() {
            let head = heads + slice * HEAD;
            let (of_head, of_rest, of_data) = match (is_programmed(slice), has_rest(slice)) {
                (false, _) => (one_in * 31, u64::MAX, u64::MAX),
                (_, true) => (one_in, one_in * 11, one_in * 331),
                _ => (one_in, u64::MAX, one_in * 1663),
            };
            // Heads across two sectors are where torn and damaged are hardest to distinguish.
            let of_head = if head % 512 + HEAD > 512 && of_data < u64::MAX { of_head.div_ceil(16) } else { of_head };
            if !self.may_be_torn(head) {
                (head * 8..(head + HEAD) * 8).filter(|_| is_chosen(of_head)).for_each(|bit| flip(bit, bit % 41 == 0));
            }
            let (rest, data) = (rests + slice * REST, data + slice * SLICE as u64);
            (rest * 8..(rest + REST) * 8).filter(|_| is_chosen(of_rest)).for_each(|bit| flip(bit, false));
            (data * 8..(data + 4096) * 8).filter(|_| is_chosen(of_data)).for_each(|bit| flip(bit, false));
        }
        let records = rpmb + crate::images::RPMB_BYTES - (4 << 20);
        (rpmb * 8..records * 8).filter(|_| is_chosen(one_in * 1009)).for_each(|bit| flip(bit, false));
        came
    }
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
    flips(&full_device(Without::NOTHING), 0, 1597);
    let (seeds, _) = chosen(2..3);
    seeds.for_each(|seed| flips(&any_full_device(seed), seed, 3989));
}

#[test]
#[ignore = "takes twenty minutes"]
fn no_flipped_bit_of_a_whole_image_brings_older_data_back() {
    let config = full_device(Without::NOTHING);
    println!("{:?} flips refused, unreadable, harmless", Made::new(config.clone(), 0, Left::Stopped).flip_many(1));
    flips(&config, 0, 7);
    (1..8).for_each(|seed| flips(&any_full_device(seed), seed, 101));
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
    let [heads, rests, ..] = made.parts();
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
