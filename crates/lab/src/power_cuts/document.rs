// SPDX-License-Identifier: MIT OR Apache-2.0
//! From runs with power cuts to the result document. It adds no figure that a run did not give.

use super::{Cut, Loses, PowerCuts, PowerRun};
use crate::figures::{WRITES, hpb_counts, write_metrics};
use crate::runs::Plan;
use crate::unused_hpb;
use readpath_kit::Ns;
use readpath_results::{Chart, ChartKind, Document, Error, Metric, Note, NoteKind, Origin, SeriesStyle, metric};
use readpath_run::rules::{Due, Exactly, RuleCount, RuleOrder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What a document says that runs do not know.
#[derive(Clone, Debug)]
pub struct PowerTexts {
    /// Heading.
    pub title: String,
    /// What was asked.
    pub description: String,
    /// What has to be known of the trace.
    pub notes: Vec<Note>,
    /// How the trace was read and prepared, if it is one.
    pub settings: Option<Value>,
}

/// Figures of a run with power cuts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PowerFigures {
    /// Rows, notes and inputs, and the number of requests.
    document: Document,
    /// How long each recovery took, in milliseconds, and the most that the configuration allows.
    took_ms: Vec<f64>,
    longest_ms: f64,
    /// Blocks that were read back.
    checked: u64,
    /// Blocks with wrong data.
    pub wrong: u64,
    /// Blocks that are wrong because of a rule.
    pub wrong_by_rule: u64,
    programs: bool,
}

impl PowerFigures {
    /// The figures of the run of `plan`.
    ///
    /// # Errors
    /// A figure that is not finite.
    pub fn of(plan: &Plan, run: &PowerRun) -> Result<Self, Error> {
        let mut doc = Document::new("", "");
        doc.simulated_ios = run.ios;
        doc.read_from(&plan.inputs);
        rows(&mut doc, plan, run)?;
        plan.workload.notes.iter().for_each(|note| doc.note(Note::remark(note)));
        unused_hpb::note_of(&mut doc, plan);
        if let Some(wrong) = run.first_wrong {
            doc.remark(format!("{}, {}: WRONG DATA, first {wrong:?}", plan.case, plan.variant));
        }
        if let Some(wrong) = run.first_by_rule {
            doc.remark(format!("{}, {}: lost by rule, first {wrong:?}", plan.case, plan.variant));
        }
        for RuleCount { number, rule, met, done } in &run.rules {
            let text = format!("rule {number}, {rule}: acted on {done} of the {met} requests that it met");
            let note = Note::remark(format!("{}, {}: {text}", plan.case, plan.variant));
            doc.note(note.with("rule", *number as f64).with("met", *met as f64).with("done", *done as f64));
        }
        for place in &run.never_due {
            doc.remark(format!("{}, {}: {place}: the workload had ended before", plan.case, plan.variant));
        }
        Ok(PowerFigures {
            document: doc,
            took_ms: run.cuts.iter().map(|cut| ms(cut.took)).collect(),
            longest_ms: ms(run.longest.ready_at),
            checked: run.checked,
            wrong: run.wrong,
            wrong_by_rule: run.wrong_by_rule,
            programs: run.device.programs > 0,
        })
    }
}

/// The document of `runs`, one for each of `plans`, without what depends on the machine.
pub fn document(
    texts: &PowerTexts,
    plans: &[&Plan],
    cuts: &PowerCuts,
    runs: &[&PowerFigures],
) -> Result<Document, Error> {
    let mut doc = Document::new("power", &texts.title);
    doc.description = texts.description.clone();
    doc.notes.clone_from(&texts.notes);
    doc.seed = cuts.seed;
    doc.configuration = configuration(texts, plans, cuts);
    let mut chart =
        Chart::new("recovery", "Recovery after each power cut", ChartKind::Lines).axes("power cut", "ms").caption(
            "From the return of the power until the device takes commands, and the most that its configuration allows.",
        );
    for (plan, run) in plans.iter().zip(runs) {
        doc.absorb(run.document.clone(), "");
        let points = run.took_ms.iter().enumerate().map(|(i, ms)| ((i + 1) as f64, *ms));
        chart.series(&plan.variant, SeriesStyle::Plain, points)?;
    }
    if let Some(PowerFigures { took_ms, longest_ms, .. }) = runs.first().filter(|run| run.took_ms.len() > 1) {
        let points = [(1.0, *longest_ms), (took_ms.len() as f64, *longest_ms)];
        chart.series("at most", SeriesStyle::Plain, points)?;
        doc.charts.push(chart);
    }
    doc.verdict.extend(verdict(runs));
    doc.remark(
        "Unflushed writes may be lost; what a FLUSH or FUA has confirmed may not, and no block may read as anything \
         that was not written there. Every block of the workload's files was read back at the end.",
    );
    if runs.iter().any(|run| run.programs) {
        doc.remark(WRITES);
    }
    Ok(doc)
}

/// Whether data survived, and how long the device needed.
fn verdict(runs: &[&PowerFigures]) -> Option<Note> {
    let took = || runs.iter().flat_map(|run| &run.took_ms);
    let (cuts, longest) = (took().count(), took().copied().fold(0.0, f64::max));
    let bound = runs.iter().map(|run| run.longest_ms).fold(0.0, f64::max);
    let sum = |of: fn(&PowerFigures) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
    let (checked, wrong, by_rule) = (sum(|run| run.checked), sum(|run| run.wrong), sum(|run| run.wrong_by_rule));
    if cuts == 0 {
        return None;
    }
    let text = if wrong > 0 {
        format!("DATA WAS LOST: of {checked} blocks that were read back after {cuts} power cuts {wrong} are wrong.")
    } else if by_rule > 0 {
        format!(
            "LOST BY RULE: of {checked} blocks that were read back after {cuts} power cuts {by_rule} do not hold what \
             was confirmed, because of the rules. The device lost nothing that it was given."
        )
    } else {
        // With no failure in n trials, the share of failures of which that has a probability of 5 %.
        let share = 100.0 * (1.0 - libm::pow(0.05, 1.0 / cuts as f64));
        format!(
            "No confirmed data was lost in {cuts} power cuts: all {checked} blocks read back are right. So at most \
             {share:.1} % of such cuts lose data (95 % confidence). Recovery took {longest:.1} ms at most, \
             of {bound:.1} that the device may take."
        )
    };
    let note = Note::new(NoteKind::Gain, text).with("power_cuts", cuts as f64).with("blocks_checked", checked as f64);
    let note = if by_rule > 0 { note.with("blocks_wrong_by_rule", by_rule as f64) } else { note };
    Some(note.with("blocks_wrong", wrong as f64).with("recovery_ms_max", longest))
}

fn ms(time: Ns) -> f64 {
    time.as_secs_f64() * 1e3
}

fn rows(doc: &mut Document, plan: &Plan, run: &PowerRun) -> Result<(), Error> {
    let mut add =
        |metric: Metric, value: f64| doc.row(&plan.case, &plan.variant, metric, value, Origin::Predicted).map(drop);
    let n = run.cuts.len().max(1) as f64;
    let most = |f: fn(&Cut) -> f64| run.cuts.iter().map(f).fold(0.0, f64::max);
    let mean = |f: fn(&Cut) -> f64| run.cuts.iter().map(f).sum::<f64>() / n;
    add(metric::POWER_CUTS, run.cuts.len() as f64)?;
    add(metric::REQUESTS, run.ios as f64)?;
    add(metric::REQUESTS_IN_FLIGHT_MEAN, mean(|c| f64::from(c.in_flight)))?;
    add(metric::RECOVERY_TIME_MEAN, mean(|c| ms(c.took)))?;
    add(metric::RECOVERY_TIME_MAX, most(|c| ms(c.took)))?;
    add(metric::RECOVERY_TIME_BOUND, ms(run.longest.ready_at))?;
    add(metric::RECOVERY_READS_MEAN, mean(|c| f64::from(c.recovery.reads())))?;
    add(metric::RECOVERY_READS_MAX, most(|c| f64::from(c.recovery.reads())))?;
    add(metric::RECOVERY_READS_BOUND, f64::from(run.longest.reads()))?;
    add(metric::TORN_UNITS, run.cuts.iter().map(|c| f64::from(c.recovery.torn)).sum())?;
    add(metric::BLOCKS_CHECKED, run.checked as f64)?;
    add(metric::BLOCKS_WRONG, run.wrong as f64)?;
    if !run.rules.is_empty() {
        add(metric::BLOCKS_WRONG_BY_RULE, run.wrong_by_rule as f64)?;
        add(metric::REQUESTS_RULED, run.rules.iter().map(|rule| rule.done as f64).sum())?;
    }
    if plan.setup.host.hpb.is_some() {
        add(metric::HPB_RESETS_ANNOUNCED, run.device.resets_announced as f64)?;
        let (hpb, reads) = (&run.hpb, run.hpb.device.translated_reads());
        if reads > 0 {
            add(metric::HPB_HIT_RATIO, 100.0 * hpb.device.hpb_hits as f64 / reads as f64)?;
        }
        hpb_counts(&hpb.counters, &plan.setup.host).try_for_each(|(metric, count)| add(metric, count))?;
        add(metric::HIT_CNT_AFTER_CUTS, hpb.after_cuts.hit_cnt as f64)?;
        add(metric::HOST_MEMORY, hpb.memory_bytes as f64)?;
    }
    if run.device.programs > 0 {
        let writes = write_metrics(&run.device, &plan.setup.preset.device);
        writes.into_iter().try_for_each(|(metric, value)| add(metric, value))?;
    }
    Ok(())
}

fn configuration(texts: &PowerTexts, plans: &[&Plan], cuts: &PowerCuts) -> Value {
    let echo = |plan: &Plan| serde_json::to_value(plan.setup.preset.echo()).unwrap_or(Value::Null);
    let devices: Map<String, Value> = plans.iter().map(|plan| (plan.variant.clone(), echo(plan))).collect();
    let loses = match cuts.loses {
        Loses::Everything => "everything",
        Loses::Device => "device",
    };
    let mut configuration = json!({
        "power": { "cuts": cuts.cuts, "loses": loses, "off_ns": cuts.off.0 },
        "device_by_variant": devices,
    });
    if !cuts.faults.is_empty() {
        let order = |due: &Due<RuleOrder>| format!("{} {}", Exactly(due.at), due.order);
        configuration["power"]["faults"] = cuts.faults.iter().map(order).collect();
    }
    if let Some(settings) = &texts.settings {
        configuration["replay"] = settings.clone();
    }
    configuration
}
