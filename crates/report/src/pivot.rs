// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a document as a table: a line for each case and variant, a column for each metric. Knows no output.

use std::collections::{HashMap, HashSet};

use readpath_results::metric::{self, Figure, Requests};
use readpath_results::{Document, Metric, Origin, Row, Standing};

use crate::format;

/// Which metrics a table shows, in which order, under which headings. The default shows all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSpec {
    columns: Vec<(Metric, String)>,
    width: Option<u16>,
}

impl TableSpec {
    /// All metrics in the order of their first row, headed by their names in words.
    pub fn new() -> Self {
        Self::default()
    }

    /// These metrics with the headings of the registry, as far as the document has them; all metrics if it has none of
    /// them.
    pub fn of<'a>(metrics: impl IntoIterator<Item = &'a Metric>) -> Self {
        Self::new().and(metrics)
    }

    /// Adds metrics with the headings of the registry.
    #[must_use]
    pub fn and<'a>(self, metrics: impl IntoIterator<Item = &'a Metric>) -> Self {
        metrics.into_iter().fold(self, |spec, metric| spec.column(metric, metric.heading()))
    }

    /// Adds a metric with a short heading; the unit is added to it. As soon as one metric is named, only named ones
    /// are shown. A metric that the document lacks is left out.
    #[must_use]
    pub fn column(mut self, metric: &Metric, heading: impl Into<String>) -> Self {
        self.columns.push((metric.clone(), heading.into()));
        self
    }

    /// Gives a metric that was named another heading.
    #[must_use]
    pub fn headed(mut self, metric: &Metric, heading: &str) -> Self {
        self.columns.iter_mut().filter(|c| c.0 == *metric).for_each(|c| heading.clone_into(&mut c.1));
        self
    }

    /// Limits a terminal table to `columns` characters: what does not fit side by side goes below.
    #[must_use]
    pub fn width(mut self, columns: u16) -> Self {
        self.width = Some(columns);
        self
    }

    /// Metrics and their headings.
    pub(crate) fn columns(&self) -> &[(Metric, String)] {
        &self.columns
    }

    pub(crate) fn max_width(&self) -> Option<usize> {
        self.width.map(usize::from)
    }
}

/// One metric in one unit.
pub(crate) struct Column {
    pub metric: Metric,
    pub label: String,
    /// Some row has a published value.
    pub compared: bool,
    /// All values are integers.
    pub integers: bool,
}

impl Column {
    /// The heading with its unit: `Throughput, MiB/s`.
    pub(crate) fn heading(&self) -> String {
        heading(&self.label, &self.metric)
    }

    pub(crate) fn number(&self, value: f64) -> String {
        format::in_column(value, self.integers)
    }
}

/// One case and variant.
pub(crate) struct Line<'a> {
    pub case: &'a str,
    pub variant: &'a str,
    /// Number of lines of this case, on its first line; 0 on the others.
    pub case_lines: usize,
    /// One cell for each column.
    pub cells: Vec<Option<&'a Row>>,
}

/// A heading with the unit of its metric.
pub(crate) fn heading(label: &str, metric: &Metric) -> String {
    if metric.unit().is_empty() { label.to_owned() } else { format!("{label}, {}", metric.unit()) }
}

pub(crate) struct Pivot<'a> {
    pub columns: Vec<Column>,
    pub lines: Vec<Line<'a>>,
}

impl<'a> Pivot<'a> {
    pub(crate) fn new(document: &'a Document, spec: &TableSpec) -> Self {
        let rows = &document.rows;
        let (_, metrics) = ranks(rows.iter().map(|r| &r.metric));
        let mut chosen: Vec<(&Metric, String)> = Vec::new();
        for (named, label) in &spec.columns {
            let same = metrics.iter().filter(|m| m.name() == named.name());
            chosen.extend(same.map(|&metric| (metric, label.clone())));
        }
        if chosen.is_empty() {
            chosen.extend(metrics.iter().map(|&metric| (metric, metric.label())));
        }
        let mut named = HashSet::new();
        chosen.retain(|(metric, _)| named.insert(*metric));
        let (column_of, _) = ranks(chosen.iter().map(|(metric, _)| *metric));
        let (case_rank, _) = ranks(rows.iter().map(|r| &*r.case));
        let (variant_rank, _) = ranks(rows.iter().map(|r| r.variant.as_str()));

        let mut columns: Vec<Column> = chosen
            .iter()
            .map(|(metric, label)| Column {
                metric: (*metric).clone(),
                label: label.clone(),
                compared: false,
                integers: true,
            })
            .collect();
        let mut lines: Vec<Line<'a>> = Vec::new();
        let mut line_of = HashMap::new();
        for row in rows {
            let Some(&at) = column_of.get(&row.metric) else { continue };
            let column = &mut columns[at];
            column.compared |= row.published.is_some();
            column.integers &= row.simulated.fract() == 0.0 && row.published.is_none_or(|p| p.fract() == 0.0);
            let line = *line_of.entry((&*row.case, row.variant.as_str())).or_insert_with(|| {
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

    pub(crate) fn has_variants(&self) -> bool {
        self.lines.iter().any(|line| !line.variant.is_empty())
    }

    pub(crate) fn has_compared(&self) -> bool {
        self.columns.iter().any(|column| column.compared)
    }
}

/// Metrics that matter most to a reader, in order; a document has some of them.
pub(crate) const KEY_METRICS: &[Metric] = &[
    metric::START_UP_TIME,
    Requests::RandomRead.of(Figure::Throughput),
    Requests::Read.of(Figure::Throughput),
    Requests::Read.of(Figure::Iops),
    Requests::Read.of(Figure::LatencyMean),
    Requests::Read.of(Figure::LatencyP99),
    metric::MAP_HIT_RATIO,
    metric::MAP_LOADS,
    metric::HOST_MEMORY,
    Requests::RandomWrite.of(Figure::Throughput),
    Requests::Write.of(Figure::Throughput),
    Requests::Write.of(Figure::Iops),
    Requests::Write.of(Figure::LatencyMean),
    Requests::Write.of(Figure::LatencyP99),
    metric::HOST_WRITE_AMPLIFICATION,
    metric::WRITE_AMPLIFICATION,
];

/// More columns than this do not fit on a page.
const MOST_COLUMNS: usize = 14;

/// The columns of the first table of a document that is too wide for one table: metrics with published values, and
/// those that matter most. `None` if everything fits.
pub(crate) fn main_columns(document: &Document, all: &Pivot<'_>) -> Option<TableSpec> {
    if all.columns.len() <= MOST_COLUMNS {
        return None;
    }
    let compared = |metric: &Metric| document.rows.iter().any(|r| r.metric == *metric && r.published.is_some());
    let has = |metric: &Metric| all.columns.iter().any(|c| c.metric == *metric);
    let metrics = || all.columns.iter().map(|c| &c.metric);
    let mut chosen: Vec<&Metric> = metrics().filter(|m| compared(m)).collect();
    chosen.extend(KEY_METRICS.iter().filter(|key| has(key) && !compared(key)));
    if chosen.is_empty() {
        chosen = metrics().collect();
    }
    chosen.truncate(MOST_COLUMNS);
    Some(chosen.into_iter().fold(TableSpec::new(), |spec, metric| spec.column(metric, metric.label())))
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

/// The mark of an error; empty for a row without a published value.
pub(crate) fn mark(row: &Row) -> &'static str {
    match (row.standing(), row.origin) {
        (Some(Standing::DoesNotHold), _) => Standing::DoesNotHold.as_str(),
        (_, Origin::Fit) => "fit",
        (_, Origin::Predicted) => "pred.",
        (_, Origin::Measured) => "",
    }
}

/// The legend of the marks, the same in every output.
pub(crate) const LEGEND: [(&str, &str); 4] = [
    ("fit", "this published value was used to choose a parameter of the model, so agreement proves nothing"),
    ("predicted", "no parameter was chosen with this value in view, so agreement is evidence"),
    ("does not hold", "a prediction that is off by more than 10 %, or 20 % for a size after which a long write slows"),
    ("measured", "timed on the machine that ran the program, or counted in a recording"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fourteen_columns_fit() {
        for columns in [MOST_COLUMNS, MOST_COLUMNS + 1] {
            let mut doc = Document::new("e", "t");
            for n in 0..columns {
                doc.row("c", "", Metric::new(format!("m{n}"), ""), 1.0, Origin::Predicted).unwrap();
            }
            let split = main_columns(&doc, &Pivot::new(&doc, &TableSpec::new()));
            assert_eq!(split.map(|spec| spec.columns.len()), (columns > 14).then_some(14), "{columns}");
        }
    }
}
