// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases of replays: block traces from files, fitted to a device and loaded, with notes on every difference from the
//! recording. Knows nothing of variants.

use crate::args::TraceHow;
use crate::inputs::{self, is_stdin};
use crate::{memory, traces, usage};
use anyhow::{Result, anyhow};
use readpath_config::experiment::Layout;
use readpath_config::time;
use readpath_device::LuConfig;
use readpath_kit::BLOCK_BYTES;
use readpath_lab::replay::{LONGEST, Mode, ReplayCase, ReplayTexts};
use readpath_lab::runs::Shared;
use readpath_results::{Input, Note, NoteKind};
use readpath_run::{LUN, Units};
use readpath_workload::trace::{Devices, Fit, Loaded, Options, Prepare, Speed, TraceUnit};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Requests of a trace to the device at most; they take 16 bytes each.
const MAX_IOS: usize = 1 << 28;

/// When requests are submitted.
///
/// # Errors
/// When options contradict the mode.
pub fn mode(how: &TraceHow) -> Result<Mode> {
    match how.iodepth {
        None => Ok(Mode::Timed),
        Some(_) if how.speed.is_some() || how.max_idle.is_some() || how.spread_ties => {
            let options = "--speed, --max-idle and --spread-ties";
            Err(usage(anyhow!("{options} change times, which do not count with --iodepth")))
        }
        Some(iodepth) => Ok(Mode::Closed { iodepth }),
    }
}

/// How requests are fitted to a device of `device_blocks` blocks.
///
/// # Errors
/// When an option is wrong.
pub fn prepare(how: &TraceHow, device_blocks: u32) -> Result<Prepare> {
    let speed = how.speed.as_deref().map(Speed::parse).transpose();
    let max_idle = how.max_idle.as_deref().map(time).transpose();
    Ok(Prepare {
        shift_sectors: how.shift_sectors,
        fit: if how.fold { Fit::Fold } else { Fit::Refuse },
        max_idle: max_idle.map_err(|e| usage(anyhow!("--max-idle: {e}")))?,
        speed: speed.map_err(|e| usage(anyhow!("--speed: {e}")))?.unwrap_or(Speed::RECORDED),
        // The host's driver splits requests that are too long for a command.
        max_blocks: u16::MAX,
        ..Prepare::new(device_blocks)
    })
}

struct Read {
    trace: Arc<Loaded>,
    /// Notes on changes of the trace, and on what makes figures doubtful.
    warnings: Vec<Note>,
    notes: Vec<Note>,
    input: Input,
}

fn load(
    how: &TraceHow,
    path: &Path,
    options: &Options,
    prepare: Prepare,
    units: &[LuConfig],
    shared: &Shared,
) -> Result<Read> {
    let name = inputs::name(path);
    let options = Options { within: prepare.within(), ..options.clone() };
    let (reader, file) = traces::open_with(how.offers, path, &options, shared)?;
    let mut replay = prepare.requests(&name, reader).map_err(usage)?;
    let loaded = Loaded::load_if(&mut replay, MAX_IOS, may_take);
    traces::check_stop(shared)?;
    let mut loaded = loaded.map_err(|error| traces::wrong(error, how.offers, units))?;
    if loaded.ios.is_empty() {
        return Err(usage(anyhow!("{name}: no request is left to replay: its trims contain no whole block of 4 KiB")));
    }
    let reader = replay.into_inner();
    let altered = loaded.prepared.altered().map(|text| Note::new(NoteKind::Altered, format!("{name}: {text}")));
    let mut warnings = Vec::new();
    if how.spread_ties {
        loaded.spread_ties(reader.summary().stamps.spread(), prepare.speed);
    } else if how.iodepth.is_none() {
        let way_out = if how.offers.times { "--spread-ties spreads them" } else { traces::SPREAD_ELSEWHERE };
        let coarse = reader.coarse_times(&name, way_out);
        warnings.extend(coarse.map(|text| Note::new(NoteKind::CoarseTimes, text)));
    }
    let not_found = reader.devices_not_found().map(|device| format!("{name}: --units: no request is to {device}"));
    warnings.extend(not_found.map(|text| Note::new(NoteKind::Altered, text)));
    warnings.extend(altered);
    let prepared = loaded.prepared.warnings().into_iter().map(|text| format!("{name}: {text}"));
    let notes = prepared.chain(reader.notes(&name)).map(Note::remark).collect();
    let input = traces::input(file, &name, shared)?;
    Ok(Read { trace: Arc::new(loaded), warnings, notes, input })
}

/// Refuses to take so many bytes more if the kernel might then kill this or another program. Half of the free memory is
/// left to the runs and to other programs.
fn may_take(bytes: u64) -> Result<(), String> {
    match memory::available() {
        Some(left) if bytes > left / 2 => Err(format!(
            "{} MiB more would be more than half of the {} MiB of memory that are left",
            bytes >> 20,
            left >> 20
        )),
        _ => Ok(()),
    }
}

/// Names of cases, short for tables: with the folder only where two files have the same name.
///
/// # Errors
/// When a file is given twice.
pub fn names(files: &[PathBuf]) -> Result<Vec<String>> {
    let name = |path: &PathBuf| {
        if files.iter().filter(|other| *other == path).count() > 1 {
            return Err(usage(anyhow!("{}: is given twice", path.display())));
        }
        let of_one_trace = traces::of_processors(path);
        if let Some(other) = files.iter().take_while(|other| *other != path).find(|other| of_one_trace.contains(other))
        {
            let (path, other) = (path.display(), other.display());
            return Err(usage(anyhow!(
                "{path}: is read with {other}, as both are files of one trace; give one of them"
            )));
        }
        if is_stdin(path) && !files.iter().any(|other| other.file_name().is_some_and(|name| name == "stdin")) {
            return Ok(inputs::name(path));
        }
        let short = path.file_name();
        Ok(match short.filter(|_| files.iter().filter(|other| other.file_name() == short).count() == 1) {
            Some(short) => short.to_string_lossy().into_owned(),
            None => path.display().to_string(),
        })
    };
    files.iter().map(name).collect()
}

/// The logical units of the devices of a trace, from `--units`.
fn on_units(given: &[String], units: &[LuConfig]) -> Result<Vec<TraceUnit>> {
    let mut firsts: Vec<u64> = vec![0];
    firsts.extend(units.iter().scan(0, |sum, unit| {
        *sum += u64::from(unit.blocks) * u64::from(BLOCK_BYTES);
        Some(*sum)
    }));
    let mut found: Vec<TraceUnit> = Vec::new();
    for text in given {
        let wrong = |why: String| usage(anyhow!("--units {text}: {why}"));
        let (name, lun) = text.rsplit_once('=').ok_or_else(|| wrong("expected DEVICE=LUN, such as sda=0".into()))?;
        let name = Some(name).filter(|name| !name.is_empty()).ok_or_else(|| wrong("names no device".into()))?;
        let lun = lun.parse::<usize>().ok().filter(|lun| *lun < units.len());
        let lun = lun.ok_or_else(|| wrong(format!("the device has logical units 0 to {}", units.len() - 1)))?;
        if found.iter().any(|unit| unit.name == name || unit.first_byte == firsts[lun]) {
            return Err(wrong("each device of the trace, and each logical unit, can be named once".into()));
        }
        let (first_byte, bytes) = (firsts[lun], firsts[lun + 1] - firsts[lun]);
        found.push(TraceUnit { name: name.to_owned(), first_byte, bytes });
    }
    Ok(found)
}

/// Loads `files`, which are called `names`, for a device with `units`, and the traces replayed before each of them.
///
/// # Errors
/// When a trace cannot be read, does not fit or takes too long, or when the command is to stop.
pub fn cases(
    how: &TraceHow,
    before: &[PathBuf],
    files: &[PathBuf],
    names: &[String],
    units: &[LuConfig],
    shared: &Shared,
) -> Result<Vec<ReplayCase>> {
    let mut options = traces::options(&how.input)?;
    let (blocks, on) = match how.units.is_empty() {
        true => (units[usize::from(LUN)].blocks, Units::first()),
        false => {
            options.devices = Devices::Units(on_units(&how.units, units)?);
            (units.iter().map(|unit| unit.blocks).sum(), Units::in_a_row(units.iter().map(|unit| unit.blocks)))
        }
    };
    let (prepare, mode) = (prepare(how, blocks)?, mode(how)?);
    let before = before.iter().map(|p| load(how, p, &options, prepare, units, shared)).collect::<Result<Vec<_>>>()?;
    let mut cases: Vec<ReplayCase> = Vec::new();
    for (path, name) in files.iter().zip(names) {
        let read = load(how, path, &options, prepare, units, shared)?;
        let phases = before.iter().map(|read| read.trace.clone()).collect();
        let mut case = ReplayCase::on(on.clone(), name, phases, read.trace, blocks);
        case.inputs = before.iter().map(|read| &read.input).chain([&read.input]).cloned().collect();
        let most = case.span();
        if mode == Mode::Timed && most > LONGEST {
            let message = match how.offers.times {
                true => "cut pauses with --max-idle, or make it faster with --speed",
                false => "give a shorter part of it",
            };
            return Err(usage(anyhow!("{name}: takes {most} of virtual time, more than {LONGEST}; {message}")));
        }
        // Warnings of all files come first: the results are not those of the recorded traces.
        case.notes = read.warnings;
        case.notes.extend(before.iter().flat_map(|read| read.warnings.clone()));
        case.notes.extend(read.notes);
        case.notes.extend(before.iter().flat_map(|read| read.notes.clone()));
        case.notes.extend(case.preload_note());
        cases.push(case);
    }
    Ok(cases)
}

/// Title, description and settings of the document on `cases` of `files`, each after the files `before`, on `device`.
pub fn texts(
    how: &TraceHow,
    (before, files): (&[PathBuf], &[PathBuf]),
    device: &str,
    layout: Layout,
    cases: &[ReplayCase],
) -> ReplayTexts {
    let names: Vec<&str> = cases.iter().map(|c| c.name.as_str()).collect();
    let folded: u64 = cases.iter().flat_map(|c| c.before.iter().chain([&c.trace])).map(|t| t.prepared.folded).sum();
    let mut title = format!("Replay of {}", names.join(", "));
    if folded > 0 {
        title.push_str(" (addresses FOLDED)");
    }
    let when = match how.iodepth {
        None => "Requests are submitted at their times; waiting for the controller's queue counts as latency.",
        Some(_) => "Requests are submitted in order, as soon as the queue depth allows; their times do not count.",
    };
    let per_case: Vec<_> = cases
        .iter()
        .map(|c| {
            json!({
                "case": c.name,
                "preloaded_blocks": c.preload_blocks(),
                "preloaded_ranges": c.preload().len(),
                "phases": c.before.iter().chain([&c.trace]).map(|t| prepared(t)).collect::<Vec<_>>(),
            })
        })
        .collect();
    let paths = |list: &[PathBuf]| list.iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
    let input = &how.input;
    let mut settings = json!({
        "files": paths(files),
        "precondition": paths(before),
        "format": input.format,
        "columns": input.columns,
        "lenient": input.lenient,
        "trace_device": input.trace_device,
        "merge_devices": input.merge_devices,
        "fold": how.fold,
        "shift_sectors": how.shift_sectors,
        "speed": how.speed,
        "max_idle": how.max_idle,
        "preload": match layout { Layout::Sequential => "sequential", Layout::Random => "random" },
        "cases": per_case,
    });
    if let Some(bytes) = input.ufs_block_bytes {
        settings["ufs_block_bytes"] = bytes.into();
    }
    if let Some(bytes) = input.object_bytes {
        settings["object_bytes"] = bytes.into();
    }
    if !how.units.is_empty() {
        settings["units"] = how.units.clone().into();
    }
    ReplayTexts { title, description: format!("Simulated on the device '{device}'. {when}"), settings }
}

/// Counts of the changes of a trace.
fn prepared(trace: &Loaded) -> serde_json::Value {
    let p = &trace.prepared;
    let mut numbers = json!({
        "requests": p.requests,
        "folded": p.folded,
        "rounded_reads": p.rounded_reads,
        "partial_writes": p.partial_writes,
        "partial_blocks": p.partial_blocks,
        "rounded_trims": p.rounded_trims,
        "dropped_trims": p.dropped_trims,
        "shortened_trims": p.shortened_trims,
        "cut_pauses": p.cut_pauses,
        "cut_time_ns": p.cut_time.0,
    });
    if p.spread > 0 {
        numbers["spread"] = p.spread.into();
        numbers["spread_over_ns"] = p.spread_over.0.into();
    }
    numbers
}
