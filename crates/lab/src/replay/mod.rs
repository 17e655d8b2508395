// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replay of block traces: cases (a trace, what runs before it, what is on the device) times variants (device, host), run
//! side by side. Traces are loaded once and shared. It opens no file and knows nothing of their formats.

mod document;
mod player;
mod preload;

use crate::experiment::{ExperimentError, Shared, watch};
use player::play;
use rayon::prelude::*;
use readpath_config::experiment::Variant;
use readpath_config::{ConfigFileError, DevicePreset, Event, Scheduler};
use readpath_device::{Layout, NoSpace, Probe};
use readpath_flash::{DieSched, Exact, Lean, Queued};
use readpath_host::HostConfig;
use readpath_kit::Ns;
use readpath_results::Input;
use readpath_run::events::{Schedule, Span, limit};
use readpath_run::execute::{Before, ExecuteError, LUN, PhaseOutput};
use readpath_run::measure::PhaseStats;
use readpath_run::request::LATEST;
use readpath_run::run::{Observer, RunError};
use readpath_stack::{AnyWire, NoData, Stack};
use readpath_workload::trace::Loaded;
use std::sync::Arc;

pub use document::{ReplayTexts, document};

/// When requests are submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// At their times, however many are outstanding. What does not fit into the controller's queue waits, and waiting
    /// counts as latency.
    Timed,
    /// In the order of the trace, as soon as fewer than so many (at least 1) are outstanding. Times do not matter.
    Closed {
        /// Requests kept outstanding.
        iodepth: u32,
    },
}

/// How traces are replayed, the same for all runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayOptions {
    /// When requests are submitted, in every phase.
    pub mode: Mode,
    /// In which order the blocks that are there at the start were written.
    pub layout: Layout,
    /// Seed of that order, if it is random. Nothing else is drawn.
    pub seed: u64,
    /// Every request and reply is encoded to a UPIU and parsed again, which makes no difference to results.
    pub encoded: bool,
}

/// The longest that the phases of a case may take by their times, so that the run behind them has room.
pub const LONGEST: Ns = Ns(LATEST.0 / 2);

/// A trace to be measured and what comes before it.
#[derive(Clone, Debug)]
pub struct ReplayCase {
    /// Name for tables.
    pub name: String,
    /// Run in order before the trace, each until all of its requests have ended; measured apart.
    pub before: Vec<Arc<Loaded>>,
    /// The trace.
    pub trace: Arc<Loaded>,
    /// Blocks that are on the device at the start: first block and how many, in order.
    preload: Vec<(u32, u32)>,
    /// What the reader of the results has to know of these files.
    pub notes: Vec<String>,
    /// The files.
    pub inputs: Vec<Input>,
}

impl ReplayCase {
    /// A case on a device of `device_blocks` blocks, for which all traces have been prepared.
    pub fn new(name: &str, before: Vec<Arc<Loaded>>, trace: Arc<Loaded>, device_blocks: u32) -> Self {
        let phases: Vec<&Loaded> = before.iter().chain([&trace]).map(Arc::as_ref).collect();
        let preload = preload::of_phases(&phases, device_blocks);
        ReplayCase { name: name.to_owned(), before, trace, preload, notes: Vec::new(), inputs: Vec::new() }
    }

    /// Blocks that are read before any phase writes them, as ranges in order.
    pub fn preload(&self) -> &[(u32, u32)] {
        &self.preload
    }

    /// How many blocks that are.
    pub fn preload_blocks(&self) -> u64 {
        self.preload.iter().map(|r| u64::from(r.1)).sum()
    }

    fn phases(&self) -> impl Iterator<Item = (String, &Loaded)> {
        let one = self.before.len() == 1;
        let name = move |i: usize| if one { "precondition".into() } else { format!("precondition {}", i + 1) };
        let before = self.before.iter().enumerate().map(move |(i, t)| (name(i), t.as_ref()));
        before.chain([("replay".to_owned(), self.trace.as_ref())])
    }

    /// Requests of all phases, as the device's host sees them.
    pub fn ios(&self) -> u64 {
        self.phases().map(|(_, trace)| trace.ios.iter().filter(|io| !io.continued()).count() as u64).sum()
    }

    /// Time of all phases by their traces.
    pub fn span(&self) -> Ns {
        Ns(self.phases().fold(0, |sum: u64, (_, trace)| sum.saturating_add(trace.prepared.end.0)))
    }
}

/// Device and host under which every case is run.
#[derive(Clone, Debug)]
pub struct ReplayVariant {
    /// Name for tables.
    pub name: String,
    /// Device, delays and scheduler.
    pub preset: DevicePreset,
    /// Host driver.
    pub host: HostConfig,
    /// Limits of host memory for HPB in bytes, with their times from the start of the trace on, in order. Only for
    /// policies of this host's own.
    pub limits: Vec<(Ns, u64)>,
    /// What happens in the middle of the trace, in order of time, counted from its start.
    pub events: Vec<Event>,
}

impl ReplayVariant {
    /// What `variant` makes of a device.
    ///
    /// # Errors
    /// Names the key in its `set` that is at fault.
    pub fn new(variant: &Variant, base: &DevicePreset) -> Result<Self, ConfigFileError> {
        let preset = variant.device(base)?;
        Ok(ReplayVariant {
            name: variant.name.clone(),
            host: variant.host(&preset),
            preset,
            limits: Vec::new(),
            events: Vec::new(),
        })
    }
}

/// What one phase showed.
#[derive(Clone, Debug)]
pub struct ReplayPhase {
    /// Requests, times, and what device and host counted.
    pub output: PhaseOutput,
    /// Most requests that were outstanding at once, waiting ones included.
    pub most_outstanding: u32,
}

/// What one run showed.
#[derive(Clone, Debug)]
pub struct ReplayRun {
    /// Index of the case.
    pub case: usize,
    /// Index of the variant.
    pub variant: usize,
    /// Preconditions in order, then the trace.
    pub phases: Vec<ReplayPhase>,
    /// SRAM of the modelled device by table, in bytes.
    pub sram: Vec<(&'static str, u64)>,
    /// What was counted before, between and after events of the trace; empty for a run without.
    pub spans: Vec<Span>,
}

/// Makes all runs, case by case, on as many threads as the pool has; they come back in that order, and beside them why
/// others failed: what one run found out stands, whatever became of another.
///
/// # Errors
/// That of the first run in order that failed, if no run did better; an interruption in any case.
pub fn run_all(
    cases: &[ReplayCase],
    variants: &[ReplayVariant],
    options: &ReplayOptions,
    shared: &Shared,
) -> Result<(Vec<ReplayRun>, Vec<ExperimentError>), ExperimentError> {
    let pairs: Vec<(usize, usize)> =
        (0..cases.len()).flat_map(|case| (0..variants.len()).map(move |variant| (case, variant))).collect();
    let results: Vec<_> =
        pairs.into_par_iter().with_max_len(1).map(|at| run_one(cases, variants, at, options, (), shared).0).collect();
    let (mut runs, mut failures) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(run) => runs.push(run),
            Err(e) if e.is_interruption() => return Err(e),
            Err(e) => failures.push(e),
        }
    }
    if runs.is_empty() && !failures.is_empty() {
        return Err(failures.swap_remove(0));
    }
    Ok((runs, failures))
}

/// Makes the run of one case and variant, given by their places. `probe` sees every stage, and comes back in any case but
/// that of a device which cannot be made.
pub fn run_one<P: Probe>(
    cases: &[ReplayCase],
    variants: &[ReplayVariant],
    at: (usize, usize),
    options: &ReplayOptions,
    probe: P,
    shared: &Shared,
) -> (Result<ReplayRun, ExperimentError>, Option<P>) {
    let (case, variant) = at;
    let (c, v) = (&cases[case], &variants[variant]);
    let watch = &mut watch(shared, case * variants.len() + variant);
    let (run, probe) = match v.preset.scheduler {
        Scheduler::Lean => on::<Lean, P>(c, v, options, probe, watch),
        Scheduler::Queued => on::<Queued, P>(c, v, options, probe, watch),
        Scheduler::Exact => on::<Exact, P>(c, v, options, probe, watch),
    };
    let run = match run {
        Ok((phases, sram, spans)) => Ok(ReplayRun { case, variant, phases, sram, spans }),
        Err(error) => Err(ExperimentError::Run { case: c.name.clone(), variant: v.name.clone(), error }),
    };
    (run, probe)
}

type Shown = (Vec<ReplayPhase>, Vec<(&'static str, u64)>, Vec<Span>);

fn on<S: DieSched, P: Probe>(
    case: &ReplayCase,
    variant: &ReplayVariant,
    options: &ReplayOptions,
    probe: P,
    observer: &mut impl Observer,
) -> (Result<Shown, ExecuteError>, Option<P>) {
    let preset = &variant.preset;
    let wire = AnyWire::new(options.encoded);
    match Stack::<S, NoData, P, AnyWire>::new(&preset.device, variant.host, preset.delays, NoData, probe, wire) {
        Ok(mut stack) => {
            let shown = in_stack(case, variant, options, &mut stack, observer);
            (shown, Some(stack.device.into_probe()))
        }
        Err(error) => (Err(error.into()), None),
    }
}

fn in_stack<S: DieSched, P: Probe>(
    case: &ReplayCase,
    variant: &ReplayVariant,
    options: &ReplayOptions,
    stack: &mut Stack<S, NoData, P, AnyWire>,
    observer: &mut impl Observer,
) -> Result<Shown, ExecuteError> {
    // Runs that have not begun when another fails, or a signal comes, need not begin.
    if !observer.progress(0, Ns::ZERO) {
        return Err(RunError::Interrupted.into());
    }
    let preloaded = preload::joined(&case.preload, variant.preset.device.geometry.slices_per_unit());
    let blocks = preloaded.iter().map(|&(_, blocks)| blocks).sum();
    stack
        .precondition_all(
            preloaded.into_iter().map(|(first, blocks)| (LUN, first, blocks)),
            options.layout,
            options.seed,
        )
        .map_err(|NoSpace| ExecuteError::Precondition { blocks })?;
    let mut now = stack.start(Ns::ZERO)?;
    let mut phases = Vec::new();
    let mut events = Schedule::default();
    for (name, trace) in case.phases() {
        if phases.len() == case.before.len() {
            events = Schedule::new(&variant.events, stack, now)?;
            limit(stack, &variant.limits, now)?;
        }
        let before = Before::of(stack);
        let (job, most_outstanding) = play(stack, &trace.ios, options.mode, now, &mut events, observer)?;
        let ios = job.kinds.iter().map(|k| k.ios).sum();
        let stats = PhaseStats { name, start: now, end: job.end, jobs: vec![job], ios };
        now = stats.end;
        phases.push(ReplayPhase { output: before.output(stats, stack), most_outstanding });
    }
    Ok((phases, stack.device.sram(), events.end(stack, now)))
}
