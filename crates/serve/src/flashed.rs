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
