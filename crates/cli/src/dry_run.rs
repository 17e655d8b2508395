// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--dry-run`: which runs a command would make and how many requests each has, with everything checked that can be
//! checked before a run.

use crate::output;
use anyhow::Result;
use indicatif::HumanCount;
use readpath_report::terminal;
use readpath_session::lab::question::{Point, Question};
use serde_json::json;

/// Runs of one variant under one case.
struct Planned<'a> {
    case: &'a str,
    variant: &'a str,
    /// Runs, one for each seed.
    runs: u64,
    /// Requests of all runs; none if a time ends them.
    requests: Option<u64>,
}

/// Runs in their order; those that differ in their seed only are one line.
fn planned(points: &[Point]) -> Vec<Planned<'_>> {
    let mut list: Vec<Planned> = Vec::new();
    for point in points {
        let (case, variant, requests) = (point.case(), point.variant(), point.expected_ios());
        match list.iter_mut().find(|old| old.case == case && old.variant == variant) {
            Some(old) => {
                old.runs += 1;
                old.requests = old.requests.zip(requests).map(|(a, b)| a + b);
            }
            None => list.push(Planned { case, variant, runs: 1, requests }),
        }
    }
    list
}

/// Shows the runs of a question and makes none.
pub fn show<Q: Question>(question: &Q, json: bool) -> Result<()> {
    let (title, list) = (question.title(), planned(question.points()));
    let runs: u64 = list.iter().map(|planned| planned.runs).sum();
    let known: u64 = list.iter().filter_map(|planned| planned.requests).sum();
    let is_known = list.iter().all(|planned| planned.requests.is_some());
    if json {
        let lines = list
            .iter()
            .map(|p| json!({ "case": p.case, "variant": p.variant, "runs": p.runs, "requests": p.requests }));
        let document = json!({
            "title": title,
            "planned": lines.collect::<Vec<_>>(),
            "runs": runs,
            "requests": is_known.then_some(known),
        });
        return output::emit(&(serde_json::to_string_pretty(&document)? + "\n"), None);
    }
    let lines: Vec<Vec<String>> = list
        .iter()
        .map(|planned| {
            let requests = planned.requests.map_or_else(|| "–".to_owned(), |n| HumanCount(n).to_string());
            vec![planned.case.to_owned(), planned.variant.to_owned(), planned.runs.to_string(), requests]
        })
        .collect();
    let head = [("case", true), ("variant", true), ("runs", false), ("requests", false)];
    let table = terminal::texts(&head, &lines, output::terminal_width());
    let plural = if runs == 1 { "" } else { "s" };
    let requests = match (is_known, HumanCount(known)) {
        // Flushes between the phases are not counted.
        (true, n) => format!("about {n} requests"),
        (false, _) if known == 0 => "as many requests as their time allows".to_owned(),
        (false, n) => format!("more than {n} requests, as many as their time allows"),
    };
    let total = format!("{runs} run{plural}, {requests}; none was made");
    output::emit(&format!("{title}\n\n{table}\n{total}\n"), None)
}
