// SPDX-License-Identifier: MIT OR Apache-2.0
//! Outcomes in a file, one a line, so that an interrupted search goes on where it was. An outcome belongs to the
//! content of a state, so it counts for every state that is equal.

use crate::check::{Outcome, Ran};
use crate::error::CrashError;
use crate::log::Digest;
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const SCHEMA: &str = "readpath-crash/1";

/// See the module.
pub struct Kept {
    file: Mutex<File>,
    path: PathBuf,
    known: HashMap<Digest, Ran>,
}

impl Kept {
    /// Opens the file of a search for `of`, a digest of all that outcomes depend on, or makes it.
    ///
    /// # Errors
    /// It cannot be used, is in use, or is of another search.
    pub fn open(path: &Path, of: &str) -> Result<Kept, CrashError> {
        let wrong = |what: String| CrashError::Kept { path: path.to_owned(), what };
        let io = |error: std::io::Error| wrong(error.to_string());
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = opened.map_err(io)?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|_| wrong("another search uses it".to_owned()))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        // A line without its end was cut off when the search was killed.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        let text = std::str::from_utf8(&bytes[..whole]).map_err(|_| wrong("is not text".to_owned()))?;
        let mut lines = text.lines().zip(1..);
        match lines.next() {
            None => {
                let head = json!({"schema": SCHEMA, "of": of});
                writeln!(file, "{head}").map_err(io)?;
            }
            Some((line, _)) => {
                let head: Value = serde_json::from_str(line).unwrap_or_default();
                if head["schema"] != SCHEMA {
                    return Err(wrong("keeps no outcomes of 'readpath crash'".to_owned()));
                }
                if head["of"] != of {
                    let what = "keeps outcomes of another recording, image or CHECK: choose another folder";
                    return Err(wrong(what.to_owned()));
                }
            }
        }
        let mut known = HashMap::new();
        for (line, number) in lines {
            let outcome = parsed(line).ok_or_else(|| wrong(format!("line {number} is no outcome")))?;
            known.insert(outcome.0, outcome.1);
        }
        Ok(Kept { file: Mutex::new(file), path: path.to_owned(), known })
    }

    /// Outcomes that were known when the file was opened.
    pub fn known(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn get(&self, state: Digest) -> Option<&Ran> {
        self.known.get(&state)
    }

    pub(crate) fn add(&self, state: Digest, ran: &Ran) -> Result<(), CrashError> {
        let (how, number) = match ran.outcome {
            Outcome::Survived => ("survived", 0),
            Outcome::Status(status) => ("status", status),
            Outcome::Signal(signal) => ("signal", signal),
            Outcome::TimedOut => ("time", 0),
        };
        let mut line = json!({"state": format!("{state:032x}"), "how": how, "number": number});
        if ran.outcome != Outcome::Survived {
            line["said"] = ran.said.clone().into();
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let wrong = |error: std::io::Error| {
            let what = format!("{error}; the outcomes so far are kept: with more space the same command goes on");
            CrashError::Kept { path: self.path.clone(), what }
        };
        let end = file.stream_position().map_err(wrong)?;
        file.write_all(format!("{line}\n").as_bytes()).map_err(|error| {
            // Another worker may find space again, and must not continue a line that is cut off.
            let cut = file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end)));
            wrong(cut.err().unwrap_or(error))
        })
    }
}

fn parsed(line: &str) -> Option<(Digest, Ran)> {
    let line: Value = serde_json::from_str(line).ok()?;
    let state = Digest::from_str_radix(line["state"].as_str()?, 16).ok()?;
    let number = i32::try_from(line["number"].as_i64()?).ok()?;
    let outcome = match line["how"].as_str()? {
        "survived" => Outcome::Survived,
        "status" => Outcome::Status(number),
        "signal" => Outcome::Signal(number),
        "time" => Outcome::TimedOut,
        _ => return None,
    };
    let said = line["said"].as_str().unwrap_or_default().to_owned();
    Some((state, Ran { outcome, said }))
}
