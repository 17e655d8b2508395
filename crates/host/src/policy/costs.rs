// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a load costs and what an entry saves, as the host has measured it: running means of how long its commands took.

use super::Timed;
use readpath_kit::Ns;

/// A running mean over about 32 values, in 1/32 ns.
#[derive(Clone, Copy, Default)]
struct Mean {
    scaled: u64,
    values: u32,
}

const SHIFT: u32 = 5;
/// Values before a mean counts.
const ENOUGH: u32 = 1 << SHIFT;

impl Mean {
    fn add(&mut self, took: Ns) {
        // An hour and more is an hour: no sum can overflow.
        let took = took.0.min(3_600_000_000_000);
        if self.values == 0 {
            self.scaled = took << SHIFT;
        } else {
            self.scaled = self.scaled - (self.scaled >> SHIFT) + took;
        }
        self.values = self.values.saturating_add(1);
    }

    fn ns(&self) -> Option<u64> {
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
