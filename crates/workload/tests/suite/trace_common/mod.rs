// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of traces share: short ways to read a trace that lies in memory.

use readpath_kit::Ns;
use readpath_workload::IoKind;
use readpath_workload::trace::{Options, Reader, Request, Summary, TraceError};
use std::io::Cursor;

pub fn open(bytes: impl Into<Vec<u8>>, options: &Options) -> Result<Reader, TraceError> {
    Reader::new("t", Box::new(Cursor::new(bytes.into())), options)
}

pub fn read_with(bytes: impl Into<Vec<u8>>, options: &Options) -> Result<(Vec<Request>, Summary), TraceError> {
    let mut reader = open(bytes, options)?;
    let mut all = Vec::new();
    let mut batch = [Request::NONE; 7];
    loop {
        match reader.fill(&mut batch)? {
            0 => return Ok((all, reader.summary().clone())),
            n => all.extend_from_slice(&batch[..n]),
        }
    }
}

pub fn read(bytes: impl Into<Vec<u8>>) -> Result<(Vec<Request>, Summary), TraceError> {
    read_with(bytes, &Options::default())
}

pub fn lenient(bytes: impl Into<Vec<u8>>) -> Result<(Vec<Request>, Summary), TraceError> {
    read_with(bytes, &Options { lenient: true, ..Options::default() })
}

/// The message of a trace that cannot be read.
pub fn fault(bytes: impl Into<Vec<u8>>) -> String {
    read(bytes).expect_err("a fault").to_string()
}

pub fn request(time_ns: u64, kind: IoKind, offset: u64, bytes: u64) -> Request {
    Request { time: Ns(time_ns), kind, offset, bytes, ..Request::NONE }
}
