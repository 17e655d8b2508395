// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run from a preset to its figures: builds the stack that a preset describes, fills the device, lets the host find
//! it, runs the phases of a workload and takes what every layer counted. It knows nothing of files, tables or cases.

use crate::drive::Hooks;
use crate::error::RunError;
use crate::events::{EventError, LimitError, Schedule, Span};
use crate::launches::Cycle;
use crate::measure::PhaseStats;
use crate::request::LUN;
use crate::runner::Runner;
use crate::series::{Recorder, Series};
use crate::stacks::{Work, tapped};
use crate::tap::TapTo;
use crate::watch::{Observer, Watched};
use crate::zoned::{Written, ZoneCounts, ZonesError, placed, refused};
use readpath_config::experiment::{Precondition, PreconditionRange};
use readpath_config::{DevicePreset, Event};
use readpath_device::{DeviceStats, NoSpace, Probe, SramTable, Wear};
use readpath_flash::{DieSched, Lean};
use readpath_host::{HostConfig, HostMemory, HpbCounters, ParamError, ProbeError};
use readpath_kit::Ns;
use readpath_stack::{AnyWire, NoData, Payload, Stack, StackError, Wire};
use readpath_workload::Workload;
use readpath_workload::launch::Launches;
use thiserror::Error;

/// Why a run gave no result.
#[derive(Debug, Error)]
pub enum ExecuteError {
    /// The stack could not be made or the host could not use the device.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The run itself failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A limit of host memory during a trace is not possible.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// An event of the run is not possible.
    #[error(transparent)]
    Event(#[from] EventError),
    /// A unit has zones, on which this cannot be done.
    #[error(transparent)]
    Zones(#[from] ZonesError),
    /// The workload reaches beyond a logical unit.
    #[error("the workload needs {needed} blocks of 4 KiB, but logical unit {lun} of '{device}' has {available}")]
    TooLarge {
        /// The unit.
        lun: u8,
        /// Blocks that the workload reaches to.
        needed: u64,
        /// Blocks of the unit.
        available: u32,
        /// Name of the preset.
        device: String,
    },
    /// The precondition does not fit into flash.
    #[error("the device has no room for the {blocks} blocks of 4 KiB that are to be written before the run")]
    Precondition {
        /// Blocks.
        blocks: u32,
    },
}

impl ExecuteError {
    /// Whether the host may use too little memory for HPB.
    pub fn is_memory_of_host(&self) -> bool {
        let ExecuteError::Stack(StackError::Probe(ProbeError::Param { error, .. })) = self else { return false };
        matches!(error, ParamError::TooLittleMemory { .. })
    }
}

/// All inputs of a run but its workload.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Device, delays and scheduler.
    pub preset: DevicePreset,
    /// Host driver.
    pub host: HostConfig,
    /// What the device holds at the start.
    pub precondition: Precondition,
    /// Seed of the order in which it was written, if that is random.
    pub seed: u64,
    /// Every request and reply is encoded to a UPIU and parsed again, which makes no difference to results.
    pub encoded: bool,
    /// What happens in the middle of the run, in order of time, counted from when the host has found the device.
    pub events: Vec<Event>,
    /// Whether the run is recorded over time.
    pub over_time: bool,
}

/// What one phase of a run showed.
#[derive(Clone, Debug)]
pub struct PhaseOutput {
    /// Requests and times.
    pub stats: PhaseStats,
    /// What the device did in this phase.
    pub device: DeviceStats,
    /// How worn the device was at its end.
    pub wear: Wear,
    /// What the host's HPB did in this phase.
    pub hpb: Option<HpbCounters>,
    /// Host memory for HPB at the end of the phase.
    pub memory: Option<HostMemory>,
    /// Each logical unit, if several have HPB; else empty.
    pub units: Vec<UnitOutput>,
    /// What the host did in zones, if the device has any.
    pub zones: Option<ZoneCounts>,
}

/// What the host's HPB of one logical unit did in a phase.
#[derive(Clone, Copy, Debug)]
pub struct UnitOutput {
    /// The unit.
    pub lun: u8,
    /// Counters of its HPB.
    pub hpb: HpbCounters,
    /// Host memory at the end of the phase.
    pub memory: HostMemory,
}

/// A phase that the device cut short by refusing a request. It gave no figures, and neither did the phases behind it.
#[derive(Clone, Debug)]
pub struct CutShort {
    /// Name of the phase.
    pub phase: String,
    /// Later phases that were not run.
    pub not_run: usize,
    /// Why.
    pub error: RunError,
}

impl std::fmt::Display for CutShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "phase '{}' was cut short and has no figures: {}", self.phase, self.error)?;
        match self.not_run {
            0 => Ok(()),
            1 => f.write_str("; the phase behind it was not run"),
            n => write!(f, "; the {n} phases behind it were not run"),
        }
    }
}

/// What a run showed.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// Its phases that ended.
    pub phases: Vec<PhaseOutput>,
    /// The phase behind them, if the device cut the run short.
    pub cut_short: Option<CutShort>,
    /// SRAM of the modelled device by table, in bytes.
    pub sram: Vec<(SramTable, u64)>,
    /// What was counted before, between and after events; empty for a run without.
    pub spans: Vec<Span>,
    /// What happened over time, from when the host has found the device, if that was to be kept.
    pub over_time: Option<Series>,
    /// Requests that ended, in all phases.
    pub ios: u64,
}

impl RunOutput {
    /// Requests and times of all phases.
    pub fn phase_stats(&self) -> Vec<PhaseStats> {
        self.phases.iter().map(|p| p.stats.clone()).collect()
    }
}

/// Runs `workload` on what `setup` describes. The tap sees every stage, and comes back in any case but that of a device
/// which cannot be made.
pub fn execute<'t>(
    setup: &Setup,
    workload: &mut Workload,
    tap: Option<TapTo<'t>>,
    observer: &mut dyn Observer,
) -> (Result<RunOutput, ExecuteError>, Option<TapTo<'t>>) {
    tapped(&setup.preset, setup.host, NoData, setup.encoded, tap, Execution { setup, workload, observer })
}

/// A run that is to be made.
struct Execution<'a> {
    setup: &'a Setup,
    workload: &'a mut Workload,
    observer: &'a mut dyn Observer,
}

impl<P: Probe> Work<NoData, P, AnyWire> for Execution<'_> {
    type Output = (Result<RunOutput, ExecuteError>, P);

    fn on<S: DieSched>(self, mut stack: Stack<S, NoData, P, AnyWire>) -> Self::Output {
        let result = self.run(&mut stack);
        (result, stack.device.into_probe())
    }
}

impl Execution<'_> {
    fn run<S: DieSched, P: Probe>(self, stack: &mut Stack<S, NoData, P, AnyWire>) -> Result<RunOutput, ExecuteError> {
        let Execution { setup, workload, observer } = self;
        fits(workload, &setup.preset)?;
        refused::of_events(&setup.events, workload.files.iter().map(|file| file.lun), &setup.preset)?;
        // Runs that have not begun when another fails, or a signal comes, need not begin.
        if !observer.progress(0, Ns::ZERO) {
            return Err(RunError::Interrupted.into());
        }
        precondition(stack, setup, workload)?;
        let ready = stack.start(Ns::ZERO)?;
        let recorder = if setup.over_time { Recorder::new(stack, ready) } else { Recorder::off() };
        let mut hooks = (Schedule::new(&setup.events, stack, ready)?, (recorder, Watched(observer)));
        let Precondition { range, layout } = setup.precondition;
        let ranges = ranges(range, workload, &setup.preset);
        let mut runner = Runner::after(ready, Written { ranges, layout, seed: setup.seed });
        let (phases, cut_short) = match &workload.launches {
            Some(launches) => (cycles(stack, &mut runner, launches, &mut hooks)?, None),
            None => phases(stack, &mut runner, workload, &mut hooks)?,
        };
        let ios = phases.iter().map(|p| p.stats.ios).sum();
        let end = match &cut_short {
            Some(CutShort { error: RunError::Io { at, .. }, .. }) => *at,
            _ => phases.last().map_or(ready, |p| p.stats.end),
        };
        Ok(RunOutput {
            phases,
            cut_short,
            sram: stack.device.sram(),
            spans: hooks.0.end(stack, end),
            over_time: hooks.1.0.end(stack, end),
            ios,
        })
    }
}

/// What the layers had counted when a phase began.
pub struct Before {
    device: DeviceStats,
    hpb: Option<HpbCounters>,
    units: Vec<UnitOutput>,
    zones: Option<ZoneCounts>,
}

impl Before {
    /// The counters at this moment.
    pub(crate) fn of<S: DieSched, X: Payload, P: Probe, W: Wire>(
        stack: &Stack<S, X, P, W>,
        runner: &mut Runner,
    ) -> Self {
        let zones = runner.zone_counts(stack);
        Before { device: *stack.device.stats(), hpb: stack.host.all_counters(), units: units(stack), zones }
    }

    /// What a phase did that has ended now.
    pub(crate) fn output<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &self,
        stats: PhaseStats,
        stack: &Stack<S, X, P, W>,
        runner: &mut Runner,
    ) -> PhaseOutput {
        let mut units = units(stack);
        for unit in &mut units {
            if let Some(before) = self.units.iter().find(|u| u.lun == unit.lun) {
                unit.hpb = unit.hpb.since(&before.hpb);
            }
        }
        PhaseOutput {
            stats,
            device: stack.device.stats().since(&self.device),
            wear: stack.device.wear(),
            hpb: stack.host.all_counters().map(|c| c.since(&self.hpb.unwrap_or_default())),
            memory: stack.host.all_memory(),
            units: if units.len() > 1 { units } else { Vec::new() },
            zones: runner.zone_counts(stack).map(|zones| zones.since(&self.zones.unwrap_or_default())),
        }
    }
}

/// HPB of each unit that has it, since the host began.
fn units<S: DieSched, X: Payload, P: Probe, W: Wire>(stack: &Stack<S, X, P, W>) -> Vec<UnitOutput> {
    let unit = |lun| {
        Some(UnitOutput { lun, hpb: *stack.host.counters(lun)?, memory: stack.host.memory(lun).unwrap_or_default() })
    };
    stack.host.luns().filter_map(unit).collect()
}

/// Runs the phases of a workload.
fn phases<S: DieSched, P: Probe>(
    stack: &mut Stack<S, NoData, P, AnyWire>,
    runner: &mut Runner,
    workload: &mut Workload,
    hooks: &mut (Schedule, (Recorder, Watched)),
) -> Result<(Vec<PhaseOutput>, Option<CutShort>), ExecuteError> {
    let mut phases = Vec::with_capacity(workload.phases.len());
    let planned = workload.phases.len();
    for (i, phase) in workload.phases.iter_mut().enumerate() {
        let before = Before::of(stack, runner);
        let stats = match runner.jobs(stack, phase, hooks) {
            Ok(stats) => stats,
            // Results of earlier phases are kept. A run without any has failed.
            Err(error @ RunError::Io { .. }) if i > 0 => {
                let cut = CutShort { phase: phase.name.clone(), not_run: planned - i - 1, error };
                return Ok((phases, Some(cut)));
            }
            Err(error) => return Err(error.into()),
        };
        if i + 1 == planned {
            // The work that is left behind counts for the last phase.
            Runner::settle(stack)?;
            hooks.1.1.look(stack, runner.now());
        }
        phases.push(before.output(stats, stack, runner));
    }
    Ok((phases, None))
}

/// Launches apps, a phase for each cycle.
fn cycles<S: DieSched, P: Probe>(
    stack: &mut Stack<S, NoData, P, AnyWire>,
    runner: &mut Runner,
    launches: &Launches,
    hooks: &mut impl Hooks,
) -> Result<Vec<PhaseOutput>, ExecuteError> {
    let mut phases = Vec::with_capacity(launches.cycles());
    for cycle in 0..launches.cycles() {
        let before = Before::of(stack, runner);
        let mut apps = Cycle::new(launches, cycle, LUN, runner.now());
        let driven = runner.run(stack, &mut apps, hooks)?;
        phases.push(before.output(apps.stats(driven), stack, runner));
    }
    Ok(phases)
}

/// Whether the units of a device are long enough for a workload, and take its writes.
pub fn fits(workload: &Workload, preset: &DevicePreset) -> Result<(), ExecuteError> {
    let units = preset.seen_units();
    for file in &workload.files {
        let needed = u64::from(file.block) + u64::from(file.blocks);
        let available = units.get(usize::from(file.lun)).map_or(0, |lu| lu.blocks);
        if needed > u64::from(available) {
            return Err(ExecuteError::TooLarge { lun: file.lun, needed, available, device: preset.name.clone() });
        }
    }
    Ok(refused::of_workload(workload, preset)?)
}

/// Writes the precondition into flash, unit by unit.
pub fn precondition<S: DieSched, X: Payload, P: Probe, W: Wire>(
    stack: &mut Stack<S, X, P, W>,
    setup: &Setup,
    workload: &Workload,
) -> Result<(), ExecuteError> {
    let Precondition { range, layout, .. } = setup.precondition;
    let ranges = ranges(range, workload, &setup.preset);
    refused::of_order(&ranges, layout, &setup.preset)?;
    let blocks = ranges.iter().map(|&(.., blocks)| blocks).sum();
    stack
        .precondition_all(placed(&setup.preset, &ranges), layout, setup.seed)
        .map_err(|NoSpace| ExecuteError::Precondition { blocks })
}

/// Disjoint ranges of blocks, each of one unit (unit, first block, blocks): files may overlap. All means all of the
/// units that have files.
pub fn ranges(range: PreconditionRange, workload: &Workload, preset: &DevicePreset) -> Vec<(u8, u32, u32)> {
    let files = workload.files.iter();
    let mut wanted: Vec<(u8, u32, u32)> = match range {
        PreconditionRange::None => Vec::new(),
        PreconditionRange::All => {
            let units = preset.seen_units();
            let whole = |lun: u8| (lun, 0, units[usize::from(lun)].blocks);
            files.map(|f| whole(f.lun)).collect()
        }
        PreconditionRange::Files => files.map(|f| (f.lun, f.block, f.block + f.blocks)).collect(),
    };
    wanted.retain(|(_, first, end)| first < end);
    wanted.sort_unstable();
    let mut merged: Vec<(u8, u32, u32)> = Vec::new();
    for (lun, first, end) in wanted {
        match merged.last_mut() {
            Some((last_lun, _, last)) if *last_lun == lun && first <= *last => *last = (*last).max(end),
            _ => merged.push((lun, first, end)),
        }
    }
    merged.into_iter().map(|(lun, first, end)| (lun, first, end - first)).collect()
}

/// SRAM of the device of a preset by table, in bytes.
pub fn sram(preset: &DevicePreset) -> Result<Vec<(SramTable, u64)>, StackError> {
    let wire = AnyWire::new(false);
    let stack = Stack::<Lean, NoData, (), AnyWire>::new(&preset.device, preset.host, preset.delays, NoData, (), wire)?;
    Ok(stack.device.sram())
}
