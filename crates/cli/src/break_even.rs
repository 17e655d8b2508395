// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath break-even`: the least value of a key with which a workload is served as well as by another variant.

use crate::args::BreakEven;
use crate::ask::{Asking, Files, ask};
use crate::output;
use anyhow::Result;
use readpath_report::TableSpec;
use readpath_session::ask::break_even::question;
use readpath_session::results::{Metric, metric};
use std::path::PathBuf;

pub fn main(args: &BreakEven) -> Result<()> {
    let inputs = [&args.of.workload].into_iter().chain(&args.of.precondition).map(PathBuf::as_path).collect();
    let files = Files { folder: args.basics.out.clone(), inputs, ..Files::default() };
    let begin = |_| Asking::plain(&args.of.making, &args.basics, files);
    ask(
        begin,
        None,
        |ready| question(&args.of, ready),
        |answer, width| {
            let doc = &answer.document;
            let metric = doc.rows.iter().find(|row| row.metric.name() == args.of.metric).map(|row| row.metric.clone());
            let metrics: Vec<Metric> = metric.into_iter().chain([metric::MAP_HIT_RATIO, metric::HOST_MEMORY]).collect();
            output::table(doc, TableSpec::of(&metrics), width)
        },
    )
    .map(drop)
}
