// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments and fio jobs: planned, run, and shown as a result document.

use crate::given::{Choice, Host, Source};
use anyhow::Result;
use pyo3::IntoPyObject;
use readpath_config::ReadFile;
use readpath_config::experiment::{self, Experiment};
use readpath_lab::experiment::{Experimenting, plan};
use readpath_lab::question::Question;
use readpath_lab::runs::Shared;
use readpath_lab::{beforehand, builtin};
use readpath_report::html;
use readpath_results::{Document, Process};
use readpath_session::failure::classify;
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
    shown(experiment, choice, &read_text, shared)
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
    shown(experiment, choice, &read, shared)
}

fn shown(experiment: Experiment, choice: &Choice, read: ReadFile, shared: &Shared) -> Result<Shown> {
    let before = process();
    let mut plans = plan(&experiment, &presets::overrides(&choice.set)?, read).map_err(classify)?;
    runs::choose(&mut plans, |plan| &plan.case, "--case", choice.case.as_deref())?;
    runs::choose(&mut plans, |plan| &plan.variant, "--variant", choice.variant.as_deref())?;
    beforehand::plans(&plans).map_err(classify)?;
    let is_whole = choice.case.is_none() && choice.variant.is_none();
    let has_attacks = is_whole && builtin::has_attacks(&experiment.name);
    answered(&Experimenting::new(experiment, plans, has_attacks), choice, &before, shared)
}

/// The answer of a question, and what the process used for it since `before`.
pub fn answered<Q: Question>(question: &Q, choice: &Choice, before: &Process, shared: &Shared) -> Result<Shown> {
    let done = runs::side_by_side(question, choice.threads, shared)?;
    let mut answer = question.answer(&done).map_err(runs::mark)?;
    answer.document.process = since(before);
    let missing = runs::complete(&answer).err().map(|error| error.to_string());
    Ok(Shown { json: answer.document.to_json_pretty()?, missing })
}
