// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine that protects and checks HPB entries, if the firmware core does not: a first-in-first-out server,
//! reserved when a command arrives at it. It knows how long that takes, not what an entry is worth.

use crate::hpb::entry_config::EntryConfig;
use crate::ids::TagRef;
use readpath_kit::{FrontQueue, Ns};

/// Who goes on when the engine is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Checked {
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
    line: FrontQueue<(Ns, Checked, TagRef)>,
    /// When the first of `line` is done.
    next: Ns,
}

impl Engine {
    /// An engine that has nothing to do.
    pub(crate) fn new(config: &EntryConfig) -> Self {
        let line = FrontQueue::with_capacity(0);
        Engine { config: *config, checks: config.engine_checks(), free: Ns::ZERO, line, next: Ns::NEVER }
    }

    /// What protects entries.
    pub(crate) fn config(&self) -> &EntryConfig {
        &self.config
    }

    /// Whether HPB READs go to it before the firmware core sees them.
    #[inline(always)]
    pub(crate) fn checks(&self) -> bool {
        self.checks
    }

    /// When it is done with something.
    #[inline(always)]
    pub(crate) fn next(&self) -> Ns {
        self.next
    }

    /// Takes what it is done with first.
    pub(crate) fn take(&mut self) -> Option<(Checked, TagRef)> {
        let (_, what, tag) = self.line.pop_front()?;
        self.next = self.line.front().map_or(Ns::NEVER, |next| next.0);
        Some((what, tag))
    }

    /// What it does and all that waits for it is lost.
    pub(crate) fn lose_power(&mut self) {
        self.line.clear();
        (self.free, self.next) = (Ns::ZERO, Ns::NEVER);
    }

    /// It begins nothing before `ready`.
    pub(crate) fn set_busy_until(&mut self, ready: Ns) {
        self.free = ready;
    }

    /// Reserves it for `span` from `now` on; returns from when to when.
    pub(crate) fn reserve(&mut self, now: Ns, span: Ns) -> (Ns, Ns) {
        let start = now.max(self.free);
        self.free = start + span;
        (start, self.free)
    }

    /// `tag` goes on at `end`, until when it has been reserved for it.
    pub(crate) fn will_be_done(&mut self, end: Ns, what: Checked, tag: TagRef) {
        self.line.push_back((end, what, tag));
        self.next = self.next.min(end);
    }
}
