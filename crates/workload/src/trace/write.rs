// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces written: our own table, which keeps everything, and fio's I/O log, which other programs replay. Knows where
//! bytes go only as a `Write`.

use super::formats::columns::OWN_HEADER;
use super::{Reason, Request, TraceError};
use crate::IoKind;
use readpath_kit::Ns;
use std::fmt;
use std::io::{self, BufWriter, Write};

/// Writes rows, and names the file when that fails.
struct Out<W: Write> {
    file: String,
    inner: BufWriter<W>,
}

impl<W: Write> Out<W> {
    fn new(file: &str, inner: W) -> Self {
        Out { file: file.into(), inner: BufWriter::with_capacity(64 << 10, inner) }
    }

    fn row(&mut self, row: fmt::Arguments) -> Result<(), TraceError> {
        writeln!(self.inner, "{row}").map_err(|e| failed(&self.file, &e))
    }

    fn finish(self) -> Result<W, TraceError> {
        let inner = self.inner.into_inner().map_err(|e| e.into_error());
        inner.and_then(|mut inner| inner.flush().map(|()| inner)).map_err(|e| failed(&self.file, &e))
    }
}

fn failed(file: &str, e: &io::Error) -> TraceError {
    TraceError::of_file(file, Reason::Io, format!("cannot be written: {e}"))
}

/// Writes the table `time_ns,op,offset_bytes,size_bytes,process,latency_ns`, which the reader recognises. Operations
/// are R, W, D and F; `WF` is a write with force unit access, `FW` one with a flush before it.
pub struct CsvWriter<W: Write> {
    out: Out<W>,
}

impl<W: Write> CsvWriter<W> {
    /// Begins the table; `file` is named in errors.
    pub fn new(file: &str, inner: W) -> Result<Self, TraceError> {
        let mut out = Out::new(file, inner);
        out.row(format_args!("{OWN_HEADER}"))?;
        Ok(CsvWriter { out })
    }

    /// Adds a request.
    pub fn write(&mut self, r: &Request) -> Result<(), TraceError> {
        let letters = r.letters();
        let Request { time: Ns(time), offset, bytes, .. } = *r;
        let process = r.process.map_or_else(String::new, |process| process.to_string());
        let latency = r.latency.map_or_else(String::new, |latency| latency.0.to_string());
        self.out.row(format_args!("{time},{letters},{offset},{bytes},{process},{latency}"))
    }

    /// Ends the table.
    pub fn finish(self) -> Result<W, TraceError> {
        self.out.finish()
    }
}

/// Writes a fio I/O log of version 3, which needs fio 3.31 or newer. Times are cut to whole microseconds; processes,
/// latencies, force unit access and flushes before writes have no place in it.
pub struct FioWriter<W: Write> {
    out: Out<W>,
    target: String,
    last_us: u64,
    /// Requests that lost force unit access or the flush before them.
    lost_flags: u64,
}

impl<W: Write> FioWriter<W> {
    /// Begins the log of requests to the file or device `target`; `file` is named in errors.
    ///
    /// # Errors
    /// A target that is empty or has blanks, which the format cannot hold; when writing fails.
    pub fn new(file: &str, inner: W, target: &str) -> Result<Self, TraceError> {
        if target.is_empty() || target.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let message = format!("a file of a fio log has a name without blanks, not \"{}\"", target.escape_debug());
            return Err(TraceError::of_file(file, Reason::Options, message));
        }
        let mut writer = FioWriter { out: Out::new(file, inner), target: target.into(), last_us: 0, lost_flags: 0 };
        writer.out.row(format_args!("fio version 3 iolog"))?;
        writer.manage("add")?;
        writer.manage("open")?;
        Ok(writer)
    }

    fn manage(&mut self, action: &str) -> Result<(), TraceError> {
        self.out.row(format_args!("{} {} {action}", self.last_us, self.target))
    }

    /// Adds a request.
    pub fn write(&mut self, r: &Request) -> Result<(), TraceError> {
        self.lost_flags += u64::from(r.fua || r.preflush);
        self.last_us = r.time.0 / 1000;
        let action = match r.kind {
            IoKind::Read => "read",
            IoKind::Write => "write",
            IoKind::Trim => "trim",
            IoKind::Flush => "sync",
        };
        self.out.row(format_args!("{} {} {action} {} {}", self.last_us, self.target, r.offset, r.bytes))
    }

    /// Requests so far that lost force unit access or the flush before them.
    pub fn lost_flags(&self) -> u64 {
        self.lost_flags
    }

    /// Ends the log.
    pub fn finish(mut self) -> Result<W, TraceError> {
        self.manage("close")?;
        self.out.finish()
    }
}
