// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments as questions: built-in ones, files, fio jobs and iozone command lines.

use crate::args::{Chosen, Fio, Iozone, Making, RunFile};
use crate::events::{check_pressure, read_events};
use crate::failure::classify;
use crate::presets::overrides;
use crate::runs::choose;
use crate::{presets, typed, usage};
use anyhow::Result;
use readpath_config::experiment::{Experiment, parse};
use readpath_config::keeps_memory;
use readpath_lab::experiment::{Experimenting, plan};
use readpath_lab::runs::Plan;
use readpath_lab::{beforehand, builtin};

/// The question of an experiment.
///
/// # Errors
/// When a case or variant has no such name, or a run is not possible.
pub fn of(experiment: Experiment, making: &Making, chosen: &Chosen) -> Result<Experimenting> {
    let plans = plans(&experiment, making, chosen)?;
    let has_attacks = chosen.is_whole() && builtin::has_attacks(&experiment.name);
    Ok(Experimenting::new(experiment, plans, has_attacks))
}

/// The chosen runs of an experiment, checked as far as that is possible without running them.
///
/// # Errors
/// As [`of`].
pub fn plans(experiment: &Experiment, making: &Making, chosen: &Chosen) -> Result<Vec<Plan>> {
    let read = |path: &std::path::Path| making.read(path);
    let mut plans = plan(experiment, &overrides(&making.set)?, &read).map_err(classify)?;
    choose(&mut plans, |p| &p.case, "--case", chosen.case.as_deref())?;
    choose(&mut plans, |p| &p.variant, "--variant", chosen.variant.as_deref())?;
    plans.iter_mut().for_each(|p| p.setup.encoded = chosen.wire);
    beforehand::plans(&plans).map_err(classify)?;
    Ok(plans)
}

/// The experiment of a file.
///
/// # Errors
/// When it cannot be read, or is not an experiment.
pub fn of_file(args: &RunFile) -> Result<Experiment> {
    parse(&args.making.text(&args.file)?, &args.file.to_string_lossy()).map_err(usage)
}

/// The experiment of an iozone command line.
///
/// # Errors
/// When an option of the host is wrong.
pub fn of_iozone(args: &Iozone) -> Result<Experiment> {
    let target = &args.target;
    let variants = typed::variants(&target.host)?;
    let experiment = typed::of_iozone(&args.args, &target.device, target.precondition, variants);
    Ok(Experiment { seed: target.seed, ..experiment })
}

/// The experiment of a fio job. With `one_host` a device without HPB has one variant, unless the options choose some.
///
/// # Errors
/// When an option, the job or the file of events is wrong.
pub fn of_fio(args: &Fio, one_host: bool) -> Result<Experiment> {
    let target = &args.target;
    let mut variants = typed::variants(&target.host)?;
    if one_host && target.host.hpb.is_none() && target.host.policy.is_empty() {
        // On a device without HPB all hosts are equal.
        let device = presets::preset(&target.device, &args.making.set)?.device;
        variants.retain(|variant| variant.hpb.is_none() || device.lus.iter().any(|unit| unit.hpb));
    }
    let mut experiment = match &args.job {
        Some(job) => typed::of_job(job, &target.device, target.precondition, variants),
        None => typed::of_fio_options(&args.options, &target.device, target.precondition, variants)?,
    };
    experiment.seed = target.seed;
    experiment.events = args.events.as_deref().map(read_events).transpose()?.unwrap_or_default();
    check_pressure(&experiment.events, experiment.variants.iter().map(|v| (&*v.name, keeps_memory(v.hpb))))?;
    Ok(experiment)
}
