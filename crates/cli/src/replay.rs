// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath replay`: block traces on variants of a device, or what a server recorded.

use crate::args::Replay;
use crate::ask::{Asking, Files, ask};
use crate::{output, recording};
use anyhow::Result;
use readpath_report::TableSpec;
use readpath_session::ask::replay::question;
use readpath_session::lab::question::Answer;
use readpath_session::results::Metric;
use readpath_session::results::metric::{self, Figure::*, Requests::*};
use std::path::PathBuf;

static COLUMNS: [Metric; 18] = [
    metric::REQUESTS,
    metric::MAP_HIT_RATIO,
    metric::HPB_HIT_RATIO,
    metric::MAP_LOADS,
    Read.of(LatencyMean),
    Read.of(LatencyP50),
    Read.of(LatencyP99),
    Read.of(LatencyP99_9),
    Write.of(LatencyMean),
    Write.of(LatencyP99),
    Flush.of(LatencyMean),
    Trim.of(LatencyMean),
    metric::DEVICE_MAP_MEMORY,
    metric::HOST_MEMORY,
    metric::HOST_WRITE_AMPLIFICATION,
    metric::WRITE_AMPLIFICATION,
    metric::MOST_OUTSTANDING,
    metric::VIRTUAL_DURATION,
];

pub fn main(args: &Replay) -> Result<()> {
    if let Some(image) = &args.image {
        return recording::main(args, image);
    }
    let (of, common) = (&args.of, &args.common);
    let given = [&of.pressure, &of.events].into_iter().flatten();
    let inputs = of.files.iter().chain(&of.precondition).chain(given).map(PathBuf::as_path).collect();
    let files = Files { folder: common.basics.out.clone(), inputs, ..Files::default() };
    let begin = |names| Asking::begin(&of.making, common, names, files);
    ask(begin, None, |ready| question(of, ready), tables).map(drop)
}

/// The figures of replays.
pub fn tables(answer: &Answer, width: Option<u16>) -> String {
    output::table(&answer.document, TableSpec::of(&COLUMNS).headed(&metric::HOST_MEMORY, "map, host"), width)
}
