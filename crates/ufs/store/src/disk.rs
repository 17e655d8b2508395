// SPDX-License-Identifier: MIT OR Apache-2.0
//! Storage of an image's bytes: a file, or for tests memory that loses unsynced writes. It knows no layout.

use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom, fallocate, flock, seek};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes at offsets. Failed reads and writes are errors: nothing is mapped into memory.
pub trait Disk {
    /// Reads exactly `bytes.len()` bytes.
    ///
    /// # Errors
    /// Errors of the file system; reading beyond the end is one.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes.
    ///
    /// # Errors
    /// Errors of the file system, such as a lack of space.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes a range read as zeros, and frees its space if that is possible.
    ///
    /// # Errors
    /// Errors of the file system.
    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Returns when everything written survives a crash of the machine.
    ///
    /// # Errors
    /// Errors of the file system. Unsynced writes may then be lost.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file, locked against a second process. If it is read-only, writes stay in memory and are dropped with this: a
/// device always writes, at least that it was switched on.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    overlay: Option<Overlay>,
}

/// Pages that differ from those of a file.
#[derive(Debug, Default)]
struct Overlay {
    /// By number; `None` for zeros.
    pages: BTreeMap<u64, Option<Box<[u8; PAGE]>>>,
}

const PAGE: usize = 4096;

impl Overlay {
    /// The parts of a range, each within a page: number of the page, offset in it, and range of the bytes.
    fn parts(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, usize, Range<u64>)> {
        let end = offset + bytes;
        let mut at = offset;
        std::iter::from_fn(move || {
            let (page, place) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            let next = ((page + 1) * PAGE as u64).min(end);
            let part = (page, place, at - offset..next - offset);
            (std::mem::replace(&mut at, next) < end).then_some(part)
        })
    }

    fn read(&self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        read_file(file, bytes, offset)?;
        for (page, place, part) in Overlay::parts(offset, bytes.len() as u64) {
            let bytes = &mut bytes[part.start as usize..part.end as usize];
            match self.pages.get(&page) {
                Some(Some(page)) => bytes.copy_from_slice(&page[place..place + bytes.len()]),
                Some(None) => bytes.fill(0),
                None => {}
            }
        }
        Ok(())
    }

    fn write(&mut self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        for (number, place, part) in Overlay::parts(offset, bytes.len() as u64) {
            let bytes = &bytes[part.start as usize..part.end as usize];
            let mut page = Box::new([0; PAGE]);
            self.read(file, &mut page[..], number * PAGE as u64)?;
            page[place..place + bytes.len()].copy_from_slice(bytes);
            self.pages.insert(number, Some(page));
        }
        Ok(())
    }

    fn zero(&mut self, file: &File, offset: u64, bytes: u64) -> io::Result<()> {
        for (number, place, part) in Overlay::parts(offset, bytes) {
            let n = (part.end - part.start) as usize;
            if n == PAGE {
                self.pages.insert(number, None);
            } else {
                self.write(file, &[0; PAGE][..n], number * PAGE as u64 + place as u64)?;
            }
        }
        Ok(())
    }
}

/// Reads from a file. Most of an image is holes; the kernel would fill its page cache with their zeros.
#[inline]
fn read_file(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    const WORTH_ASKING: usize = 1 << 16;
    let hole = if bytes.len() < WORTH_ASKING { 0 } else { hole_at(file, offset, bytes.len())? };
    let (zeros, rest) = bytes.split_at_mut(hole);
    zeros.fill(0);
    file.read_exact_at(rest, offset + hole as u64)
}

/// How many of `bytes` from `offset` on are known to lie in a hole.
fn hole_at(file: &File, offset: u64, bytes: usize) -> io::Result<usize> {
    let data = match seek(file, SeekFrom::Data(offset)) {
        Ok(data) => data,
        // The rest of the file is a hole, or `offset` is beyond its end.
        Err(rustix::io::Errno::NXIO) => file.metadata()?.len(),
        // The file system has no holes, or does not report them.
        Err(_) => offset,
    };
    Ok(data.saturating_sub(offset).min(bytes as u64) as usize)
}

impl FileDisk {
    /// Makes a new file of `bytes` bytes, all of them holes.
    ///
    /// # Errors
    /// It exists, or the file system refuses.
    pub fn create(path: &Path, bytes: u64) -> io::Result<FileDisk> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.set_len(bytes)?;
        FileDisk::locked(file, true)
    }

    /// Opens a file, writable or read-only. Several processes may read it at once.
    ///
    /// # Errors
    /// It cannot be opened, or another process has it open; that is [`ErrorKind::WouldBlock`].
    pub fn open(path: &Path, writable: bool) -> io::Result<FileDisk> {
        // Opening a pipe would wait for a writer.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file, as images are"));
        }
        let file = OpenOptions::new().read(true).write(writable).open(path)?;
        FileDisk::locked(file, writable)
    }

    fn locked(file: File, exclusive: bool) -> io::Result<FileDisk> {
        let how =
            if exclusive { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
        flock(&file, how)?;
        Ok(FileDisk { file, overlay: (!exclusive).then(Overlay::default) })
    }

    /// Size of the file, and the space that it takes, in bytes.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn sizes(&self) -> io::Result<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let metadata = self.file.metadata()?;
        Ok((metadata.len(), metadata.blocks() * 512))
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Disk for FileDisk {
    #[inline]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.overlay {
            None => read_file(&self.file, bytes, offset),
            Some(overlay) => overlay.read(&self.file, bytes, offset),
        }
    }

    #[inline]
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &mut self.overlay {
            None => self.file.write_all_at(bytes, offset),
            Some(overlay) => overlay.write(&self.file, bytes, offset),
        }
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        if let Some(overlay) = &mut self.overlay {
            return overlay.zero(&self.file, offset, bytes);
        }
        match fallocate(&self.file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, bytes) {
            Ok(()) => Ok(()),
            // The file system has no holes.
            Err(rustix::io::Errno::OPNOTSUPP) => {
                static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
                let mut at = offset;
                while at < offset + bytes {
                    let n = (offset + bytes - at).min(ZEROS.len() as u64);
                    self.file.write_all_at(&ZEROS[..n as usize], at)?;
                    at += n;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.overlay.is_none() { self.file.sync_data() } else { Ok(()) }
    }
}

/// Memory, for tests. It records writes since the last sync in order, so that a crash can lose any part of them.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    bytes: Vec<u8>,
    /// Offset and old bytes of each write since the last sync.
    unsynced: Vec<(u64, Vec<u8>)>,
    /// Number of writes that still succeed, if limited.
    pub writes_left: Option<u64>,
}

impl MemoryDisk {
    /// Memory of `bytes` zeros.
    pub fn new(bytes: u64) -> MemoryDisk {
        MemoryDisk { bytes: vec![0; bytes as usize], ..MemoryDisk::default() }
    }

    /// The machine crashes: for each write since the last sync, `stays` says how many of its bytes reach the disk, in
    /// whole sectors and in any order.
    pub fn crash(&mut self, mut stays: impl FnMut(usize) -> usize) {
        let writes: Vec<(u64, Vec<u8>, Vec<u8>)> = self
            .unsynced
            .iter()
            .rev()
            .map(|(at, before)| {
                let range = *at as usize..*at as usize + before.len();
                let after = self.bytes[range.clone()].to_vec();
                self.bytes[range].copy_from_slice(before);
                (*at, before.clone(), after)
            })
            .collect();
        self.unsynced.clear();
        // The newest write may have reached the disk first; then an older write must not overwrite it.
        let mut reached: Vec<(u64, u64)> = Vec::new();
        for (at, before, after) in writes {
            // A sector reaches the disk or does not.
            let wanted = stays(before.len()) as u64;
            let end = (at + wanted) & !511;
            let n = if wanted > 0 && end >= (at + after.len() as u64) & !511 {
                after.len()
            } else {
                end.saturating_sub(at) as usize
            };
            let overtaken = reached.iter().any(|&(from, to)| from < at + n as u64 && at < to);
            if n > 0 && !overtaken {
                self.bytes[at as usize..at as usize + n].copy_from_slice(&after[..n]);
                reached.push((at, at + n as u64));
            }
        }
    }

    /// The process dies before its last `writes` since the last sync, in the middle of the first of them: it leaves
    /// `share` of 256 parts of that one, in whole pages of memory.
    pub fn kill(&mut self, writes: usize, share: u8) {
        let first = self.unsynced.len().saturating_sub(writes);
        for (place, (at, before)) in self.unsynced.drain(first..).enumerate().collect::<Vec<_>>().into_iter().rev() {
            let end = (at + before.len() as u64 * u64::from(share) / 256) & !4095;
            let left = if place == 0 { end.saturating_sub(at) as usize } else { 0 };
            self.bytes[at as usize + left..at as usize + before.len()].copy_from_slice(&before[left..]);
        }
    }

    /// All bytes, for inspection or damage.
    pub fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn range(&self, offset: u64, bytes: usize) -> io::Result<std::ops::Range<usize>> {
        let end = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(bytes));
        end.filter(|&end| end <= self.bytes.len())
            .map(|end| end - bytes..end)
            .ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))
    }

    fn replace(&mut self, offset: u64, bytes: usize, with: impl FnOnce(&mut [u8])) -> io::Result<()> {
        if let Some(left) = &mut self.writes_left {
            *left = left.checked_sub(1).ok_or_else(|| io::Error::from(ErrorKind::StorageFull))?;
        }
        let range = self.range(offset, bytes)?;
        self.unsynced.push((offset, self.bytes[range.clone()].to_vec()));
        with(&mut self.bytes[range]);
        Ok(())
    }
}

impl Disk for MemoryDisk {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        bytes.copy_from_slice(&self.bytes[self.range(offset, bytes.len())?]);
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.replace(offset, bytes.len(), |at| at.copy_from_slice(bytes))
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.replace(offset, bytes as usize, |at| at.fill(0))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unsynced.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_kit::Prng;

    /// A file reads the same with holes as without, whole or in parts, and ends at the same offset.
    #[test]
    fn holes_read_as_zeros_up_to_the_end_of_the_file() {
        const BYTES: usize = 1 << 20;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut disk = FileDisk::create(&path, BYTES as u64).unwrap();
        let mut expected = vec![0; BYTES];
        for (at, byte) in [(0, 1), (300_000, 2), (300_001, 3), (450_000, 4)] {
            disk.write_at(&[byte; 5000], at as u64).unwrap();
            expected[at..at + 5000].fill(byte);
        }
        disk.zero(300_000, 2000).unwrap();
        expected[300_000..302_000].fill(0);
        let rng = &mut Prng::new(1);
        let read_only = |disk: FileDisk| {
            drop(disk);
            FileDisk::open(&path, false).unwrap()
        };
        for _ in 0..2 {
            for _ in 0..500 {
                let at = rng.below(BYTES as u64) as usize;
                let mut data = vec![9; rng.below((BYTES - at) as u64 + 1) as usize];
                disk.read_at(&mut data, at as u64).unwrap();
                assert!(data == expected[at..at + data.len()], "{} bytes at {at}", data.len());
            }
            for (at, bytes) in [(BYTES - 100_000, 100_001), (BYTES, 100_000), (BYTES + 1, 100_000)] {
                let read = disk.read_at(&mut vec![0; bytes], at as u64);
                assert_eq!(read.unwrap_err().kind(), ErrorKind::UnexpectedEof, "{bytes} bytes at {at}");
            }
            disk = read_only(disk);
        }
    }

    /// Writes to a read-only file are read back, and the file does not change.
    #[test]
    fn an_overlay_reads_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let rng = &mut Prng::new(1);
        let before: Vec<u8> = (0..13 * 4096).map(|_| rng.below(256) as u8).collect();
        std::fs::write(&path, &before).unwrap();
        let mut disk = FileDisk::open(&path, false).unwrap();
        let mut expected = before.clone();
        for i in 0..2000u32 {
            let bytes = rng.below(12_000) as usize;
            let at = rng.below((before.len() - bytes) as u64) as usize;
            let range = at..at + bytes;
            match i % 3 {
                0 => {
                    let data = vec![i as u8; bytes];
                    disk.write_at(&data, at as u64).unwrap();
                    expected[range].copy_from_slice(&data);
                }
                1 => {
                    disk.zero(at as u64, bytes as u64).unwrap();
                    expected[range].fill(0);
                }
                _ => {
                    let mut data = vec![0; bytes];
                    disk.read_at(&mut data, at as u64).unwrap();
                    assert!(data == expected[range], "{bytes} bytes at {at}");
                }
            }
        }
        assert!(std::fs::read(&path).unwrap() == before);
    }
}
