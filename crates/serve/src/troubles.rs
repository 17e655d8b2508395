// SPDX-License-Identifier: MIT OR Apache-2.0
//! Faults that orders put between a device and its clients: answers that come late, promises that are not kept. Faults
//! inside the flash are the device's. It knows no clock and no language of orders.

use crate::edges::Ask;
use crate::jobs::Job;
use readpath_kit::Ns;
use readpath_workload::IoKind;
use std::ops::Range;

/// Rules for what takes longer. Each request is compared with each.
const MOST_SLOW: usize = 64;

/// Requests that take longer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slow {
    /// Kind of the requests; none for all.
    pub kind: Option<IoKind>,
    /// Bytes that they touch.
    pub range: Range<u64>,
    /// Additional time.
    pub by: Ns,
}

/// The faults that orders have put in effect.
#[derive(Default)]
pub(crate) struct Troubles {
    stalled_until: Ns,
    /// How often requests that were held back were released.
    let_go: u32,
    drains: bool,
    slow: Vec<Slow>,
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

    /// Some requests take longer from now on. If several rules meet a request, it takes longer by their sum.
    ///
    /// # Errors
    /// There are as many rules as there may be.
    pub(crate) fn slow(&mut self, slow: Slow) -> Result<(), String> {
        if self.slow.len() >= MOST_SLOW {
            return Err(format!("{MOST_SLOW} rules make requests slow, and no more can; 'slow off' ends them all"));
        }
        self.slow.push(slow);
        Ok(())
    }

    /// No request takes longer than the device.
    pub(crate) fn hurry(&mut self) {
        self.slow.clear();
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

    pub(crate) fn refuses_writes(&self) -> bool {
        self.is_worn_out
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

    /// The part of a client's request that is done; `None` if no part is.
    pub(crate) fn kept(&self, ask: Ask) -> Option<Ask> {
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
        let range = job.offset..job.offset + u64::from(job.bytes);
        let meets = |slow: &&Slow| {
            let touches = match job.ask {
                // A flush has no place.
                Ask::Flush => slow.kind == Some(IoKind::Flush) || slow.range == (0..u64::MAX),
                _ => slow.range.start < range.end && range.start < slow.range.end,
            };
            touches && slow.kind.is_none_or(|kind| kind == job.ask.kind())
        };
        let longer = self.slow.iter().filter(meets).fold(0u64, |sum, slow| sum.saturating_add(slow.by.0));
        Ns(now.0.saturating_add(longer)).max(self.stalled_until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_meet_a_request_add_up() {
        let mut troubles = Troubles::default();
        let rule = |kind, range, ms| Slow { kind, range, by: Ns::from_ms(ms) };
        let everything = 0..u64::MAX;
        troubles.slow(rule(None, everything.clone(), 1)).unwrap();
        troubles.slow(rule(Some(IoKind::Read), 4096..8192, 2)).unwrap();
        troubles.slow(rule(Some(IoKind::Flush), everything, 4)).unwrap();
        let held = |troubles: &Troubles, ask, offset| {
            troubles.held_until(Ns::ZERO, &Job { ask, offset, bytes: 4096, ..Job::default() })
        };
        assert_eq!(held(&troubles, Ask::Read, 4096), Ns::from_ms(3));
        assert_eq!((held(&troubles, Ask::Read, 0), held(&troubles, Ask::Read, 8192)), (Ns::from_ms(1), Ns::from_ms(1)));
        assert_eq!(
            (held(&troubles, Ask::Write { fua: false }, 4096), held(&troubles, Ask::Flush, 0)),
            (Ns::from_ms(1), Ns::from_ms(5))
        );
        troubles.stall(Ns::from_ms(10));
        assert_eq!(
            (held(&troubles, Ask::Read, 4096), held(&troubles, Ask::Flush, 0)),
            (Ns::from_ms(10), Ns::from_ms(10))
        );
        troubles.hurry();
        troubles.let_go();
        assert_eq!(held(&troubles, Ask::Read, 4096), Ns::ZERO);
    }
}
