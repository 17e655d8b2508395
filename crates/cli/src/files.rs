// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are written: whole or not at all.

use crate::inputs::is_stdin;
use crate::usage;
use anyhow::{Context, Result, anyhow};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name in the same folder and renames it, so that nobody sees half of it.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    begin_whole(path, contents)?.finish()
}

/// The same up to the renaming.
pub fn begin_whole(path: &Path, contents: &[u8]) -> Result<PartFile> {
    let part = PartFile::create(path)?;
    let mut file = &part.file;
    file.write_all(contents).with_context(|| format!("{}: cannot write", path.display()))?;
    Ok(part)
}

/// Whether a file can be written, for those who will write it only after a long time. Leaves nothing behind.
pub fn check_writable(path: &Path) -> Result<()> {
    // Opening and closing a pipe would already tell its reader that nothing comes.
    if is_special(path) { Ok(()) } else { PartFile::create(path).map(drop) }
}

/// A folder that was made, with those above it that were missing; they vanish again if nothing is put into them.
pub struct NewFolder(Vec<PathBuf>);

impl NewFolder {
    /// Makes the folder if need be. A path that cannot be one is the user's mistake.
    pub fn create(path: &Path) -> Result<Self> {
        let missing = path.ancestors().take_while(|p| !p.as_os_str().is_empty() && !p.exists());
        let made = NewFolder(missing.map(Path::to_owned).collect());
        fs::create_dir_all(path)
            .with_context(|| format!("{}: cannot make the folder", path.display()))
            .map_err(usage)?;
        Ok(made)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // From the innermost on; one that holds something stays.
        for folder in &self.0 {
            fs::remove_dir(folder).ok();
        }
    }
}

/// A file that is being written; it takes its name when it is whole, and vanishes if that never comes. What is no file,
/// such as a device or a pipe, is written as it comes. (The crate `tempfile` would spare ten lines, and put the random
/// name of the part into every message.)
pub struct PartFile {
    pub file: File,
    /// Where it is until it takes its name; `None` for what is no file.
    part: Option<PathBuf>,
    path: PathBuf,
}

impl PartFile {
    /// Begins to write the file at `path`, or that to which a link there leads. A path that cannot be written is the
    /// user's mistake.
    pub fn create(path: &Path) -> Result<Self> {
        let wrong = |what: String| usage(anyhow!("{}: {what}", path.display()));
        let cannot = |e: io::Error| wrong(format!("cannot be written: {e}"));
        if is_dash(path) {
            let file = io::stdout().as_fd().try_clone_to_owned().map_err(cannot)?.into();
            return Ok(PartFile { file, part: None, path: path.to_owned() });
        }
        path.file_name().ok_or_else(|| wrong("names no file".into()))?;
        // Found out now, not when it is to take its name.
        if path.is_dir() {
            return Err(wrong("cannot be written: it is a folder".into()));
        }
        if is_special(path) {
            let file = File::options().write(true).open(path).map_err(cannot)?;
            return Ok(PartFile { file, part: None, path: path.to_owned() });
        }
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".part{}", std::process::id()));
        let part = path.with_file_name(name);
        let file = File::create(&part).map_err(cannot)?;
        Ok(PartFile { file, part: Some(part), path })
    }

    /// The file is whole.
    pub fn finish(mut self) -> Result<()> {
        let Some(part) = self.part.take() else { return Ok(()) };
        let named = sync(&self.file).and_then(|()| fs::rename(&part, &self.path));
        if named.is_err() {
            self.part = Some(part);
        }
        named.with_context(|| format!("{}: cannot write", self.path.display()))
    }
}

/// Whether this means standard output where something is written, as it means standard input where it is read.
fn is_dash(path: &Path) -> bool {
    is_stdin(path)
}

/// Whether what is written there goes to no file and no folder: to standard output, a device, a pipe, a socket.
pub fn is_special(path: &Path) -> bool {
    is_dash(path) || fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Brings a file to its disk. File systems that cannot say whether it is there are believed.
fn sync(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(e) if !matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Err(e),
        _ => Ok(()),
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Whether what is written there comes out of standard output.
pub fn is_standard_output(path: &Path) -> bool {
    is_dash(path) || is_same(path, Path::new("/dev/stdout"))
}

/// Refuses to write to the file that is read.
pub fn check_not_input(output: &Path, input: &Path) -> Result<()> {
    let input = if is_stdin(input) { Path::new("/dev/stdin") } else { input };
    if !is_dash(output) && output.is_file() && is_same(output, input) {
        return Err(usage(anyhow!("{}: this is the input; write to another file", output.display())));
    }
    Ok(())
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            fs::remove_file(part).ok();
        }
    }
}
