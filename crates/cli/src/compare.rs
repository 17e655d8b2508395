// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath compare`: variants under one workload, and the table of their differences.

use crate::args::Compare;
use crate::ask::{Asking, Files, ask};
use crate::output;
use anyhow::Result;
use readpath_report::{TableSpec, comparison};
use readpath_session::ask::compare::question;
use readpath_session::results::Metric;
use readpath_session::results::metric::{self, Figure::*, Requests::*};
use std::path::PathBuf;

/// Lines of the table, where a document has them; all metrics are in the document and on the page.
static METRICS: [Metric; 29] = [
    RandomRead.of(Throughput),
    Read.of(Throughput),
    Read.of(Iops),
    RandomRead.of(LatencyMean),
    RandomRead.of(LatencyP50),
    RandomRead.of(LatencyP99),
    Read.of(LatencyMean),
    Read.of(LatencyP50),
    Read.of(LatencyP99),
    RandomWrite.of(Throughput),
    Write.of(Throughput),
    Write.of(Iops),
    RandomWrite.of(LatencyMean),
    RandomWrite.of(LatencyP50),
    RandomWrite.of(LatencyP99),
    Write.of(LatencyMean),
    Write.of(LatencyP50),
    Write.of(LatencyP99),
    Trim.of(LatencyMean),
    Flush.of(LatencyMean),
    metric::MAP_HIT_RATIO,
    metric::HPB_HIT_RATIO,
    metric::MAP_LOADS,
    metric::DEVICE_MAP_MEMORY,
    metric::HOST_MEMORY,
    metric::HOST_WRITE_AMPLIFICATION,
    metric::WRITE_AMPLIFICATION,
    metric::MOST_OUTSTANDING,
    metric::VIRTUAL_DURATION,
];

pub fn main(args: &Compare) -> Result<()> {
    let inputs = [&args.of.workload].into_iter().chain(&args.of.precondition).map(PathBuf::as_path).collect();
    let files = Files { folder: args.basics.out.clone(), inputs, ..Files::default() };
    let spec = output::limited(TableSpec::of(&METRICS), output::terminal_width());
    let spec = spec.headed(&metric::HOST_MEMORY, "map, host");
    let begin = |_| Asking::plain(&args.of.making, &args.basics, files);
    ask(
        begin,
        args.dry_run.then_some(args.basics.json),
        |ready| question(&args.of, ready),
        |answer, _| comparison::table(&answer.document, &spec) + "\n",
    )
    .map(drop)
}
