// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of a load and the gain of an entry, as the host has measured them. No request waits for a load; its cost
//! is the delay of other reads in flight, which is nothing while the device is idle.

use super::Timed;
use readpath_kit::Ns;

/// A running mean over about 256 values. Outliers, which waited for a program or an erase, do not count in full.
#[derive(Clone, Copy, Default)]
struct Mean {
    /// In 1/256 ns.
    scaled: u64,
    values: u32,
}

const SHIFT: u32 = 8;
/// Values before a mean counts.
const ENOUGH: u32 = 32;
/// A value counts as at most this many means.
const MOST_MEANS: u64 = 4;

impl Mean {
    fn add(&mut self, took: Ns) {
        // At most an hour, so that no sum can overflow.
        let mut scaled = took.0.min(3_600_000_000_000) << SHIFT;
        if self.values >= ENOUGH {
            scaled = scaled.min(self.scaled * MOST_MEANS);
        }
        self.values = self.values.saturating_add(1);
        // The mean of all values, until there are enough for a running one.
        let weight = u64::from(self.values.min(1 << SHIFT));
        self.scaled = self.scaled - self.scaled / weight + scaled / weight;
    }

    /// The mean, when there are enough values.
    fn ns(&self) -> Option<u64> {
        (self.values >= ENOUGH).then_some(self.scaled >> SHIFT)
    }
}

/// Means of the host's commands.
#[derive(Clone, Copy, Default)]
pub(super) struct Costs {
    read: Mean,
    hpb_read: Mean,
    /// HPB READs while a map was being loaded.
    hpb_read_during_load: Mean,
    /// Loads; below, HPB READs and READs in flight with one. All are halved periodically.
    loads: u32,
    delayed: u32,
}

/// Reads that a load has to save before anything is measured: without loads there would be no measurements.
const AT_FIRST: u32 = 1;
/// This many saved reads always justify a load, however small the measured gain: means are not exact.
const MOST: u32 = 64;
const MOST_LOADS: u32 = 256;

impl Costs {
    /// Notes the time of a command; `during_load`: while a map was being loaded.
    pub(super) fn timed(&mut self, what: Timed, took: Ns, during_load: bool) {
        match (what, during_load) {
            (Timed::Load, _) => self.loads += 1,
            (Timed::Read, _) => self.read.add(took),
            (Timed::HpbRead, false) => self.hpb_read.add(took),
            (Timed::HpbRead, true) => self.hpb_read_during_load.add(took),
        }
        self.delayed = self.delayed.saturating_add(u32::from(during_load && what != Timed::Load));
        if self.loads >= MOST_LOADS {
            (self.loads, self.delayed) = (self.loads / 2, self.delayed / 2);
        }
    }

    /// Reads that have to be saved to make up for one load.
    pub(super) fn break_even(&self) -> u32 {
        let (Some(read), Some(hpb)) = (self.read.ns(), self.hpb_read.ns()) else { return AT_FIRST };
        let saved = read.saturating_sub(hpb).max(1);
        // Without enough reads in flight with loads, loads delay nothing.
        let delay = self.hpb_read_during_load.ns().map_or(0, |during| during.saturating_sub(hpb));
        let cost = u128::from(delay) * u128::from(self.delayed) / u128::from(self.loads.max(1));
        cost.div_ceil(u128::from(saved)).clamp(1, u128::from(MOST)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_as_four_means_at_most() {
        let mut mean = Mean::default();
        (0..ENOUGH).for_each(|_| mean.add(Ns(3300)));
        mean.add(Ns(1_000_000_000));
        // The mean of 32 values of 3300 and of one of four times as much.
        assert_eq!(mean.ns(), Some(3600));
    }
}
