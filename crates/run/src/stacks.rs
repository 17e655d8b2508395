// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one place that decides which code a run uses: that of one die scheduler, or that of all. Knows nothing of what
//! is done with a stack.

use readpath_config::DevicePreset;
use readpath_device::{MediaMode, Probe};
use readpath_flash::{AnySched, DieSched, Lean, Scheduler};
use readpath_host::HostConfig;
use readpath_stack::{Payload, Stack, StackError, Wire};

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
