// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects that the host is idle, so that work may be done in the background.

use crate::back::Hardware;
use readpath_kit::Ns;

pub(in crate::ftl) struct Idle {
    /// How long the host must send no command to count as idle.
    after: Ns,
    /// Time of the next check for idleness; below, the time at which the host was found idle.
    check_at: Ns,
    from: Ns,
    /// The host allows background operations (fBackgroundOpsEn).
    may_collect: bool,
}

impl Idle {
    pub(super) fn new(after: Ns) -> Self {
        Idle { after, check_at: Ns::NEVER, from: Ns::ZERO, may_collect: true }
    }

    pub(crate) fn check_at(&self) -> Ns {
        self.check_at
    }

    /// Schedules a check.
    pub(super) fn arm(&mut self, now: Ns) {
        self.check_at = now + self.after;
    }

    /// Sets whether the host allows background operations.
    pub(crate) fn allow_collection(&mut self, may: bool) {
        self.may_collect = may;
    }

    /// Whether the host allows background operations.
    pub(super) fn may_collect(&self) -> bool {
        self.may_collect
    }

    /// Whether the host was found idle, and has sent no command since.
    pub(super) fn is_now(&self, hw: &impl Hardware) -> bool {
        self.from > hw.cpu().last_command()
    }

    /// A check is due. Returns whether the host has been idle for long enough; if not, schedules the next check.
    /// `busy` says that commands are in progress.
    pub(crate) fn look(&mut self, now: Ns, busy: bool, hw: &impl Hardware) -> bool {
        let idle_at = if busy { now } else { hw.cpu().last_command() } + self.after;
        let is_idle = now >= idle_at;
        self.check_at = if is_idle { Ns::NEVER } else { idle_at };
        if is_idle {
            self.from = now;
        }
        is_idle
    }

    pub(super) fn power_cut(&mut self) {
        (self.check_at, self.from) = (Ns::NEVER, Ns::ZERO);
    }
}
