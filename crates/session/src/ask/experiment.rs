// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments as questions: fio jobs and iozone command lines.

use crate::args::{Chosen, Fio, Iozone, Making};
use crate::events::{check_pressure, read_events};
use crate::failure::classify;
use crate::kinds::{self, Kind};
use crate::presets::overrides;
use crate::runs::choose;
use crate::{presets, typed};
use anyhow::Result;
use readpath_config::experiment::Experiment;
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
    let forgeries = builtin::forgeries(&experiment.name).filter(|_| chosen.is_whole());
    Ok(Experimenting::new(experiment, plans, forgeries))
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

/// The experiment of an iozone command line.
///
/// # Errors
/// When an option of the host is wrong.
pub fn of_iozone(args: &Iozone) -> Result<Experiment> {
    let target = &args.target;
    let variants = presets::hosts_of(&target.device, &args.making.set, &target.host)?;
    let experiment = typed::of_iozone(&args.args, &target.device, target.fill, variants);
    Ok(Experiment { seed: target.seed, ..experiment })
}

/// The experiment of a fio job. With `one_host` keys that are changed may take HPB from the device.
///
/// # Errors
/// When an option, the job or the file of events is wrong.
pub fn of_fio(args: &Fio, one_host: bool) -> Result<Experiment> {
    let target = &args.target;
    if let Some(job) = &args.job {
        kinds::check(job, Kind::Job)?;
    }
    let set = if one_host { &args.making.set[..] } else { &[] };
    let variants = presets::hosts_of(&target.device, set, &target.host)?;
    let mut experiment = match &args.job {
        Some(job) => typed::of_job_with(job, &args.options, &target.device, target.fill, variants)?,
        None => typed::of_fio_options(&args.options, &target.device, target.fill, variants)?,
    };
    experiment.seed = target.seed;
    experiment.events = args.events.as_deref().map(read_events).transpose()?.unwrap_or_default();
    check_pressure(&experiment.events, experiment.variants.iter().map(|v| (&*v.name, keeps_memory(v.hpb))))?;
    Ok(experiment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_config::experiment::load;
    use readpath_lab::question::{Point, Question};

    /// In full. What they do is tested with fewer requests, in `lab`.
    #[test]
    fn attacks_follow_all_runs_of_verification_alone() {
        let attacks = |name: &str, chosen: &Chosen| {
            let experiment = load(name, &crate::inputs::read_text).expect("a built-in experiment");
            let question = of(experiment, &Making::default(), chosen).expect("a question");
            let attacks = question.points().iter().filter(|point| matches!(point, Point::Attack(_)));
            attacks.map(|attack| attack.expected_ios()).collect::<Vec<_>>()
        };
        let whole = Chosen::default();
        let found = attacks("verification", &whole);
        assert_eq!(found.len(), 5 * 6 * 2);
        assert_eq!(found.iter().filter(|ios| **ios == Some(400_000)).count(), 6 * 2);
        assert_eq!(attacks("verification", &Chosen { case: Some("reads, depth 1".into()), ..whole.clone() }), []);
        assert_eq!(attacks("iozone", &whole), []);
    }
}
