// SPDX-License-Identifier: MIT OR Apache-2.0
//! What traces are read from: a file, a pipe or standard input. It is read once and digested on the way, and nobody who
//! wants to stop has to wait for bytes that do not come.

use crate::usage;
use anyhow::{Result, anyhow};
use readpath_results::{Input, InputDigest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How long bytes are waited for before somebody who wants to stop is looked for: a signal may come just before.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Whether this means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What an input is called.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".into() } else { path.display().to_string() }
}

/// Refuses to read standard input twice.
pub fn only_one_stdin<'a>(inputs: impl IntoIterator<Item = &'a (impl AsRef<Path> + ?Sized + 'a)>) -> Result<()> {
    match inputs.into_iter().filter(|path| is_stdin(path.as_ref())).count() {
        ..=1 => Ok(()),
        n => Err(usage(anyhow!("- is standard input, which can be read once, but it is given {n} times"))),
    }
}

struct Reading {
    file: File,
    digest: InputDigest,
    /// Bytes may have to be waited for.
    waits: bool,
    stop: Arc<AtomicBool>,
}

/// An input that is read by somebody who may not care for all of it.
#[derive(Clone)]
pub struct Source(Arc<Mutex<Reading>>);

impl Source {
    /// Opens the input, which is to be `what`; reading it fails soon after `stop` is set.
    pub fn open(path: &Path, what: &str, stop: Arc<AtomicBool>) -> Result<Self> {
        let name = name(path);
        let unreadable = |e: io::Error| usage(anyhow!("{name}: cannot be read: {e}"));
        let file = if is_stdin(path) {
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            // A pipe that nobody writes to yet would be waited for here.
            OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
        };
        let file = file.map_err(unreadable)?;
        let kind = file.metadata().map_err(unreadable)?.file_type();
        if kind.is_dir() {
            return Err(usage(anyhow!("{name}: is a folder, not {what}")));
        }
        let reading = Reading { file, digest: InputDigest::default(), waits: !kind.is_file(), stop };
        Ok(Source(Arc::new(Mutex::new(reading))))
    }

    /// Reads what is left; the input, called `name`, by size and digest.
    pub fn input(mut self, name: &str) -> io::Result<Input> {
        io::copy(&mut self, &mut io::sink())?;
        let digest = self.0.lock().unwrap_or_else(PoisonError::into_inner).digest.clone();
        Ok(digest.input(name))
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let reading = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if reading.waits {
                reading.wait()?;
            }
            match reading.file.read(into) {
                Err(e) if reading.waits && e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
                Ok(n) => {
                    reading.digest.update(&into[..n]);
                    return Ok(n);
                }
            }
        }
    }
}

impl Reading {
    fn wait(&self) -> io::Result<()> {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::Error::other("reading was stopped"));
            }
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&PATIENCE)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
    }
}
