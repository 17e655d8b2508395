// SPDX-License-Identifier: MIT OR Apache-2.0
//! The power goes and comes back. What flash holds then, and what is made of it, is flash translation's business.

use crate::back::{Hardware, MediaMode, Probe};
use crate::device::UfsDevice;
use crate::ftl::Recovery;
use crate::ftl::bytes::{FlashArray, LoadError, Own, Sealed};
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_proto::query::flag;

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

    /// From now on the device reports everything that it programs, so that another can begin from it: see
    /// [`crate::MediaOp::Own`] and [`crate::MediaOp::Programmed`]. It has not been written to.
    pub fn keep_in_flash(&mut self) {
        self.ftl.keep_in_flash();
    }

    /// Takes what the device keeps besides data, once for each [`crate::MediaOp::Own`].
    pub fn take_own(&mut self) -> Option<Own> {
        self.ftl.take_own()
    }

    /// Lists everything that flash holds, for a medium from which another device is to begin, and returns what
    /// [`FlashArray::factory`] has to give back. The device has nothing to do.
    ///
    /// # Errors
    /// What is still under way.
    pub fn seal(&mut self, each: impl FnMut(Sealed)) -> Result<Vec<u8>, &'static str> {
        if self.rpmb.is_programmed() {
            return Err("a medium begins without a key of RPMB, and the device has one");
        }
        if self.front.target().query.has_settings() {
            return Err("a medium begins with the attributes of a new device, and a host has written some");
        }
        self.ftl.seal(each)
    }

    /// A new device is switched on at `now` with what `array` holds: the state of the device that wrote it, at the
    /// moment when it lost its power.
    ///
    /// # Errors
    /// The array cannot be read, is of another device, or is damaged where the device cannot do without. The device is
    /// then of no use.
    pub fn power_on_with(&mut self, now: Ns, array: &mut impl FlashArray) -> Result<Recovery, LoadError> {
        self.ftl.load(array, &mut self.back)?;
        self.rpmb.begin_with(array.rpmb()?);
        if let Some(settings) = array.settings()? {
            let query = &mut self.front.target_mut().query;
            query.restore(&settings);
            if let (Some(on), true) = (query.written_flag(flag::HPB_EN), self.hpb.v2().is_some()) {
                self.hpb.set_enabled(on);
            }
        }
        let recovery = self.recover(now);
        // As far as it had come with that: a superblock whose blocks are all bad may not be empty yet.
        let (retired, bad) = self.ftl.given_up();
        let stats = self.back.stats();
        (stats.retired_superblocks, stats.bad_blocks) = (retired.into(), bad.into());
        Ok(recovery)
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
