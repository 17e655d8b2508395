// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of a study's results: which points its segments hold. Existing segments are never changed. A damaged
//! record stays where it is; it is reported, and its point is made again.

use crate::error::SweepError;
use crate::record::{Outcome, Record, of_line};
use crate::segment::{EXTENSION, Header, SCHEMA};
use fixedbitset::FixedBitSet;
use readpath_config::study::MOST_POINTS;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A folder of segments.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

/// What the segments of one or more folders hold.
#[derive(Debug)]
pub struct Found {
    /// Their common header; none if there are no segments.
    pub header: Option<Header>,
    /// Points that have a record.
    pub done: FixedBitSet,
    /// Points that failed, with their indices in `places`.
    failures: HashMap<u64, usize>,
    /// Requests that were simulated for all points.
    pub ios: u64,
    /// A sentence for each damaged record.
    pub damaged: Vec<String>,
    pub(crate) segments: Vec<PathBuf>,
    /// The place of each record: point, segment, first byte. Of a point with several records, which are equal, the
    /// first.
    pub(crate) places: Vec<(u64, u32, u64)>,
}

impl Folder {
    /// The folder at `path`, which exists.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder { path: path.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn segments(&self) -> Result<Vec<PathBuf>, SweepError> {
        let cannot = |error| SweepError::Io { path: self.path.clone(), what: "cannot be read", error };
        let mut segments = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                segments.push(path);
            }
        }
        segments.sort();
        Ok(segments)
    }
}

impl Found {
    /// No records, of a plan with `points` points.
    pub fn none(points: u64) -> Found {
        Found {
            header: None,
            done: FixedBitSet::with_capacity(points as usize),
            failures: HashMap::new(),
            ios: 0,
            damaged: Vec::new(),
            segments: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Reads the records of `folders`.
    ///
    /// # Errors
    /// A segment that is of another plan than the others, or than `plan`, or of another version.
    pub fn of(folders: &[Folder], plan: Option<&Header>) -> Result<Found, SweepError> {
        let mut found = Found { header: plan.cloned(), ..Found::none(plan.map_or(0, |header| header.points)) };
        let mut any = false;
        for folder in folders {
            for path in folder.segments()? {
                any = true;
                found.read(path)?;
            }
        }
        if !any {
            found.header = None;
        }
        Ok(found)
    }

    /// What a segment of no folder holds.
    ///
    /// # Errors
    /// As [`Found::of`].
    pub fn of_segment(bytes: &[u8]) -> Result<Found, SweepError> {
        let mut found = Found { header: None, ..Found::none(0) };
        found.read_from("segment".into(), bytes)?;
        Ok(found)
    }

    fn read(&mut self, path: PathBuf) -> Result<(), SweepError> {
        let file =
            File::open(&path).map_err(|error| SweepError::Io { path: path.clone(), what: "cannot be read", error })?;
        self.read_from(path, BufReader::with_capacity(1 << 16, file))
    }

    fn read_from(&mut self, path: PathBuf, mut file: impl BufRead) -> Result<(), SweepError> {
        let cannot = |error| SweepError::Io { path: path.clone(), what: "cannot be read", error };
        let mut line = Vec::new();
        let (mut offset, mut number) = (0u64, 0u64);
        loop {
            line.clear();
            let read = file.read_until(b'\n', &mut line).map_err(cannot)? as u64;
            if read == 0 {
                break;
            }
            number += 1;
            let whole = line.strip_suffix(b"\n");
            if number == 1 {
                match whole.and_then(of_line) {
                    Some(header) => self.take_header(&path, header)?,
                    // A worker that was killed while it wrote the header.
                    None if whole.is_none() => {
                        self.damaged.push(format!("{}: is cut short in its first line", path.display()));
                        break;
                    }
                    None => {
                        let message = "its first line is not that of a segment, or damaged; move it away";
                        return Err(SweepError::Segment { path, message: message.into() });
                    }
                }
            } else {
                self.take_record(&path, whole, (offset, number));
            }
            offset += read;
        }
        self.segments.push(path);
        Ok(())
    }

    fn take_header(&mut self, path: &Path, json: Value) -> Result<(), SweepError> {
        let wrong = |message: String| SweepError::Segment { path: path.to_owned(), message };
        match json.get("schema").and_then(Value::as_str) {
            Some(SCHEMA) => {}
            other => {
                let found = other.map_or("no schema".into(), |schema| format!("schema {schema:?}"));
                return Err(wrong(format!("has {found}; this program reads {SCHEMA:?}")));
            }
        }
        let header: Header =
            serde_json::from_value(json).map_err(|e| wrong(format!("its first line is wrong: {e}")))?;
        let Some(wanted) = &self.header else {
            if header.points > MOST_POINTS {
                return Err(wrong(format!("has {} points, more than a study can have", header.points)));
            }
            self.done.grow(header.points as usize);
            self.header = Some(header);
            return Ok(());
        };
        let other = "choose another folder, or move it away";
        if header.study != wanted.study {
            return Err(wrong(format!("belongs to {:?}, not to {:?}; {other}", header.study, wanted.study)));
        }
        if header.program != wanted.program {
            let (theirs, ours) = (&header.program, &wanted.program);
            return Err(wrong(format!("was made by version {theirs}, not by {ours}, and figures may differ; {other}")));
        }
        if header != *wanted {
            let changed = "an option, a key, or a file that it names has changed since";
            return Err(wrong(format!("belongs to another plan of {:?}: {changed}; {other}", header.study)));
        }
        Ok(())
    }

    fn take_record(&mut self, path: &Path, line: Option<&[u8]>, (offset, number): (u64, u64)) {
        let record: Option<Record<IgnoredAny>> = line.and_then(of_line);
        match record.filter(|record| (record.point as usize) < self.done.len()) {
            Some(record) => {
                let place = (record.point, self.segments.len() as u32, offset);
                let failed = self.failures.get(&record.point).copied();
                let fails = matches!(record.outcome, Outcome::Error(_));
                match (self.done.put(record.point as usize), failed) {
                    (false, _) => {
                        if fails {
                            self.failures.insert(record.point, self.places.len());
                        }
                        self.places.push(place);
                        self.ios += record.ios;
                    }
                    // A retry succeeded.
                    (true, Some(at)) if !fails => {
                        self.failures.remove(&record.point);
                        self.places[at] = place;
                        self.ios += record.ios;
                    }
                    (true, _) => {}
                }
            }
            None if line.is_none() => self.damaged.push(format!("{}: line {number} is cut short", path.display())),
            None => self.damaged.push(format!("{}: line {number} is damaged", path.display())),
        }
    }

    /// Number of points that failed.
    pub fn failed(&self) -> u64 {
        self.failures.len() as u64
    }

    /// Marks failed points as missing, so that they are made again.
    pub fn retry_failed(&mut self) {
        for point in self.failures.keys() {
            self.done.set(*point as usize, false);
        }
    }

    /// Puts records in the order of their points.
    pub(crate) fn sort(&mut self) {
        self.places.sort_unstable();
    }

    /// Points that have a record.
    pub fn count(&self) -> u64 {
        self.places.len() as u64
    }
}
