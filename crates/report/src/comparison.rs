// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a comparison over seeds as lines: a line for each metric and variant, with its mean and the difference
//! from the base variant. Knows no output format but the table for a terminal.

use readpath_results::{Document, Finding, Interval, Row};

use crate::pivot::{TableSpec, heading};
use crate::terminal::{grid, ruled};
use crate::{format, text};

/// Names are wrapped at this width where the whole table is limited.
const NAME: usize = 20;

/// A value and half of its interval, as text; empty where there is nothing to say.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Figure {
    pub value: String,
    pub half: String,
}

impl Figure {
    fn new((value, half): (String, String)) -> Self {
        Figure { value, half }
    }
}

/// One metric of one variant.
pub(crate) struct Line<'a> {
    pub case: &'a str,
    /// Heading of the metric with its unit.
    pub metric: String,
    pub variant: &'a str,
    /// Number of lines of this case, on its first line; 0 on the others. `metric_lines` counts those of the metric
    /// likewise.
    pub case_lines: usize,
    pub metric_lines: usize,
    pub mean: Figure,
    pub difference: Figure,
    pub percent: Figure,
    pub finding: &'static str,
}

/// Whether the document compares over seeds.
pub(crate) fn has_any(document: &Document) -> bool {
    document.rows.iter().any(|r| r.sample.is_some())
}

/// Name of the base variant, if the document compares variants.
pub(crate) fn base(document: &Document) -> Option<&str> {
    document.rows.iter().find_map(|r| r.difference.as_ref().map(|d| d.base.as_str()))
}

/// The words for a finding in every output; empty for a difference that was shown.
pub(crate) fn words(finding: Finding) -> &'static str {
    match finding {
        Finding::Identical => "identical",
        Finding::Exact => "exact",
        Finding::Shown => "",
        Finding::NotShown => "no difference shown",
        Finding::OneSeed => "one seed",
    }
}

/// The lines of the metrics that the spec names, in its order, or of all.
pub(crate) fn lines<'a>(document: &'a Document, spec: &TableSpec) -> Vec<Line<'a>> {
    let rows = || document.rows.iter().filter(|r| r.sample.is_some());
    let mut cases: Vec<&str> = Vec::new();
    let mut metrics: Vec<(&str, String)> =
        spec.columns().iter().map(|(metric, label)| (metric.name(), label.clone())).collect();
    for row in rows() {
        if !cases.contains(&&*row.case) {
            cases.push(&row.case);
        }
        if spec.columns().is_empty() && metrics.iter().all(|m| m.0 != row.metric.name()) {
            metrics.push((row.metric.name(), row.metric.label()));
        }
    }
    let mut out: Vec<Line<'a>> = Vec::new();
    for case in cases {
        let first_of_case = out.len();
        for (metric, label) in &metrics {
            let first_of_metric = out.len();
            for row in rows().filter(|r| *r.case == *case && r.metric.name() == *metric) {
                out.push(line(row, label));
            }
            if let Some(first) = out.len().checked_sub(first_of_metric).filter(|n| *n > 0) {
                out[first_of_metric].metric_lines = first;
            }
        }
        if out.len() > first_of_case {
            out[first_of_case].case_lines = out.len() - first_of_case;
        }
    }
    out
}

fn line<'a>(row: &'a Row, label: &str) -> Line<'a> {
    let signed = |value: f64, interval: Option<Interval>| {
        let (text, half) = format::with_half(value, interval);
        let sign = if value > 0.0 && text.chars().any(|c| ('1'..='9').contains(&c)) { "+" } else { "" };
        Figure { value: format!("{sign}{text}"), half }
    };
    let difference = row.difference.as_ref();
    let percent = difference.and_then(|d| {
        let percent = d.percent?;
        Some(match d.percent_interval {
            Some(_) => signed(percent, d.percent_interval),
            None => Figure { value: format::percent(percent), half: String::new() },
        })
    });
    Line {
        case: &row.case,
        metric: heading(label, &row.metric),
        variant: &row.variant,
        case_lines: 0,
        metric_lines: 0,
        mean: Figure::new(format::with_half(row.simulated, row.sample.as_ref().and_then(|s| s.interval))),
        difference: difference.map(|d| signed(d.mean, d.interval)).unwrap_or_default(),
        percent: percent.unwrap_or_default(),
        finding: difference.map_or("", |d| words(d.finding)),
    }
}

/// The comparison as text: for each case and metric a line for each variant, with its mean, the difference from the
/// base variant in the unit and in percent, each with half of its 95 % interval, and the finding.
///
/// If the spec has a width, long names are wrapped, and so is what still does not fit. Every line ends with a line feed
/// and none with spaces. A document without rows over seeds gives a line that says so.
pub fn table(document: &Document, spec: &TableSpec) -> String {
    let lines = lines(document, spec);
    if lines.is_empty() {
        return "no rows\n".to_owned();
    }
    let several = lines.iter().filter(|l| l.case_lines > 0).count() > 1;
    let name = |name: &str| {
        let name = text::plain(name);
        if spec.max_width().is_some() { text::wrap(&name, NAME).join("\n") } else { name }
    };
    type Column<'c, 'a> = (&'static str, bool, Box<dyn Fn(&Line<'a>) -> String + 'c>);
    let columns: Vec<Column<'_, '_>> = vec![
        ("Case", true, Box::new(|l| if several && l.case_lines > 0 { name(l.case) } else { String::new() })),
        ("Metric", true, Box::new(|l| if l.metric_lines > 0 { name(&l.metric) } else { String::new() })),
        ("Variant", true, Box::new(|l| name(l.variant))),
        ("mean", false, Box::new(|l| l.mean.value.clone())),
        ("±", false, Box::new(|l| l.mean.half.clone())),
        ("difference", false, Box::new(|l| l.difference.value.clone())),
        ("±", false, Box::new(|l| l.difference.half.clone())),
        ("%", false, Box::new(|l| l.percent.value.clone())),
        ("±", false, Box::new(|l| l.percent.half.clone())),
        ("", true, Box::new(|l| l.finding.to_owned())),
    ];
    // Empty columns are not shown.
    let shown: Vec<&Column<'_, '_>> = columns.iter().filter(|c| lines.iter().any(|l| !(c.2)(l).is_empty())).collect();
    let head: Vec<(&str, bool)> = shown.iter().map(|c| (c.0, c.1)).collect();
    let cells = lines.iter().map(|line| shown.iter().map(|c| (c.2)(line)).collect());
    grid(ruled(), &head, cells, spec.max_width())
}
