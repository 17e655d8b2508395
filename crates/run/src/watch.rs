// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observers of a run: they see its progress, show its state, and may stop it. They submit nothing.

use crate::drive::Hooks;
use crate::live::Publisher;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_stack::{Payload, Stack, Wire};

/// Observes a run from outside. It is called every few thousand requests, so it need not be known at compile time.
pub trait Observer {
    /// `ios` requests have ended in this phase, at virtual time `now`: none at its beginning, all at its end. False
    /// stops the run.
    fn progress(&mut self, ios: u64, now: Ns) -> bool;

    /// Where the state of host and device is shown, as often as [`Observer::progress`] is called, and the requests of
    /// all phases that have ended.
    fn shows(&self) -> Option<(&Publisher<'_>, u64)> {
        None
    }
}

/// Observes nothing.
impl Observer for () {
    fn progress(&mut self, _: u64, _: Ns) -> bool {
        true
    }
}

/// An observer as a hook.
pub struct Watched<'a>(pub &'a mut dyn Observer);

impl Watched<'_> {
    /// Shows the state at `now`, if it is shown.
    pub(crate) fn look<S: DieSched, X: Payload, P: Probe, W: Wire>(&self, stack: &mut Stack<S, X, P, W>, now: Ns) {
        if let Some((publisher, ios)) = self.0.shows() {
            publisher.look(stack, now, ios);
        }
    }
}

impl Hooks for Watched<'_> {
    #[inline(always)]
    fn watch<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        ios: u64,
        now: Ns,
    ) -> bool {
        let goes_on = self.0.progress(ios, now);
        self.look(stack, now);
        goes_on
    }
}
