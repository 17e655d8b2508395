// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures that a document shows: the first of [`ASKED`] that every point has and that differ between points.

use crate::error::SweepError;
use crate::folder::Found;
use crate::merge::each;
use crate::record::{Outcome, Record};
use readpath_results::Metric;

/// Figures that answer most questions, in order of importance.
const ASKED: [&str; 7] = [
    "start_up_time",
    "read_latency_mean",
    "read_latency_p99",
    "read_throughput",
    "write_latency_p99",
    "write_throughput",
    "write_amplification",
];
/// The figure on the horizontal axis of a front.
const MEMORY: &str = "host_memory";
/// Figures that a document shows at most.
const MOST: usize = 4;

/// A figure of every point, in order of points.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// The part of the run that it is about; empty for the whole.
    pub part: String,
    pub metric: Metric,
    pub values: Vec<f64>,
}

impl Column {
    /// Its name in a document.
    pub(crate) fn title(&self) -> String {
        match self.part.as_str() {
            "" => self.metric.label(),
            part => format!("{}, {part}", self.metric.label()),
        }
    }
}

/// The figures that the document of a study shows.
#[derive(Debug)]
pub(crate) struct Columns {
    pub shown: Vec<Column>,
    /// Host memory, if it differs between points.
    pub memory: Option<Column>,
    /// Settings of every point.
    pub settings: Vec<Vec<String>>,
}

/// A name as records have it: part, metric and unit.
fn parsed(name: &str) -> (String, Metric) {
    let (part, rest) = name.rsplit_once(": ").unwrap_or(("", name));
    let (metric, unit) =
        rest.split_once(" (").map_or((rest, ""), |(metric, unit)| (metric, unit.trim_end_matches(')')));
    (part.to_owned(), Metric::new(metric.to_owned(), unit.to_owned()))
}

impl Columns {
    /// The figures of the points that did not fail; none if no figure differs.
    pub(crate) fn of(found: &Found) -> Result<Option<Columns>, SweepError> {
        // Names by the first point; a figure that another point lacks is not shown.
        let mut names: Option<Vec<String>> = None;
        let mut values: Vec<Vec<f64>> = Vec::new();
        let mut settings = Vec::new();
        each(found, |record: Record| {
            let Outcome::Figures(figures) = record.outcome else { return Ok(()) };
            let names = names.get_or_insert_with(|| {
                let wanted = |name: &&String| {
                    let (_, metric) = parsed(name);
                    ASKED.contains(&metric.name()) || metric.name() == MEMORY
                };
                figures.iter().map(|(name, _)| name).filter(wanted).cloned().collect()
            });
            values.resize(names.len(), Vec::new());
            for (name, values) in names.iter().zip(&mut values) {
                values.extend(figures.iter().find(|(other, _)| other == name).map(|(_, value)| *value));
            }
            settings.push(record.settings);
            Ok(())
        })?;
        let count = settings.len();
        let columns = names.unwrap_or_default().into_iter().zip(values).filter_map(|(name, values)| {
            let (part, metric) = parsed(&name);
            let differ = values.windows(2).any(|pair| pair[0] != pair[1]);
            (values.len() == count && differ).then_some(Column { part, metric, values })
        });
        let (memory, mut shown): (Vec<Column>, Vec<Column>) =
            columns.partition(|column| column.metric.name() == MEMORY);
        shown.sort_by_key(|column| ASKED.iter().position(|name| *name == column.metric.name()));
        shown.truncate(MOST);
        let memory = memory.into_iter().find(|column| column.part.is_empty());
        Ok((!shown.is_empty()).then_some(Columns { shown, memory, settings }))
    }
}
