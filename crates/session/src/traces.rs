// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces: opened with the options of reading, for their description, conversion and replay.

use crate::args::{Offers, TraceInput};
use crate::failure::Interrupted;
use crate::inputs::{self, Source};
use crate::kinds::{self, Kind};
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_device::LuConfig;
use readpath_kit::BLOCK_BYTES;
use readpath_lab::runs::Shared;
use readpath_results::Input;
use readpath_run::LUN;
use readpath_workload::trace::{Devices, Options, Reader, Reason, Request, TraceError};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// Options of the trace reader.
///
/// # Errors
/// When an option is wrong.
pub fn options(input: &TraceInput) -> Result<Options> {
    let options = Options::of_words(input.format.as_deref(), input.columns.as_deref());
    let options = options.map_err(|e| usage(anyhow!("--{e}")))?;
    let devices = match &input.trace_device {
        Some(name) => Devices::Named(name.clone()),
        None if input.merge_devices => Devices::Merge,
        None => Devices::Single,
    };
    let (object_bytes, ufs_block_bytes, lenient) = (input.object_bytes, input.ufs_block_bytes, input.lenient);
    Ok(Options { object_bytes, ufs_block_bytes, lenient, devices, ..options })
}

/// Opens a trace: its reader and its source. Both stop with `shared`.
///
/// # Errors
/// When it cannot be opened or is not a trace, or when the command is to stop.
pub fn open(path: &Path, options: &Options, shared: &Shared) -> Result<(Reader, Source)> {
    open_with(Offers::default(), path, options, shared)
}

/// [`open`] for a command that may not have all options.
///
/// # Errors
/// As [`open`].
pub fn open_with(offers: Offers, path: &Path, options: &Options, shared: &Shared) -> Result<(Reader, Source)> {
    if options.format.is_none() && options.columns.is_none() {
        kinds::check(path, Kind::Trace)?;
    }
    let files = of_processors(path);
    let source = match files.len() {
        ..=1 => Source::open(path, "a trace", shared.stop.clone())?,
        _ => Source::joined(&files, &shared.stop)?,
    };
    let options = Options { processors: (!files.is_empty()).then_some(files.len()), ..options.clone() };
    let reader = Reader::new(&inputs::name(path), Box::new(source.clone()), &options);
    check_stop(shared)?;
    let mut reader = reader.map_err(|error| match error.reason {
        // These errors name options that this command does not have.
        Reason::Format | Reason::Options if !offers.reading => usage(anyhow!("{error} ({CONVERT})")),
        _ => usage(error),
    })?;
    reader.stop_when(shared.stop.clone());
    Ok((reader, source))
}

/// The files of one trace that blktrace wrote, one for each processor (`sda.blktrace.0`, `sda.blktrace.1`, …), of which
/// `path` is one; none if it is not such a file.
pub fn of_processors(path: &Path) -> Vec<PathBuf> {
    let number = |name: &OsStr| {
        let (trace, number) = name.to_str()?.rsplit_once(".blktrace.")?;
        Some((trace.to_owned(), number.parse::<u32>().ok()?))
    };
    let Some((trace, _)) = path.file_name().and_then(number).filter(|_| path.is_file()) else { return Vec::new() };
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let Ok(entries) = folder.read_dir() else { return vec![path.to_owned()] };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut found: Vec<_> =
        names.filter_map(|name| Some((number(name.as_os_str()).filter(|n| n.0 == trace)?.1, name))).collect();
    found.sort();
    found.into_iter().map(|(_, name)| path.with_file_name(name)).collect()
}

/// An error if the command is to stop. Checked before other errors, which may be a consequence.
///
/// # Errors
/// [`Interrupted`], then.
pub fn check_stop(shared: &Shared) -> Result<()> {
    if shared.stop.load(Ordering::Relaxed) { Err(anyhow::Error::new(Interrupted)) } else { Ok(()) }
}

/// Size and hash of the input `name`, read to its end.
///
/// # Errors
/// When it cannot be read, or when the command is to stop.
pub fn input(source: Source, name: &str, shared: &Shared) -> Result<Input> {
    let input = source.input(name);
    check_stop(shared)?;
    input.map_err(|e| usage(anyhow!("{name}: cannot be read: {e}")))
}

/// Advice on coarse times, for commands without `--spread-ties`.
pub const SPREAD_ELSEWHERE: &str = "--spread-ties of replay spreads them";
/// Advice of commands without options of reading.
const CONVERT: &str = "'readpath trace convert' has options for that, and writes a trace that is read without";

/// The error of a trace, with advice on the options that the command has, for a device with `units`.
pub fn wrong(error: TraceError, offers: Offers, units: &[LuConfig]) -> anyhow::Error {
    let hint = match error.reason {
        Reason::Beyond => beyond(offers, units, error.needed_bytes),
        Reason::Device if offers.reading => {
            " (--trace-device NAME takes one of them, --merge-devices all as one)".to_owned()
        }
        Reason::Device => format!(" ({CONVERT})"),
        _ => String::new(),
    };
    usage(anyhow!("{error}{hint}"))
}

/// Advice on requests beyond the device: the smallest preset that holds them, best of the device's own kind.
fn beyond(offers: Offers, units: &[LuConfig], needed_bytes: Option<u64>) -> String {
    let lenient = if offers.reading { ", --lenient to leave them out" } else { "" };
    let Some(option) = offers.device else { return format!(" (--fold to fold them{lenient})") };
    let presets = readpath_config::presets().iter();
    let presets = presets.filter_map(|b| readpath_config::device::parse(b.text, b.file).ok());
    let sized: Vec<_> = presets.map(|p| (p.device.lus[usize::from(LUN)], p.name)).collect();
    let bytes = |blocks: u32| u64::from(blocks) * u64::from(BLOCK_BYTES);
    let gib = |blocks: u32| bytes(blocks) as f64 / f64::from(1 << 30);
    let hpb = units.first().is_some_and(|unit| unit.hpb);
    let holds = sized.iter().filter(|(unit, _)| needed_bytes.is_some_and(|needed| bytes(unit.blocks) >= needed));
    if let Some((unit, name)) = holds.min_by_key(|(unit, _)| (unit.hpb != hpb, unit.blocks)) {
        return format!(" ({option} {name} has {:.1} GiB; --fold to fold them{lenient})", gib(unit.blocks));
    }
    sized.iter().rev().max_by_key(|(unit, _)| unit.blocks).map_or_else(String::new, |(unit, name)| {
        format!(
            " ({option}: the largest preset is {name} with {:.1} GiB; a larger one is a copy of it ('readpath device \
             show {name}') with more lu[0].capacity_gib and geometry.blocks_per_plane; --fold to fold them{lenient})",
            gib(unit.blocks)
        )
    })
}

/// Reads the next requests; fewer than the batch holds at the end.
///
/// # Errors
/// When the trace is wrong, or when the command is to stop.
pub fn fill(reader: &mut Reader, batch: &mut [Request], shared: &Shared) -> Result<usize> {
    let filled = reader.fill(batch);
    check_stop(shared)?;
    filled.map_err(|error| wrong(error, Offers::default(), &[]))
}
