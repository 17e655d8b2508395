// SPDX-License-Identifier: MIT OR Apache-2.0
//! The caches of [`crate::cache`] in front of a device: each of their reads is one of UBI's.

use super::cache::{Media, ReadCache};
use crate::cache::{self, Page, Policy, Store};

/// UBI's flash and buffer, as a cache sees them.
struct Lent<'a, M>(&'a mut M);

impl<M: Media> cache::Media for Lent<'_, M> {
    type Error = M::Error;

    #[inline]
    fn fill(&mut self, page: Page, line: &mut [u8]) -> Result<(), M::Error> {
        self.0.fill(page.peb(), page.number(), line)
    }

    #[inline]
    fn direct(&mut self, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        self.0.direct(peb, offset, bytes)
    }

    #[inline]
    fn copy(&mut self, line: &[u8], from: u32, offset: u32, bytes: u32) {
        self.0.copy(line, from, offset, bytes);
    }
}

impl<P: Policy, S: Store> ReadCache for cache::ReadCache<P, S> {
    #[inline]
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        cache::ReadCache::read(self, &mut Lent(media), peb, offset, bytes)
    }

    fn written(&mut self, peb: u32, offset: u32, bytes: u32) {
        cache::ReadCache::written(self, peb, offset, bytes);
    }

    fn erased(&mut self, peb: u32) {
        cache::ReadCache::erased(self, peb);
    }
}
