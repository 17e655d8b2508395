// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath trace`: describes block traces and writes them in another format.

mod describe;

use crate::args::{TraceCommand, TraceFormat, TraceInput};
use crate::files::{PartFile, check_not_input, is_standard_output};
use crate::inputs;
use crate::live::Live;
use crate::output::{self, Folder};
use crate::runs::stoppable;
use crate::traces::{self, fill, notes, open, options};
use crate::usage;
use anyhow::{Result, anyhow};
use describe::describe;
use readpath_lab::trace_info::document;
use readpath_workload::trace::{Analysis, CsvWriter, FioWriter, Reason, Request, TraceError};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

/// Requests read at a time.
const BATCH: usize = 4096;

/// `readpath trace`.
pub fn main(command: &TraceCommand) -> Result<()> {
    match command {
        TraceCommand::Info { file, input, json, out } => info(file, input, *json, out.as_deref()),
        TraceCommand::Convert { from, into, to, target, input } => convert(from, into, *to, target, input),
    }
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
    doc.inputs.push(traces::input(source, &name, &shared)?);
    doc.process = output::process();
    if let Some(files) = files {
        files.write(&doc)?;
    }
    let text = if json { doc.to_json_pretty()? } else { describe(&name, &info, &notes) };
    output::emit(text.as_bytes(), None)
}

/// Where converted requests go.
enum Out<W: Write> {
    Csv(CsvWriter<W>),
    Fio(FioWriter<W>),
}

fn convert(from: &Path, into: &Path, to: TraceFormat, target: &str, input: &TraceInput) -> Result<()> {
    check_not_input(into, from)?;
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
    if is_standard_output(into) {
        // Nobody may be listening; that is no reason to fail.
        io::stderr().write_all(text.as_bytes()).ok();
        return Ok(());
    }
    output::emit(text.as_bytes(), None)
}
