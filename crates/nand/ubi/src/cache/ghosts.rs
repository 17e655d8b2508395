// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remembered pages without a line; the oldest is forgotten first. 24 bytes each.

use super::Page;
use super::frames::Frames;
use readpath_kit::IndexLru;

/// A bounded list of pages in order of age.
#[derive(Clone, Debug)]
pub(super) struct Ghosts {
    frames: Frames,
    order: IndexLru,
}

impl Ghosts {
    /// Remembers at most `most` pages.
    pub(super) fn new(most: u32) -> Ghosts {
        Ghosts { frames: Frames::new(most), order: IndexLru::new(most as usize) }
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> u32 {
        self.frames.len()
    }

    /// Remembers a page that is not remembered yet; forgets the oldest for it. No effect if the limit is 0.
    pub(super) fn push(&mut self, page: Page) {
        if self.frames.is_full() {
            self.pop();
        }
        if !self.frames.is_full() {
            let entry = self.frames.insert(page);
            self.order.push_back(entry);
        }
    }

    /// Forgets the oldest.
    pub(super) fn pop(&mut self) {
        if let Some(oldest) = self.order.pop_front() {
            self.frames.remove(oldest);
        }
    }

    /// Forgets a page; whether it was remembered.
    pub(super) fn take(&mut self, page: Page) -> bool {
        let Some(entry) = self.frames.find(page) else { return false };
        self.frames.remove(entry);
        self.order.remove(entry);
        true
    }

    /// Forgets `pages` pages from `first` on.
    pub(super) fn invalidate(&mut self, first: Page, pages: u32) {
        for entry in self.frames.in_range(first, pages) {
            self.frames.remove(entry);
            self.order.remove(entry);
        }
    }

    /// Sets how many may be remembered, at most the initial number.
    pub(super) fn set_limit(&mut self, most: u32) {
        self.frames.set_limit(most);
        while self.frames.len() > self.frames.limit() {
            self.pop();
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.frames.bytes() + self.order.bytes()
    }
}
