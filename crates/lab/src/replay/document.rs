// SPDX-License-Identifier: MIT OR Apache-2.0
//! From replays to the result document: rows and charts. It adds no figure that a run did not give.

use super::{Mode, Replay, ReplayCase, ReplayPhase, ReplayRun, ReplayVariant};
use crate::attack::verdict_metrics;
use crate::figures::{
    KINDS, MIB, WRITES, distribution, hit_ratios, hpb_counts, latencies, requests, runs_and_ahead, unit_case,
    unit_figures, wear_metrics, write_metrics, zone_map, zone_metrics,
};
use crate::fragment::{self, Fragment};
use crate::life::{self, Life};
use crate::little_gain::{self, Seen};
use crate::map_rows::peak_host_bytes;
use crate::over_time::{self, Timed};
use crate::verdict::{self, Measured, Memory, Outcome};
use crate::{means, spans, unused_hpb};
use readpath_host::ManagedPolicy;
use readpath_kit::Ns;
use readpath_proto::hpb::Control;
use readpath_results::metric::{self, Figure};
use readpath_results::{Case, Chart, ChartKind, Document, Error, Metric, Note, Row, SeriesStyle};
use readpath_workload::IoKind;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Cases at most, the first, that have charts over time.
const MOST_CASES_OVER_TIME: usize = 4;

/// What a document says that runs do not know.
#[derive(Clone, Debug)]
pub struct ReplayTexts {
    /// Heading.
    pub title: String,
    /// What was asked.
    pub description: String,
    /// How the traces were read and prepared, as any JSON.
    pub settings: Value,
}

/// The rows and charts of a run.
///
/// # Errors
/// A figure that is not finite.
pub fn fragment(replay: &Replay, run: &ReplayRun) -> Result<Fragment, Error> {
    let (case, variant) = (&*replay.case, &*replay.variant);
    let mut doc = Document::new("", "");
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
    let last = run.phases.last().map(|phase| &phase.output);
    let seen = Seen {
        case: &case.name,
        variant: &variant.name,
        preset: &variant.preset,
        host: &variant.host,
        phases: last.into_iter().collect(),
    };
    let memory =
        Memory { host: peak_host_bytes(last, &variant.preset) as f64, sram: fragment::map_sram(&run.sram) as f64 };
    let (at, series) = ((&*case.name, &*variant.name), run.over_time.as_ref());
    let outcome = Outcome::new(at, &seen.phases, series, Measured::ALL, memory);
    let life = Life::of(&variant.name, &seen.phases, &variant.preset.device, series);
    let latency = last.and_then(|phase| phase.stats.jobs.first()).map(|job| &job.of(IoKind::Read).latency);
    Ok(Fragment {
        document: doc,
        latency: latency.map(|latency| (case.name.clone(), distribution(latency))).into_iter().collect(),
        over_time: run.over_time.clone(),
        gain: seen.gain(),
        outcome,
        life,
        phases: Vec::new(),
        sram: fragment::sram(&run.sram),
        programs: run.phases.iter().any(|phase| phase.output.device.programs > 0),
        incomplete: None,
    })
}

/// The document of replays of `cases`, without what depends on the machine.
///
/// # Errors
/// A figure that is not finite.
pub fn document(texts: &ReplayTexts, replays: &[Replay], runs: &[Option<&Fragment>]) -> Result<Document, Error> {
    let mut doc = Document::new("replay", &texts.title);
    doc.description = texts.description.clone();
    doc.seed = replays.first().map_or(0, |replay| replay.options.seed);
    doc.configuration = configuration(texts, replays, runs);
    let mut cases: Vec<&Arc<ReplayCase>> = Vec::new();
    for replay in replays {
        if !cases.iter().any(|case| Arc::ptr_eq(case, &replay.case)) {
            cases.push(&replay.case);
        }
    }
    for case in &cases {
        doc.read_from(&case.inputs);
        case.notes.iter().for_each(|note| doc.note(note.clone()));
    }
    fragment::join(&mut doc, runs.iter().flatten().copied());
    little_gain::notes(&mut doc, &runs.iter().flatten().map(|run| &run.gain).collect::<Vec<_>>());
    if runs.iter().flatten().any(|run| run.programs) {
        doc.remark(WRITES);
    }
    let judged = replays.iter().zip(runs).filter(|(replay, _)| replay.case.coarse_times().is_none());
    doc.verdict = verdict::of_runs(judged.filter_map(|(_, run)| Some(&(*run)?.outcome)));
    doc.verdict.extend(cases.iter().filter_map(|case| case.coarse_times()).take(1).map(verdict::not_from_these_times));
    life::judge(&mut doc, runs.iter().flatten().filter_map(|run| run.life.as_ref()));
    let outcomes: Vec<&Outcome> = runs.iter().flatten().map(|run| &run.outcome).collect();
    let whole: Vec<&Row> = doc.rows.iter().filter(|row| row.case.is_whole()).collect();
    doc.charts = means::latencies(&whole, &outcomes)?;
    for (i, case) in cases.into_iter().enumerate() {
        let of_case = replays.iter().zip(runs).filter(|(replay, _)| Arc::ptr_eq(&replay.case, case));
        let of_case: Vec<(&Replay, &Fragment)> = of_case.filter_map(|(replay, run)| Some((replay, (*run)?))).collect();
        charts(&mut doc, i, case, &of_case)?;
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
    list.extend(runs_and_ahead(device, &variant.preset.device));
    list.push((metric::HPB_READ_BUFFERS, device.read_buffers as f64));
    list.extend(verdict_metrics(device, &variant.preset));
    list.push((metric::READ_BUFFER_MAP_LOADS, device.buffer_map_loads as f64));
    list.extend(output.hpb.iter().flat_map(|hpb| hpb_counts(hpb, &variant.host)));
    list.push((metric::HOST_MEMORY, peak_host_bytes([output], &variant.preset) as f64));
    list.push((metric::DEVICE_MAP_MEMORY, fragment::map_sram(&run.sram) as f64));
    let written: u64 = output.stats.jobs.iter().map(|j| j.of(IoKind::Write).blocks).sum();
    if written > 0 || device.has_moved_unasked() {
        list.extend(write_metrics(device, &variant.preset.device));
        list.extend(zone_metrics(output.zones.as_ref()));
        list.extend(zone_map(output.zones.as_ref()));
        list.extend(wear_metrics(&output.wear));
        let life = Life::of(&variant.name, &[output], &variant.preset.device, run.over_time.as_ref());
        list.extend(life.iter().flat_map(Life::figures));
    }
    list.push((metric::MOST_OUTSTANDING, f64::from(phase.most_outstanding)));
    list.push((metric::VIRTUAL_DURATION, seconds));
    list
}

fn configuration(texts: &ReplayTexts, replays: &[Replay], runs: &[Option<&Fragment>]) -> Value {
    let mut devices = Map::new();
    let mut hosts = Map::new();
    let mut sram = Map::new();
    let limit = |(at, bytes): &(Ns, u64)| json!({ "ms": at.0 / 1_000_000, "bytes": bytes });
    for (replay, run) in replays.iter().zip(runs) {
        let v = &replay.variant;
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
        if let Some(run) = run {
            sram.entry(v.name.clone()).or_insert_with(|| run.sram.clone().into());
        }
    }
    let mode = match replays.first().map_or(Mode::Timed, |replay| replay.options.mode) {
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
pub(crate) fn timed<'a>(replay: &'a Replay, run: &'a Fragment) -> Option<Timed<'a>> {
    let ReplayVariant { name, preset, .. } = &*replay.variant;
    let is_paced = matches!(replay.options.mode, Mode::Timed);
    Some(Timed { variant: name, preset, series: run.over_time.as_ref()?, is_paced })
}

fn charts(doc: &mut Document, index: usize, case: &ReplayCase, runs: &[(&Replay, &Fragment)]) -> Result<(), Error> {
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
    for (replay, run) in runs {
        let variant = &replay.variant.name;
        for (_, points) in run.latency.iter().filter(|(_, points)| !points.is_empty()) {
            cdf.series(variant, SeriesStyle::Plain, points.clone())?;
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
        let over_time: Vec<Timed> = runs.iter().filter_map(|(replay, run)| timed(replay, run)).collect();
        doc.charts.extend(over_time::charts(&case.name, &over_time, false)?);
    }
    Ok(())
}
