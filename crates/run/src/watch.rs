// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observers of a run: they see its progress, look at host and device, and may stop it. They submit nothing.

use crate::drive::Hooks;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_stack::{Payload, Stack, Wire};

/// Observes a run from outside.
pub trait Observer {
    /// `ios` requests have ended in this phase, at virtual time `now`: none at its beginning, all at its end. False
    /// stops the run.
    fn progress(&mut self, ios: u64, now: Ns) -> bool;

    /// Host and device between two requests at virtual time `now`: as often as [`Observer::progress`] is called, and at
    /// the end. What it changes, a user of the host could have changed then.
    fn look<S: DieSched, X: Payload, P: Probe, W: Wire>(&mut self, _stack: &mut Stack<S, X, P, W>, _now: Ns) {}
}

/// Observes nothing.
impl Observer for () {
    fn progress(&mut self, _: u64, _: Ns) -> bool {
        true
    }
}

/// An observer as a hook.
pub struct Watched<'a, O>(pub &'a mut O);

impl<O: Observer> Hooks for Watched<'_, O> {
    #[inline(always)]
    fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        ios: u64,
        now: Ns,
    ) -> bool {
        let goes_on = self.0.progress(ios, now);
        self.0.look(stack, now);
        goes_on
    }
}
