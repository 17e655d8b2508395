// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pseudo-random numbers whose values are part of our results: xoshiro256++ from `rand_xoshiro` below, our own integer
//! draws on top, because `rand`'s distributions may change their values between versions.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A deterministic stream of pseudo-random numbers: the same seed gives the same numbers on every machine.
#[derive(Debug, Clone)]
pub struct Prng(Xoshiro256PlusPlus);

impl Prng {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Prng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The sub-stream `name` of `seed`, number `index`: independent of every other name and number.
    pub fn stream(seed: u64, name: &str, index: u64) -> Self {
        // FNV-1a over the name, then one multiply-xorshift round; quality comes from the seeding of xoshiro.
        let mut h = 0xcbf2_9ce4_8422_2325u64;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mixed = (h ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        Prng::new(seed ^ mixed ^ (mixed >> 32))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..n`, without bias (Lemire 2019). `n` must not be zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        debug_assert!(n > 0);
        let mut wide = u128::from(self.next_u64()) * u128::from(n);
        if (wide as u64) < n {
            let threshold = n.wrapping_neg() % n;
            while (wide as u64) < threshold {
                wide = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (wide >> 64) as u64
    }

    /// A number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `per_mille` / 1000.
    #[inline]
    pub fn chance_per_mille(&mut self, per_mille: u32) -> bool {
        self.below(1000) < u64::from(per_mille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_fixed_for_ever() {
        let mut p = Prng::new(1);
        let got: Vec<u64> = (0..4).map(|_| p.next_u64()).collect();
        assert_eq!(got, [14971601782005023387, 13781649495232077965, 1847458086238483744, 13765271635752736470]);
        let mut s = Prng::stream(1, "reads", 3);
        let first = s.next_u64();
        assert_ne!(first, Prng::stream(1, "reads", 4).next_u64());
        assert_ne!(first, Prng::stream(1, "write", 3).next_u64());
        assert_eq!(first, Prng::stream(1, "reads", 3).next_u64());
    }

    #[test]
    fn below_is_even() {
        let mut p = Prng::new(7);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[p.below(10) as usize] += 1;
        }
        // Chi-square with 9 degrees of freedom: 27.9 is the 0.1 % point.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 27.9, "chi-square {chi}");
    }
}
