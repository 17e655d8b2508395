// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one place where the die scheduler that a preset names becomes a type. Knows nothing of what is done with a
//! stack.

use readpath_config::{DevicePreset, Scheduler};
use readpath_device::Probe;
use readpath_flash::{DieSched, Exact, Lean, Queued};
use readpath_host::HostConfig;
use readpath_stack::{Payload, Stack, StackError, Wire};

/// What a stack is made of.
pub struct Parts<'a, X, P, W> {
    /// Device, delays and scheduler.
    pub preset: &'a DevicePreset,
    /// Host driver.
    pub host: HostConfig,
    /// The data.
    pub payload: X,
    /// Who sees every stage.
    pub probe: P,
    /// How requests cross.
    pub wire: W,
}

/// Something to be done with a stack, whichever scheduler its device has.
pub trait Work<X: Payload, P: Probe, W: Wire> {
    /// What comes of it.
    type Output;

    /// Does it.
    fn on<S: DieSched>(self, stack: Stack<S, X, P, W>) -> Self::Output;
}

impl<X: Payload, P: Probe, W: Wire> Parts<'_, X, P, W> {
    /// Does `work` with the stack of these parts.
    pub fn stack_for<T: Work<X, P, W>>(self, work: T) -> Result<T::Output, StackError> {
        match self.preset.scheduler {
            Scheduler::Lean => Ok(work.on::<Lean>(self.build()?)),
            Scheduler::Queued => Ok(work.on::<Queued>(self.build()?)),
            Scheduler::Exact => Ok(work.on::<Exact>(self.build()?)),
        }
    }

    fn build<S: DieSched>(self) -> Result<Stack<S, X, P, W>, StackError> {
        let Parts { preset, host, payload, probe, wire } = self;
        Stack::new(&preset.device, host, preset.delays, payload, probe, wire)
    }
}
