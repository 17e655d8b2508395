// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variants compared under one workload: a fio job, an experiment or a trace.

use super::Ready;
use crate::args::{Compare, Fill, TraceHow};
use crate::inputs::{self, read_text};
use crate::presets::{hosts_of, overrides, preset};
use crate::runs::{choose, mark};
use crate::{cases, kinds, typed, usage};
use anyhow::{Result, anyhow};
use readpath_config::experiment::{Experiment, Layout, Variant};
use readpath_lab::compare::{Basis, Comparison, Seeds, replay_variants};
use readpath_lab::replay::ReplayOptions;
use readpath_lab::runs::Shared;
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

/// The default number of seeds.
const SEEDS: u32 = 5;
/// The default device of jobs and traces.
const DEVICE: &str = "ufs21-64g";

enum Kind {
    Job,
    Experiment(Box<Experiment>),
    Trace,
}

/// The question of a comparison.
///
/// # Errors
/// When an option or the workload is wrong.
pub fn question(args: &Compare, ready: Ready) -> Result<Comparison> {
    match kind(args)? {
        Kind::Trace => of_trace(args, ready),
        Kind::Job => of_plans(args, None),
        Kind::Experiment(experiment) => of_plans(args, Some(*experiment)),
    }
}

fn kind(args: &Compare) -> Result<Kind> {
    let name = args.workload.to_string_lossy();
    let extension = args.workload.extension().unwrap_or_default();
    let builtin = readpath_config::experiments().iter().any(|e| e.name == name) && !args.workload.exists();
    Ok(match () {
        () if kinds::is_job_file(&args.workload) => Kind::Job,
        () if builtin => Kind::Experiment(readpath_config::experiment::load(&name, &read_text).map_err(usage)?.into()),
        () if extension == "toml" => {
            kinds::check(&args.workload, kinds::Kind::Experiment)?;
            let text = args.making.text(&args.workload)?;
            Kind::Experiment(readpath_config::experiment::parse(&text, &name).map_err(usage)?.into())
        }
        () => Kind::Trace,
    })
}

/// The variants of a job or a trace.
fn variants(args: &Compare) -> Result<Vec<Variant>> {
    let device = args.device.as_deref().unwrap_or(DEVICE);
    let variants = hosts_of(device, &[], &args.host)?;
    match variants.len() {
        1 if args.host.is_empty() => Err(usage(anyhow!(
            "the device '{device}' has no HPB, so there is one host and nothing to compare; --vary KEY=VALUE,VALUE \
             gives what differs, for example --vary host.max_host_mem_mib=0,32"
        ))),
        _ => Ok(variants),
    }
}

fn seeds(args: &Compare, first: u64, count: u32) -> Result<Seeds> {
    let first = args.seed.unwrap_or(first);
    let count = args.seeds.unwrap_or(count);
    Seeds::new(first, count).ok_or_else(|| usage(anyhow!("--seed: {count} seeds from {first} on go beyond 64 bits")))
}

fn base(args: &Compare, variants: &[Variant]) -> Result<String> {
    let mut list: Vec<String> = variants.iter().map(|variant| variant.name.clone()).collect();
    choose(&mut list, |name| name, "--base", args.base.as_deref())?;
    Ok(list.swap_remove(0))
}

fn of_plans(args: &Compare, experiment: Option<Experiment>) -> Result<Comparison> {
    let what = if experiment.is_some() { "an experiment" } else { "a fio job" };
    let before = (!args.precondition.is_empty()).then_some("--precondition");
    if let Some(option) = before.or(args.how.given()) {
        let name = args.workload.display();
        return Err(usage(anyhow!("{option} is for traces, but {name} is {what}")));
    }
    if experiment.is_none() {
        kinds::check(&args.workload, kinds::Kind::Job)?;
    }
    let experiment = match experiment {
        Some(experiment) => of_file(args, experiment)?,
        None => typed::of_job(
            &args.workload,
            args.device.as_deref().unwrap_or(DEVICE),
            args.fill.unwrap_or(Fill::Sequential),
            variants(args)?,
        ),
    };
    let seeds = seeds(args, experiment.seed, SEEDS)?;
    let variants = experiment.variants.clone();
    let base = base(args, &variants)?;
    choose(&mut experiment.workload.runs(), |case| case, "--case", args.case.as_deref())?;
    let basis = Basis::Experiment {
        experiment: Arc::new(experiment),
        set: overrides(&args.making.set)?,
        case: args.case.clone(),
        read: args.making.reader(),
    };
    Comparison::new(basis, &variants, &base, seeds).map_err(mark)
}

/// An experiment as its file has it, but for the variants if others were typed.
fn of_file(args: &Compare, mut experiment: Experiment) -> Result<Experiment> {
    for (given, option) in [(args.device.is_some(), "--device"), (args.fill.is_some(), "--fill")] {
        if given {
            let name = &experiment.name;
            return Err(usage(anyhow!("{option} is not for experiments: '{name}' says in its file what it runs on")));
        }
    }
    if !args.host.is_empty() {
        experiment.variants = args.host.variants()?;
        // What has been published belongs to the variants of the file.
        experiment.published.clear();
    }
    // Runs are reduced to their figures one by one, where a claim speaks of two. The differences are what is shown
    // here.
    experiment.claims.clear();
    Ok(experiment)
}

fn of_trace(args: &Compare, ready: Ready) -> Result<Comparison> {
    if args.case.is_some() {
        return Err(usage(anyhow!("--case is for experiments; a trace is one case")));
    }
    let layout = layout(args.fill.unwrap_or(Fill::Sequential))?;
    let seeds = seeds(args, 1, if layout == Layout::Random { SEEDS } else { 1 })?;
    let device = args.device.as_deref().unwrap_or(DEVICE);
    let variants = variants(args)?;
    let base = base(args, &variants)?;
    let read = TraceBasis {
        how: &args.how,
        before: &args.precondition,
        file: &args.workload,
        device,
        set: &args.making.set,
        layout,
    };
    read.check(&variants)?;
    let shared = ready(Vec::new())?;
    Comparison::new(read.basis(&shared)?, &variants, &base, seeds).map_err(mark)
}

/// Physical order of the blocks that a trace reads before it writes them.
pub(super) fn layout(fill: Fill) -> Result<Layout> {
    fill.layout().ok_or_else(|| {
        let message = "what a trace reads before it writes it was there, so sequential or random is needed";
        usage(anyhow!("--fill none is for jobs: {message}"))
    })
}

/// A trace under which variants are compared.
pub(super) struct TraceBasis<'a> {
    /// How it is read and replayed.
    pub how: &'a TraceHow,
    /// Traces that are replayed before it.
    pub before: &'a [PathBuf],
    /// Its file.
    pub file: &'a PathBuf,
    /// The device.
    pub device: &'a str,
    /// Keys of the device that are changed.
    pub set: &'a [String],
    /// Physical order of the blocks that it reads before it writes them.
    pub layout: Layout,
}

impl TraceBasis<'_> {
    /// Checks all options before a file is read.
    pub(super) fn check(&self, variants: &[Variant]) -> Result<()> {
        cases::mode(self.how)?;
        cases::prepare(self.how, 1)?;
        inputs::only_one_stdin([self.file].into_iter().chain(self.before))?;
        let name = cases::names(slice::from_ref(self.file))?.remove(0);
        let preset = preset(self.device, self.set)?;
        replay_variants(&name, variants, &preset, !self.how.units.is_empty()).map(drop).map_err(mark)
    }

    /// Reads the trace.
    pub(super) fn basis(&self, shared: &Shared) -> Result<Basis> {
        let files = slice::from_ref(self.file);
        let preset = preset(self.device, self.set)?;
        let cases = cases::cases(self.how, self.before, files, &cases::names(files)?, &preset.seen_units(), shared)?;
        let texts = cases::texts(self.how, (self.before, files), self.device, self.layout, &cases);
        let case = cases.into_iter().next().expect("a file is a case");
        let (mode, layout) = (cases::mode(self.how)?, self.layout);
        let options = ReplayOptions { mode, layout, seed: 0, encoded: false, over_time: true };
        Ok(Basis::Trace { case: Arc::new(case), preset: Box::new(preset), options, texts: Box::new(texts) })
    }
}
