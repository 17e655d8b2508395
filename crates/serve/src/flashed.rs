// SPDX-License-Identifier: MIT OR Apache-2.0
//! What reaches the flash while a recording is replayed, and while a device recovers: the writes to the disk of an
//! image in order, and the moments between which they come. So the flash at any moment is the image with the first of
//! them. It knows no flash translation.

use crate::host::Host;
use crate::record::{Item, Recorded};
use crate::replayed::replay_with;
use crate::server::ServeError;
use readpath_config::DevicePreset;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::{BLOCK_BYTES, Ns, Prng};
use readpath_run::{Hooks, Pace, Parts, RunError, Work};
use readpath_stack::{Payload, Stack, Typed, Wire};
use readpath_store::{Disk, Format, HEAD_BYTES, Image, Store, torn};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Events for which a device is left alone after its recovery: its first checkpoint is written then.
const EVENTS: u32 = 400;

/// A write to a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DiskWrite {
    /// Bytes at an offset.
    Data(u64, Box<[u8]>),
    /// So many zeros at an offset.
    Zeros(u64, u64),
}

impl DiskWrite {
    /// Makes the write.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn make(&self, disk: &mut impl Disk) -> io::Result<()> {
        match self {
            DiskWrite::Data(offset, data) => disk.write_at(data, *offset),
            &DiskWrite::Zeros(offset, bytes) => disk.zero(offset, bytes),
        }
    }

    /// Its offset, and how many bytes it has.
    fn place(&self) -> (u64, u64) {
        match self {
            DiskWrite::Data(offset, data) => (*offset, data.len() as u64),
            &DiskWrite::Zeros(offset, bytes) => (offset, bytes),
        }
    }
}

/// What is left of these writes when power goes in the middle of the last program or erase among them. Of a unit the
/// first slices are programmed, and of the next half its data: its spare area is whole, unless it is the last, or
/// torn. Of a superblock the first units are erased, and the next is torn. `rng` says how many.
pub fn torn_writes(format: &Format, writes: &[DiskWrite], rng: &mut Prng) -> Vec<DiskWrite> {
    let heads = |(at, write): (usize, &DiskWrite)| {
        let (offset, bytes) = write.place();
        Some((at, format.heads(offset, bytes)?))
    };
    let Some((at, slices)) = writes.iter().enumerate().rev().find_map(heads) else { return Vec::new() };
    let mut left = writes[..at].to_vec();
    match &writes[at] {
        DiskWrite::Data(offset, heads) => {
            let programmed = rng.below(slices.len() as u64) as usize;
            let mut heads = heads[..(programmed + 1) * HEAD_BYTES].to_vec();
            if programmed + 1 == slices.len() || rng.below(2) == 0 {
                heads.truncate(programmed * HEAD_BYTES);
                heads.extend(torn());
            }
            left.push(DiskWrite::Data(*offset, heads.into()));
            let half = u64::from(BLOCK_BYTES / 2);
            left.push(DiskWrite::Zeros(format.data(slices.start + programmed as u32) + half, half));
        }
        &DiskWrite::Zeros(offset, _) => {
            let unit = format.shape.unit_slices as usize * HEAD_BYTES;
            let erased = rng.below(slices.len() as u64 * HEAD_BYTES as u64 / unit as u64) * unit as u64;
            left.extend((erased > 0).then_some(DiskWrite::Zeros(offset, erased)));
            left.push(DiskWrite::Data(offset + erased, torn().repeat(unit / HEAD_BYTES).into()));
        }
    }
    left
}

/// A disk that keeps what is written to it.
pub struct Logged<D> {
    disk: D,
    writes: Rc<RefCell<Vec<DiskWrite>>>,
}

impl<D> Logged<D> {
    /// Keeps what is written to `disk` from now on.
    pub fn new(disk: D) -> Logged<D> {
        Logged { disk, writes: Rc::default() }
    }
}

impl<D: Disk> Disk for Logged<D> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk.read_at(bytes, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.writes.borrow_mut().push(DiskWrite::Data(offset, bytes.into()));
        self.disk.write_at(bytes, offset)
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.writes.borrow_mut().push(DiskWrite::Zeros(offset, bytes));
        self.disk.zero(offset, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.sync()
    }
}

/// A moment at which flash has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlashMoment {
    /// Device time.
    pub at: Ns,
    /// How many writes to the disk there were until then.
    pub writes: usize,
}

/// Writes to a disk, and the moments between them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlashLog {
    /// Where they lie.
    pub format: Format,
    /// The writes in order.
    pub writes: Vec<DiskWrite>,
    /// The moments after operations of flash.
    pub moments: Vec<FlashMoment>,
}

/// Notes the moments.
struct Moments {
    writes: Rc<RefCell<Vec<DiskWrite>>>,
    seen: usize,
    moments: Vec<FlashMoment>,
}

impl Hooks for Moments {
    fn next_at(&self) -> Ns {
        if self.writes.borrow().len() > self.seen { Ns::ZERO } else { Ns::NEVER }
    }

    fn pace(&mut self) -> Pace {
        Pace::ToEvent
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        _: &mut Stack<S, X, P, W>,
        now: Ns,
        _: u32,
    ) -> Result<Ns, RunError> {
        self.seen = self.writes.borrow().len();
        self.moments.push(FlashMoment { at: now, writes: self.seen });
        Ok(now)
    }
}

/// Replays a recording with its data up to the first order that switches the device off, and returns what reached the
/// flash.
///
/// # Errors
/// As [`replay`](crate::replay); or requests did not take as long as when they were recorded.
pub fn flash_log<D: Disk>(
    image: Image<Logged<D>>,
    base: &DevicePreset,
    recorded: &Recorded,
) -> Result<FlashLog, ServeError> {
    let mut recorded = recorded.clone();
    if let Some(off) = recorded.items.iter().position(|(.., item)| matches!(item, Item::Order(order) if order.is_off()))
    {
        recorded.items.truncate(off);
        recorded.end = None;
    }
    let (format, writes) = (*image.array.format(), image.array.disk().writes.clone());
    let moments = Moments { writes: writes.clone(), seen: 0, moments: Vec::new() };
    let (replayed, moments) = replay_with(image, base, recorded, moments)?;
    if let Some((number, then, now)) = replayed.first_other {
        return Err(ServeError::Recording(format!("request {number} took {then} then, and takes {now} now")));
    }
    Ok(FlashLog { format, writes: writes.take(), moments: moments.moments })
}

/// Lets a device recover from an image, and leaves it alone until its first checkpoint is written. Returns what reached
/// the flash meanwhile.
///
/// # Errors
/// The device cannot begin from the image.
pub fn recovery_log<D: Disk>(image: Image<Logged<D>>, base: &DevicePreset) -> Result<Vec<DiskWrite>, ServeError> {
    let writes = image.array.disk().writes.clone();
    let off: Host = "hpb=off".parse().map_err(ServeError::Host)?;
    let (preset, host) = off.of(base).map_err(ServeError::Host)?;
    let parts = Parts { preset: &preset, host, payload: Store::new(image.array), probe: (), wire: Typed };
    parts.stack_for(Alone)??;
    Ok(writes.take())
}

/// A device that nobody uses.
struct Alone;

impl<D: Disk> Work<Store<D>, (), Typed> for Alone {
    type Output = Result<(), ServeError>;

    fn on<S: DieSched>(self, mut stack: Stack<S, Store<D>, (), Typed>) -> Self::Output {
        let recovery = stack.power_on_with(Ns::ZERO, Store::array_mut, &mut |_| {})?;
        stack.start(recovery.ready_at)?;
        for _ in 0..EVENTS {
            let next = stack.next_deadline();
            if next == Ns::NEVER {
                break;
            }
            stack.advance(next);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_store::{MemoryDisk, Shape, VERSION};
    use std::collections::BTreeSet;

    const SLICE: u64 = BLOCK_BYTES as u64;
    const HEAD: u64 = HEAD_BYTES as u64;

    /// What is left of writes in the last superblock, whose heads were of bytes 5: the byte of each head, or 't'; and
    /// the slices of its first unit that are not full of 7, with how many bytes are.
    fn left(format: &Format, at: u64, writes: &[DiskWrite], seed: u64) -> (String, Vec<(u64, u64)>) {
        let mut disk = MemoryDisk::new(format.data(16));
        disk.write_at(&[5; 8 * HEAD_BYTES], at).unwrap();
        torn_writes(format, writes, &mut Prng::new(seed)).iter().for_each(|write| write.make(&mut disk).unwrap());
        let (mut head, mut data) = ([0; HEAD_BYTES], vec![0; SLICE as usize]);
        let kinds = (0..8).map(|i| {
            disk.read_at(&mut head, at + i * HEAD).unwrap();
            match head {
                head if head == torn() => 't',
                head if head == [head[0]; HEAD_BYTES] => char::from(b'0' + head[0]),
                head => panic!("{head:?}"),
            }
        });
        let kinds = kinds.collect();
        let halves = (0..4).filter_map(|i| {
            disk.read_at(&mut data, format.data(8) + i * SLICE).unwrap();
            let there = data.iter().filter(|&&byte| byte == 7).count() as u64;
            (there < SLICE).then_some((i, there))
        });
        (kinds, halves.collect())
    }

    /// Units of four slices, two in a superblock.
    #[test]
    fn of_an_operation_in_whose_middle_power_goes_a_part_is_left() {
        let shape = Shape { superblocks: 2, superblock_slices: 8, unit_slices: 4 };
        let format = Format { version: VERSION, shape, text_bytes: 0, factory_bytes: 0, seed: 0, serial: 1 };
        let heads = (0..).map(|page| page * SLICE).find(|&at| format.heads(at, HEAD) == Some(0..1)).unwrap();
        assert_eq!((format.heads(heads - 1, 1), format.heads(heads, 17 * HEAD)), (None, None));
        let at = heads + 8 * HEAD;
        let erase = [DiskWrite::Zeros(at, 8 * HEAD), DiskWrite::Zeros(format.data(8), 8 * SLICE)];
        let kinds: BTreeSet<String> = (0..50).map(|seed| left(&format, at, &erase, seed).0).collect();
        assert_eq!(kinds, ["0000tttt", "tttt5555"].map(String::from).into());
        let data = DiskWrite::Data(format.data(8), vec![7; 4 * SLICE as usize].into());
        let program = [data, DiskWrite::Data(at, vec![3; 4 * HEAD_BYTES].into()), DiskWrite::Zeros(0, 1)];
        let parts: BTreeSet<_> = (0..200).map(|seed| left(&format, at, &program, seed)).collect();
        let part = |kinds: &str, slice| (kinds.to_owned(), vec![(slice, SLICE / 2)]);
        let torn = [("t5555555", 0), ("3t555555", 1), ("33t55555", 2), ("333t5555", 3)];
        let whole = [("35555555", 0), ("33555555", 1), ("33355555", 2)];
        assert_eq!(parts, torn.into_iter().chain(whole).map(|(kinds, slice)| part(kinds, slice)).collect());
        assert_eq!(torn_writes(&format, &program[2..], &mut Prng::new(1)), [], "nothing of the array");
    }
}
