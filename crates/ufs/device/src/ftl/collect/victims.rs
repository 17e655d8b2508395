// SPDX-License-Identifier: MIT OR Apache-2.0
//! The superblocks that are being emptied, and which of their slices are known to be current. It knows neither why
//! they were chosen nor the cost of finding out.
//!
//! The modelled device keeps a list of the logical pages of each victim and marks the current ones. A slice that is
//! overwritten later shows in the table of changes, or when the write-back of its map page sees the last entry that
//! pointed to it; [`Victims::gone`] stands for both.

use crate::ids::SuperblockId;
use readpath_flash::Ppn;

const BITS: u32 = u64::BITS;

pub(super) struct Victims {
    /// Superblock and its first slice, in the order in which they are emptied.
    list: Vec<(SuperblockId, Ppn)>,
    /// One bit for each slice of each victim, and a spare word so that a page can be read at any offset.
    current: Vec<u64>,
    slices: u32,
    words_each: u32,
}

impl Victims {
    /// Room for `most` superblocks of `slices` slices each.
    pub(super) fn new(most: u32, slices: u32) -> Self {
        let words_each = slices.div_ceil(BITS);
        Victims {
            list: Vec::with_capacity(most as usize),
            current: vec![0; (most * words_each) as usize + 1],
            slices,
            words_each,
        }
    }

    /// Begins with `list`; no slice is known to be current yet.
    pub(super) fn begin(&mut self, list: impl Iterator<Item = (SuperblockId, Ppn)>) {
        self.list.clear();
        self.list.extend(list);
        self.current.fill(0);
    }

    /// Ends the round.
    pub(super) fn end(&mut self) {
        self.list.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The victim with index `at`, and its first slice.
    pub(super) fn get(&self, at: usize) -> (SuperblockId, Ppn) {
        self.list[at]
    }

    fn bit(&self, at: usize, slice: u32) -> (usize, u32) {
        ((at as u32 * self.words_each + slice / BITS) as usize, slice % BITS)
    }

    /// Notes whether a slice of victim `at` is current.
    #[inline]
    pub(super) fn note(&mut self, at: usize, slice: u32, is_current: bool) {
        let (word, bit) = self.bit(at, slice);
        self.current[word] |= u64::from(is_current) << bit;
    }

    /// Which of up to 32 slices of victim `at` are current, from `slice` on: a bit each.
    #[inline]
    pub(super) fn current(&self, at: usize, slice: u32, count: u32) -> u32 {
        let (word, bit) = self.bit(at, slice);
        let two = u128::from(self.current[word]) | u128::from(self.current[word + 1]) << BITS;
        (two >> bit) as u32 & u32::MAX >> (u32::BITS - count)
    }

    /// Whether a slice of victim `at` is still current.
    #[inline]
    pub(super) fn is_current(&self, at: usize, ppn: Ppn) -> bool {
        let (word, bit) = self.bit(at, ppn.0 - self.list[at].1.0);
        self.current[word] >> bit & 1 == 1
    }

    /// No map entry points to `ppn` any more.
    #[inline]
    pub(super) fn gone(&mut self, ppn: Ppn) {
        for at in 0..self.list.len() {
            let slice = ppn.0.wrapping_sub(self.list[at].1.0);
            if slice < self.slices {
                let (word, bit) = self.bit(at, slice);
                self.current[word] &= !(1 << bit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_current_is_known_until_it_is_gone() {
        let mut v = Victims::new(2, 70);
        v.begin([(SuperblockId(3), Ppn(210)), (SuperblockId(1), Ppn(70))].into_iter());
        for slice in [0, 62, 63, 64, 69] {
            v.note(0, slice, true);
            v.note(1, slice, slice != 64);
        }
        assert_eq!((v.current(0, 62, 4), v.current(1, 62, 4), v.current(1, 68, 2)), (0b0111, 0b0011, 0b10));
        assert!(v.is_current(0, Ppn(210 + 64)) && !v.is_current(1, Ppn(70 + 64)));
        v.gone(Ppn(210 + 63));
        v.gone(Ppn(70 + 70));
        v.gone(Ppn(69));
        assert_eq!((v.current(0, 62, 4), v.current(1, 62, 4)), (0b0101, 0b0011), "no other slice is touched");
        v.begin([(SuperblockId(1), Ppn(70))].into_iter());
        assert_eq!(v.current(0, 62, 4), 0, "nothing is left of those before");
    }
}
