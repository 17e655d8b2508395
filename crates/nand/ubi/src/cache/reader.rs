// SPDX-License-Identifier: MIT OR Apache-2.0
//! One read through the cache: which reads are looked up, how they are split, and what follows a failed fill. It
//! knows policies only by their trait, and flash only through [`Media`].

use super::{Answer, Counters, Page, Policy, Store, Touch};
use crate::cost::CostModel;

/// Which reads the cache serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rules {
    /// Those of the RFC of 2016: only reads shorter than a page and within one page. All others go to flash
    /// unchanged.
    Patch,
    /// Reads are split into pages, each looked up. A part that covers a whole page is served from an existing line,
    /// but gets no line and does not count as a use ([`Policy::peek`]). The same holds for parts of a read of
    /// [`BULK_PAGES`] pages or more, which would evict pages in use. Such a read counts as `no_query` unless lines
    /// serve all of it.
    Split,
}

/// A read of at least this many pages is a scan.
pub const BULK_PAGES: u32 = 4;

/// Reads flash, and holds the reader's buffer. Positions are in bytes of an erase block.
pub trait Media {
    /// Why flash could not be read.
    type Error;

    /// Reads a whole page into a line.
    ///
    /// # Errors
    /// Anything that makes the page's content unusable; corrected bit flips do not.
    fn fill(&mut self, page: Page, line: &mut [u8]) -> Result<(), Self::Error>;

    /// Reads just these bytes into the caller's buffer. They may span pages.
    ///
    /// # Errors
    /// As flash has them; the read ends with it.
    fn direct(&mut self, peb: u32, offset: u32, bytes: u32) -> Result<(), Self::Error>;

    /// Copies bytes from a line into the caller's buffer: `bytes` from `from` in `line`, which are those at `offset` in
    /// the erase block.
    fn copy(&mut self, line: &[u8], from: u32, offset: u32, bytes: u32);
}

/// A cache that reads go through. It is notified of every change of flash, so its contents equal those of flash.
pub trait ReadCache {
    /// One read of `ubi_eba_read_leb`: `bytes` bytes, at least 1, from `offset` of erase block `peb`, not beyond its
    /// end.
    ///
    /// # Errors
    /// The error of the flash for exactly these bytes. A page that cannot be filled is not an error: the fault may be
    /// in other bytes of it, so the wanted ones are read alone.
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error>;

    /// A read below `ubi_eba_read_leb`: headers, the volume table, wear levelling. No cache in UBI sees it.
    ///
    /// # Errors
    /// As flash has them.
    #[inline]
    fn read_below<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        media.direct(peb, offset, bytes)
    }

    /// Bytes of an erase block are being written.
    fn written(&mut self, _peb: u32, _offset: u32, _bytes: u32) {}

    /// An erase block is being erased, or has gone bad.
    fn erased(&mut self, _peb: u32) {}

    /// Limits the memory of lines and tables. There are at most `most` lines, the cache's initial number.
    fn set_budget(&mut self, _bytes: u64, _most: u32) {}

    /// Counts since the start, of reads of `ubi_eba_read_leb` only.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Lines that hold a page.
    fn resident(&self) -> u32 {
        0
    }

    /// Memory beside the lines' bytes.
    fn metadata_bytes(&self) -> u64 {
        0
    }
}

/// No cache: every read goes to flash unchanged.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoCache;

impl ReadCache for NoCache {
    #[inline]
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        media.direct(peb, offset, bytes)
    }
}

/// A policy, its lines and its counters.
#[derive(Clone, Debug)]
pub struct PageCache<P, S> {
    policy: P,
    store: S,
    rules: Rules,
    costs: CostModel,
    page_shift: u32,
    counters: Counters,
}

impl<P: Policy, S: Store> PageCache<P, S> {
    /// A cache of pages as large as those of `costs`, a power of two.
    pub fn new(policy: P, store: S, rules: Rules, costs: CostModel) -> Self {
        debug_assert!(costs.page_bytes.is_power_of_two());
        let page_shift = costs.page_bytes.trailing_zeros();
        PageCache { policy, store, rules, costs, page_shift, counters: Counters::default() }
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Takes the policy with its state out.
    pub(crate) fn into_policy(self) -> P {
        self.policy
    }

    #[cold]
    fn split<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        let page_bytes = self.costs.page_bytes;
        let last = (offset + (bytes - 1)) >> self.page_shift;
        let small = last - (offset >> self.page_shift) + 1 < BULK_PAGES;
        let (mut at, mut left, mut all_hit) = (offset, bytes, true);
        // Bytes before `at` that no line holds: read together, as without a cache.
        let mut missing = 0;
        while left > 0 {
            let n = left.min(page_bytes - (at & (page_bytes - 1)));
            if small && n < page_bytes {
                self.flush(media, peb, at, &mut missing)?;
                all_hit &= self.part(media, peb, at, n)?;
            } else if let Some(line) = self.policy.peek(&self.touch(peb, at, n)) {
                self.flush(media, peb, at, &mut missing)?;
                self.copy(media, line, at, n);
            } else {
                missing += n;
                all_hit = false;
            }
            left -= n;
            at += n;
        }
        self.flush(media, peb, at, &mut missing)?;
        *match (small, all_hit) {
            (_, true) => &mut self.counters.hits,
            (true, false) => &mut self.counters.misses,
            (false, false) => &mut self.counters.no_query,
        } += 1;
        Ok(())
    }

    fn flush<M: Media>(&mut self, media: &mut M, peb: u32, end: u32, missing: &mut u32) -> Result<(), M::Error> {
        match std::mem::take(missing) {
            0 => Ok(()),
            n => media.direct(peb, end - n, n),
        }
    }

    #[inline]
    fn touch(&self, peb: u32, offset: u32, bytes: u32) -> Touch {
        let from = offset & (self.costs.page_bytes - 1);
        let part_ns = u32::try_from(self.costs.part(from, bytes).total_ns()).unwrap_or(u32::MAX);
        Touch { page: Page::new(peb, offset >> self.page_shift), offset: from, bytes, part_ns }
    }

    /// A read within one page; returns whether a line served it.
    #[inline]
    fn part<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<bool, M::Error> {
        let touch = self.touch(peb, offset, bytes);
        match self.policy.touch(&touch) {
            Answer::Hit(line) => {
                self.copy(media, line, offset, bytes);
                return Ok(true);
            }
            Answer::Fill(line) => {
                if media.fill(touch.page, self.store.line_mut(line)).is_ok() {
                    self.counters.fills += 1;
                    self.copy(media, line, offset, bytes);
                    return Ok(false);
                }
                self.policy.abandon(line);
                self.counters.failed_fills += 1;
            }
            Answer::Bypass => self.counters.bypasses += 1,
        }
        media.direct(peb, offset, bytes)?;
        Ok(false)
    }

    #[inline]
    fn copy<M: Media>(&mut self, media: &mut M, line: u32, offset: u32, bytes: u32) {
        self.counters.copied_bytes += u64::from(bytes);
        media.copy(self.store.line(line), offset & (self.costs.page_bytes - 1), offset, bytes);
    }

    /// Changes how many lines may be used, to at most the initial number.
    pub fn resize(&mut self, lines: u32) {
        let store = &mut self.store;
        self.policy.resize(lines, &mut |line| store.free(line));
    }
}

impl<P: Policy, S: Store> ReadCache for PageCache<P, S> {
    #[inline]
    fn read<M: Media>(&mut self, media: &mut M, peb: u32, offset: u32, bytes: u32) -> Result<(), M::Error> {
        let mask = self.costs.page_bytes - 1;
        let (first, last) = (offset >> self.page_shift, (offset + (bytes - 1)) >> self.page_shift);
        if first == last && bytes <= mask {
            let hit = self.part(media, peb, offset, bytes)?;
            *if hit { &mut self.counters.hits } else { &mut self.counters.misses } += 1;
            return Ok(());
        }
        match self.rules {
            Rules::Patch => {
                self.counters.no_query += 1;
                media.direct(peb, offset, bytes)
            }
            Rules::Split => self.split(media, peb, offset, bytes),
        }
    }

    fn written(&mut self, peb: u32, offset: u32, bytes: u32) {
        if bytes > 0 {
            let (first, last) = (offset >> self.page_shift, (offset + (bytes - 1)) >> self.page_shift);
            let n = self.policy.invalidate(Page::new(peb, first), last - first + 1);
            self.counters.dropped_by_write += u64::from(n);
        }
    }

    fn erased(&mut self, peb: u32) {
        self.counters.dropped_by_erase += u64::from(self.policy.invalidate(Page::new(peb, 0), u32::MAX));
    }

    fn set_budget(&mut self, bytes: u64, most: u32) {
        let store = &mut self.store;
        self.policy.fit(bytes, self.costs.page_bytes, most, &mut |line| store.free(line));
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn resident(&self) -> u32 {
        self.policy.resident()
    }

    fn metadata_bytes(&self) -> u64 {
        self.policy.metadata_bytes()
    }
}
