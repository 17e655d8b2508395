// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random orders that need no table: a keyed bijection of `0..n`. A shuffled array of a 64 GB device would be 64 MiB
//! and a cache miss per entry, both to build it and to read it.

use crate::Prng;

/// A pseudo-random permutation of `0..n`: the bits are mixed again until the value is in range.
#[derive(Debug, Clone)]
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    keys: [u64; 3],
    /// The factors that undo those of the keys.
    inverses: [u64; 3],
}

impl Permutation {
    /// The permutation of `0..n` that `seed` chooses. `n` must not be zero and at most 2^62.
    pub fn new(n: u64, seed: u64) -> Self {
        assert!(n > 0 && n <= 1 << 62);
        let bits = (64 - (n - 1).leading_zeros()).max(2);
        let mut rng = Prng::stream(seed, "permutation", n);
        let keys = std::array::from_fn(|_| rng.next_u64());
        let inverses = keys.map(|key| inverse_of_odd(key | 1));
        Permutation { n, mask: (1 << bits) - 1, shift: bits.div_ceil(2), keys, inverses }
    }

    /// The image of `i`, which must be below `n`.
    #[inline]
    pub fn get(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mut x = i;
        loop {
            // Each step is a bijection on `bits`-bit words: xor with a constant, xor-shift, product with an odd number.
            for key in self.keys {
                x = (x ^ key) & self.mask;
                x ^= x >> self.shift;
                x = x.wrapping_mul(key | 1) & self.mask;
            }
            x ^= x >> self.shift;
            if x < self.n {
                return x;
            }
        }
    }

    /// The `i` whose image is `x`, which must be below `n`.
    #[inline]
    pub fn find(&self, x: u64) -> u64 {
        debug_assert!(x < self.n);
        let mut i = x;
        loop {
            // The steps of `get`, each undone, from the last on. An xor-shift by half of the bits undoes itself.
            i ^= i >> self.shift;
            for (key, inverse) in self.keys.iter().zip(self.inverses).rev() {
                i = i.wrapping_mul(inverse) & self.mask;
                i ^= i >> self.shift;
                i = (i ^ key) & self.mask;
            }
            if i < self.n {
                return i;
            }
        }
    }
}

/// The inverse of an odd number modulo 2^64, by Newton's method: each step doubles the bits that are right.
fn inverse_of_odd(a: u64) -> u64 {
    (0..6).fold(a, |x, _| x.wrapping_mul(2u64.wrapping_sub(a.wrapping_mul(x))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_a_bijection(n in 1u64..5000, seed: u64) {
            let p = Permutation::new(n, seed);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let j = p.get(i);
                prop_assert!(!std::mem::replace(&mut seen[j as usize], true));
                prop_assert_eq!(p.find(j), i);
            }
        }
    }

    #[test]
    fn spreads_neighbours() {
        let n = 1 << 20;
        let p = Permutation::new(n, 42);
        // The distance of two images of neighbours has mean n/3 when the order is random.
        let sum: u64 = (0..n - 1).map(|i| p.get(i).abs_diff(p.get(i + 1))).sum();
        let mean = sum as f64 / (n - 1) as f64 / n as f64;
        assert!((mean - 1.0 / 3.0).abs() < 0.02, "mean distance {mean} n");
    }
}
