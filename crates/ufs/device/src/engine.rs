// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine that protects and checks HPB entries, if the firmware core does not: a first-in-first-out server, reserved
//! when a command arrives at it. It knows how long that takes, not what an entry is worth.

use crate::device::UfsDevice;
use crate::entry_config::{CheckOn, EntryConfig};
use crate::media::MediaMode;
use crate::probe::{Probe, Resource, StageOf};
use readpath_flash::DieSched;
use readpath_kit::{FrontQueue, Ns};

/// Who goes on when the engine is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// The entries of an HPB READ have been checked.
    Read,
    /// Those of an HPB READ BUFFER have been protected.
    HandOut,
}

/// See the module.
pub(crate) struct Engine {
    config: EntryConfig,
    checks: bool,
    free: Ns,
    line: FrontQueue<(Ns, Next, u8, u32)>,
    /// When the first of `line` is done.
    next: Ns,
}

impl Engine {
    /// An engine that has nothing to do.
    pub fn new(config: &EntryConfig) -> Self {
        let line = FrontQueue::with_capacity(0);
        Engine { config: *config, checks: config.engine_checks(), free: Ns::ZERO, line, next: Ns::NEVER }
    }

    /// What protects entries.
    pub fn config(&self) -> &EntryConfig {
        &self.config
    }

    /// Whether HPB READs go to it before the firmware core sees them.
    #[inline(always)]
    pub fn checks(&self) -> bool {
        self.checks
    }

    /// When it is done with something.
    #[inline(always)]
    pub fn next(&self) -> Ns {
        self.next
    }

    /// What it does and all that waits for it is lost.
    pub fn lose_power(&mut self) {
        self.line.clear();
        (self.free, self.next) = (Ns::ZERO, Ns::NEVER);
    }

    /// It begins nothing before `ready`.
    pub fn set_busy_until(&mut self, ready: Ns) {
        self.free = ready;
    }

    /// Reserves it for `span` from `now` on; returns from when to when.
    fn reserve(&mut self, now: Ns, span: Ns) -> (Ns, Ns) {
        let start = now.max(self.free);
        self.free = start + span;
        (start, self.free)
    }
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// The HPB READ `tag` is here: its entries are checked before anything else happens to it.
    #[inline(never)]
    pub(crate) fn check_on_engine(&mut self, now: Ns, tag: u8) {
        let slot = &self.slots[usize::from(tag)];
        let entries = if slot.listed { u64::from(slot.blocks.max(1)) } else { 1 };
        let span = Ns(self.engine.config.check.0 * entries);
        self.occupy_engine(now, span, Next::Read, tag);
    }

    /// The firmware core has found the addresses of all entries that the HPB READ BUFFER `tag` asks for.
    pub(crate) fn entries_found(&mut self, now: Ns, tag: u8) {
        let EntryConfig { check_on, make, .. } = self.engine.config;
        if check_on == CheckOn::Firmware || make == Ns::ZERO {
            return self.hand_out(now, tag);
        }
        let span = Ns(make.0 * self.entries_wanted(tag) as u64);
        self.occupy_engine(now, span, Next::HandOut, tag);
    }

    fn occupy_engine(&mut self, now: Ns, span: Ns, next: Next, tag: u8) {
        let (start, end) = self.engine.reserve(now, span);
        if P::ACTIVE {
            self.probe.stage(StageOf::Request(tag), Resource::Engine, start, end);
        }
        let life = self.slots[usize::from(tag)].life;
        self.engine.line.push_back((end, next, tag, life));
        self.engine.next = self.engine.next.min(end);
        self.find_rare();
    }

    /// The engine is done with the first of its line.
    pub(crate) fn engine_done(&mut self, now: Ns) {
        let Some((_, next, tag, life)) = self.engine.line.pop_front() else { return };
        self.engine.next = self.engine.line.front().map_or(Ns::NEVER, |next| next.0);
        if !self.is_alive(tag, life) {
            return;
        }
        match next {
            // Whatever changed meanwhile: what the entries are worth is decided now.
            Next::Read => {
                self.slots[usize::from(tag)].checked = true;
                self.read(now, tag);
            }
            Next::HandOut => self.hand_out(now, tag),
        }
    }

    /// So many entries are checked again, which nobody waits for.
    pub(crate) fn check_again(&mut self, now: Ns, entries: u32) {
        let EntryConfig { check_on, check, .. } = self.engine.config;
        let span = Ns(check.0 * u64::from(entries));
        match check_on {
            CheckOn::Firmware => self.occupy_firmware(now, span),
            CheckOn::Engine => {
                self.engine.reserve(now, span);
            }
        }
    }
}
