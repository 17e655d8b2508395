// SPDX-License-Identifier: MIT OR Apache-2.0
//! What UBI asks of a read cache: pages by erase block and page. Two simple ones; better ones live elsewhere.

use std::ops::Range;

/// A cache of pages of flash, between the table of logical blocks and the flash. UBI tells it of every change of flash, so
/// what it holds is what flash holds.
pub trait ReadCache {
    /// The bytes of a page, if they are here.
    fn lookup(&mut self, peb: u32, page: u32) -> Option<&[u8]>;

    /// Room for a page that is about to be read, or `None` if it shall not be kept. What the room held before is gone.
    /// The page is in the cache only after [`ReadCache::filled`].
    fn room(&mut self, peb: u32, page: u32) -> Option<&mut [u8]>;

    /// The page was read into the room of the call before.
    fn filled(&mut self, peb: u32, page: u32);

    /// These pages of a block were written, or all of them erased.
    fn invalidate(&mut self, peb: u32, pages: Range<u32>);

    /// A read for which the cache was not asked: a page or more, or one that crosses the end of a page.
    fn not_asked(&mut self) {}
}

/// No cache: every read goes to flash as it is.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoCache;

impl ReadCache for NoCache {
    fn lookup(&mut self, _peb: u32, _page: u32) -> Option<&[u8]> {
        None
    }

    fn room(&mut self, _peb: u32, _page: u32) -> Option<&mut [u8]> {
        None
    }

    fn filled(&mut self, _peb: u32, _page: u32) {}

    fn invalidate(&mut self, _peb: u32, _pages: Range<u32>) {}
}

/// A cache of the page that was read last.
#[derive(Clone, Debug)]
pub struct OnePage {
    page: Option<(u32, u32)>,
    bytes: Vec<u8>,
    /// Reads that were served without flash.
    pub hits: u64,
    /// Reads that were not.
    pub misses: u64,
    /// Reads for which it was not asked.
    pub not_asked: u64,
}

impl OnePage {
    /// For pages of `page_bytes` bytes.
    pub fn new(page_bytes: u32) -> Self {
        OnePage { page: None, bytes: vec![0; page_bytes as usize], hits: 0, misses: 0, not_asked: 0 }
    }
}

impl ReadCache for OnePage {
    fn lookup(&mut self, peb: u32, page: u32) -> Option<&[u8]> {
        let hit = self.page == Some((peb, page));
        self.hits += u64::from(hit);
        self.misses += u64::from(!hit);
        hit.then_some(self.bytes.as_slice())
    }

    fn room(&mut self, _peb: u32, _page: u32) -> Option<&mut [u8]> {
        self.page = None;
        Some(&mut self.bytes)
    }

    fn filled(&mut self, peb: u32, page: u32) {
        self.page = Some((peb, page));
    }

    fn invalidate(&mut self, peb: u32, pages: Range<u32>) {
        if self.page.is_some_and(|(p, page)| p == peb && pages.contains(&page)) {
            self.page = None;
        }
    }

    fn not_asked(&mut self) {
        self.not_asked += 1;
    }
}
