// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs with power cuts to the result document. It adds no figure that a run did not give.

use super::{Loses, PowerCuts, PowerRun};
use crate::document::{WRITES, hpb_counts, write_metrics};
use crate::experiment::Plan;
use crate::unused_hpb;
use readpath_kit::Ns;
use readpath_results::{Chart, ChartKind, Document, Error, Origin, SeriesStyle};
use serde_json::{Map, Value, json};

/// What a document says that runs do not know.
#[derive(Clone, Debug)]
pub struct PowerTexts {
    /// Heading.
    pub title: String,
    /// What was asked.
    pub description: String,
}

/// The document of `runs`, one for each of `plans`, without what depends on the machine.
///
/// # Errors
/// A figure that is not finite.
pub fn document(texts: &PowerTexts, plans: &[Plan], cuts: &PowerCuts, runs: &[PowerRun]) -> Result<Document, Error> {
    let mut doc = Document::new("power", &texts.title);
    doc.description = texts.description.clone();
    doc.seed = cuts.seed;
    doc.configuration = configuration(plans, cuts);
    let mut chart =
        Chart::new("recovery", "Recovery after each power cut", ChartKind::Lines).axes("power cut", "ms").caption(
            "From the return of the power until the device takes commands, and the most that its configuration allows.",
        );
    for (plan, run) in plans.iter().zip(runs) {
        doc.simulated_ios += run.ios;
        doc.read_from(&plan.inputs);
        rows(&mut doc, plan, run)?;
        let points = run.cuts.iter().enumerate().map(|(i, cut)| ((i + 1) as f64, ms(cut.took)));
        chart.series(&plan.variant, SeriesStyle::Plain, points)?;
        for note in &plan.workload.notes {
            if !doc.notes.contains(note) {
                doc.notes.push(note.clone());
            }
        }
        unused_hpb::note_of(&mut doc, plan);
        if let Some(wrong) = run.first_wrong {
            doc.notes.push(format!("{}, {}: WRONG DATA, first {wrong:?}", plan.case, plan.variant));
        }
    }
    if let Some(run) = runs.first()
        && run.cuts.len() > 1
    {
        let longest = ms(run.longest.ready_at);
        chart.series("at most", SeriesStyle::Plain, [(1.0, longest), (run.cuts.len() as f64, longest)])?;
        doc.charts.push(chart);
    }
    doc.notes.push(
        "Unflushed writes may be lost; what a FLUSH or FUA has confirmed may not, and no block may read as anything that \
         was not written there. Every block of the workload's files was read back at the end."
            .to_owned(),
    );
    if runs.iter().any(|run| run.device.programs > 0) {
        doc.notes.push(WRITES.to_owned());
    }
    Ok(doc)
}

fn ms(time: Ns) -> f64 {
    time.as_secs_f64() * 1e3
}

fn rows(doc: &mut Document, plan: &Plan, run: &PowerRun) -> Result<(), Error> {
    let mut add = |metric: &str, unit: &str, value: f64| {
        doc.row(&plan.case, &plan.variant, metric, unit, value, Origin::Predicted).map(drop)
    };
    let n = run.cuts.len().max(1) as f64;
    let most = |f: fn(&super::Cut) -> f64| run.cuts.iter().map(f).fold(0.0, f64::max);
    let mean = |f: fn(&super::Cut) -> f64| run.cuts.iter().map(f).sum::<f64>() / n;
    add("power_cuts", "", run.cuts.len() as f64)?;
    add("requests", "", run.ios as f64)?;
    add("requests_in_flight_mean", "", mean(|c| f64::from(c.in_flight)))?;
    add("recovery_time_mean", "ms", mean(|c| ms(c.took)))?;
    add("recovery_time_max", "ms", most(|c| ms(c.took)))?;
    add("recovery_time_bound", "ms", ms(run.longest.ready_at))?;
    add("recovery_reads_mean", "", mean(|c| f64::from(c.recovery.reads())))?;
    add("recovery_reads_max", "", most(|c| f64::from(c.recovery.reads())))?;
    add("recovery_reads_bound", "", f64::from(run.longest.reads()))?;
    add("torn_units", "", run.cuts.iter().map(|c| f64::from(c.recovery.torn)).sum())?;
    add("blocks_checked", "", run.checked as f64)?;
    add("blocks_wrong", "", run.wrong as f64)?;
    if plan.setup.host.hpb.is_some() {
        add("hpb_resets_announced", "", run.device.resets_announced as f64)?;
        let (hpb, reads) = (&run.hpb, run.hpb.device.translated_reads());
        if reads > 0 {
            add("hpb_hit_ratio", "%", 100.0 * hpb.device.hpb_hits as f64 / reads as f64)?;
        }
        for (name, count) in hpb_counts(&hpb.counters, &plan.setup.host) {
            add(name, "", count as f64)?;
        }
        add("hit_cnt_after_cuts", "", hpb.after_cuts.hit_cnt as f64)?;
        add("host_memory", "bytes", hpb.memory_bytes as f64)?;
    }
    if run.device.programs > 0 {
        for (metric, unit, value) in write_metrics(&run.device, &plan.setup.preset.device) {
            add(metric, unit, value)?;
        }
    }
    Ok(())
}

fn configuration(plans: &[Plan], cuts: &PowerCuts) -> Value {
    let echo = |plan: &Plan| serde_json::to_value(plan.setup.preset.echo()).unwrap_or(Value::Null);
    let devices: Map<String, Value> = plans.iter().map(|plan| (plan.variant.clone(), echo(plan))).collect();
    let loses = match cuts.loses {
        Loses::Everything => "everything",
        Loses::Device => "device",
    };
    json!({
        "power": { "cuts": cuts.cuts, "loses": loses, "off_ns": cuts.off.0 },
        "device_by_variant": devices,
    })
}
