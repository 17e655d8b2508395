// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images as a whole: made from an idle device, opened, and examined. The device file in an image is not interpreted.

use crate::array::{Boot, Damage, FlashFile};
use crate::disk::{Disk, FileDisk};
use crate::error::ImageError;
use crate::layout::{Format, FormatError, MOST_TEXT, Shape};
use readpath_device::{MediaMode, Probe, Sealed, Spare, UfsDevice};
use readpath_flash::{DieSched, Ppn};
use readpath_kit::BLOCK_BYTES;
use std::io::{self, ErrorKind};
use std::path::Path;

/// An image: the array, and the device file that it was made from.
#[derive(Debug)]
pub struct Image<D> {
    /// The array.
    pub array: FlashFile<D>,
    /// The device file.
    pub text: String,
}

/// Result of an examination of an image.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Check {
    /// Counts of slices.
    pub damage: Damage,
    /// Descriptions of the first faults.
    pub faults: Vec<String>,
}

impl Check {
    /// The most faults that are described.
    const MOST: usize = 20;

    fn add(&mut self, fault: String) {
        if self.faults.len() < Check::MOST {
            self.faults.push(fault);
        }
    }
}

impl Image<FileDisk> {
    /// Makes the file `path`, which must not exist, from the idle `device`. All data reads as zeros.
    ///
    /// # Errors
    /// The file cannot be made or written, or the device is busy. Then no file is left.
    pub fn create<S: DieSched, M: MediaMode, P: Probe>(
        path: &Path,
        text: &str,
        seed: u64,
        device: &mut UfsDevice<S, M, P>,
    ) -> Result<(), ImageError> {
        let made = Image::create_on(text, seed, device, |bytes| FileDisk::create(path, bytes));
        if let Err(error) = &made
            && !matches!(error, ImageError::Io(e) if e.kind() == ErrorKind::AlreadyExists)
        {
            std::fs::remove_file(path).ok();
        }
        made.map(drop)
    }

    /// Opens an image, writable or read-only. With `syncs`, flushed data survives a crash of the machine; without, of
    /// the process.
    ///
    /// # Errors
    /// It cannot be opened, is in use, or is not an image.
    pub fn open(path: &Path, writable: bool, syncs: bool) -> Result<Self, ImageError> {
        Image::open_as(path, writable, syncs, |disk| disk)
    }
}

impl<D: Disk> Image<D> {
    /// [`Image::open`] on the disk that `make` makes of the file.
    ///
    /// # Errors
    /// As [`Image::open`].
    pub fn open_as(
        path: &Path,
        writable: bool,
        syncs: bool,
        make: impl FnOnce(FileDisk) -> D,
    ) -> Result<Self, ImageError> {
        let disk = FileDisk::open(path, writable).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ImageError::InUse,
            _ => ImageError::Io(error),
        })?;
        let bytes = disk.sizes()?.0;
        Image::on(make(disk), bytes, syncs, this_boot())
    }

    /// Makes an image on the disk that `make` returns for a number of bytes.
    ///
    /// # Errors
    /// As [`Image::create`].
    pub fn create_on<S: DieSched, M: MediaMode, P: Probe>(
        text: &str,
        seed: u64,
        device: &mut UfsDevice<S, M, P>,
        make: impl FnOnce(u64) -> io::Result<D>,
    ) -> Result<Self, ImageError> {
        let shape = Shape::of(device.config());
        if text.len() > MOST_TEXT as usize {
            return Err(ImageError::Contents(format!("its device file has more than {MOST_TEXT} bytes")));
        }
        // The size of the state is known only after sealing, and everything else lies behind it; so the device is
        // sealed twice.
        let factory = device.seal(|_| {}).map_err(ImageError::Busy)?;
        let (text_bytes, factory_bytes) = (text.len() as u32, factory.len() as u32);
        let version = Format::version_of(device.config());
        let format = Format { version, shape, text_bytes, factory_bytes, seed, serial: device.serial() };
        let mut array = FlashFile::new(make(format.bytes())?, format, true, Boot::default())?;
        let mut sealer = Sealer { array: &mut array, superblock: 0, spares: Vec::new() };
        device.seal(|sealed| sealer.take(sealed)).map_err(ImageError::Busy)?;
        sealer.end_superblock();
        array.put_part(Format::TEXT, text.as_bytes());
        array.put_part(format.factory(), &factory);
        array.put_format();
        array.seal().map_err(ImageError::Contents)?;
        Ok(Image { array, text: text.to_owned() })
    }

    /// Opens the image on a disk of `bytes` bytes, at this start of the machine.
    ///
    /// # Errors
    /// It is not an image.
    pub fn on(disk: D, bytes: u64, syncs: bool, boot: Boot) -> Result<Self, ImageError> {
        let mut page = [0; BLOCK_BYTES as usize];
        match disk.read_at(&mut page, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(FormatError::NoImage.into()),
            read => read?,
        }
        let format = Format::from_bytes(&page)?;
        if bytes < format.bytes() {
            return Err(ImageError::CutOff { bytes, expected: format.bytes() });
        }
        let array = FlashFile::new(disk, format, syncs, boot)?;
        let text = array.part(Format::TEXT, format.text_bytes, "the device file").map_err(ImageError::Contents)?;
        let text = String::from_utf8(text);
        let text = text.map_err(|_| ImageError::Contents("the device file in it is not text".to_owned()))?;
        Ok(Image { array, text })
    }

    /// Reads all programmed and kept parts, and lists the damaged ones. `progress` gets the number of examined
    /// superblocks.
    pub fn examine(&mut self, mut progress: impl FnMut(u32)) -> Check {
        let mut check = Check::default();
        for superblock in 0..self.array.format().shape.superblocks {
            let mut faults = Vec::new();
            let examined = self.array.examine(superblock, &mut check.damage, |fault| faults.push(fault.to_string()));
            let record = readpath_device::FlashArray::block_record(&mut self.array, superblock);
            faults.into_iter().chain(examined.err()).chain(record.err()).for_each(|fault| check.add(fault));
            progress(superblock + 1);
        }
        readpath_device::FlashArray::settings(&mut self.array).err().into_iter().for_each(|fault| check.add(fault));
        self.array.examine_rpmb(|fault| check.add(fault));
        check
    }
}

/// Identifier of this start of the machine, if known: random(4).
fn this_boot() -> Boot {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> = text.bytes().filter_map(|c| (c as char).to_digit(16).map(|digit| digit as u8)).collect();
    let mut boot = Boot::default();
    for (byte, pair) in boot.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    boot
}

/// Writes the state of a sealed device into an array, the spare areas of a superblock at once.
struct Sealer<'a, D> {
    array: &'a mut FlashFile<D>,
    superblock: u32,
    spares: Vec<Option<Spare>>,
}

impl<D: Disk> Sealer<'_, D> {
    fn take(&mut self, sealed: Sealed) {
        match sealed {
            Sealed::Data(Ppn(slice), spare) => {
                let slices = self.array.format().shape.superblock_slices;
                if slice / slices != self.superblock {
                    self.end_superblock();
                    self.superblock = slice / slices;
                }
                self.spares.resize(slices as usize, None);
                self.spares[(slice % slices) as usize] = Some(spare);
            }
            Sealed::Own(slice) => {
                self.end_superblock();
                self.array.seal_own(slice);
            }
            Sealed::Block(superblock, record) => self.array.put_record(superblock, record),
        }
    }

    fn end_superblock(&mut self) {
        if !self.spares.is_empty() {
            let first = Ppn(self.superblock * self.array.format().shape.superblock_slices);
            self.array.seal_heads(first, &self.spares);
            self.spares.clear();
        }
    }
}
