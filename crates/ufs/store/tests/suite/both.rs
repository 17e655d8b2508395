// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device whose data lies in a store, and whose reads are checked twice: by `Tags`, which know what a read may
//! return, and byte by byte against what was programmed into the slice that was read.

use readpath_device::{DeviceConfig, FlashArray, MediaOp, Own, Recovery, Seen, WithMedia};
use readpath_flash::{Lean, Ppn};
use readpath_host::{BlockOp, BlockRequest};
use readpath_kit::{Ns, Prng};
use readpath_stack::{Fault, Payload, Stack, Tags, Typed};
use readpath_store::{Image, MemoryDisk, Store};
use readpath_testkit::full::read_everything;
use readpath_testkit::{DELAYS, host};

const SLICE: usize = 4096;

/// Both payloads.
pub struct Both {
    pub tags: Tags,
    pub store: Store<MemoryDisk>,
    /// The stamp last written to each slice, slot and command; 0 = zeros.
    slices: Vec<u64>,
    slots: Vec<u64>,
    moving: Vec<Vec<u64>>,
    next: u64,
    /// The process has died: nothing that the device reports counts.
    is_gone: bool,
    /// Number of starts of the machine.
    boot: u32,
    pub faults: Vec<Fault>,
}

impl Both {
    pub fn new(store: Store<MemoryDisk>) -> Both {
        let moving = vec![Vec::new(); 64];
        let tags = Tags::default();
        let (slices, slots) = (Vec::new(), Vec::new());
        Both { tags, store, slices, slots, moving, next: 0, is_gone: false, boot: 1, faults: Vec::new() }
    }
}

impl Payload for Both {
    type Mode = WithMedia;

    fn attach(&mut self, slices: u32, slots: usize, blocks: u32) {
        self.store.attach(slices, slots, blocks);
        if self.slices.is_empty() {
            self.tags.attach(slices, slots, blocks);
            self.slices = vec![0; slices as usize];
            self.slots = vec![0; slots];
        }
    }

    fn preset(&mut self, lpn: u32, ppn: Ppn) {
        self.tags.preset(lpn, ppn);
    }

    fn begin(&mut self, tag: u8, request: &BlockRequest, lpn: u32) {
        let mut data = vec![0; request.blocks as usize * SLICE];
        let moving = &mut self.moving[usize::from(tag)];
        moving.clear();
        if matches!(request.op, BlockOp::Write | BlockOp::WriteFua) {
            for block in data.chunks_exact_mut(SLICE) {
                self.next += 1;
                // Every eighth block is of zeros.
                let stamp = if self.next.is_multiple_of(8) { 0 } else { self.next };
                block.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&stamp.to_le_bytes()));
                moving.push(stamp);
            }
        } else {
            moving.resize(request.blocks as usize, u64::MAX);
            data.fill(0xff);
        }
        // Each command is a separate request here.
        let request = &BlockRequest { cookie: u32::from(tag), ..*request };
        self.store.bring(u32::from(tag), request.block, data);
        self.tags.begin(tag, request, lpn);
        self.store.begin(tag, request, lpn);
    }

    fn execute(&mut self, op: MediaOp) {
        if self.is_gone {
            return;
        }
        self.store.execute(op);
        // Tags follow the array, which does not change after a failed write.
        if self.store.array().failure().is_some() && !matches!(op, MediaOp::Fill { .. }) {
            return;
        }
        self.tags.execute(op);
        match op {
            MediaOp::Fill { tag, index, slot } => {
                self.slots[usize::from(slot)] = self.moving[usize::from(tag)][index as usize];
            }
            MediaOp::Program { slot, ppn, .. } => self.slices[ppn.0 as usize] = self.slots[usize::from(slot)],
            MediaOp::Move { from, to, .. } => self.slices[to.0 as usize] = self.slices[from.0 as usize],
            MediaOp::ReadFlash { tag, index, ppn } => {
                self.moving[usize::from(tag)][index as usize] = self.slices[ppn.0 as usize];
            }
            MediaOp::ReadBuffer { tag, index, slot } => {
                self.moving[usize::from(tag)][index as usize] = self.slots[usize::from(slot)];
            }
            MediaOp::ReadZeros { tag, index } => self.moving[usize::from(tag)][index as usize] = 0,
            _ => {}
        }
    }

    fn keep(&mut self, own: Own) {
        if !self.is_gone {
            self.store.keep(own);
        }
    }

    fn end(&mut self, tag: u8, request: &BlockRequest, lpn: u32, good: bool) {
        self.store.end(tag, &BlockRequest { cookie: u32::from(tag), ..*request }, lpn, good);
        let (data, fault) = self.store.take(u32::from(tag));
        let has_failed = self.store.array().failure().is_some();
        self.tags.end(tag, request, lpn, good && fault.is_none() && !has_failed);
        if has_failed {
            self.faults.extend(fault);
            return;
        }
        if request.op == BlockOp::Read && good && fault.is_none() {
            for (i, (block, &stamp)) in data.chunks_exact(SLICE).zip(&self.moving[usize::from(tag)]).enumerate() {
                let is_right = block.chunks_exact(8).all(|word| *word == stamp.to_le_bytes());
                assert!(is_right, "block {} is {:?} and should be {stamp}", lpn + i as u32, &block[..8]);
            }
        }
        self.faults.extend(fault);
    }

    fn reset(&mut self) {
        self.tags.reset();
    }

    fn power_cut(&mut self) {
        self.tags.power_cut();
        if !self.is_gone {
            self.store.power_cut();
        }
    }

    fn settle(&mut self) {
        self.store.settle();
    }
}

pub type Kept = Stack<Lean, Both, (), Typed>;

/// An image of a device in memory, four fifths written if `is_full`.
pub fn image(config: &DeviceConfig, is_full: bool) -> Image<MemoryDisk> {
    let mut device = readpath_device::UfsDevice::<Lean, WithMedia, ()>::new(config, DELAYS, ()).unwrap();
    if is_full {
        let blocks = config.lus[0].blocks;
        let layout = readpath_device::Layout::Random;
        device.precondition([(0, 0, blocks - blocks / 5)], layout, 5, |_, _| {}).unwrap();
    }
    Image::create_on("a device file", 7, &mut device, |bytes| Ok(MemoryDisk::new(bytes))).unwrap()
}

/// The image on a disk, at a start of the machine.
pub fn open(mut disk: MemoryDisk, boot: u32) -> Image<MemoryDisk> {
    let bytes = disk.bytes_mut().len() as u64;
    Image::on(disk, bytes, true, u128::from(boot).to_le_bytes()).unwrap()
}

/// State that the payload of a device without power leaves to the next.
pub struct Left {
    both: Both,
    /// The disk at the moment of the power cut.
    pub disk: MemoryDisk,
}

/// A stack that begins from an image, and has found its device; its knowledge of earlier lives comes from `left`.
pub fn switch_on(
    config: &DeviceConfig,
    image: Image<MemoryDisk>,
    before: Option<Both>,
    what: &str,
) -> (Kept, Ns, Recovery) {
    let store = Store::new(image.array);
    let both = match before {
        Some(before) => Both { store, is_gone: false, ..before },
        None => Both::new(store),
    };
    let mut stack = Kept::new(config, host(None), DELAYS, both, (), Typed).unwrap();
    let recovery = stack.power_on_with(Ns::ZERO, |both: &mut Both| both.store.array_mut(), &mut |_| {});
    let recovery = recovery.unwrap_or_else(|e| panic!("{what}: {e}"));
    // State shown by a running device is durable.
    stack.payload.store.array_mut().sync().unwrap();
    let now = stack.start(recovery.ready_at).unwrap();
    (stack, now, recovery)
}

/// [`switch_on`] for a device that was preconditioned, as its tags have to know.
pub fn switch_on_full(config: &DeviceConfig) -> (Kept, Ns) {
    let (mut stack, now, _) = switch_on(config, image(config, true), None, "new");
    let mut device = readpath_device::UfsDevice::<Lean, WithMedia, ()>::new(config, DELAYS, ()).unwrap();
    let blocks = config.lus[0].blocks;
    let layout = readpath_device::Layout::Random;
    let tags = &mut stack.payload.tags;
    device.precondition([(0, 0, blocks - blocks / 5)], layout, 5, |lpn, ppn| tags.preset(lpn, ppn)).unwrap();
    (stack, now)
}

impl Left {
    /// Cuts the power of the stack at `now`; keeps the disk of that moment.
    pub fn cut(mut stack: Kept, now: Ns) -> Left {
        stack.power_cut(now);
        Left::of(stack)
    }

    /// Kills the process: the device has no time to mark torn slices.
    pub fn kill(mut stack: Kept, now: Ns) -> Left {
        stack.payload.is_gone = true;
        Left::cut(stack, now)
    }

    /// Kills the process in the middle of one of its last writes since the last sync.
    pub fn kill_while_it_writes(stack: Kept, now: Ns, rng: &mut Prng) -> Left {
        let mut left = Left::kill(stack, now);
        left.disk.kill(rng.below(8) as usize, rng.below(256) as u8);
        left
    }

    /// The machine crashes as well: of each write since the last sync, `stays` gives the bytes that reach the disk.
    pub fn crash(&mut self, stays: impl FnMut(usize) -> usize) {
        self.both.boot += 1;
        self.disk.crash(stays);
    }

    fn of(stack: Kept) -> Left {
        let disk = stack.payload.store.array().disk().clone();
        Left { both: stack.payload, disk }
    }

    /// Another device continues from the disk.
    pub fn switch_on(self, config: &DeviceConfig, what: &str) -> (Kept, Ns, Recovery) {
        let mut image = open(self.disk, self.both.boot);
        let mut both = self.both;
        // Writes that never reached the disk are gone.
        let shape = image.array.format().shape;
        let mut seen = Vec::new();
        for superblock in 0..shape.superblocks {
            image.array.look(superblock, &mut seen).unwrap();
            for (slice, seen) in (superblock * shape.superblock_slices..).zip(&seen) {
                let first = Ppn(slice);
                match seen {
                    Seen::Blank => both.tags.execute(MediaOp::Erase { first, slices: 1 }),
                    Seen::Torn => both.tags.execute(MediaOp::Torn { first, slices: 1 }),
                    Seen::Programmed(_) | Seen::Damaged => {}
                }
            }
        }
        switch_on(config, image, Some(both), what)
    }
}

/// Reads everything, and checks consistency.
pub fn check(stack: &mut Kept, now: &mut Ns, what: &str) {
    stack.device.check_consistency().unwrap_or_else(|e| panic!("{what}: {e}"));
    read_everything(stack, now);
    let tags = &stack.payload.tags;
    assert_eq!(tags.wrong, 0, "{what}: {:?}", tags.first_wrong);
    assert!(stack.payload.faults.is_empty(), "{what}: {:?}", stack.payload.faults);
}
