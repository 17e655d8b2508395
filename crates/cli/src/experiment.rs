// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of experiments.

use crate::output;
use readpath_report::TableSpec;
use readpath_session::lab::question::Answer;
use readpath_session::results::metric;
use readpath_session::results::{Document, Metric};

/// Columns of attacks on HPB entries.
static ATTACKS: [Metric; 9] = [
    metric::TRIES,
    metric::BELIEVED,
    metric::BELIEVED_SHARE,
    metric::BELIEVED_EXPECTED,
    metric::LEAKED,
    metric::HPB_STALE,
    metric::HPB_FORGED,
    metric::HPB_FOREIGN,
    metric::HPB_ZERO,
];

/// The tables of an answer: of what was timed, and of attacks, which are counted.
pub fn tables(answer: &Answer, width: Option<u16>) -> String {
    let table = |doc: &Document| output::table(doc, output::columns(doc), width);
    match &answer.parts[..] {
        [timed, attacks] => {
            let attacks_table = output::table(attacks, TableSpec::of(&ATTACKS), width);
            format!("{}{}\n\n{attacks_table}", table(timed), attacks.title)
        }
        _ => table(&answer.document),
    }
}
