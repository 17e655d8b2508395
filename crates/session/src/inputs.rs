// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs: files, pipes and standard input, opened in one way and with the same errors. A read that waits for bytes
//! ends when the command is to stop. Traces and streams are hashed while they are read; the size of a text is bounded.

use crate::usage;
use anyhow::{Context, Result, anyhow};
use readpath_results::{Input, InputDigest};
use readpath_workload::trace::Joined;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How long a read waits for bytes before it looks at the stop flag: a signal may come just before the wait.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Size of the largest configuration or job file that is read.
const LONGEST: u64 = 16 << 20;
/// Size of the largest result document that is read.
const LONGEST_DOCUMENT: u64 = 1 << 30;

/// Whether the path is `-`: standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The name of an input in errors and documents.
pub fn name(path: &Path) -> String {
    if is_stdin(path) { "stdin".into() } else { path.display().to_string() }
}

/// Refuses to read standard input twice.
///
/// # Errors
/// When `-` is given more than once.
pub fn only_one_stdin<'a>(inputs: impl IntoIterator<Item = &'a (impl AsRef<Path> + ?Sized + 'a)>) -> Result<()> {
    match inputs.into_iter().filter(|path| is_stdin(path.as_ref())).count() {
        ..=1 => Ok(()),
        n => Err(usage(anyhow!("- is standard input, which can be read once, but it is given {n} times"))),
    }
}

/// Reads a text: a job, a device, an experiment.
///
/// # Errors
/// A mistake of the user when it cannot be read, is too large or is not UTF-8.
pub fn text(path: &Path) -> Result<String> {
    text_up_to(path, LONGEST).with_context(|| format!("{}: cannot be read", name(path))).map_err(usage)
}

/// [`text`] for callers that name the file in the error themselves. The path `${NAME}` is that variable of the
/// environment.
///
/// # Errors
/// As [`text`].
pub fn read_text(path: &Path) -> io::Result<String> {
    match path.to_str().and_then(|name| name.strip_prefix("${")?.strip_suffix('}')) {
        Some(name) => std::env::var(name).map_err(|e| io::Error::new(ErrorKind::NotFound, e)),
        None => text_up_to(path, LONGEST),
    }
}

/// Reads a result document.
///
/// # Errors
/// As [`text`].
pub fn document(path: &Path) -> Result<String> {
    text_up_to(path, LONGEST_DOCUMENT).with_context(|| format!("{}: cannot be read", name(path))).map_err(usage)
}

fn text_up_to(path: &Path, most: u64) -> io::Result<String> {
    // Standard input can be read once, but a job is asked for again for each seed.
    static TYPED: OnceLock<String> = OnceLock::new();
    if let Some(text) = TYPED.get().filter(|_| is_stdin(path)) {
        return Ok(text.clone());
    }
    let mut bytes = Vec::new();
    Opened::open(path, Arc::default())?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("is larger than {most} bytes; this is probably the wrong file")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| io::Error::other(format!("byte {} is not UTF-8", e.utf8_error().valid_up_to())))?;
    Ok(if is_stdin(path) { TYPED.get_or_init(|| text).clone() } else { text })
}

/// A file, a pipe or standard input.
struct Opened {
    file: File,
    /// It may have to wait for bytes.
    waits: bool,
    is_folder: bool,
    stop: Arc<AtomicBool>,
}

impl Opened {
    /// Reading fails soon after `stop` is set.
    fn open(path: &Path, stop: Arc<AtomicBool>) -> io::Result<Self> {
        let file = if is_stdin(path) {
            File::from(io::stdin().as_fd().try_clone_to_owned()?)
        } else {
            // Without O_NONBLOCK, open(2) of a pipe waits for a writer.
            OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?
        };
        let kind = file.metadata()?.file_type();
        Ok(Opened { file, waits: !kind.is_file() && !kind.is_dir(), is_folder: kind.is_dir(), stop })
    }

    /// Opens what is no folder; errors call it `what`.
    fn not_folder(path: &Path, what: &str, stop: Arc<AtomicBool>) -> Result<Box<dyn Read + Send>> {
        let name = name(path);
        let opened = Opened::open(path, stop).map_err(|e| usage(anyhow!("{name}: cannot be read: {e}")))?;
        match opened.is_folder {
            true => Err(usage(anyhow!("{name}: is a folder, not {what}"))),
            false => Ok(Box::new(opened)),
        }
    }

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

impl Read for Opened {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.waits {
                self.wait()?;
            }
            match self.file.read(into) {
                Err(e) if self.waits && e.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

/// An input that is hashed while it is read. Clones read the same input; a reader need not read to its end.
#[derive(Clone)]
pub struct Source(Arc<Mutex<(Box<dyn Read + Send>, InputDigest)>>);

impl Source {
    /// Opens the input, which errors call `what`; reading fails soon after `stop` is set.
    ///
    /// # Errors
    /// When it cannot be opened or is a folder.
    pub fn open(path: &Path, what: &str, stop: Arc<AtomicBool>) -> Result<Self> {
        Ok(Source::of(Opened::not_folder(path, what, stop)?))
    }

    /// Opens the files that blktrace wrote, one for each processor, as one input.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn joined(paths: &[PathBuf], stop: &Arc<AtomicBool>) -> Result<Self> {
        let open = |path: &PathBuf| Opened::not_folder(path, "a trace", stop.clone());
        let parts: Vec<Box<dyn Read + Send>> = paths.iter().map(open).collect::<Result<_>>()?;
        let unreadable = |e| usage(anyhow!("{} and those beside it: cannot be read: {e}", name(&paths[0])));
        Ok(Source::of(Box::new(Joined::new(parts).map_err(unreadable)?)))
    }

    fn of(reader: Box<dyn Read + Send>) -> Self {
        Source(Arc::new(Mutex::new((reader, InputDigest::default()))))
    }

    /// Reads the rest and gives size and hash of the input `name`.
    ///
    /// # Errors
    /// When the rest cannot be read.
    pub fn input(mut self, name: &str) -> io::Result<Input> {
        io::copy(&mut self, &mut io::sink())?;
        let digest = self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        Ok(digest.input(name))
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (reader, digest) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = reader.read(into)?;
        digest.update(&into[..n]);
        Ok(n)
    }
}
