// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a document as a table: a line for each case and variant, a column for each metric. Knows no output.

use std::collections::{HashMap, HashSet};

use readpath_results::{Document, Origin, Row};

use crate::format;

/// Which metrics a table shows, in which order, under which headings. The default shows all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSpec {
    columns: Vec<(String, String)>,
    width: Option<u16>,
}

impl TableSpec {
    /// All metrics in the order of their first row, headed by their names in words.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a metric with a short heading; the unit is added to it. As soon as one metric is named, only named ones
    /// are shown. A metric that the document lacks is left out.
    #[must_use]
    pub fn column(mut self, metric: impl Into<String>, label: impl Into<String>) -> Self {
        self.columns.push((metric.into(), label.into()));
        self
    }

    /// Limits a terminal table to `columns` characters: what does not fit side by side goes below.
    #[must_use]
    pub fn width(mut self, columns: u16) -> Self {
        self.width = Some(columns);
        self
    }

    /// Metrics and their headings.
    pub(crate) fn columns(&self) -> &[(String, String)] {
        &self.columns
    }

    pub(crate) fn max_width(&self) -> Option<usize> {
        self.width.map(usize::from)
    }
}

/// One metric in one unit.
pub struct Column {
    pub metric: String,
    pub label: String,
    pub unit: String,
    /// Some row has a published value.
    pub compared: bool,
    /// All values are integers.
    pub integers: bool,
}

impl Column {
    /// The heading with its unit: `Throughput, MiB/s`.
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.label.clone() } else { format!("{}, {}", self.label, self.unit) }
    }

    pub fn number(&self, value: f64) -> String {
        format::in_column(value, self.integers)
    }
}

/// One case and variant.
pub struct Line<'a> {
    pub case: &'a str,
    pub variant: &'a str,
    /// Number of lines of this case, on its first line; 0 on the others.
    pub case_lines: usize,
    /// One cell for each column.
    pub cells: Vec<Option<&'a Row>>,
}

pub struct Pivot<'a> {
    pub columns: Vec<Column>,
    pub lines: Vec<Line<'a>>,
}

impl<'a> Pivot<'a> {
    pub fn new(document: &'a Document, spec: &TableSpec) -> Self {
        let rows = &document.rows;
        let (_, metrics) = ranks(rows.iter().map(|r| (r.metric.as_str(), r.unit.as_str())));
        let mut chosen: Vec<((&str, &str), String)> = if spec.columns.is_empty() {
            metrics.iter().map(|key| (*key, format::label(key.0))).collect()
        } else {
            let named = spec.columns.iter();
            named
                .flat_map(|(name, label)| {
                    metrics.iter().filter(move |key| key.0 == name).map(move |key| (*key, label.clone()))
                })
                .collect()
        };
        let mut named = HashSet::new();
        chosen.retain(|(key, _)| named.insert(*key));
        let (column_of, _) = ranks(chosen.iter().map(|(key, _)| *key));
        let (case_rank, _) = ranks(rows.iter().map(|r| r.case.as_str()));
        let (variant_rank, _) = ranks(rows.iter().map(|r| r.variant.as_str()));

        let mut columns: Vec<Column> = chosen
            .iter()
            .map(|((metric, unit), label)| Column {
                metric: (*metric).to_owned(),
                label: label.clone(),
                unit: (*unit).to_owned(),
                compared: false,
                integers: true,
            })
            .collect();
        let mut lines: Vec<Line<'a>> = Vec::new();
        let mut line_of = HashMap::new();
        for row in rows {
            let Some(&at) = column_of.get(&(row.metric.as_str(), row.unit.as_str())) else { continue };
            let column = &mut columns[at];
            column.compared |= row.published.is_some();
            column.integers &= row.simulated.fract() == 0.0 && row.published.is_none_or(|p| p.fract() == 0.0);
            let line = *line_of.entry((row.case.as_str(), row.variant.as_str())).or_insert_with(|| {
                let cells = vec![None; chosen.len()];
                lines.push(Line { case: &row.case, variant: &row.variant, case_lines: 0, cells });
                lines.len() - 1
            });
            lines[line].cells[at] = Some(row);
        }
        lines.sort_by_key(|line| (case_rank[line.case], variant_rank[line.variant]));
        let mut first = 0;
        for at in 0..lines.len() {
            if lines[at].case != lines[first].case {
                first = at;
            }
            lines[first].case_lines += 1;
        }
        Self { columns, lines }
    }

    pub fn has_variants(&self) -> bool {
        self.lines.iter().any(|line| !line.variant.is_empty())
    }

    pub fn has_compared(&self) -> bool {
        self.columns.iter().any(|column| column.compared)
    }
}

/// Metrics that matter most to a reader, in order; a document has some of them.
pub const KEY_METRICS: [&str; 15] = [
    "start_up_time",
    "random_read_throughput",
    "read_throughput",
    "read_iops",
    "read_latency_mean",
    "read_latency_p99",
    "map_hit_ratio",
    "map_loads",
    "host_memory",
    "random_write_throughput",
    "write_throughput",
    "write_iops",
    "write_latency_mean",
    "write_latency_p99",
    "write_amplification",
];

/// More columns than this do not fit on a page.
const MOST_COLUMNS: usize = 14;

/// What of a document that is too wide for one table comes first: metrics with published values, and those that matter most.
/// `None` if everything fits.
pub fn main_columns(document: &Document, all: &Pivot<'_>) -> Option<TableSpec> {
    if all.columns.len() <= MOST_COLUMNS {
        return None;
    }
    let (_, metrics) = ranks(document.rows.iter().map(|r| r.metric.as_str()));
    let compared = |metric: &str| document.rows.iter().any(|r| r.metric == metric && r.published.is_some());
    let mut chosen: Vec<&str> = metrics.iter().copied().filter(|m| compared(m)).collect();
    chosen.extend(KEY_METRICS.iter().filter(|key| metrics.contains(key) && !compared(key)));
    if chosen.is_empty() {
        chosen = metrics;
    }
    chosen.truncate(MOST_COLUMNS);
    Some(chosen.iter().fold(TableSpec::new(), |spec, metric| spec.column(*metric, format::label(metric))))
}

/// Each distinct item with its rank, and the items in order of first appearance.
fn ranks<T: Copy + Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> (HashMap<T, usize>, Vec<T>) {
    let (mut rank, mut order) = (HashMap::new(), Vec::new());
    for item in items {
        rank.entry(item).or_insert_with(|| {
            order.push(item);
            order.len() - 1
        });
    }
    (rank, order)
}

/// The mark beside an error; empty for a row that has nothing to be compared with.
pub fn mark(row: &Row) -> &'static str {
    match row.origin {
        Origin::Fit => "fit",
        Origin::Predicted => "pred.",
        Origin::Measured => "",
    }
}

/// What the marks mean, in the words of every output.
pub const LEGEND: [(&str, &str); 3] = [
    ("fit", "this published value was used to choose a parameter of the model, so agreement proves nothing"),
    ("predicted", "no parameter was chosen with this value in view, so agreement is evidence"),
    ("measured", "timed on the machine that ran the program, or counted in a recording"),
];
