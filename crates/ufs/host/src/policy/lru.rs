// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lru`: a sub-region is loaded as soon as a read misses it, and the least recently read makes room. Every read counts,
//! also those that the device serves. Linux moves a region only when it is activated.

use super::{MapPolicy, Touch, Wish};
use readpath_kit::IndexLru;

/// What is held, the least recently read first. Other policies build on it.
pub struct Lru {
    order: IndexLru,
}

impl Lru {
    pub fn new(sub_regions: u32) -> Self {
        Lru { order: IndexLru::new(sub_regions as usize) }
    }

    /// A read touches it, whether it is held or not.
    pub fn touch(&mut self, sub_region: u32) {
        if self.order.contains(sub_region) {
            self.order.touch(sub_region);
        }
    }

    /// What is held, the least recently read first.
    pub fn coldest(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter()
    }

    /// How much is held.
    pub fn held(&self) -> u32 {
        self.order.len()
    }
}

impl MapPolicy for Lru {
    fn read(&mut self, touch: &Touch) -> Wish {
        self.touch(touch.sub_region);
        Wish::load_if(touch.eligible && !touch.held)
    }

    fn loaded(&mut self, sub_region: u32) {
        if !self.order.contains(sub_region) {
            self.order.push_back(sub_region);
        }
    }

    fn dropped(&mut self, sub_region: u32) {
        if self.order.contains(sub_region) {
            self.order.remove(sub_region);
        }
    }

    fn victim(&mut self, _: Option<u32>, free: impl Fn(u32) -> bool) -> Option<u32> {
        self.coldest().find(|&s| free(s))
    }

    fn bytes(&self) -> u64 {
        self.order.bytes()
    }
}
