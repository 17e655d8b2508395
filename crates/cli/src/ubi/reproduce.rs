// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath reproduce ubi`: the published table beside the model, with streams if some are given.

use crate::args::{Basics, Reproduce};
use crate::output::{self, Kept};
use crate::stop::{self, Written};
use crate::usage;
use anyhow::{Result, anyhow};
use readpath_report::TableSpec;
use readpath_session::lab::ubi::Reproduction;
use readpath_session::results::metric;
use readpath_session::results::{Document, Metric};
use readpath_session::ubi::{EXPERIMENT, Prepared};
use std::ops::Range;
use std::path::Path;

static COLUMNS: [Metric; 7] = [
    metric::REAL_SECONDS,
    metric::SYS_SECONDS,
    metric::HITS,
    metric::MISSES,
    metric::NO_QUERY,
    metric::READ_SECONDS,
    metric::HEADER_SECONDS,
];

static CACHE_COLUMNS: [Metric; 6] =
    [metric::HITS, metric::MISSES, metric::NO_QUERY, metric::PAGE_READS, metric::READ_SECONDS, metric::REAL_SECONDS];

/// Refuses options that the experiment does not have, and lets signals end it.
pub fn begin(args: &Reproduce) -> Result<()> {
    let (common, chosen) = (&args.common, &args.of.chosen);
    let unused = [
        (common.trace_io.is_some(), "--trace-io"),
        (chosen.wire, "--wire"),
        (chosen.case.is_some(), "--case"),
        (chosen.variant.is_some(), "--variant"),
        (!args.of.making.set.is_empty(), "--set"),
        (args.dry_run, "--dry-run"),
    ];
    let unused = unused.into_iter().find(|(given, _)| *given).map(|(_, option)| option);
    if let Some(option) = unused.or(common.live.given()) {
        return Err(usage(anyhow!("{option} is for experiments on a UFS device; ubi has none")));
    }
    Ok(stop::at_once(Written::Nothing)?)
}

/// Writes the document to the folder `out` and shows it.
pub fn write_and_show(prepared: &Prepared, out: &Path, basics: &Basics) -> Result<Document> {
    let kept = || Kept::create(basics, Some(out), prepared.inputs());
    // Checked before the replay, and made again at the end, so that no empty folder is left by a signal.
    let held = stop::hold();
    drop(kept()?);
    drop(held);
    let Reproduction { document: mut doc, caches, sizes } = prepared.reproduce()?;
    doc.process = output::process();
    doc.validate()?;
    let held = stop::hold();
    kept()?.write(&doc)?;
    held.done();
    let part = |rows: Range<usize>, columns: &[Metric]| {
        let mut part = Document::new(EXPERIMENT, &doc.title);
        part.rows = doc.rows[rows].to_vec();
        output::table(&part, TableSpec::of(columns), output::terminal_width())
    };
    let tables = || match caches < sizes {
        true => format!(
            "{}The same streams through other caches:\n\n{}With 1 to 256 lines: figures in report.html, values in \
             result.json\n\n",
            part(0..caches, &COLUMNS),
            part(caches..sizes, &CACHE_COLUMNS)
        ),
        false => part(0..caches, &COLUMNS),
    };
    output::show(&doc, basics, Some(out), None, tables)?;
    let given = [
        (prepared.has_traces(), "--traces DIR", "recorded streams of attach, boot, find and rm"),
        (
            prepared.has_images(),
            "--image FILE",
            "what our reader of UBIFS makes of an image: attach and mount, find, find -ls, reading all files, \
             boot-like reading, rm",
        ),
    ];
    for (_, option, what) in given.into_iter().filter(|(given, ..)| !given && basics.prints_tables()) {
        let how = format!("'readpath reproduce {EXPERIMENT} {option}' adds them, with more caches.");
        output::emit(&format!("Left out: {what}. {how}\n"), None)?;
    }
    Ok(doc)
}
