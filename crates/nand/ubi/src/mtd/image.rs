// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw flash backed by an image, as `nanddump` without spare areas or `ubinize` produces it. It reads only what is
//! requested, and opens no file: the caller lends one.

use super::{Geometry, GeometryError, Mtd, MtdError, ReadOutcome, Why};
use std::io;

/// Bytes that can be read at any place: a file, or memory.
pub trait ReadAt {
    /// Number of bytes.
    fn bytes(&self) -> io::Result<u64>;

    /// Reads exactly `out.len()` bytes at `offset`.
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
}

#[cfg(unix)]
impl ReadAt for std::fs::File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, out, offset)
    }
}

impl ReadAt for [u8] {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).ok();
        let piece = start.and_then(|start| self.get(start..start.checked_add(out.len())?));
        out.copy_from_slice(piece.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl ReadAt for Vec<u8> {
    fn bytes(&self) -> io::Result<u64> {
        self.as_slice().bytes()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_exact_at(offset, out)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for &R {
    fn bytes(&self) -> io::Result<u64> {
        (**self).bytes()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        (**self).read_exact_at(offset, out)
    }
}

/// A read-only device backed by an image. Blocks beyond the end of the image are erased.
#[derive(Debug)]
pub struct Image<R> {
    source: R,
    geometry: Geometry,
    /// Number of blocks in the image.
    present: u32,
}

impl<R: ReadAt> Image<R> {
    /// `source` as a device of `geometry`, where `geometry.pebs` may exceed the blocks in the image: `ubinize` writes
    /// only the first blocks of a device. The image has to end at the end of a block and may not be larger than the
    /// device.
    pub fn new(source: R, geometry: Geometry) -> Result<Self, GeometryError> {
        geometry.check()?;
        let present = Self::pebs_of(&source, geometry.peb_bytes)?;
        if present > geometry.pebs {
            let right = "the image has more PEBs than that";
            return Err(GeometryError { key: "number of PEBs", value: geometry.pebs.into(), right });
        }
        Ok(Image { source, geometry, present })
    }

    /// Number of blocks of `peb_bytes` in the image.
    pub fn pebs_of(source: &R, peb_bytes: u32) -> Result<u32, GeometryError> {
        let wrong = |value, right| Err(GeometryError { key: "image size", value, right });
        let Ok(bytes) = source.bytes() else { return wrong(0, "the size of the image cannot be read") };
        if peb_bytes == 0 || bytes == 0 || bytes % u64::from(peb_bytes) != 0 {
            return wrong(bytes, "a whole number of PEBs is needed: it may be cut off, or the PEB size is another one");
        }
        match u32::try_from(bytes / u64::from(peb_bytes)) {
            Ok(pebs) if pebs <= super::geometry::MAX_PEBS => Ok(pebs),
            _ => wrong(bytes, "more than 1048576 PEBs are not supported"),
        }
    }

    /// Number of blocks in the image; the device may be larger.
    pub fn present_pebs(&self) -> u32 {
        self.present
    }
}

impl<R: ReadAt> Mtd for Image<R> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, peb: u32, offset: u32, out: &mut [u8], _why: Why) -> Result<ReadOutcome, MtdError> {
        self.geometry.check_range(peb, offset, out.len())?;
        if peb >= self.present {
            out.fill(0xFF);
            return Ok(ReadOutcome::Clean);
        }
        let at = u64::from(peb) * u64::from(self.geometry.peb_bytes) + u64::from(offset);
        match self.source.read_exact_at(at, out) {
            Ok(()) => Ok(ReadOutcome::Clean),
            Err(e) => Err(MtdError::Io { peb, offset, message: e.to_string() }),
        }
    }

    /// An image has no spare areas, so no marks of bad blocks.
    fn is_bad(&mut self, _peb: u32) -> bool {
        false
    }
}
