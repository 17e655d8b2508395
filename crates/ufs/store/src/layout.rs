// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout of an image, and its first page. `docs/formats/image.md` draws it.

use readpath_device::{BLOCK_RECORD_BYTES, DeviceConfig, SETTINGS_BYTES, SPARE_REST_BYTES};
use readpath_kit::BLOCK_BYTES;
use readpath_proto::rpmb;
use std::ops::Range;
use thiserror::Error;

/// The newest version of the layout. Older ones can be read as well.
pub const VERSION: u32 = 3;

const MAGIC: [u8; 16] = *b"readpath-image\r\n";
const PAGE: u64 = BLOCK_BYTES as u64;
/// Bytes of the head of a slice's spare area in the file.
pub const HEAD_BYTES: usize = 24;
/// Bytes of a superblock's record with its check. No record lies in two sectors, and disks write a sector completely
/// or not.
pub(crate) const RECORD_BYTES: usize = 128;
const _: () = assert!(BLOCK_RECORD_BYTES + 8 <= RECORD_BYTES);
const _: () = assert!(SETTINGS_BYTES + 4 <= 512);
/// The most bytes of the state in which an image was made: there are at most 8 for each slice of an array.
const MOST_FACTORY: u32 = 1 << 30;
/// The most bytes of a device file.
pub(crate) const MOST_TEXT: u32 = 1 << 20;

/// Sizes of the array that an image holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Superblocks.
    pub superblocks: u32,
    /// Slices of 4 KiB of a superblock.
    pub superblock_slices: u32,
    /// Slices that are programmed together.
    pub unit_slices: u32,
}

impl Shape {
    /// The sizes of a device.
    pub fn of(config: &DeviceConfig) -> Shape {
        let g = &config.geometry;
        Shape {
            superblocks: g.superblocks(),
            superblock_slices: g.slices_per_superblock(),
            unit_slices: g.slices_per_unit(),
        }
    }

    /// Slices of the array.
    pub fn slices(&self) -> u64 {
        u64::from(self.superblocks) * u64::from(self.superblock_slices)
    }

    fn is_possible(&self) -> bool {
        self.unit_slices > 0
            && self.superblock_slices > 0
            && self.superblock_slices.is_multiple_of(self.unit_slices)
            && self.slices() < 1 << 31
    }
}

/// Contents of the first page of an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// The version that made it.
    pub version: u32,
    /// The array.
    pub shape: Shape,
    /// Bytes of the device file.
    pub text_bytes: u32,
    /// Bytes of the state in which the image was made.
    pub factory_bytes: u32,
    /// The seed given when it was made.
    pub seed: u64,
    /// Serial number of the device.
    pub serial: u64,
}

/// Why a first page is invalid.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum FormatError {
    /// The magic number is missing.
    #[error("it does not begin with 'readpath-image': it is no image of a device")]
    NoImage,
    /// A newer program made it.
    #[error(
        "it has format {0}, and this Readpath ({program}) reads formats 1 to {VERSION}: use the newer one that made \
         it, or copy its data with that to a new image. It was not changed",
        program = env!("CARGO_PKG_VERSION")
    )]
    Newer(u32),
    /// The check does not match.
    #[error("its first page (bytes 0 to 4095) is damaged")]
    Damaged,
}

impl Format {
    /// The bytes of the first page.
    pub(crate) fn to_bytes(self) -> [u8; PAGE as usize] {
        let mut bytes = [0; PAGE as usize];
        bytes[..16].copy_from_slice(&MAGIC);
        let Shape { superblocks, superblock_slices, unit_slices } = self.shape;
        let numbers = [self.version, superblocks, superblock_slices, unit_slices, self.text_bytes, self.factory_bytes];
        for (at, number) in bytes[16..].chunks_exact_mut(4).zip(numbers) {
            at.copy_from_slice(&number.to_le_bytes());
        }
        bytes[40..48].copy_from_slice(&self.seed.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.serial.to_le_bytes());
        let check = crc32fast::hash(&bytes[..PAGE as usize - 4]);
        bytes[PAGE as usize - 4..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Parses a first page.
    ///
    /// # Errors
    /// It is not one, or not one of this version.
    pub(crate) fn from_bytes(bytes: &[u8; PAGE as usize]) -> Result<Format, FormatError> {
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        if bytes[..16] != MAGIC {
            return Err(FormatError::NoImage);
        }
        // All versions have the check here, so a flipped bit is not taken for another version.
        let is_whole = crc32fast::hash(&bytes[..PAGE as usize - 4]) == number(PAGE as usize - 4);
        let version = number(16);
        if is_whole && version > VERSION {
            return Err(FormatError::Newer(version));
        }
        let format = Format {
            version,
            shape: Shape { superblocks: number(20), superblock_slices: number(24), unit_slices: number(28) },
            text_bytes: number(32),
            factory_bytes: number(36),
            seed: long(40),
            // Older images have 0 here, and the number of a device to which nobody gave one.
            serial: long(48).max(1),
        };
        let is_possible = version > 0 && format.shape.is_possible() && format.factory_bytes <= MOST_FACTORY;
        match is_whole && is_possible && format.text_bytes <= MOST_TEXT {
            true => Ok(format),
            false => Err(FormatError::Damaged),
        }
    }

    /// Offset of the two kept records, each in a sector of its own.
    pub(crate) fn kept(copy: u64) -> u64 {
        PAGE + copy * 512
    }

    /// Offset of the non-volatile attributes and flags, in a sector of their own. Older images have zeros here.
    pub(crate) const SETTINGS: u64 = PAGE + 2 * 512;

    /// Offset of the device file.
    pub(crate) const TEXT: u64 = 2 * PAGE;

    /// Offset of the state in which the image was made.
    pub(crate) fn factory(&self) -> u64 {
        Format::TEXT + to_page(u64::from(self.text_bytes) + 4)
    }

    /// Offset of the record of a superblock.
    pub(crate) fn record(&self, superblock: u32) -> u64 {
        self.factory() + to_page(u64::from(self.factory_bytes) + 4) + u64::from(superblock) * RECORD_BYTES as u64
    }

    /// Offset of the head of a slice's spare area.
    pub(crate) fn head(&self, slice: u32) -> u64 {
        to_page(self.record(self.shape.superblocks)) + u64::from(slice) * HEAD_BYTES as u64
    }

    /// The slices whose heads a write of so many bytes at `offset` touches; none if they are something else.
    pub fn heads(&self, offset: u64, bytes: u64) -> Option<Range<u32>> {
        let at = |offset: u64| Some(offset.checked_sub(self.head(0))? / HEAD_BYTES as u64);
        let (first, end) = (at(offset)?, at(offset + bytes)?);
        (end <= self.shape.slices()).then_some(first as u32..end as u32)
    }

    /// Offset of the rest of a slice's spare area.
    pub(crate) fn rest(&self, slice: u32) -> u64 {
        to_page(self.head(self.shape.slices() as u32)) + u64::from(slice) * SPARE_REST_BYTES as u64
    }

    /// Offset of the data of a slice.
    pub fn data(&self, slice: u32) -> u64 {
        to_page(self.rest(self.shape.slices() as u32)) + u64::from(slice) * PAGE
    }

    /// The first version whose images have a part for RPMB. Older images get it with the first change.
    pub(crate) const WITH_RPMB: u32 = 2;

    /// The first version in which zones always lie in superblocks of their own. Some images of the one before have them
    /// in the page map.
    pub const WITH_PLACED_ZONES: u32 = 3;

    /// The version of a new image: the oldest that says all of it, since older programs read that.
    pub(crate) fn version_of(config: &DeviceConfig) -> u32 {
        if config.has_zones() { Format::WITH_PLACED_ZONES } else { Format::WITH_RPMB }
    }

    /// The part of RPMB.
    pub(crate) fn rpmb(&self) -> Rpmb {
        Rpmb(self.data(self.shape.slices() as u32))
    }

    /// Bytes of the whole image.
    pub fn bytes(&self) -> u64 {
        let rpmb = self.rpmb();
        if self.version < Format::WITH_RPMB { rpmb.0 } else { rpmb.end() }
    }
}

/// The part of RPMB, from this offset on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rpmb(u64);

impl Rpmb {
    /// Bytes reserved for a record: its head, and the most blocks of a change.
    pub(crate) const RECORD_BYTES: u64 = 5 * PAGE;
    const CHECKS: u64 = PAGE + 2 * Rpmb::RECORD_BYTES;
    const BLOCKS: u64 = Rpmb::CHECKS + rpmb::BLOCKS as u64 * 4;

    /// Offset of the mark, in a sector of its own.
    pub(crate) fn mark(self) -> u64 {
        self.0
    }

    /// Offset of the record of a change.
    pub(crate) fn record(self, number: u64) -> u64 {
        self.0 + PAGE + number % 2 * Rpmb::RECORD_BYTES
    }

    /// Offset of the checks of blocks.
    pub(crate) fn checks(self, block: u32) -> u64 {
        self.0 + Rpmb::CHECKS + u64::from(block) * 4
    }

    /// Offset of blocks.
    pub(crate) fn block(self, block: u32) -> u64 {
        self.0 + Rpmb::BLOCKS + u64::from(block) * rpmb::BLOCK_BYTES as u64
    }

    pub(crate) fn end(self) -> u64 {
        self.block(rpmb::BLOCKS)
    }
}

fn to_page(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format {
        version: VERSION,
        shape: Shape { superblocks: 9, superblock_slices: 64, unit_slices: 4 },
        text_bytes: 5000,
        factory_bytes: 12,
        seed: 0x1234_5678_9abc_def0,
        serial: 0x0fed_cba9_8765_4321,
    };

    #[test]
    fn the_first_page_comes_back_and_tells_damage() {
        let bytes = FORMAT.to_bytes();
        assert_eq!(Format::from_bytes(&bytes), Ok(FORMAT));
        for at in [0, 15] {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(Format::from_bytes(&other), Err(FormatError::NoImage));
        }
        for version in 0..VERSION + 2 {
            let other = Format { version, ..FORMAT };
            let expected = match version {
                0 => Err(FormatError::Damaged),
                1..=VERSION => Ok(other),
                _ => Err(FormatError::Newer(version)),
            };
            assert_eq!(Format::from_bytes(&other.to_bytes()), expected);
        }
        let of_old = Format { serial: 0, ..FORMAT };
        assert_eq!(Format::from_bytes(&of_old.to_bytes()), Ok(Format { serial: 1, ..FORMAT }));
        for at in [16, 20, 40, 48, 100, 4095] {
            let mut other = bytes;
            other[at] ^= 0x10;
            assert_eq!(Format::from_bytes(&other), Err(FormatError::Damaged));
        }
    }

    #[test]
    fn parts_lie_one_behind_the_other() {
        assert_eq!((Format::kept(0), Format::kept(1)), (4096, 4608));
        assert_eq!((Format::SETTINGS, Format::TEXT), (5120, 8192));
        assert_eq!(FORMAT.factory(), 8192 + 8192);
        assert_eq!(FORMAT.record(0), FORMAT.factory() + 4096);
        assert_eq!(FORMAT.head(0), FORMAT.record(0) + 4096);
        assert_eq!(FORMAT.rest(0), FORMAT.head(0) + 16384, "576 of 24 bytes");
        assert_eq!(FORMAT.data(0), FORMAT.rest(0) + 576 * 128);
        let rpmb = FORMAT.rpmb();
        assert_eq!(rpmb.mark(), FORMAT.data(0) + 576 * 4096);
        assert_eq!((rpmb.record(2), rpmb.record(3)), (rpmb.mark() + 4096, rpmb.mark() + 24_576));
        assert_eq!((rpmb.checks(0), rpmb.block(0)), (rpmb.mark() + 45_056, rpmb.mark() + 110_592));
        assert_eq!(FORMAT.bytes(), rpmb.block(0) + (4 << 20));
        assert_eq!(Format { version: 1, ..FORMAT }.bytes(), rpmb.mark());
    }
}
