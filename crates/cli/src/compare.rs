// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath compare`: finds out what kind of workload it was given, makes variants and seeds of what was typed, has
//! all of them run and shows the differences. What they mean is worked out elsewhere.

use crate::args::{Compare, Fill};
use crate::dry_run::{self, Planned};
use crate::failure::classify;
use crate::inputs::{self, read_text};
use crate::live::Live;
use crate::output::{self, Kept};
use crate::presets::{overrides, preset};
use crate::variants::Typed;
use crate::{cases, runs, typed, usage};
use anyhow::{Result, anyhow};
use readpath_config::experiment::{Experiment, Layout, Variant};
use readpath_lab::beforehand;
use readpath_lab::compare::{CompareError, CompareTexts, Seeds, Trial, document, run_plans, run_replays};
use readpath_lab::experiment::{Plan, expected_ios, plan};
use readpath_lab::replay::{ReplayCase, ReplayOptions, ReplayVariant};
use readpath_report::{TableSpec, comparison};
use readpath_results::Metric;
use readpath_results::metric::{self, Figure::*, Requests::*};
use readpath_run::LUN;
use std::sync::Arc;

/// Seeds, where nobody says how many.
const SEEDS: u32 = 5;
/// The device of jobs and traces, where nobody names one.
const DEVICE: &str = "ufs21-64g";

/// Lines of the table, where a document has them; all metrics are in the document and on the page.
static METRICS: [Metric; 28] = [
    RandomRead.of(Throughput),
    Read.of(Throughput),
    Read.of(Iops),
    RandomRead.of(LatencyMean),
    RandomRead.of(LatencyP50),
    RandomRead.of(LatencyP99),
    Read.of(LatencyMean),
    Read.of(LatencyP50),
    Read.of(LatencyP99),
    RandomWrite.of(Throughput),
    Write.of(Throughput),
    Write.of(Iops),
    RandomWrite.of(LatencyMean),
    RandomWrite.of(LatencyP50),
    RandomWrite.of(LatencyP99),
    Write.of(LatencyMean),
    Write.of(LatencyP50),
    Write.of(LatencyP99),
    Trim.of(LatencyMean),
    Flush.of(LatencyMean),
    metric::MAP_HIT_RATIO,
    metric::HPB_HIT_RATIO,
    metric::MAP_LOADS,
    metric::DEVICE_MAP_MEMORY,
    metric::HOST_MEMORY,
    metric::WRITE_AMPLIFICATION,
    metric::MOST_OUTSTANDING,
    metric::VIRTUAL_DURATION,
];

enum Kind {
    Job,
    Experiment(Box<Experiment>),
    Trace,
}

/// What became of a comparison.
pub enum Compared {
    Made(Box<Made>),
    /// With `--dry-run`: its title, and the runs that it would have.
    Planned(String, Vec<Planned>),
}

/// All that a comparison needs once its runs are made.
pub struct Made {
    pub texts: CompareTexts,
    pub variants: Vec<String>,
    pub base: String,
    pub seeds: Seeds,
    pub trials: Vec<Trial>,
    kept: Kept,
}

/// Makes the runs, or plans them.
pub fn compared(args: &Compare) -> Result<Compared> {
    match kind(args)? {
        Kind::Trace => of_trace(args),
        Kind::Job => of_plans(args, None),
        Kind::Experiment(experiment) => of_plans(args, Some(*experiment)),
    }
}

pub fn main(args: &Compare) -> Result<()> {
    let made = match compared(args)? {
        Compared::Made(made) => *made,
        Compared::Planned(title, list) => return dry_run::show(&title, &list, args.basics.json),
    };
    let mut doc = document(&made.texts, &made.trials, &made.variants, &made.base, made.seeds)?;
    doc.process = output::process();
    doc.validate()?;
    made.kept.write(&doc)?;
    let spec = output::limited(TableSpec::of(&METRICS), output::terminal_width());
    let spec = spec.headed(&metric::HOST_MEMORY, "map, host");
    let table = || comparison::table(&doc, &spec) + "\n";
    output::show(&doc, &args.basics, args.basics.out.as_deref(), None, table)?;
    runs::complete(made.trials.iter().filter_map(|t| t.incomplete.clone()), made.trials.len())
}

fn kind(args: &Compare) -> Result<Kind> {
    let name = args.workload.to_string_lossy();
    let extension = args.workload.extension().unwrap_or_default();
    let builtin = readpath_config::experiments().iter().any(|e| e.name == name) && !args.workload.exists();
    Ok(match () {
        () if args.trace => Kind::Trace,
        () if args.fio || extension == "fio" => Kind::Job,
        () if builtin => Kind::Experiment(readpath_config::experiment::load(&name, &read_text).map_err(usage)?.into()),
        () if extension == "toml" => {
            let text = inputs::text(&args.workload)?;
            Kind::Experiment(readpath_config::experiment::parse(&text, &name).map_err(usage)?.into())
        }
        () => Kind::Trace,
    })
}

fn choices(args: &Compare) -> Typed<'_> {
    Typed { named: &args.variant, varied: &args.vary, policy: &args.policy, map_cache: &args.map_cache, hpb: &args.hpb }
}

fn seeds(args: &Compare, first: u64, count: u32) -> Result<Seeds> {
    let first = args.seed.unwrap_or(first);
    let count = args.seeds.unwrap_or(count);
    Seeds::new(first, count).ok_or_else(|| usage(anyhow!("--seed: {count} seeds from {first} on go beyond 64 bits")))
}

fn base(args: &Compare, variants: &[String]) -> Result<String> {
    let mut list = variants.to_vec();
    runs::choose(&mut list, |name| name, "--base", args.base.as_deref())?;
    Ok(list.swap_remove(0))
}

fn kept(args: &Compare) -> Result<Kept> {
    let inputs = [&args.workload].into_iter().chain(&args.precondition);
    Kept::create(&args.basics, args.basics.out.as_deref(), inputs)
}

fn of_plans(args: &Compare, experiment: Option<Experiment>) -> Result<Compared> {
    let what = if experiment.is_some() { "an experiment" } else { "a fio job" };
    let before = (!args.precondition.is_empty()).then_some("--precondition");
    if let Some(option) = before.or(args.how.given()) {
        let name = args.workload.display();
        return Err(usage(anyhow!(
            "{option} is for traces, but {name} is taken for {what} (--trace if it is a trace)"
        )));
    }
    let experiment = match experiment {
        Some(experiment) => of_file(args, experiment)?,
        None => typed::of_job(
            &args.workload,
            args.device.as_deref().unwrap_or(DEVICE),
            args.preload.unwrap_or(Fill::Sequential),
            choices(args).variants()?,
        ),
    };
    let seeds = seeds(args, experiment.seed, SEEDS)?;
    let variants: Vec<String> = experiment.variants.iter().map(|v| v.name.clone()).collect();
    let base = base(args, &variants)?;
    let set = overrides(&args.basics.set)?;
    let mut planned: Vec<(Arc<Experiment>, Plan)> = Vec::new();
    for seed in seeds.all() {
        let mut experiment = experiment.clone();
        experiment.seed = seed;
        let experiment = Arc::new(experiment);
        let mut plans = plan(&experiment, &set, &read_text).map_err(classify)?;
        runs::choose(&mut plans, |p| &p.case, "--case", args.case.as_deref())?;
        if seed == seeds.first() {
            beforehand::plans(&plans).map_err(classify)?;
        } else {
            plans.iter_mut().for_each(|plan| plan.setup.over_time = false);
        }
        planned.extend(plans.into_iter().map(|p| (experiment.clone(), p)));
    }
    let title = title(&experiment.title, variants.len());
    if args.dry_run {
        return Ok(Compared::Planned(title, Planned::of_plans(planned.iter().map(|(_, plan)| plan))));
    }
    let kept = kept(args)?;
    let expected = planned.iter().map(|(_, p)| expected_ios(&p.workload)).sum::<Option<u64>>();
    let count = planned.len();
    let trials =
        runs::side_by_side(args.basics.threads, count, expected, &runs::stoppable(&Live::default())?, |shared| {
            run_plans(planned, shared)
        })?;
    let mut drawn = "the random choices of the workload".to_owned();
    if experiment.precondition.layout == Layout::Random {
        drawn.push_str(" and the order in which its files lie in flash");
    }
    let texts = CompareTexts { title, description: experiment.description.clone(), drawn: Some(drawn) };
    Ok(Compared::Made(Box::new(Made { texts, variants, base, seeds, trials: trials.map_err(mark)?, kept })))
}

/// An experiment as its file has it, but for the variants if others were typed.
fn of_file(args: &Compare, mut experiment: Experiment) -> Result<Experiment> {
    for (given, option) in [(args.device.is_some(), "--device"), (args.preload.is_some(), "--preload")] {
        if given {
            let name = &experiment.name;
            return Err(usage(anyhow!("{option} is not for experiments: '{name}' says in its file what it runs on")));
        }
    }
    if !choices(args).is_empty() {
        experiment.variants = choices(args).variants()?;
        // What has been published belongs to the variants of the file.
        experiment.published.clear();
    }
    // Runs are reduced to their figures one by one, where a claim speaks of two. The differences are what is shown
    // here.
    experiment.claims.clear();
    Ok(experiment)
}

fn of_trace(args: &Compare) -> Result<Compared> {
    if args.case.is_some() {
        return Err(usage(anyhow!("--case is for experiments; a trace is one case")));
    }
    let layout = args.preload.unwrap_or(Fill::Sequential).layout().ok_or_else(|| {
        let message = "what a trace reads before it writes it was there, so sequential or random is needed";
        usage(anyhow!("--preload none is for jobs: {message}"))
    })?;
    let drawn = match layout {
        Layout::Random => {
            Some("the order in which preloaded blocks lie in flash; the requests of a trace are fixed".into())
        }
        Layout::Sequential => None,
    };
    let seeds = seeds(args, 1, if drawn.is_some() { SEEDS } else { 1 })?;
    let device = args.device.as_deref().unwrap_or(DEVICE);
    let variants = replay_variants(&choices(args).variants()?, device, &args.basics.set)?;
    let names: Vec<String> = variants.iter().map(|v| v.name.clone()).collect();
    let base = base(args, &names)?;
    let options =
        ReplayOptions { mode: cases::mode(&args.how)?, layout, seed: seeds.first(), encoded: false, over_time: true };
    // Options are looked at before a file is, and files before traces are read.
    cases::prepare(&args.how, 1)?;
    inputs::only_one_stdin([&args.workload].into_iter().chain(&args.precondition))?;
    let shared = runs::stoppable(&Live::default())?;
    let kept = (!args.dry_run).then(|| kept(args)).transpose()?;
    let files = std::slice::from_ref(&args.workload);
    let units = |v: &ReplayVariant| v.preset.device.lus.iter().map(|unit| unit.blocks).collect::<Vec<_>>();
    if !args.how.units.is_empty() && variants.iter().any(|v| units(v) != units(&variants[0])) {
        return Err(usage(anyhow!(
            "--units: the variants have logical units of different sizes; change them with --set"
        )));
    }
    let case_names = cases::names(files)?;
    beforehand::variants(&case_names[0], &variants).map_err(classify)?;
    let cases =
        cases::cases(&args.how, &args.precondition, files, &case_names, &variants[0].preset.device.lus, &shared)?;
    let count = variants.len() * seeds.count() as usize;
    let expected = cases.iter().map(ReplayCase::ios).sum::<u64>() * count as u64;
    let of_replay = cases::texts(&args.how, (&args.precondition, files), device, layout, &cases);
    let title = title(&of_replay.title, names.len());
    let Some(kept) = kept else {
        let of_case = |case| names.iter().map(move |name| Planned::of_replay(case, name, seeds.count()));
        return Ok(Compared::Planned(title, cases.iter().flat_map(of_case).collect()));
    };
    let trials = runs::side_by_side(args.basics.threads, count, Some(expected), &shared, |shared| {
        run_replays(&of_replay, &cases, &variants, &options, seeds, shared)
    })?;
    let texts = CompareTexts { title, description: of_replay.description.clone(), drawn };
    Ok(Compared::Made(Box::new(Made { texts, variants: names, base, seeds, trials: trials.map_err(mark)?, kept })))
}

/// The same trace has to fit onto all of them.
fn replay_variants(variants: &[Variant], device: &str, set: &[String]) -> Result<Vec<ReplayVariant>> {
    let preset = preset(device, set)?;
    let made = variants.iter().map(|v| ReplayVariant::new(v, &preset)).collect::<Result<Vec<_>, _>>();
    let made = made.map_err(usage)?;
    let blocks = |v: &ReplayVariant| v.preset.device.lus[usize::from(LUN)].blocks;
    if let Some(other) = made.iter().find(|v| blocks(v) != blocks(&made[0])) {
        return Err(usage(anyhow!(
            "'{}' has {} blocks and '{}' has {}: a trace is fitted to one size of the logical unit; change it with \
             --set",
            made[0].name,
            blocks(&made[0]),
            other.name,
            blocks(other)
        )));
    }
    Ok(made)
}

fn title(of: &str, variants: usize) -> String {
    match variants {
        1 => of.to_owned(),
        n => format!("{of}: {n} variants compared"),
    }
}

fn mark(error: CompareError) -> anyhow::Error {
    match error {
        CompareError::Run(error) => classify(error),
        CompareError::Results(error) => error.into(),
    }
}
