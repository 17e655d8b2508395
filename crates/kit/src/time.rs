// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual time. `std::time::Instant` cannot be made from a number, so a state machine that takes it cannot be driven
//! by a simulator; hence our own type. It knows nothing of real clocks.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A point in virtual time, or a span of it, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
#[repr(transparent)]
pub struct Ns(pub u64);

impl Ns {
    /// The start of time; also the span of no length.
    pub const ZERO: Ns = Ns(0);
    /// A deadline that never comes.
    pub const NEVER: Ns = Ns(u64::MAX);

    /// A span of `us` microseconds.
    pub const fn from_us(us: u64) -> Ns {
        Ns(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Ns {
        Ns(ms * 1_000_000)
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Ns {
        Ns(s * 1_000_000_000)
    }

    /// This time in microseconds, for display.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// This time in seconds, for display and for rates.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to `self`, or zero when `earlier` is later.
    pub fn saturating_sub(self, earlier: Ns) -> Ns {
        Ns(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Ns {
    type Output = Ns;
    #[inline]
    fn add(self, rhs: Ns) -> Ns {
        Ns(self.0 + rhs.0)
    }
}

impl AddAssign for Ns {
    #[inline]
    fn add_assign(&mut self, rhs: Ns) {
        self.0 += rhs.0;
    }
}

impl Sub for Ns {
    type Output = Ns;
    #[inline]
    fn sub(self, rhs: Ns) -> Ns {
        Ns(self.0 - rhs.0)
    }
}

impl fmt::Debug for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Ns::NEVER {
            return f.write_str("never");
        }
        match self.0 {
            n @ 0..1_000 => write!(f, "{n} ns"),
            n @ 1_000..1_000_000 => write!(f, "{:.3} us", n as f64 / 1e3),
            n @ 1_000_000..1_000_000_000 => write!(f, "{:.3} ms", n as f64 / 1e6),
            n => write!(f, "{:.3} s", n as f64 / 1e9),
        }
    }
}
