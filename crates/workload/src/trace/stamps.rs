// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fine the times of a trace are, and how many requests share one: coarse times make bursts in a replay that the
//! device did not see. Knows times only.

use readpath_kit::Ns;

/// Units in which times may be recorded, from the coarsest. Finer ones make no bursts of note.
const UNITS: [u64; 4] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000];
/// Coarse times do no harm where fewer requests than this share one: devices have queues.
const FEW: u64 = 8;
/// This many requests at one time are a burst at any resolution of times: more than a device takes at once.
const BURST: u64 = 64;

/// The times of the requests of a trace, as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamps {
    /// Index of the coarsest unit of which all times so far are multiples; behind the last for a finer one.
    unit: usize,
    last: u64,
    burst: u64,
    /// Requests at the most frequent time.
    pub largest_burst: u64,
    /// Requests whose time is that of the one before.
    pub tied: u64,
}

impl Stamps {
    /// Takes the time of the next request.
    #[inline]
    pub(super) fn take(&mut self, time: u64) {
        if time == self.last && self.burst > 0 {
            self.burst += 1;
            self.tied += 1;
        } else {
            (self.last, self.burst) = (time, 1);
            while self.unit < UNITS.len() && !time.is_multiple_of(UNITS[self.unit]) {
                self.unit += 1;
            }
        }
        self.largest_burst = self.largest_burst.max(self.burst);
    }

    /// The unit of the times, where it is 1 ms or more.
    fn coarse_unit(&self) -> Option<Ns> {
        UNITS.get(self.unit).copied().map(Ns)
    }

    /// Over how much time requests that share one may have come: a unit, or a millisecond where times are finer.
    pub fn spread(&self) -> Ns {
        self.coarse_unit().unwrap_or(Ns::from_ms(1))
    }

    /// A warning about `requests` requests with these times, if they are coarse.
    pub fn warning(&self, requests: u64) -> Option<String> {
        let share = 100.0 * self.tied as f64 / requests.max(1) as f64;
        let what = match self.coarse_unit() {
            Some(unit) if share >= 1.0 && self.largest_burst >= FEW => {
                format!("its times are whole multiples of {unit}")
            }
            _ if self.largest_burst >= BURST => "requests share their times".to_owned(),
            _ => return None,
        };
        Some(format!(
            "COARSE TIMES: {what}: {share:.1} % of its requests have the time of the one before, and up to {} start at \
             once",
            self.largest_burst
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> Stamps {
        let mut stamps = Stamps::default();
        times.iter().for_each(|&time| stamps.take(time));
        stamps
    }

    #[test]
    fn units_and_bursts() {
        let seconds = of(&[5_000_000_000, 5_000_000_000, 7_000_000_000, 7_000_000_000, 7_000_000_000]);
        assert_eq!((seconds.coarse_unit(), seconds.largest_burst, seconds.tied), (Some(Ns::from_secs(1)), 3, 3));
        assert_eq!(seconds.warning(5), None, "few at once");
        let burst = of(&[5_000_000_000; 9]).warning(10).expect("a warning");
        assert!(burst.contains("80.0 %") && burst.contains("up to 9 start at once"), "{burst}");
        let millis = of(&[1_000_000_000, 1_030_000_000, 1_031_000_000]);
        assert_eq!((millis.coarse_unit(), millis.warning(3)), (Some(Ns::from_ms(1)), None), "no ties");
        let fine = of(&[1_000_000_000, 1_000_001_000, 1_000_001_000]);
        assert_eq!((fine.coarse_unit(), fine.spread(), fine.warning(3)), (None, Ns::from_ms(1), None));
        assert!(of(&[77; 64]).warning(1_000_000).is_some());
        assert_eq!(of(&[0, 0]).tied, 1, "the first may be at time 0");
    }
}
