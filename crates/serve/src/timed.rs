// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk that measures how long it keeps the server waiting. Reads and writes go to the page cache; a sync takes long,
//! and so does a read that the page cache does not have. It changes nothing.

use readpath_store::{Disk, FileDisk, Image, ImageError};
use std::cell::Cell;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A disk that measures the time of its operations.
#[derive(Debug)]
pub struct TimedDisk {
    disk: FileDisk,
    spent: Rc<Cell<Duration>>,
    /// Its size when it was opened.
    bytes: u64,
}

/// Opens an image to be served, as [`Image::open`].
///
/// # Errors
/// It cannot be opened, is in use, or is no image.
pub fn open(path: &Path, writable: bool, syncs: bool) -> Result<Image<TimedDisk>, ImageError> {
    Image::open_as(path, writable, syncs, |disk| {
        let bytes = disk.sizes().map_or(0, |(bytes, _)| bytes);
        TimedDisk { disk, spent: Rc::default(), bytes }
    })
}

impl TimedDisk {
    /// Real time that it has taken since it was last set to zero.
    pub(crate) fn spent(&self) -> Rc<Cell<Duration>> {
        self.spent.clone()
    }

    /// Whether the file is still there, and as long as it was.
    ///
    /// # Errors
    /// It was deleted, replaced or truncated.
    pub(crate) fn is_whole(&self) -> Result<(), String> {
        let metadata = self.disk.file().metadata().map_err(|error| error.to_string())?;
        match (metadata.nlink(), metadata.len()) {
            (0, _) => Err("the file was deleted or replaced while it was served; what was written is gone".to_owned()),
            (_, now) if now < self.bytes => {
                Err(format!("the file was truncated while it was served, from {} to {now} bytes", self.bytes))
            }
            _ => Ok(()),
        }
    }

    fn timed<T>(spent: &Cell<Duration>, what: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let done = what();
        spent.set(spent.get() + begun.elapsed());
        done
    }
}

impl Disk for TimedDisk {
    #[inline]
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        TimedDisk::timed(&self.spent, || self.disk.read_at(bytes, offset))
    }

    #[inline]
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let TimedDisk { disk, spent, .. } = self;
        TimedDisk::timed(spent, || disk.write_at(bytes, offset))
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let TimedDisk { disk, spent, .. } = self;
        TimedDisk::timed(spent, || disk.zero(offset, bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        let TimedDisk { disk, spent, .. } = self;
        TimedDisk::timed(spent, || disk.sync())
    }
}
