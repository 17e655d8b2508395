// SPDX-License-Identifier: MIT OR Apache-2.0
//! Injected failures of flash, while the device is in use.

use super::UfsDevice;
use crate::back::{Failable, Failing, MediaMode, Probe};
use readpath_flash::DieSched;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Replaces the configured faults of one kind of operation.
    pub fn set_failing(&mut self, what: Failable, failing: Failing) {
        if what == Failable::Program && failing != Failing::default() {
            self.ftl.expect_failing_programs();
        }
        self.back.set_failing(what, failing);
    }

    /// Restarts the stream of random faults with `seed`.
    pub fn seed_faults(&mut self, seed: u64) {
        self.back.seed_faults(seed);
    }
}
