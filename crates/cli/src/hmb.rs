// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of `readpath reproduce hmb`.

use crate::output;
use readpath_report::TableSpec;
use readpath_session::lab::question::Answer;
use readpath_session::results::Metric;
use readpath_session::results::metric::{self, Figure, Requests::Read, Requests::Write};

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
