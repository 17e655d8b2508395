// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size of a cache against time and hits: two charts of one stream. Knows neither what the stream is nor whose.

use readpath_results::{Chart, ChartKind, Document, Error, SeriesStyle};
use readpath_ubi::stream::Outcome;
use readpath_ubi::variant::Variant;

/// Draws what caches with several numbers of lines, among others, came to in case number `index`.
pub(super) fn by_lines(
    doc: &mut Document,
    index: usize,
    case: &str,
    outcomes: &[(Variant, Outcome)],
) -> Result<(), Error> {
    let mut hits =
        Chart::new(format!("hits_by_lines_{}", index + 1), format!("Hits by size, {case}"), ChartKind::Lines)
            .axes("lines", "% of reads that the cache was asked for")
            .x_log();
    let mut time =
        Chart::new(format!("seconds_by_lines_{}", index + 1), format!("Time by size, {case}"), ChartKind::Lines)
            .axes("lines", "s")
            .x_log()
            .caption("Caches without a choice of size are drawn as level lines.");
    let most = outcomes.iter().map(|(v, _)| v.lines).max().unwrap_or(1).max(1);
    let mut names: Vec<String> = Vec::new();
    for (variant, outcome) in outcomes {
        let name = variant.name();
        if names.contains(&name) {
            continue;
        }
        if variant.kind.has_lines() {
            let same = || outcomes.iter().filter(|(v, _)| v.name() == name);
            let ratio = |o: &Outcome| 100.0 * o.counters.hit_ratio().unwrap_or(0.0);
            hits.series(&name, SeriesStyle::Plain, same().map(|(v, o)| (f64::from(v.lines), ratio(o))))?;
            let seconds = same().map(|(v, o)| (f64::from(v.lines), o.totals.cost.seconds()));
            time.series(&name, SeriesStyle::Plain, seconds)?;
        } else {
            let seconds = outcome.totals.cost.seconds();
            time.series(&name, SeriesStyle::Plain, [(1.0, seconds), (f64::from(most), seconds)])?;
        }
        names.push(name);
    }
    // On a linear axis, a cache that saves nearly all time would hide the differences of the others.
    let seconds = || outcomes.iter().map(|(_, o)| o.totals.cost.seconds());
    let (least, longest) = (seconds().fold(f64::INFINITY, f64::min), seconds().fold(0.0, f64::max));
    time.y_log = least > 0.0 && longest > 10.0 * least;
    doc.charts.push(time);
    doc.charts.push(hits);
    Ok(())
}
