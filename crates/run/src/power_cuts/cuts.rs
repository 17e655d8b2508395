// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts as a hook of a run. The moments are drawn before it; the source of requests does not know them.

use super::{Cut, HpbUse, Loses, Moments, PowerCuts};
use crate::drive::{Hooks, Pace};
use crate::error::RunError;
use readpath_device::Probe;
use readpath_flash::DieSched;
use readpath_kit::{Ns, Prng};

use readpath_stack::{Payload, Stack, Wire};
use readpath_workload::IoKind;
use std::sync::Arc;

/// Events inside the device that may pass, at most, between a number of requests and the cut.
const EVENTS: u64 = 256;

/// The cuts of a run that are to come, and what came of those before.
pub(super) struct Cuts<'a> {
    plan: &'a PowerCuts,
    rng: Prng,
    /// Moments in order: numbers of requests, or times.
    moments: Vec<u64>,
    is_timed: bool,
    /// Index of the next moment.
    next: usize,
    /// Events until the cut, once its number of requests has ended.
    events: Option<u64>,
    /// The power goes now.
    is_due: bool,
    /// Requests that have ended.
    pub ios: u64,
    pub cuts: Vec<Cut>,
    pub hpb: HpbUse,
}

impl<'a> Cuts<'a> {
    /// Cuts of a run that begins at `start`.
    pub(super) fn new(plan: &'a PowerCuts, drawn_from: Moments, start: Ns) -> Self {
        let mut rng = Prng::stream(plan.seed, "power cuts", 0);
        let (is_timed, range) = match drawn_from {
            Moments::Requests(ios) => (false, ios),
            // The rest is the time without power.
            Moments::Time(span) => (true, span.0 - plan.time_without_power().0),
        };
        let mut moments: Vec<u64> = (0..plan.cuts).map(|_| 1 + rng.below(range)).collect();
        moments.sort_unstable();
        if is_timed {
            for (before, moment) in (0..).zip(&mut moments) {
                *moment += start.0 + before * plan.off.0;
            }
        }
        Cuts {
            plan,
            rng,
            moments,
            is_timed,
            next: 0,
            events: None,
            is_due: false,
            ios: 0,
            cuts: Vec::new(),
            hpb: HpbUse::default(),
        }
    }

    /// Whether there are cuts whose moments have not come.
    pub(super) fn are_left(&self) -> bool {
        self.events.is_some() || self.next < self.moments.len()
    }

    /// Makes one of the cuts that are left, at the end of the workload. Returns the time after it.
    ///
    /// # Errors
    /// The host does not find its device again.
    pub(super) fn late<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
    ) -> Result<Ns, RunError> {
        self.next += usize::from(self.events.take().is_none());
        self.cut(stack, now, 0)
    }

    fn cut<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        at: Ns,
        in_flight: u32,
    ) -> Result<Ns, RunError> {
        let on = at + self.plan.off;
        self.hpb.cut(stack, self.plan.loses);
        let (recovery, after) = match self.plan.loses {
            Loses::Everything => {
                let recovery = stack.power_cycle(at, on);
                let ready = stack.start(recovery.ready_at).map_err(|e| RunError::Restart(Arc::new(e)))?;
                (recovery, ready)
            }
            Loses::Device => (stack.device_power_cycle(at, on), on),
        };
        self.cuts.push(Cut { at, in_flight, took: recovery.ready_at - on, recovery });
        Ok(after)
    }
}

impl Hooks for Cuts<'_> {
    fn next_at(&self) -> Ns {
        match self.moments.get(self.next) {
            _ if self.is_due => Ns::ZERO,
            Some(&moment) if self.is_timed => Ns(moment),
            _ => Ns::NEVER,
        }
    }

    /// Counts requests, then events: the power may go between any two of them. Moments by time are so fine that events
    /// need not be counted.
    fn pace(&mut self) -> Pace {
        if self.is_timed {
            return Pace::ToReply;
        }
        match &mut self.events {
            Some(0) => (self.events, self.is_due) = (None, true),
            Some(left) => *left -= 1,
            None => match self.moments.get(self.next) {
                Some(&moment) if self.ios >= moment => {
                    self.next += 1;
                    self.events = Some(self.rng.below(EVENTS));
                }
                _ => return Pace::ToReply,
            },
        }
        Pace::ToEvent
    }

    fn takes_host(&self) -> bool {
        self.plan.loses == Loses::Everything
    }

    fn happen<S: DieSched, X: Payload, P: Probe, W: Wire>(
        &mut self,
        stack: &mut Stack<S, X, P, W>,
        now: Ns,
        in_flight: u32,
    ) -> Result<Ns, RunError> {
        self.next += usize::from(self.is_timed);
        self.is_due = false;
        self.cut(stack, now, in_flight)
    }

    fn ended(&mut self, _: IoKind, _: Ns) {
        self.ios += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_power_is_back_before_it_goes_again() {
        let off = Ns::from_ms(10);
        let plan = PowerCuts { cuts: 50, loses: Loses::Device, off, seed: 3, faults: Arc::default() };
        let (start, span) = (Ns::from_secs(7), Ns::from_secs(1));
        let moments = Cuts::new(&plan, Moments::Time(span), start).moments;
        assert_eq!(moments.len(), 50);
        assert!(moments.windows(2).all(|pair| pair[1] - pair[0] >= off.0), "{moments:?}");
        assert!(moments[0] > start.0 && moments[49] + off.0 <= (start + span).0, "{moments:?}");
    }
}
