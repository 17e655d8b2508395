// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables of the records of segments: a row for each point, in order, so that the same points give the same bytes,
//! whichever workers made them.

use crate::error::SweepError;
use crate::folder::Found;
use crate::record::{Outcome, Record, of_line};
use readpath_results::csv_cell;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

const POINTS: &str = "points.csv";
const FAILED: &str = "failed.csv";

/// Temporary files of [`merge()`], to be removed if it is interrupted.
pub fn unfinished(folder: &Path) -> [PathBuf; 2] {
    [POINTS, FAILED].map(|name| part_of(&folder.join(name)))
}

fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".part{}", std::process::id()));
    part.into()
}

/// Tables that were written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merged {
    /// Settings and figures of the points that have any.
    pub points: PathBuf,
    /// Settings of the failed points, and why they failed; none if none did.
    pub failed: Option<PathBuf>,
}

/// Writes `points.csv` and, if any failed, `failed.csv` of what was found into `folder`.
///
/// # Errors
/// When a segment cannot be read again, or a table cannot be written.
pub fn merge(found: &mut Found, folder: &Path) -> Result<Merged, SweepError> {
    found.sort();
    let mut names = Names::default();
    each(found, |record: Record| {
        if let Outcome::Figures(figures) = &record.outcome {
            figures.iter().for_each(|(name, _)| names.add(name));
        }
        Ok(())
    })?;
    let keys: Vec<String> = found.header.iter().flat_map(|header| header.keys.iter().cloned()).collect();
    // The seed has a column of its own.
    let shown: Vec<usize> = (0..keys.len()).filter(|&i| keys[i] != "seed").collect();
    let head = |last: &[String]| {
        let first = ["point".to_owned(), "seed".to_owned()].into_iter();
        first.chain(shown.iter().map(|&i| keys[i].clone())).chain(last.iter().cloned()).collect::<Vec<_>>()
    };
    let settings = |record: &Record| {
        let seed = keys.iter().position(|key| key == "seed").and_then(|i| record.settings.get(i).cloned());
        let first = [
            record.point.to_string(),
            seed.unwrap_or_else(|| record.seed.map_or_else(String::new, |seed| seed.to_string())),
        ]
        .into_iter();
        let values = shown.iter().map(|&i| record.settings.get(i).cloned().unwrap_or_default());
        first.chain(values).collect::<Vec<_>>()
    };
    let mut points = Table::create(folder.join(POINTS))?;
    let mut failed = Table::create(folder.join(FAILED))?;
    points.row(head(&names.list))?;
    failed.row(head(&["error".to_owned()]))?;
    let mut any_failed = false;
    each(found, |record: Record| match &record.outcome {
        Outcome::Figures(figures) => {
            let mut row = settings(&record);
            let first = row.len();
            row.resize(first + names.list.len(), String::new());
            for (name, value) in figures {
                row[first + names.place[name]] = value.to_string();
            }
            points.row(row)
        }
        Outcome::Error(why) => {
            any_failed = true;
            let mut row = settings(&record);
            row.push(why.clone());
            failed.row(row)
        }
    })?;
    let points = points.finish()?;
    let failed = match any_failed {
        true => Some(failed.finish()?),
        // Remove the table of an earlier merge.
        false => {
            fs::remove_file(folder.join(FAILED)).ok();
            None
        }
    };
    Ok(Merged { points, failed })
}

/// Names of figures in order of first occurrence.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    place: HashMap<String, usize>,
}

impl Names {
    fn add(&mut self, name: &str) {
        if !self.place.contains_key(name) {
            self.place.insert(name.to_owned(), self.list.len());
            self.list.push(name.to_owned());
        }
    }
}

/// Records in order of points; `places` has been sorted.
pub(crate) fn each<F: DeserializeOwned>(
    found: &Found,
    mut take: impl FnMut(Record<F>) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    let cannot = |path: &PathBuf, error| SweepError::Io { path: path.clone(), what: "cannot be read", error };
    let open = |path: &PathBuf| File::open(path).map(BufReader::new).map_err(|e| cannot(path, e));
    // Most records follow the one before in the same segment, so a relative seek keeps the buffer.
    let mut files = found.segments.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut line = Vec::new();
    for &(point, segment, offset) in &found.places {
        let (file, path) = (&mut files[segment as usize], &found.segments[segment as usize]);
        let at = file.stream_position().map_err(|e| cannot(path, e))?;
        file.seek_relative(offset as i64 - at as i64).map_err(|e| cannot(path, e))?;
        line.clear();
        file.read_until(b'\n', &mut line).map_err(|e| cannot(path, e))?;
        match line.strip_suffix(b"\n").and_then(of_line) {
            Some(record) => take(record)?,
            None => {
                let message = format!("the record of point {point} has changed since it was read first");
                return Err(SweepError::Segment { path: path.clone(), message });
            }
        }
    }
    Ok(())
}

/// A table that gets its name once it is complete.
struct Table {
    path: PathBuf,
    part: PathBuf,
    file: Option<BufWriter<File>>,
}

impl Table {
    fn create(path: PathBuf) -> Result<Table, SweepError> {
        let part = part_of(&path);
        match File::create(&part) {
            Ok(file) => Ok(Table { path, part, file: Some(BufWriter::new(file)) }),
            Err(error) => Err(SweepError::Io { path, what: "cannot be written", error }),
        }
    }

    fn row(&mut self, cells: Vec<String>) -> Result<(), SweepError> {
        let line = cells.iter().map(|cell| csv_cell(cell)).collect::<Vec<_>>().join(",");
        let Some(file) = &mut self.file else { return Ok(()) };
        writeln!(file, "{line}").map_err(|e| self.cannot(e))
    }

    fn finish(mut self) -> Result<PathBuf, SweepError> {
        let named = match self.file.take().map(BufWriter::into_inner) {
            Some(Ok(file)) => file.sync_all().and_then(|()| fs::rename(&self.part, &self.path)),
            Some(Err(e)) => Err(e.into_error()),
            None => Ok(()),
        };
        named.map_err(|e| self.cannot(e))?;
        Ok(self.path.clone())
    }

    fn cannot(&self, error: io::Error) -> SweepError {
        SweepError::Io { path: self.path.clone(), what: "cannot be written", error }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        fs::remove_file(&self.part).ok();
    }
}
