// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs to the result document: rows, charts, configuration. It adds no figure that a run did not give.

use crate::attack::verdict_metrics;
use crate::claims;
use crate::experiment::{CaseRun, Plan};
use crate::little_gain::{self, Seen};
use crate::map_rows;
use crate::over_time::{self, Timed};
use crate::spans;
use crate::unused_hpb;
use readpath_config::experiment::{Experiment, Origin as Published, Published as PublishedRow};
use readpath_device::{DeviceConfig, DeviceStats, Wear};
use readpath_host::{HostConfig, HpbCounters};
use readpath_kit::Histogram;
use readpath_results::metric::{self, Figure, Requests};
use readpath_results::{
    Case, Chart, ChartKind, Document, Error, Metric, Note, NoteKind, Origin, Part, Row, SeriesStyle, X,
};
use readpath_run::{GroupStats, KindStats, PhaseOutput, UnitOutput};
use readpath_workload::iozone::Test;
use readpath_workload::{IoKind, Workload};
use serde_json::{Value, json};

pub(crate) const MIB: f64 = (1u64 << 20) as f64;
/// What figures of writes are worth.
pub(crate) const WRITES: &str = "Writes pay for garbage collection, wear levelling, map pages, journal and \
                                 checkpoints. No published figure of writes has been fitted.";
/// Points of a latency distribution in a chart.
const CDF_POINTS: usize = 300;

/// The document of an experiment's runs, without what depends on the machine.
pub fn document(experiment: &Experiment, runs: &[CaseRun]) -> Result<Document, Error> {
    let mut doc = Document::new(&experiment.name, &experiment.title);
    doc.description = experiment.description.clone();
    doc.citations = experiment.citations.clone();
    doc.seed = experiment.seed;
    doc.simulated_ios = runs.iter().map(|r| r.output.ios).sum();
    doc.configuration = configuration(experiment, runs);
    // Before everything else that there is to say.
    doc.notes.extend(runs.iter().filter_map(CaseRun::incomplete).map(|what| Note::new(NoteKind::Incomplete, what)));
    let says_where_the_map_is = map_rows::matter(runs);
    for run in runs {
        doc.read_from(&run.plan.inputs);
        run.plan.workload.notes.iter().for_each(|note| doc.note(Note::remark(note)));
        for (number, phase) in run.output.phases.iter().enumerate() {
            let about = About { run, phase, test: run.plan.workload.tests.get(number).copied() };
            rows(&mut doc, experiment, &about, says_where_the_map_is)?;
        }
        let Plan { case, variant, setup, .. } = &run.plan;
        unused_hpb::note_of(&mut doc, &run.plan);
        spans::rows(&mut doc, case, variant, &setup.events, &run.output.spans)?;
    }
    let seen: Vec<Seen> = runs.iter().map(seen).collect();
    little_gain::notes(&mut doc, &seen);
    if runs.iter().any(|r| r.output.phases.iter().any(|p| p.device.programs > 0)) {
        doc.remark(WRITES);
    }
    claims::check(&mut doc, experiment, runs)?;
    charts(&mut doc, experiment, runs)?;
    Ok(doc)
}

/// A run over time, if that was kept.
pub(crate) fn timed(run: &CaseRun) -> Option<Timed<'_>> {
    let Plan { variant, setup, .. } = &run.plan;
    Some(Timed { variant, preset: &setup.preset, series: run.output.over_time.as_ref()? })
}

fn seen(run: &CaseRun) -> Seen<'_> {
    let Plan { case, variant, setup, .. } = &run.plan;
    Seen { case, variant, preset: &setup.preset, host: &setup.host, phases: run.output.phases.iter().collect() }
}

/// Requests of a kind, as metrics have them.
pub(crate) fn requests(kind: IoKind) -> Requests {
    match kind {
        IoKind::Read => Requests::Read,
        IoKind::Write => Requests::Write,
        IoKind::Trim => Requests::Trim,
        IoKind::Flush => Requests::Flush,
    }
}

pub(crate) const KINDS: [IoKind; 4] = [IoKind::Read, IoKind::Write, IoKind::Trim, IoKind::Flush];

/// A phase of a run, and iozone's test if it is one.
struct About<'a> {
    run: &'a CaseRun,
    phase: &'a PhaseOutput,
    test: Option<Test>,
}

impl About<'_> {
    fn requests(&self, kind: IoKind) -> Requests {
        match (self.test, kind) {
            (Some(Test::RandomRead), IoKind::Read) => Requests::RandomRead,
            (Some(Test::RandomWrite), IoKind::Write) => Requests::RandomWrite,
            _ => requests(kind),
        }
    }

    /// What rows of a group are about: the case, and what tells its groups apart.
    fn case(&self, group: &GroupStats) -> Case {
        let plan = &self.run.plan;
        let case = Case::from(&plan.case);
        if plan.workload.launches.is_some() {
            return Case::from(&self.phase.stats.name);
        }
        // Random tests are told apart by their metrics; other groups and phases are not.
        if self.test.is_some_and(Test::is_random) {
            return case;
        }
        match plan.workload.groups.get(group.group) {
            Some(name) if plan.workload.groups.len() > 1 => case.jobs(name),
            _ if plan.workload.phases.len() > 1 => self.whole(),
            _ => case,
        }
    }

    /// The phase as a whole.
    fn whole(&self) -> Case {
        Case::from(&self.run.plan.case).jobs(&self.phase.stats.name)
    }
}

fn rows(
    doc: &mut Document,
    experiment: &Experiment,
    about: &About<'_>,
    says_where_the_map_is: bool,
) -> Result<(), Error> {
    let variant = &about.run.plan.variant;
    for (case, metric, value) in figures(about, says_where_the_map_is) {
        let is_of = |p: &&PublishedRow| {
            *case == *p.case && p.variant == *variant && p.metric == metric.name() && p.unit == metric.unit()
        };
        let published = experiment.published.iter().find(is_of);
        let origin = match published.map(|p| p.origin) {
            Some(Published::Fit) => Origin::Fit,
            _ => Origin::Predicted,
        };
        let row = doc.row(&case, variant, metric, value, origin)?;
        if let Some(p) = published {
            row.published(p.value)?;
        }
    }
    Ok(())
}

/// All figures of a run by itself, and which part of its case each is about.
pub fn run_figures(run: &CaseRun) -> Vec<(Case, Metric, f64)> {
    let says_where_the_map_is = map_rows::matter(std::slice::from_ref(run));
    let phases = run.output.phases.iter().enumerate();
    phases
        .flat_map(|(number, phase)| {
            let about = About { run, phase, test: run.plan.workload.tests.get(number).copied() };
            figures(&about, says_where_the_map_is)
        })
        .collect()
}

/// The figures of a phase.
fn figures(about: &About<'_>, says_where_the_map_is: bool) -> Vec<(Case, Metric, f64)> {
    let About { run, phase, .. } = about;
    let setup = &run.plan.setup;
    let mut all: Vec<(Case, Metric, f64)> = Vec::new();
    let mut add = |case: &Case, figures: Vec<(Metric, f64)>| {
        all.extend(figures.into_iter().map(|(metric, value)| (case.clone(), metric, value)));
    };
    let groups = phase.stats.groups();
    for group in &groups {
        let seconds = group.end.saturating_sub(group.start).as_secs_f64();
        let mut figures = Vec::new();
        if run.plan.workload.launches.is_some() {
            figures.push((metric::START_UP_TIME, seconds));
        }
        for kind in KINDS {
            let stats = group.of(kind);
            if stats.ios == 0 {
                continue;
            }
            let of = about.requests(kind);
            if matches!(kind, IoKind::Read | IoKind::Write) {
                figures.push((of.of(Figure::Throughput), group.rates[kind as usize] / MIB));
            }
            if seconds > 0.0 {
                figures.push((of.of(Figure::Iops), stats.ios as f64 / seconds));
            }
            figures.extend(latencies(stats).map(|(figure, us)| (of.of(figure), us)));
            figures.extend(asked_percentiles(&run.plan.workload, group, stats, of));
        }
        add(&about.case(group), figures);
    }
    // Device and host count for the whole phase.
    let case = |first: &GroupStats| if groups.len() == 1 { about.case(first) } else { about.whole() };
    let device = &phase.device;
    if let Some(first) = groups.first().filter(|_| device.slices_written > 0 || device.has_moved_unasked()) {
        let figures = write_metrics(device, &setup.preset.device).into_iter().chain(wear_metrics(&phase.wear));
        add(&case(first), figures.collect());
    }
    let Some(first) = groups.iter().find(|g| g.of(IoKind::Read).ios > 0) else { return all };
    let case = case(first);
    let mut figures: Vec<(Metric, f64)> = hit_ratios(device, says_where_the_map_is).collect();
    figures.push((metric::MAP_LOADS, (device.map_loads + device.buffer_map_loads) as f64));
    figures.push((metric::HPB_READ_BUFFERS, device.read_buffers as f64));
    figures.extend(verdict_metrics(device, &setup.preset));
    figures.extend(phase.hpb.iter().flat_map(|hpb| hpb_counts(hpb, &setup.host)));
    add(&case, figures);
    for unit in &phase.units {
        add(&unit_case(&case, unit), unit_figures(unit, &setup.host).collect());
    }
    let mut figures = if says_where_the_map_is { map_rows::figures(run, phase) } else { Vec::new() };
    let memory = phase.memory.map_or(0, |m| m.peak_bytes + m.table_bytes);
    let memory = memory + map_rows::static_host_bytes(&setup.preset);
    figures.push((metric::HOST_MEMORY, memory as f64));
    add(&case, figures);
    all
}

/// Shares of the blocks read whose place in flash had to be found, in %; none if there are none.
pub(crate) fn hit_ratios(device: &DeviceStats, of_host_map: bool) -> impl Iterator<Item = (Metric, f64)> {
    let translated = device.translated_reads();
    let hits = [
        (metric::MAP_HIT_RATIO, translated - device.map_misses),
        (metric::HPB_HIT_RATIO, device.hpb_hits),
        (metric::HOST_MAP_HIT_RATIO, device.host_map_hits),
    ];
    let shown = if translated == 0 { 0 } else { 2 + usize::from(of_host_map) };
    hits.into_iter().take(shown).map(move |(metric, n)| (metric, 100.0 * n as f64 / translated as f64))
}

/// What the host's HPB counted, and what a policy of its own counts beside.
pub(crate) fn hpb_counts(hpb: &HpbCounters, host: &HostConfig) -> impl Iterator<Item = (Metric, f64)> {
    let managed = host.hpb.is_some_and(|hpb| hpb.policy.is_some());
    let counts = hpb.by_name().chain(hpb.managed_by_name().into_iter().filter(move |_| managed));
    counts.map(|(name, count)| (counter(name), count as f64))
}

/// The metric of a counter, which has its name.
pub(crate) fn counter(name: &'static str) -> Metric {
    Metric::new(name, "")
}

/// What rows of one of several logical units are about.
pub(crate) fn unit_case(case: &Case, unit: &UnitOutput) -> Case {
    case.with(Part::Unit, &format!("logical unit {}", unit.lun))
}

/// What the host's HPB of one of several logical units did.
pub(crate) fn unit_figures(unit: &UnitOutput, host: &HostConfig) -> impl Iterator<Item = (Metric, f64)> {
    let memory = (unit.memory.peak_bytes + unit.memory.table_bytes) as f64;
    hpb_counts(&unit.hpb, host).chain([(metric::HOST_MEMORY, memory)])
}

/// What the device did for the writes of a phase. The first ratio counts data, moved data included,
/// for each block that was programmed for the host; the second counts all programs for each block that it wrote. Both
/// count what a flush of the WriteBooster buffer moves. The counts behind it are what programs are made of.
pub(crate) fn write_metrics(device: &DeviceStats, config: &DeviceConfig) -> Vec<(Metric, f64)> {
    let programmed = (device.programs * u64::from(config.geometry.slices_per_unit())) as f64;
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut metrics = Vec::new();
    if let Some(ratio) = device.write_amplification() {
        metrics.push((metric::DATA_WRITE_AMPLIFICATION, ratio));
    }
    if device.slices_written > 0 {
        metrics.push((metric::WRITE_AMPLIFICATION, programmed / device.slices_written as f64));
    }
    metrics.extend([
        (metric::PROGRAMS, device.programs as f64),
        (metric::SLICES_MOVED, device.slices_moved as f64),
        (metric::SLICES_PADDED, device.slices_padded as f64),
        (metric::MAP_WRITES, device.map_writes as f64),
        (metric::JOURNAL_WRITES, device.journal_writes as f64),
        (metric::CHECKPOINT_WRITES, device.checkpoint_writes as f64),
        (metric::ERASES, device.erases as f64),
        (metric::SUPERBLOCKS_COLLECTED, (device.collected + device.collected_idle) as f64),
        (metric::SUPERBLOCKS_LEVELLED, device.levelled as f64),
        (metric::STALL_SPACE, ms(device.stall_space_ns)),
        (metric::STALL_MAP, ms(device.stall_map_ns)),
        (metric::STALL_JOURNAL, ms(device.stall_journal_ns)),
        (metric::STALL_CHECKPOINT, ms(device.stall_checkpoint_ns)),
        (metric::STALL_FLASH, ms(device.stall_flash_ns)),
    ]);
    // What most devices never do or meet.
    let seldom = [
        (metric::SUPERBLOCKS_COLLECTED_IDLE, device.collected_idle as f64),
        (metric::SUPERBLOCKS_REFRESHED, device.refreshed as f64),
        (metric::PROGRAM_FAILURES, device.program_failures as f64),
        (metric::ERASE_FAILURES, device.erase_failures as f64),
    ];
    metrics.extend(seldom.into_iter().filter(|(_, count)| *count > 0.0));
    if config.write_booster.is_some() {
        metrics.extend([
            (metric::SLICES_BOOSTED, device.slices_boosted as f64),
            (metric::SLICES_FLUSHED, device.slices_flushed as f64),
            (metric::SUPERBLOCKS_FLUSHED, device.flushed as f64),
            (metric::SLC_ERASES, device.slc_erases as f64),
        ]);
    }
    metrics
}

/// How worn the device is. All of its life counts, and superblocks of anchors apart.
pub(crate) fn wear_metrics(wear: &Wear) -> Vec<(Metric, f64)> {
    let mut metrics = vec![
        (metric::ERASE_COUNT_MEAN, wear.mean),
        (metric::ERASE_COUNT_MIN, f64::from(wear.min)),
        (metric::ERASE_COUNT_MAX, f64::from(wear.max)),
        (metric::ERASE_COUNT_SPREAD, wear.spread_percent()),
        (metric::ANCHOR_ERASE_COUNT_MAX, f64::from(wear.anchors_max)),
    ];
    let bad =
        [(metric::BAD_BLOCKS, f64::from(wear.bad_blocks)), (metric::SUPERBLOCKS_RETIRED, f64::from(wear.retired))];
    metrics.extend(bad.into_iter().filter(|(_, count)| *count > 0.0));
    metrics
}

/// Latencies in microseconds.
pub(crate) fn latencies(stats: &KindStats) -> [(Figure, f64); 4] {
    let l = &stats.latency;
    [
        (Figure::LatencyMean, l.mean() / 1e3),
        (Figure::LatencyP50, l.quantile(0.5) as f64 / 1e3),
        (Figure::LatencyP99, l.quantile(0.99) as f64 / 1e3),
        (Figure::LatencyP99_9, l.quantile(0.999) as f64 / 1e3),
    ]
}

/// Latencies at the percentiles that the jobs of a group ask for and every result does not have anyway.
fn asked_percentiles(
    workload: &Workload,
    group: &GroupStats,
    stats: &KindStats,
    of: Requests,
) -> impl Iterator<Item = (Metric, f64)> {
    const ALWAYS: [f64; 3] = [50.0, 99.0, 99.9];
    let jobs = workload.phases.iter().flat_map(|phase| &phase.jobs).filter(|job| job.group == group.group);
    let mut asked: Vec<f64> = jobs.flat_map(|job| job.fio.percentiles.iter().copied()).collect();
    asked.sort_by(f64::total_cmp);
    asked.dedup();
    asked.retain(|percent| !ALWAYS.contains(percent));
    asked.into_iter().map(move |percent| {
        let name = percent.to_string().replace('.', "_");
        (of.of(Figure::LatencyPercentile).with([&name]), stats.latency.quantile(percent / 100.0) as f64 / 1e3)
    })
}

fn configuration(experiment: &Experiment, runs: &[CaseRun]) -> Value {
    let mut devices = serde_json::Map::new();
    for run in runs {
        let preset = &run.plan.setup.preset;
        let echo = serde_json::to_value(preset.echo()).unwrap_or(Value::Null);
        devices.entry(run.plan.variant.clone()).or_insert(echo);
    }
    let sram: serde_json::Map<String, Value> = runs
        .first()
        .map(|r| r.output.sram.iter().map(|(table, bytes)| (table.name().to_owned(), json!(bytes))).collect())
        .unwrap_or_default();
    json!({
        "experiment": serde_json::to_value(experiment).unwrap_or(Value::Null),
        "device_by_variant": devices,
        "device_sram_bytes": sram,
    })
}

/// What is charted if it was measured, the first of them.
static CHARTED: [Metric; 4] = [
    metric::START_UP_TIME,
    Requests::RandomRead.of(Figure::Throughput),
    Requests::Read.of(Figure::Throughput),
    Requests::Write.of(Figure::Throughput),
];

/// What charts call a metric.
fn title(metric: &Metric) -> String {
    match metric {
        m if *m == metric::START_UP_TIME => "Time until all apps have started".to_owned(),
        m if *m == metric::HPB_HIT_RATIO => "Reads with a good HPB entry".to_owned(),
        m => m.label(),
    }
}

fn charts(doc: &mut Document, experiment: &Experiment, runs: &[CaseRun]) -> Result<(), Error> {
    let cases: Vec<&str> = experiment.workload.cases();
    let mut charts = Vec::new();
    if let Some(axis) = &experiment.variant_axis {
        charts.extend(variant_charts(doc, experiment, &cases, axis)?);
    } else if cases.len() > 1 {
        for group in groups(doc, &cases) {
            charts.extend(group_charts(doc, experiment, &cases, group.as_deref())?);
        }
    }
    if let Some(last) = cases.last() {
        charts.extend(latency_chart(last, runs)?);
        let of_last: Vec<Timed> = runs.iter().filter(|run| run.plan.case == **last).filter_map(timed).collect();
        charts.extend(over_time::charts(last, &of_last, false)?);
    }
    doc.charts = charts;
    Ok(())
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
    let value = |case: &str, variant: &str, metric: &Metric| {
        let case = Case::from(case);
        doc.find(&group.map_or(case.clone(), |group| case.jobs(group)), variant, metric)
    };
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

/// Charts over the variants, with a line for each case. If their names are all numbers, they stand at those on the
/// axis.
fn variant_charts(doc: &Document, experiment: &Experiment, cases: &[&str], axis: &str) -> Result<Vec<Chart>, Error> {
    let number = |name: &str| name.parse().ok().filter(|n: &f64| n.is_finite());
    let are_numbers = experiment.variants.iter().all(|v| number(&v.name).is_some());
    let place = |name: &str| match number(name).filter(|_| are_numbers) {
        Some(number) => X::Number(number),
        None => X::Label(name.to_owned()),
    };
    let mut charts = Vec::new();
    for metric in CHARTED.iter().chain([&metric::HPB_HIT_RATIO]) {
        let unit = if *metric == metric::HPB_HIT_RATIO { "% of reads" } else { metric.unit() };
        let mut chart =
            Chart::new(metric.name(), format!("{} by {axis}", title(metric)), ChartKind::Lines).axes(axis, unit);
        for &case in cases {
            let points: Vec<(X, f64)> = experiment
                .variants
                .iter()
                .filter_map(|v| Some((place(&v.name), doc.find(case, &v.name, metric)?.simulated)))
                .collect();
            if !points.is_empty() {
                chart.series(case, SeriesStyle::Simulated, points)?;
            }
        }
        if !chart.series.is_empty() {
            charts.push(chart);
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

/// Distribution of read latency in a case, one line a variant.
fn latency_chart(case: &str, runs: &[CaseRun]) -> Result<Option<Chart>, Error> {
    let mut chart = Chart::new("latency", format!("Read latency, {case}"), ChartKind::Step)
        .axes("read latency, us", "% of reads")
        .x_log()
        .caption("Share of reads that took no longer, from submission to completion at the host.");
    let mut any = false;
    for run in runs.iter().filter(|r| r.plan.case == case) {
        let mut all = Histogram::default();
        for phase in &run.output.phases {
            for job in &phase.stats.jobs {
                all.merge(&job.of(IoKind::Read).latency);
            }
        }
        if all.count() == 0 {
            continue;
        }
        any = true;
        chart.series(&run.plan.variant, SeriesStyle::Plain, distribution(&all))?;
    }
    Ok(any.then_some(chart))
}

/// Shares in percent of latencies (us) that are no longer.
pub(crate) fn distribution(all: &Histogram) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut seen = 0;
    let step = 100.0 / CDF_POINTS as f64;
    let mut next = 0.0;
    for (ns, n) in all.buckets() {
        seen += n;
        let share = 100.0 * seen as f64 / all.count() as f64;
        if share >= next || seen == all.count() {
            points.push((ns as f64 / 1e3, share));
            next = share + step;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_config::experiment::load;

    /// Counters of the host become metrics by their names, and experiments name metrics in their files.
    #[test]
    fn the_registry_has_what_others_name() {
        let counters = HpbCounters { pre_req_cnt: 1, pair_cnt: 1, ..HpbCounters::default() };
        for (name, _) in counters.by_name().chain(counters.managed_by_name()) {
            assert!(counter(name).definition().is_some(), "{name}");
        }
        for builtin in readpath_config::experiments() {
            let experiment = load(builtin.name, &|_| unreachable!("it comes with the program")).expect("an experiment");
            for p in &experiment.published {
                assert!(
                    Metric::new(p.metric.clone(), p.unit.clone()).definition().is_some(),
                    "{} {}",
                    p.metric,
                    p.unit
                );
            }
            for claim in &experiment.claims {
                assert!(metric::GAIN.with([&claim.metric]).definition().is_some(), "{}", claim.metric);
            }
        }
    }
}
