// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a load costs and what an entry saves, as the host has measured it: running means of how long its commands took.

use super::Timed;
use readpath_kit::Ns;

/// A running mean over about 256 values. A few that took very long, because they waited for a program or an erase, say
/// nothing of maps and do not count in full.
#[derive(Clone, Copy, Default)]
pub struct Mean {
    /// In 1/256 ns.
    scaled: u64,
    values: u32,
}

const SHIFT: u32 = 8;
/// Values before a mean counts.
const ENOUGH: u32 = 32;
/// A value counts as so many means at most.
const MOST_MEANS: u64 = 4;

impl Mean {
    pub fn add(&mut self, took: Ns) {
        // An hour and more is an hour: no sum can overflow.
        let mut scaled = took.0.min(3_600_000_000_000) << SHIFT;
        if self.values >= ENOUGH {
            scaled = scaled.min(self.scaled * MOST_MEANS);
        }
        self.values = self.values.saturating_add(1);
        // The mean of all, until there are enough for a running one.
        let weight = u64::from(self.values.min(1 << SHIFT));
        self.scaled = self.scaled - self.scaled / weight + scaled / weight;
    }

    /// The mean, when there are enough values.
    pub fn ns(&self) -> Option<u64> {
        (self.values >= ENOUGH).then_some(self.scaled >> SHIFT)
    }
}

/// Means of the three kinds of commands.
#[derive(Clone, Copy, Default)]
pub struct Costs {
    read: Mean,
    hpb_read: Mean,
    load: Mean,
}

/// Reads that a load has to save as long as nothing is known: one, and one more for the doubt.
const AT_FIRST: u32 = 2;
/// However little an entry saves, so many reads are worth a load: means are never exact.
const MOST: u32 = 64;

impl Costs {
    pub fn timed(&mut self, what: Timed, took: Ns) {
        match what {
            Timed::Read => self.read.add(took),
            Timed::HpbRead => self.hpb_read.add(took),
            Timed::Load => self.load.add(took),
        }
    }

    /// Reads that have to be saved to make up for one load.
    pub fn break_even(&self) -> u32 {
        let (Some(read), Some(hpb), Some(load)) = (self.read.ns(), self.hpb_read.ns(), self.load.ns()) else {
            return AT_FIRST;
        };
        let saved = read.saturating_sub(hpb).max(1);
        load.div_ceil(saved).clamp(1, u64::from(MOST)) as u32
    }
}
