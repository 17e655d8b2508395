// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults that orders put between a device and its clients: answers that come late, promises that are not kept. Faults
//! inside the flash are the device's. It knows no clock and no language of orders.

use crate::edges::Ask;
use crate::jobs::{Fate, Job};
use crate::nbd::Errno;
use readpath_kit::Ns;
use readpath_run::rules::{Deed, Rules};
use readpath_workload::IoKind;

/// The faults that orders have put in effect.
#[derive(Default)]
pub(crate) struct Troubles {
    stalled_until: Ns,
    /// How often requests that were held back were released.
    let_go: u32,
    drains: bool,
    pub(crate) rules: Rules,
    lies: bool,
    is_worn_out: bool,
    power_losses: u32,
    is_off: bool,
}

impl Troubles {
    /// Nothing is answered before `until`.
    pub(crate) fn stall(&mut self, until: Ns) {
        self.stalled_until = self.stalled_until.max(until);
    }

    /// Requests that are held back are answered at once.
    pub(crate) fn let_go(&mut self) {
        self.stalled_until = Ns::ZERO;
        self.let_go += 1;
    }

    /// Whether nothing is held back, because the device is about to be switched off.
    pub(crate) fn drain(&mut self, drains: bool) {
        self.drains = drains;
    }

    /// How often requests that were held back were released.
    pub(crate) fn times_let_go(&self) -> u32 {
        self.let_go
    }

    /// Sets whether flushes and FUA are answered although nothing is durable.
    pub(crate) fn lie(&mut self, lies: bool) {
        self.lies = lies;
    }

    /// Sets whether writes and trims are refused.
    pub(crate) fn wear_out(&mut self, is_worn_out: bool) {
        self.is_worn_out = is_worn_out;
    }

    /// The device has lost its power, and with it what was in its write buffer.
    pub(crate) fn power_was_lost(&mut self) {
        self.power_losses += 1;
    }

    /// Switches the power off until it is switched on.
    pub(crate) fn switch_off(&mut self, is_off: bool) {
        self.is_off = is_off;
    }

    /// Whether the power is off until it is switched on.
    #[inline]
    pub(crate) fn is_off(&self) -> bool {
        self.is_off
    }

    /// How often the device has lost its power.
    pub(crate) fn power_losses(&self) -> u32 {
        self.power_losses
    }

    /// The part of a request that is done, and how many bytes of it; none if no part is. Its data changes, and where it
    /// goes, as rules say.
    pub(crate) fn what_is_done(&mut self, now: Ns, job: &mut Job) -> Option<(Ask, u32)> {
        if job.owner.is_none() {
            return Some((job.ask, job.bytes));
        }
        if self.is_worn_out && matches!(job.ask.kind(), IoKind::Write | IoKind::Trim) {
            job.failure = Some((Errno::NoSpace, "the device has come to the end of its life".to_owned()));
            return Some((job.ask, job.bytes));
        }
        let ask = self.kept(job.ask);
        if !self.rules.are_any() {
            return Some((ask?, job.bytes));
        }
        let mut bytes = job.bytes;
        let (late, deed) = self.rules.meet(now, &job.ruled());
        job.fate = Fate { late, ..Fate::default() };
        match deed {
            None => {}
            Some(Deed::Fails(errno, rule)) => job.failure = Some((errno, format!("rule {rule} says so"))),
            Some(Deed::Nothing | Deed::Part(0)) => return None,
            Some(Deed::Part(part)) => bytes = part,
            Some(Deed::Elsewhere(away)) => job.fate.away = away,
            Some(Deed::Flips(bit)) if job.ask.kind() == IoKind::Read => job.fate.flips = Some(bit),
            Some(Deed::Flips(bit)) => flip(&mut job.data, bit),
        }
        Some((ask?, bytes))
    }

    /// The part of a client's request that is done; `None` if no part is.
    fn kept(&self, ask: Ask) -> Option<Ask> {
        match (self.lies, ask) {
            (false, ask) => Some(ask),
            (true, Ask::Flush) => None,
            (true, ask) => Some(ask.without_promise()),
        }
    }

    /// When a request may be answered that has ended at `now`.
    pub(crate) fn held_until(&self, now: Ns, job: &Job) -> Ns {
        if self.drains {
            return now;
        }
        Ns(now.0.saturating_add(self.rules.longer(job.fate.late).0)).max(self.stalled_until)
    }
}

/// Flips a bit of data, if it has as many.
pub(crate) fn flip(data: &mut [u8], bit: u64) {
    data.get_mut((bit / 8) as usize).into_iter().for_each(|byte| *byte ^= 1 << (bit % 8));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_held_back_by_rules_and_stalls() {
        let mut troubles = Troubles::default();
        troubles.rules.add("slow 3ms".parse().unwrap(), Ns::ZERO, &[10]).unwrap();
        let mut job = Job { owner: Some((0, 1)), ask: Ask::Read, bytes: 4096, ..Job::default() };
        assert_eq!(troubles.what_is_done(Ns::ZERO, &mut job), Some((Ask::Read, 4096)));
        let held = |troubles: &Troubles| troubles.held_until(Ns::from_ms(1), &job);
        assert_eq!(held(&troubles), Ns::from_ms(4));
        troubles.stall(Ns::from_ms(10));
        assert_eq!(held(&troubles), Ns::from_ms(10));
        troubles.let_go();
        assert_eq!(held(&troubles), Ns::from_ms(4));
        troubles.drain(true);
        assert_eq!(held(&troubles), Ns::from_ms(1));
    }
}
