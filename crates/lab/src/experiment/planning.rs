// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an experiment to the plans of its runs.

use crate::over_time::MOST_KEPT;
use crate::runs::{ExperimentError, Plan};
use readpath_config::experiment::{Experiment, Fio, Iozone, Variant, Workload as Source};
use readpath_config::{DevicePreset, LaunchKeys, Override};
use readpath_kit::Ns;
use readpath_results::Input;
use readpath_run::Setup;
use readpath_workload::launch::{LaunchError, LaunchSpec, Launches};
use readpath_workload::{Workload, fio, iozone};
use std::cell::RefCell;
use std::path::Path;

/// How files are read, and variables of the environment by the name `${NAME}`.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> std::io::Result<String>;

/// All runs of an experiment, case by case. `overrides` change the device of every variant.
pub fn plan(experiment: &Experiment, overrides: &[Override], read: ReadFile) -> Result<Vec<Plan>, ExperimentError> {
    let base = experiment.load_device(read)?.with_overrides(overrides)?;
    let devices = experiment.variant_devices(&base)?;
    let mut plans = Vec::new();
    for case in experiment.workload.runs() {
        for (variant, preset) in experiment.variants.iter().zip(&devices) {
            plans.push(plan_case(experiment, case, variant, preset, &[], read)?);
        }
    }
    // The last case is kept over time, unless it has too many variants.
    if let Some(last) = plans.last().map(|plan| plan.case.clone())
        && experiment.variants.len() <= MOST_KEPT
    {
        plans.iter_mut().filter(|plan| plan.case == last).for_each(|plan| plan.setup.over_time = true);
    }
    Ok(plans)
}

/// The run of one case on the device of one variant. Every job of a fio job file gets `options`.
pub fn plan_case(
    experiment: &Experiment,
    case: &str,
    variant: &Variant,
    preset: &DevicePreset,
    options: &[(String, String)],
    read: ReadFile,
) -> Result<Plan, ExperimentError> {
    let inputs = RefCell::new(Vec::new());
    let zones = readpath_run::zoned_units(preset);
    let unit_blocks: Vec<u32> = preset.seen_units().iter().map(|lu| lu.blocks).collect();
    let kept = |path: &Path| {
        let text = read(path)?;
        inputs.borrow_mut().push(Input::of_text(path.to_string_lossy(), &text));
        Ok(text)
    };
    let context =
        fio::Context { unit_blocks: &unit_blocks, zones: &zones, seed: experiment.seed, options, defaults: "" };
    let workload = workload(experiment, case, &context, &kept)?;
    let setup = Setup {
        preset: preset.clone(),
        host: variant.host(preset),
        precondition: experiment.precondition,
        seed: experiment.seed,
        encoded: false,
        events: experiment.events.clone(),
        over_time: false,
    };
    let inputs = inputs.into_inner();
    Ok(Plan { case: case.to_owned(), variant: variant.name.clone(), setup, workload, inputs })
}

fn workload(
    experiment: &Experiment,
    case: &str,
    context: &fio::Context,
    read: ReadFile,
) -> Result<Workload, ExperimentError> {
    let seed = experiment.seed;
    Ok(match &experiment.workload {
        Source::Iozone(Iozone::Args { args, .. }) => iozone::parse(args, seed)?,
        Source::Iozone(Iozone::Cases { threads, record_kib, cases }) => {
            let total = cases.iter().find(|c| c.name == case).map_or(0, |c| c.total_bytes);
            iozone::random(total, *threads, record_kib * 1024, seed)?
        }
        Source::Launches(keys) => launches(keys, seed)?.workload(&experiment.name),
        Source::Fio(Fio::File { job, defaults, .. }) => {
            fio::parse_file(&experiment.resolve(job), read, &fio::Context { defaults, ..*context })?
        }
        Source::Fio(Fio::Text { text, .. }) => {
            // Lines are counted from the start of the text, so the name says so.
            let name = match &*experiment.file {
                "" => fio::TYPED.to_owned(),
                file => format!("{file}: workload.text"),
            };
            fio::parse(&name, text, read, context)?
        }
        Source::Fio(Fio::Cases { text, cases }) => {
            let text = cases.iter().find(|c| c.name == case).map_or_else(String::new, |c| c.text(text));
            fio::parse(&format!("{}: workload.text, case {case}", experiment.file), &text, read, context)?
        }
    })
}

fn launches(keys: &LaunchKeys, seed: u64) -> Result<Launches, LaunchError> {
    let blocks = |gib: f64| (gib * f64::from(1 << 18)) as u32;
    Launches::new(LaunchSpec {
        apps: keys.apps,
        games: keys.games,
        requests: keys.requests,
        game_percent: keys.game_percent,
        blocks: blocks(keys.range_gib),
        shared_blocks: blocks(keys.shared_gib),
        span_blocks: blocks(keys.span_gib),
        shared_percent: keys.shared_percent,
        repeat_percent: keys.repeat_percent,
        burst_percent: keys.burst_percent,
        write_percent: keys.write_percent,
        busy: keys.busy_seconds.iter().map(|seconds| Ns((seconds * 1e9) as u64)).collect(),
        seed,
    })
}
