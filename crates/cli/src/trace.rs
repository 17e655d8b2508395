// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath trace`: describes block traces, and writes them in another format.

mod describe;
mod experts;
mod mrc;

use crate::args::{TraceCommand, TraceFormat, TraceInput};
use crate::ask::stoppable;
use crate::files::{PartFile, check_not_input, is_standard_output};
use crate::inputs;
use crate::live::Live;
use crate::output::{self, Folder};
use crate::traces::{self, fill, open, options};
use crate::usage;
use anyhow::{Result, anyhow};
use describe::describe;
use readpath_session::lab::trace_info::document;
use readpath_session::workload::IoKind;
use readpath_session::workload::trace::{
    Analysis, CsvWriter, FioWriter, Info, Reason, Request, SECTOR_BYTES, TraceError,
};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

/// Requests read at a time.
const BATCH: usize = 4096;

pub fn main(command: &TraceCommand) -> Result<()> {
    match command {
        TraceCommand::Info { file, input, shift_sectors, json, out } => {
            info(file, input, *shift_sectors, *json, out.as_deref())
        }
        TraceCommand::Mrc(args) => mrc::main(args),
        TraceCommand::Experts(args) => experts::main(args),
        TraceCommand::Convert { file, output, output_format, filename, input } => {
            convert(file, output, *output_format, filename, input)
        }
    }
}

fn info(path: &Path, input: &TraceInput, shift: u8, json: bool, folder: Option<&Path>) -> Result<()> {
    let options = options(input)?;
    let shared = stoppable(&Live::default())?;
    let (mut reader, source) = open(path, &options, &shared)?;
    let files = folder.map(|out| Folder::create(out)?.apart_from([path])).transpose()?;
    let name = inputs::name(path);
    let mut analysis = Analysis::new(&Analysis::MAP_SPANS, Analysis::LIMIT_BYTES).map_err(usage)?;
    let mut batch = vec![Request::NONE; BATCH];
    loop {
        let n = fill(&mut reader, &mut batch, &shared)?;
        for request in &mut batch[..n] {
            if request.kind != IoKind::Flush {
                request.offset = request.offset.saturating_add(u64::from(shift) * SECTOR_BYTES);
            }
            analysis.add(request).map_err(|e| usage(TraceError { file: name.clone(), ..e }))?;
        }
        if n < batch.len() {
            break;
        }
    }
    let info = analysis.finish();
    let mut notes = reader.notes(&name);
    if shift > 0 {
        notes.push(format!("{name}: all addresses were shifted by {shift} sectors of 512 bytes"));
    }
    if let Some(note) = misaligned(&name, &info) {
        notes.insert(0, note);
    }
    if let Some(note) = reader.coarse_times(&name, traces::SPREAD_ELSEWHERE) {
        notes.insert(0, note);
    }
    let mut doc = document(&name, &info, &notes)?;
    doc.inputs.push(traces::input(source, &name, &shared)?);
    doc.process = output::process();
    if let Some(files) = files {
        files.write(&doc)?;
    }
    let text = if json { doc.to_json_pretty()? } else { describe(&name, &info, &notes) };
    output::emit(&text, None)
}

/// Says which shift would put most requests on whole blocks, where most lie between them in the same way.
fn misaligned(name: &str, info: &Info) -> Option<String> {
    let all: u64 = info.phases.iter().sum();
    let (phase, &count) = info.phases.iter().enumerate().max_by_key(|(_, count)| **count)?;
    // A phase is the sectors by which a request begins behind a block.
    (phase > 0 && 2 * count > all).then(|| {
        format!(
            "{name}: {:.1} % of its requests begin {phase} sectors behind a block of 4 KiB, as behind a partition that \
             is not aligned; --shift-sectors {} puts them right, here and in a replay",
            100.0 * count as f64 / all as f64,
            8 - phase
        )
    })
}

enum Out<W: Write> {
    Csv(CsvWriter<W>),
    Fio(FioWriter<W>),
}

impl<W: Write> Out<W> {
    fn write(&mut self, request: &Request) -> Result<(), TraceError> {
        match self {
            Out::Csv(out) => out.write(request),
            Out::Fio(out) => out.write(request),
        }
    }

    /// Ends it. How many requests lost flags, if that is a format which cannot hold all.
    fn finish(self) -> Result<Option<u64>, TraceError> {
        match self {
            Out::Csv(out) => out.finish().map(|_| None),
            Out::Fio(out) => {
                let lost = out.lost_flags();
                out.finish().map(|_| Some(lost))
            }
        }
    }
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
            Reason::Options => usage(anyhow!("--filename: {}", e.message)),
            _ => e.into(),
        })?),
    };
    let mut batch = vec![Request::NONE; BATCH];
    loop {
        let n = fill(&mut reader, &mut batch, &shared)?;
        batch[..n].iter().try_for_each(|request| out.write(request))?;
        if n < batch.len() {
            break;
        }
    }
    let mut notes = reader.notes(&inputs::name(from));
    if let Some(lost) = out.finish()? {
        if lost > 0 {
            notes.push(format!(
                "{name}: {lost} writes LOST force unit access or the flush before them, which fio's log cannot hold"
            ));
        }
        notes
            .push(format!("{name}: times are cut to microseconds; processes and latencies have no place in fio's log"));
    }
    part.finish()?;
    let mut text = String::new();
    for note in &notes {
        writeln!(text, "Note: {note}")?;
    }
    writeln!(text, "{name}: {} requests", reader.summary().requests)?;
    if is_standard_output(into) {
        // Standard error may be closed; that is no reason to fail.
        io::stderr().write_all(text.as_bytes()).ok();
        return Ok(());
    }
    output::emit(&text, None)
}
