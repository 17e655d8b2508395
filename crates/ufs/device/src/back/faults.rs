// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the faults of the flash. It knows nothing of what they hit.

use crate::ftl::config::FaultConfig;
use readpath_kit::{Ns, Prng};

/// See the module.
pub(super) struct Faults {
    stream: Prng,
    read_retries_ppm: u32,
}

impl Faults {
    /// The stream of faults of a configuration.
    pub(super) fn new(config: &FaultConfig) -> Self {
        Faults { stream: Prng::stream(config.seed, "faults", 0), read_retries_ppm: config.read_retries_ppm }
    }

    /// Whether something fails that does so `ppm` times in a million.
    #[inline]
    pub(super) fn fails(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.stream.below(1_000_000) < u64::from(ppm)
    }

    /// The time of a read that takes `once` if it succeeds at once. Each retry is as likely as the first was.
    #[inline]
    pub(super) fn with_retries(&mut self, once: Ns) -> Ns {
        const MOST: u64 = 8;
        if self.read_retries_ppm == 0 {
            return once;
        }
        let retries = (0..MOST).take_while(|_| self.fails(self.read_retries_ppm)).count() as u64;
        Ns(once.0 * (1 + retries))
    }
}
