// SPDX-License-Identifier: MIT OR Apache-2.0
//! The caches of the program, as the model runs them; and one that does not listen.

use readpath_ubi::cache::{self, Policy};
use readpath_ubi::cache::{Media, ReadCache};

/// A cache that counts reads that were served without flash.
pub trait Counted: ReadCache {
    fn hits(&self) -> u64;
}

impl<P: Policy> Counted for cache::PageCache<P, cache::Lines> {
    fn hits(&self) -> u64 {
        self.counters().hits
    }
}

/// A cache that is told of no write and no erase.
pub struct Deaf<C>(pub C);

impl<C: ReadCache> ReadCache for Deaf<C> {
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        self.0.read(media, peb, offset, bytes)
    }

    fn written(&mut self, _peb: u32, _offset: u32, _bytes: u32) {}

    fn erased(&mut self, _peb: u32) {}
}

impl<C: Counted> Counted for Deaf<C> {
    fn hits(&self) -> u64 {
        self.0.hits()
    }
}
