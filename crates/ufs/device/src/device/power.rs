// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power goes and comes back. What flash holds then, and what is made of it, is flash translation's business.

use crate::back::{MediaMode, Probe};
use crate::device::UfsDevice;
use crate::ftl::Recovery;
use readpath_flash::DieSched;
use readpath_kit::Ns;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// The power goes away at `now`. Every program in progress is torn, every erase in progress leaves its blocks
    /// undefined, and SRAM is lost. Until [`UfsDevice::recover`] the device answers nothing.
    pub fn power_cut(&mut self, now: Ns) {
        self.ftl.lose_power(now, &mut self.back);
        self.lose_sram();
    }

    /// Brings the device back from what flash holds, beginning at `now`, not before the cut. The power may be cut again
    /// before it is ready.
    pub fn recover(&mut self, now: Ns) -> Recovery {
        let recovery = self.ftl.recover(now, &mut self.back);
        let ready = recovery.ready_at;
        self.front.set_busy_until(ready);
        self.hpb.recover(self.ftl.generations_durable());
        self.pump(ready);
        recovery
    }

    /// Lets the order of spare areas be forgotten within `span` writes and trims, and numbers be counted anew from
    /// `renumber_at` on, so that tests see it happen. There have been none yet.
    pub fn limit_numbers(&mut self, span: u32, renumber_at: u32) {
        self.ftl.limit_numbers(span, renumber_at);
    }

    /// Lets the key of HPB entries change after 2^`bits` hand-outs instead of 2^32, so that tests see it happen. There
    /// have been none yet.
    pub fn limit_generations(&mut self, bits: u32) {
        self.hpb.limit_generations(bits);
    }
}
