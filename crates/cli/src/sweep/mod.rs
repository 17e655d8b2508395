// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath sweep`: plans a study, makes the points that its folder lacks, and shows the tables.

mod estimate;

use crate::args::{Merge, Sweep, SweepCommand};
use crate::failure::Unfinished;
use crate::inputs;
use crate::output::{self, Progress};
use crate::{stop, usage};
use anyhow::{Result, anyhow};
use readpath_report::TableSpec;
use readpath_session::kinds::{self, Kind};
use readpath_session::lab::runs::Shared;
use readpath_session::results::metric::{self, Figure::*, Requests::*};
use readpath_session::results::{Document, Row, csv_cell};
use readpath_session::runs::{of_sweep, processors};
use readpath_session::studies::{self, Begun, Task};
use readpath_session::study::{Found, Made, Plan, Shard, merge, unfinished};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Points that are named where some are missing.
const NAMED: usize = 5;

pub fn main(args: &Sweep) -> Result<()> {
    match (&args.command, &args.file) {
        (Some(SweepCommand::Merge(args)), _) => merge_folders(args),
        (None, Some(file)) => sweep(args, file),
        (None, None) => Err(usage(anyhow!("expected a study file"))),
    }
}

fn sweep(args: &Sweep, file: &Path) -> Result<()> {
    kinds::check(file, Kind::Study)?;
    let plan = studies::planned(&inputs::text(file)?, &file.to_string_lossy(), &args.set)?;
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    if args.list {
        return list(&plan, shard);
    }
    let threads = args.threads.map_or_else(processors, |n| n as usize);
    let task = Task { out: args.out.clone(), shard: args.shard, retry_failed: args.retry_failed };
    if args.dry_run {
        let path = task.folder(&plan);
        let found = if path.is_dir() { studies::there(&plan, &path)? } else { Found::none(plan.count()) };
        return estimate::show(&plan, shard, &found, threads);
    }
    let begun = Begun::new(plan.clone(), &task, &[file])?;
    let (count, there) = begun.counts();
    begun.found.damaged.iter().for_each(|what| warn(&format!("{what}; what it held is made again")));
    let (shared, made) = (Arc::new(Shared::default()), Arc::new(Made::default()));
    stop::in_order(shared.stop.clone())?;
    let began = Instant::now();
    {
        let so_far = made.clone();
        let _progress = Progress::of_points(count, move || there + so_far.points.load(Ordering::Relaxed));
        begun.make(threads, &shared, &made)?;
    }
    let (new, first) = studies::new(&made);
    let ios = shared.ios.load(Ordering::Relaxed);
    if there + new < count {
        let message =
            format!("interrupted: {} of {count} points are made; the same command goes on from there", there + new);
        return Err(Unfinished(message).into());
    }
    let seconds = began.elapsed().as_secs_f64();
    remove_if_stopped(begun.unfinished())?;
    let path = begun.out.clone();
    let tables = begun.finish(new, output::process)?;
    let mut out = io::stdout().lock();
    if let Some((_, doc)) = &tables.whole {
        writeln!(out, "{}", output::verdict(doc))?;
    }
    let design = plan.study.design.name();
    writeln!(out, "{}\n\n{} points ({design}), {there} of them made before", plan.study.title, plan.count())?;
    let process = output::process();
    let (cpu, mib) = (process.cpu_seconds, process.peak_rss_bytes as f64 / f64::from(1 << 20));
    writeln!(
        out,
        "{new} points and {ios} requests simulated in {seconds:.1} s with {}: {cpu:.1} s of CPU time, \
         {mib:.0} MiB at most",
        in_threads(threads)
    )?;
    let mut table_of_failures = None;
    if let Some((merged, doc)) = tables.whole {
        for table in tables_of(&doc) {
            writeln!(out, "\n{table}")?;
        }
        for note in &doc.notes {
            writeln!(out, "Note: {note}")?;
        }
        writeln!(out, "Results: {} and {}", merged.points.display(), path.join("report.html").display())?;
        table_of_failures = merged.failed;
    } else {
        let part = format!("{} of {} points", tables.done, plan.count());
        writeln!(out, "This folder holds {part}; 'readpath sweep merge' makes a table of all shards")?;
    }
    if tables.failed == 0 {
        return Ok(());
    }
    let first = first.map_or_else(String::new, |first| format!("; {}", studies::failure(&plan, first)));
    let table = table_of_failures.map_or_else(String::new, |path| format!("; all are in {}", path.display()));
    Err(anyhow!("{} of {} points failed{first}{table}", tables.failed, plan.count()))
}

/// Tables of a study: what its points show, and how much each factor matters.
fn tables_of(doc: &Document) -> Vec<String> {
    let points = TableSpec::of(&[
        metric::START_UP_TIME,
        Read.of(LatencyMean),
        Read.of(LatencyP99),
        Read.of(Throughput),
        Write.of(LatencyP99),
        Write.of(Throughput),
        metric::HOST_WRITE_AMPLIFICATION,
        metric::WRITE_AMPLIFICATION,
        metric::HOST_MEMORY,
    ]);
    let factors = TableSpec::of(&[
        metric::VARIANCE_SHARE,
        metric::FIRST_ORDER,
        metric::FIRST_ORDER_ERROR,
        metric::TOTAL_EFFECT,
        metric::TOTAL_EFFECT_ERROR,
        metric::MEAN_EFFECT,
        metric::EFFECT_SPREAD,
    ]);
    let width = output::terminal_width();
    let is_of_factors = |row: &Row| !row.variant.is_empty();
    let part = |wanted: bool, spec: TableSpec| {
        let rows: Vec<Row> = doc.rows.iter().filter(|row| is_of_factors(row) == wanted).cloned().collect();
        let some = !rows.is_empty();
        some.then(|| output::table(&Document { rows, ..doc.clone() }, spec, width))
    };
    [part(false, points), part(true, factors)].into_iter().flatten().collect()
}

fn merge_folders(args: &Merge) -> Result<()> {
    let (mut found, made) = studies::gathered(&args.folders, &args.out)?;
    found.damaged.iter().for_each(|what| warn(&format!("{what}; what it held is not in the table")));
    remove_if_stopped(unfinished(&args.out))?;
    stop::at_once(stop::Written::Nothing)?;
    let merged = merge(&mut found, &args.out).map_err(of_sweep)?;
    drop(made);
    let header = found.header.clone().unwrap_or_else(|| unreachable!("folders without points are refused"));
    let mut out = io::stdout().lock();
    writeln!(out, "{}: {} of {} points, {} failed", header.study, found.count(), header.points, found.failed())?;
    writeln!(out, "Results: {}", merged.points.display())?;
    if let Some(failed) = merged.failed {
        writeln!(out, "Failed:  {}", failed.display())?;
    }
    let missing = header.points - found.count();
    if missing > 0 {
        let first: Vec<String> = found.done.zeroes().take(NAMED).map(|point| point.to_string()).collect();
        let more = if missing > NAMED as u64 { ", …" } else { "" };
        return Err(anyhow!(
            "results are incomplete: {missing} of {} points are missing: {}{more}",
            header.points,
            first.join(", ")
        ));
    }
    Ok(())
}

/// Removes unfinished tables if a signal ends the program.
fn remove_if_stopped(parts: [PathBuf; 2]) -> Result<()> {
    Ok(stop::clean_up(move || {
        for part in &parts {
            std::fs::remove_file(part).ok();
        }
    })?)
}

/// The points of a shard as CSV.
fn list(plan: &Plan, shard: Shard) -> Result<()> {
    let mut out = output::stdout();
    // A key that is the seed has its column already.
    let shown = |key: &&str| *key != "seed";
    let keys: Vec<&str> = plan.study.keys().filter(shown).collect();
    writeln!(out, "point,seed,{}", keys.join(","))?;
    for n in 0..shard.count(plan.count()) {
        let point = plan.point(shard.point(n));
        write!(out, "{},{}", point.index, point.seed)?;
        for (_, setting) in plan.study.keys().zip(&point.settings).filter(|(key, _)| shown(key)) {
            write!(out, ",{}", csv_cell(&setting.plain()))?;
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

/// A number of threads in words.
fn in_threads(threads: usize) -> String {
    if threads == 1 { "1 thread".into() } else { format!("{threads} threads") }
}

fn warn(text: &str) {
    writeln!(io::stderr(), "Warning: {text}").ok();
}
