// SPDX-License-Identifier: MIT OR Apache-2.0
//! A UFS host controller as a PCI function: configuration space, BAR 0 and one interrupt line.

use super::maps::Maps;
use super::session::{Errno, Function, Irqs, Mapping};
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_hci::{Attached, register};
use readpath_kit::Ns;
use readpath_stack::Payload;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl, fstat};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;

/// Vendor and device as PCI knows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PciId {
    /// Vendor.
    pub vendor: u16,
    /// Device.
    pub device: u16,
}

impl PciId {
    /// A controller of Intel (Elkhart Lake): Linux drives it since 5.10, and suspends with it.
    pub const INTEL: PciId = PciId { vendor: 0x8086, device: 0x4B41 };
}

impl fmt::Display for PciId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:04x}:{:04x}", self.vendor, self.device)
    }
}

impl FromStr for PciId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| u16::from_str_radix(text, 16).ok().filter(|_| text.len() == 4);
        let pair = text.split_once(':').and_then(|(vendor, device)| Some((number(vendor)?, number(device)?)));
        let (vendor, device) = pair.ok_or_else(|| format!("'{text}' is not VVVV:DDDD in hexadecimal, as 8086:4b41"))?;
        Ok(PciId { vendor, device })
    }
}

/// Regions of VFIO that this function has.
const BAR_0: u32 = 0;
const CONFIG: u32 = 7;
const CONFIG_BYTES: usize = 256;
const BAR_BYTES: u32 = register::SPACE_BYTES;

/// Offsets in configuration space (PCI Local Bus 3.0 §6.1).
const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const BAR_0_AT: usize = 0x10;
/// Command register: bus master; interrupts off.
const BUS_MASTER: u16 = 1 << 2;
const INTERRUPT_OFF: u16 = 1 << 10;
/// Status register: the line is high, whether or not interrupts are off.
const INTERRUPT_STATUS: u8 = 1 << 3;

/// Bytes that a host may write, and which of their bits.
const WRITABLE: [(usize, &[u8]); 4] = [
    // Memory space, bus master, parity, SERR#, interrupts off.
    (COMMAND, &[0x46, 0x05]),
    // Cache line size, latency timer.
    (0x0C, &[0xFF, 0xFF]),
    // A BAR of 4 KiB.
    (BAR_0_AT, &[0x00, 0xF0, 0xFF, 0xFF]),
    // Interrupt line.
    (0x3C, &[0xFF]),
];

fn configuration(id: PciId) -> [u8; CONFIG_BYTES] {
    let mut space = [0; CONFIG_BYTES];
    space[0x00..0x02].copy_from_slice(&id.vendor.to_le_bytes());
    space[0x02..0x04].copy_from_slice(&id.device.to_le_bytes());
    // Class: mass storage, UFS, UFSHCI. Subsystem: as the function itself. Interrupt pin: INTA#.
    space[0x09..0x0C].copy_from_slice(&[0x01, 0x09, 0x01]);
    space.copy_within(0x00..0x04, 0x2C);
    space[0x3D] = 1;
    space
}

/// A UFS host controller as a PCI function. Time is set from outside before any access.
pub struct UfsFunction<S: DieSched, X: Payload, P: Probe> {
    /// Controller and device.
    pub attached: Attached<S, X, P, Maps>,
    /// The time of the current request.
    pub now: Ns,
    id: PciId,
    space: [u8; CONFIG_BYTES],
    trigger: Option<OwnedFd>,
    unmask: Option<OwnedFd>,
    /// `unmask` has changed since [`UfsFunction::new_unmask`] was called.
    has_new_unmask: bool,
    /// The interrupt was raised, or the client masked it.
    is_masked: bool,
}

impl<S: DieSched, X: Payload, P: Probe> UfsFunction<S, X, P> {
    /// A function that no client has seen.
    pub fn new(attached: Attached<S, X, P, Maps>, id: PciId) -> Self {
        UfsFunction {
            attached,
            now: Ns::ZERO,
            id,
            space: configuration(id),
            trigger: None,
            unmask: None,
            has_new_unmask: false,
            is_masked: false,
        }
    }

    fn command(&self) -> u16 {
        u16::from_le_bytes([self.space[COMMAND], self.space[COMMAND + 1]])
    }

    /// Raises the interrupt if the controller asks for it and it is not masked. It then masks itself until the client
    /// unmasks it: the line is level-triggered, an eventfd is not.
    pub fn raise(&mut self) {
        if self.is_masked || self.command() & INTERRUPT_OFF != 0 || !self.attached.line() {
            return;
        }
        if let Some(trigger) = &self.trigger {
            self.is_masked = true;
            fire(trigger);
        }
    }

    /// The eventfd that unmasks the interrupt, if there is one.
    pub fn unmask_by(&self) -> Option<BorrowedFd<'_>> {
        self.unmask.as_ref().map(AsFd::as_fd)
    }

    /// The eventfd that unmasks the interrupt, if it has changed since the last call.
    pub fn new_unmask(&mut self) -> Option<Option<BorrowedFd<'_>>> {
        std::mem::take(&mut self.has_new_unmask).then(|| self.unmask_by())
    }

    /// Unmasks the interrupt if that eventfd was written. False if it is no eventfd.
    pub fn take_unmask(&mut self) -> bool {
        let Some(unmask) = &self.unmask else { return true };
        if !can(unmask, PollFlags::IN) {
            return true;
        }
        match rustix::io::read(unmask, &mut [0; 8]) {
            Ok(8) => {
                self.is_masked = false;
                true
            }
            Err(rustix::io::Errno::AGAIN) => true,
            _ => false,
        }
    }

    /// The client has disconnected: its memory and eventfds are dropped, and the function is reset.
    pub fn client_gone(&mut self) {
        self.reset();
        self.attached.memory = Maps::default();
        (self.trigger, self.unmask, self.is_masked) = (None, None, false);
    }

    /// Parses an access to BAR 0: a part of a register, or several registers.
    fn registers(offset: u64, bytes: usize) -> Result<std::ops::Range<u32>, Errno> {
        let end = offset.checked_add(bytes as u64).filter(|end| *end <= u64::from(BAR_BYTES)).ok_or(Errno::Invalid)?;
        Ok(offset as u32..end as u32)
    }
}

fn fire(trigger: &OwnedFd) {
    // An eventfd whose counter is full is left as it is.
    if can(trigger, PollFlags::OUT) {
        _ = rustix::io::write(trigger, &1u64.to_ne_bytes());
    }
}

/// Whether an eventfd can be read or written at once. The client shares its flags, and may have made it wait again.
fn can(eventfd: &OwnedFd, what: PollFlags) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(eventfd, what)];
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().contains(what)
}

/// An eventfd has no file type; other files without one cannot be written.
fn is_eventfd(file: &OwnedFd) -> bool {
    fstat(file).is_ok_and(|stat| stat.st_mode & 0o170_000 == 0)
}

impl<S: DieSched, X: Payload, P: Probe> Function for UfsFunction<S, X, P> {
    fn region_bytes(&self, region: u32) -> u64 {
        match region {
            BAR_0 => BAR_BYTES.into(),
            CONFIG => CONFIG_BYTES as u64,
            _ => 0,
        }
    }

    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        match region {
            CONFIG => {
                let from = usize::try_from(offset).map_err(|_| Errno::Invalid)?;
                let end = from.checked_add(data.len()).ok_or(Errno::Invalid)?;
                data.copy_from_slice(self.space.get(from..end).ok_or(Errno::Invalid)?);
                self.attached.advance(self.now);
                if (from..end).contains(&STATUS) && self.attached.line() {
                    data[STATUS - from] |= INTERRUPT_STATUS;
                }
            }
            BAR_0 => {
                let range = Self::registers(offset, data.len())?;
                // What the device has done by now shows.
                self.attached.advance(self.now);
                for at in (range.start & !3..range.end).step_by(4) {
                    let value = self.attached.read(at).to_le_bytes();
                    for (i, byte) in (at..at + 4).zip(value) {
                        if range.contains(&i) {
                            data[(i - range.start) as usize] = byte;
                        }
                    }
                }
            }
            _ => return Err(Errno::Invalid),
        }
        Ok(())
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        match region {
            CONFIG => {
                let from = usize::try_from(offset).map_err(|_| Errno::Invalid)?;
                let end = from.checked_add(data.len()).filter(|end| *end <= CONFIG_BYTES).ok_or(Errno::Invalid)?;
                for (at, masks) in WRITABLE {
                    for (i, mask) in (at..).zip(masks).filter(|(i, _)| (from..end).contains(i)) {
                        self.space[i] = self.space[i] & !mask | data[i - from] & mask;
                    }
                }
                let is_master = self.command() & BUS_MASTER != 0;
                self.attached.memory.set_master(is_master);
            }
            BAR_0 => {
                let range = Self::registers(offset, data.len())?;
                // Registers are written as a whole.
                if !range.start.is_multiple_of(4) || !data.len().is_multiple_of(4) {
                    return Err(Errno::Invalid);
                }
                for (at, value) in range.step_by(4).zip(data.as_chunks::<4>().0) {
                    self.attached.write(self.now, at, u32::from_le_bytes(*value));
                }
            }
            _ => return Err(Errno::Invalid),
        }
        Ok(())
    }

    fn map(&mut self, mapping: Mapping) -> Result<(), Errno> {
        self.attached.memory.map(mapping)
    }

    fn unmap(&mut self, range: Option<(u64, u64)>) -> Result<(), Errno> {
        self.attached.memory.unmap(range)
    }

    fn irqs(&mut self, irqs: Irqs) -> Result<(), Errno> {
        // Neither a counter that is full nor one that is empty may keep the server waiting.
        if let Irqs::Trigger(Some(file)) | Irqs::UnmaskBy(Some(file)) = &irqs {
            if !is_eventfd(file) {
                return Err(Errno::Invalid);
            }
            fcntl_setfl(file, OFlags::NONBLOCK).map_err(|_| Errno::Invalid)?;
        }
        match irqs {
            Irqs::Trigger(trigger) => {
                self.is_masked &= trigger.is_some();
                self.trigger = trigger;
            }
            Irqs::Fire => self.trigger.iter().for_each(fire),
            Irqs::Mask => self.is_masked = true,
            Irqs::Unmask => self.is_masked = false,
            Irqs::UnmaskBy(unmask) => (self.unmask, self.has_new_unmask) = (unmask, true),
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.attached.reset(self.now);
        self.space = configuration(self.id);
        self.attached.memory.set_master(false);
    }
}
