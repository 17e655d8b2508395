// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the documents of single runs to one that compares: means over seeds, paired differences, charts, and in words
//! what their intervals cover. It knows rows, not how they came about.

use super::statistics::{estimate, t_95};
use super::{Seeds, Trial};
use crate::means::{self, MOST_SERIES};
use crate::verdict;
use readpath_results::metric::{Figure::*, MAP_HIT_RATIO, Requests::*, WRITE_AMPLIFICATION};
use readpath_results::{
    Case, Chart, ChartKind, Difference, Document, Error, Finding, Interval, Metric, Note, NoteKind, Row, Sample,
    SeriesStyle,
};
use serde_json::{Value, json};
use std::collections::HashMap;

/// What a comparison says that its runs do not know.
#[derive(Clone, Debug)]
pub struct CompareTexts {
    /// Heading.
    pub title: String,
    /// What was asked.
    pub description: String,
    /// What the seed draws, as the end of "They cover …"; none if nothing here draws from it.
    pub drawn: Option<String>,
}

/// Metrics that have charts, where a document has them. The first one decides.
static CHARTED: [Metric; 14] = [
    RandomRead.of(LatencyMean),
    Read.of(LatencyMean),
    RandomWrite.of(LatencyMean),
    Write.of(LatencyMean),
    RandomRead.of(LatencyP99),
    Read.of(LatencyP99),
    RandomWrite.of(LatencyP99),
    Write.of(LatencyP99),
    RandomRead.of(Throughput),
    Read.of(Throughput),
    RandomWrite.of(Throughput),
    Write.of(Throughput),
    MAP_HIT_RATIO,
    WRITE_AMPLIFICATION,
];

/// The relative rounding error of a difference: half a unit in the last place of each value, and of each divisor behind
/// them. Differences that differ by no more are equal.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Case, variant and metric.
type Key = (Case, String, Metric);

/// A figure under every seed.
struct Values {
    row: Row,
    /// Values by seed; none where the run lacks the metric.
    by_seed: Vec<Option<f64>>,
}

impl Values {
    /// The values of all seeds; none if a run lacks one.
    fn all(&self) -> Option<Vec<f64>> {
        self.by_seed.iter().copied().collect()
    }
}

/// The document that compares `variants` with the one called `base`, from `trials` of all of them under all `seeds`.
pub fn document(
    texts: &CompareTexts,
    trials: &[Trial],
    variants: &[String],
    base: &str,
    seeds: Seeds,
) -> Result<Document, Error> {
    let mut doc = Document::new("compare", &texts.title);
    doc.description = texts.description.clone();
    doc.seed = seeds.first();
    doc.simulated_ios = trials.iter().map(|t| t.document.simulated_ios).sum();
    doc.configuration = configuration(trials, variants, base, seeds);
    trials.iter().for_each(|t| doc.read_from(&t.document.inputs));
    for citation in trials.iter().flat_map(|t| &t.document.citations) {
        if !doc.citations.contains(citation) {
            doc.citations.push(citation.clone());
        }
    }
    let (figures, places) = figures(trials, seeds);
    let mut left_out = Vec::new();
    for figure in &figures {
        let Some(values) = figure.all() else {
            left_out.push(figure);
            continue;
        };
        let of = &figure.row;
        let key = (of.case.clone(), base.to_owned(), of.metric.clone());
        let base_values = places.get(&key).filter(|_| of.variant != base).and_then(|&at| figures[at].all());
        doc.rows.push(row(of, values, base, base_values, texts.drawn.is_none())?);
    }
    doc.notes = notes(texts, trials, variants, base, seeds, &doc.rows, &left_out);
    doc.verdict = match doc.notes.iter().find(|note| note.kind == NoteKind::CoarseTimes) {
        Some(coarse) => vec![verdict::not_from_these_times(coarse)],
        None => verdict::of_comparison(&doc, base),
    };
    charts(&mut doc, variants, base)?;
    over_time(&mut doc, trials, seeds);
    Ok(doc)
}

/// All figures in the order of their first appearance, and where they are.
fn figures(trials: &[Trial], seeds: Seeds) -> (Vec<Values>, HashMap<Key, usize>) {
    let mut places = HashMap::new();
    let mut list: Vec<Values> = Vec::new();
    for trial in trials {
        let seed = (trial.seed - seeds.first()) as usize;
        for row in &trial.document.rows {
            let at = *places.entry((row.case.clone(), row.variant.clone(), row.metric.clone())).or_insert_with(|| {
                list.push(Values { row: row.clone(), by_seed: vec![None; seeds.count() as usize] });
                list.len() - 1
            });
            list[at].by_seed[seed] = Some(row.simulated);
        }
    }
    (list, places)
}

/// `fixed`: nothing depends on the seed.
fn row(of: &Row, values: Vec<f64>, base: &str, base_values: Option<Vec<f64>>, fixed: bool) -> Result<Row, Error> {
    let e = estimate(&values);
    let mut row = Row::new(&of.case, &of.variant, of.metric.clone(), e.mean, of.origin)?;
    if let Some(published) = of.published {
        row.published(published)?;
    }
    row.difference = base_values.map(|b| difference(&values, &b, base, fixed));
    row.sample = Some(Sample { values, interval: e.interval });
    Ok(row)
}

/// The paired difference of values under the same seeds.
fn difference(values: &[f64], base_values: &[f64], base: &str, fixed: bool) -> Difference {
    let mut differences: Vec<f64> = values.iter().zip(base_values).map(|(v, b)| v - b).collect();
    let largest = values.iter().chain(base_values).fold(0.0, |a: f64, v| a.max(v.abs()));
    let first = differences[0];
    if differences.iter().all(|d| (d - first).abs() <= ROUNDING * largest) {
        differences.fill(first);
    }
    let e = estimate(&differences);
    let size = estimate(base_values).mean.abs();
    let in_percent = |x: f64| 100.0 * x / size;
    // A base that is nearly zero has no percentage.
    let percent = Some(in_percent(e.mean)).filter(|p| size > 0.0 && p.is_finite());
    let percent_interval = e
        .interval
        .filter(|_| percent.is_some())
        .map(|i| Interval { low: in_percent(i.low), high: in_percent(i.high) })
        .filter(|i| i.low.is_finite() && i.high.is_finite());
    let finding = match e.interval {
        _ if e.equal && e.mean == 0.0 => Finding::Identical,
        _ if values.len() == 1 && !fixed => Finding::OneSeed,
        None => Finding::Exact,
        Some(interval) if interval.contains(0.0) => Finding::NotShown,
        Some(_) => Finding::Shown,
    };
    Difference { base: base.to_owned(), mean: e.mean, interval: e.interval, percent, percent_interval, finding }
}

/// The merged configurations of the first seed's runs, and the comparison itself.
fn configuration(trials: &[Trial], variants: &[String], base: &str, seeds: Seeds) -> Value {
    let mut all = json!({});
    for trial in trials.iter().filter(|t| t.seed == seeds.first()) {
        merge(&mut all, &trial.document.configuration);
    }
    let compare = json!({ "variants": variants, "base": base, "first_seed": seeds.first(), "seeds": seeds.count() });
    merge(&mut all, &json!({ "compare": compare }));
    all
}

/// Adds what `into` lacks.
fn merge(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (key, value) in from {
        match into.get_mut(key) {
            Some(known) => merge(known, value),
            None => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn notes(
    texts: &CompareTexts,
    trials: &[Trial],
    variants: &[String],
    base: &str,
    seeds: Seeds,
    rows: &[Row],
    left_out: &[&Values],
) -> Vec<Note> {
    let missing = trials.iter().filter_map(|t| Some(format!("seed {}: {}", t.seed, t.incomplete.as_ref()?)));
    let missing = missing.map(|what| Note::new(NoteKind::Incomplete, what));
    let said = what_is_covered(texts, variants, base, seeds, rows, left_out).into_iter().map(Note::remark);
    let mut notes: Vec<Note> = missing.chain(said).collect();
    for note in trials.iter().flat_map(|t| &t.document.notes) {
        if note.kind != NoteKind::Incomplete && !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes.sort_by_key(|note| !note.is_first());
    notes
}

/// What the figures are, what their intervals cover, and what cannot be compared.
fn what_is_covered(
    texts: &CompareTexts,
    variants: &[String],
    base: &str,
    seeds: Seeds,
    rows: &[Row],
    left_out: &[&Values],
) -> Vec<String> {
    let mut notes = Vec::new();
    let first = seeds.first();
    let equal = rows.iter().all(|r| r.sample.as_ref().is_some_and(|s| s.interval.is_none()));
    let last = seeds.all().last().unwrap_or(first);
    match (seeds.count(), &texts.drawn) {
        (1, None) => notes.push(format!(
            "One run of each variant, with seed {first}: nothing in this workload and layout draws from the seed, so \
             other seeds would give the same figures. There are no intervals, and the differences are exact."
        )),
        (1, Some(drawn)) => notes.push(format!(
            "One seed ({first}): there are no intervals, and nothing tells which differences are chance. The seed \
             draws {drawn}; ask for more with --seeds."
        )),
        (n, _) if equal => notes.push(format!(
            "All {n} seeds ({first} to {last}) gave the same figures, to the bit: nothing in this workload and layout \
             depends on the seed. There are no intervals, and the differences are exact."
        )),
        (n, drawn) => {
            let drawn = drawn.as_deref().unwrap_or("what the seed draws");
            notes.push(format!(
                "Figures are means over {n} seeds ({first} to {last}); ± is half of the 95 % confidence interval \
                 (Student's t, {} degrees of freedom, {:.3} standard errors). The intervals cover {drawn}. They do not \
                 cover the choice of the workload, the parameters of the device, or what the model leaves out.",
                n - 1,
                t_95(n - 1, 1)
            ));
            if variants.len() > 1 {
                notes.push(format!(
                    "Differences are paired: variant − '{base}' for each seed, so under the same draws; the interval \
                     is that of their mean. 'No difference shown': it contains zero. Of many true zeros one in twenty \
                     shows a difference by chance."
                ));
            }
        }
    }
    for variant in variants.iter().filter(|v| *v != base) {
        let keys = |name: &str| -> Vec<(&Case, &Metric)> {
            rows.iter().filter(|r| r.variant == name).map(|r| (&r.case, &r.metric)).collect()
        };
        let mut of_variant = rows.iter().filter(|r| r.variant == *variant).peekable();
        let identical = |r: &Row| r.difference.as_ref().is_some_and(|d| d.finding == Finding::Identical);
        if of_variant.peek().is_some() && of_variant.all(identical) && keys(variant) == keys(base) {
            notes.push(format!(
                "'{variant}' and '{base}' are identical: every figure is the same for every seed, to the bit."
            ));
        }
    }
    for figure in left_out {
        let missing = figure.by_seed.iter().filter(|v| v.is_none()).count();
        notes.push(format!(
            "{}, {}: {} is left out, as runs with {missing} of {} seeds do not have it",
            figure.row.case,
            figure.row.variant,
            figure.row.metric.name(),
            seeds.count()
        ));
    }
    notes
}

/// The first seed over time: a mean over seeds would show a course that no run had.
fn over_time(doc: &mut Document, trials: &[Trial], seeds: Seeds) {
    for chart in trials.iter().filter(|t| t.seed == seeds.first()).flat_map(|t| &t.over_time) {
        match doc.charts.iter_mut().find(|known| known.id == chart.id) {
            Some(known) => known.series.extend(chart.series.iter().cloned()),
            None => {
                let mut chart = chart.clone();
                chart.caption = format!("{} Seed {}.", chart.caption, seeds.first());
                doc.charts.push(chart);
            }
        }
    }
}

/// The means of the metric that decides, differences, and the means of the other metrics.
fn charts(doc: &mut Document, variants: &[String], base: &str) -> Result<(), Error> {
    let mut cases: Vec<(&str, &str)> = Vec::new();
    for row in &doc.rows {
        if !cases.contains(&(&*row.case, &*row.case)) {
            cases.push((&*row.case, &*row.case));
        }
    }
    let names: Vec<&str> = variants.iter().map(String::as_str).collect();
    // The times of a trace give its rate; a device has no part in it.
    let is_paced = doc.configuration["replay"]["mode"] == "timed";
    let rates = [Read.of(Throughput), Write.of(Throughput)];
    let is_charted =
        |metric: &&Metric| doc.rows.iter().any(|row| row.metric == **metric) && !(is_paced && rates.contains(metric));
    let charted: Vec<&Metric> = CHARTED.iter().filter(is_charted).collect();
    let mut charts = Vec::new();
    for metric in &charted {
        let chart = Chart::new(format!("mean_{}", metric.name()), metric.label(), ChartKind::Bars)
            .axes("", metric.unit())
            .caption("Means over the seeds; the error bar is the 95 % confidence interval, where there is one.");
        let value = |case: &str, variant: &str| {
            let row = doc.find(case, variant, metric)?;
            Some((row.simulated, row.sample.as_ref()?.interval))
        };
        charts.push(means::bars(chart, (&cases, "case"), &names, value)?);
    }
    let mut differences = Vec::new();
    for (i, (case, _)) in cases.iter().enumerate() {
        let chart =
            Chart::new(format!("differences_{}", i + 1), format!("Difference from '{base}', {case}"), ChartKind::Bars);
        differences.extend(difference_chart(doc, chart, case, &charted, &names, base)?);
    }
    let at = 1.min(charts.len());
    charts.splice(at..at, differences);
    doc.charts = charts;
    Ok(())
}

/// The differences of all metrics, or of many variants those of the first metric.
fn difference_chart(
    doc: &Document,
    chart: Chart,
    case: &str,
    charted: &[&Metric],
    variants: &[&str],
    base: &str,
) -> Result<Option<Chart>, Error> {
    let many = variants.len() > MOST_SERIES;
    let mut chart = chart
        .axes(if many { "variant" } else { "metric" }, "% of the base's mean")
        .caption("Mean of the paired differences; the error bar is its 95 % confidence interval, where there is one.");
    let percent = |variant: &str, metric: &Metric| {
        let difference = doc.find(case, variant, metric)?.difference.as_ref()?;
        Some((difference.percent?, difference.percent_interval))
    };
    let others = || variants.iter().copied().filter(|variant| *variant != base);
    if let Some(first) = charted.first().filter(|_| many) {
        let point = |variant| percent(variant, first).map(|(y, interval)| (variant, y, interval));
        chart.series_with_bars(first.label(), SeriesStyle::Plain, others().filter_map(point))?;
    } else {
        for variant in others() {
            let point = |metric: &&Metric| {
                percent(variant, metric).map(|(y, interval)| (metric.label().to_lowercase(), y, interval))
            };
            chart.series_with_bars(variant, SeriesStyle::Plain, charted.iter().filter_map(point))?;
        }
    }
    chart.series.retain(|series| !series.points.is_empty());
    Ok((!chart.series.is_empty()).then_some(chart))
}
