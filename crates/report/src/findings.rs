// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary of a document: its agreement with the literature, and the effect of each variant on a metric.
//! Knows no output format.

use std::collections::HashSet;

use readpath_results::{Document, Origin, Row, Standing};

use crate::pivot::{KEY_METRICS, Line, Pivot};

/// Longest table of effects that is shown, in lines.
const MOST_EFFECTS: usize = 40;
/// Most metrics whose effects are shown.
const MOST_METRICS: usize = 3;

/// How well simulated values of one metric and origin agree with published ones.
pub(crate) struct Agreement<'a> {
    pub metric: &'a str,
    pub origin: Origin,
    pub values: usize,
    /// Of predictions: those that hold.
    pub hold: Option<usize>,
    pub mean_percent: f64,
    /// The row with the largest error.
    pub worst: &'a Row,
    pub worst_percent: f64,
}

/// One line for each metric and origin that has published values.
pub(crate) fn agreement<'a>(pivot: &'a Pivot<'_>) -> Vec<Agreement<'a>> {
    let mut out = Vec::new();
    for (at, column) in pivot.columns.iter().enumerate() {
        for origin in [Origin::Fit, Origin::Predicted, Origin::Measured] {
            let rows = pivot.lines.iter().filter_map(|line| line.cells[at]).filter(|row| row.origin == origin);
            let errors: Vec<(f64, &Row)> = rows.filter_map(|row| row.error_percent.map(|e| (e, row))).collect();
            let Some(&(worst_percent, worst)) = errors.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())) else {
                continue;
            };
            let values = errors.len();
            let holds = errors.iter().filter(|(_, row)| row.standing() == Some(Standing::Holds)).count();
            let hold = (origin == Origin::Predicted).then_some(holds);
            let mean_percent = errors.iter().map(|(e, _)| e.abs() / values as f64).sum();
            out.push(Agreement { metric: &column.label, origin, values, hold, mean_percent, worst, worst_percent });
        }
    }
    out
}

/// Why predictions do not hold: each reason, with the rows that it is about.
pub fn why_not(document: &Document) -> Vec<(&str, String)> {
    let mut all: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in document.rows.iter().filter(|row| row.standing() == Some(Standing::DoesNotHold)) {
        let Some(reason) = row.reason.as_deref() else { continue };
        match all.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, rows)) => rows.push(row),
            None => all.push((reason, vec![row])),
        }
    }
    let compared = || document.rows.iter().filter(|row| row.published.is_some());
    let name = |row: &Row| {
        let others = compared().filter(|other| (&other.case, &other.variant) == (&row.case, &row.variant)).count() > 1;
        let metric = if others { row.metric.label() } else { String::new() };
        let parts = [&*row.case, &*row.variant, &*metric];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    };
    all.into_iter().map(|(reason, rows)| (reason, rows.into_iter().map(name).collect::<Vec<_>>().join("; "))).collect()
}

/// A variant of a case, relative to the first variant of that case.
pub(crate) struct Effect<'a> {
    pub case: &'a str,
    pub variant: &'a str,
    pub published: Option<f64>,
    pub simulated: f64,
}

/// Factors of one metric against one baseline.
pub(crate) struct Effects<'a> {
    pub metric: &'a str,
    pub baseline: &'a str,
    pub lines: Vec<Effect<'a>>,
}

/// For each metric with published values, or for the most important ones that differ if there is none: every variant as
/// a multiple of the first variant of its case. Metrics that this variant lacks, or whose baseline is not positive or
/// not the same variant in all cases, are left out.
pub(crate) fn effects<'a>(pivot: &'a Pivot<'_>) -> Vec<Effects<'a>> {
    let compared = pivot.has_compared();
    let mut out = Vec::new();
    let key = |column: &crate::pivot::Column| KEY_METRICS.iter().position(|key| *key == column.metric);
    let mut order: Vec<usize> = (0..pivot.columns.len()).collect();
    if compared {
        order.retain(|&at| pivot.columns[at].compared);
    } else {
        order.retain(|&at| key(&pivot.columns[at]).is_some());
        order.sort_by_key(|&at| key(&pivot.columns[at]));
    }
    for at in order {
        if out.len() >= MOST_METRICS && !compared {
            break;
        }
        // Where cases differ in their baseline, or are too many, only those with published values are shown.
        let found = effects_of(pivot, at, false).or_else(|| compared.then(|| effects_of(pivot, at, true)).flatten());
        // A metric that no variant changes is not shown.
        let differs = |of: &Effects| compared || of.lines.iter().any(|line| (line.simulated - 1.0).abs() > 0.0005);
        out.extend(found.filter(differs));
    }
    out
}

/// The effects on the metric of column `at`; with `only_published`, only of cases with a published value there.
fn effects_of<'a>(pivot: &'a Pivot<'_>, at: usize, only_published: bool) -> Option<Effects<'a>> {
    let mut lines = Vec::new();
    let mut base: Option<(&str, &Row)> = None;
    let mut baseline = None;
    let mut first = None;
    let has_published = |line: &&Line<'_>| line.cells[at].is_some_and(|row| row.published.is_some());
    let published: HashSet<&str> = pivot.lines.iter().filter(has_published).map(|line| line.case).collect();
    for line in pivot.lines.iter().filter(|line| !only_published || published.contains(line.case)) {
        if first.is_none_or(|(case, _)| case != line.case) {
            first = Some((line.case, line.variant));
        }
        let Some(row) = line.cells[at] else { continue };
        match base {
            Some((case, base)) if case == line.case => {
                let same = *baseline.get_or_insert(base.variant.as_str()) == base.variant;
                let published = base.published.filter(|p| *p > 0.0).and_then(|b| Some(row.published? / b));
                let simulated = row.simulated / base.simulated;
                if !same || base.simulated <= 0.0 || !simulated.is_finite() || published.is_some_and(|p| !p.is_finite())
                {
                    return None;
                }
                lines.push(Effect { case: line.case, variant: line.variant, published, simulated });
            }
            _ if first != Some((line.case, line.variant)) => return None,
            _ => base = Some((line.case, row)),
        }
    }
    let metric = &pivot.columns[at].label;
    (1..=MOST_EFFECTS).contains(&lines.len()).then_some(Effects { metric, baseline: baseline?, lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pivot::TableSpec;
    use readpath_results::{Document, metric};

    #[test]
    fn values_of_each_origin_are_judged_by_themselves() {
        let mut doc = Document::new("e", "t");
        for (case, simulated, origin) in
            [("a", 110.0, Origin::Fit), ("b", 80.0, Origin::Predicted), ("c", 130.0, Origin::Predicted)]
        {
            doc.row(case, "", metric::SECONDS, simulated, origin).unwrap().published(100.0).unwrap();
        }
        let pivot = Pivot::new(&doc, &TableSpec::new());
        let found: Vec<_> = agreement(&pivot).iter().map(|a| (a.origin, a.values, a.hold, a.mean_percent)).collect();
        assert_eq!(found, [(Origin::Fit, 1, None, 10.0), (Origin::Predicted, 2, Some(0), 25.0)]);
    }

    #[test]
    fn predictions_that_do_not_hold_stand_together_by_their_reason() {
        let mut doc = Document::new("e", "t");
        for (case, simulated, origin, reason) in [
            ("a", 130.0, Origin::Predicted, Some("slow")),
            ("b", 90.0, Origin::Predicted, Some("it holds")),
            ("c", 130.0, Origin::Fit, None),
            ("d", 130.0, Origin::Predicted, None),
            ("e", 80.0, Origin::Predicted, Some("fast")),
            ("f", 150.0, Origin::Predicted, Some("slow")),
        ] {
            let row = doc.row(case, "v", metric::SECONDS, simulated, origin).unwrap();
            row.published(100.0).unwrap().reason = reason.map(str::to_owned);
        }
        doc.row("e", "v", metric::WAIT_SECONDS, 1.0, Origin::Predicted).unwrap().published(1.0).unwrap();
        assert_eq!(why_not(&doc), [("slow", "a, v; f, v".to_owned()), ("fast", "e, v, Seconds".to_owned())]);
    }

    #[test]
    fn effects_are_shown_of_the_three_metrics_that_matter_most() {
        let mut doc = Document::new("e", "t");
        for (variant, value) in [("A", 1.0), ("B", 2.0)] {
            for metric in &KEY_METRICS[..5] {
                doc.row("c", variant, metric.clone(), value, Origin::Predicted).unwrap();
            }
        }
        let pivot = Pivot::new(&doc, &TableSpec::new());
        let found: Vec<_> = effects(&pivot).iter().map(|e| e.metric.to_owned()).collect();
        assert_eq!(found, KEY_METRICS[..3].iter().map(|metric| metric.label()).collect::<Vec<_>>());
    }
}
