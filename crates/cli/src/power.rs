// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath power`: power cuts in the middle of a fio job or a trace.

use crate::args::Power;
use crate::ask::{Asking, Files, ask};
use crate::output;
use anyhow::Result;
use readpath_report::TableSpec;
use readpath_session::ask::power::question;
use readpath_session::results::Metric;
use readpath_session::results::metric;
use std::iter;
use std::path::PathBuf;

static COLUMNS: [Metric; 14] = [
    metric::POWER_CUTS,
    metric::RECOVERY_TIME_MEAN,
    metric::RECOVERY_TIME_MAX,
    metric::RECOVERY_TIME_BOUND,
    metric::RECOVERY_READS_MAX,
    metric::TORN_UNITS,
    metric::REQUESTS_IN_FLIGHT_MEAN,
    metric::BLOCKS_CHECKED,
    metric::BLOCKS_WRONG,
    metric::BLOCKS_WRONG_BY_RULE,
    metric::REQUESTS_RULED,
    metric::HPB_HIT_RATIO,
    metric::MAP_REQ_CNT,
    metric::HOST_MEMORY,
];

pub fn main(args: &Power) -> Result<()> {
    let (of, common) = (&args.of, &args.common);
    let files = Files {
        folder: common.basics.out.clone(),
        inputs: iter::once(&of.workload).chain(&of.faults).map(PathBuf::as_path).collect(),
        ..Files::default()
    };
    let spec = TableSpec::of(&COLUMNS).headed(&metric::MAP_REQ_CNT, "map loads");
    let begin = |names| Asking::begin(&of.making, common, names, files);
    ask(begin, None, |ready| question(of, ready), |answer, width| output::table(&answer.document, spec, width))
        .map(drop)
}
