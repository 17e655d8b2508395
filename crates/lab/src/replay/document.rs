// SPDX-License-Identifier: MIT OR Apache-2.0
//! From replays to the result document: rows and charts. It adds no figure that a run did not give.

use super::{Mode, ReplayCase, ReplayOptions, ReplayPhase, ReplayRun, ReplayVariant};
use crate::attack::verdict_metrics;
use crate::document::{
    KINDS, MIB, WRITES, distribution, hit_ratios, hpb_counts, latencies, requests, unit_case, unit_figures,
    wear_metrics, write_metrics,
};
use crate::little_gain::{self, Seen};
use crate::map_rows::static_host_bytes;
use crate::over_time::{self, Timed};
use crate::spans;
use crate::unused_hpb;
use readpath_host::ManagedPolicy;
use readpath_kit::Ns;
use readpath_proto::hpb::Control;
use readpath_results::metric::{self, Figure};
use readpath_results::{Case, Chart, ChartKind, Document, Error, Metric, Note, SeriesStyle};
use readpath_workload::IoKind;
use serde_json::{Map, Value, json};

/// Cases at most, the first, that have charts over time.
const MOST_CASES_OVER_TIME: usize = 4;

/// What a document says that runs do not know.
#[derive(Clone, Debug)]
pub struct ReplayTexts {
    /// Heading.
    pub title: String,
    /// What was asked.
    pub description: String,
    /// How the traces were read and prepared, in whatever shape.
    pub settings: Value,
}

/// The document of `runs` of `cases` and `variants`, without what depends on the machine.
pub fn document(
    texts: &ReplayTexts,
    cases: &[ReplayCase],
    variants: &[ReplayVariant],
    options: &ReplayOptions,
    runs: &[ReplayRun],
) -> Result<Document, Error> {
    let mut doc = Document::new("replay", &texts.title);
    doc.description = texts.description.clone();
    doc.seed = options.seed;
    doc.configuration = configuration(texts, variants, options, runs);
    for case in cases {
        doc.read_from(&case.inputs);
        case.notes.iter().for_each(|note| doc.note(note.clone()));
    }
    for run in runs {
        let (case, variant) = (&cases[run.case], &variants[run.variant]);
        for (i, phase) in run.phases.iter().enumerate() {
            doc.simulated_ios += phase.output.stats.ios;
            let last = i + 1 == run.phases.len();
            let whole = Case::from(&case.name);
            let part = if last { whole } else { whole.jobs(&phase.output.stats.name) };
            doc.predicted(&part, &variant.name, figures(variant, phase, run))?;
            for unit in &phase.output.units {
                doc.predicted(unit_case(&part, unit), &variant.name, unit_figures(unit, &variant.host))?;
            }
        }
        unused_hpb::note(&mut doc, &variant.name, &variant.preset, &variant.host, &[]);
        spans::rows(&mut doc, &case.name, &variant.name, &variant.events, &run.spans)?;
        doc.notes.extend(late_limits(case, variant, run).map(Note::remark));
    }
    let seen = runs.iter().map(|run| {
        let variant = &variants[run.variant];
        let phases = run.phases.last().map(|phase| &phase.output).into_iter().collect();
        Seen {
            case: &cases[run.case].name,
            variant: &variant.name,
            preset: &variant.preset,
            host: &variant.host,
            phases,
        }
    });
    little_gain::notes(&mut doc, &seen.collect::<Vec<_>>());
    if runs.iter().any(|r| r.phases.iter().any(|p| p.output.device.programs > 0)) {
        doc.remark(WRITES);
    }
    for (i, case) in cases.iter().enumerate() {
        let of_case: Vec<&ReplayRun> = runs.iter().filter(|r| r.case == i).collect();
        charts(&mut doc, i, case, variants, &of_case)?;
    }
    Ok(doc)
}

/// A note of limits of memory whose times lie behind the end of the trace.
fn late_limits(case: &ReplayCase, variant: &ReplayVariant, run: &ReplayRun) -> Option<String> {
    let stats = &run.phases.last()?.output.stats;
    let length = stats.end.saturating_sub(stats.start);
    let came = variant.limits.iter().take_while(|&&(at, _)| at <= length).count();
    let which = spans::did_not_come("limit", came, variant.limits.len())?;
    Some(format!("{}, {}: {which} of memory did not come: the run was over before", case.name, variant.name))
}

/// All figures of the trace of a run, behind its preconditions.
pub fn run_figures(variant: &ReplayVariant, run: &ReplayRun) -> Vec<(Metric, f64)> {
    run.phases.last().map_or_else(Vec::new, |phase| figures(variant, phase, run))
}

fn figures(variant: &ReplayVariant, phase: &ReplayPhase, run: &ReplayRun) -> Vec<(Metric, f64)> {
    let output = &phase.output;
    let seconds = output.stats.end.saturating_sub(output.stats.start).as_secs_f64();
    let mut list = vec![(metric::REQUESTS, output.stats.ios as f64)];
    for job in &output.stats.jobs {
        for kind in KINDS {
            let (stats, of) = (job.of(kind), requests(kind));
            if stats.ios == 0 {
                continue;
            }
            list.push((of.of(Figure::Count), stats.ios as f64));
            if seconds > 0.0 && matches!(kind, IoKind::Read | IoKind::Write) {
                list.push((of.of(Figure::Throughput), stats.bytes() as f64 / seconds / MIB));
            }
            list.extend(latencies(stats).map(|(figure, us)| (of.of(figure), us)));
        }
    }
    let device = &output.device;
    list.extend(hit_ratios(device, variant.preset.device.host_map().is_some()));
    list.push((metric::MAP_LOADS, (device.map_loads + device.buffer_map_loads) as f64));
    list.push((metric::HPB_READ_BUFFERS, device.read_buffers as f64));
    list.extend(verdict_metrics(device, &variant.preset));
    list.push((metric::READ_BUFFER_MAP_LOADS, device.buffer_map_loads as f64));
    list.extend(output.hpb.iter().flat_map(|hpb| hpb_counts(hpb, &variant.host)));
    let memory = output.memory.map_or(0, |m| m.peak_bytes + m.table_bytes);
    let memory = memory + static_host_bytes(&variant.preset);
    list.push((metric::HOST_MEMORY, memory as f64));
    let map_sram: u64 = run.sram.iter().filter(|(table, _)| table.is_of_map()).map(|(_, bytes)| bytes).sum();
    list.push((metric::DEVICE_MAP_MEMORY, map_sram as f64));
    let written: u64 = output.stats.jobs.iter().map(|j| j.of(IoKind::Write).blocks).sum();
    if written > 0 || device.has_moved_unasked() {
        list.extend(write_metrics(device, &variant.preset.device));
        list.extend(wear_metrics(&output.wear));
    }
    list.push((metric::MOST_OUTSTANDING, f64::from(phase.most_outstanding)));
    list.push((metric::VIRTUAL_DURATION, seconds));
    list
}

fn configuration(
    texts: &ReplayTexts,
    variants: &[ReplayVariant],
    options: &ReplayOptions,
    runs: &[ReplayRun],
) -> Value {
    let mut devices = Map::new();
    let mut hosts = Map::new();
    let mut sram = Map::new();
    let limit = |(at, bytes): &(Ns, u64)| json!({ "ms": at.0 / 1_000_000, "bytes": bytes });
    for (i, v) in variants.iter().enumerate() {
        devices.insert(v.name.clone(), serde_json::to_value(v.preset.echo()).unwrap_or(Value::Null));
        let mut host = json!({
            "hpb": v.host.hpb.is_some(),
            "mode": v.host.hpb.and_then(|h| h.mode).map(Control::name),
            "policy": v.host.hpb.and_then(|h| h.policy).map(ManagedPolicy::name),
            "max_map_bytes": v.host.hpb.and_then(|h| h.max_map_bytes),
            "memory_bytes": v.host.hpb.and_then(|h| h.memory_bytes),
            "events": v.events,
            "memory_limits": v.limits.iter().map(limit).collect::<Vec<_>>(),
        });
        if let Some(update) = v.host.hpb.and_then(|h| h.prototype) {
            host["prototype"] = json!(update.name());
        }
        hosts.insert(v.name.clone(), host);
        if let Some(run) = runs.iter().find(|r| r.variant == i) {
            let tables: Map<String, Value> =
                run.sram.iter().map(|(table, n)| (table.name().to_owned(), json!(n))).collect();
            sram.insert(v.name.clone(), Value::Object(tables));
        }
    }
    let mode = match options.mode {
        Mode::Timed => json!({ "mode": "timed" }),
        Mode::Closed { iodepth } => json!({ "mode": "closed", "iodepth": iodepth }),
    };
    json!({
        "replay": mode,
        "traces": texts.settings,
        "device_by_variant": devices,
        "host_by_variant": hosts,
        "device_sram_bytes_by_variant": sram,
    })
}

/// A run over time, if that was kept.
pub(crate) fn timed<'a>(run: &'a ReplayRun, variants: &'a [ReplayVariant]) -> Option<Timed<'a>> {
    let ReplayVariant { name, preset, .. } = &variants[run.variant];
    Some(Timed { variant: name, preset, series: run.over_time.as_ref()? })
}

fn charts(
    doc: &mut Document,
    index: usize,
    case: &ReplayCase,
    variants: &[ReplayVariant],
    runs: &[&ReplayRun],
) -> Result<(), Error> {
    let mut cdf = Chart::new(format!("latency_{}", index + 1), format!("Read latency, {}", case.name), ChartKind::Step)
        .axes("read latency, us", "% of reads")
        .x_log()
        .caption("Share of reads that took no longer, from the moment they were due to their end at the host.");
    let mut hits = Chart::new(
        format!("map_hits_{}", index + 1),
        format!("Blocks read that did not wait for a map page, {}", case.name),
        ChartKind::Bars,
    )
    .axes("variant", "% of blocks")
    .caption("Served with a good HPB entry, or with the map page in the device's SRAM.");
    let mut shares = Vec::new();
    for run in runs {
        let variant = &variants[run.variant].name;
        let Some(phase) = run.phases.last() else { continue };
        let Some(job) = phase.output.stats.jobs.first() else { continue };
        let latency = &job.of(IoKind::Read).latency;
        if latency.count() > 0 {
            cdf.series(variant, SeriesStyle::Plain, distribution(latency))?;
        }
        let share = doc.find(&case.name, variant, &metric::MAP_HIT_RATIO);
        shares.extend(share.map(|row| (variant.clone(), row.simulated)));
    }
    if !shares.is_empty() {
        hits.series("map hits", SeriesStyle::Plain, shares)?;
        doc.charts.push(hits);
    }
    if !cdf.series.is_empty() {
        doc.charts.push(cdf);
    }
    if index < MOST_CASES_OVER_TIME {
        let over_time: Vec<Timed> = runs.iter().filter_map(|run| timed(run, variants)).collect();
        doc.charts.extend(over_time::charts(&case.name, &over_time, false)?);
    }
    Ok(())
}
