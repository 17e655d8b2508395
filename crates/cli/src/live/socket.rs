// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the sockets of runs are: in a folder of the user's own, named after their process.

use crate::usage;
use anyhow::{Context, Result, anyhow};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Kind of file at a path that should be a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathKind {
    Nothing,
    Socket,
    Other,
}

pub fn look(path: &Path) -> io::Result<PathKind> {
    match fs::symlink_metadata(path) {
        Ok(data) if data.file_type().is_socket() => Ok(PathKind::Socket),
        Ok(_) => Ok(PathKind::Other),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(PathKind::Nothing),
        Err(e) => Err(e),
    }
}

/// The folder for sockets without a name of their own.
pub fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => Path::new(&dir).join("readpath"),
        None => std::env::temp_dir().join(format!("readpath-{}", rustix::process::geteuid().as_raw())),
    }
}

/// The socket of this process, in a folder that other users cannot change.
pub fn of_this_process() -> Result<PathBuf> {
    let folder = folder();
    let name = folder.display();
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        made => {
            let context = || format!("{name}: cannot make the folder for the socket; name one with --stats=SOCKET");
            made.with_context(context).map_err(usage)?;
        }
    }
    let data = fs::symlink_metadata(&folder).with_context(|| format!("{name}: cannot look at it")).map_err(usage)?;
    if !data.is_dir() || data.uid() != rustix::process::geteuid().as_raw() || data.mode() & 0o022 != 0 {
        return Err(usage(anyhow!(
            "{name}: is no folder of yours alone, so the socket would not be safe there; name one with --stats=SOCKET"
        )));
    }
    Ok(folder.join(format!("{}.sock", std::process::id())))
}

/// Sockets in the folder, in order of their names.
pub fn all() -> Result<Vec<PathBuf>> {
    let folder = folder();
    let entries = match fs::read_dir(&folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.and_then(|entries| entries.collect::<io::Result<Vec<_>>>()),
    };
    let entries = entries.with_context(|| format!("{}: cannot be read", folder.display())).map_err(usage)?;
    let mut sockets: Vec<PathBuf> = entries.into_iter().map(|e| e.path()).collect();
    sockets.retain(|path| look(path).is_ok_and(|found| found == PathKind::Socket));
    sockets.sort();
    Ok(sockets)
}
