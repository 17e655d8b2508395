// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments and fio jobs: planned, run, and shown as a result document.

use crate::given::{Choice, Host, Source};
use anyhow::Result;
use pyo3::IntoPyObject;
use readpath_config::ReadFile;
use readpath_config::experiment::{self, Experiment};
use readpath_lab::attack::{AttackError, add_rows};
use readpath_lab::experiment::{CaseRun, Shared, plan, run_all};
use readpath_lab::{beforehand, document};
use readpath_report::html;
use readpath_results::{Document, Process};
use readpath_session::failure::{Interrupted, classify};
use readpath_session::inputs::read_text;
use readpath_session::process::process;
use readpath_session::{presets, runs, typed};
use std::io;
use std::path::Path;

/// A result document.
#[derive(IntoPyObject)]
pub struct Shown {
    /// As JSON.
    pub json: String,
    /// What is missing of it, in a sentence.
    pub missing: Option<String>,
}

/// The rows of a result document as a table.
pub fn csv(document: &str) -> Result<String> {
    Ok(Document::from_json(document)?.to_csv()?)
}

/// The page of a result document.
pub fn page(document: &str) -> Result<String> {
    Ok(html::page(&Document::from_json(document)?)?)
}

/// What the process used since `before`, and the most memory that it ever had.
pub fn since(before: &Process) -> Process {
    let now = process();
    Process { cpu_seconds: now.cpu_seconds - before.cpu_seconds, ..now }
}

/// Runs an experiment.
pub fn experiment(source: &Source, choice: &Choice, shared: &Shared) -> Result<Shown> {
    let experiment = match source.text.is_some() || source.is_path {
        true => experiment::parse(&source.read()?, &source.name)?,
        false => experiment::load(&source.name, &read_text)?,
    };
    shown(&experiment, choice, &read_text, shared)
}

/// Runs a fio job.
pub fn job(source: &Source, device: &str, host: &Host, choice: &Choice, shared: &Shared) -> Result<Shown> {
    let job = Path::new(&source.name);
    let mut experiment = typed::of_job(job, device, host.fill()?, host.variants(&[])?);
    experiment.seed = host.seed;
    let read = |path: &Path| -> io::Result<String> {
        match &source.text {
            Some(text) if path == job => Ok(text.clone()),
            _ => read_text(path),
        }
    };
    shown(&experiment, choice, &read, shared)
}

fn shown(experiment: &Experiment, choice: &Choice, read: ReadFile, shared: &Shared) -> Result<Shown> {
    let before = process();
    let mut plans = plan(experiment, &presets::overrides(&choice.set)?, read).map_err(classify)?;
    runs::choose(&mut plans, |plan| &plan.case, "--case", choice.case.as_deref())?;
    runs::choose(&mut plans, |plan| &plan.variant, "--variant", choice.variant.as_deref())?;
    beforehand::plans(&plans).map_err(classify)?;
    let pool = runs::pool(choice.threads, plans.len())?;
    let made = pool.install(|| run_all(plans, shared)).map_err(classify)?;
    let mut doc = document::document(experiment, &made)?;
    if choice.case.is_none() && choice.variant.is_none() {
        pool.install(|| attacks(&mut doc, experiment, &made, shared))?;
    }
    doc.process = since(&before);
    let missing = runs::complete(made.iter().filter_map(CaseRun::incomplete), made.len()).err();
    Ok(Shown { json: doc.to_json_pretty()?, missing: missing.map(|e| e.to_string()) })
}

/// Adds the attacks of the experiment on the verification of entries, which no experiment file can describe.
fn attacks(doc: &mut Document, experiment: &Experiment, runs: &[CaseRun], shared: &Shared) -> Result<()> {
    let Some(first) = runs.first().filter(|_| experiment.name == "verification") else { return Ok(()) };
    match add_rows(doc, &first.plan.setup.preset.device, experiment.seed, shared) {
        Err(AttackError::Interrupted) => Err(Interrupted.into()),
        other => Ok(other?),
    }
}
