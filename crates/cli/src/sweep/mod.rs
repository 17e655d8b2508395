// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath sweep`: plans a study, makes the points that its folder lacks, and shows the tables.

mod estimate;

use crate::args::{Merge, Sweep, SweepCommand};
use crate::failure::Unfinished;
use crate::files::NewFolder;
use crate::inputs::{self, read_text};
use crate::output::{self, Progress};
use crate::{stop, usage};
use anyhow::{Result, anyhow};
use readpath_report::TableSpec;
use readpath_session::config::study::{self, Assigned};
use readpath_session::lab::runs::Shared;
use readpath_session::results::metric::{self, Figure::*, Requests::*};
use readpath_session::results::{Document, Row, csv_cell};
use readpath_session::study::{Folder, Found, Made, Plan, Shard, SweepError, document, merge, unfinished, work};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::PoisonError;
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

fn classify(error: SweepError) -> anyhow::Error {
    if error.is_usage() { usage(error) } else { error.into() }
}

fn plan(args: &Sweep, file: &Path) -> Result<Plan> {
    let text = inputs::text(file)?;
    let mut study = study::parse(&text, &file.to_string_lossy()).map_err(usage)?;
    let fixed: Result<Vec<_>, _> = args.set.iter().map(|one| Assigned::from_argument(one, "--set")).collect();
    study.fix(fixed.map_err(usage)?).map_err(usage)?;
    Plan::new(study, &text, &read_text).map_err(classify)
}

fn sweep(args: &Sweep, file: &Path) -> Result<()> {
    let shard = args.shard.as_deref().map_or(Ok(Shard::WHOLE), str::parse).map_err(classify)?;
    let plan = plan(args, file)?;
    if args.list {
        return list(&plan, shard);
    }
    let threads = args.threads.map_or_else(processors, |n| n as usize);
    let path = args.out.clone().unwrap_or_else(|| Path::new("out").join(&plan.study.name));
    if args.dry_run {
        let found = match path.is_dir() {
            true => Found::of(&[Folder::new(&path)], Some(&plan.header())).map_err(classify)?,
            false => Found::none(plan.count()),
        };
        return estimate::show(&plan, shard, &found, threads);
    }
    let shown = output::Folder::create(&path)?.apart_from([file])?;
    let folder = Folder::new(&path);
    let mut found = Found::of(&[Folder::new(&path)], Some(&plan.header())).map_err(classify)?;
    if args.retry_failed {
        found.retry_failed();
    }
    let (there, count) = (shard.done(&found), shard.count(plan.count()));
    found.damaged.iter().for_each(|what| warn(&format!("{what}; what it held is made again")));
    let (shared, made) = (Arc::new(Shared::default()), Arc::new(Made::default()));
    stop::in_order(shared.stop.clone())?;
    let began = Instant::now();
    {
        let so_far = made.clone();
        let _progress = Progress::of_points(count, move || there + so_far.points.load(Ordering::Relaxed));
        let name = format!("points-{}", std::process::id());
        let todo = (shard, &found);
        work(&plan, (&folder, &name), todo, threads, &read_text, &shared, &made).map_err(classify)?;
    }
    let new = made.points.load(Ordering::Relaxed);
    let ios = shared.ios.load(Ordering::Relaxed);
    if there + new < count {
        let message =
            format!("interrupted: {} of {count} points are made; the same command goes on from there", there + new);
        return Err(Unfinished(message).into());
    }
    let mut out = io::stdout().lock();
    let design = plan.study.design.name();
    writeln!(out, "{}\n\n{} points ({design}), {there} of them made before", plan.study.title, plan.count())?;
    let process = output::process();
    let (cpu, mib) = (process.cpu_seconds, process.peak_rss_bytes as f64 / f64::from(1 << 20));
    let seconds = began.elapsed().as_secs_f64();
    writeln!(
        out,
        "{new} points and {ios} requests simulated in {seconds:.1} s with {}: {cpu:.1} s of CPU time, \
         {mib:.0} MiB at most",
        in_threads(threads)
    )?;
    let mut found = Found::of(&[Folder::new(&path)], Some(&plan.header())).map_err(classify)?;
    if found.count() < plan.count() {
        let part = format!("{} of {} points", found.count(), plan.count());
        writeln!(out, "This folder holds {part}; 'readpath sweep merge' makes a table of all shards")?;
        return failures(&plan, &made, found.failed(), None);
    }
    remove_if_stopped(&path)?;
    let merged = merge(&mut found, &path).map_err(classify)?;
    let mut doc = document(&plan, &mut found).map_err(classify)?;
    doc.process = process;
    doc.validate()?;
    shown.write(&doc)?;
    for table in tables(&doc) {
        writeln!(out, "\n{table}")?;
    }
    for note in &doc.notes {
        writeln!(out, "Note: {note}")?;
    }
    writeln!(out, "Results: {} and {}", merged.points.display(), path.join("report.html").display())?;
    drop(out);
    failures(&plan, &made, found.failed(), merged.failed.as_deref())
}

/// Tables of a study: what its points show, and how much each factor matters.
fn tables(doc: &Document) -> Vec<String> {
    let points = TableSpec::of(&[
        metric::START_UP_TIME,
        Read.of(LatencyMean),
        Read.of(LatencyP99),
        Read.of(Throughput),
        Write.of(LatencyP99),
        Write.of(Throughput),
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

/// Fails if points did, with what is known of the first.
fn failures(plan: &Plan, made: &Made, failed: u64, table: Option<&Path>) -> Result<()> {
    if failed == 0 {
        return Ok(());
    }
    let first = made.first_failure.lock().unwrap_or_else(PoisonError::into_inner).take();
    let first = first.map_or_else(String::new, |(index, why)| {
        format!("; point {index} ({}): {why}", plan.describe(&plan.point(index)))
    });
    let table = table.map_or_else(String::new, |path| format!("; all are in {}", path.display()));
    Err(anyhow!("{failed} of {} points failed{first}{table}", plan.count()))
}

fn merge_folders(args: &Merge) -> Result<()> {
    let folders: Vec<Folder> = args.folders.iter().map(Folder::new).collect();
    let mut found = Found::of(&folders, None).map_err(classify)?;
    let Some(header) = found.header.clone() else {
        return Err(usage(anyhow!("{}: no results of a study are there", args.folders[0].display())));
    };
    found.damaged.iter().for_each(|what| warn(&format!("{what}; what it held is not in the table")));
    let made = NewFolder::create(&args.out)?;
    remove_if_stopped(&args.out)?;
    stop::at_once(stop::Written::Nothing)?;
    let merged = merge(&mut found, &args.out).map_err(classify)?;
    drop(made);
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

/// Removes unfinished tables of `folder` if a signal ends the program.
fn remove_if_stopped(folder: &Path) -> Result<()> {
    let parts = unfinished(folder);
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

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn warn(text: &str) {
    writeln!(io::stderr(), "Warning: {text}").ok();
}
