// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which maps the device has recently needed for reads without entries, as far as the host can know. Any device keeps
//! the last few of them in SRAM; how many more it keeps is unknown.

use crate::ids::{Id, SubRegionId};

/// Number of maps that any device holds.
const WINDOW: usize = 16;

/// How long ago the device needed a map: 0 for the last [`WINDOW`], then by powers of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Age(u8);

impl Age {
    /// One of the last [`WINDOW`].
    pub(crate) const IN_WINDOW: Age = Age(0);
    /// It was among the last [`WINDOW`] maps to leave the window: most devices still hold it.
    pub(crate) const JUST_LEFT: Age = Age(1);
    const NEVER: Age = Age(9);
    /// Number of ages.
    pub(crate) const COUNT: usize = 10;

    pub(crate) fn row(self) -> usize {
        usize::from(self.0)
    }
}

/// The maps that the device needed last, and the ages of the others.
pub(crate) struct DeviceReads {
    /// The sub-regions last read without an entry, newest first.
    last: [SubRegionId; WINDOW],
    /// Windows so far; below, how many sub-regions have left `last` in this one. The count wraps, skipping 0.
    windows: u16,
    in_window: usize,
    /// The window in which each sub-region left `last`; 0 if it never did.
    left: Vec<u16>,
}

const NONE: u32 = u32::MAX;

impl DeviceReads {
    pub(crate) fn new(sub_regions: u32) -> Self {
        let last = [SubRegionId::new(NONE); WINDOW];
        DeviceReads { last, windows: 1, in_window: 0, left: vec![0; sub_regions as usize] }
    }

    /// Notes that the device is about to need this map; returns the one that leaves the window for it.
    pub(crate) fn read(&mut self, sub_region: SubRegionId) -> Option<SubRegionId> {
        let before = self.last.iter().position(|&s| s == sub_region);
        self.last[..=before.unwrap_or(WINDOW - 1)].rotate_right(1);
        let oldest = std::mem::replace(&mut self.last[0], sub_region);
        if before.is_some() || oldest.index() == NONE {
            return None;
        }
        self.in_window += 1;
        if self.in_window == WINDOW {
            self.in_window = 0;
            self.windows = self.windows.checked_add(1).unwrap_or(1);
        }
        self.left[oldest] = self.windows;
        Some(oldest)
    }

    pub(crate) fn age(&self, sub_region: SubRegionId) -> Age {
        if self.last.contains(&sub_region) {
            return Age::IN_WINDOW;
        }
        match self.left[sub_region] {
            0 => Age::NEVER,
            left => {
                let windows = self.windows.wrapping_sub(left);
                let power = (u16::BITS - windows.leading_zeros()) as u8;
                Age((Age::JUST_LEFT.0 + power).min(Age::NEVER.0 - 1))
            }
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.left.len() as u64 * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_kit::Prng;

    #[test]
    fn windows_are_counted_around_and_never_to_0() {
        let mut reads = DeviceReads::new(2 * WINDOW as u32);
        for i in 0..(usize::from(u16::MAX) + 2) * WINDOW {
            if let Some(left) = reads.read(SubRegionId::new((i % (2 * WINDOW)) as u32)) {
                assert_eq!(reads.age(left), Age::JUST_LEFT, "read {i}");
            }
        }
    }

    /// Compared with a list of all sub-regions that left, the newest at the end.
    #[test]
    fn ages_are_powers_of_two_of_what_left_since() {
        let (units, mut rng) = (400, Prng::new(1));
        let mut reads = DeviceReads::new(units);
        let (mut last, mut gone): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for _ in 0..20_000 {
            let s = (rng.below(u64::from(units)) * rng.below(u64::from(units)) / u64::from(units)) as u32;
            last.retain(|&l| l != s);
            last.insert(0, s);
            let left = if last.len() > WINDOW { last.pop() } else { None };
            assert_eq!(reads.read(SubRegionId::new(s)).map(Id::index), left);
            gone.extend(left);
            let s = rng.below(u64::from(units)) as u32;
            let since = gone.iter().rev().position(|&g| g == s);
            let age = reads.age(SubRegionId::new(s));
            match since {
                _ if last.contains(&s) => assert_eq!(age, Age::IN_WINDOW),
                None => assert_eq!(age, Age::NEVER),
                Some(since) => {
                    // Ages count whole windows, so this may be one more.
                    let of = |windows: usize| (usize::BITS - windows.leading_zeros()) as u8 + 1;
                    let (least, most) = (of(since / WINDOW), of(since / WINDOW + 1));
                    assert!((least.min(8)..=most.min(8)).contains(&age.0), "{since}: {age:?}");
                }
            }
        }
    }
}
