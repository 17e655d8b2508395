// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment `verification` with fewer requests and forged entries: what is whole withstands every attack, what is
//! not does not, and what is done in software costs more than what an engine does.

use readpath_lab::experiment::{Experimenting, plan};
use readpath_lab::question::{Question, make};
use readpath_lab::runs::Shared;
use readpath_results::Document;

/// Requests of a run, which in whole has 262,144 or twice as many.
const SHORT: u64 = 20_000;

fn value(doc: &Document, case: &str, variant: &str, metric: &str) -> f64 {
    let mut rows = doc.rows.iter();
    let row = rows.find(|r| r.case == case && r.variant == variant && r.metric.name() == metric);
    row.unwrap_or_else(|| panic!("{case}, {variant}, {metric}")).simulated
}

#[test]
fn costs_and_attacks_are_in_one_document() {
    let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    let experiment = readpath_config::experiment::load("verification", &none).expect("an experiment");
    let mut plans = plan(&experiment, &[], &none).expect("plans");
    let jobs = plans.iter_mut().flat_map(|plan| &mut plan.workload.phases).flat_map(|phase| &mut phase.jobs);
    jobs.for_each(|job| job.limits.ios = Some(SHORT));
    let question = Experimenting::new(experiment, plans, Some(SHORT));
    let done = make(&question, &Shared::default()).expect("runs");
    let answer = question.answer(&done).expect("an answer");
    let doc = &answer.document;
    assert_eq!(answer.parts.len(), 2, "runs and attacks are tables of their own");
    let all = "tag of 32 bits: no attack returned anything that a READ would not have";
    assert!(doc.notes.iter().any(|note| note.text == all), "{:?}", doc.notes);
    let attacks = ["forge", "replay", "swap", "other device", "flip a bit"];
    for case in attacks.iter().flat_map(|a| [format!("attack: {a}"), format!("attack: {a} by lists")]) {
        for safe in ["tag of 32 bits", "encrypted"] {
            assert_eq!(value(doc, &case, safe, "leaked"), 0.0, "{case}, {safe}");
        }
        assert!(value(doc, &case, "none", "leaked") > 1000.0, "{case}");
        assert!(value(doc, &case, "tag of 8 bits", "leaked") > 10.0, "{case}");
    }
    assert_eq!(value(doc, "attack: swap", "tag of 32 bits", "hpb_foreign"), 16_384.0);
    // Checks in software cost more than those of an engine; most of the cost is making entries.
    let speed = |case: &str, variant: &str| value(doc, case, variant, "read_throughput");
    for case in ["reads, depth 1", "reads, depth 32", "mixed, depth 1", "mixed, depth 32"] {
        for kind in ["tag", "encrypted"] {
            let (engine, firmware) =
                (speed(case, &format!("{kind}, engine")), speed(case, &format!("{kind}, firmware")));
            assert!(engine > firmware, "{case}: {engine} {firmware}");
        }
    }
    assert!(speed("mixed, depth 32", "encrypted, firmware") < speed("mixed, depth 32", "HPB off"));
    assert!(value(doc, "mixed, depth 32", "encrypted, engine", "hpb_stale") > 0.0, "verdicts of a run are told");
}
