// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one-page cache of the NAND core (Linux, `nand_do_read_ops` in drivers/mtd/nand/raw/nand_base.c), used if the
//! chip has no sub-page reads. It sees every read of the chip, headers included, and keeps the last page that was
//! read in part.

use super::index::NONE;
use super::{Counters, Media, Page, ReadCache, Store};

/// The page and its counters.
#[derive(Clone, Debug)]
pub struct NandPage<S> {
    page: u64,
    store: S,
    page_bytes: u32,
    counters: Counters,
}

impl<S: Store> NandPage<S> {
    /// An empty cache for pages of `page_bytes`, a power of two; `store` has line 0.
    pub fn new(page_bytes: u32, store: S) -> Self {
        NandPage { page: NONE, store, page_bytes, counters: Counters::default() }
    }

    /// Looks up each page of a read; a whole page bypasses the cache. Returns whether flash was not read, and the
    /// pages read to be kept.
    #[inline]
    fn pages<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(bool, u64), M::Error> {
        let (mut at, mut left, mut hit, mut fills) = (offset, bytes, true, 0);
        while left > 0 {
            let from = at & (self.page_bytes - 1);
            let n = left.min(self.page_bytes - from);
            let page = Page::new(peb, at / self.page_bytes);
            if page.0 == self.page {
                media.copy(self.store.line(0), from, at, n);
                self.counters.copied_bytes += u64::from(n);
            } else if n == self.page_bytes {
                hit = false;
                media.direct(peb, at, n)?;
            } else {
                hit = false;
                self.page = NONE;
                media.fill(page, self.store.line_mut(0))?;
                self.page = page.0;
                fills += 1;
                media.copy(self.store.line(0), from, at, n);
                self.counters.copied_bytes += u64::from(n);
            }
            left -= n;
            at += n;
        }
        Ok((hit, fills))
    }
}

/// Reads of any kind go through it. A read of part of one page is a hit or a miss; any other counts as `no_query`,
/// although pages of it may be served.
impl<S: Store> ReadCache for NandPage<S> {
    #[inline]
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        let (hit, fills) = self.pages(media, peb, offset, bytes)?;
        self.counters.fills += fills;
        let one_page = (offset & (self.page_bytes - 1)) + bytes <= self.page_bytes && bytes < self.page_bytes;
        *match (one_page, hit) {
            (true, true) => &mut self.counters.hits,
            (true, false) => &mut self.counters.misses,
            (false, _) => &mut self.counters.no_query,
        } += 1;
        Ok(())
    }

    #[inline]
    fn read_below<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        self.pages(media, peb, offset, bytes).map(drop)
    }

    /// A write of part of a page passes through the buffer of the cached page, whichever page it is.
    fn written(&mut self, peb: u32, offset: u32, bytes: u32) {
        let first = Page::new(peb, offset / self.page_bytes).0;
        let pages = (offset % self.page_bytes + bytes).div_ceil(self.page_bytes);
        let in_part = !(offset | bytes).is_multiple_of(self.page_bytes);
        if self.page != NONE && (in_part || (first..first + u64::from(pages)).contains(&self.page)) {
            self.page = NONE;
            self.counters.dropped_by_write += 1;
        }
    }

    fn erased(&mut self, peb: u32) {
        if self.page != NONE && Page(self.page).peb() == peb {
            self.page = NONE;
            self.counters.dropped_by_erase += 1;
        }
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::super::NoData;
    use super::*;

    /// Notes the reads of flash.
    #[derive(Default)]
    struct Log(Vec<(&'static str, u32)>);

    impl Media for Log {
        type Error = std::convert::Infallible;

        fn fill(&mut self, page: Page, _line: &mut [u8]) -> Result<(), Self::Error> {
            self.0.push(("fill", page.number()));
            Ok(())
        }

        fn direct(&mut self, _peb: u32, offset: u32, _bytes: u32) -> Result<(), Self::Error> {
            self.0.push(("direct", offset));
            Ok(())
        }

        fn copy(&mut self, _line: &[u8], from: u32, _offset: u32, _bytes: u32) {
            self.0.push(("copy", from));
        }
    }

    #[test]
    fn it_keeps_the_last_page_that_was_read_in_part() {
        let mut cache = NandPage::new(4096, NoData);
        let read = |cache: &mut NandPage<NoData>, offset, bytes, eba| {
            let mut log = Log::default();
            let Ok(()) = match eba {
                true => cache.read(&mut log, 7, offset, bytes),
                false => cache.read_below(&mut log, 7, offset, bytes),
            };
            log.0
        };
        assert_eq!(read(&mut cache, 0, 64, false), [("fill", 0), ("copy", 0)], "a header");
        assert_eq!(read(&mut cache, 100, 10, true), [("copy", 100)], "served by the header's page");
        // Its first page is cached, the second is read past the cache, the third in part.
        assert_eq!(read(&mut cache, 200, 8192, true), [("copy", 200), ("direct", 4096), ("fill", 2), ("copy", 0)]);
        assert_eq!(read(&mut cache, 4096, 4096, true), [("direct", 4096)], "a whole page changes nothing");
        assert_eq!(read(&mut cache, 8192, 4096, true), [("copy", 0)], "a whole page may be served");
        let c = cache.counters();
        assert_eq!((c.hits, c.misses, c.no_query, c.fills), (1, 0, 3, 1));
        cache.written(7, 0, 8192);
        assert_eq!(read(&mut cache, 8200, 8, true), [("copy", 8)], "another page was written");
        cache.written(3, 0, 512);
        assert_eq!(read(&mut cache, 8200, 8, true), [("fill", 2), ("copy", 8)], "a write in part takes the buffer");
        cache.written(7, 4096, 8192);
        assert_eq!(read(&mut cache, 8200, 8, true), [("fill", 2), ("copy", 8)], "the page was written");
        cache.erased(6);
        assert_eq!(read(&mut cache, 8200, 8, true), [("copy", 8)]);
        cache.erased(7);
        assert_eq!(read(&mut cache, 8200, 8, true), [("fill", 2), ("copy", 8)]);
    }
}
