// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces written: our own table, which keeps everything, and fio's I/O log, which other programs replay. Knows where
//! bytes go only as a `Write`.

use super::formats::columns::OWN_HEADER;
use super::{Reason, Request, TraceError};
use crate::IoKind;
use std::io::{self, Write};

/// Bytes collected before they are written.
const BUFFER: usize = 64 << 10;

/// A buffer in front of a `Write`, with numbers.
struct Out<W> {
    file: String,
    inner: W,
    buffer: Vec<u8>,
}

impl<W: Write> Out<W> {
    fn new(file: &str, inner: W) -> Self {
        Out { file: file.into(), inner, buffer: Vec::with_capacity(BUFFER + 1024) }
    }

    fn text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    fn number(&mut self, mut n: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
            if n == 0 {
                break;
            }
        }
        self.buffer.extend_from_slice(&digits[at..]);
    }

    fn failed(&self, e: &io::Error) -> TraceError {
        TraceError::of_file(&self.file, Reason::Io, format!("cannot be written: {e}"))
    }

    fn end_row(&mut self) -> Result<(), TraceError> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        self.inner.write_all(&self.buffer).map_err(|e| self.failed(&e))?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<W, TraceError> {
        self.flush()?;
        self.inner.flush().map_err(|e| self.failed(&e))?;
        Ok(self.inner)
    }
}

/// Writes the table `time_ns,op,offset_bytes,size_bytes,process,latency_ns`, which the reader recognises. Operations
/// are R, W, D and F; `WF` is a write with force unit access, `FW` one with a flush before it.
pub struct CsvWriter<W: Write> {
    out: Out<W>,
}

impl<W: Write> CsvWriter<W> {
    /// Begins the table; `file` is named in errors.
    ///
    /// # Errors
    /// When writing fails.
    pub fn new(file: &str, inner: W) -> Result<Self, TraceError> {
        let mut out = Out::new(file, inner);
        out.text(OWN_HEADER);
        out.end_row()?;
        Ok(CsvWriter { out })
    }

    /// Adds a request.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&mut self, r: &Request) -> Result<(), TraceError> {
        let out = &mut self.out;
        out.number(r.time.0);
        out.text(match (r.kind, r.preflush, r.fua) {
            (IoKind::Read, ..) => ",R,",
            (IoKind::Write, false, false) => ",W,",
            (IoKind::Write, false, true) => ",WF,",
            (IoKind::Write, true, false) => ",FW,",
            (IoKind::Write, true, true) => ",FWF,",
            (IoKind::Trim, ..) => ",D,",
            (IoKind::Flush, ..) => ",F,",
        });
        out.number(r.offset);
        out.text(",");
        out.number(r.bytes);
        out.text(",");
        if let Some(process) = r.process {
            out.number(u64::from(process));
        }
        out.text(",");
        if let Some(latency) = r.latency {
            out.number(latency.0);
        }
        out.end_row()
    }

    /// Ends the table.
    ///
    /// # Errors
    /// When writing fails.
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
        writer.out.text("fio version 3 iolog");
        writer.out.end_row()?;
        writer.manage("add")?;
        writer.manage("open")?;
        Ok(writer)
    }

    fn manage(&mut self, action: &str) -> Result<(), TraceError> {
        self.row(self.last_us, action);
        self.out.end_row()
    }

    fn row(&mut self, time_us: u64, action: &str) {
        self.out.number(time_us);
        self.out.text(" ");
        self.out.text(&self.target);
        self.out.text(" ");
        self.out.text(action);
    }

    /// Adds a request.
    ///
    /// # Errors
    /// When writing fails.
    pub fn write(&mut self, r: &Request) -> Result<(), TraceError> {
        self.lost_flags += u64::from(r.fua || r.preflush);
        self.last_us = r.time.0 / 1000;
        let action = match r.kind {
            IoKind::Read => "read ",
            IoKind::Write => "write ",
            IoKind::Trim => "trim ",
            IoKind::Flush => "sync ",
        };
        self.row(self.last_us, action);
        self.out.number(r.offset);
        self.out.text(" ");
        self.out.number(r.bytes);
        self.out.end_row()
    }

    /// Requests so far that lost force unit access or the flush before them.
    pub fn lost_flags(&self) -> u64 {
        self.lost_flags
    }

    /// Ends the log.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(mut self) -> Result<W, TraceError> {
        self.manage("close")?;
        self.out.finish()
    }
}
