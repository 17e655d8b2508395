// SPDX-License-Identifier: MIT OR Apache-2.0
//! When HPB entries reach the engine that checks them, and when the engine is done.

use crate::back::{Checked, MediaMode, Probe, Resource, StageOf};
use crate::config::{CheckOn, EntryConfig};
use crate::device::UfsDevice;
use readpath_flash::DieSched;
use readpath_kit::Ns;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// The HPB READ `tag` has arrived: its entries are checked first.
    #[inline(never)]
    pub(crate) fn check_on_engine(&mut self, now: Ns, tag: u8) {
        let slot = self.front.slot(tag);
        let entries = if slot.hpb.listed { u64::from(slot.blocks.max(1)) } else { 1 };
        let span = Ns(self.back.engine().config().check.0 * entries);
        self.occupy_engine(now, span, Checked::Read, tag);
    }

    /// The firmware core has found the addresses of all entries that the HPB READ BUFFER `tag` asks for.
    pub(crate) fn entries_found(&mut self, now: Ns, tag: u8) {
        let EntryConfig { check_on, make, .. } = *self.back.engine().config();
        if check_on == CheckOn::Firmware || make == Ns::ZERO {
            return self.hand_out(now, tag);
        }
        let span = Ns(make.0 * self.entries_wanted(tag) as u64);
        self.occupy_engine(now, span, Checked::HandOut, tag);
    }

    fn occupy_engine(&mut self, now: Ns, span: Ns, what: Checked, tag: u8) {
        let (start, end) = self.back.engine_mut().reserve(now, span);
        if P::ACTIVE {
            self.back.probe_mut().stage(StageOf::Request(tag), Resource::Engine, start, end);
        }
        self.back.engine_mut().will_be_done(end, what, self.front.tag_ref(tag));
        self.find_rare();
    }

    /// The engine is done with the first of its line.
    pub(crate) fn engine_done(&mut self, now: Ns) {
        let Some((what, tag)) = self.back.engine_mut().take() else { return };
        if !self.front.is_alive(tag) {
            return;
        }
        match what {
            // The entries are judged now, so that changes during the check count.
            Checked::Read => {
                self.front.slot_mut(tag.tag).hpb.checked = true;
                self.read(now, tag.tag);
            }
            Checked::HandOut => self.hand_out(now, tag.tag),
        }
    }

    /// Reserves the engine or the firmware for a second check of `entries` entries, which no request waits for.
    pub(crate) fn check_again(&mut self, now: Ns, entries: u32) {
        let EntryConfig { check_on, check, .. } = *self.back.engine().config();
        let span = Ns(check.0 * u64::from(entries));
        match check_on {
            CheckOn::Firmware => self.back.cpu_mut().occupy(now, span),
            CheckOn::Engine => {
                self.back.engine_mut().reserve(now, span);
            }
        }
    }
}
