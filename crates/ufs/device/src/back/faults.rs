// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the faults of the flash. It does not know which operation they hit.

use crate::config::FaultConfig;
use readpath_kit::{Ns, Prng};

/// Which operations of a kind fail: some at random, and one by its number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Failing {
    /// Share of operations that fail at random, in parts per million.
    pub ppm: u32,
    /// Number of the operation that fails, counted from now on; 0 for none.
    pub nth: u64,
}

impl Failing {
    /// Whether the next operation fails; `stream` decides the random part.
    #[inline]
    pub fn next(&mut self, stream: &mut Prng) -> bool {
        let is_nth = self.nth == 1;
        self.nth = self.nth.saturating_sub(1);
        is_nth | (self.ppm > 0 && stream.below(1_000_000) < u64::from(self.ppm))
    }
}

readpath_kit::named! {
    /// Flash operations that can be made to fail. A failed block is not written again.
    pub enum Failable {
        /// A program.
        Program = "program",
        /// An erase.
        Erase = "erase",
    }
}

pub(super) struct Faults {
    stream: Prng,
    read_retries_ppm: u32,
    /// By [`Failable`].
    failing: [Failing; 2],
}

impl Faults {
    /// The stream of faults of a configuration.
    pub(super) fn new(config: &FaultConfig) -> Self {
        let failing = [config.program_failures_ppm, config.erase_failures_ppm].map(|ppm| Failing { ppm, nth: 0 });
        let stream = Prng::stream(config.seed, "faults", 0);
        Faults { stream, read_retries_ppm: config.read_retries_ppm, failing }
    }

    /// Whether an operation that has ended failed.
    #[inline]
    pub(super) fn fails(&mut self, what: Failable) -> bool {
        self.failing[what as usize].next(&mut self.stream)
    }

    pub(super) fn set(&mut self, what: Failable, failing: Failing) {
        self.failing[what as usize] = failing;
    }

    /// Restarts the random stream.
    pub(super) fn seed(&mut self, seed: u64) {
        self.stream = Prng::stream(seed, "faults", 0);
    }

    /// Time of a read that takes `once` without a retry. Each further retry is as likely as the first.
    #[inline]
    pub(super) fn with_retries(&mut self, once: Ns) -> Ns {
        const MOST: u64 = 8;
        if self.read_retries_ppm == 0 {
            return once;
        }
        let mut retry = Failing { ppm: self.read_retries_ppm, nth: 0 };
        let retries = (0..MOST).take_while(|_| retry.next(&mut self.stream)).count() as u64;
        Ns(once.0 * (1 + retries))
    }
}
