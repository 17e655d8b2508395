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
use readpath_kit::Ns;
use readpath_run::{Hooks, Pace, Parts, RunError, Work};
use readpath_stack::{Payload, Stack, Typed, Wire};
use readpath_store::{Disk, Image, Store};
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
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlashLog {
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
    let writes = image.array.disk().writes.clone();
    let moments = Moments { writes: writes.clone(), seen: 0, moments: Vec::new() };
    let (replayed, moments) = replay_with(image, base, recorded, moments)?;
    if let Some((number, then, now)) = replayed.first_other {
        return Err(ServeError::Recording(format!("request {number} took {then} then, and takes {now} now")));
    }
    Ok(FlashLog { writes: writes.take(), moments: moments.moments })
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
