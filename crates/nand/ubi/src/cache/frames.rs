// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a cache: which page each holds, and which are free. The budget may change at run time. Knows no policy.

use super::Page;
use super::index::{Index, NONE};

/// Numbered lines with pages. At most `limit` of them hold one.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    index: Index,
    free: Vec<u32>,
    limit: u32,
}

impl Frames {
    /// `most` lines, all of which may be used.
    pub(super) fn new(most: u32) -> Frames {
        Frames { index: Index::new(most), free: (0..most).rev().collect(), limit: most }
    }

    /// Lines that there will ever be.
    pub(super) fn most(&self) -> u32 {
        self.index.lines()
    }

    /// Lines that may hold a page now.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Lines that hold one.
    pub(super) fn len(&self) -> u32 {
        self.index.len()
    }

    /// Whether a page more needs a line of another's.
    pub(super) fn is_full(&self) -> bool {
        self.index.len() >= self.limit
    }

    /// The line of a page.
    #[inline]
    pub(super) fn find(&self, page: Page) -> Option<u32> {
        self.index.find(page.0)
    }

    /// The page of a line that holds one.
    #[inline]
    pub(super) fn page(&self, line: u32) -> Option<Page> {
        let page = self.index.page(line);
        (page != NONE).then_some(Page(page))
    }

    /// Gives a page that is in no line a free one; there is one unless [`Self::is_full`].
    pub(super) fn insert(&mut self, page: Page) -> u32 {
        let line = self.free.pop().expect("a line is free below the limit");
        self.index.insert(page.0, line);
        line
    }

    /// Empties a line that holds a page.
    pub(super) fn remove(&mut self, line: u32) {
        self.index.remove(line);
        self.free.push(line);
    }

    /// Sets the limit, at most [`Self::most`]; the caller removes pages above it, and says so with [`Self::give_back`].
    pub(super) fn set_limit(&mut self, lines: u32) {
        self.limit = lines.min(self.most());
    }

    /// Names all lines without a page, whose memory nobody needs now.
    pub(super) fn give_back(&self, freed: &mut dyn FnMut(u32)) {
        self.free.iter().for_each(|&line| freed(line));
    }

    /// Lines that hold one of `pages` pages from `first` on, all in one erase block.
    pub(super) fn in_range(&self, first: Page, pages: u32) -> Vec<u32> {
        self.index.in_range(first, pages)
    }

    /// Bytes that it keeps.
    pub(super) fn bytes(&self) -> u64 {
        self.index.bytes() + u64::from(self.most()) * size_of::<u32>() as u64
    }
}
