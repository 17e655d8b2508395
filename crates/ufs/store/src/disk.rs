// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the bytes of an image lie: a file, or for tests memory that loses what was not synced. It knows no layout.

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes at offsets. Errors are answers: nothing is mapped into memory.
pub trait Disk {
    /// Reads exactly so many bytes.
    ///
    /// # Errors
    /// As the file system says; reading beyond the end is one.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes.
    ///
    /// # Errors
    /// As the file system says: no space, for one.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes a range read as zeros, and gives its space back where that is possible.
    ///
    /// # Errors
    /// As the file system says.
    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()>;

    /// Returns when everything written is where a crash of the machine leaves it.
    ///
    /// # Errors
    /// As the file system says. What was written may then be lost.
    fn sync(&mut self) -> io::Result<()>;
}

/// A file, locked against a second process.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
}

impl FileDisk {
    /// Makes a new file of so many bytes, all of them holes.
    ///
    /// # Errors
    /// It exists, or the file system refuses.
    pub fn create(path: &Path, bytes: u64) -> io::Result<FileDisk> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        file.set_len(bytes)?;
        FileDisk::locked(file, true)
    }

    /// Opens a file, to be written or only to be read. Several may read it at once.
    ///
    /// # Errors
    /// It cannot be opened, or another process has it open; that is [`ErrorKind::WouldBlock`].
    pub fn open(path: &Path, writable: bool) -> io::Result<FileDisk> {
        let file = OpenOptions::new().read(true).write(writable).open(path)?;
        FileDisk::locked(file, writable)
    }

    fn locked(file: File, exclusive: bool) -> io::Result<FileDisk> {
        let how =
            if exclusive { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
        flock(&file, how)?;
        Ok(FileDisk { file })
    }

    /// Bytes of the file, and how many of them take space.
    ///
    /// # Errors
    /// As the file system says.
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
        self.file.read_exact_at(bytes, offset)
    }

    #[inline]
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
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
        self.file.sync_data()
    }
}

/// Memory, for tests. It remembers in which order it was written since it was synced, so that a crash can lose any part
/// of that.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    bytes: Vec<u8>,
    /// Offset and what was there before, for each write since the last sync.
    unsynced: Vec<(u64, Vec<u8>)>,
    /// Writes that still succeed, if they are limited.
    pub writes_left: Option<u64>,
}

impl MemoryDisk {
    /// So many zeros.
    pub fn new(bytes: u64) -> MemoryDisk {
        MemoryDisk { bytes: vec![0; bytes as usize], ..MemoryDisk::default() }
    }

    /// The machine crashes: of each write since the last sync, `stays` says how many of its bytes reach the disk, to
    /// whole sectors and in whatever order.
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
        // What was written last may be what reached the disk first; then the older write is not written again.
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

    /// All bytes, to look at or to damage.
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
