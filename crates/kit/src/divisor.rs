// SPDX-License-Identifier: MIT OR Apache-2.0
//! Division of 32-bit numbers by a divisor that is known only at run time and then stays the same: a multiplication
//! instead of a division (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019). Each simulated I/O
//! splits addresses with it several times; a crate for so little would be longer than this.

/// A divisor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Divisor {
    divisor: u32,
    /// 2^64 / divisor, rounded up; 0 stands for 2^64, the inverse of 1.
    inverse: u64,
}

impl Divisor {
    /// Prepares divisions by `divisor`.
    ///
    /// # Panics
    /// When `divisor` is 0.
    pub fn new(divisor: u32) -> Self {
        assert!(divisor > 0, "division by zero");
        Divisor { divisor, inverse: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    /// `n / divisor`.
    #[inline(always)]
    pub fn divide(self, n: u32) -> u32 {
        if self.inverse == 0 {
            return n;
        }
        ((u128::from(self.inverse) * u128::from(n)) >> 64) as u32
    }

    /// `n % divisor`.
    #[inline(always)]
    pub fn remainder(self, n: u32) -> u32 {
        n - self.divide(n) * self.divisor
    }

    /// The divisor itself.
    #[inline(always)]
    pub fn get(self) -> u32 {
        self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn divides_as_the_operator_does(n: u32, divisor in 1u32..) {
            let d = Divisor::new(divisor);
            prop_assert_eq!((d.divide(n), d.remainder(n)), (n / divisor, n % divisor));
        }

        #[test]
        fn also_at_multiples(quotient: u32, divisor in 1u32..=70_000) {
            let d = Divisor::new(divisor);
            let edge = (u64::from(quotient) * u64::from(divisor)).min(u64::from(u32::MAX)) as u32;
            for n in [edge.wrapping_sub(1), edge, edge.wrapping_add(1), u32::MAX] {
                prop_assert_eq!((d.divide(n), d.remainder(n)), (n / divisor, n % divisor));
            }
        }
    }
}
