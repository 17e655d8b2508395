// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts in the middle of a workload, a trace or launches: at random moments the power goes and comes back, the
//! device recovers, the workload goes on, and at the end everything is read back and held against what may be there. It
//! opens no file.
//!
//! Data is reduced to tags (see [`readpath_stack::Tags`]), so every block read tells whose it is and which version.

mod document;
mod faults;
mod question;

pub use document::{PowerFigures, PowerTexts, document};
pub use faults::read_faults;
pub use question::{Cutting, Cuttings};
pub use readpath_run::power_cuts::{Cut, HpbUse, Loses, Moments, PowerCuts, PowerRun};

use crate::replay::{Mode, ReplayCase};
use crate::runs::expected_ios;
use readpath_config::experiment::PreconditionRange;
use readpath_kit::Ns;
use readpath_run::{ExecuteError, Observer, Setup, TapTo, power_cuts, ranges};
use readpath_workload::Workload;
use thiserror::Error;

/// The load under which the power is cut.
pub enum Load<'a> {
    /// Jobs or launches.
    Workload(&'a mut Workload),
    /// A trace and those before it, on unit 0.
    Trace {
        /// The traces.
        case: &'a ReplayCase,
        /// When their requests are submitted.
        mode: Mode,
    },
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
    /// A rule does not fit the device.
    #[error("{0}")]
    Faults(String),
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

/// Whether something can be run through these power cuts, and what their moments are drawn from.
pub fn check(load: &Load, plan: &PowerCuts) -> Result<Moments, PowerError> {
    let cuts = plan.cuts;
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

/// Runs `load` on what `setup` describes and cuts the power meanwhile, at `moments` that [`check`] has found. The tap
/// sees every stage, and comes back in any case but that of a device which cannot be made. Wrong blocks are no error
/// here.
pub fn run<'t>(
    setup: &Setup,
    load: Load,
    plan: &PowerCuts,
    moments: Moments,
    tap: Option<TapTo<'t>>,
    observer: &mut dyn Observer,
) -> (Result<PowerRun, ExecuteError>, Option<TapTo<'t>>) {
    let touched = touched(&load, setup);
    let load = match load {
        Load::Workload(workload) => power_cuts::Load::Workload(workload),
        Load::Trace { case, mode } => {
            power_cuts::Load::Traces(case.traces(mode, &setup.preset, setup.precondition.layout, setup.seed))
        }
    };
    power_cuts::run(setup, load, &touched, plan, moments, tap, observer)
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
