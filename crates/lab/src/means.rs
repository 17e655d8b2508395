// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bars of cases by variants, and those of mean latencies: the first figures of runs that are compared. It adds no
//! figure that a row does not have.

use crate::verdict::{DECIDING, Outcome};
use readpath_results::{Chart, ChartKind, Error, Interval, Row, SeriesStyle};

/// Variants of a legend at most; more are positions on the axis.
pub(crate) const MOST_SERIES: usize = 8;

/// Bars of `value` for each case, by key and name, and each variant. The variants are on the axis where they are many,
/// or where there is one case; otherwise the cases, which are `called` so.
pub(crate) fn bars<'a>(
    mut chart: Chart,
    (cases, called): (&[(&'a str, &'a str)], &str),
    variants: &[&'a str],
    value: impl Fn(&str, &str) -> Option<(f64, Option<Interval>)>,
) -> Result<Chart, Error> {
    let point = |case: &str, variant: &str, at: &'a str| value(case, variant).map(|(y, interval)| (at, y, interval));
    let by_variant = variants.len() > MOST_SERIES || cases.len() == 1;
    chart.x_label = if by_variant { "variant" } else { called }.to_owned();
    if by_variant {
        for (case, name) in cases {
            let points = variants.iter().filter_map(|variant| point(case, variant, variant));
            chart.series_with_bars(*name, SeriesStyle::Plain, points)?;
        }
    } else {
        for variant in variants {
            let points = cases.iter().filter_map(|(case, name)| point(case, variant, name));
            chart.series_with_bars(*variant, SeriesStyle::Plain, points)?;
        }
    }
    chart.series.retain(|series| !series.points.is_empty());
    Ok(chart)
}

/// A chart of each mean latency that several of `rows` have, the deciding one first, with the intervals of `outcomes`.
pub(crate) fn latencies(rows: &[&Row], outcomes: &[&Outcome]) -> Result<Vec<Chart>, Error> {
    let mut charts = Vec::new();
    for (metric, _) in &DECIDING {
        let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.metric == *metric).collect();
        if rows.len() < 2 {
            continue;
        }
        let one_workload = rows.iter().all(|row| row.case.name() == rows[0].case.name());
        let (mut cases, mut variants): (Vec<(&str, &str)>, Vec<&str>) = (Vec::new(), Vec::new());
        for row in &rows {
            let name = row.case.jobs_name().filter(|_| one_workload).unwrap_or(&row.case);
            if !cases.contains(&(&*row.case, name)) {
                cases.push((&*row.case, name));
            }
            if !variants.contains(&&*row.variant) {
                variants.push(&row.variant);
            }
        }
        let value = |case: &str, variant: &str| {
            let row = rows.iter().find(|row| *row.case == *case && row.variant == variant)?;
            let of = |outcome: &&&Outcome| outcome.variant() == variant;
            Some((row.simulated, outcomes.iter().filter(of).find_map(|outcome| outcome.interval(row))))
        };
        let chart =
            Chart::new(format!("mean_{}", metric.name()), metric.label(), ChartKind::Bars).axes("", metric.unit());
        let mut chart = bars(chart, (&cases, if one_workload { "jobs" } else { "case" }), &variants, value)?;
        if chart.series.iter().flat_map(|series| &series.points).any(|point| point.interval.is_some()) {
            chart.caption = "Error bars are 95 % confidence intervals, from the parts of each run.".to_owned();
        }
        charts.push(chart);
    }
    Ok(charts)
}
