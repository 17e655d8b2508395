// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device fitted to the results of the jobs of a probe.

use super::fit::{params, run_error};
use crate::args::ProbeFit;
use crate::inputs::{self, read_text};
use crate::{runs, usage};
use anyhow::{Result, anyhow};
use readpath_config::DevicePreset;
use readpath_lab::probe::{Plan, Probe, ProbeOptions, Reading, default_params, probe, read};
use readpath_lab::runs::Shared;
use readpath_results::{Document, Input};
use std::path::Path;

/// Names of the files of a plan.
pub const PLAN: &str = "plan.json";
/// The device that a plan begins with.
pub const DEVICE: &str = "device.toml";

/// Results of jobs, and the device that is to be fitted to them.
pub struct Probing {
    plan: Plan,
    /// The device to start from.
    pub preset: DevicePreset,
    readings: Vec<Reading>,
    read: Vec<Input>,
    options: ProbeOptions,
    threads: Option<u32>,
}

impl Probing {
    /// Reads the plan and the results.
    ///
    /// # Errors
    /// When an option, the plan or a result is wrong.
    pub fn read(args: &ProbeFit) -> Result<Self> {
        let file = args.plan.join(PLAN);
        let (name, device) = (file.to_string_lossy(), args.plan.join(DEVICE));
        let plan = Plan::from_json(&inputs::text(&file)?, &name).map_err(usage)?;
        let preset = readpath_config::device::load(&device.to_string_lossy(), &read_text).map_err(usage)?;
        plan.check(&preset, &name).map_err(usage)?;
        let (readings, read) = readings(args, &plan)?;
        let params = if args.params.is_empty() { default_params(&preset, &plan) } else { params(&args.params)? };
        let options = ProbeOptions { params, ios: args.ios, advice: true };
        Ok(Probing { plan, preset, readings, read, options, threads: args.threads })
    }

    /// Fits the device.
    ///
    /// # Errors
    /// When a run fails.
    pub fn probe(&self, shared: &Shared) -> Result<Probe> {
        let Probing { plan, preset, readings, options, .. } = self;
        runs::on_threads(self.threads, || probe(plan, preset, readings, options, shared))?.map_err(run_error)
    }

    /// The document of what was found.
    ///
    /// # Errors
    /// When a figure is not finite.
    pub fn document(&self, probe: &Probe) -> Result<Document> {
        let mut doc = probe.document()?;
        doc.read_from(&self.read);
        Ok(doc)
    }
}

/// Reads all results. A job that is in two files is refused: it was run twice.
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
            return Err(usage(anyhow!("{name}: has the job {job:?}, which another file has too; give one of them")));
        }
        all.extend(readings);
        read_from.push(Input::of_text(name, &text));
    }
    if all.iter().all(|r| plan.jobs[r.job].held_out) {
        return Err(usage(anyhow!(
            "{}: all jobs with results are held out (held_out in the plan), so there is nothing to fit",
            shown(&args.results)
        )));
    }
    Ok((all, read_from))
}

fn shown(paths: &[impl AsRef<Path>]) -> String {
    paths.iter().map(|path| inputs::name(path.as_ref())).collect::<Vec<_>>().join(", ")
}
