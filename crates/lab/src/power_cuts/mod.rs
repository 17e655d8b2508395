// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts in the middle of a workload, a trace or launches: at random moments the power goes and comes back, the
//! device recovers, the workload goes on, and at the end everything is read back and held against what may be there. It
//! opens no file.
//!
//! Data is reduced to tags (see [`readpath_stack::Tags`]), so every block read tells whose it is and which version.

mod cuts;
mod document;
mod hpb_use;
mod question;

pub use document::{PowerFigures, PowerTexts, document};
pub use hpb_use::HpbUse;
pub use question::{Cutting, Cuttings};

use crate::replay::{Mode, ReplayCase};
use crate::runs::expected_ios;
use cuts::Cuts;
use readpath_config::experiment::PreconditionRange;
use readpath_device::{DeviceStats, Probe, Recovery};
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_run::{
    Cycle, ExecuteError, Hooks, Jobs, LUN, Observer, Parts, ReadBack, Rest, RunError, Runner, Schedule, Setup, Span,
    Trace, Watched, Work, fits, precondition, ranges,
};
use readpath_stack::{AnyWire, ReadCheck, Stack, Tags};
use readpath_workload::Workload;
use thiserror::Error;

/// Who loses the power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loses {
    /// Host and device: requests in flight are gone, and the host finds the device anew.
    Everything,
    /// The device only: the host sends the requests in flight again, and keeps its HPB entries until the device resets
    /// them.
    Device,
}

/// How the power is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerCuts {
    /// How often.
    pub cuts: u32,
    /// Who loses it.
    pub loses: Loses,
    /// How long it is away.
    pub off: Ns,
    /// Draws the moments.
    pub seed: u64,
}

impl PowerCuts {
    /// How long the power is away in all.
    fn time_without_power(&self) -> Ns {
        Ns(self.off.0.saturating_mul(u64::from(self.cuts)))
    }
}

/// The load under which the power is cut.
pub enum Load<'a> {
    /// Jobs or launches.
    Workload(&'a mut Workload),
    /// A trace and those before it, on unit [`LUN`].
    Trace {
        /// The traces.
        case: &'a ReplayCase,
        /// When their requests are submitted.
        mode: Mode,
    },
}

/// What moments are drawn from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moments {
    /// The requests that there will be. After that many have ended the power goes between any two events of the device.
    Requests(u64),
    /// The virtual time that the workload is given, time without power included.
    Time(Ns),
}

/// Why the power cannot be cut so.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PowerError {
    /// Without a known length no moments can be drawn.
    #[error("the workload has no known length; give its jobs a size, number_ios or runtime")]
    Endless,
    /// More cuts than requests.
    #[error("{cuts} power cuts need at least as many requests; the workload has {ios}")]
    TooMany {
        /// Cuts asked for.
        cuts: u32,
        /// Requests of the workload.
        ios: u64,
    },
    /// Nothing but time without power.
    #[error("{cuts} power cuts take {off}, and the workload runs for {runtime} only; cut less often or for less long")]
    TooShort {
        /// Cuts asked for.
        cuts: u32,
        /// Their time without power.
        off: Ns,
        /// Length of the workload.
        runtime: Ns,
    },
}

/// One power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    /// When.
    pub at: Ns,
    /// Requests in flight at the host.
    pub in_flight: u32,
    /// From the return of the power until the device was ready.
    pub took: Ns,
    /// What recovery did.
    pub recovery: Recovery,
}

/// What a run showed.
#[derive(Clone, Debug)]
pub struct PowerRun {
    /// The cuts in order.
    pub cuts: Vec<Cut>,
    /// What a recovery may take at most, by the configuration.
    pub longest: Recovery,
    /// Requests of the workload that ended.
    pub ios: u64,
    /// Blocks read and checked, at the end and before.
    pub checked: u64,
    /// Blocks with wrong data.
    pub wrong: u64,
    /// The first of these blocks.
    pub first_wrong: Option<ReadCheck>,
    /// Counters of the device.
    pub device: DeviceStats,
    /// What HPB did for the workload.
    pub hpb: HpbUse,
    /// What was counted before, between and after events; empty for a run without.
    pub spans: Vec<Span>,
    /// Virtual time at the end of the workload.
    pub end: Ns,
}

/// Whether something can be run through these power cuts, and what their moments are drawn from.
pub fn check(load: &Load, plan: &PowerCuts) -> Result<Moments, PowerError> {
    let PowerCuts { cuts, .. } = *plan;
    let ios = match load {
        Load::Workload(workload) => match run_time(workload) {
            Some(runtime) => {
                let off = plan.time_without_power();
                return match runtime > off {
                    true => Ok(Moments::Time(runtime)),
                    false => Err(PowerError::TooShort { cuts, off, runtime }),
                };
            }
            None => expected_ios(workload).ok_or(PowerError::Endless)?,
        },
        Load::Trace { case, .. } => case.ios(),
    };
    if u64::from(cuts) > ios {
        return Err(PowerError::TooMany { cuts, ios });
    }
    Ok(Moments::Requests(ios))
}

/// How long the jobs of all phases may run that end after a time, if there are any: their number of requests is not
/// known before.
fn run_time(workload: &Workload) -> Option<Ns> {
    let of_job = |job: &readpath_workload::Job| Some(job.start_delay + job.limits.runtime?);
    let of_phases = workload.phases.iter().map(|phase| phase.jobs.iter().filter_map(of_job).max());
    let sum = of_phases.flatten().fold(Ns::ZERO, |sum, time| Ns(sum.0.saturating_add(time.0)));
    (sum > Ns::ZERO).then_some(sum)
}

/// Runs `load` on what `setup` describes and cuts the power meanwhile, at `moments` that [`check`] has found. `probe`
/// sees every stage, and comes back in any case but that of a device which cannot be made. Wrong blocks are no error
/// here.
pub fn run<P: Probe>(
    setup: &Setup,
    load: Load,
    plan: &PowerCuts,
    moments: Moments,
    probe: P,
    observer: &mut impl Observer,
) -> (Result<PowerRun, ExecuteError>, Option<P>) {
    let wire = AnyWire::new(setup.encoded);
    let parts = Parts { preset: &setup.preset, host: setup.host, payload: Tags::default(), probe, wire };
    match parts.stack_for(Session { setup, load, plan, moments, observer }) {
        Ok((run, probe)) => (run, Some(probe)),
        Err(error) => (Err(error.into()), None),
    }
}

/// A run that is to be made.
struct Session<'a, O> {
    setup: &'a Setup,
    load: Load<'a>,
    plan: &'a PowerCuts,
    moments: Moments,
    observer: &'a mut O,
}

impl<P: Probe, O: Observer> Work<Tags, P, AnyWire> for Session<'_, O> {
    type Output = (Result<PowerRun, ExecuteError>, P);

    fn on<S: DieSched>(self, mut stack: Stack<S, Tags, P, AnyWire>) -> Self::Output {
        let run = self.run(&mut stack);
        (run, stack.device.into_probe())
    }
}

impl<O: Observer> Session<'_, O> {
    fn run<S: DieSched, P: Probe>(self, stack: &mut Stack<S, Tags, P, AnyWire>) -> Result<PowerRun, ExecuteError> {
        let Session { setup, mut load, plan, moments, observer } = self;
        fill(stack, setup, &load)?;
        let ready = stack.start(Ns::ZERO)?;
        let schedule = Schedule::new(&setup.events, stack, ready)?;
        let mut hooks = ((schedule, Watched(observer)), Cuts::new(plan, moments, ready));
        let mut runner = Runner::new(ready);
        work(stack, &mut load, &mut runner, &mut hooks)?;
        let ((mut schedule, mut watched), mut cuts) = hooks;
        let mut end = runner.now();
        while cuts.are_left() {
            if cuts.takes_host() {
                schedule.host_goes(stack);
            }
            end = cuts.late(stack, end)?;
            if !watched.watch(stack, cuts.ios, end) {
                return Err(RunError::Interrupted.into());
            }
        }
        let spans = schedule.end(stack, end);
        // Reads that check the data are no part of the workload.
        cuts.hpb.ended(stack);
        let mut runner = Runner::new(end);
        for (lun, first, blocks) in touched(&load, setup) {
            runner.run(stack, &mut ReadBack::new(lun, first, blocks), &mut watched)?;
        }
        let Cuts { cuts, hpb, ios, .. } = cuts;
        Ok(PowerRun {
            cuts,
            hpb,
            longest: setup.preset.device.longest_recovery(),
            ios,
            checked: stack.payload.checked,
            wrong: stack.payload.wrong,
            first_wrong: stack.payload.first_wrong,
            device: *stack.device.stats(),
            spans,
            end,
        })
    }
}

type Powered<S, P> = Stack<S, Tags, P, AnyWire>;

/// Writes the precondition into flash.
fn fill<S: DieSched, P: Probe>(stack: &mut Powered<S, P>, setup: &Setup, load: &Load) -> Result<(), ExecuteError> {
    match load {
        Load::Workload(workload) => {
            fits(workload, &setup.preset)?;
            precondition(stack, setup, workload)
        }
        Load::Trace { case, .. } => case.preload_to(stack, setup.precondition.layout, setup.seed),
    }
}

/// Runs the whole workload. Between phases of jobs the device becomes idle.
fn work<S: DieSched, P: Probe>(
    stack: &mut Powered<S, P>,
    load: &mut Load,
    runner: &mut Runner,
    hooks: &mut impl Hooks,
) -> Result<(), RunError> {
    match load {
        Load::Workload(Workload { launches: Some(launches), .. }) => {
            for cycle in 0..launches.cycles() {
                runner.run(stack, &mut Cycle::new(launches, cycle, LUN, runner.now()), hooks)?;
            }
        }
        Load::Workload(workload) => {
            for phase in &mut workload.phases {
                runner.run(stack, &mut Jobs::new(phase, runner.now(), Rest::Events), hooks)?;
            }
        }
        Load::Trace { case, mode } => {
            for (_, trace) in case.phases() {
                runner.run(stack, &mut Trace::new(&trace.ios, *mode, case.units.clone(), runner.now()), hooks)?;
            }
        }
    }
    Ok(())
}

/// Ranges of blocks that the workload has to do with: unit, first block, blocks.
fn touched(load: &Load, setup: &Setup) -> Vec<(u8, u32, u32)> {
    match load {
        Load::Workload(workload) => ranges(PreconditionRange::Files, workload, &setup.preset),
        Load::Trace { case, .. } => {
            let blocks = setup.preset.device.logical_blocks() as u32;
            case.touched(blocks).into_iter().flat_map(|(first, blocks)| case.units.split(first, blocks)).collect()
        }
    }
}
