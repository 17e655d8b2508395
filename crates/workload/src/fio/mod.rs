// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio job files made into workloads. This part knows fio's job format and the meaning of its options (fio HOWTO); it
//! opens no file itself: the caller hands in the text and a way to load what the text includes.

mod arguments;
mod job;
mod layout;
mod lexer;
mod lists;
mod notes;
mod options;
mod settings;
mod value;
mod zoned;

use std::path::Path;
use std::{fmt, io};

use crate::{Workload, ZonedUnit};

pub use arguments::{ArgumentError, Typed, defaults, of_arguments};
pub use options::reference;

/// The name of a text that [`of_arguments`] or [`defaults`] made: errors name the option instead of file and line.
pub const TYPED: &str = "--";

/// An error in a job file, with its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct JobError {
    /// File as the caller or the `include` line named it.
    pub file: String,
    /// Line, from 1; 0 when the file as a whole is meant.
    pub line: u32,
    /// The option, when one is to blame.
    pub key: Option<String>,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// What the meaning of a job file depends on besides its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context<'a> {
    /// Blocks of 4 KiB on each logical unit, at least one. Of several, `/dev/sda` means all of the first, `/dev/sdb` of
    /// the second, and so on; where there is one, every name that begins with `/dev/` means all of it.
    pub unit_blocks: &'a [u32],
    /// The zones of each unit; what is behind the end has none. Jobs must know of them to write.
    pub zones: &'a [Option<ZonedUnit>],
    /// Seed of jobs without `randseed`.
    pub seed: u64,
    /// Options that every job gets, whatever its file says of them.
    pub options: &'a [(String, String)],
    /// Options typed beside the job file ([`defaults`]): for jobs whose file says nothing of them. Empty for none.
    pub defaults: &'a str,
}

/// Makes a workload of the job file at `path`, which `load` reads, as it does every included file.
///
/// # Errors
/// The file and line of the first thing that is unknown, not modelled, out of range or beyond the device.
pub fn parse_file(path: &Path, load: &dyn Fn(&Path) -> io::Result<String>, cx: &Context) -> Result<Workload, JobError> {
    let file = path.display().to_string();
    match load(path) {
        Ok(text) => parse(&file, &text, load, cx),
        Err(e) => Err(JobError { file, line: 0, key: None, message: format!("cannot be read: {e}") }),
    }
}

/// Makes a workload of the text of a job file called `file`; `load` reads the files that it includes, named relative to
/// the including file's directory, or else as written. `${NAME}` is to it a variable of the environment.
pub fn parse(
    file: &str,
    text: &str,
    load: &dyn Fn(&Path) -> io::Result<String>,
    cx: &Context,
) -> Result<Workload, JobError> {
    let mut sections = lexer::read(TYPED, cx.defaults, load)?;
    sections.extend(lexer::read(file, text, load)?);
    lexer::add(&mut sections, cx.options);
    let mut notes = notes::Notes::default();
    let jobs = job::resolve(file, sections, &mut notes)?;
    layout::build(file, jobs, notes, cx)
}
