// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds results against what others have claimed about them. It compares rows of a document and runs nothing.

use super::part;
use crate::runs::Plan;
use readpath_config::Claim;
use readpath_config::experiment::Experiment;
use readpath_results::metric::GAIN;
use readpath_results::{Case, Document, Error, Note, NoteKind, Origin, Row};

/// Adds, for each claim, a row for the difference in each case, and a note that says whether the claim holds. Claims
/// about cases or variants that were left out have one note together.
pub(super) fn check(doc: &mut Document, experiment: &Experiment, plans: &[Plan]) -> Result<(), Error> {
    let made: Vec<(&str, &str)> = plans.iter().map(|plan| (&*plan.case, &*plan.variant)).collect();
    let mut left_out = 0;
    for claim in &experiment.claims {
        let cases: Vec<&str> = cases(experiment, claim).collect();
        if !concerns(claim, &cases, &experiment.workload.runs(), &made) {
            left_out += 1;
            continue;
        }
        let group = claim.group.as_deref();
        let mut found: Vec<(Case, f64)> = Vec::new();
        for case in cases {
            let base = part(case, claim.base_group.as_deref().or(group));
            let case = part(case, group);
            let of = |case: &Case, variant: &str| {
                let is_it = |r: &&Row| r.case == *case && r.variant == variant && r.metric.name() == claim.metric;
                doc.rows.iter().find(is_it).map(|r| r.simulated)
            };
            if let (Some(base), Some(value)) = (of(&base, &claim.base), of(&case, &claim.variant))
                && base != 0.0
            {
                found.push((case, 100.0 * (value / base - 1.0)));
            }
        }
        let origin = if claim.fitted { Origin::Fit } else { Origin::Predicted };
        let gain = GAIN.with([&claim.metric]);
        for (case, percent) in &found {
            if doc.find(case, &claim.variant, &gain).is_none() {
                doc.row(case, &claim.variant, gain.clone(), *percent, origin)?;
            }
        }
        let note = Note::new(NoteKind::Claim, verdict(claim, &found)).of_variant(&claim.variant);
        doc.notes.push(
            found.iter().fold(note, |note, (case, percent)| note.with(format!("{case}: gain_percent"), *percent)),
        );
    }
    if left_out > 0 {
        let of = experiment.claims.len();
        doc.remark(format!("{left_out} of {of} claims are about cases or variants that were left out here"));
    }
    Ok(())
}

/// Notes published values that no row is compared with, though their case and variant were run: a group of jobs, a
/// metric or a unit that does not exist.
pub(super) fn note_published_without_row(doc: &mut Document, experiment: &Experiment, plans: &[Plan]) {
    for p in &experiment.published {
        let case = part(&p.case, p.group.as_deref());
        let was_run = plans.iter().any(|plan| *plan.case == *p.case && plan.variant == p.variant);
        let is_it = |r: &Row| r.case == case && r.variant == p.variant && r.metric.name() == p.metric;
        if was_run && !doc.rows.iter().any(|r| is_it(r) && r.published.is_some()) {
            let what = format!("{case}, {}, {} in {}", p.variant, p.metric, p.unit);
            doc.notes.push(Note::new(
                NoteKind::Claim,
                format!("PUBLISHED VALUE NOT COMPARED: {what}: nothing like it was measured"),
            ));
        }
    }
}

fn cases<'e>(experiment: &'e Experiment, claim: &'e Claim) -> impl Iterator<Item = &'e str> {
    let of_claim = |case: &&str| claim.cases.is_empty() || claim.cases.iter().any(|c| c == case);
    experiment.workload.cases().into_iter().filter(of_claim)
}

/// Whether both variants of a claim about `cases` were run, by the cases and variants in `made`. A case that is not
/// among `runs`, all that could be run, is a part of each of them.
fn concerns(claim: &Claim, cases: &[&str], runs: &[&str], made: &[(&str, &str)]) -> bool {
    let was_made = |case: &str, variant: &str| {
        made.iter().any(|made| made.1 == variant && (made.0 == case || !runs.contains(&case)))
    };
    cases.iter().any(|case| was_made(case, &claim.base) && was_made(case, &claim.variant))
}

fn verdict(claim: &Claim, found: &[(Case, f64)]) -> String {
    let least = found.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = found.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let (Some(least), Some(most)) = (least, most) else {
        return format!("NOT CHECKED: {} ({}): nothing that it refers to was measured", claim.text, claim.source);
    };
    let outside: Vec<String> = found
        .iter()
        .filter(|(_, percent)| !claim.holds(*percent))
        .map(|(row, percent)| format!("{row}: {percent:+.1} %"))
        .collect();
    let range = match found.len() {
        1 => format!("{:+.1} % ({})", least.1, least.0),
        _ => format!("{:+.1} % ({}) to {:+.1} % ({})", least.1, least.0, most.1, most.0),
    };
    match outside.is_empty() {
        true => format!("HOLDS: {} ({}): {range}", claim.text, claim.source),
        false => format!("DOES NOT HOLD: {} ({}): {}", claim.text, claim.source, outside.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(min: Option<f64>, max: Option<f64>) -> Claim {
        Claim {
            text: "Reads gain".into(),
            source: "a paper".into(),
            metric: "read_throughput".into(),
            group: None,
            base_group: None,
            variant: "on".into(),
            base: "off".into(),
            fitted: false,
            cases: Vec::new(),
            min_percent: min,
            max_percent: max,
        }
    }

    #[test]
    fn a_claim_holds_in_every_case_or_not_at_all() {
        let found = [("a".into(), 58.0), ("b".into(), 66.5)];
        let says = |min, max, found: &[(Case, f64)]| verdict(&claim(min, max), found);
        assert_eq!(says(Some(58.0), Some(67.0), &found), "HOLDS: Reads gain (a paper): +58.0 % (a) to +66.5 % (b)");
        assert_eq!(says(Some(60.0), None, &found), "DOES NOT HOLD: Reads gain (a paper): a: +58.0 %");
        assert_eq!(says(None, Some(60.0), &found[1..]), "DOES NOT HOLD: Reads gain (a paper): b: +66.5 %");
        assert!(says(None, Some(60.0), &[]).starts_with("NOT CHECKED"));
    }

    #[test]
    fn a_claim_concerns_what_was_run() {
        let concerns = |made: &[(&str, &str)]| concerns(&claim(None, None), &["a", "b"], &["a", "b", "c"], made);
        assert!(concerns(&[("b", "on"), ("b", "off")]));
        assert!(!concerns(&[("a", "on"), ("b", "off")]), "no case has both");
        assert!(!concerns(&[("c", "on"), ("c", "off")]), "another case");
        let all = [("launches", "on"), ("launches", "off")];
        assert!(super::concerns(&claim(None, None), &["cycle 2"], &["launches"], &all), "a part of the run");
    }
}
