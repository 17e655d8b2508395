// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--dry-run`: which runs a command would make and how many requests each has, with everything checked that can be
//! checked before a run.

use crate::output;
use anyhow::Result;
use indicatif::HumanCount;
use readpath_lab::experiment::{Plan, expected_ios};
use readpath_lab::replay::ReplayCase;
use readpath_report::terminal;
use serde_json::json;

/// Runs of one variant under one case.
pub struct Planned {
    case: String,
    variant: String,
    /// One for each seed.
    runs: u64,
    /// Requests of all of them; none if they go on for a time.
    requests: Option<u64>,
}

impl Planned {
    pub fn of(plan: &Plan) -> Self {
        let (case, variant) = (plan.case.clone(), plan.variant.clone());
        Planned { case, variant, runs: 1, requests: expected_ios(&plan.workload) }
    }

    /// Runs of plans, in their order; those that differ in their seed only are one line.
    pub fn of_plans<'p>(plans: impl IntoIterator<Item = &'p Plan>) -> Vec<Self> {
        let mut list: Vec<Planned> = Vec::new();
        for next in plans.into_iter().map(Planned::of) {
            match list.iter_mut().find(|old| old.case == next.case && old.variant == next.variant) {
                Some(old) => {
                    old.runs += 1;
                    old.requests = old.requests.zip(next.requests).map(|(a, b)| a + b);
                }
                None => list.push(next),
            }
        }
        list
    }

    /// Replays of a trace by a variant, each with so many seeds.
    pub fn of_replay(case: &ReplayCase, variant: &str, seeds: u32) -> Self {
        let runs = u64::from(seeds);
        Planned { case: case.name.clone(), variant: variant.to_owned(), runs, requests: Some(case.ios() * runs) }
    }
}

pub fn show(title: &str, list: &[Planned], json: bool) -> Result<()> {
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
            vec![planned.case.clone(), planned.variant.clone(), planned.runs.to_string(), requests]
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
