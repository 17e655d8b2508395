// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces as they are read, for their description, conversion and replay: opened as the options say, and what was
//! odd about them noted.

use crate::args::{Offers, TraceInput};
use crate::failure::Interrupted;
use crate::inputs::{self, Source};
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_lab::experiment::Shared;
use readpath_results::Input;
use readpath_run::LUN;
use readpath_workload::trace::{
    Columns, Devices, Format, NO_DEVICE, Options, Place, Reader, Reason, Request, TraceError,
};
use std::path::Path;
use std::sync::atomic::Ordering;

/// What the options say of reading.
pub fn options(input: &TraceInput) -> Result<Options> {
    let format = match input.format.as_deref() {
        None => None,
        Some(name) => Some(Format::by_name(name).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
            usage(anyhow!("--format: {name:?} is no format; there are {}", names.join(", ")))
        })?),
    };
    let columns = input.columns.as_deref().map(Columns::parse).transpose();
    let columns = columns.map_err(|e| usage(anyhow!("--{e}")))?;
    if format == Some(Format::Csv) && columns.is_none() {
        return Err(usage(anyhow!("--format csv needs --columns, unless the table is our own, which needs neither")));
    }
    let devices = match &input.trace_device {
        Some(name) => Devices::Named(name.clone()),
        None if input.merge_devices => Devices::Merge,
        None => Devices::Single,
    };
    let (object_bytes, lenient) = (input.object_bytes, input.lenient);
    Ok(Options { format, columns, object_bytes, lenient, devices, ..Options::default() })
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

/// What there is to know of a trace that has been read to its end. The first says what it is.
pub fn notes(name: &str, reader: &Reader) -> Vec<String> {
    let s = reader.summary();
    let mut list = vec![format!(
        "{name}: format {}, {}, {} requests over {}",
        reader.format().name(),
        reader.compression().name(),
        s.requests,
        s.span
    )];
    if reader.format().has_objects() {
        let bytes = reader.object_bytes();
        list.push(format!("{name}: addresses are numbers of objects times {bytes} bytes (--object-bytes)"));
    }
    if !reader.has_operations() {
        list.push(format!("{name}: its accesses have no operation; all were taken for READS"));
    }
    let mut note = |n: u64, text: String| {
        if n > 0 {
            list.push(format!("{name}: {n} {text}"));
        }
    };
    for (reason, count, place, example) in s.skips.iter() {
        let place = match place {
            Place::File => String::new(),
            Place::Line(n) => format!("line {n}: "),
            Place::Byte(n) => format!("byte {n}: "),
        };
        let what = if reason == Reason::Order { "rows were MOVED in time" } else { "rows were SKIPPED" };
        note(count, format!("{what} ({}); the first at {place}{example}", reason.words()));
    }
    let larger = match s.needed_bytes {
        NO_DEVICE => "on no device".to_owned(),
        bytes => format!("on one of at least {bytes} bytes"),
    };
    note(s.beyond, format!("requests that do not lie on the device would {larger}"));
    note(s.other_device, "requests to other devices were left out".into());
    if let Some(other) = reader.format().other_layer() {
        let name = other.name();
        note(s.other_layer, format!("requests of the other layer were left out (--format {name} takes those instead)"));
    }
    note(
        s.lost_events,
        match reader.format().is_perfetto() {
            true => "bundles of events begin where events were lost when the trace was recorded".into(),
            false => "events were lost when the trace was recorded".into(),
        },
    );
    note(s.inversions, format!("rows were out of order by up to {} and were sorted", s.furthest_inversion));
    note(s.unmatched_completions, "completions have no request in the trace".into());
    if s.unterminated {
        list.push(format!(
            "{name}: the last line has no end; if the trace was cut off there, what it ends with may be short or \
             missing"
        ));
    }
    list
}

/// That times are too coarse for a replay at those times, if they are, and what can be done.
pub fn coarse_times(name: &str, reader: &Reader, way_out: &str) -> Option<String> {
    let s = reader.summary();
    let warning = s.stamps.warning(s.requests)?;
    Some(format!(
        "{name}: {warning}. Replayed at those times, latencies and hits come of the bursts, not of the device; \
         {way_out}"
    ))
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
