// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces as they are read, for their description, conversion and replay: opened as the options say.

use crate::args::{Offers, TraceInput};
use crate::failure::Interrupted;
use crate::inputs::{self, Source};
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::experiment::Shared;
use readpath_results::Input;
use readpath_run::LUN;
use readpath_workload::trace::{Devices, Options, Reader, Reason, Request, TraceError};
use std::path::Path;
use std::sync::atomic::Ordering;

/// What the options say of reading.
pub fn options(input: &TraceInput) -> Result<Options> {
    let options = Options::of_words(input.format.as_deref(), input.columns.as_deref());
    let options = options.map_err(|e| usage(anyhow!("--{e}")))?;
    let devices = match &input.trace_device {
        Some(name) => Devices::Named(name.clone()),
        None if input.merge_devices => Devices::Merge,
        None => Devices::Single,
    };
    let (object_bytes, lenient) = (input.object_bytes, input.lenient);
    Ok(Options { object_bytes, lenient, devices, ..options })
}

/// Opens a trace; what it is read from comes with its reader. Both stop when `shared` says so.
pub fn open(path: &Path, options: &Options, shared: &Shared) -> Result<(Reader, Source)> {
    open_with(Offers::default(), path, options, shared)
}

/// The same for a command that may not have all options.
pub fn open_with(offers: Offers, path: &Path, options: &Options, shared: &Shared) -> Result<(Reader, Source)> {
    let source = Source::open(path, "a trace", shared.stop.clone())?;
    let reader = Reader::new(&inputs::name(path), Box::new(source.clone()), options);
    check_stop(shared)?;
    let mut reader = reader.map_err(|error| match error.reason {
        // They name options that say what it is.
        Reason::Format | Reason::Options if !offers.reading => usage(anyhow!("{error} ({CONVERT})")),
        _ => usage(error),
    })?;
    reader.stop_when(shared.stop.clone());
    Ok((reader, source))
}

/// An error if somebody wants it to end: then other errors may be but a consequence.
pub fn check_stop(shared: &Shared) -> Result<()> {
    if shared.stop.load(Ordering::Relaxed) { Err(anyhow::Error::new(Interrupted)) } else { Ok(()) }
}

/// The input called `name` for a document, read to its end.
pub fn input(source: Source, name: &str, shared: &Shared) -> Result<Input> {
    let input = source.input(name);
    check_stop(shared)?;
    input.map_err(|e| usage(anyhow!("{name}: cannot be read: {e}")))
}

/// What spreads coarse times, for commands that do not.
pub const SPREAD_ELSEWHERE: &str = "--spread-ties of replay spreads them";
/// What helps commands that read traces as they are.
const CONVERT: &str = "'readpath trace convert' has options for that, and writes a trace that is read without";

/// The error of a trace, with the options that help, of those that there are.
pub fn wrong(error: TraceError, offers: Offers) -> anyhow::Error {
    let hint = match error.reason {
        Reason::Beyond => beyond(offers),
        Reason::Device if offers.reading => {
            " (--trace-device NAME takes one of them, --merge-devices all as one)".to_owned()
        }
        Reason::Device => format!(" ({CONVERT})"),
        _ => String::new(),
    };
    usage(anyhow!("{error}{hint}"))
}

/// What helps where requests lie beyond the device.
fn beyond(offers: Offers) -> String {
    let lenient = if offers.reading { ", --lenient to leave them out" } else { "" };
    let presets = readpath_config::presets().iter();
    let presets = presets.filter_map(|b| readpath_config::device::parse(b.text, b.file).ok());
    let sized = presets.map(|p| (p.device.lus[usize::from(LUN)].blocks, p.name));
    match (offers.device, sized.max()) {
        (Some(option), Some((blocks, name))) => format!(
            " ({option}: the largest preset is {name} with {:.1} GiB; a larger one is a copy of it ('readpath device \
             show {name}') with more lu[0].capacity_gib and geometry.blocks_per_plane; --fold to fold them{lenient})",
            f64::from(blocks) * 4096.0 / f64::from(1 << 30)
        ),
        _ => format!(" (--fold to fold them{lenient})"),
    }
}

/// The next requests, unless somebody wants it to end.
pub fn fill(reader: &mut Reader, batch: &mut [Request], shared: &Shared) -> Result<usize> {
    let filled = reader.fill(batch);
    check_stop(shared)?;
    filled.map_err(|error| wrong(error, Offers::default()))
}
