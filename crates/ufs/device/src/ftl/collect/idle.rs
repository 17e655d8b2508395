// SPDX-License-Identifier: MIT OR Apache-2.0
//! When the host is idle, so that work may be done in the background.

use crate::back::Hardware;
use readpath_kit::Ns;

/// See the module.
pub(in crate::ftl) struct Idle {
    /// How long the host has to be idle.
    after: Ns,
    /// When to see whether the host is idle, and since when it was known to be.
    check_at: Ns,
    from: Ns,
    /// The host lets the device collect in the background (fBackgroundOpsEn).
    may_collect: bool,
}

impl Idle {
    /// The host is not known to be idle.
    pub(super) fn new(after: Ns) -> Self {
        Idle { after, check_at: Ns::NEVER, from: Ns::ZERO, may_collect: true }
    }

    /// When to see whether the host is idle.
    pub(crate) fn check_at(&self) -> Ns {
        self.check_at
    }

    /// It is worth while to see whether the host is idle for so long.
    pub(super) fn arm(&mut self, now: Ns) {
        self.check_at = now + self.after;
    }

    /// Says whether the host lets the device collect in the background.
    pub(crate) fn allow_collection(&mut self, may: bool) {
        self.may_collect = may;
    }

    /// Whether the host lets the device collect in the background.
    pub(super) fn may_collect(&self) -> bool {
        self.may_collect
    }

    /// Whether the host was found idle, and has sent no command since.
    pub(super) fn is_now(&self, hw: &impl Hardware) -> bool {
        self.from > hw.cpu().last_command()
    }

    /// The time to look has come. Returns whether the host, which has commands under way (`busy`) or not, has been idle
    /// for long enough; if not, the time is set anew.
    pub(crate) fn look(&mut self, now: Ns, busy: bool, hw: &impl Hardware) -> bool {
        let idle_at = if busy { now } else { hw.cpu().last_command() } + self.after;
        let is_idle = now >= idle_at;
        self.check_at = if is_idle { Ns::NEVER } else { idle_at };
        if is_idle {
            self.from = now;
        }
        is_idle
    }

    /// The power is gone.
    pub(super) fn power_cut(&mut self) {
        (self.check_at, self.from) = (Ns::NEVER, Ns::ZERO);
    }
}
