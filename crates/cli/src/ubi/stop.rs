// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C and a request to terminate end a command of `readpath ubi` at once, whatever it is doing, with the status of
//! all others. Files are written while the end is held off, and nothing of them lies about otherwise, so none is left
//! in part.

use anyhow::Result;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// What a command has written, as far as that matters to whoever ended it. Locked while files are being written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// Neither file nor result.
    Nothing,
    /// It prints as it goes.
    Printed,
    /// What other experiments made, before this one.
    Others,
    /// All files.
    Files,
}

static WRITTEN: Mutex<Written> = Mutex::new(Written::Nothing);

fn lock() -> MutexGuard<'static, Written> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on a signal ends the program.
pub fn at_once(so_far: Written) -> Result<()> {
    static BEGUN: Once = Once::new();
    let mut result = Ok(());
    *lock() = so_far;
    BEGUN.call_once(|| result = watch());
    Ok(result?)
}

fn watch() -> io::Result<()> {
    let (mut bytes, end) = UnixStream::pair()?;
    for signal in [SIGINT, SIGTERM] {
        low_level::pipe::register(signal, end.try_clone()?)?;
    }
    let wait = move || {
        if !matches!(bytes.read(&mut [0]), Ok(1)) {
            return;
        }
        let written = lock();
        let what = match *written {
            Written::Nothing => format!("{}", crate::Interrupted),
            Written::Others => "interrupted; of this experiment nothing was written".to_owned(),
            Written::Printed => "interrupted".to_owned(),
            Written::Files => "interrupted; the files had been written".to_owned(),
        };
        writeln!(io::stderr(), "readpath: {what}").ok();
        // Still locked, so that nobody begins to write.
        std::process::exit(crate::INTERRUPTED.into());
    };
    std::thread::Builder::new().name("signals".into()).spawn(wait).map(drop)
}

/// Holds off the end while files are made or named.
pub struct Held(MutexGuard<'static, Written>);

impl Held {
    /// The files are there.
    pub fn done(mut self) {
        *self.0 = Written::Files;
    }
}

/// Holds off the end until it is dropped.
pub fn hold() -> Held {
    Held(lock())
}
