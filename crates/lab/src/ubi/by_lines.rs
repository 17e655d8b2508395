// SPDX-License-Identifier: MIT OR Apache-2.0
//! The size of a cache against time and hits: two charts of one stream, or of several together. Knows neither what a
//! stream is nor whose.

use readpath_results::{Chart, ChartKind, Error, SeriesStyle};
use readpath_ubi::stream::Outcome;
use readpath_ubi::variant::Variant;

/// A variant over all streams.
struct Sum {
    variant: Variant,
    hits: u64,
    misses: u64,
    seconds: f64,
}

/// Charts of what caches with several numbers of lines, among others, came to. All `streams` went through the same
/// caches; `id` ends the names of the charts, `case` their titles.
pub(super) fn by_lines(id: &str, case: &str, streams: &[&[(Variant, Outcome)]]) -> Result<[Chart; 2], Error> {
    let mut hits = Chart::new(format!("hits_by_lines{id}"), format!("Hits by size, {case}"), ChartKind::Lines)
        .axes("lines", "% of reads that the cache was asked for")
        .x_log();
    let mut time = Chart::new(format!("seconds_by_lines{id}"), format!("Time by size, {case}"), ChartKind::Lines)
        .axes("lines", "s")
        .x_log()
        .caption("Caches without a choice of size are drawn as level lines.");
    let sums = sums(streams);
    let most = sums.iter().map(|sum| sum.variant.lines).max().unwrap_or(1).max(1);
    let mut names: Vec<String> = Vec::new();
    for sum in &sums {
        let name = sum.variant.name();
        if names.contains(&name) {
            continue;
        }
        if sum.variant.kind.has_lines() {
            let same = || sums.iter().filter(|other| other.variant.name() == name);
            let lines = |sum: &Sum| f64::from(sum.variant.lines);
            let ratio = |sum: &Sum| 100.0 * sum.hits as f64 / (sum.hits + sum.misses).max(1) as f64;
            hits.series(&name, SeriesStyle::Plain, same().map(|sum| (lines(sum), ratio(sum))))?;
            time.series(&name, SeriesStyle::Plain, same().map(|sum| (lines(sum), sum.seconds)))?;
        } else {
            time.series(&name, SeriesStyle::Plain, [(1.0, sum.seconds), (f64::from(most), sum.seconds)])?;
        }
        names.push(name);
    }
    // On a linear axis, a cache that saves nearly all time would hide the differences of the others.
    let seconds = || sums.iter().map(|sum| sum.seconds);
    let (least, longest) = (seconds().fold(f64::INFINITY, f64::min), seconds().fold(0.0, f64::max));
    time.y_log = least > 0.0 && longest > 10.0 * least;
    Ok([time, hits])
}

fn sums(streams: &[&[(Variant, Outcome)]]) -> Vec<Sum> {
    let variants = streams.first().copied().unwrap_or_default();
    let mut sums: Vec<Sum> =
        variants.iter().map(|&(variant, _)| Sum { variant, hits: 0, misses: 0, seconds: 0.0 }).collect();
    for outcomes in streams {
        for (sum, (_, outcome)) in sums.iter_mut().zip(*outcomes) {
            sum.hits += outcome.counters.hits;
            sum.misses += outcome.counters.misses;
            sum.seconds += outcome.totals.cost.seconds();
        }
    }
    sums
}
