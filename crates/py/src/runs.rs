// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments and fio jobs: planned, run, and shown as a result document.

use crate::failure::Failure;
use crate::files::{self, read_text};
use crate::given::{Choice, Host, Source};
use pyo3::IntoPyObject;
use rayon::ThreadPoolBuilder;
use readpath_config::ReadFile;
use readpath_config::experiment::{self, Experiment, Fio, Workload};
use readpath_lab::attack::{AttackError, add_rows};
use readpath_lab::experiment::{CaseRun, Plan, Shared, plan, run_all};
use readpath_lab::{beforehand, document};
use readpath_report::html;
use readpath_results::{Document, Process};
use std::io;
use std::path::Path;

/// What was found out.
#[derive(IntoPyObject)]
pub struct Shown {
    /// The result document as JSON.
    pub json: String,
    /// What is missing of it, in a sentence.
    pub missing: Option<String>,
}

/// The rows of a result document as a table.
pub fn csv(document: &str) -> Result<String, Failure> {
    Document::from_json(document).and_then(|doc| doc.to_csv()).map_err(|e| Failure::of(&e))
}

/// The page of a result document.
pub fn page(document: &str) -> Result<String, Failure> {
    let document = Document::from_json(document).map_err(|e| Failure::of(&e))?;
    html::page(&document).map_err(|e| Failure::of(&e))
}

/// Runs an experiment.
pub fn experiment(source: &Source, choice: &Choice, shared: &Shared) -> Result<Shown, Failure> {
    let experiment = match source.text.is_some() || source.is_path {
        true => experiment::parse(&source.read()?, &source.name),
        false => experiment::load(&source.name, &read_text),
    };
    shown(&experiment.map_err(|e| Failure::of(&e))?, choice, &read_text, shared)
}

/// Runs a fio job.
pub fn job(source: &Source, device: &str, host: &Host, choice: &Choice, shared: &Shared) -> Result<Shown, Failure> {
    let job = Path::new(&source.name);
    let case = job.file_stem().map_or_else(|| "fio".into(), |stem| stem.to_string_lossy().into_owned());
    let workload = Workload::Fio(Fio::File { case, job: job.to_owned() });
    let title = format!("fio {}", source.name);
    let mut experiment = Experiment::of_user("fio_job", &title, device, host.layout()?, workload);
    experiment.variants = host.variants()?;
    experiment.seed = host.seed;
    let read = |path: &Path| -> io::Result<String> {
        match &source.text {
            Some(text) if path == job => Ok(text.clone()),
            _ => read_text(path),
        }
    };
    shown(&experiment, choice, &read, shared)
}

fn shown(experiment: &Experiment, choice: &Choice, read: ReadFile, shared: &Shared) -> Result<Shown, Failure> {
    let before = files::process();
    let mut plans = plan(experiment, &choice.overrides()?, read).map_err(|e| Failure::of_runs(&e))?;
    choose(&mut plans, |plan| &plan.case, "case", choice.case.as_deref())?;
    choose(&mut plans, |plan| &plan.variant, "variant", choice.variant.as_deref())?;
    beforehand::plans(&plans).map_err(|e| Failure::of_runs(&e))?;
    let mut pool = ThreadPoolBuilder::new();
    if let Some(threads) = choice.threads {
        // More threads than runs have nothing to do.
        pool = pool.num_threads(threads.min(plans.len()).max(1));
    }
    let pool = pool.build().map_err(|e| Failure::of(&e))?;
    let runs = pool.install(|| run_all(plans, shared)).map_err(|e| Failure::of_runs(&e))?;
    let mut doc = document::document(experiment, &runs).map_err(|e| Failure::of(&e))?;
    if choice.case.is_none() && choice.variant.is_none() {
        pool.install(|| attacks(&mut doc, experiment, &runs, shared))?;
    }
    let Process { cpu_seconds, peak_rss_bytes } = files::process();
    doc.process = Process { cpu_seconds: cpu_seconds - before.cpu_seconds, peak_rss_bytes };
    let json = doc.to_json_pretty().map_err(|e| Failure::of(&e))?;
    Ok(Shown { json, missing: missing(&runs) })
}

/// Keeps what has the name that was asked for, if one was.
fn choose(plans: &mut Vec<Plan>, name: fn(&Plan) -> &str, option: &str, wanted: Option<&str>) -> Result<(), Failure> {
    let Some(wanted) = wanted else { return Ok(()) };
    if !plans.iter().any(|plan| name(plan) == wanted) {
        let mut known: Vec<&str> = Vec::new();
        for name in plans.iter().map(name) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        return Err(Failure::Wrong(format!("{option} '{wanted}' is not one of: {}", known.join(", "))));
    }
    plans.retain(|plan| name(plan) == wanted);
    Ok(())
}

/// What no experiment file can describe of the experiment on the verification of entries: attacks.
fn attacks(doc: &mut Document, experiment: &Experiment, runs: &[CaseRun], shared: &Shared) -> Result<(), Failure> {
    let Some(first) = runs.first().filter(|_| experiment.name == "verification") else { return Ok(()) };
    let times = &first.plan.setup.preset.device;
    match add_rows(doc, times, experiment.seed, shared) {
        Ok(()) => Ok(()),
        Err(AttackError::Interrupted) => Err(Failure::Interrupted),
        Err(error) => Err(Failure::of(&error)),
    }
}

fn missing(runs: &[CaseRun]) -> Option<String> {
    let mut missing = runs.iter().filter_map(CaseRun::incomplete);
    let first = missing.next()?;
    let more = match missing.count() {
        0 => String::new(),
        n => format!("; and so in {n} more of {} runs (see the notes of the results)", runs.len()),
    };
    Some(format!("results are incomplete: {first}{more}"))
}
