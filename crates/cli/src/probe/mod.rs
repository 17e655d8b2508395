// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath device probe`: writes the jobs of a plan, reads what fio measured, and shows what that says of the device.
//! It runs no job itself, and knows nothing of how fits are made.

mod plan;
mod tables;

use crate::args::{ProbeCommand, ProbeFit};
use crate::fit::{Heading, params, run_error, write_device};
use crate::inputs::{self, read_text};
use crate::{output, usage};
use anyhow::Result;
use readpath_lab::probe::{Plan, Probe, ProbeOptions, Reading, default_params, probe, read};
use readpath_lab::runs::Shared;
use readpath_results::Input;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Names of the files of a plan.
const PLAN: &str = "plan.json";
const DEVICE: &str = "device.toml";
const SCRIPT: &str = "run.sh";
/// The fitted device, and the folder of the jobs to run next.
const FITTED: &str = "fitted.toml";
const NEXT: &str = "next";

pub fn main(command: &ProbeCommand) -> Result<()> {
    match command {
        ProbeCommand::Plan(args) => plan::main(args),
        ProbeCommand::Fit(args) => fit(args),
    }
}

fn fit(args: &ProbeFit) -> Result<()> {
    let file = args.plan.join(PLAN);
    let (name, device) = (file.to_string_lossy(), args.plan.join(DEVICE));
    let plan = Plan::from_json(&inputs::text(&file)?, &name).map_err(usage)?;
    let preset = readpath_config::device::load(&device.to_string_lossy(), &read_text).map_err(usage)?;
    plan.check(&preset, &name).map_err(usage)?;
    let (readings, read) = readings(args, &plan)?;
    let params = if args.params.is_empty() { default_params(&preset, &plan) } else { params(&args.params)? };
    let folder = match &args.out {
        Some(out) => {
            plan::check_new(&out.join(NEXT))?;
            Some(output::Folder::create(out)?.apart_from(&args.results)?)
        }
        None => None,
    };

    let shared = Arc::new(Shared::default());
    let progress = output::Progress::start(shared.clone(), None);
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(n) = args.threads {
        pool = pool.num_threads(usize::from(n));
    }
    let options = ProbeOptions { params, ios: args.ios, advice: true };
    let result = pool.build()?.install(|| probe(&plan, &preset, &readings, &options, &shared));
    drop(progress);
    let probe = result.map_err(run_error)?;

    let mut doc = probe.document()?;
    doc.read_from(&read);
    doc.process = output::process();
    if let (Some(folder), Some(out)) = (folder, &args.out) {
        folder.write(&doc)?;
        write_device(&out.join(FITTED), &probe.fit, &heading(&probe, args))?;
        if let Some(next) = &probe.next {
            plan::write(&out.join(NEXT), next, probe.plan.jobs.len(), &preset)?;
        }
    }
    let mut text = output::printed(&doc, args.json, args.out.as_deref(), || tables::of(&probe))?;
    if let (Some(out), false) = (&args.out, args.json) {
        text.push_str(&format!("Fitted device: {}\n", out.join(FITTED).display()));
        if probe.next.is_some() {
            text.push_str(&format!("Jobs to run next: {}\n", out.join(NEXT).join(SCRIPT).display()));
        }
    }
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

/// What is told in the file of the fitted device.
fn heading(probe: &Probe, args: &ProbeFit) -> Heading {
    let known = probe.known.iter().filter(|k| k.high.is_finite());
    let line = |k: &readpath_lab::probe::Known| {
        format!("{}: {}, {} ({})", k.param.key(), k.param.show(k.fitted), k.verdict.as_str(), k.interval())
    };
    let sources: Vec<_> = args.results.iter().map(|path| inputs::name(path)).collect();
    Heading { program: "device probe", source: sources.join(", "), lines: known.map(line).collect() }
}

/// Reads all results; a job that is in two files was run twice, and nobody can say which of them counts.
fn readings(args: &ProbeFit, plan: &Plan) -> Result<(Vec<Reading>, Vec<Input>)> {
    inputs::only_one_stdin(&args.results)?;
    let mut all: Vec<Reading> = Vec::new();
    let mut read_from = Vec::new();
    for path in &args.results {
        let name = inputs::name(path);
        let text = inputs::document(path)?;
        let readings = read(&text, &name, plan).map_err(usage)?;
        if let Some(twice) = readings.iter().find(|r| all.iter().any(|other| other.job == r.job)) {
            let job = &plan.jobs[twice.job].name;
            return Err(usage(anyhow::anyhow!(
                "{name}: has the job {job:?}, which another file has too; give one of them"
            )));
        }
        all.extend(readings);
        read_from.push(Input::of_text(name, &text));
    }
    if all.iter().all(|r| plan.jobs[r.job].held_out) {
        return Err(usage(anyhow::anyhow!(
            "{}: all jobs with results are held out (held_out in the plan), so there is nothing to fit",
            shown(&args.results)
        )));
    }
    Ok((all, read_from))
}

fn shown(paths: &[impl AsRef<Path>]) -> String {
    paths.iter().map(|path| inputs::name(path.as_ref())).collect::<Vec<_>>().join(", ")
}
