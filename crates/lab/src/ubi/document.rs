// SPDX-License-Identifier: MIT OR Apache-2.0
//! From replays of read streams to a result document: rows and charts. It adds no figure that a replay did not give.

use super::by_lines::by_lines;
use super::error::{Error, label, replay};
use super::verdict::{Replayed, of_caches};
use crate::spans::did_not_come;
use readpath_results::{Chart, ChartKind, Document, Input, Metric, Note, Origin, SeriesStyle, metric};
use readpath_ubi::cost::CostModel;
use readpath_ubi::stream::{Outcome, Pressure, Setup, Stream};
use readpath_ubi::variant::Variant;
use serde_json::{Value, json};

/// A stream and its description.
#[derive(Clone, Debug)]
pub struct CacheCase {
    /// Name in tables.
    pub name: String,
    /// The stream.
    pub stream: Stream,
    /// Notes on the stream.
    pub notes: Vec<String>,
    /// The file.
    pub input: Input,
}

/// What a document says that replays do not know.
#[derive(Clone, Debug)]
pub struct CacheTexts {
    /// Heading.
    pub title: String,
    /// How streams were read, and their costs, as any JSON.
    pub settings: Value,
}

/// Replays each case through each of `variants` and puts what they count into a document, without what depends on the
/// machine. Variants that differ in their number of lines only become charts over it.
///
/// # Errors
/// A figure that is not finite, or a stream that is too much for a cache that knows the future.
pub fn document(
    texts: &CacheTexts,
    cases: &[CacheCase],
    variants: &[Variant],
    costs: &CostModel,
    pressure: &Pressure,
) -> Result<Document, Error> {
    let mut doc = Document::new("ubi_replay", &texts.title);
    doc.description = format!(
        "Recorded reads of UBI through caches of pages of {} bytes. Counts are exact; seconds are those that the cost \
         model gives to reads through ubi_eba_read_leb, one at a time. Above a hit ratio of {:.1} %, page reads with a \
         cache cost less than part reads of one ECC step without.",
        costs.page_bytes,
        100.0 * costs.break_even_hit_ratio()
    );
    doc.configuration = json!({ "streams": texts.settings, "variants": variants.iter().map(echo).collect::<Vec<_>>() });
    let swept = variants.iter().any(|a| variants.iter().any(|b| a.name() == b.name() && a.lines != b.lines));
    let mut replayed = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        let mut outcomes = Vec::new();
        for variant in variants {
            let setup = Setup { variant: *variant, costs: *costs, pressure };
            let outcome = replay(&case.name, &case.stream, &setup)?;
            doc.simulated_ios += outcome.counters.reads();
            rows(&mut doc, &case.name, variant, costs, &outcome)?;
            outcomes.push((*variant, outcome));
        }
        let summary = &case.stream.summary;
        if summary.reads > 0 {
            let id = format!("_{}", i + 1);
            doc.charts.extend(charts(&id, &case.name, &[&outcomes], swept)?);
            replayed.push(Replayed { stream: case.name.clone(), page_bytes: costs.page_bytes, outcomes });
        } else {
            doc.remark(format!(
                "{}: none of its {} reads passes ubi_eba_read_leb, as when a device is attached: no cache in UBI is \
                 asked, and only whole pages or parts of them make a difference. other_page_reads and other_seconds \
                 are these reads.",
                case.name, summary.other_reads
            ));
        }
        doc.notes.extend(case.notes.iter().map(Note::remark));
        let came = pressure.steps.iter().take_while(|step| step.read < case.stream.summary.reads).count();
        let missing = did_not_come("change", came, pressure.steps.len());
        missing.into_iter().for_each(|which| {
            let reads = case.stream.summary.reads;
            doc.remark(format!("{}: {which} of memory did not come: the stream has {reads} reads", case.name));
        });
        doc.read_from([&case.input]);
    }
    let all: Vec<&[_]> = replayed.iter().map(|one| &one.outcomes[..]).collect();
    if all.len() > 1 {
        doc.charts.splice(0..0, charts("", &format!("{} streams together", all.len()), &all, swept)?);
    }
    doc.verdict = match replayed.len() {
        0..=2 => replayed.iter().filter_map(|one| of_caches(&one.stream, std::slice::from_ref(one))).collect(),
        many => of_caches(&format!("{many} streams"), &replayed).into_iter().collect(),
    };
    Ok(doc)
}

fn echo(variant: &Variant) -> Value {
    json!({ "variant": label(variant), "cache": variant.name(), "lines": variant.lines })
}

fn rows(doc: &mut Document, case: &str, variant: &Variant, costs: &CostModel, outcome: &Outcome) -> Result<(), Error> {
    let name = label(variant);
    let mut add = |metric: Metric, value: f64| doc.row(case, &name, metric, value, Origin::Predicted).map(drop);
    let (c, t) = (&outcome.counters, &outcome.totals);
    // Zeros would look as if a cache had been asked.
    if c.reads() > 0 {
        add(metric::HITS, c.hits as f64)?;
        add(metric::MISSES, c.misses as f64)?;
        add(metric::NO_QUERY, c.no_query as f64)?;
        if let Some(ratio) = c.hit_ratio() {
            add(metric::HIT_RATIO, 100.0 * ratio)?;
        }
        add(metric::PAGE_READS, (t.page_reads + t.part_reads) as f64)?;
        add(metric::WHOLE_PAGE_READS, t.page_reads as f64)?;
        add(metric::PART_READS, t.part_reads as f64)?;
        add(metric::SECONDS, t.cost.seconds())?;
        add(metric::WAIT_SECONDS, t.cost.wait_ns as f64 / 1e9)?;
        add(metric::CPU_SECONDS, t.cost.cpu_ns as f64 / 1e9)?;
        add(metric::DATA_MOVED, (t.steps * u64::from(costs.step_bytes)) as f64)?;
        add(metric::FILLS, c.fills as f64)?;
        add(metric::BYPASSES, c.bypasses as f64)?;
        add(metric::DROPPED_BY_WRITE, c.dropped_by_write as f64)?;
        add(metric::DROPPED_BY_ERASE, c.dropped_by_erase as f64)?;
        add(metric::LINES_MEMORY, outcome.resident_most as f64 * f64::from(costs.page_bytes))?;
        add(metric::METADATA_MEMORY, outcome.metadata_bytes as f64)?;
    }
    if outcome.other.page_reads + outcome.other.part_reads > 0 {
        add(metric::OTHER_PAGE_READS, (outcome.other.page_reads + outcome.other.part_reads) as f64)?;
        add(metric::OTHER_SECONDS, outcome.other.cost.seconds())?;
    }
    Ok(())
}

/// CPU time below this share of all time is not drawn.
const LEAST_CPU_PERCENT: f64 = 2.0;

/// Charts of streams that went through the same caches: over their lines, or a bar for each.
fn charts(id: &str, case: &str, streams: &[&[(Variant, Outcome)]], swept: bool) -> Result<Vec<Chart>, Error> {
    if swept {
        return Ok(by_lines(id, case, streams)?.into());
    }
    let mut time = Chart::new(format!("seconds{id}"), format!("Time of reads, {case}"), ChartKind::Bars)
        .axes("cache", "s")
        .caption("Waiting for the chip and CPU of reads through ubi_eba_read_leb, by the cost model.");
    let variants = streams.first().copied().unwrap_or_default();
    let part = |of: fn(&Outcome) -> u64| -> Vec<(String, f64)> {
        let sum = |at: usize| streams.iter().map(|outcomes| of(&outcomes[at].1)).sum::<u64>() as f64 / 1e9;
        variants.iter().enumerate().map(|(at, (variant, _))| (label(variant), sum(at))).collect()
    };
    let (all, cpu) = (part(|o| o.totals.cost.total_ns()), part(|o| o.totals.cost.cpu_ns));
    let share =
        |((_, all), (_, cpu)): (&(String, f64), &(String, f64))| if *all > 0.0 { 100.0 * cpu / all } else { 0.0 };
    let most = all.iter().zip(&cpu).map(share).fold(0.0, f64::max);
    time.series("all", SeriesStyle::Plain, all)?;
    if most >= LEAST_CPU_PERCENT {
        time.series("CPU", SeriesStyle::Plain, cpu)?;
    } else if most > 0.0 {
        time.caption.push_str(&format!(" CPU is {most:.1} % of it at most."));
    }
    Ok(vec![time])
}
