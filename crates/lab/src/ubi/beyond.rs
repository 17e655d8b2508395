// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same streams through caches that did not exist in 2016, and through some of them with 1 to 256 lines.

use super::TaskStream;
use super::by_lines::by_lines;
use super::error::{self, Error, label};
use super::model::Model;
use super::verdict::Replayed;
use readpath_results::{Document, Origin, metric};
use readpath_ubi::stream::{Outcome, Pressure, Setup};
use readpath_ubi::variant::Variant;

/// Caches beyond the four configurations, each with [`LINES`] lines where that can be chosen. The first three are A, C1
/// and C61 again, for comparison.
const CACHES: [&str; 12] = [
    "none",
    "one-line",
    "peb-hash",
    "lru",
    "lru+split",
    "set-assoc+split",
    "clock+split",
    "2q+split",
    "arc+split",
    "learned+split",
    "adaptive+split",
    "opt+split",
];
/// Lines of the RFC.
const LINES: u32 = 61;
/// Caches that are run with all of [`SIZES`].
const SIZED: [&str; 4] = ["peb-hash", "lru+split", "adaptive+split", "opt+split"];
const SIZES: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

fn replay(model: &Model, stream: &TaskStream, cache: &str, lines: u32) -> Result<(Variant, Outcome), Error> {
    let variant = Variant::parse(cache, lines).expect("the name of a cache");
    let setup = Setup { variant, costs: model.costs(stream.page_bytes), pressure: &Pressure::default() };
    Ok((variant, error::replay(&stream.case.name, &stream.case.stream, &setup)?))
}

/// Rows of a stream with each cache.
pub(super) fn caches(doc: &mut Document, model: &Model, stream: &TaskStream) -> Result<Replayed, Error> {
    let name = stream.name(" beyond the table");
    let mut outcomes = Vec::new();
    for cache in CACHES {
        let (variant, outcome) = replay(model, stream, cache, LINES)?;
        doc.simulated_ios += outcome.counters.reads();
        let called = label(&variant);
        let (c, t) = (&outcome.counters, &outcome.totals);
        let figures = [
            (metric::HITS, c.hits as f64),
            (metric::MISSES, c.misses as f64),
            (metric::NO_QUERY, c.no_query as f64),
            (metric::PAGE_READS, (t.page_reads + t.part_reads) as f64),
            (metric::READ_SECONDS, t.cost.seconds()),
        ];
        let real = stream.task.map(|task| (metric::REAL_SECONDS, model.real_seconds_of_any(task, t.cost)));
        doc.predicted(&name, &called, figures.into_iter().chain(real))?;
        outcomes.push((variant, outcome));
    }
    Ok(Replayed { stream: stream.work.clone(), page_bytes: stream.page_bytes, outcomes })
}

/// Rows and charts of a stream, which is number `index`, with caches of several sizes, and what these came to.
pub(super) fn sizes(
    doc: &mut Document,
    model: &Model,
    index: usize,
    stream: &TaskStream,
) -> Result<Vec<(Variant, Outcome)>, Error> {
    let name = stream.name(" by lines");
    let sized = SIZED.iter().flat_map(|cache| SIZES.map(|lines| replay(model, stream, cache, lines)));
    // The time without a cache shows from how many lines on each cache pays. Last, so that both charts draw the others
    // alike.
    let outcomes: Vec<_> = sized.chain([replay(model, stream, "none", LINES)]).collect::<Result<_, _>>()?;
    for (variant, outcome) in &outcomes {
        doc.simulated_ios += outcome.counters.reads();
        let label = label(variant);
        if let Some(ratio) = outcome.counters.hit_ratio() {
            doc.row(&name, &label, metric::HIT_RATIO, 100.0 * ratio, Origin::Predicted)?;
        }
        doc.row(&name, &label, metric::READ_SECONDS, outcome.totals.cost.seconds(), Origin::Predicted)?;
    }
    doc.charts.extend(by_lines(&format!("_{}", index + 1), &stream.name(""), &[&outcomes])?);
    Ok(outcomes)
}
