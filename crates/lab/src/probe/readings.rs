// SPDX-License-Identifier: MIT OR Apache-2.0
//! What fio printed with `--output-format=json+`, checked against the plan: only a job that did what was planned, and
//! all of it, is a measurement. It opens no file and simulates nothing.

use super::plan::{Job, Plan};
use crate::fit::{Access, Stretch};
use serde_json::{Map, Value};
use std::fmt;
use thiserror::Error;

/// An error in a file of results.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub struct ReadingError {
    /// The file as it was named.
    pub file: String,
    /// Where in its document, such as `jobs[3].read.iops`; empty for the whole file.
    pub place: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for ReadingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)
    }
}

/// What a job measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reading {
    /// Index of the job in its plan.
    pub job: usize,
    /// MiB/s.
    pub throughput_mib_s: f64,
    /// Standard error of the throughput as a share of it, from fio's samples; 0 if it took fewer than two.
    pub scatter: f64,
    /// Mean latency from submission to end, us.
    pub mean_us: f64,
    /// Median of the latency from the end of submission on, us.
    pub p50_us: f64,
    /// 99th percentile of the latency, us.
    pub p99_us: f64,
}

/// No rate, amount or time of a job is more: that would be a petabyte, or eleven days for a request.
const MOST: f64 = 1e15;

/// A part of the document and its place in it.
struct At<'a> {
    file: &'a str,
    place: String,
    value: &'a Value,
}

impl<'a> At<'a> {
    fn error(&self, message: impl Into<String>) -> ReadingError {
        ReadingError { file: self.file.to_owned(), place: self.place.clone(), message: message.into() }
    }

    fn get(&self, key: &str) -> Option<At<'a>> {
        let place = if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) };
        Some(At { file: self.file, place, value: self.value.get(key)? })
    }

    fn need(&self, key: &str, what: &str) -> Result<At<'a>, ReadingError> {
        self.get(key).ok_or_else(|| self.error(format!("has no {key:?}; expected {what}")))
    }

    fn number(&self, key: &str) -> Result<f64, ReadingError> {
        let at = self.need(key, "a number")?;
        let number = at.value.as_f64().filter(|x| (0.0..=MOST).contains(x));
        number.ok_or_else(|| at.error(format!("is {}; expected a number from 0 to {MOST:e}", short(at.value))))
    }

    fn object(&self) -> Result<&'a Map<String, Value>, ReadingError> {
        self.value.as_object().ok_or_else(|| self.error(format!("is {}; expected an object", short(self.value))))
    }
}

/// A value as it can be quoted.
fn short(value: &Value) -> String {
    quoted(&value.to_string())
}

fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(60).filter(|c| !c.is_control()).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}

/// What a file of results is.
const DOCUMENT: &str =
    "what fio --output-format=json+ --output=FILE writes, an object with \"fio version\" and \"jobs\"";

/// Reads the results of some of a plan's jobs; `file` is for errors.
///
/// # Errors
/// The first thing that is no result of the plan, or of a job that failed.
pub fn read(text: &str, file: &str, plan: &Plan) -> Result<Vec<Reading>, ReadingError> {
    let whole = |message: String| ReadingError { file: file.to_owned(), place: String::new(), message };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    // fio prints warnings into the same file, before the document.
    let start = if text.starts_with('{') { Some(0) } else { text.find("\n{").map(|at| at + 1) };
    if start != Some(0)
        && let Ok(other) = serde_json::from_str::<Value>(text)
    {
        let what = if other.is_array() { "a list".to_owned() } else { quoted(&other.to_string()) };
        return Err(whole(format!("is {what}; expected {DOCUMENT}")));
    }
    let said = text[..start.unwrap_or(text.len())].lines().find(|line| !line.trim().is_empty());
    if let Some(line) = said {
        return Err(whole(format!(
            "fio says {:?}; expected nothing before its JSON. Mend that and repeat the jobs",
            quoted(line)
        )));
    }
    let text = &text[start.unwrap_or(0)..];
    let document: Value = serde_json::from_str(text).map_err(|e| {
        let behind = key_before(text, &e).map(|key| format!(" behind {:?}", quoted(key))).unwrap_or_default();
        whole(format!("is not JSON{behind}: {e}; expected {DOCUMENT}"))
    })?;
    let top = At { file, place: String::new(), value: &document };
    version(&top)?;
    let none = Value::Null;
    let global = top.get("global options").map_or(&none, |at| at.value);
    let jobs = top.need("jobs", "a list of jobs")?;
    let list = jobs.value.as_array().filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| jobs.error("is no list of jobs; expected one job at least"))?;
    let at = |(i, value)| At { file, place: format!("jobs[{i}]"), value };
    let mut readings: Vec<Reading> = Vec::new();
    for job in list.iter().enumerate().map(at) {
        let reading = reading(&job, global, plan)?;
        if readings.iter().any(|r| r.job == reading.job) {
            return Err(job.error(format!("is another job {:?}; expected each once", plan.jobs[reading.job].name)));
        }
        readings.push(reading);
    }
    Ok(readings)
}

/// The key on the line of an error whose value is wrong, such as a nan, which fio prints as it is.
fn key_before<'a>(text: &'a str, error: &serde_json::Error) -> Option<&'a str> {
    let line = text.lines().nth(error.line().checked_sub(1)?)?;
    let (key, _) = line.get(..error.column())?.rsplit_once(':')?;
    Some(key.trim_end().strip_suffix('"')?.rsplit_once('"')?.1)
}

/// fio 3 counts latencies in nanoseconds; before that they were microseconds.
fn version(top: &At) -> Result<(), ReadingError> {
    let at = top.need("fio version", DOCUMENT)?;
    let version = at.value.as_str().and_then(|v| v.strip_prefix("fio-"));
    let major = version.and_then(|v| v.split(['.', '-']).next()).and_then(|v| v.parse::<u32>().ok());
    if major == Some(3) {
        return Ok(());
    }
    Err(at.error(format!("is {}; expected fio-3, whose latencies are in nanoseconds", short(at.value))))
}

fn reading(at: &At, global: &Value, plan: &Plan) -> Result<Reading, ReadingError> {
    let name_at = at.need("jobname", "the name of a job")?;
    let known = |name: &str| plan.jobs.iter().position(|job| job.name == name);
    let Some(number) = name_at.value.as_str().and_then(known) else {
        return Err(name_at.error(format!("is {}, which is no job of the plan", short(name_at.value))));
    };
    let job = &plan.jobs[number];
    let at = At { file: at.file, place: format!("{} ({})", at.place, job.name), value: at.value };
    let error = at.number("error")?;
    if error != 0.0 {
        return Err(at.error(format!("failed with error {error}; expected error 0. Mend that and repeat the job")));
    }
    options(&at, global, plan, job)?;
    let kind = if job.setting.writes() { "write" } else { "read" };
    let direction = at.need(kind, "what was measured")?;
    let (ios, bytes) = (direction.number("total_ios")?, direction.number("io_bytes")?);
    if ios == 0.0 {
        return Err(direction.error("has no requests (total_ios is 0); repeat the job"));
    }
    let runtime = direction.number("runtime")?;
    complete(&direction, plan, job, runtime, bytes)?;
    let rate = direction.number("bw_bytes")?;
    if rate == 0.0 {
        return Err(direction.error("has no throughput (bw_bytes is 0); expected some"));
    }
    let moved = bytes * 1e3 / runtime.max(1.0);
    if (rate / moved - 1.0).abs() > 0.01 {
        return Err(direction.error(format!(
            "has a throughput (bw_bytes) of {rate:e}, but io_bytes and runtime come to {moved:e}; expected the same"
        )));
    }
    let samples = direction.number("iops_samples")?;
    let (mean, deviation) = (direction.number("iops_mean")?, direction.number("iops_stddev")?);
    let scatter = if samples >= 2.0 && mean > 0.0 { deviation / mean / samples.sqrt() } else { 0.0 };
    let [p50_us, p99_us] = percentiles(&direction)?;
    Ok(Reading {
        job: number,
        throughput_mib_s: rate / f64::from(1 << 20),
        scatter,
        mean_us: direction.need("lat_ns", "latencies")?.number("mean")? / 1e3,
        p50_us,
        p99_us,
    })
}

/// Whether the job ran as long, or moved as much, as was planned.
fn complete(direction: &At, plan: &Plan, job: &Job, runtime: f64, bytes: f64) -> Result<(), ReadingError> {
    let setting = &job.setting;
    let blocks = match setting.access {
        Access::RandomRead => {
            let planned = f64::from(plan.seconds) * 1e3;
            if runtime >= 0.9 * planned {
                return Ok(());
            }
            return Err(direction.error(format!(
                "ran for {runtime} ms of {planned}; expected all of it. fio was stopped; repeat the job"
            )));
        }
        Access::RandomWrites(n) => u64::from(n) * u64::from(setting.block_count),
        Access::SequentialWrite(Stretch { parts, .. }) => u64::from(setting.range_blocks / u32::from(parts)),
    };
    let planned = (blocks * 4096) as f64;
    if bytes == planned {
        return Ok(());
    }
    Err(direction.error(format!("moved {bytes} bytes (io_bytes); expected {planned}. Repeat the job")))
}

/// Options of a whole job file, and those that place a job in it.
const OF_FILE: [&str; 6] = ["name", "filename", "allow_file_create", "direct", "ioengine", "stonewall"];

/// Checks that fio ran the job that was planned.
fn options(at: &At, global: &Value, plan: &Plan, job: &Job) -> Result<(), ReadingError> {
    let own = at.get("job options");
    let typed = |key: &str| {
        let own = own.as_ref().and_then(|own| own.value.get(key));
        own.or_else(|| global.get(key)).and_then(Value::as_str)
    };
    let wrong = |key: &str, wanted: &str| {
        let place = own.as_ref().unwrap_or(at);
        let found = typed(key).map_or("is missing".to_owned(), |found| format!("is {:?}", quoted(found)));
        Err(place.error(format!("{key} {found}; expected {wanted:?}, as planned")))
    };
    let planned = plan.options(job);
    let named = |key: &str| planned.iter().any(|(planned, _)| *planned == key) || OF_FILE.contains(&key);
    let typed_keys =
        own.iter().map(|own| own.value).chain([global]).filter_map(Value::as_object).flat_map(|o| o.keys());
    if let Some(key) = typed_keys.into_iter().find(|key| !named(key)) {
        let place = own.as_ref().unwrap_or(at);
        return Err(place.error(format!("{} is no option of the plan; expected its jobs as they are", quoted(key))));
    }
    for (key, wanted) in planned {
        // Options without a value are not printed; times show in the results.
        if wanted.is_empty() || matches!(key, "ramp_time" | "runtime") {
            continue;
        }
        let same = match key {
            "rw" => typed(key) == Some(&*wanted),
            _ => typed(key).and_then(amount).is_some_and(|found| Some(found) == amount(&wanted)),
        };
        if !same {
            return wrong(key, &wanted);
        }
    }
    if typed("filename") != Some(&*plan.target) {
        return wrong("filename", &plan.target);
    }
    for (key, wanted) in [("direct", "1"), ("ioengine", "libaio")] {
        if typed(key) != Some(wanted) {
            return wrong(key, wanted);
        }
    }
    Ok(())
}

/// A number of fio's with its unit, in powers of 1024.
fn amount(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor: u64 = match text[digits.len()..].trim_end_matches("ib").trim_end_matches('b') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Median and 99th percentile from the histogram, which only json+ has.
fn percentiles(direction: &At) -> Result<[f64; 2], ReadingError> {
    let clat = direction.need("clat_ns", "latencies in nanoseconds, as fio 3 counts them")?;
    let bins_at = clat.need("bins", "the histogram of latencies: run fio with --output-format=json+")?;
    let mut bins: Vec<(u64, u64)> = Vec::new();
    for (key, value) in bins_at.object()? {
        match (key.parse(), value.as_u64()) {
            (Ok(ns), Some(n)) if ns as f64 <= MOST => bins.push((ns, n)),
            _ => {
                return Err(bins_at.error(format!(
                    "has {:?}: {}; expected nanoseconds and a count",
                    quoted(key),
                    short(value)
                )));
            }
        }
    }
    bins.sort_unstable();
    let sum = bins.iter().fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
    // Not total_ios: that leaves out requests that were in flight when the ramp ended.
    let n = clat.number("N")?;
    if sum as f64 != n || sum == 0 {
        return Err(bins_at.error(format!("count {sum} requests, but N is {n}; expected as many")));
    }
    let rank = |percent: u128| {
        let rank = (u128::from(sum) * percent).div_ceil(100);
        let mut seen = 0u128;
        let bin = bins.iter().find(|(_, n)| {
            seen += u128::from(*n);
            seen >= rank
        });
        bin.map_or(0.0, |(ns, _)| *ns as f64 / 1e3)
    };
    Ok([rank(50), rank(99)])
}
