// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath serve --run`: a program that runs as long as the device is served, or the other way round.

use crate::failure::Ended;
use crate::{stop, usage};
use anyhow::{Result, anyhow};
use readpath_serve::Address;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::{env, fs, io, thread};

/// A folder for sockets that only this user enters. It is removed on drop.
pub struct Room(PathBuf);

impl Room {
    pub fn new() -> Result<Room> {
        let dir = env::temp_dir().join(format!("readpath-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&dir).map_err(|e| usage(anyhow!("{}: {e}", dir.display())))?;
        let left = dir.clone();
        stop::clean_up(move || _ = fs::remove_dir_all(&left))?;
        Ok(Room(dir))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A program that runs.
pub struct Program {
    pid: Pid,
    ended: Receiver<io::Result<ExitStatus>>,
}

impl Program {
    /// Gives `command` to the shell, with places in its environment. The server stops when it ends.
    pub fn start(command: &str, uri: &Address, control: &Path) -> io::Result<Program> {
        let started = Command::new("/bin/sh")
            .args(["-c", command])
            .env("uri", uri.to_string())
            .env("control", control)
            .env("readpath", env::current_exe()?)
            .spawn();
        let mut child = started.inspect_err(|_| stop::end())?;
        let (pid, (tell, ended)) = (Pid::from_child(&child), channel());
        thread::spawn(move || {
            tell.send(child.wait()).ok();
            stop::end();
        });
        Ok(Program { pid, ended })
    }

    /// The server has stopped. A program that still runs is ended.
    ///
    /// # Errors
    /// The program failed.
    pub fn end(self) -> Result<()> {
        let status = self.ended.try_recv().or_else(|_| {
            kill_process(self.pid, Signal::TERM).ok();
            self.ended.recv()
        });
        let status = status.map_err(io::Error::other)??;
        match (status.code(), status.signal()) {
            (Some(0), _) => Ok(()),
            (code, signal) => {
                let status = code.or(signal.map(|signal| 128 + signal)).and_then(|code| u8::try_from(code).ok());
                Err(Ended { program: "--run", status: status.unwrap_or(1) }.into())
            }
        }
    }
}
