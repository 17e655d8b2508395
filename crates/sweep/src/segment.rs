// SPDX-License-Identifier: MIT OR Apache-2.0
//! A segment: the file that one worker appends records to. Its header names the plan. No other worker writes to it,
//! and it is never changed.

use crate::error::SweepError;
use crate::record::line;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Format of segments and its version.
pub const SCHEMA: &str = "readpath-sweep/1";
/// How often a folder that disappears is made again.
const MOST_TRIES: u32 = 8;
/// How names of segments end.
pub(crate) const EXTENSION: &str = "seg";

/// The first line of a segment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the program; figures may differ between versions.
    pub program: String,
    /// Name of the study, or title of the question.
    pub study: String,
    /// Digest of the plan.
    pub plan: String,
    /// Points of the plan.
    pub points: u64,
    /// What records have settings of: keys that differ between points.
    pub keys: Vec<String>,
}

impl Header {
    /// That of a plan made by this version.
    pub(crate) fn new(study: &str, plan: String, points: u64, keys: Vec<String>) -> Header {
        let program = env!("CARGO_PKG_VERSION").into();
        Header { schema: SCHEMA.into(), program, study: study.to_owned(), plan, points, keys }
    }
}

/// A segment that is being written.
#[derive(Debug)]
pub struct Segment {
    file: File,
    path: PathBuf,
}

impl Segment {
    /// Creates a segment in `folder`, whose name starts with `name`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(folder: &Path, name: &str, header: &Header) -> Result<Segment, SweepError> {
        let mut number = 0u32;
        loop {
            let path = folder.join(format!("{name}-{number}.{EXTENSION}"));
            match File::create_new(&path) {
                Ok(file) => {
                    let mut segment = Segment { file, path };
                    segment.put(&line(header))?;
                    return Ok(segment);
                }
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                // A call that was interrupted removes the folder that it made, if it is empty, when it ends.
                Err(e) if e.kind() == ErrorKind::NotFound && number < MOST_TRIES => {
                    fs::create_dir_all(folder).ok();
                    number += 1;
                }
                Err(error) => return Err(SweepError::Io { path, what: "cannot be written", error }),
            }
        }
    }

    /// Appends what [`Record::line`](crate::Record::line) made.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &[u8]) -> Result<(), SweepError> {
        self.put(line)
    }

    /// Synchronises it with the disk.
    ///
    /// # Errors
    /// When that fails.
    pub fn finish(self) -> Result<(), SweepError> {
        match self.file.sync_all() {
            // Some file systems cannot synchronise; their writes count as done.
            Err(e) if !matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Err(self.cannot(e)),
            _ => Ok(()),
        }
    }

    /// One write, so that only the last line can be torn.
    fn put(&mut self, bytes: &[u8]) -> Result<(), SweepError> {
        self.file.write_all(bytes).map_err(|e| self.cannot(e))
    }

    fn cannot(&self, error: std::io::Error) -> SweepError {
        SweepError::Io { path: self.path.clone(), what: "cannot be written", error }
    }
}
