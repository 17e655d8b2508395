// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of experiments.

use crate::output;
use readpath_report::TableSpec;
use readpath_report::terminal::texts;
use readpath_session::lab::question::Answer;
use readpath_session::results::metric;
use readpath_session::results::{Document, Metric, Row};

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

/// The published values of an answer, each with the simulated one and whether it holds.
pub fn published(answer: &Answer, width: Option<u16>) -> String {
    let doc = &answer.document;
    let compared = || doc.rows.iter().filter(|row| row.published.is_some());
    let is_of = |row: &Row, other: &Row| (&row.case, &row.variant) == (&other.case, &other.variant);
    let several = compared().any(|row| compared().filter(|other| is_of(row, other)).count() > 1);
    let row = |row: &Row| {
        let (published, error) = (row.published?, row.error_percent?);
        let holds = row.standing().map_or("", |standing| standing.as_str());
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
