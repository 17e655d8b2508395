// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files: read with a bound on their size, written whole or not at all.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// No configuration or job file is larger; what is must be something else.
const LONGEST: u64 = 16 << 20;

/// Reads a text file.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::Error::other(format!("is larger than {LONGEST} bytes, so it cannot be meant")));
    }
    Ok(text)
}

/// Writes a file under a temporary name in the same folder and renames it, so that nobody sees half of it.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    let part = PartFile::create(path)?;
    let mut file = &part.file;
    file.write_all(contents).with_context(|| format!("{}: cannot write", path.display()))?;
    part.finish()
}

/// A file that is being written; it takes its name when it is whole, and vanishes if that never comes.
pub struct PartFile {
    /// The open file.
    pub file: File,
    part: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl PartFile {
    /// Begins to write the file at `path`.
    pub fn create(path: &Path) -> Result<Self> {
        let mut name = path.file_name().with_context(|| format!("{}: names no file", path.display()))?.to_owned();
        name.push(format!(".part{}", std::process::id()));
        let part = path.with_file_name(name);
        let file = File::create(&part).with_context(|| format!("{}: cannot create", part.display()))?;
        Ok(PartFile { file, part, path: path.to_owned(), finished: false })
    }

    /// The file is whole.
    pub fn finish(mut self) -> Result<()> {
        self.file.sync_all().ok();
        fs::rename(&self.part, &self.path).with_context(|| format!("{}: cannot write", self.path.display()))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.finished {
            fs::remove_file(&self.part).ok();
        }
    }
}
