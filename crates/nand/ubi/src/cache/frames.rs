// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a cache: which page each holds, and which are free. The budget may change at run time. Policies over
//! such lines differ in their [`Order`] only.

use super::index::{Index, NONE};
use super::{Answer, Page, Policy, Touch};

/// Numbered lines with pages. At most `limit` of them hold one.
#[derive(Clone, Debug)]
pub struct Frames {
    index: Index,
    free: Vec<u32>,
    limit: u32,
}

impl Frames {
    /// `most` lines, all of which may be used.
    pub(super) fn new(most: u32) -> Frames {
        Frames { index: Index::new(most), free: (0..most).rev().collect(), limit: most }
    }

    /// The most lines.
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

    /// Whether another page needs an eviction.
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

    /// Gives a page without a line a free one; there is one unless [`Self::is_full`].
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

    /// Sets the limit, at most [`Self::most`]; the caller removes pages above it, and calls [`Self::give_back`].
    pub(super) fn set_limit(&mut self, lines: u32) {
        self.limit = lines.min(self.most());
    }

    /// Passes all lines without a page, whose memory is no longer needed, to `freed`.
    pub(super) fn give_back(&self, freed: &mut dyn FnMut(u32)) {
        self.free.iter().for_each(|&line| freed(line));
    }

    /// Lines that hold one of `pages` pages from `first` on, all in one erase block.
    pub(super) fn in_range(&self, first: Page, pages: u32) -> Vec<u32> {
        self.index.in_range(first, pages)
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.index.bytes() + u64::from(self.most()) * size_of::<u32>() as u64
    }
}

/// The part of a policy that chooses victims.
pub trait Order {
    /// A touch of the page of a line.
    fn hit(&mut self, line: u32);

    /// A touch of a page without a line.
    fn miss(&mut self, frames: &mut Frames, page: Page) -> Answer;

    /// The line to evict, if any has a page. The order may remember the page: the line is emptied now.
    fn victim(&mut self, frames: &Frames) -> Option<u32>;

    /// A line is emptied.
    fn dropped(&mut self, _line: u32) {}

    /// Forgets pages that have no line.
    fn forget(&mut self, _first: Page, _pages: u32) {}

    /// From now on `lines` lines may be used.
    fn resized(&mut self, _lines: u32) {}

    /// Bytes of the order and the table of lines.
    fn bytes(&self, frames: &Frames) -> u64;

    /// Evicts one page.
    fn evict(&mut self, frames: &mut Frames) {
        if let Some(line) = self.victim(frames) {
            self.dropped(line);
            frames.remove(line);
        }
    }

    /// Gives a page a line, evicting another if need be; `None` if no line may be used.
    #[inline]
    fn admit(&mut self, frames: &mut Frames, page: Page) -> Option<u32> {
        if frames.limit() == 0 {
            return None;
        }
        if frames.is_full() {
            self.evict(frames);
        }
        Some(frames.insert(page))
    }
}

/// A policy over [`Frames`].
#[derive(Clone, Debug)]
pub struct Framed<O> {
    frames: Frames,
    order: O,
}

impl<O: Order> Framed<O> {
    pub(super) fn of(lines: u32, order: O) -> Framed<O> {
        Framed { frames: Frames::new(lines), order }
    }

    fn drop_line(&mut self, line: u32) {
        self.order.dropped(line);
        self.frames.remove(line);
    }
}

impl<O: Order> Policy for Framed<O> {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        match self.frames.find(touch.page) {
            Some(line) => {
                self.order.hit(line);
                Answer::Hit(line)
            }
            None => self.order.miss(&mut self.frames, touch.page),
        }
    }

    fn abandon(&mut self, line: u32) {
        self.drop_line(line);
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let gone = self.frames.in_range(first, pages);
        gone.iter().for_each(|&line| self.drop_line(line));
        self.order.forget(first, pages);
        gone.len() as u32
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        self.frames.set_limit(lines);
        self.order.resized(self.frames.limit());
        while self.frames.len() > self.frames.limit() {
            self.order.evict(&mut self.frames);
        }
        self.frames.give_back(freed);
    }

    fn resident(&self) -> u32 {
        self.frames.len()
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        self.frames.find(page)
    }

    fn metadata_bytes(&self) -> u64 {
        self.order.bytes(&self.frames)
    }
}
