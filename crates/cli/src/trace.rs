// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath trace`: opens block traces, describes them, writes them in another format. What was odd about a trace while
//! it was read becomes notes here, for replays too.

use crate::args::{TraceCommand, TraceFormat, TraceInput};
use crate::files::{PartFile, check_not_input};
use crate::inputs::{self, Source, is_stdin};
use crate::live::Live;
use crate::output::{self, Folder};
use crate::runs::stoppable;
use crate::{Interrupted, usage};
use anyhow::{Result, anyhow};
use readpath_lab::experiment::Shared;
use readpath_lab::trace_info::{class_name, document};
use readpath_results::Input;
use readpath_workload::IoKind;
use readpath_workload::trace::{
    Analysis, Columns, CsvWriter, Devices, FioWriter, Format, Info, NO_DEVICE, Options, Place, Reader, Reason, Request,
    TraceError,
};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Requests read at a time.
const BATCH: usize = 4096;

/// `readpath trace`.
pub fn main(command: &TraceCommand) -> Result<()> {
    match command {
        TraceCommand::Info { file, input, json, out } => info(file, input, *json, out.as_deref()),
        TraceCommand::Convert { from, into, to, target, input } => convert(from, into, *to, target, input),
    }
}

/// What the options say of reading.
pub fn options(input: &TraceInput) -> Result<Options> {
    let format = match input.format.as_deref() {
        None => None,
        Some(name) => Some(Format::from_name(name).ok_or_else(|| {
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
    Ok(Options { format, columns, lenient: input.lenient, devices, ..Options::default() })
}

/// Opens a trace; what it is read from comes with its reader. Both stop when `shared` says so.
pub fn open(path: &Path, options: &Options, shared: &Shared) -> Result<(Reader, Source)> {
    let source = Source::open(path, "a trace", shared.stop.clone())?;
    let reader = Reader::new(&inputs::name(path), Box::new(source.clone()), options);
    check_stop(shared)?;
    let mut reader = reader.map_err(usage)?;
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
    note(s.lost_events, "events were lost when the trace was recorded".into());
    note(s.inversions, format!("rows were out of order by up to {} and were sorted", s.furthest_inversion));
    note(s.unmatched_completions, "completions have no request in the trace".into());
    if s.unterminated {
        list.push(format!(
            "{name}: the last line has no end; if the trace was cut off there, what it ends with may be short or missing"
        ));
    }
    list
}

/// The next requests, unless somebody wants it to end.
fn fill(reader: &mut Reader, batch: &mut [Request], shared: &Shared) -> Result<usize> {
    let filled = reader.fill(batch);
    check_stop(shared)?;
    filled.map_err(usage)
}

fn info(path: &Path, input: &TraceInput, json: bool, folder: Option<&Path>) -> Result<()> {
    let options = options(input)?;
    let shared = stoppable(&Live::default())?;
    let (mut reader, source) = open(path, &options, &shared)?;
    let files = folder.map(|out| Folder::create(out)?.apart_from([path])).transpose()?;
    let name = inputs::name(path);
    let mut analysis = Analysis::new(&Analysis::MAP_SPANS, Analysis::LIMIT_BYTES).map_err(usage)?;
    let mut batch = vec![Request::NONE; BATCH];
    loop {
        let n = fill(&mut reader, &mut batch, &shared)?;
        for request in &batch[..n] {
            analysis.add(request).map_err(|e| usage(TraceError { file: name.clone(), ..e }))?;
        }
        if n < batch.len() {
            break;
        }
    }
    let info = analysis.finish();
    let notes = notes(&name, &reader);
    let mut doc = document(&name, &info, &notes)?;
    doc.inputs.push(self::input(source, &name, &shared)?);
    doc.process = output::process();
    if let Some(files) = files {
        files.write(&doc)?;
    }
    let text = if json { doc.to_json_pretty()? } else { describe(&name, &info, &notes) };
    output::emit(text.as_bytes(), None)
}

/// A number of bytes as people read it.
fn bytes(n: u64) -> String {
    match n {
        0..1024 => format!("{n} B"),
        1024..1_048_576 => format!("{:.1} KiB", n as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", n as f64 / f64::from(1 << 20)),
        _ => format!("{:.2} GiB", n as f64 / f64::from(1 << 30)),
    }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

const KINDS: [(IoKind, &str); 4] =
    [(IoKind::Read, "read"), (IoKind::Write, "write"), (IoKind::Trim, "trim"), (IoKind::Flush, "flush")];

fn describe(name: &str, info: &Info, notes: &[String]) -> String {
    let mut t = String::new();
    // Writing to a string cannot fail.
    let mut line = |text: String| writeln!(t, "{text}").unwrap_or_default();
    line(format!("Block trace {name}\n"));
    let all = info.requests();
    line(format!("requests    {all} over {}", info.span));
    if let Some(ratio) = info.read_ratio() {
        line(format!("reads       {:.1} % of reads and writes", 100.0 * ratio));
    }
    line(format!(
        "\n{:<6} {:>10} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}",
        "", "requests", "data", "mean", "largest", "sequential", "in streams", "unaligned"
    ));
    for (kind, word) in KINDS {
        let k = &info.kinds[kind as usize];
        if k.requests == 0 {
            continue;
        }
        let share = |n| percent(n, k.requests);
        match kind {
            IoKind::Flush => line(format!("{word:<6} {:>10}", k.requests)),
            _ => line(format!(
                "{word:<6} {:>10} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11}",
                k.requests,
                bytes(k.bytes),
                bytes(k.bytes / k.requests),
                bytes(k.largest),
                share(k.sequential),
                share(k.in_streams),
                share(k.unaligned)
            )),
        }
    }
    line(format!("\n{:<10} {:>10} {:>10} {:>10}   requests by size", "up to", "read", "write", "trim"));
    for class in 0..info.kinds[0].sizes.len() {
        let n = [0, 1, 2].map(|k| info.kinds[k].sizes[class]);
        if n.iter().any(|&n| n > 0) {
            line(format!("{:<10} {:>10} {:>10} {:>10}", class_name(class), n[0], n[1], n[2]));
        }
    }
    let f = &info.footprint;
    line(format!(
        "\nfootprint   {} ({} blocks of 4 KiB), addresses up to {}",
        bytes(f.bytes()),
        f.blocks,
        bytes(f.highest)
    ));
    line(format!("            {} blocks read, {} written", f.blocks_read, f.blocks_written));
    line(format!(
        "            {} read before they are written: they were there when the trace began",
        f.blocks_read_first
    ));
    if f.block_reads > 0 {
        line(format!(
            "            {} of blocks read had been read before",
            percent(f.block_reads_again, f.block_reads)
        ));
    }
    for reuse in info.reuse.iter().filter(|r| r.accesses > 0) {
        let span = bytes(reuse.span_bytes);
        line(format!(
            "map pages   of {span}: {} read; hits of a least-recently-used cache of so many pages:",
            reuse.pages
        ));
        let hit = |k| format!("{}: {:.1} %", 1u64 << k, 100.0 * reuse.hit_ratio(k).unwrap_or(0.0));
        let hits: Vec<String> = (0..reuse.hits.len()).map(hit).collect();
        for row in hits.chunks(6) {
            line(format!("            {}", row.join("   ")));
        }
    }
    let slots = &info.timeline.slots;
    let busiest = slots.iter().map(|s| s.requests).max().unwrap_or(0);
    let width = info.timeline.width;
    if !slots.is_empty() {
        let mean = all as f64 / info.span.as_secs_f64().max(width.as_secs_f64());
        line(format!(
            "load        {mean:.1} requests/s; {:.1} in the busiest {width}",
            busiest as f64 / width.as_secs_f64()
        ));
    }
    let paused = |c: &&readpath_workload::trace::info::GapClass| c.count > 0;
    let pauses: Vec<String> =
        info.gaps.classes.iter().filter(paused).map(|c| format!("{} of {}", c.count, c.at_least)).collect();
    if !pauses.is_empty() {
        line(format!("pauses      {} or longer; the longest {}", pauses.join(", "), info.gaps.longest));
    }
    match &info.depth {
        Some(d) => line(format!(
            "depth       {:.2} on average, {} at most, busy {}",
            d.mean,
            d.most,
            percent(d.busy.0, d.span.0)
        )),
        None => line("depth       not known: the trace has no latencies".into()),
    }
    line(String::new());
    for note in notes {
        line(format!("Note: {note}"));
    }
    t
}

/// Where converted requests go.
enum Out<W: Write> {
    Csv(CsvWriter<W>),
    Fio(FioWriter<W>),
}

fn convert(from: &Path, into: &Path, to: TraceFormat, target: &str, input: &TraceInput) -> Result<()> {
    check_not_input(into, from)?;
    if is_stdin(into) {
        return Err(usage(anyhow!("-: is standard input, and no file to write; /dev/stdout or ./- may be meant")));
    }
    let options = options(input)?;
    let shared = stoppable(&Live::default())?;
    let (mut reader, _) = open(from, &options, &shared)?;
    let part = PartFile::create(into)?;
    let name = into.display().to_string();
    let mut out = match to {
        TraceFormat::Csv => Out::Csv(CsvWriter::new(&name, &part.file)?),
        TraceFormat::Fio => Out::Fio(FioWriter::new(&name, &part.file, target).map_err(|e| match e.reason {
            Reason::Options => usage(anyhow!("--target: {}", e.message)),
            _ => e.into(),
        })?),
    };
    let mut batch = vec![Request::NONE; BATCH];
    loop {
        let n = fill(&mut reader, &mut batch, &shared)?;
        for request in &batch[..n] {
            match &mut out {
                Out::Csv(out) => out.write(request)?,
                Out::Fio(out) => out.write(request)?,
            }
        }
        if n < batch.len() {
            break;
        }
    }
    let mut notes = notes(&inputs::name(from), &reader);
    match out {
        Out::Csv(out) => out.finish().map(drop)?,
        Out::Fio(out) => {
            let lost = out.lost_flags();
            out.finish().map(drop)?;
            if lost > 0 {
                notes.push(format!(
                    "{name}: {lost} writes LOST force unit access or the flush before them, which fio's log cannot hold"
                ));
            }
            notes.push(format!(
                "{name}: times are cut to microseconds; processes and latencies have no place in fio's log"
            ));
        }
    }
    part.finish()?;
    let mut text = String::new();
    for note in &notes {
        writeln!(text, "Note: {note}")?;
    }
    writeln!(text, "{name}: {} requests", reader.summary().requests)?;
    output::emit(text.as_bytes(), None)
}
