// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that several commands share.

use super::live::LiveOptions;
use crate::inputs::is_stdin;
use clap::Args;
use readpath_session::running::TapFrom;
use std::path::PathBuf;

/// Options of every command that simulates.
#[derive(Args, Clone, Debug)]
pub struct Basics {
    /// Print the result document as JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Folder for result.json and report.html
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the rows of the result document as CSV; - for standard output, instead of a table
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

impl Basics {
    /// Whether standard output is for people: neither JSON nor CSV.
    pub fn prints_tables(&self) -> bool {
        !self.json && !self.prints_csv()
    }

    /// Whether the rows go to standard output as CSV.
    pub fn prints_csv(&self) -> bool {
        self.csv.as_deref().is_some_and(is_stdin)
    }
}

/// The same, and options of commands that can show single runs.
#[derive(Args, Debug)]
pub struct Common {
    #[command(flatten)]
    pub basics: Basics,
    /// Record the stages and UPIUs of every request of one run (choose it with --case and --variant) to FILE, for
    /// Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace_io: Option<PathBuf>,
    /// Where --trace-io begins: after so many requests, or at a time of the run such as 250ms [default: at the start]
    #[arg(long, value_name = "N|TIME", requires = "trace_io", value_parser = trace_from)]
    pub trace_io_from: Option<TapFrom>,
    /// Record at most N requests
    #[arg(long, value_name = "N", default_value_t = readpath_session::running::TRACE_IO_LIMIT)]
    pub trace_io_limit: u64,
    #[command(flatten)]
    pub live: LiveOptions,
}

fn trace_from(text: &str) -> Result<TapFrom, String> {
    match text.parse() {
        Ok(requests) => Ok(TapFrom::Request(requests)),
        Err(_) => readpath_session::config::time(text).map(TapFrom::Time),
    }
}

impl Common {
    /// Which requests --trace-io records.
    pub fn recorded(&self) -> Recorded {
        Recorded { from: self.trace_io_from, limit: self.trace_io_limit }
    }
}

/// Which requests of a run are recorded.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// The first.
    pub from: Option<TapFrom>,
    /// How many at most.
    pub limit: u64,
}
