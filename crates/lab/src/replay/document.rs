// SPDX-License-Identifier: MIT OR Apache-2.0
//! From replays to the result document: rows and charts. It adds no figure that a run did not give.

use super::{Mode, ReplayCase, ReplayOptions, ReplayPhase, ReplayRun, ReplayVariant};
use crate::attack::verdict_metrics;
use crate::document::{
    MIB, WRITES, distribution, hpb_counts, kind_name, latencies, unit_case, unit_figures, wear_metrics, write_metrics,
};
use crate::spans;
use crate::unused_hpb;
use readpath_host::ManagedPolicy;
use readpath_proto::hpb::Control;
use readpath_results::{Chart, ChartKind, Document, Error, Origin, SeriesStyle};
use readpath_workload::IoKind;
use serde_json::{Map, Value, json};

const KINDS: [IoKind; 4] = [IoKind::Read, IoKind::Write, IoKind::Trim, IoKind::Flush];

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
///
/// # Errors
/// A figure that is not finite.
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
        for note in &case.notes {
            if !doc.notes.contains(note) {
                doc.notes.push(note.clone());
            }
        }
    }
    for run in runs {
        let (case, variant) = (&cases[run.case], &variants[run.variant]);
        for (i, phase) in run.phases.iter().enumerate() {
            doc.simulated_ios += phase.output.stats.ios;
            let last = i + 1 == run.phases.len();
            let name = if last { case.name.clone() } else { format!("{}: {}", case.name, phase.output.stats.name) };
            rows(&mut doc, &name, variant, phase, run)?;
            for unit in &phase.output.units {
                for (metric, unit_of_it, value) in unit_figures(unit, &variant.host) {
                    doc.row(unit_case(&name, unit), &variant.name, metric, unit_of_it, value, Origin::Predicted)?;
                }
            }
        }
        unused_hpb::note(&mut doc, &variant.name, &variant.preset, &variant.host, &[]);
        spans::rows(&mut doc, &case.name, &variant.name, &variant.events, &run.spans)?;
        doc.notes.extend(late_limits(case, variant, run));
    }
    if runs.iter().any(|r| r.phases.iter().any(|p| p.output.device.programs > 0)) {
        doc.notes.push(WRITES.to_owned());
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

fn rows(
    doc: &mut Document,
    case: &str,
    variant: &ReplayVariant,
    phase: &ReplayPhase,
    run: &ReplayRun,
) -> Result<(), Error> {
    let mut add = |metric: &str, unit: &str, value: f64| {
        doc.row(case, &variant.name, metric, unit, value, Origin::Predicted).map(drop)
    };
    let output = &phase.output;
    let seconds = output.stats.end.saturating_sub(output.stats.start).as_secs_f64();
    add("requests", "", output.stats.ios as f64)?;
    for job in &output.stats.jobs {
        for kind in KINDS {
            let (stats, name) = (job.of(kind), kind_name(kind));
            if stats.ios == 0 {
                continue;
            }
            add(&format!("{name}_requests"), "", stats.ios as f64)?;
            if seconds > 0.0 && matches!(kind, IoKind::Read | IoKind::Write) {
                add(&format!("{name}_throughput"), "MiB/s", stats.bytes() as f64 / seconds / MIB)?;
            }
            for (suffix, ns) in latencies(stats) {
                add(&format!("{name}_latency_{suffix}"), "us", ns / 1e3)?;
            }
        }
    }
    let device = &output.device;
    let translated = device.translated_reads();
    if translated > 0 {
        let share = |n: u64| 100.0 * n as f64 / translated as f64;
        add("map_hit_ratio", "%", share(translated - device.map_misses))?;
        add("hpb_hit_ratio", "%", share(device.hpb_hits))?;
    }
    add("map_loads", "", (device.map_loads + device.buffer_map_loads) as f64)?;
    add("hpb_read_buffers", "", device.read_buffers as f64)?;
    for (metric, count) in verdict_metrics(device, &variant.preset) {
        add(metric, "", count as f64)?;
    }
    add("read_buffer_map_loads", "", device.buffer_map_loads as f64)?;
    if let Some(hpb) = &output.hpb {
        for (name, count) in hpb_counts(hpb, &variant.host) {
            add(name, "", count as f64)?;
        }
    }
    let memory = output.memory.map_or(0, |m| m.peak_bytes + m.table_bytes);
    add("host_memory", "bytes", memory as f64)?;
    let map_sram: u64 = run.sram.iter().filter(|(name, _)| name.starts_with("map ")).map(|(_, bytes)| bytes).sum();
    add("device_map_memory", "bytes", map_sram as f64)?;
    let written: u64 = output.stats.jobs.iter().map(|j| j.of(IoKind::Write).blocks).sum();
    if written > 0 || device.has_moved_unasked() {
        for (metric, unit, value) in write_metrics(device, &variant.preset.device) {
            add(metric, unit, value)?;
        }
        for (metric, unit, value) in wear_metrics(&output.wear) {
            add(metric, unit, value)?;
        }
    }
    add("most_outstanding", "", f64::from(phase.most_outstanding))?;
    add("virtual_duration", "s", seconds)
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
    for (i, v) in variants.iter().enumerate() {
        devices.insert(v.name.clone(), serde_json::to_value(v.preset.echo()).unwrap_or(Value::Null));
        let mut host = json!({
            "hpb": v.host.hpb.is_some(),
            "mode": v.host.hpb.and_then(|h| h.mode).map(Control::name),
            "policy": v.host.hpb.and_then(|h| h.policy).map(ManagedPolicy::name),
            "max_map_bytes": v.host.hpb.and_then(|h| h.max_map_bytes),
            "memory_bytes": v.host.hpb.and_then(|h| h.memory_bytes),
            "events": v.events,
            "memory_limits": v.limits.iter().map(|(at, bytes)| json!({ "ms": at.0 / 1_000_000, "bytes": bytes })).collect::<Vec<_>>(),
        });
        if let Some(update) = v.host.hpb.and_then(|h| h.prototype) {
            host["prototype"] = json!(update.name());
        }
        hosts.insert(v.name.clone(), host);
        if let Some(run) = runs.iter().find(|r| r.variant == i) {
            let tables: Map<String, Value> = run.sram.iter().map(|(name, n)| ((*name).to_owned(), json!(n))).collect();
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
        let share =
            doc.rows.iter().find(|r| r.case == case.name && r.variant == *variant && r.metric == "map_hit_ratio");
        shares.extend(share.map(|row| (variant.clone(), row.simulated)));
    }
    if !shares.is_empty() {
        hits.series("map hits", SeriesStyle::Plain, shares)?;
        doc.charts.push(hits);
    }
    if !cdf.series.is_empty() {
        doc.charts.push(cdf);
    }
    Ok(())
}
