// SPDX-License-Identifier: MIT OR Apache-2.0
//! A disk that is watched: how long it keeps the server waiting. Reads and writes go to the page cache; what takes long
//! is a sync, and a read of what is not there. It changes nothing.

use readpath_store::{Disk, FileDisk};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// See the module.
pub(crate) struct TimedDisk {
    disk: FileDisk,
    spent: Rc<Cell<Duration>>,
}

impl TimedDisk {
    /// A watched disk; what it takes is added to `spent`.
    pub(crate) fn new(disk: FileDisk, spent: Rc<Cell<Duration>>) -> Self {
        TimedDisk { disk, spent }
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
        let TimedDisk { disk, spent } = self;
        TimedDisk::timed(spent, || disk.write_at(bytes, offset))
    }

    fn zero(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let TimedDisk { disk, spent } = self;
        TimedDisk::timed(spent, || disk.zero(offset, bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        let TimedDisk { disk, spent } = self;
        TimedDisk::timed(spent, || disk.sync())
    }
}
