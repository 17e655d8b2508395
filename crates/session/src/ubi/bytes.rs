// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of an image: of a file, unpacked, and without spare areas. Knows nothing of UBI.

use readpath_ubi::mtd::ReadAt;
use readpath_workload::trace::decompress;
use rustix::fs::Advice;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes that are unpacked, since they are held in memory.
const MOST: u64 = 1 << 30;
/// First bytes of compressed files: gzip, xz, zstd.
const PACKED: [&[u8]; 3] = [&[0x1F, 0x8B], &[0xFD, b'7', b'z', b'X', b'Z', 0], &[0x28, 0xB5, 0x2F, 0xFD]];

#[derive(Clone, Debug)]
enum Held {
    File(Arc<File>),
    Unpacked(Arc<Vec<u8>>),
}

/// Pages and the spare area behind each, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare {
    pub page: u32,
    /// Bytes of its spare area.
    pub oob: u32,
}

/// The bytes of an image.
#[derive(Clone, Debug)]
pub struct ImageBytes {
    held: Held,
    spare: Option<Spare>,
}

impl ImageBytes {
    /// Opens an image. A packed one is unpacked into memory, and kept for the next call with the same path.
    pub fn open(path: &Path) -> io::Result<ImageBytes> {
        static LAST: Mutex<Option<(PathBuf, Arc<Vec<u8>>)>> = Mutex::new(None);
        let file = File::open(path)?;
        let mut first = [0; 6];
        let is_packed =
            file.read_exact_at(0, &mut first).is_ok() && PACKED.iter().any(|magic| first.starts_with(magic));
        if !is_packed {
            return Ok(ImageBytes { held: Held::File(Arc::new(file)), spare: None });
        }
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = match &*last {
            Some((known, bytes)) if known == path => Arc::clone(bytes),
            _ => {
                let mut bytes = Vec::new();
                let damaged = |e: io::Error| io::Error::other(format!("its packed content is damaged: {e}"));
                let mut unpacked = decompress(Box::new(file)).map_err(damaged)?.0.take(MOST + 1);
                unpacked.read_to_end(&mut bytes).map_err(damaged)?;
                if bytes.len() as u64 > MOST {
                    let what =
                        format!("it unpacks to more than {MOST} bytes, which are not held in memory; unpack it first");
                    return Err(io::Error::other(what));
                }
                let bytes = Arc::new(bytes);
                *last = Some((path.to_owned(), Arc::clone(&bytes)));
                bytes
            }
        };
        Ok(ImageBytes { held: Held::Unpacked(bytes), spare: None })
    }

    /// The image without spare areas; none if its length is not a multiple of such pages.
    pub fn without(&self, spare: Spare) -> Option<ImageBytes> {
        let bytes = self.held().bytes().ok()?;
        let whole = bytes > 0 && bytes.is_multiple_of(u64::from(spare.page + spare.oob));
        whole.then(|| ImageBytes { held: self.held.clone(), spare: Some(spare) })
    }

    /// Advises the kernel how the file will be read (posix_fadvise(2)); it holds for all handles of the open file.
    pub fn advise(&self, advice: Advice) {
        if let Held::File(file) = &self.held {
            let _ = rustix::fs::fadvise(file, 0, None, advice);
        }
    }

    fn held(&self) -> &dyn ReadAt {
        match &self.held {
            Held::File(file) => &**file,
            Held::Unpacked(bytes) => &**bytes,
        }
    }
}

impl ReadAt for ImageBytes {
    fn bytes(&self) -> io::Result<u64> {
        let bytes = self.held().bytes()?;
        Ok(match self.spare {
            Some(Spare { page, oob }) => bytes / u64::from(page + oob) * u64::from(page),
            None => bytes,
        })
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let Some(Spare { page, oob }) = self.spare else { return self.held().read_exact_at(offset, out) };
        let (mut at, mut rest) = (offset, out);
        while !rest.is_empty() {
            let (number, column) = (at / u64::from(page), at % u64::from(page));
            let (piece, next) = rest.split_at_mut(rest.len().min((u64::from(page) - column) as usize));
            self.held().read_exact_at(number * u64::from(page + oob) + column, piece)?;
            at += piece.len() as u64;
            rest = next;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_areas_are_passed_over() {
        let raw: Vec<u8> = (0..3u8).flat_map(|page| [vec![page; 512], vec![0xEE; 16]].concat()).collect();
        let raw = ImageBytes { held: Held::Unpacked(Arc::new(raw)), spare: None };
        assert!(raw.without(Spare { page: 512, oob: 64 }).is_none());
        let image = raw.without(Spare { page: 512, oob: 16 }).expect("pages of 512 + 16 bytes");
        assert_eq!(image.bytes().expect("its size"), 1536);
        let mut out = [0; 1000];
        image.read_exact_at(500, &mut out).expect("bytes across pages");
        assert_eq!((&out[..12], &out[12..524], &out[524..]), (&[0; 12][..], &[1; 512][..], &[2; 476][..]));
        assert!(image.read_exact_at(1000, &mut out).is_err());
    }
}
