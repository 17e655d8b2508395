// SPDX-License-Identifier: MIT OR Apache-2.0
//! An experiment is cases times variants: this module plans the runs, runs them side by side, and knows nothing of how
//! their results are shown. Every run is deterministic by itself, so neither order nor number of threads matters.

use crate::over_time;
use rayon::prelude::*;
use readpath_config::experiment::{Experiment, Fio, Iozone, Variant, Workload as Source};
use readpath_config::{ConfigFileError, DevicePreset, LaunchKeys, Override};
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_results::Input;
use readpath_run::{Board, ExecuteError, Observer, Publisher, RunOutput, Setup, execute};
use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::launch::{LaunchError, LaunchSpec, Launches};
use readpath_workload::{Workload, fio, iozone};
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use thiserror::Error;

/// Why an experiment gave no result.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// A configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    /// A job file is wrong.
    #[error(transparent)]
    Job(#[from] fio::JobError),
    /// An iozone command line is wrong.
    #[error("iozone command line")]
    Args(#[from] iozone::ArgError),
    /// Apps cannot be launched as described.
    #[error("[workload] of kind launches")]
    Launches(#[from] LaunchError),
    /// A run failed.
    #[error("{case}, {variant}: {error}")]
    Run {
        /// Case of the run.
        case: String,
        /// Variant of the run.
        variant: String,
        /// Why.
        error: ExecuteError,
    },
}

impl ExperimentError {
    /// Whether the run was stopped on request.
    pub fn is_interruption(&self) -> bool {
        matches!(self, ExperimentError::Run { error: ExecuteError::Run(readpath_run::RunError::Interrupted), .. })
    }

    /// Whether what the user wrote is at fault, rather than what the device did.
    pub fn is_usage(&self) -> bool {
        match self {
            ExperimentError::Run { error: ExecuteError::Run(error), .. } => {
                matches!(error, readpath_run::RunError::NothingMeasured { .. })
            }
            ExperimentError::Run { error: ExecuteError::Precondition { .. }, .. } => false,
            _ => true,
        }
    }
}

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Case.
    pub case: String,
    /// Variant.
    pub variant: String,
    /// Device, host and state at the start.
    pub setup: Setup,
    /// What is run.
    pub workload: Workload,
    /// Job files that it was read from.
    pub inputs: Vec<Input>,
}

/// A run that was made.
#[derive(Clone, Debug)]
pub struct CaseRun {
    /// What was run, as it was at the end.
    pub plan: Plan,
    /// What it showed.
    pub output: RunOutput,
}

impl CaseRun {
    /// What is missing of it, and why, in a sentence that names the run.
    pub fn incomplete(&self) -> Option<String> {
        let cut = self.output.cut_short.as_ref()?;
        Some(format!("{}, {}: {cut}", self.plan.case, self.plan.variant))
    }
}

/// How files are read.
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
    // What has charts over time: not what would be too many lines.
    if let Some(last) = plans.last().map(|plan| plan.case.clone())
        && experiment.variants.len() <= over_time::MOST_VARIANTS
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
    let unit_blocks: Vec<u32> = preset.device.lus.iter().map(|lu| lu.blocks).collect();
    let kept = |path: &Path| {
        let text = read(path)?;
        inputs.borrow_mut().push(Input::of_text(path.to_string_lossy(), &text));
        Ok(text)
    };
    let context = fio::Context { unit_blocks: &unit_blocks, seed: experiment.seed, options };
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
        Source::Fio(Fio::File { job, .. }) => fio::parse_file(&experiment.resolve(job), read, context)?,
        Source::Fio(Fio::Text { text, .. }) => {
            // Lines are counted from the start of the text, so the name says so.
            let name = match &*experiment.file {
                "" => "job".to_owned(),
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

/// Requests that a workload will make, if it says so itself.
pub fn expected_ios(workload: &Workload) -> Option<u64> {
    let mut sum = workload.launches.as_ref().map_or(0, Launches::total_requests);
    for job in workload.phases.iter().flat_map(|p| &p.jobs) {
        if job.limits.runtime.is_some() {
            return None;
        }
        // Streams count blocks; requests of one block are the common case and the others only make the estimate high.
        sum += job.limits.ios.or(job.stream.total_blocks())?;
    }
    Some(sum)
}

/// What a run in progress is told and tells.
#[derive(Default)]
pub struct Shared {
    /// Requests that ended so far, in all runs.
    pub ios: AtomicU64,
    /// Set to stop all runs, here or by a signal handler.
    pub stop: Arc<AtomicBool>,
    /// Where runs show themselves, if somebody wants to see them: a post for each run.
    pub board: Option<Arc<Board>>,
}

struct Watch<'a> {
    shared: &'a Shared,
    /// Requests of this phase that were counted, and of all.
    seen: u64,
    ios: u64,
    publisher: Option<Publisher<'a>>,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, ios: u64, _: Ns) -> bool {
        // The count begins anew with each phase.
        let more = if ios >= self.seen { ios - self.seen } else { ios };
        self.seen = ios;
        self.ios += more;
        self.shared.ios.fetch_add(more, Ordering::Relaxed);
        !self.shared.stop.load(Ordering::Relaxed)
    }

    fn look<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, stack: &mut Stack<S, X, P, W>, now: Ns) {
        if let Some(publisher) = &self.publisher {
            publisher.look(stack, now, self.ios);
        }
    }
}

/// An observer of the run with this place in the plan that reports to `shared`.
pub fn watch(shared: &Shared, run: usize) -> impl Observer + '_ {
    let post = shared.board.as_ref().and_then(|board| board.posts().get(run));
    Watch { shared, seen: 0, ios: 0, publisher: post.map(Publisher::new) }
}

/// Makes all runs, on as many threads as the pool has, and returns them in order.
///
/// # Errors
/// The error of the first run in order that failed.
pub fn run_all(plans: Vec<Plan>, shared: &Shared) -> Result<Vec<CaseRun>, ExperimentError> {
    run_after(0, plans, shared)
}

/// The same after `before` other runs of one command, by which those who watch count on.
pub fn run_after(before: usize, plans: Vec<Plan>, shared: &Shared) -> Result<Vec<CaseRun>, ExperimentError> {
    let results: Vec<Result<CaseRun, ExperimentError>> = plans
        .into_par_iter()
        .enumerate()
        .with_max_len(1)
        .map(|(place, plan)| {
            let result = run_one(plan, before + place, shared);
            if result.is_err() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            result
        })
        .collect();
    first_failure(results)
}

/// The runs, or why they failed: a failure stops the others, which then report that they were interrupted, so the cause
/// is what matters.
pub(crate) fn first_failure<T>(results: Vec<Result<T, ExperimentError>>) -> Result<Vec<T>, ExperimentError> {
    let mut runs = Vec::with_capacity(results.len());
    let mut failure: Option<ExperimentError> = None;
    for result in results {
        match result {
            Ok(run) => runs.push(run),
            Err(e) if failure.as_ref().is_none_or(ExperimentError::is_interruption) => failure = Some(e),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(runs), Err)
}

/// Makes the run with this place in the plan.
///
/// # Errors
/// When the device cannot be made, or the run fails or is stopped.
pub fn run_one(mut plan: Plan, place: usize, shared: &Shared) -> Result<CaseRun, ExperimentError> {
    let (result, _) = execute(&plan.setup, &mut plan.workload, (), &mut watch(shared, place));
    match result {
        Ok(output) => Ok(CaseRun { plan, output }),
        Err(error) => Err(ExperimentError::Run { case: plan.case, variant: plan.variant, error }),
    }
}
