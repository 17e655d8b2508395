// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine that protects and checks HPB entries, if the firmware core does not: a first-in-first-out server,
//! reserved when a command arrives. It knows times, not whether an entry is good.

use crate::config::EntryConfig;
use crate::ids::TagRef;
use readpath_kit::{FrontQueue, Ns};

/// What continues when the engine is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Checked {
    /// The entries of an HPB READ have been checked.
    Read,
    /// The entries of an HPB READ BUFFER have been protected.
    HandOut,
}

pub(crate) struct Engine {
    config: EntryConfig,
    checks: bool,
    free: Ns,
    line: FrontQueue<(Ns, Checked, TagRef)>,
    /// When the first in `line` is done.
    next: Ns,
}

impl Engine {
    pub(crate) fn new(config: &EntryConfig) -> Self {
        let line = FrontQueue::with_capacity(0);
        Engine { config: *config, checks: config.engine_checks(), free: Ns::ZERO, line, next: Ns::NEVER }
    }

    pub(crate) fn config(&self) -> &EntryConfig {
        &self.config
    }

    /// Whether HPB READs pass the engine before the firmware core.
    #[inline(always)]
    pub(crate) fn checks(&self) -> bool {
        self.checks
    }

    /// When the first in line is done.
    #[inline(always)]
    pub(crate) fn next(&self) -> Ns {
        self.next
    }

    /// Takes the first in line.
    pub(crate) fn take(&mut self) -> Option<(Checked, TagRef)> {
        let (_, what, tag) = self.line.pop_front()?;
        self.next = self.line.front().map_or(Ns::NEVER, |next| next.0);
        Some((what, tag))
    }

    /// Drops all work.
    pub(crate) fn lose_power(&mut self) {
        self.line.clear();
        (self.free, self.next) = (Ns::ZERO, Ns::NEVER);
    }

    /// The engine begins nothing before `ready`.
    pub(crate) fn set_busy_until(&mut self, ready: Ns) {
        self.free = ready;
    }

    /// Reserves the engine for `span` from `now` on; returns start and end.
    pub(crate) fn reserve(&mut self, now: Ns, span: Ns) -> (Ns, Ns) {
        let start = now.max(self.free);
        self.free = start + span;
        (start, self.free)
    }

    /// Queues `tag`, whose reservation ends at `end`.
    pub(crate) fn will_be_done(&mut self, end: Ns, what: Checked, tag: TagRef) {
        self.line.push_back((end, what, tag));
        self.next = self.next.min(end);
    }
}
