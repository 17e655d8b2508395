// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clocks that clients wake: one of real time, and one that lets virtual time jump as soon as there is something to do.

use crate::poller::Poller;
use readpath_kit::Ns;
use readpath_run::Clock;
use std::rc::Rc;
use std::time::Duration;

/// How time passes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Speed {
    /// Slower than the model by this factor: 1 is the speed of the device.
    Real(f64),
    /// Device time jumps to the next event.
    Instant,
}

/// The kernel wakes a sleeper up to so much late; shorter waits are spent awake.
const WAKING: Duration = Duration::from_micros(150);

/// A client that has just been answered is likely to ask again, and waking takes longer than that: waits for clients
/// begin with so long awake.
const AWAKE: Duration = Duration::from_micros(200);

/// Whether a wait that began at `since` is spent awake still. The clock of a virtual machine may go backwards.
fn is_soon(since: Duration, now: Duration) -> bool {
    now.saturating_sub(since) < AWAKE
}

/// Real time, stretched.
pub(crate) struct RealClock {
    poller: Rc<Poller>,
    scale: f64,
    /// Device time when real time began.
    from: Ns,
    now: Ns,
}

impl RealClock {
    pub(crate) fn new(poller: Rc<Poller>, scale: f64, from: Ns) -> RealClock {
        RealClock { poller, scale, from, now: from }
    }

    fn look_at_time(&mut self) -> Ns {
        let passed = self.poller.elapsed().as_nanos() as f64 / self.scale;
        self.now = self.now.max(self.from + Ns(passed as u64));
        self.now
    }
}

impl Clock for RealClock {
    const JUMPS: bool = false;
    const WAKES: bool = true;

    fn wait_until(&mut self, at: Ns) -> Ns {
        let since = self.poller.elapsed();
        loop {
            let now = self.look_at_time();
            if at <= now {
                return now;
            }
            let left = match at {
                Ns::NEVER => None,
                at => Some(Duration::from_nanos(((at - now).0 as f64 * self.scale) as u64)),
            };
            match left {
                _ if is_soon(since, self.poller.elapsed()) => self.poller.look(),
                Some(left) if left <= WAKING => self.poller.look(),
                Some(left) => self.poller.wait(Some(left - WAKING)),
                None => self.poller.wait(None),
            }
            if self.poller.is_ready() {
                let now = self.look_at_time();
                self.poller.wake(now);
                return now;
            }
            std::hint::spin_loop();
        }
    }

    fn sleep_until(&mut self, at: Ns) {
        loop {
            let now = self.look_at_time();
            if at <= now {
                return;
            }
            std::thread::sleep(Duration::from_nanos(((at - now).0 as f64 * self.scale) as u64));
        }
    }
}

/// Virtual time that goes from event to event at once, and stands still while there is nothing to do. It does not go
/// on to a reply behind the loop's back: the next request comes no earlier than what has happened.
pub(crate) struct JumpingClock {
    poller: Rc<Poller>,
    now: Ns,
}

impl JumpingClock {
    pub(crate) fn new(poller: Rc<Poller>, from: Ns) -> JumpingClock {
        JumpingClock { poller, now: from }
    }
}

impl Clock for JumpingClock {
    const JUMPS: bool = false;
    const WAKES: bool = true;

    fn wait_until(&mut self, at: Ns) -> Ns {
        if at == Ns::NEVER {
            let since = self.poller.elapsed();
            self.poller.look();
            while !self.poller.is_ready() && is_soon(since, self.poller.elapsed()) {
                // The client, or the thread that writes the image, may wait for this processor.
                std::thread::yield_now();
                self.poller.look();
            }
            if !self.poller.is_ready() {
                self.poller.wait(None);
            }
        } else {
            self.now = self.now.max(at);
        }
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_runs_backwards_is_no_harm() {
        let at = Duration::from_secs;
        assert!(is_soon(at(5), at(4)) && is_soon(at(5), at(5)) && !is_soon(at(5), at(6)));
    }

    /// Looks at the same clock before and after bound what was seen, however long anything takes.
    #[test]
    fn device_time_passes_so_many_times_slower() {
        for scale in [0.5, 1.0, 1000.0] {
            let (poller, from) = (Rc::new(Poller::new().unwrap()), Ns::from_secs(5));
            let mut clock = RealClock::new(poller.clone(), scale, from);
            let scaled = |real: Duration| (real.as_nanos() as f64 / scale) as u64;
            while poller.elapsed() < Duration::from_micros(100) {}
            let before = scaled(poller.elapsed());
            let seen = (clock.look_at_time() - from).0;
            let after = scaled(poller.elapsed());
            assert!((before..=after).contains(&seen), "{scale}: {before}, {seen}, {after}");
        }
    }
}
