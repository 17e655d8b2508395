// SPDX-License-Identifier: MIT OR Apache-2.0
//! Injected failures of flash, while the device is in use.

use super::UfsDevice;
use crate::back::{Failable, Failing, MediaMode, Probe};
use readpath_flash::DieSched;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Which operations fail from now on, instead of what the configuration says.
    pub fn set_failing(&mut self, what: Failable, failing: Failing) {
        if what == Failable::Program && failing != Failing::default() {
            self.ftl.expect_failing_programs();
        }
        self.back.set_failing(what, failing);
    }

    /// Faults by chance are drawn from a stream that begins with `seed`.
    pub fn seed_faults(&mut self, seed: u64) {
        self.back.seed_faults(seed);
    }
}
