// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath dev bench`: how many requests a second one core simulates, in the program that users have.

use crate::args::Bench;
use crate::output;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_session::lab::bench::{
    BENCHES, BenchCase, FLAT, IMAGES, LOOKUPS, PARSES, REUSES, STARTS, STEADY, images, lookups, parse, reuse, run,
    start, steady,
};
use readpath_session::results::metric;
use readpath_session::results::{Document, Metric, Origin};
use std::io::{self, StdoutLock, Write};

/// Bytes of a trace for each of `--ios`, about a row, and at most.
const ROW_BYTES: u64 = 64;
const MOST_TRACE_BYTES: u64 = 64 << 20;

/// Names of all benches but those of `--flat`.
fn names() -> Vec<&'static str> {
    listed().map(|(name, _)| name).collect()
}

/// Names and descriptions of the benchmarks, but for `--flat`.
fn listed() -> impl Iterator<Item = (&'static str, &'static str)> {
    let runs = BENCHES.iter().chain(STEADY.iter().map(|s| &s.bench)).map(|b| (b.name, b.what));
    let parts = PARSES.iter().map(|p| (p.name, p.what)).chain(REUSES.iter().map(|r| (r.name, r.what)));
    let parts = parts.chain(LOOKUPS.iter().map(|l| (l.name, l.what)));
    let starts = IMAGES.iter().map(|i| (i.name, i.what)).chain(STARTS.iter().map(|s| (s.name, s.what)));
    runs.chain(parts).chain(starts)
}

/// What `--help` says below the options.
pub fn list() -> String {
    let line = |(name, what): (&str, &str)| format!("  {name:<16} {what}\n");
    let benches: String = listed().map(line).collect();
    let flat: String = FLAT.iter().map(|b| line((b.name, b.what))).collect();
    format!("Benches:\n{benches}\nWith --flat:\n{}", flat.trim_end())
}

pub fn main(args: &Bench) -> Result<()> {
    if args.flat {
        return flat(args);
    }
    let mut shown = Shown::new(args, "bench", "Simulated requests per second of CPU time, one core", 5);
    if !names().into_iter().any(|name| is_wanted(args, name)) {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(usage(anyhow!("no bench has '{filter}' in its name; there are: {}", names().join(", "))));
    }
    let ios = args.ios.unwrap_or(4_000_000);
    requests(&mut shown, ios)?;
    steady_requests(&mut shown, ios)?;
    parses(&mut shown, ios)?;
    curves(&mut shown, ios)?;
    lookups_in_caches(&mut shown, ios)?;
    images_and_starts(&mut shown)?;
    shown.end()
}

fn is_wanted(args: &Bench, name: &str) -> bool {
    args.filter.as_ref().is_none_or(|filter| name.contains(filter))
}

/// What has been measured, and where it is shown.
struct Shown<'a> {
    args: &'a Bench,
    doc: Document,
    out: StdoutLock<'static>,
    repeat: u32,
}

impl<'a> Shown<'a> {
    fn new(args: &'a Bench, experiment: &str, title: &str, repeat: u32) -> Self {
        let doc = Document::new(experiment, title);
        Self { args, doc, out: io::stdout().lock(), repeat: args.repeat.unwrap_or(repeat) }
    }

    /// A line of text, unless JSON was asked for.
    fn line(&mut self, text: std::fmt::Arguments<'_>) -> Result<()> {
        if !self.args.json {
            writeln!(self.out, "{text}")?;
        }
        Ok(())
    }

    fn measured(&mut self, name: &str, figures: [(Metric, f64); 2]) -> Result<()> {
        for (metric, value) in figures {
            self.doc.row(name, "", metric, value, Origin::Measured)?;
        }
        Ok(())
    }

    /// The best of several times, by `cost`.
    fn best<T>(&self, mut measure: impl FnMut() -> Result<T>, cost: impl Fn(&T) -> f64) -> Result<Option<T>> {
        let mut best: Option<T> = None;
        for _ in 0..self.repeat {
            let measured = measure()?;
            if best.as_ref().is_none_or(|best| cost(&measured) < cost(best)) {
                best = Some(measured);
            }
        }
        Ok(best)
    }

    fn end(mut self) -> Result<()> {
        self.doc.process = output::process();
        if self.args.json {
            self.out.write_all(self.doc.to_json_pretty()?.as_bytes())?;
        }
        Ok(())
    }
}

fn requests(shown: &mut Shown<'_>, ios: u64) -> Result<()> {
    for bench in BENCHES.iter().filter(|b| is_wanted(shown.args, b.name)) {
        let mut simulated = 0;
        let measure = || {
            let (ios, seconds) = run(bench, ios, thread_cpu_seconds)?;
            simulated += ios;
            Ok((ios, seconds))
        };
        let Some((ios, seconds)) = shown.best(measure, |(ios, seconds)| seconds / *ios as f64)? else { continue };
        shown.doc.simulated_ios += simulated;
        let (rate, ns) = (ios as f64 / seconds, seconds * 1e9 / ios as f64);
        shown.measured(bench.name, [(metric::SIMULATED_IOS_PER_CPU_SECOND, rate), (metric::CPU_TIME_PER_IO, ns)])?;
        shown.line(format_args!("{:<16} {:>7.2} M/s {ns:>7.1} ns   {}", bench.name, rate / 1e6, bench.what))?;
    }
    Ok(())
}

fn steady_requests(shown: &mut Shown<'_>, ios: u64) -> Result<()> {
    for case in STEADY.iter().filter(|b| is_wanted(shown.args, b.bench.name)) {
        let name = case.bench.name;
        let result = steady(case, ios, shown.repeat, thread_cpu_seconds)?;
        let o = result.ok_or_else(|| anyhow!("{name}: write amplification did not become steady"))?;
        shown.doc.simulated_ios += o.simulated_ios;
        let (rate, ns) = (o.ios as f64 / o.seconds, o.seconds * 1e9 / o.ios as f64);
        shown.measured(name, [(metric::SIMULATED_IOS_PER_CPU_SECOND, rate), (metric::CPU_TIME_PER_IO, ns)])?;
        let (amplification, passes) = (o.write_amplification, o.passes_before);
        for (metric, value) in [(metric::DATA_WRITE_AMPLIFICATION, amplification), (metric::PASSES_BEFORE, passes)] {
            shown.doc.row(name, "", metric, value, Origin::Predicted)?;
        }
        shown.line(format_args!(
            "{name:<16} {:>7.2} M/s {ns:>7.1} ns   {} (write amplification {amplification:.2}, steady after {passes} \
             passes)",
            rate / 1e6,
            case.bench.what,
        ))?;
    }
    Ok(())
}

fn parses(shown: &mut Shown<'_>, ios: u64) -> Result<()> {
    let bytes = ios.saturating_mul(ROW_BYTES).min(MOST_TRACE_BYTES) as usize;
    for case in PARSES.iter().filter(|b| is_wanted(shown.args, b.name)) {
        let measure = || Ok(parse(case, bytes, thread_cpu_seconds)?);
        let Some((bytes, requests, seconds)) = shown.best(measure, |m| m.2)? else { continue };
        let (rate, ns) = (bytes as f64 / seconds / 1e6, seconds * 1e9 / requests as f64);
        shown.measured(case.name, [(metric::PARSED_PER_CPU_SECOND, rate), (metric::CPU_TIME_PER_IO, ns)])?;
        shown.line(format_args!("{:<16} {rate:>6.0} MB/s {ns:>7.1} ns   {}", case.name, case.what))?;
    }
    Ok(())
}

fn curves(shown: &mut Shown<'_>, ios: u64) -> Result<()> {
    for case in REUSES.iter().filter(|b| is_wanted(shown.args, b.name)) {
        let Some((seconds, bytes)) = shown.best(|| Ok(reuse(case, ios, thread_cpu_seconds)), |m| m.0)? else {
            continue;
        };
        let (rate, ns) = (ios as f64 / seconds, seconds * 1e9 / ios as f64);
        shown.measured(case.name, [(metric::FOLLOWED_PER_CPU_SECOND, rate), (metric::CPU_TIME_PER_IO, ns)])?;
        let (m, what, mib) = (rate / 1e6, case.what, bytes as f64 / f64::from(1 << 20));
        shown.line(format_args!("{:<16} {m:>7.2} M/s {ns:>7.1} ns   {what} ({mib:.1} MiB)", case.name))?;
    }
    Ok(())
}

fn lookups_in_caches(shown: &mut Shown<'_>, ios: u64) -> Result<()> {
    for case in LOOKUPS.iter().filter(|b| is_wanted(shown.args, b.name)) {
        let measure = || Ok(lookups(case, ios, thread_cpu_seconds));
        let Some((reads, hits, seconds)) = shown.best(measure, |m| m.2)? else { continue };
        let (rate, ns) = (reads as f64 / seconds, seconds * 1e9 / reads as f64);
        let ratio = 100.0 * hits as f64 / reads as f64;
        shown.measured(case.name, [(metric::LOOKUPS_PER_CPU_SECOND, rate), (metric::CPU_TIME_PER_IO, ns)])?;
        shown.doc.row(case.name, "", metric::HIT_RATIO, ratio, Origin::Predicted)?;
        let (m, what) = (rate / 1e6, case.what);
        shown.line(format_args!("{:<16} {m:>7.2} M/s {ns:>7.1} ns   {what} ({ratio:.1} % hits)", case.name))?;
    }
    Ok(())
}

fn images_and_starts(shown: &mut Shown<'_>) -> Result<()> {
    for case in IMAGES.iter().filter(|b| is_wanted(shown.args, b.name)) {
        let (found, seconds) = images(case, shown.repeat, thread_cpu_seconds);
        let ns = seconds * 1e9 / found as f64;
        shown.measured(case.name, [(metric::CPU_TIME, seconds), (metric::CPU_TIME_PER_ITEM, ns)])?;
        shown.line(format_args!("{:<16} {seconds:>7.3} s  {ns:>6.0} ns   {}", case.name, case.what))?;
    }
    for case in STARTS.iter().filter(|b| is_wanted(shown.args, b.name)) {
        let measure = || Ok(start(case, thread_cpu_seconds)?);
        let Some((seconds, bytes)) = shown.best(measure, |m| m.0)? else { continue };
        shown.measured(case.name, [(metric::START_CPU_TIME, seconds), (metric::PROCESS_BYTES_PER_BLOCK, bytes)])?;
        let (name, what) = (case.name, case.what);
        shown.line(format_args!(
            "{name:<16} {seconds:>7.3} s  {bytes:>6.2} B   {what} (CPU time, at most so many bytes per 4 KiB)"
        ))?;
    }
    Ok(())
}

/// `readpath dev bench --flat`: runs of different lengths take turns, so that a busy machine slows all of them alike.
fn flat(args: &Bench) -> Result<()> {
    let shortest = args.ios.unwrap_or(1_000_000);
    let lengths = [shortest, 10 * shortest, 100 * shortest];
    let title = "CPU time of a simulated request by length of the run, one core";
    let mut shown = Shown::new(args, "bench-flat", title, 3);
    let wanted: Vec<&BenchCase> = FLAT.iter().filter(|b| is_wanted(args, b.name)).collect();
    if wanted.is_empty() {
        let names: Vec<&str> = FLAT.iter().map(|b| b.name).collect();
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(usage(anyhow!("no flat bench has '{filter}' in its name; there are: {}", names.join(", "))));
    }
    let [a, b, c] = lengths;
    shown.line(format_args!("{:<14} {a:>14} {b:>14} {c:>14}   (ns of CPU time per request)", "requests"))?;
    for bench in wanted {
        let mut best = [f64::INFINITY; 3];
        for _ in 0..shown.repeat {
            for (best, length) in best.iter_mut().zip(lengths) {
                let (ios, seconds) = run(bench, length, thread_cpu_seconds)?;
                shown.doc.simulated_ios += ios;
                *best = best.min(seconds * 1e9 / ios as f64);
            }
        }
        for (best, length) in best.iter().zip(lengths) {
            let variant = format!("{length} requests");
            shown.doc.row(bench.name, variant, metric::CPU_TIME_PER_IO, *best, Origin::Measured)?;
        }
        let ([a, b, c], what) = (best, bench.what);
        shown.line(format_args!("{:<14} {a:>14.1} {b:>14.1} {c:>14.1}   {what}", bench.name))?;
    }
    shown.end()
}

fn thread_cpu_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}
