// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces as they are read: opened as the caller says, and as columns of numbers.

use anyhow::{Result, anyhow};
use pyo3::{FromPyObject, IntoPyObject};
use readpath_session::args::TraceInput;
use readpath_session::device::Ns;
use readpath_session::lab::runs::Shared;
use readpath_session::traces::{self, fill};
use readpath_session::workload::trace::{Reader, Request};
use std::borrow::Cow;
use std::path::Path;

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
    ufs_block_bytes: Option<u32>,
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
    /// 64-bit integers; -1 where the trace has none.
    process: Cow<'static, [u8]>,
    /// 64-bit floating-point numbers; NaN where the trace has none.
    latency_ns: Cow<'static, [u8]>,
}

impl Reading {
    /// As options of the command.
    pub fn input(&self) -> Result<TraceInput> {
        if self.trace_device.is_some() && self.merge_devices {
            return Err(anyhow!("trace_device and merge_devices contradict each other"));
        }
        Ok(TraceInput {
            format: self.format.clone(),
            columns: self.columns.clone(),
            object_bytes: self.object_bytes,
            ufs_block_bytes: self.ufs_block_bytes,
            lenient: self.lenient,
            trace_device: self.trace_device.clone(),
            merge_devices: self.merge_devices,
        })
    }

    /// Opens a trace. It stops when `shared` says so.
    pub fn open(&self, path: &Path, shared: &Shared) -> Result<Reader> {
        Ok(traces::open(path, &traces::options(&self.input()?)?, shared)?.0)
    }
}

fn beyond(path: &Path) -> anyhow::Error {
    anyhow!("{}: has a number beyond 2^63 - 1", path.display())
}

/// Reads requests, `most` of them if it is given.
pub fn requests(path: &Path, how: &Reading, most: Option<u64>, shared: &Shared) -> Result<Requests> {
    let mut reader = how.open(path, shared)?;
    let mut left = most.unwrap_or(u64::MAX);
    let mut batch = vec![Request::NONE; BATCH];
    let [mut time, mut op, mut offset, mut size, mut process, mut latency] = [const { Vec::<u8>::new() }; 6];
    while left > 0 {
        let wanted = left.min(BATCH as u64) as usize;
        let n = fill(&mut reader, &mut batch[..wanted], shared)?;
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
