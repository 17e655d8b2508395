// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss and return of power. Flash translation decides what flash then holds and how it is recovered.

use crate::back::{Hardware, MediaMode, Probe};
use crate::device::UfsDevice;
use crate::ftl::Recovery;
use crate::ftl::bytes::{FlashArray, LoadError, Own, Sealed};
use readpath_flash::DieSched;
use readpath_kit::Ns;
use readpath_proto::query::flag;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Cuts the power at `now`. Every program in progress is torn, every erase in progress leaves its blocks
    /// undefined, and SRAM is lost. Until [`UfsDevice::recover`] the device answers nothing.
    pub fn power_cut(&mut self, now: Ns) {
        self.ftl.lose_power(now, &mut self.back);
        self.lose_sram();
    }

    /// Recovers the device from flash, beginning at `now`, not before the cut. The power may be cut again before the
    /// device is ready.
    pub fn recover(&mut self, now: Ns) -> Recovery {
        let recovery = self.ftl.recover(now, &mut self.back);
        let ready = recovery.ready_at;
        self.front.set_busy_until(ready);
        self.hpb.recover(self.ftl.generations_durable());
        self.pump(ready);
        // What idle time was to do before the cut is still to be done.
        self.arm_background(ready);
        recovery
    }

    /// From now on the device reports everything that it programs, so that another device can begin from it: see
    /// [`crate::MediaOp::Own`] and [`crate::MediaOp::Programmed`]. The device must not have been written to.
    pub fn keep_in_flash(&mut self) {
        self.ftl.keep_in_flash();
    }

    /// Takes the metadata to be stored, once for each [`crate::MediaOp::Own`].
    pub fn take_own(&mut self) -> Option<Own> {
        self.ftl.take_own()
    }

    /// Lists everything that flash holds, for a medium from which another device is to begin, and returns the bytes
    /// that [`FlashArray::factory`] must return. The device must be idle.
    ///
    /// # Errors
    /// The work that is still in progress.
    pub fn seal(&mut self, each: impl FnMut(Sealed)) -> Result<Vec<u8>, &'static str> {
        if self.rpmb.is_programmed() {
            return Err("a medium begins without a key of RPMB, and the device has one");
        }
        if self.front.target().query.has_settings() {
            return Err("a medium begins with the attributes of a new device, and a host has written some");
        }
        self.ftl.seal(each)
    }

    /// Switches a new device on at `now` with the contents of `array`: the state of the device that wrote it at the
    /// moment when it lost its power.
    ///
    /// # Errors
    /// The array cannot be read, is of another device, or is damaged where the device cannot do without. The
    /// device must then not be used.
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
        // Counted as of the cut: a superblock whose blocks are all bad may not be empty, and so not retired, yet.
        let (retired, bad) = self.ftl.given_up();
        let stats = self.back.stats();
        (stats.retired_superblocks, stats.bad_blocks) = (retired.into(), bad.into());
        Ok(recovery)
    }

    /// For tests: makes the device forget the order of spare areas within `span` writes and trims, and renumber
    /// writes from `renumber_at` on. The device must not have been written to.
    pub fn limit_numbers(&mut self, span: u32, renumber_at: u32) {
        self.ftl.limit_numbers(span, renumber_at);
    }

    /// For tests: changes the key of HPB entries after 2^`bits` hand-outs instead of 2^32. There must not have been
    /// any.
    pub fn limit_generations(&mut self, bits: u32) {
        self.hpb.limit_generations(bits);
    }
}
