// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces as they are read: opened as the caller says, and as columns of numbers.

use crate::failure::Failure;
use pyo3::{FromPyObject, IntoPyObject};
use readpath_kit::Ns;
use readpath_lab::experiment::Shared;
use readpath_workload::trace::{Devices, Options, Reader, Request, TraceError, Within};
use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Requests read at a time.
pub const BATCH: usize = 4096;
/// Bytes for what a request does: `FWF` is the longest.
const OP_BYTES: usize = 3;

/// How a trace is read, as the options of the command say it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Reading {
    format: Option<String>,
    columns: Option<String>,
    object_bytes: Option<u32>,
    trace_device: Option<String>,
    merge_devices: bool,
    lenient: bool,
}

/// Requests of a trace, a column each of numbers as they lie in memory.
#[derive(IntoPyObject)]
pub struct Requests {
    format: &'static str,
    notes: Vec<String>,
    /// 64-bit integers.
    time_ns: Cow<'static, [u8]>,
    /// Letters, [`OP_BYTES`] each.
    op: Cow<'static, [u8]>,
    /// 64-bit integers.
    offset_bytes: Cow<'static, [u8]>,
    /// 64-bit integers.
    size_bytes: Cow<'static, [u8]>,
    /// 64-bit integers; -1 where the trace tells none.
    process: Cow<'static, [u8]>,
    /// 64-bit floating-point numbers; NaN where the trace tells none.
    latency_ns: Cow<'static, [u8]>,
}

impl Reading {
    /// Opens a trace, for a device if it is known. It stops when `shared` says so.
    pub fn open(&self, path: &Path, within: Option<Within>, shared: &Shared) -> Result<Reader, Failure> {
        let name = path.display().to_string();
        let options = Options::of_words(self.format.as_deref(), self.columns.as_deref()).map_err(Failure::Wrong)?;
        let devices = match (&self.trace_device, self.merge_devices) {
            (Some(_), true) => {
                return Err(Failure::Wrong("trace_device and merge_devices contradict each other".into()));
            }
            (Some(name), false) => Devices::Named(name.clone()),
            (None, true) => Devices::Merge,
            (None, false) => Devices::Single,
        };
        let (object_bytes, lenient) = (self.object_bytes, self.lenient);
        let options = Options { devices, object_bytes, lenient, within, ..options };
        let file = File::open(path).map_err(|e| Failure::Wrong(format!("{name}: cannot be read: {e}")))?;
        let mut reader = Reader::new(&name, Box::new(file), &options).map_err(|e| wrong(&e, shared))?;
        reader.stop_when(shared.stop.clone());
        Ok(reader)
    }
}

/// The error of a trace, unless it is that somebody wants it to end.
pub fn wrong(error: &TraceError, shared: &Shared) -> Failure {
    if shared.stop.load(Ordering::Relaxed) { Failure::Interrupted } else { Failure::of(error) }
}

fn beyond(path: &Path) -> Failure {
    Failure::Wrong(format!("{}: has a number beyond 2^63 - 1", path.display()))
}

/// Reads requests, `most` of them if it is given.
pub fn requests(path: &Path, how: &Reading, most: Option<u64>, shared: &Shared) -> Result<Requests, Failure> {
    let mut reader = how.open(path, None, shared)?;
    let mut left = most.unwrap_or(u64::MAX);
    let mut batch = vec![Request::NONE; BATCH];
    let [mut time, mut op, mut offset, mut size, mut process, mut latency] = [const { Vec::<u8>::new() }; 6];
    while left > 0 {
        let wanted = left.min(BATCH as u64) as usize;
        let n = reader.fill(&mut batch[..wanted]).map_err(|e| wrong(&e, shared))?;
        for request in &batch[..n] {
            let signed = |value: u64| i64::try_from(value).map(i64::to_ne_bytes).map_err(|_| beyond(path));
            time.extend(signed(request.time.0)?);
            let letters = request.letters().as_bytes();
            op.extend((0..OP_BYTES).map(|i| letters.get(i).copied().unwrap_or(0)));
            offset.extend(signed(request.offset)?);
            size.extend(signed(request.bytes)?);
            process.extend(request.process.map_or(-1, i64::from).to_ne_bytes());
            latency.extend(request.latency.map_or(f64::NAN, |Ns(ns)| ns as f64).to_ne_bytes());
        }
        left -= n as u64;
        if n < wanted {
            break;
        }
    }
    let name = path.display().to_string();
    let coarse = reader.coarse_times(&name, "spread_ties of replay() spreads them");
    Ok(Requests {
        format: reader.format().name(),
        notes: coarse.into_iter().chain(reader.notes(&name)).collect(),
        time_ns: time.into(),
        op: op.into(),
        offset_bytes: offset.into(),
        size_bytes: size.into(),
        process: process.into(),
        latency_ns: latency.into(),
    })
}
