// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of `readpath reproduce policies`.

use crate::output;
use readpath_report::TableSpec;
use readpath_session::lab::question::Answer;
use readpath_session::results::Metric;
use readpath_session::results::metric::{self, Figure::LatencyMean, Requests::Read};

static COLUMNS: [Metric; 14] = [
    metric::START_UP_TIME,
    metric::START_UP_AGAINST_DCM,
    metric::MAP_LOADS,
    metric::MAP_LOADS_AGAINST_DCM,
    metric::MAP_LOADS_AGAINST_HCM,
    metric::READ_BUFFER_MAP_LOADS,
    metric::MAP_REQ_CNT,
    metric::EVICT_CNT,
    metric::REFUSE_CNT,
    metric::PLAIN_CNT,
    metric::HIT_CNT,
    Read.of(LatencyMean),
    metric::READ_LATENCY_AGAINST_DCM,
    metric::READ_LATENCY_AGAINST_HCM,
];

/// The table of its answer.
pub fn table(answer: &Answer, width: Option<u16>) -> String {
    output::table(&answer.document, TableSpec::of(&COLUMNS), width)
}
