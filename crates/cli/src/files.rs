// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files: read with a bound on their size, written whole or not at all.

use crate::usage;
use anyhow::{Context, Result, anyhow};
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

/// Whether a file can be written, for those who will write it only after a long time. Leaves nothing behind.
pub fn check_writable(path: &Path) -> Result<()> {
    PartFile::create(path).map(drop)
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

/// A file that is being written; it takes its name when it is whole, and vanishes if that never comes.
pub struct PartFile {
    /// The open file.
    pub file: File,
    part: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl PartFile {
    /// Begins to write the file at `path`. A path that cannot be written is the user's mistake.
    pub fn create(path: &Path) -> Result<Self> {
        let wrong = |what: String| usage(anyhow!("{}: {what}", path.display()));
        let mut name = path.file_name().ok_or_else(|| wrong("names no file".into()))?.to_owned();
        // Found out now, not when it is to take its name.
        if path.is_dir() {
            return Err(wrong("cannot be written: it is a folder".into()));
        }
        name.push(format!(".part{}", std::process::id()));
        let part = path.with_file_name(name);
        let file = File::create(&part).map_err(|e| wrong(format!("cannot be written: {e}")))?;
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
