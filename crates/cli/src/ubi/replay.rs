// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath ubi replay`: recorded read streams through the caches that were asked for.

use crate::args::UbiReplay;
use crate::files::{check_not_input, check_writable};
use crate::inputs::is_stdin;
use crate::output::{self, Folder};
use crate::stop::hold;
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_report::TableSpec;
use readpath_session::results::metric;
use readpath_session::results::{Document, Metric, Row};
use readpath_session::runs::missing;
use readpath_session::ubi::Replay;
use std::io::{self, Write};

static COLUMNS: [Metric; 8] = [
    metric::HITS,
    metric::MISSES,
    metric::NO_QUERY,
    metric::HIT_RATIO,
    metric::PAGE_READS,
    metric::WHOLE_PAGE_READS,
    metric::SECONDS,
    metric::METADATA_MEMORY,
];

/// Columns more, where a stream has nothing but other reads.
static OTHER_COLUMNS: [Metric; 2] = [metric::OTHER_PAGE_READS, metric::OTHER_SECONDS];

pub fn main(args: &UbiReplay) -> Result<()> {
    if args.json && args.csv.as_deref().is_some_and(is_stdin) {
        return Err(usage(anyhow!("--csv - and --json both print to standard output; choose one")));
    }
    let replay = Replay::read(&args.of)?;
    let inputs = args.of.files.iter().chain(&args.of.pressure);
    let folder = || args.out.as_deref().map(|out| Folder::create(out)?.apart_from(inputs.clone())).transpose();
    if let Some(file) = args.csv.as_ref().filter(|file| !is_stdin(file)) {
        inputs.clone().try_for_each(|input| check_not_input(file, input))?;
        check_writable(file)?;
    }
    // Checked before the replay, and made again at the end, so that no empty folder is left by a signal.
    let held = hold();
    drop(folder()?);
    drop(held);
    let mut doc = replay.document()?;
    doc.process = output::process();
    doc.validate()?;
    let held = hold();
    if let Some(folder) = folder()? {
        folder.write(&doc)?;
        held.done();
    }
    let left_out = replay.left_out.iter().cloned();
    if let Some(file) = &args.csv {
        let to = Some(file.as_path()).filter(|file| !is_stdin(file));
        output::emit(&doc.to_csv()?, to)?;
        if to.is_none() {
            doc.notes.iter().for_each(|note| drop(writeln!(io::stderr(), "Note: {note}")));
            return missing(left_out, replay.streams());
        }
    }
    let table = || output::table(&doc, columns(&doc), output::terminal_width());
    output::emit(&output::printed(&doc, args.json, args.out.as_deref(), table)?, None)?;
    missing(left_out, replay.streams())
}

fn columns(doc: &Document) -> TableSpec {
    let is_other = |rows: &[Row]| rows.iter().all(|r| r.metric != metric::SECONDS);
    let only_other = doc.rows.chunk_by(|a, b| a.case == b.case).any(is_other);
    let spec = TableSpec::of(&COLUMNS);
    if only_other { spec.and(&OTHER_COLUMNS) } else { spec }
}
