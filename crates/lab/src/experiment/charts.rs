// SPDX-License-Identifier: MIT OR Apache-2.0
//! Charts of an experiment, from the rows of its document.

use super::part;
use readpath_config::experiment::Experiment;
use readpath_results::metric::{self, Figure, Requests};
use readpath_results::{Chart, ChartKind, Document, Error, Metric, Row, SeriesStyle, X};

/// The first of these metrics that was measured has charts.
static CHARTED: [Metric; 4] = [
    metric::START_UP_TIME,
    Requests::RandomRead.of(Figure::Throughput),
    Requests::Read.of(Figure::Throughput),
    Requests::Write.of(Figure::Throughput),
];

/// Name of a metric in charts.
fn title(metric: &Metric) -> String {
    match metric {
        m if *m == metric::START_UP_TIME => "Time until all apps have started".to_owned(),
        m if *m == metric::HPB_HIT_RATIO => "Reads with a good HPB entry".to_owned(),
        m if *m == metric::HOST_MAP_HIT_RATIO => "Blocks whose map page was in host memory".to_owned(),
        m => m.label(),
    }
}

/// Curves of a chart at most; the cases of more are in several charts.
const MOST_CURVES: usize = 6;

/// Whether mean latencies answer the question: nothing was published, launched or laid out along an axis.
pub(super) fn begin_with_means(doc: &Document, experiment: &Experiment) -> bool {
    let has_own = |row: &Row| row.published.is_some() || row.metric == metric::START_UP_TIME;
    experiment.variant_axis.is_none() && !doc.rows.iter().any(has_own)
}

/// Charts of the cases and variants of an experiment.
pub(super) fn of_rows(doc: &Document, experiment: &Experiment) -> Result<Vec<Chart>, Error> {
    let cases: Vec<&str> = experiment.workload.cases();
    if let Some(axis) = &experiment.variant_axis {
        return variant_charts(doc, experiment, &cases, axis);
    }
    let mut charts = Vec::new();
    if cases.len() > 1 {
        for group in groups(doc, &cases) {
            charts.extend(group_charts(doc, experiment, &cases, group.as_deref())?);
        }
    }
    Ok(charts)
}

/// The groups of jobs that rows are about, each once; none for rows about a whole case.
fn groups(doc: &Document, cases: &[&str]) -> Vec<Option<String>> {
    let mut groups: Vec<Option<String>> = Vec::new();
    for row in doc.rows.iter().filter(|r| CHARTED.contains(&r.metric) && cases.contains(&r.case.name())) {
        let group = row.case.jobs_name().map(str::to_owned);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// Charts of a group of jobs over the cases: throughput, what the second variant gains over the first, map hits.
fn group_charts(
    doc: &Document,
    experiment: &Experiment,
    cases: &[&str],
    group: Option<&str>,
) -> Result<Vec<Chart>, Error> {
    let axis = experiment.axis.as_deref().unwrap_or("case");
    let id = |id: &str| group.map_or_else(|| id.to_owned(), |group| format!("{id}, {group}"));
    let value = |case: &str, variant: &str, metric: &Metric| doc.find(&part(case, group), variant, metric);
    let measured = |metric: &Metric| {
        let any = |v| cases.iter().any(|case| value(case, v, metric).is_some());
        experiment.variants.iter().any(|v| any(&v.name))
    };
    let Some(charted) = CHARTED.iter().find(|metric| measured(metric)) else { return Ok(Vec::new()) };
    let title = group
        .map_or_else(|| format!("{} by {axis}", title(charted)), |group| format!("Throughput of {group} by {axis}"));
    let caption = match doc.rows.iter().any(|r| r.published.is_some()) {
        true => "Published beside simulated values. Which of them were used to choose parameters is in the table.",
        false if experiment.claims.is_empty() => "Nothing has been published for these cases.",
        false => "No figures have been published for these cases; what was claimed is among the findings.",
    };
    let mut bars = Chart::new(id("throughput"), title, ChartKind::Bars).axes(axis, charted.unit()).caption(caption);
    let mut hits = Chart::new(id("map_hits"), "Blocks read without waiting for a map page", ChartKind::Lines)
        .axes(axis, "% of blocks read")
        .caption("Served with a good HPB entry, or with the map page in the device's SRAM.");
    for variant in &experiment.variants {
        let points = |published: bool, metric: &Metric| -> Vec<(String, f64)> {
            cases
                .iter()
                .filter_map(|&case| {
                    let row = value(case, &variant.name, metric)?;
                    Some((case.to_owned(), if published { row.published? } else { row.simulated }))
                })
                .collect()
        };
        let published = points(true, charted);
        if !published.is_empty() {
            bars.series(format!("{}, published", variant.name), SeriesStyle::Published, published)?;
        }
        bars.series(format!("{}, simulated", variant.name), SeriesStyle::Simulated, points(false, charted))?;
        hits.series(&variant.name, SeriesStyle::Simulated, points(false, &metric::MAP_HIT_RATIO))?;
    }
    let mut charts = vec![bars];
    if let [base, other, ..] = &experiment.variants[..]
        && *charted != metric::START_UP_TIME
    {
        let mut chart = gain(&id("gain"), axis, cases, &base.name, &other.name, |c, v| value(c, v, charted))?;
        if let Some(group) = group {
            chart.title += &format!(": {group}");
        }
        charts.push(chart);
    }
    if measured(&metric::MAP_HIT_RATIO) {
        charts.push(hits);
    }
    Ok(charts)
}

/// Charts over the variants, with a line for each case. Where at least two variants have numbers for names, they stand
/// at those on the axis, and the others are left out. Names that are no numbers are not joined: there are bars.
fn variant_charts(doc: &Document, experiment: &Experiment, cases: &[&str], axis: &str) -> Result<Vec<Chart>, Error> {
    let number = |name: &str| name.parse().ok().filter(|n: &f64| n.is_finite());
    let names = || experiment.variants.iter().map(|variant| variant.name.as_str());
    let numbers: Vec<f64> = names().filter_map(number).collect();
    let are_numbers = numbers.len() > 1;
    let others: Vec<String> = names().filter(|name| are_numbers && number(name).is_none()).map(str::to_owned).collect();
    let place = |name: &str| match number(name) {
        Some(number) if are_numbers => Some(X::Number(number)),
        None if are_numbers => None,
        _ => Some(X::Label(name.to_owned())),
    };
    let doubles = numbers.len() > 2 && numbers.iter().all(|n| *n == 0.0 || *n > 0.0 && n.log2().fract() == 0.0);
    let hits = [(&metric::HPB_HIT_RATIO, "% of reads"), (&metric::HOST_MAP_HIT_RATIO, "% of blocks read")];
    let kind = if are_numbers { ChartKind::Lines } else { ChartKind::Bars };
    let mut charts = Vec::new();
    for (metric, unit) in CHARTED.iter().map(|metric| (metric, metric.unit())).chain(hits) {
        for (part, cases) in cases.chunks(MOST_CURVES).enumerate() {
            let id = if part == 0 { metric.name().to_owned() } else { format!("{}_{}", metric.name(), part + 1) };
            let mut chart = Chart::new(id, format!("{} by {axis}", title(metric)), kind).axes(axis, unit);
            chart.x_log = doubles;
            if !others.is_empty() {
                chart.caption = format!("Not on this axis: {}.", others.join(", "));
            }
            for &case in cases {
                let value = |name: &str| Some((place(name)?, doc.find(case, name, metric)?.simulated));
                let points: Vec<(X, f64)> = names().filter_map(value).collect();
                if !points.is_empty() {
                    chart.series(case, SeriesStyle::Simulated, points)?;
                }
            }
            // A device without HPB has no hits of it.
            let all_zero = || chart.series.iter().flat_map(|series| &series.points).all(|point| point.y == 0.0);
            if !chart.series.is_empty() && !all_zero() {
                charts.push(chart);
            }
        }
    }
    Ok(charts)
}

fn gain<'a>(
    id: &str,
    axis: &str,
    cases: &[&str],
    base: &str,
    other: &str,
    row: impl Fn(&str, &str) -> Option<&'a Row>,
) -> Result<Chart, Error> {
    let mut chart = Chart::new(id, format!("{other} against {base}"), ChartKind::Lines)
        .axes(axis, "times as fast")
        .caption("Ratio of the two throughputs; 1 = no difference.");
    for (published, name) in [(true, "published"), (false, "simulated")] {
        let points: Vec<(String, f64)> = cases
            .iter()
            .filter_map(|&case| {
                let (a, b) = (row(case, other)?, row(case, base)?);
                let (a, b) = if published { (a.published?, b.published?) } else { (a.simulated, b.simulated) };
                (b > 0.0).then(|| (case.to_owned(), a / b))
            })
            .collect();
        if !points.is_empty() {
            let style = if published { SeriesStyle::Published } else { SeriesStyle::Simulated };
            chart.series(name, style, points)?;
        }
    }
    Ok(chart)
}
