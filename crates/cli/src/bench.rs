// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath bench`: how many requests a second one core simulates, in the program that users have.

use crate::args::Bench;
use crate::output;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::bench::{
    BENCHES, BenchCase, FLAT, IMAGES, ImageCase, LOOKUPS, LookupCase, PARSES, ParseCase, STARTS, STEADY, StartCase,
    SteadyCase, images, lookups, parse, run, start, steady,
};
use readpath_results::{Document, Origin};
use std::io::{self, Write};

/// Bytes of a trace for each of `--ios`, about a row, and at most.
const ROW_BYTES: u64 = 64;
const MOST_TRACE_BYTES: u64 = 64 << 20;

/// Names of all benches but those of `--flat`.
fn names() -> Vec<&'static str> {
    let runs = BENCHES.iter().map(|b| b.name).chain(STEADY.iter().map(|s| s.bench.name));
    let parses = runs.chain(PARSES.iter().map(|p| p.name));
    let lookups = parses.chain(LOOKUPS.iter().map(|l| l.name));
    lookups.chain(IMAGES.iter().map(|i| i.name)).chain(STARTS.iter().map(|s| s.name)).collect()
}

/// What `--help` says below the options.
pub fn list() -> String {
    let line = |name: &str, what: &str| format!("  {name:<16} {what}\n");
    let mut text = "Benches:\n".to_owned();
    text.extend(BENCHES.iter().map(|b| line(b.name, b.what)));
    text.extend(STEADY.iter().map(|s| line(s.bench.name, s.bench.what)));
    text.extend(PARSES.iter().map(|p| line(p.name, p.what)));
    text.extend(LOOKUPS.iter().map(|l| line(l.name, l.what)));
    text.extend(IMAGES.iter().map(|i| line(i.name, i.what)));
    text.extend(STARTS.iter().map(|s| line(s.name, s.what)));
    text.push_str("\nWith --flat:\n");
    text.extend(FLAT.iter().map(|b| line(b.name, b.what)));
    text.truncate(text.trim_end().len());
    text
}

/// `readpath bench`.
pub fn main(args: &Bench) -> Result<()> {
    if args.flat {
        return flat(args);
    }
    if !names().into_iter().any(|name| is_wanted(args, name)) {
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(usage(anyhow!("no bench has '{filter}' in its name; there are: {}", names().join(", "))));
    }
    let mut bench = Measuring {
        ios: args.ios.unwrap_or(4_000_000),
        repeat: args.repeat.unwrap_or(5),
        prints: !args.json,
        doc: Document::new("bench", "Simulated requests per second of CPU time, one core"),
    };
    BENCHES.iter().filter(|b| is_wanted(args, b.name)).try_for_each(|case| bench.run(case))?;
    STEADY.iter().filter(|s| is_wanted(args, s.bench.name)).try_for_each(|case| bench.steady(case))?;
    PARSES.iter().filter(|p| is_wanted(args, p.name)).try_for_each(|case| bench.parse(case))?;
    LOOKUPS.iter().filter(|l| is_wanted(args, l.name)).try_for_each(|case| bench.lookups(case))?;
    IMAGES.iter().filter(|i| is_wanted(args, i.name)).try_for_each(|case| bench.images(case))?;
    STARTS.iter().filter(|s| is_wanted(args, s.name)).try_for_each(|case| bench.start(case))?;
    bench.doc.process = output::process();
    if args.json {
        io::stdout().lock().write_all(bench.doc.to_json_pretty()?.as_bytes())?;
    }
    Ok(())
}

fn is_wanted(args: &Bench, name: &str) -> bool {
    args.filter.as_ref().is_none_or(|f| name.contains(f))
}

/// The best of some repetitions: that with the least cost.
fn best<T>(repeat: u32, mut once: impl FnMut() -> Result<T>, cost: impl Fn(&T) -> f64) -> Result<T> {
    let mut best = once()?;
    for _ in 1..repeat {
        let next = once()?;
        if cost(&next) < cost(&best) {
            best = next;
        }
    }
    Ok(best)
}

/// Benches in progress.
struct Measuring {
    ios: u64,
    repeat: u32,
    /// Each as it ends, for people.
    prints: bool,
    doc: Document,
}

impl Measuring {
    fn row(&mut self, case: &str, metric: &str, unit: &str, value: f64) -> Result<()> {
        Ok(self.doc.row(case, "", metric, unit, value, Origin::Measured).map(drop)?)
    }

    fn print(&self, line: std::fmt::Arguments) -> Result<()> {
        if self.prints {
            writeln!(io::stdout(), "{line}")?;
        }
        Ok(())
    }

    fn run(&mut self, case: &BenchCase) -> Result<()> {
        let mut made = 0;
        let once = || {
            let result = run(case, self.ios, thread_cpu_seconds)?;
            made += result.0;
            Ok(result)
        };
        let (ios, seconds) = best(self.repeat, once, |&(ios, seconds)| seconds / ios as f64)?;
        self.doc.simulated_ios += made;
        let (rate, ns) = (ios as f64 / seconds, seconds * 1e9 / ios as f64);
        self.row(case.name, "simulated_ios_per_cpu_second", "1/s", rate)?;
        self.row(case.name, "cpu_time_per_io", "ns", ns)?;
        self.print(format_args!("{:<16} {:>7.2} M/s {ns:>7.1} ns   {}", case.name, rate / 1e6, case.what))
    }

    fn steady(&mut self, case: &SteadyCase) -> Result<()> {
        let name = case.bench.name;
        let result = steady(case, self.ios, self.repeat, thread_cpu_seconds)?;
        let o = result.ok_or_else(|| anyhow!("{name}: write amplification did not become steady"))?;
        self.doc.simulated_ios += o.simulated_ios;
        let (rate, ns) = (o.ios as f64 / o.seconds, o.seconds * 1e9 / o.ios as f64);
        self.row(name, "simulated_ios_per_cpu_second", "1/s", rate)?;
        self.row(name, "cpu_time_per_io", "ns", ns)?;
        self.doc.row(name, "", "data_write_amplification", "", o.write_amplification, Origin::Predicted)?;
        self.doc.row(name, "", "passes_before", "", o.passes_before, Origin::Predicted)?;
        self.print(format_args!(
            "{name:<16} {:>7.2} M/s {ns:>7.1} ns   {} (write amplification {:.2}, steady after {} passes)",
            rate / 1e6,
            case.bench.what,
            o.write_amplification,
            o.passes_before
        ))
    }

    fn parse(&mut self, case: &ParseCase) -> Result<()> {
        let bytes = self.ios.saturating_mul(ROW_BYTES).min(MOST_TRACE_BYTES) as usize;
        let once = || Ok(parse(case, bytes, thread_cpu_seconds)?);
        let (bytes, requests, seconds) = best(self.repeat, once, |&(.., seconds)| seconds)?;
        let (rate, ns) = (bytes as f64 / seconds / 1e6, seconds * 1e9 / requests as f64);
        self.row(case.name, "parsed_per_cpu_second", "MB/s", rate)?;
        self.row(case.name, "cpu_time_per_io", "ns", ns)?;
        self.print(format_args!("{:<16} {rate:>6.0} MB/s {ns:>7.1} ns   {}", case.name, case.what))
    }

    fn lookups(&mut self, case: &LookupCase) -> Result<()> {
        let once = || Ok(lookups(case, self.ios, thread_cpu_seconds));
        let (reads, hits, seconds) = best(self.repeat, once, |&(.., seconds)| seconds)?;
        let (rate, ns) = (reads as f64 / seconds, seconds * 1e9 / reads as f64);
        let hit_ratio = 100.0 * hits as f64 / reads as f64;
        self.row(case.name, "lookups_per_cpu_second", "1/s", rate)?;
        self.row(case.name, "cpu_time_per_io", "ns", ns)?;
        self.doc.row(case.name, "", "hit_ratio", "%", hit_ratio, Origin::Predicted)?;
        let (m, what) = (rate / 1e6, case.what);
        self.print(format_args!("{:<16} {m:>7.2} M/s {ns:>7.1} ns   {what} ({hit_ratio:.1} % hits)", case.name))
    }

    fn images(&mut self, case: &ImageCase) -> Result<()> {
        let (found, seconds) = images(case, self.repeat, thread_cpu_seconds);
        let ns = seconds * 1e9 / found as f64;
        self.row(case.name, "cpu_time", "s", seconds)?;
        self.row(case.name, "cpu_time_per_item", "ns", ns)?;
        self.print(format_args!("{:<16} {seconds:>7.3} s  {ns:>6.0} ns   {}", case.name, case.what))
    }

    fn start(&mut self, case: &StartCase) -> Result<()> {
        let (name, what) = (case.name, case.what);
        let (seconds, bytes) = best(self.repeat, || Ok(start(case, thread_cpu_seconds)?), |&(seconds, _)| seconds)?;
        self.row(name, "start_cpu_time", "s", seconds)?;
        self.row(name, "process_bytes_per_block", "bytes", bytes)?;
        self.print(format_args!("{name:<16} {seconds:>7.3} s  {bytes:>6.2} B   {what} (CPU time, bytes per 4 KiB)"))
    }
}

/// `readpath bench --flat`: runs of different lengths take turns, so that a busy machine troubles all of them alike.
fn flat(args: &Bench) -> Result<()> {
    let shortest = args.ios.unwrap_or(1_000_000);
    let lengths = [shortest, 10 * shortest, 100 * shortest];
    let mut doc = Document::new("bench-flat", "CPU time of a simulated request by length of the run, one core");
    let mut out = io::stdout().lock();
    let wanted: Vec<&BenchCase> =
        FLAT.iter().filter(|b| args.filter.as_ref().is_none_or(|f| b.name.contains(f))).collect();
    if wanted.is_empty() {
        let names: Vec<&str> = FLAT.iter().map(|b| b.name).collect();
        let filter = args.filter.as_deref().unwrap_or_default();
        return Err(usage(anyhow!("no flat bench has '{filter}' in its name; there are: {}", names.join(", "))));
    }
    if !args.json {
        writeln!(
            out,
            "{:<14} {:>14} {:>14} {:>14}   (ns of CPU time per request)",
            "requests", lengths[0], lengths[1], lengths[2]
        )?;
    }
    for bench in wanted {
        let mut best = [f64::INFINITY; 3];
        for _ in 0..args.repeat.unwrap_or(3) {
            for (best, length) in best.iter_mut().zip(lengths) {
                let (ios, seconds) = run(bench, length, thread_cpu_seconds)?;
                doc.simulated_ios += ios;
                *best = best.min(seconds * 1e9 / ios as f64);
            }
        }
        for (best, length) in best.iter().zip(lengths) {
            doc.row(bench.name, format!("{length} requests"), "cpu_time_per_io", "ns", *best, Origin::Measured)?;
        }
        if !args.json {
            writeln!(out, "{:<14} {:>14.1} {:>14.1} {:>14.1}   {}", bench.name, best[0], best[1], best[2], bench.what)?;
        }
    }
    doc.process = output::process();
    if args.json {
        out.write_all(doc.to_json_pretty()?.as_bytes())?;
    }
    Ok(())
}

fn thread_cpu_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}
