// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath hmb`, and its table, which `readpath reproduce hmb` has too.

use crate::args::Hmb;
use crate::ask::{Asking, Files, ask};
use crate::output;
use anyhow::Result;
use readpath_report::TableSpec;
use readpath_session::ask::hmb::own;
use readpath_session::lab::question::Answer;
use readpath_session::results::Metric;
use readpath_session::results::metric::{self, Figure, Requests::Read, Requests::Write};
use std::path::PathBuf;

/// How much host memory a device should get for these traces and jobs.
pub fn main(args: &Hmb) -> Result<()> {
    let inputs = args.of.files.iter().map(PathBuf::as_path).collect();
    let files = Files { folder: args.basics.out.clone(), inputs, ..Files::default() };
    let begin = |_| Asking::plain(&args.of.making, &args.basics, files);
    ask(begin, args.dry_run.then_some(args.basics.json), |ready| own(&args.of, ready), table).map(drop)
}

static COLUMNS: [Metric; 10] = [
    Read.of(Figure::Iops),
    Write.of(Figure::Iops),
    Read.of(Figure::Throughput),
    Read.of(Figure::LatencyMean),
    Read.of(Figure::LatencyP99),
    metric::MAP_HIT_RATIO,
    metric::MAP_LOADS,
    metric::HOST_MEMORY,
    metric::MEMORY_WOULD_SAVE,
    metric::MEMORY_WOULD_SAVE_ERROR,
];

/// The table of its answer.
pub fn table(answer: &Answer, width: Option<u16>) -> String {
    output::table(&answer.document, TableSpec::of(&COLUMNS), width)
}
