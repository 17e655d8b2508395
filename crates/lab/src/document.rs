// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs to the result document: rows, charts, configuration. It adds no figure that a run did not give.

use crate::attack::verdict_metrics;
use crate::claims;
use crate::experiment::{CaseRun, Plan};
use crate::map_rows;
use crate::spans;
use crate::unused_hpb;
use readpath_config::experiment::{Experiment, Origin as Published};
use readpath_device::{DeviceConfig, DeviceStats, Wear};
use readpath_host::{HostConfig, HpbCounters};
use readpath_kit::Histogram;
use readpath_results::{Chart, ChartKind, Document, Error, Origin, SeriesStyle, X};
use readpath_run::{GroupStats, KindStats, PhaseOutput, UnitOutput};
use readpath_workload::IoKind;
use serde_json::{Value, json};

pub(crate) const MIB: f64 = (1u64 << 20) as f64;
/// What figures of writes are worth.
pub(crate) const WRITES: &str = "Writes pay for garbage collection, wear levelling, map pages, journal and checkpoints. No \
    published figure of writes has been fitted.";
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
    doc.notes.extend(runs.iter().filter_map(CaseRun::incomplete).map(|what| format!("INCOMPLETE: {what}")));
    let says_where_the_map_is = map_rows::matter(runs);
    for run in runs {
        doc.read_from(&run.plan.inputs);
        for note in &run.plan.workload.notes {
            if !doc.notes.contains(note) {
                doc.notes.push(note.clone());
            }
        }
        for phase in &run.output.phases {
            rows(&mut doc, experiment, run, phase, says_where_the_map_is)?;
        }
        let Plan { case, variant, setup, .. } = &run.plan;
        unused_hpb::note_of(&mut doc, &run.plan);
        spans::rows(&mut doc, case, variant, &setup.events, &run.output.spans)?;
    }
    if runs.iter().any(|r| r.output.phases.iter().any(|p| p.device.programs > 0)) {
        doc.notes.push(WRITES.to_owned());
    }
    claims::check(&mut doc, experiment)?;
    charts(&mut doc, experiment, runs)?;
    Ok(doc)
}

/// Name of a metric's subject: what iozone calls the phase, or the kind of request.
fn subject(phase: &str, kind: IoKind) -> String {
    match (phase, kind) {
        ("random read", IoKind::Read) => "random_read".into(),
        ("random write", IoKind::Write) => "random_write".into(),
        _ => kind_name(kind).into(),
    }
}

pub(crate) fn kind_name(kind: IoKind) -> &'static str {
    match kind {
        IoKind::Read => "read",
        IoKind::Write => "write",
        IoKind::Trim => "trim",
        IoKind::Flush => "flush",
    }
}

/// What rows of a group are called: the case, and what tells its groups apart.
fn case_name(run: &CaseRun, phase: &PhaseOutput, group: &GroupStats) -> String {
    let plan = &run.plan;
    if plan.workload.launches.is_some() {
        return phase.stats.name.clone();
    }
    // iozone's phases are told apart by the metrics' names; fio's groups are not.
    let several = plan.workload.groups.len() > 1 && !phase.stats.name.starts_with("random ");
    match plan.workload.groups.get(group.group) {
        Some(name) if several => format!("{}: {name}", plan.case),
        _ if plan.workload.phases.len() > 1 && !phase.stats.name.starts_with("random ") => {
            format!("{}: {}", plan.case, phase.stats.name)
        }
        _ => plan.case.clone(),
    }
}

fn rows(
    doc: &mut Document,
    experiment: &Experiment,
    run: &CaseRun,
    phase: &PhaseOutput,
    says_where_the_map_is: bool,
) -> Result<(), Error> {
    let variant = &run.plan.variant;
    let mut add = |case: &str, metric: String, unit: &str, value: f64| -> Result<(), Error> {
        let published = experiment
            .published
            .iter()
            .find(|p| p.case == case && p.variant == *variant && p.metric == metric && p.unit == unit);
        let origin = match published.map(|p| p.origin) {
            Some(Published::Fit) => Origin::Fit,
            _ => Origin::Predicted,
        };
        let row = doc.row(case, variant, metric, unit, value, origin)?;
        if let Some(p) = published {
            row.published(p.value)?;
        }
        Ok(())
    };
    let groups = phase.stats.groups();
    for group in &groups {
        let case = case_name(run, phase, group);
        if run.plan.workload.launches.is_some() {
            let time = group.end.saturating_sub(group.start).as_secs_f64();
            add(&case, "start_up_time".into(), "s", time)?;
        }
        for kind in [IoKind::Read, IoKind::Write, IoKind::Trim, IoKind::Flush] {
            let stats = group.of(kind);
            if stats.ios == 0 {
                continue;
            }
            let name = subject(&phase.stats.name, kind);
            let seconds = group.end.saturating_sub(group.start).as_secs_f64();
            if matches!(kind, IoKind::Read | IoKind::Write) {
                add(&case, format!("{name}_throughput"), "MiB/s", group.rates[kind as usize] / MIB)?;
            }
            if seconds > 0.0 {
                add(&case, format!("{name}_iops"), "1/s", stats.ios as f64 / seconds)?;
            }
            for (suffix, ns) in latencies(stats) {
                add(&case, format!("{name}_latency_{suffix}"), "us", ns / 1e3)?;
            }
        }
    }
    // Device and host count for the whole phase.
    if let Some(first) = groups.first().filter(|_| phase.device.slices_written > 0 || phase.device.has_moved_unasked())
    {
        let case = if groups.len() == 1 { case_name(run, phase, first) } else { whole_phase(run, phase) };
        for (metric, unit, value) in write_metrics(&phase.device, &run.plan.setup.preset.device) {
            add(&case, metric.into(), unit, value)?;
        }
        for (metric, unit, value) in wear_metrics(&phase.wear) {
            add(&case, metric.into(), unit, value)?;
        }
    }
    let Some(first) = groups.iter().find(|g| g.of(IoKind::Read).ios > 0) else { return Ok(()) };
    let case = if groups.len() == 1 { case_name(run, phase, first) } else { whole_phase(run, phase) };
    let device = &phase.device;
    let translated = device.translated_reads();
    if translated > 0 {
        let share = |n: u64| 100.0 * n as f64 / translated as f64;
        add(&case, "map_hit_ratio".into(), "%", share(translated - device.map_misses))?;
        add(&case, "hpb_hit_ratio".into(), "%", share(device.hpb_hits))?;
        if says_where_the_map_is {
            add(&case, "host_map_hit_ratio".into(), "%", share(device.host_map_hits))?;
        }
    }
    add(&case, "map_loads".into(), "", (device.map_loads + device.buffer_map_loads) as f64)?;
    add(&case, "hpb_read_buffers".into(), "", device.read_buffers as f64)?;
    for (metric, count) in verdict_metrics(device, &run.plan.setup.preset) {
        add(&case, metric.into(), "", count as f64)?;
    }
    if let Some(hpb) = &phase.hpb {
        let host = &run.plan.setup.host;
        for (name, count) in hpb_counts(hpb, host) {
            add(&case, name.into(), "", count as f64)?;
        }
        for unit in &phase.units {
            for (metric, unit_of_it, value) in unit_figures(unit, host) {
                add(&unit_case(&case, unit), metric.into(), unit_of_it, value)?;
            }
        }
    }
    if says_where_the_map_is {
        for (metric, unit, value) in map_rows::figures(run, phase) {
            add(&case, metric.into(), unit, value)?;
        }
    }
    let memory = phase.memory.map_or(0, |m| m.peak_bytes + m.table_bytes);
    let memory = memory + map_rows::static_host_bytes(&run.plan.setup.preset);
    add(&case, "host_memory".into(), "bytes", memory as f64)
}

/// What the host's HPB counted, by name, and what a policy of its own counts beside.
pub(crate) fn hpb_counts(hpb: &HpbCounters, host: &HostConfig) -> impl Iterator<Item = (&'static str, u64)> {
    let managed = host.hpb.is_some_and(|hpb| hpb.policy.is_some());
    hpb.by_name().chain(hpb.managed_by_name().into_iter().filter(move |_| managed))
}

/// What rows of one of several logical units are called.
pub(crate) fn unit_case(case: &str, unit: &UnitOutput) -> String {
    format!("{case}: logical unit {}", unit.lun)
}

/// What the host's HPB of one of several logical units did: metric, unit, value.
pub(crate) fn unit_figures(
    unit: &UnitOutput,
    host: &HostConfig,
) -> impl Iterator<Item = (&'static str, &'static str, f64)> {
    let memory = (unit.memory.peak_bytes + unit.memory.table_bytes) as f64;
    hpb_counts(&unit.hpb, host).map(|(name, count)| (name, "", count as f64)).chain([("host_memory", "bytes", memory)])
}

fn whole_phase(run: &CaseRun, phase: &PhaseOutput) -> String {
    format!("{}: {}", run.plan.case, phase.stats.name)
}

/// What the device did for the writes of a phase: metric, unit, value. The first ratio counts data, moved data included,
/// for each block that was programmed for the host; the second counts all programs for each block that it wrote. Both count
/// what a flush of the WriteBooster buffer moves. The counts behind it are what programs are made of.
pub(crate) fn write_metrics(device: &DeviceStats, config: &DeviceConfig) -> Vec<(&'static str, &'static str, f64)> {
    let programmed = (device.programs * u64::from(config.geometry.slices_per_unit())) as f64;
    let ms = |ns: u64| ns as f64 / 1e6;
    let mut metrics = Vec::new();
    if let Some(ratio) = device.write_amplification() {
        metrics.push(("data_write_amplification", "", ratio));
    }
    if device.slices_written > 0 {
        metrics.push(("write_amplification", "", programmed / device.slices_written as f64));
    }
    metrics.extend([
        ("programs", "", device.programs as f64),
        ("slices_moved", "", device.slices_moved as f64),
        ("slices_padded", "", device.slices_padded as f64),
        ("map_writes", "", device.map_writes as f64),
        ("journal_writes", "", device.journal_writes as f64),
        ("checkpoint_writes", "", device.checkpoint_writes as f64),
        ("erases", "", device.erases as f64),
        ("superblocks_collected", "", (device.collected + device.collected_idle) as f64),
        ("superblocks_levelled", "", device.levelled as f64),
        ("stall_space", "ms", ms(device.stall_space_ns)),
        ("stall_map", "ms", ms(device.stall_map_ns)),
        ("stall_journal", "ms", ms(device.stall_journal_ns)),
        ("stall_checkpoint", "ms", ms(device.stall_checkpoint_ns)),
        ("stall_flash", "ms", ms(device.stall_flash_ns)),
    ]);
    // What most devices never do or meet.
    let seldom = [
        ("superblocks_collected_idle", "", device.collected_idle as f64),
        ("superblocks_refreshed", "", device.refreshed as f64),
        ("program_failures", "", device.program_failures as f64),
        ("erase_failures", "", device.erase_failures as f64),
    ];
    metrics.extend(seldom.into_iter().filter(|(.., count)| *count > 0.0));
    if config.write_booster.is_some() {
        metrics.extend([
            ("slices_boosted", "", device.slices_boosted as f64),
            ("slices_flushed", "", device.slices_flushed as f64),
            ("superblocks_flushed", "", device.flushed as f64),
            ("slc_erases", "", device.slc_erases as f64),
        ]);
    }
    metrics
}

/// How worn the device is: metric, unit, value. All of its life counts, and superblocks of anchors apart.
pub(crate) fn wear_metrics(wear: &Wear) -> Vec<(&'static str, &'static str, f64)> {
    let mut metrics = vec![
        ("erase_count_mean", "", wear.mean),
        ("erase_count_min", "", f64::from(wear.min)),
        ("erase_count_max", "", f64::from(wear.max)),
        ("erase_count_spread", "%", wear.spread_percent()),
        ("anchor_erase_count_max", "", f64::from(wear.anchors_max)),
    ];
    let bad = [("bad_blocks", "", f64::from(wear.bad_blocks)), ("superblocks_retired", "", f64::from(wear.retired))];
    metrics.extend(bad.into_iter().filter(|(.., count)| *count > 0.0));
    metrics
}

pub(crate) fn latencies(stats: &KindStats) -> [(&'static str, f64); 4] {
    let l = &stats.latency;
    [
        ("mean", l.mean()),
        ("p50", l.quantile(0.5) as f64),
        ("p99", l.quantile(0.99) as f64),
        ("p99_9", l.quantile(0.999) as f64),
    ]
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
        .map(|r| r.output.sram.iter().map(|(name, bytes)| ((*name).to_owned(), json!(bytes))).collect())
        .unwrap_or_default();
    json!({
        "experiment": serde_json::to_value(experiment).unwrap_or(Value::Null),
        "device_by_variant": devices,
        "device_sram_bytes": sram,
    })
}

/// What is charted if it was measured, the first of them; what the charts call it, and its unit.
const CHARTED: [(&str, &str, &str); 4] = [
    ("start_up_time", "Time until all apps have started", "s"),
    ("random_read_throughput", "Random read throughput", "MiB/s"),
    ("read_throughput", "Read throughput", "MiB/s"),
    ("write_throughput", "Write throughput", "MiB/s"),
];

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
    }
    doc.charts = charts;
    Ok(())
}

/// What follows the names of cases in the names of rows, if anything does.
fn groups(doc: &Document, cases: &[&str]) -> Vec<Option<String>> {
    let mut groups: Vec<Option<String>> = Vec::new();
    for row in doc.rows.iter().filter(|r| CHARTED.iter().any(|(metric, ..)| r.metric == *metric)) {
        let group = cases.iter().find_map(|case| match row.case.strip_prefix(case)? {
            "" => Some(None),
            rest => rest.strip_prefix(": ").map(|group| Some(group.to_owned())),
        });
        if let Some(group) = group
            && !groups.contains(&group)
        {
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
    let name = |case: &str| group.map_or_else(|| case.to_owned(), |group| format!("{case}: {group}"));
    let id = |id: &str| group.map_or_else(|| id.to_owned(), |group| format!("{id}, {group}"));
    let value = |case: &str, variant: &str, metric: &str| {
        let case = name(case);
        doc.rows.iter().find(|r| r.case == case && r.variant == variant && r.metric == metric)
    };
    let measured = |metric: &str| {
        let any = |v| cases.iter().any(|case| value(case, v, metric).is_some());
        experiment.variants.iter().any(|v| any(&v.name))
    };
    let Some((metric, title, unit)) = CHARTED.into_iter().find(|(metric, ..)| measured(metric)) else {
        return Ok(Vec::new());
    };
    let title = group.map_or_else(|| format!("{title} by {axis}"), |group| format!("Throughput of {group} by {axis}"));
    let caption = match doc.rows.iter().any(|r| r.published.is_some()) {
        true => "Published beside simulated values. Which of them were used to choose parameters is in the table.",
        false if experiment.claims.is_empty() => "Nothing has been published for these cases.",
        false => "No figures have been published for these cases; what was claimed is among the findings.",
    };
    let mut bars = Chart::new(id("throughput"), title, ChartKind::Bars).axes(axis, unit).caption(caption);
    let mut hits = Chart::new(id("map_hits"), "Blocks read without waiting for a map page", ChartKind::Lines)
        .axes(axis, "% of blocks read")
        .caption("Served with a good HPB entry, or with the map page in the device's SRAM.");
    for variant in &experiment.variants {
        let points = |published: bool, metric: &str| -> Vec<(String, f64)> {
            cases
                .iter()
                .filter_map(|&case| {
                    let row = value(case, &variant.name, metric)?;
                    Some((case.to_owned(), if published { row.published? } else { row.simulated }))
                })
                .collect()
        };
        let published = points(true, metric);
        if !published.is_empty() {
            bars.series(format!("{}, published", variant.name), SeriesStyle::Published, published)?;
        }
        bars.series(format!("{}, simulated", variant.name), SeriesStyle::Simulated, points(false, metric))?;
        hits.series(&variant.name, SeriesStyle::Simulated, points(false, "map_hit_ratio"))?;
    }
    let mut charts = vec![bars];
    if let [base, other, ..] = &experiment.variants[..]
        && unit != "s"
    {
        let mut chart = gain(&id("gain"), axis, cases, &base.name, &other.name, |c, v| value(c, v, metric))?;
        if let Some(group) = group {
            chart.title += &format!(": {group}");
        }
        charts.push(chart);
    }
    if measured("map_hit_ratio") {
        charts.push(hits);
    }
    Ok(charts)
}

/// Charts over the variants, with a line for each case. If their names are all numbers, they stand at those on the axis.
fn variant_charts(doc: &Document, experiment: &Experiment, cases: &[&str], axis: &str) -> Result<Vec<Chart>, Error> {
    let number = |name: &str| name.parse().ok().filter(|n: &f64| n.is_finite());
    let are_numbers = experiment.variants.iter().all(|v| number(&v.name).is_some());
    let place = |name: &str| match number(name).filter(|_| are_numbers) {
        Some(number) => X::Number(number),
        None => X::Label(name.to_owned()),
    };
    let mut charts = Vec::new();
    for (metric, title, unit) in
        CHARTED.into_iter().chain([("hpb_hit_ratio", "Reads with a good HPB entry", "% of reads")])
    {
        let mut chart = Chart::new(metric, format!("{title} by {axis}"), ChartKind::Lines).axes(axis, unit);
        for &case in cases {
            let points: Vec<(X, f64)> = experiment
                .variants
                .iter()
                .filter_map(|v| {
                    let row = doc.rows.iter().find(|r| r.case == case && r.variant == v.name && r.metric == metric)?;
                    Some((place(&v.name), row.simulated))
                })
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
    row: impl Fn(&str, &str) -> Option<&'a readpath_results::Row>,
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
