// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run of jobs or launches: its plan, what it showed, why it failed; and what runs share while they are made. It
//! knows neither questions nor documents.

use readpath_config::ConfigFileError;
use readpath_device::ConfigError;
use readpath_kit::Ns;
use readpath_results::Input;
use readpath_run::{Board, ExecuteError, Observer, Publisher, RunError, RunOutput, Setup, TapTo, execute};
use readpath_workload::launch::{LaunchError, Launches};
use readpath_workload::{Workload, fio, iozone};
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
    /// The device that is attacked cannot exist with the times of the one that was asked for.
    #[error("the device to attack: {0}")]
    Attack(#[from] ConfigError),
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
    /// The run was stopped on request.
    pub(crate) fn interrupted(case: &str, variant: &str) -> Self {
        let error = ExecuteError::Run(RunError::Interrupted);
        ExperimentError::Run { case: case.to_owned(), variant: variant.to_owned(), error }
    }

    /// Whether the run was stopped on request.
    pub fn is_interruption(&self) -> bool {
        matches!(self, ExperimentError::Run { error: ExecuteError::Run(RunError::Interrupted), .. })
    }

    /// Whether the error lies in the user's input, not in the run.
    pub fn is_usage(&self) -> bool {
        match self {
            ExperimentError::Run { error: ExecuteError::Run(error), .. } => {
                matches!(error, RunError::NothingMeasured { .. })
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
    /// The workload.
    pub workload: Workload,
    /// Job files that it was read from.
    pub inputs: Vec<Input>,
}

/// A run that was made.
#[derive(Clone, Copy, Debug)]
pub struct CaseRun<'a> {
    /// The plan of the run.
    pub plan: &'a Plan,
    /// The results of the run.
    pub output: &'a RunOutput,
}

impl CaseRun<'_> {
    /// What the run lacks and why, in a sentence that names the run.
    pub fn incomplete(&self) -> Option<String> {
        let cut = self.output.cut_short.as_ref()?;
        Some(format!("{}, {}: {cut}", self.plan.case, self.plan.variant))
    }
}

/// Requests that a workload will make, if it says so itself: about as many where their lengths are left to chance.
pub fn expected_ios(workload: &Workload) -> Option<u64> {
    let mut sum = workload.launches.as_ref().map_or(0, Launches::total_requests);
    for job in workload.phases.iter().flat_map(|p| &p.jobs) {
        if job.limits.runtime.is_some() {
            return None;
        }
        sum += [job.limits.ios, job.stream.expected_requests()].into_iter().flatten().min()?;
    }
    Some(sum)
}

/// State that runs in progress share with their caller.
#[derive(Default)]
pub struct Shared {
    /// Requests that ended so far, in all runs.
    pub ios: AtomicU64,
    /// Set to stop all runs, here or by a signal handler.
    pub stop: Arc<AtomicBool>,
    /// A post for each run, where it shows its state; none if runs are not watched.
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
        // The count begins at 0 in each phase.
        let more = if ios >= self.seen { ios - self.seen } else { ios };
        self.seen = ios;
        self.ios += more;
        self.shared.ios.fetch_add(more, Ordering::Relaxed);
        !self.shared.stop.load(Ordering::Relaxed)
    }

    fn shows(&self) -> Option<(&Publisher<'_>, u64)> {
        self.publisher.as_ref().map(|publisher| (publisher, self.ios))
    }
}

/// An observer of the run with this place in the plan that reports to `shared`.
pub fn watch(shared: &Shared, run: usize) -> impl Observer + '_ {
    let post = shared.board.as_ref().and_then(|board| board.posts().get(run));
    Watch { shared, seen: 0, ios: 0, publisher: post.map(Publisher::new) }
}

impl Plan {
    /// Makes the run, `place`th of those that are shown while they go on. The tap sees every stage, and comes back in
    /// any case but that of a device which cannot be made.
    ///
    /// # Errors
    /// When the device cannot be made, or the run fails or is stopped.
    pub fn make<'t>(
        &self,
        place: usize,
        tap: Option<TapTo<'t>>,
        shared: &Shared,
    ) -> (Result<RunOutput, ExperimentError>, Option<TapTo<'t>>) {
        let (result, tap) = execute(&self.setup, &mut self.workload.clone(), tap, &mut watch(shared, place));
        (result.map_err(|error| self.failed(error)), tap)
    }

    /// The error of this run.
    pub(crate) fn failed(&self, error: ExecuteError) -> ExperimentError {
        ExperimentError::Run { case: self.case.clone(), variant: self.variant.clone(), error }
    }
}
