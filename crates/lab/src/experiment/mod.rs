// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment is cases times variants: this module plans its runs and makes their document. Every run is
//! deterministic by itself, so neither order nor number of threads matters.

mod charts;
mod claims;
mod planning;
mod rows;

pub use planning::{ReadFile, plan, plan_case};

use crate::attack::{self, Attempt, Tally};
use crate::figures::WRITES;
use crate::fio_json::fio_json;
use crate::fragment::{self, Fragment};
use crate::life::{self, Life};
use crate::little_gain::{self, Seen};
use crate::over_time::{self, Timed};
use crate::question::{Answer, AskError, Done, Point, Question, Shown};
use crate::runs::{CaseRun, Plan};
use crate::verdict::{self, Measured, Memory, Outcome};
use crate::{map_rows, means, spans, unused_hpb};
use readpath_config::experiment::{Experiment, Origin as Published, Published as PublishedRow};
use readpath_kit::Ns;
use readpath_results::{Case, Chart, ChartKind, Document, Error, Metric, Note, NoteKind, Origin, Row, SeriesStyle};
use readpath_run::PhaseOutput;
use readpath_workload::Phase;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// All figures of a run by itself, and which part of its case each is about.
pub fn run_figures(run: CaseRun) -> Vec<(Case, Metric, f64)> {
    rows::figures(run, map_rows::matter([run.plan]))
}

/// What rows of a case are called that are about a group of its jobs, or about all.
fn part(case: &str, group: Option<&str>) -> Case {
    let case = Case::from(case);
    group.map_or(case.clone(), |group| case.jobs(group))
}

/// What is kept of a run of `experiment`. With `says_where_the_map_is` it has rows of the places of the map.
///
/// # Errors
/// A figure that is not finite.
pub fn fragment(experiment: &Experiment, run: CaseRun, says_where_the_map_is: bool) -> Result<Fragment, Error> {
    let CaseRun { plan, output } = run;
    let mut doc = Document::new("", "");
    doc.read_from(&plan.inputs);
    doc.simulated_ios = output.ios;
    plan.workload.notes.iter().for_each(|note| doc.note(Note::remark(note)));
    for (case, metric, value) in rows::figures(run, says_where_the_map_is) {
        let is_of = |p: &&PublishedRow| {
            case == part(&p.case, p.group.as_deref())
                && p.variant == plan.variant
                && p.metric == metric.name()
                && p.unit == metric.unit()
        };
        let published = experiment.published.iter().find(is_of);
        let origin = match published.map(|p| p.origin) {
            Some(Published::Fit) => Origin::Fit,
            _ => Origin::Predicted,
        };
        let row = doc.row(&case, &plan.variant, metric, value, origin)?;
        if let Some(p) = published {
            row.published(p.value)?.reason.clone_from(&p.reason);
        }
    }
    unused_hpb::note_of(&mut doc, plan);
    spans::rows(&mut doc, &plan.case, &plan.variant, &plan.setup.events, &output.spans)?;
    let Plan { case, variant, setup, .. } = plan;
    let seen = Seen { case, variant, preset: &setup.preset, host: &setup.host, phases: output.phases.iter().collect() };
    let outcome = |case: &str, phases: &[&PhaseOutput], measured: Measured| {
        let memory = Memory {
            host: map_rows::peak_host_bytes(phases.iter().copied(), &setup.preset) as f64,
            sram: fragment::map_sram(&output.sram) as f64,
        };
        Outcome::new((case, variant), phases, output.over_time.as_ref(), measured, memory)
    };
    let of_phase = |(phase, made): (&Phase, &PhaseOutput)| {
        let ramp = phase.jobs.iter().map(|job| job.ramp).max().unwrap_or_default();
        Measured { from: made.stats.start + ramp, to: made.stats.end }
    };
    let mut phases = Vec::new();
    let measured = match (&plan.workload.phases[..], &output.phases[..]) {
        ([phase], [made]) => Measured { to: Ns::NEVER, ..of_phase((phase, made)) },
        (planned, made) => {
            for (number, both) in planned.iter().zip(made).enumerate() {
                let (case, work) = rows::phase(run, number);
                phases.push(outcome(&case, &[both.1], of_phase(both)).of_phase(&work));
            }
            Measured::ALL
        }
    };
    let outcome = outcome(case, &seen.phases, measured);
    let life = Life::of(variant, &seen.phases, &setup.preset.device, output.over_time.as_ref());
    Ok(Fragment {
        document: doc,
        latency: rows::distributions(run),
        over_time: output.over_time.clone(),
        gain: seen.gain(),
        outcome,
        life,
        phases,
        sram: fragment::sram(&output.sram),
        programs: output.phases.iter().any(|phase| phase.device.programs > 0),
        incomplete: run.incomplete(),
    })
}

/// The document of the runs of `plans`, without what depends on the machine.
///
/// # Errors
/// A figure that is not finite.
pub fn document(experiment: &Experiment, plans: &[Plan], runs: &[&Fragment]) -> Result<Document, Error> {
    let mut doc = Document::new(&experiment.name, &experiment.title);
    doc.description = experiment.description.clone();
    doc.citations = experiment.citations.clone();
    doc.seed = experiment.seed;
    doc.configuration = configuration(experiment, plans, runs);
    // Before all other notes.
    let incomplete = runs.iter().filter_map(|run| run.incomplete.as_ref());
    doc.notes.extend(incomplete.map(|what| Note::new(NoteKind::Incomplete, what)));
    fragment::join(&mut doc, runs.iter().copied());
    little_gain::notes(&mut doc, &runs.iter().map(|run| &run.gain).collect::<Vec<_>>());
    if runs.iter().any(|run| run.programs) {
        doc.remark(WRITES);
    }
    doc.verdict = match verdict::of_published(&doc) {
        Some(agreement) => vec![agreement],
        None => verdict::of_runs(fragment::judged(runs)),
    };
    life::judge(&mut doc, runs.iter().filter_map(|run| run.life.as_ref()));
    claims::check(&mut doc, experiment, plans)?;
    claims::note_published_without_row(&mut doc, experiment, plans);
    if charts::begin_with_means(&doc, experiment) {
        let of_jobs = |row: &&Row| row.case.is_whole() || row.case.jobs_name().is_some();
        let outcomes: Vec<&Outcome> = runs.iter().flat_map(|run| run.phases.iter().chain([&run.outcome])).collect();
        doc.charts = means::latencies(&doc.rows.iter().filter(of_jobs).collect::<Vec<_>>(), &outcomes)?;
    }
    doc.charts.extend(charts::of_rows(&doc, experiment)?);
    if let Some(last) = experiment.workload.cases().last() {
        let of_last = || plans.iter().zip(runs).filter(|(plan, _)| plan.case == *last);
        doc.charts.extend(latency_charts(of_last().map(|(plan, run)| (&*plan.variant, &*run.latency)))?);
        let timed: Vec<Timed> = of_last().filter_map(|(plan, run)| timed(plan, run)).collect();
        doc.charts.extend(over_time::charts(last, &timed, false)?);
    }
    Ok(doc)
}

/// A run over time, if that was kept.
pub(crate) fn timed<'a>(plan: &'a Plan, run: &'a Fragment) -> Option<Timed<'a>> {
    let (preset, series) = (&plan.setup.preset, run.over_time.as_ref()?);
    Some(Timed { variant: &plan.variant, preset, series, is_paced: false })
}

fn configuration(experiment: &Experiment, plans: &[Plan], runs: &[&Fragment]) -> Value {
    let mut devices = serde_json::Map::new();
    for plan in plans {
        let echo = serde_json::to_value(plan.setup.preset.echo()).unwrap_or(Value::Null);
        devices.entry(plan.variant.clone()).or_insert(echo);
    }
    json!({
        "experiment": serde_json::to_value(experiment).unwrap_or(Value::Null),
        "device_by_variant": devices,
        "device_sram_bytes": runs.first().map(|run| run.sram.clone()).unwrap_or_default(),
    })
}

/// Distributions of read latency, a chart for each group of jobs, and in it a line for each variant.
fn latency_charts<'a>(
    variants: impl Iterator<Item = (&'a str, &'a [(String, Vec<(f64, f64)>)])>,
) -> Result<Vec<Chart>, Error> {
    let mut charts: Vec<(&str, Chart)> = Vec::new();
    for (variant, (case, points)) in variants.flat_map(|(variant, all)| all.iter().map(move |one| (variant, one))) {
        let at = charts.iter().position(|(known, _)| known == case).unwrap_or(charts.len());
        if at == charts.len() {
            let id = if at == 0 { "latency".to_owned() } else { format!("latency_{}", at + 1) };
            let chart = Chart::new(id, format!("Read latency, {case}"), ChartKind::Step)
                .axes("read latency, us", "% of reads")
                .x_log()
                .caption("Share of reads that took no longer, from submission to completion at the host.");
            charts.push((case, chart));
        }
        charts[at].1.series(variant, SeriesStyle::Plain, points.clone())?;
    }
    Ok(charts.into_iter().map(|(_, chart)| chart).collect())
}

/// An experiment as a question: its runs, and the attacks that belong to it.
#[derive(Clone, Debug)]
pub struct Experimenting {
    /// The experiment.
    pub experiment: Experiment,
    plans: Vec<Plan>,
    points: Vec<Point>,
    says_where_the_map_is: bool,
    /// The results are wanted in the shape of fio's JSON too, with histograms or without.
    fio_json: Option<bool>,
}

/// Figures of a point of an experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Figures {
    /// Figures of a run, and its results as fio's JSON, if asked for.
    Run(Box<Fragment>, Option<String>),
    /// Counts of an attack.
    Attack(Box<Tally>),
}

impl Experimenting {
    /// The question of an experiment whose runs are `plans`, followed by attacks on a device with the times of the
    /// first, if any: with so many forged entries each.
    pub fn new(experiment: Experiment, plans: Vec<Plan>, forgeries: Option<u64>) -> Self {
        let attempts = match (plans.first(), forgeries) {
            (Some(first), Some(forgeries)) => Attempt::all(&first.setup.preset.device, forgeries, experiment.seed),
            _ => Vec::new(),
        };
        let says_where_the_map_is = map_rows::matter(&plans);
        let runs = plans.iter().map(|plan| Point::Workload(Box::new(plan.clone())));
        let points = runs.chain(attempts.into_iter().map(Point::Attack)).collect();
        Experimenting { experiment, plans, points, says_where_the_map_is, fio_json: None }
    }

    /// The same, with the results of its only run in the shape of fio's JSON too, and `bins` of latencies.
    #[must_use]
    pub fn with_fio_json(self, bins: bool) -> Self {
        Experimenting { fio_json: Some(bins), ..self }
    }
}

impl Question for Experimenting {
    type Figures = Figures;

    fn title(&self) -> String {
        self.experiment.title.clone()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn figures(&self, shown: Shown<'_>) -> Result<Figures, Error> {
        match shown {
            Shown::Workload(plan, output) => {
                let run = CaseRun { plan, output: &output };
                let text = self.fio_json.map(|bins| fio_json(&plan.workload, &output.phase_stats(), bins));
                Ok(Figures::Run(Box::new(fragment(&self.experiment, run, self.says_where_the_map_is)?), text))
            }
            Shown::Attack(tally) => Ok(Figures::Attack(tally)),
            _ => unreachable!("an experiment has runs of workloads and attacks"),
        }
    }

    fn answer(&self, done: &[Done<Figures>]) -> Result<Answer, AskError> {
        let (mut runs, mut tallies, mut text) = (Vec::new(), Vec::new(), None);
        for one in done.iter().flatten() {
            match one {
                Figures::Run(run, json) => {
                    runs.push(&**run);
                    text.clone_from(json);
                }
                Figures::Attack(tally) => tallies.push(&**tally),
            }
        }
        let mut answer = Answer::new(document(&self.experiment, &self.plans, &runs)?, runs.len());
        answer.missing = runs.iter().filter_map(|run| run.incomplete.clone()).collect();
        answer.text = text;
        if !tallies.is_empty() {
            let attempts = self.points.iter().filter_map(|p| if let Point::Attack(one) = p { Some(one) } else { None });
            let attacks = attack::document(attempts, &tallies)?;
            answer.parts.push(answer.document.clone());
            answer.document.rows.extend_from_slice(&attacks.rows);
            answer.document.notes.extend_from_slice(&attacks.notes);
            answer.document.simulated_ios += attacks.simulated_ios;
            answer.parts.push(attacks);
        }
        Ok(answer)
    }
}
