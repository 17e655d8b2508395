// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one place that decides which code a run uses: that of one die scheduler, or that of all. Knows nothing of what
//! is done with a stack.

use crate::execute::ExecuteError;
use crate::tap::TapTo;
use readpath_config::DevicePreset;
use readpath_device::{MediaMode, Probe};
use readpath_flash::{AnySched, DieSched, Lean, Scheduler};
use readpath_host::HostConfig;
use readpath_stack::{AnyWire, Payload, Stack, StackError, Wire};

/// What a stack is made of.
pub struct Parts<'a, X, P, W> {
    /// Device and delays.
    pub preset: &'a DevicePreset,
    /// Host driver.
    pub host: HostConfig,
    /// The data.
    pub payload: X,
    /// The probe of every stage.
    pub probe: P,
    /// How requests are encoded.
    pub wire: W,
}

/// A computation on a stack, whichever scheduler its device has.
pub trait Work<X: Payload, P: Probe, W: Wire> {
    /// Its result.
    type Output;

    /// Runs it.
    fn on<S: DieSched>(self, stack: Stack<S, X, P, W>) -> Self::Output;
}

impl<X: Payload, P: Probe, W: Wire> Parts<'_, X, P, W> {
    /// Does `work` with the stack of these parts. Code compiled for `lean` alone is fastest but takes longest to build,
    /// so only plain runs have it.
    pub fn stack_for<T: Work<X, P, W>>(self, work: T) -> Result<T::Output, StackError> {
        // Two constants in two branches, so that the compiler leaves out what neither reaches.
        if P::ACTIVE {
            return Ok(work.on::<AnySched>(self.build()?));
        }
        if X::Mode::ACTIVE {
            return Ok(work.on::<AnySched>(self.build()?));
        }
        match self.preset.device.scheduler {
            Scheduler::Lean => Ok(work.on::<Lean>(self.build()?)),
            Scheduler::Queued | Scheduler::Exact => Ok(work.on::<AnySched>(self.build()?)),
        }
    }

    fn build<S: DieSched>(self) -> Result<Stack<S, X, P, W>, StackError> {
        let Parts { preset, host, payload, probe, wire } = self;
        Stack::new(&preset.device, host, preset.delays, payload, probe, wire)
    }
}

/// Does `work` with a stack of `preset`, `host` and `payload`. The tap sees every stage, and comes back in any case but
/// that of a device which cannot be made.
pub(crate) fn tapped<'t, X: Payload, R, T>(
    preset: &DevicePreset,
    host: HostConfig,
    payload: X,
    encoded: bool,
    tap: Option<TapTo<'t>>,
    work: T,
) -> (Result<R, ExecuteError>, Option<TapTo<'t>>)
where
    T: Work<X, (), AnyWire, Output = (Result<R, ExecuteError>, ())>,
    T: Work<X, TapTo<'t>, AnyWire, Output = (Result<R, ExecuteError>, TapTo<'t>)>,
{
    let wire = AnyWire::new(encoded);
    match tap {
        None => match (Parts { preset, host, payload, probe: (), wire }).stack_for(work) {
            Ok((shown, ())) => (shown, None),
            Err(error) => (Err(error.into()), None),
        },
        Some(probe) => match (Parts { preset, host, payload, probe, wire }).stack_for(work) {
            Ok((shown, tap)) => (shown, Some(tap)),
            Err(error) => (Err(error.into()), None),
        },
    }
}
