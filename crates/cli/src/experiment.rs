// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of experiments.

use crate::output;
use readpath_report::TableSpec;
use readpath_report::terminal::texts;
use readpath_session::lab::question::Answer;
use readpath_session::results::metric;
use readpath_session::results::{Document, Metric, Origin, Row};

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

/// A predicted value further from the published one does not hold.
const HOLDS_PERCENT: f64 = 10.0;
/// The same of a size after which a long write changes its speed.
const CLIFF_HOLDS_PERCENT: f64 = 20.0;

/// The published values of an answer, each with the simulated one and whether it holds.
pub fn published(answer: &Answer, width: Option<u16>) -> String {
    let doc = &answer.document;
    let compared = || doc.rows.iter().filter(|row| row.published.is_some());
    let is_of = |row: &Row, other: &Row| (&row.case, &row.variant) == (&other.case, &other.variant);
    let several = compared().any(|row| compared().filter(|other| is_of(row, other)).count() > 1);
    let row = |row: &Row| {
        let (published, error) = (row.published?, row.error_percent?);
        let holds = holds(row.origin, &row.metric, error);
        let value = |value: f64| format!("{value:.1}");
        let error = format!("{error:+.1}");
        let unit = if several {
            format!("{}, {}", row.metric.label(), row.metric.unit())
        } else {
            row.metric.unit().to_owned()
        };
        let case = row.case.to_string();
        Some(vec![case, row.variant.clone(), unit, value(published), value(row.simulated), error, holds.to_owned()])
    };
    let head = [
        ("", true),
        ("", true),
        ("", true),
        ("published", false),
        ("simulated", false),
        ("error %", false),
        ("", true),
    ];
    texts(&head, &doc.rows.iter().filter_map(row).collect::<Vec<_>>(), width)
}

/// What is to be said of a value that is off by so many percent.
fn holds(origin: Origin, metric: &Metric, error: f64) -> &'static str {
    let is_cliff = [metric::CACHED_WRITE, metric::FOLDING_FROM].contains(metric);
    let most = if is_cliff { CLIFF_HOLDS_PERCENT } else { HOLDS_PERCENT };
    match origin {
        Origin::Predicted if error.abs() > most => "does not hold",
        origin => origin.as_str(),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cliff_may_be_off_by_twice_as_much() {
        let of = |metric: &Metric, error| holds(Origin::Predicted, metric, error);
        for (error, speed, size) in [
            (-9.0, "predicted", "predicted"),
            (15.0, "does not hold", "predicted"),
            (-21.0, "does not hold", "does not hold"),
        ] {
            assert_eq!(of(&metric::DIRECT_WRITE_THROUGHPUT, error), speed, "{error}");
            assert_eq!(of(&metric::FOLDING_FROM, error), size, "{error}");
            assert_eq!(of(&metric::CACHED_WRITE, error), size, "{error}");
        }
        assert_eq!(holds(Origin::Fit, &metric::DIRECT_WRITE_THROUGHPUT, 50.0), "fit");
    }
}
