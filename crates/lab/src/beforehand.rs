// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds out before the first of several runs whether each host can have the memory for HPB that it was given, so that
//! no figures of other runs are lost to one that cannot begin. What tables take is known to the host alone, so hosts
//! look at their devices, which are empty.

use crate::replay::ReplayVariant;
use crate::runs::{ExperimentError, Plan};
use readpath_config::{DevicePreset, Event, EventKind};
use readpath_flash::Lean;
use readpath_host::HostConfig;
use readpath_kit::Ns;
use readpath_run::{ExecuteError, Schedule, limit};
use readpath_stack::{AnyWire, NoData, Stack};

/// Device, host and what limits its memory in the middle of the run.
struct Trial<'a> {
    preset: &'a DevicePreset,
    host: &'a HostConfig,
    events: &'a [Event],
    limits: &'a [(Ns, u64)],
}

impl Trial<'_> {
    fn is_same(&self, other: &Trial) -> bool {
        self.host == other.host
            && self.preset.device == other.preset.device
            && self.events == other.events
            && self.limits == other.limits
    }

    /// Whether the host's memory is limited, so that the limit may be too small.
    fn is_limited(&self) -> bool {
        let pressed = self.events.iter().any(|event| matches!(event.kind, EventKind::Pressure { .. }));
        self.host.hpb.is_some_and(|hpb| {
            hpb.memory_bytes.is_some() || hpb.max_map_bytes.is_some() || pressed || !self.limits.is_empty()
        })
    }

    fn check(&self) -> Result<(), ExecuteError> {
        let Trial { preset, host, events, limits } = *self;
        let wire = AnyWire::new(false);
        let mut stack =
            Stack::<Lean, NoData, (), AnyWire>::new(&preset.device, *host, preset.delays, NoData, (), wire)?;
        let now = stack.start(Ns::ZERO)?;
        Schedule::new(events, &stack, now)?;
        Ok(limit(&mut stack, limits, now)?)
    }
}

/// Whether the host of each run that is planned can have the memory that it was given, now and after events.
///
/// # Errors
/// That of the first which cannot.
pub fn plans<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> Result<(), ExperimentError> {
    all(plans.into_iter().map(|plan| {
        let setup = &plan.setup;
        let trial = Trial { preset: &setup.preset, host: &setup.host, events: &setup.events, limits: &[] };
        (plan.case.as_str(), plan.variant.as_str(), trial)
    }))
}

/// The same of the variants of a replay, whose first case is called `case`.
pub fn variants<'a>(
    case: &'a str,
    variants: impl IntoIterator<Item = &'a ReplayVariant>,
) -> Result<(), ExperimentError> {
    all(variants.into_iter().map(|v| {
        (case, v.name.as_str(), Trial { preset: &v.preset, host: &v.host, events: &v.events, limits: &v.limits })
    }))
}

fn all<'a>(trials: impl Iterator<Item = (&'a str, &'a str, Trial<'a>)>) -> Result<(), ExperimentError> {
    let mut passed: Vec<Trial> = Vec::new();
    for (case, variant, trial) in trials.filter(|(.., trial)| trial.is_limited()) {
        if passed.iter().any(|other| other.is_same(&trial)) {
            continue;
        }
        let run = |error| ExperimentError::Run { case: case.to_owned(), variant: variant.to_owned(), error };
        trial.check().map_err(run)?;
        passed.push(trial);
    }
    Ok(())
}
