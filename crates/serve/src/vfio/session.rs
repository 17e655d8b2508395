// SPDX-License-Identifier: MIT OR Apache-2.0
//! One client's messages and their replies. It owns no socket: whole messages come in, with their file descriptors, and
//! replies go out. It does not know what the function does.

use std::os::fd::OwnedFd;

pub(crate) const HEADER_BYTES: usize = 16;
/// Most bytes that one message reads or writes.
const MOST_DATA: u32 = 1 << 20;
pub(crate) const MOST_MESSAGE: usize = HEADER_BYTES + 64 + MOST_DATA as usize;
/// Writes of one message. They are done without a break.
const MOST_WRITES: u64 = 256;
/// File descriptors that may come with one message.
pub(crate) const MOST_FDS: usize = 8;

mod command {
    pub(super) const VERSION: u16 = 1;
    pub(super) const DMA_MAP: u16 = 2;
    pub(super) const DMA_UNMAP: u16 = 3;
    pub(super) const DEVICE_GET_INFO: u16 = 4;
    pub(super) const DEVICE_GET_REGION_INFO: u16 = 5;
    pub(super) const DEVICE_GET_IRQ_INFO: u16 = 7;
    pub(super) const DEVICE_SET_IRQS: u16 = 8;
    pub(super) const REGION_READ: u16 = 9;
    pub(super) const REGION_WRITE: u16 = 10;
    pub(super) const DEVICE_RESET: u16 = 13;
    pub(super) const REGION_WRITE_MULTI: u16 = 15;
}

/// Header flags: the type of a message in bits 3:0, the rest alone.
mod flag {
    pub(super) const TYPE: u32 = 0xF;
    pub(super) const REPLY: u32 = 1;
    pub(super) const NO_REPLY: u32 = 1 << 4;
    pub(super) const ERROR: u32 = 1 << 5;
}

/// Why a message was refused, as an error number of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Errno {
    /// EIO.
    Io = 5,
    /// EEXIST.
    Exists = 17,
    /// EINVAL.
    Invalid = 22,
    /// ENOSPC.
    NoSpace = 28,
    /// ENOENT.
    NoEntry = 2,
    /// EOPNOTSUPP.
    NotSupported = 95,
}

/// A piece of memory that the function may reach.
#[derive(Debug)]
pub struct Mapping {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The file that it is, and where it begins there; none if it can only be asked for by messages.
    pub file: Option<(OwnedFd, u64)>,
    /// Whether it may be read.
    pub read: bool,
    /// Whether it may be written.
    pub write: bool,
}

/// An operation on interrupts of one kind.
#[derive(Debug)]
pub enum Irqs {
    /// They are raised by this eventfd, or by nothing.
    Trigger(Option<OwnedFd>),
    /// Raises an interrupt now.
    Fire,
    /// They are masked.
    Mask,
    /// They are unmasked.
    Unmask,
    /// They are unmasked whenever this eventfd is written.
    UnmaskBy(Option<OwnedFd>),
}

/// A PCI function behind a session. Region 7 is its configuration space, region 0 its BAR 0; others are empty.
pub trait Function {
    /// Bytes of a region, 0 if there is none.
    fn region_bytes(&self, region: u32) -> u64;

    /// Reads from a region.
    ///
    /// # Errors
    /// It is not there, or cannot be read so.
    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno>;

    /// Writes to a region.
    ///
    /// # Errors
    /// As [`Function::read`].
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Errno>;

    /// Memory may be reached from now on.
    ///
    /// # Errors
    /// It overlaps other memory, or there is too much.
    fn map(&mut self, mapping: Mapping) -> Result<(), Errno>;

    /// Memory may not be reached any more: one mapping, or with `None` all.
    ///
    /// # Errors
    /// There is no such mapping.
    fn unmap(&mut self, range: Option<(u64, u64)>) -> Result<(), Errno>;

    /// Interrupts by INTx.
    ///
    /// # Errors
    /// That is not possible.
    fn irqs(&mut self, irqs: Irqs) -> Result<(), Errno>;

    /// The function is reset.
    fn reset(&mut self);
}

/// Regions and kinds of interrupts as VFIO numbers them for PCI (`VFIO_PCI_NUM_REGIONS`, `VFIO_PCI_NUM_IRQS`).
const REGIONS: u32 = 9;
const IRQ_KINDS: u32 = 5;
const INTX: u32 = 0;

/// The connection cannot go on, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken(pub &'static str);

/// A session with one client.
#[derive(Default)]
pub struct Session {
    is_agreed: bool,
}

/// A message that is read field by field.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Errno> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(Errno::Invalid)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, Errno> {
        Ok(u16::from_le_bytes(self.take(2)?.try_into().expect("two bytes")))
    }

    fn u32(&mut self) -> Result<u32, Errno> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    fn u64(&mut self) -> Result<u64, Errno> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }
}

/// How long the message is that begins with this header.
///
/// # Errors
/// It cannot be so long.
pub(crate) fn message_bytes(header: &[u8; HEADER_BYTES]) -> Result<usize, Broken> {
    let bytes = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
    match bytes {
        HEADER_BYTES..=MOST_MESSAGE => Ok(bytes),
        _ => Err(Broken("a message has an impossible length")),
    }
}

impl Session {
    /// Handles a whole message and the files that came with it; the reply, if there is to be one, is appended to `out`.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub fn handle(
        &mut self,
        message: &[u8],
        files: Vec<OwnedFd>,
        function: &mut impl Function,
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let mut header = Fields(message);
        let short = |_| Broken("a message is shorter than its header");
        let id = header.u16().map_err(short)?;
        let command = header.u16().map_err(short)?;
        let _bytes = header.u32().map_err(short)?;
        let flags = header.u32().map_err(short)?;
        let _error = header.u32().map_err(short)?;
        if flags & flag::TYPE != 0 {
            return Err(Broken("a reply came, and nothing was asked"));
        }
        if (command == command::VERSION) == self.is_agreed {
            return Err(Broken(match self.is_agreed {
                true => "the version was to be agreed on twice",
                false => "the first message is not about the version",
            }));
        }
        let at = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        let done = self.answer(command, header.0, files, function, out);
        if done.is_err() {
            out.truncate(at + HEADER_BYTES);
        }
        if command == command::VERSION && done.is_err() {
            return Err(Broken("the client speaks another version of vfio-user"));
        }
        if flags & flag::NO_REPLY != 0 {
            out.truncate(at);
            return Ok(());
        }
        let bytes = (out.len() - at) as u32;
        let failed = done.map_or_else(|errno| errno as u32, |()| 0);
        let reply = &mut out[at..at + HEADER_BYTES];
        reply[0..2].copy_from_slice(&id.to_le_bytes());
        reply[2..4].copy_from_slice(&command.to_le_bytes());
        reply[4..8].copy_from_slice(&bytes.to_le_bytes());
        reply[8..12].copy_from_slice(&(flag::REPLY | if failed == 0 { 0 } else { flag::ERROR }).to_le_bytes());
        reply[12..16].copy_from_slice(&failed.to_le_bytes());
        Ok(())
    }

    fn answer(
        &mut self,
        command: u16,
        payload: &[u8],
        files: Vec<OwnedFd>,
        function: &mut impl Function,
        out: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        let mut fields = Fields(payload);
        match command {
            command::VERSION => self.agree(&mut fields, out),
            command::DMA_MAP => {
                let (_size, flags) = (fields.u32()?, fields.u32()?);
                let (offset, address, bytes) = (fields.u64()?, fields.u64()?, fields.u64()?);
                let (read, write) = (flags & 1 != 0, flags & 2 != 0);
                if bytes == 0 || address.checked_add(bytes - 1).is_none() || offset.checked_add(bytes).is_none() {
                    return Err(Errno::Invalid);
                }
                let file = files.into_iter().next().map(|file| (file, offset));
                function.map(Mapping { address, bytes, file, read, write })
            }
            command::DMA_UNMAP => {
                let (_size, flags) = (fields.u32()?, fields.u32()?);
                let (address, bytes) = (fields.u64()?, fields.u64()?);
                match flags {
                    0 => function.unmap(Some((address, bytes)))?,
                    // VFIO_DMA_UNMAP_FLAG_ALL.
                    2 => function.unmap(None)?,
                    _ => return Err(Errno::NotSupported),
                }
                out.extend_from_slice(&payload[..24]);
                Ok(())
            }
            command::DEVICE_GET_INFO => {
                // Can be reset, and is a PCI function.
                put(out, &[16, 1 | 2, REGIONS, IRQ_KINDS]);
                Ok(())
            }
            command::DEVICE_GET_REGION_INFO => {
                let (_size, _flags, region) = (fields.u32()?, fields.u32()?, fields.u32()?);
                if region >= REGIONS {
                    return Err(Errno::Invalid);
                }
                let bytes = function.region_bytes(region);
                // Can be read and written.
                put(out, &[32, if bytes > 0 { 3 } else { 0 }, region, 0]);
                out.extend_from_slice(&bytes.to_le_bytes());
                out.extend_from_slice(&[0; 8]);
                Ok(())
            }
            command::DEVICE_GET_IRQ_INFO => {
                let (_size, _flags, kind) = (fields.u32()?, fields.u32()?, fields.u32()?);
                if kind >= IRQ_KINDS {
                    return Err(Errno::Invalid);
                }
                // By eventfd, can be masked, and masks itself.
                let (flags, count) = if kind == INTX { (1 | 2 | 4, 1) } else { (1, 0) };
                put(out, &[16, flags, kind, count]);
                Ok(())
            }
            command::DEVICE_SET_IRQS => set_irqs(&mut fields, files, function),
            command::REGION_READ => {
                let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
                if count > MOST_DATA {
                    return Err(Errno::Invalid);
                }
                out.extend_from_slice(&payload[..16]);
                let from = out.len();
                out.resize(from + count as usize, 0);
                function.read(region, offset, &mut out[from..])
            }
            command::REGION_WRITE => {
                let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
                function.write(region, offset, fields.take(count as usize)?)?;
                out.extend_from_slice(&payload[..16]);
                Ok(())
            }
            command::REGION_WRITE_MULTI => {
                let count = fields.u64()?;
                if count > MOST_WRITES {
                    return Err(Errno::Invalid);
                }
                for _ in 0..count {
                    let (offset, region, count) = (fields.u64()?, fields.u32()?, fields.u32()?);
                    let data = fields.take(8)?;
                    function.write(region, offset, data.get(..count as usize).ok_or(Errno::Invalid)?)?;
                }
                out.extend_from_slice(&count.to_le_bytes());
                Ok(())
            }
            command::DEVICE_RESET => {
                function.reset();
                Ok(())
            }
            _ => Err(Errno::NotSupported),
        }
    }

    /// VERSION: every client whose major number is 0 can speak 0.0.
    fn agree(&mut self, fields: &mut Fields, out: &mut Vec<u8>) -> Result<(), Errno> {
        let (major, _minor) = (fields.u16()?, fields.u16()?);
        if major != 0 {
            return Err(Errno::NotSupported);
        }
        self.is_agreed = true;
        out.extend_from_slice(&[0; 4]);
        let text = format!(
            r#"{{"capabilities":{{"max_msg_fds":{MOST_FDS},"max_data_xfer_size":{MOST_DATA},"write_multiple":true}}}}"#
        );
        out.extend_from_slice(text.as_bytes());
        out.push(0);
        Ok(())
    }
}

fn set_irqs(fields: &mut Fields, files: Vec<OwnedFd>, function: &mut impl Function) -> Result<(), Errno> {
    const DATA: u32 = 7;
    const NONE: u32 = 1;
    const BOOL: u32 = 2;
    const EVENTFD: u32 = 4;
    const MASK: u32 = 8;
    const UNMASK: u32 = 16;
    const TRIGGER: u32 = 32;
    let (_size, flags, kind, start, count) =
        (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
    let data = flags & DATA;
    // There is one interrupt; of other kinds there is nothing to switch off.
    match (kind, count) {
        (INTX, 0 | 1) => {}
        (1..IRQ_KINDS, 0) => return Ok(()),
        _ => return Err(Errno::Invalid),
    }
    if start != 0 {
        return Err(Errno::Invalid);
    }
    let file = files.into_iter().next();
    match (data, flags & !DATA, count) {
        (NONE, TRIGGER, 0) => function.irqs(Irqs::Trigger(None)),
        (_, _, 0) => Err(Errno::Invalid),
        (NONE, MASK, _) => function.irqs(Irqs::Mask),
        (NONE, UNMASK, _) => function.irqs(Irqs::Unmask),
        (NONE, TRIGGER, _) => function.irqs(Irqs::Fire),
        (BOOL, action @ (MASK | UNMASK | TRIGGER), _) => match (fields.take(1)?[0], action) {
            (0, _) => Ok(()),
            (_, MASK) => function.irqs(Irqs::Mask),
            (_, UNMASK) => function.irqs(Irqs::Unmask),
            (_, _) => function.irqs(Irqs::Fire),
        },
        (EVENTFD, TRIGGER, _) => function.irqs(Irqs::Trigger(file)),
        (EVENTFD, UNMASK, _) => function.irqs(Irqs::UnmaskBy(file)),
        _ => Err(Errno::NotSupported),
    }
}

fn put(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}
