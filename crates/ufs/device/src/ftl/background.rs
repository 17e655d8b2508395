// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done while the host is idle: when that is, and that it begins.

use super::Ftl;
use crate::back::Hardware;
use readpath_kit::Ns;

impl Ftl {
    /// Something may be worth doing once the host has been idle for a while. True if that is now looked for.
    pub(crate) fn arm_background(&mut self, now: Ns) -> bool {
        let arms = self.collects_when_idle() || self.flushes_when_idle();
        if arms {
            self.background = now + self.settings.idle_after;
        }
        arms
    }

    /// Whether the host lets the device collect in the background (fBackgroundOpsEn).
    pub(crate) fn set_background(&mut self, on: bool) {
        self.may_work_when_idle = on;
    }

    /// Whether idle time is used to collect.
    pub(super) fn collects_when_idle(&self) -> bool {
        self.may_work_when_idle && self.settings.collect_idle_below > 0
    }

    /// How urgent it is to collect (bBackgroundOpStatus): 0 not at all, 1 not critical, 2 writes suffer, 3 they wait.
    pub(crate) fn background_need(&self) -> u8 {
        match self.space.spare() {
            spare if spare < self.space.spare_for_host() => 3,
            _ if self.space.is_short() => 2,
            spare if spare < self.settings.collect_idle_below => 1,
            _ => 0,
        }
    }

    /// Whether the host was found idle, and has sent no command since.
    pub(super) fn host_is_idle(&self, hw: &impl Hardware) -> bool {
        self.idle_from > hw.cpu().last_command()
    }

    /// The time for work in the background has come, if the host, which has commands under way (`busy`) or not, has
    /// been idle for long enough.
    pub(crate) fn background_due(&mut self, now: Ns, busy: bool, hw: &mut impl Hardware) {
        let idle_at = if busy { now } else { hw.cpu().last_command() } + self.settings.idle_after;
        self.background = Ns::NEVER;
        if now < idle_at {
            self.background = idle_at;
            return;
        }
        self.idle_from = now;
        self.pump(now, hw);
        // Should the host interrupt what is under way, it is to go on later. If nothing is, time alone changes nothing.
        if hw.ops().in_use() > 0 {
            self.arm_background(now);
        }
    }
}
