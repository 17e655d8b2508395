// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces, replayed one after another. It knows nothing of files, cases or tables.

use crate::error::RunError;
use crate::events::{Schedule, Span, limit};
use crate::execute::{Before, ExecuteError, PhaseOutput};
use crate::runner::Runner;
use crate::series::{Recorder, Series};
use crate::stacks::{Work, tapped};
use crate::tap::TapTo;
use crate::trace::{Mode, Trace, Units};
use crate::watch::{Observer, Watched};
use crate::zoned::{Written, placed, refused};
use readpath_config::{DevicePreset, Event};
use readpath_device::{Layout, NoSpace, Probe, SramTable};
use readpath_flash::DieSched;
use readpath_host::HostConfig;
use readpath_kit::Ns;
use readpath_stack::{AnyWire, NoData, Payload, Stack, Wire};
use readpath_workload::trace::Loaded;

/// Traces, and what is on the device before them.
#[derive(Clone, Debug)]
pub struct Traces<'a> {
    /// The traces in order, with names of their phases.
    pub phases: Vec<(String, &'a Loaded)>,
    /// The logical units that their blocks are spread over.
    pub units: &'a Units,
    /// When requests are submitted, in every phase.
    pub mode: Mode,
    /// Blocks that are on the device at the start: unit, first block, blocks.
    pub preload: Vec<(u8, u32, u32)>,
    /// In which order that was written.
    pub layout: Layout,
    /// Seed of that order, if it is random.
    pub seed: u64,
}

impl Traces<'_> {
    /// Writes the preloaded blocks to a device.
    pub(crate) fn preload<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &self,
        stack: &mut Stack<S, X, P, W>,
        preset: &DevicePreset,
    ) -> Result<(), ExecuteError> {
        let blocks = self.preload.iter().map(|&(.., blocks)| blocks).sum();
        let filled = stack.precondition_all(placed(preset, &self.preload), self.layout, self.seed);
        filled.map_err(|NoSpace| ExecuteError::Precondition { blocks })
    }

    /// Whether units behind a mapper, which sees only a part of their zones, are large enough for all of it.
    ///
    /// # Errors
    /// The unit that is too short, and by how much.
    pub fn fit(&self, preset: &DevicePreset) -> Result<(), ExecuteError> {
        let Some(_) = preset.host.mapper() else { return Ok(()) };
        let units = preset.seen_units();
        let ios = self.phases.iter().flat_map(|(_, trace)| trace.ios.iter());
        for (lun, first, blocks) in ios.flat_map(|io| self.units.split(io.block, io.blocks.into())) {
            let (needed, available) = (u64::from(first) + u64::from(blocks), units[usize::from(lun)].blocks);
            if needed > available.into() {
                return Err(ExecuteError::TooLarge { lun, needed, available, device: preset.name.clone() });
            }
        }
        Ok(())
    }

    /// The requests of one of them, which begins at `now`.
    pub(crate) fn source<'t>(&self, trace: &'t Loaded, now: Ns) -> Trace<'t> {
        Trace::new(&trace.ios, self.mode, self.units.clone(), now)
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
    /// Preconditions in order, then the trace.
    pub phases: Vec<ReplayPhase>,
    /// SRAM of the modelled device by table, in bytes.
    pub sram: Vec<(SramTable, u64)>,
    /// What was counted before, between and after events of the trace; empty for a run without.
    pub spans: Vec<Span>,
    /// The trace over time, if that was to be kept.
    pub over_time: Option<Series>,
}

/// A replay to be made.
#[derive(Clone, Debug)]
pub struct Replayed<'a> {
    /// Device, delays and scheduler.
    pub preset: &'a DevicePreset,
    /// Host driver.
    pub host: HostConfig,
    /// Every request and reply is encoded to a UPIU and parsed again, which makes no difference to results.
    pub encoded: bool,
    /// The last is measured with what follows; those before it run without.
    pub traces: Traces<'a>,
    /// Limits of host memory for HPB in bytes, with their times from the start of the last trace on, in order.
    pub limits: &'a [(Ns, u64)],
    /// What happens in the middle of it, in order of time, counted from its start.
    pub events: &'a [Event],
    /// Whether it is recorded over time.
    pub over_time: bool,
}

/// Replays traces. The tap sees every stage, and comes back in any case but that of a device which cannot be made.
///
/// # Errors
/// When the device cannot be made, or the run fails or is stopped.
pub fn replay<'t>(
    replayed: Replayed,
    tap: Option<TapTo<'t>>,
    observer: &mut dyn Observer,
) -> (Result<ReplayRun, ExecuteError>, Option<TapTo<'t>>) {
    let Replayed { preset, host, encoded, .. } = replayed;
    tapped(preset, host, NoData, encoded, tap, Replaying { replayed, observer })
}

struct Replaying<'a> {
    replayed: Replayed<'a>,
    observer: &'a mut dyn Observer,
}

impl<P: Probe> Work<NoData, P, AnyWire> for Replaying<'_> {
    type Output = (Result<ReplayRun, ExecuteError>, P);

    fn on<S: DieSched>(self, mut stack: Stack<S, NoData, P, AnyWire>) -> Self::Output {
        let shown = self.run(&mut stack);
        (shown, stack.device.into_probe())
    }
}

impl Replaying<'_> {
    fn run<S: DieSched, P: Probe>(self, stack: &mut Stack<S, NoData, P, AnyWire>) -> Result<ReplayRun, ExecuteError> {
        let Replaying { replayed, observer } = self;
        let Replayed { preset, traces, limits, events, over_time, .. } = replayed;
        // Runs that have not begun when another fails, or a signal comes, need not begin.
        if !observer.progress(0, Ns::ZERO) {
            return Err(RunError::Interrupted.into());
        }
        traces.fit(preset)?;
        refused::of_traces(&traces, preset)?;
        refused::of_order(&traces.preload, traces.layout, preset)?;
        let ios = traces.phases.iter().flat_map(|(_, trace)| &trace.ios);
        refused::of_events(events, ios.map(|io| traces.units.of(io.block).0), preset)?;
        traces.preload(stack, preset)?;
        let written = Written { ranges: traces.preload.clone(), layout: traces.layout, seed: traces.seed };
        let mut runner = Runner::after(stack.start(Ns::ZERO)?, written);
        let mut phases = Vec::new();
        let mut hooks = (Schedule::default(), (Recorder::off(), Watched(observer)));
        for (name, trace) in &traces.phases {
            if phases.len() + 1 == traces.phases.len() {
                hooks.0 = Schedule::new(events, stack, runner.now())?;
                limit(stack, limits, runner.now())?;
                if over_time {
                    hooks.1.0 = Recorder::new(stack, runner.now());
                }
            }
            let before = Before::of(stack, &mut runner);
            let mut source = traces.source(trace, runner.now());
            let driven = runner.run(stack, &mut source, &mut hooks)?;
            let (stats, most_outstanding) = source.stats(name.clone(), driven);
            phases.push(ReplayPhase { output: before.output(stats, stack, &mut runner), most_outstanding });
        }
        let (sram, now) = (stack.device.sram(), runner.now());
        let (spans, over_time) = (hooks.0.end(stack, now), hooks.1.0.end(stack, now));
        Ok(ReplayRun { phases, sram, spans, over_time })
    }
}
