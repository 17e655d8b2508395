// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts in the middle of a workload or of traces: at random moments the power goes and comes back, the device
//! recovers, the workload goes on, and at the end everything is read back and held against what may be there.
//!
//! Rules may stand between the workload and the device, which loses what they keep from it; that is told apart.
//!
//! Data is reduced to tags (see [`readpath_stack::Tags`]), so every block read tells whose it is and which version.

mod cuts;
mod hpb_use;
mod ruled;

pub use hpb_use::HpbUse;

use crate::drive::{Hooks, Rest};
use crate::error::RunError;
use crate::events::{Schedule, Span};
use crate::execute::{ExecuteError, Setup, fits, precondition};
use crate::jobs::Jobs;
use crate::launches::Cycle;
use crate::read_back::ReadBack;
use crate::replay::Traces;
use crate::request::LUN;
use crate::rules::{Due, RuleCount, RuleOrder};
use crate::runner::{Runner, on_units};
use crate::stacks::{Work, tapped};
use crate::tap::TapTo;
use crate::watch::{Observer, Watched};
use crate::zoned::{parts_of, refused};
use cuts::Cuts;
use readpath_device::{DeviceStats, Probe, Recovery};
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_stack::{AnyWire, ReadCheck, Stack, Tags};
use readpath_workload::Workload;
use ruled::{Injected, RuledSource};
use std::sync::Arc;

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
#[derive(Clone, PartialEq, Debug)]
pub struct PowerCuts {
    /// How often.
    pub cuts: u32,
    /// Who loses it.
    pub loses: Loses,
    /// How long it is away.
    pub off: Ns,
    /// Draws the moments, and what rules leave to chance.
    pub seed: u64,
    /// Rules for the requests of the workload, in times from its beginning on, which
    /// [`rules::check`](crate::rules::check) has let pass.
    pub faults: Arc<[Due<RuleOrder>]>,
}

impl PowerCuts {
    /// How long the power is away in all.
    pub fn time_without_power(&self) -> Ns {
        Ns(self.off.0.saturating_mul(u64::from(self.cuts)))
    }
}

/// The load under which the power is cut.
pub enum Load<'a> {
    /// Jobs or launches.
    Workload(&'a mut Workload),
    /// Traces.
    Traces(Traces<'a>),
}

/// What moments are drawn from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moments {
    /// The requests that there will be. After that many have ended the power goes between any two events of the device.
    Requests(u64),
    /// The virtual time that the workload is given, time without power included.
    Time(Ns),
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
    /// Blocks that are wrong because of a rule: the device did what it was asked.
    pub wrong_by_rule: u64,
    /// The first of these blocks.
    pub first_by_rule: Option<ReadCheck>,
    /// What rules have done.
    pub rules: Vec<RuleCount>,
    /// Places of the orders that were due later than the workload ended.
    pub never_due: Vec<String>,
    /// Counters of the device.
    pub device: DeviceStats,
    /// What HPB did for the workload.
    pub hpb: HpbUse,
    /// What was counted before, between and after events; empty for a run without.
    pub spans: Vec<Span>,
    /// Virtual time at the end of the workload.
    pub end: Ns,
}

/// Runs `load` on what `setup` describes and cuts the power meanwhile, at as many of `moments` as there are
/// cuts. At the end the blocks of `touched` are read back: unit, first block, blocks. The tap sees every stage, and
/// comes back in any case but that of a device which cannot be made. Wrong blocks are no error here.
pub fn run<'t>(
    setup: &Setup,
    load: Load,
    touched: &[(u8, u32, u32)],
    plan: &PowerCuts,
    moments: Moments,
    tap: Option<TapTo<'t>>,
    observer: &mut dyn Observer,
) -> (Result<PowerRun, ExecuteError>, Option<TapTo<'t>>) {
    let session = Session { setup, load, touched, plan, moments, observer };
    let tags = if plan.faults.is_empty() { Tags::default() } else { Tags::with_rules() };
    tapped(&setup.preset, setup.host, tags, setup.encoded, tap, session)
}

/// A run that is to be made.
struct Session<'a> {
    setup: &'a Setup,
    load: Load<'a>,
    touched: &'a [(u8, u32, u32)],
    plan: &'a PowerCuts,
    moments: Moments,
    observer: &'a mut dyn Observer,
}

impl<P: Probe> Work<Tags, P, AnyWire> for Session<'_> {
    type Output = (Result<PowerRun, ExecuteError>, P);

    fn on<S: DieSched>(self, mut stack: Stack<S, Tags, P, AnyWire>) -> Self::Output {
        let run = self.run(&mut stack);
        (run, stack.device.into_probe())
    }
}

impl Session<'_> {
    fn run<S: DieSched, P: Probe>(self, stack: &mut Stack<S, Tags, P, AnyWire>) -> Result<PowerRun, ExecuteError> {
        let Session { setup, mut load, touched, plan, moments, observer } = self;
        let units = || touched.iter().map(|(lun, ..)| *lun);
        refused::of_power_cuts(units(), &setup.preset, (plan, &load))?;
        refused::of_events(&setup.events, units(), &setup.preset)?;
        fill(stack, setup, &load)?;
        let ready = stack.start(Ns::ZERO)?;
        let schedule = Schedule::new(&setup.events, stack, ready)?;
        let mut hooks = ((schedule, Watched(observer)), Cuts::new(plan, moments, ready));
        let mut runner = Runner::under_power_cuts(ready);
        let units = setup.preset.device.lus.iter().map(|unit| unit.blocks).collect();
        let mut injected = Injected::new(&plan.faults, units, ready, plan.seed);
        work(stack, &mut load, &mut runner, (&mut hooks, &mut injected))?;
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
        for &(lun, first, blocks) in touched {
            // Above a write pointer there are zeros, which are checked too.
            for (first, blocks) in parts_of(&setup.preset, lun, first, blocks) {
                runner.run(stack, &mut ReadBack::new(lun, first, blocks), &mut watched)?;
            }
        }
        let Cuts { cuts, hpb, ios, .. } = cuts;
        let (rules, never_due) = injected.end();
        Ok(PowerRun {
            cuts,
            hpb,
            longest: setup.preset.device.longest_recovery(),
            ios,
            checked: stack.payload.checked,
            wrong: stack.payload.wrong,
            first_wrong: stack.payload.first_wrong,
            wrong_by_rule: stack.payload.wrong_by_rule,
            first_by_rule: stack.payload.first_by_rule,
            rules,
            never_due,
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
        Load::Traces(traces) => traces.preload(stack, &setup.preset),
    }
}

/// Runs the whole workload. Between phases of jobs the device becomes idle.
fn work<S: DieSched, P: Probe>(
    stack: &mut Powered<S, P>,
    load: &mut Load,
    runner: &mut Runner,
    (hooks, injected): (&mut impl Hooks, &mut Injected),
) -> Result<(), RunError> {
    match load {
        Load::Workload(Workload { launches: Some(launches), .. }) => {
            for cycle in 0..launches.cycles() {
                let source = Cycle::new(launches, cycle, LUN, runner.now());
                runner.run(stack, &mut RuledSource { source, injected }, hooks)?;
            }
        }
        Load::Workload(workload) => {
            for phase in &mut workload.phases {
                let (zbd, luns) = on_units(phase);
                let source = Jobs::new(phase, runner.now(), Rest::Events);
                runner.run_jobs(stack, &mut RuledSource { source, injected }, (&zbd, &luns), hooks)?;
            }
        }
        Load::Traces(traces) => {
            for (_, trace) in &traces.phases {
                let source = traces.source(trace, runner.now());
                runner.run(stack, &mut RuledSource { source, injected }, hooks)?;
            }
        }
    }
    Ok(())
}
