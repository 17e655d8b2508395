// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least recently used page goes.

use super::frames::Frames;
use super::{Answer, Page, Policy, Touch};
use readpath_kit::IndexLru;

/// Lines in order of their last touch.
#[derive(Clone, Debug)]
pub struct Lru {
    frames: Frames,
    order: IndexLru,
}

impl Lru {
    /// `lines` lines.
    pub fn new(lines: u32) -> Lru {
        Lru { frames: Frames::new(lines), order: IndexLru::new(lines as usize) }
    }

    fn drop_line(&mut self, line: u32) {
        self.frames.remove(line);
        self.order.remove(line);
    }
}

impl Policy for Lru {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        if let Some(line) = self.frames.find(touch.page) {
            self.order.touch(line);
            return Answer::Hit(line);
        }
        if self.frames.is_full() {
            let Some(coldest) = self.order.front() else { return Answer::Bypass };
            self.drop_line(coldest);
        }
        let line = self.frames.insert(touch.page);
        self.order.push_back(line);
        Answer::Fill(line)
    }

    fn abandon(&mut self, line: u32) {
        self.drop_line(line);
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let before = self.frames.len();
        for line in self.frames.in_range(first, pages) {
            self.drop_line(line);
        }
        before - self.frames.len()
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        self.frames.set_limit(lines);
        while self.frames.len() > self.frames.limit() {
            let Some(coldest) = self.order.front() else { break };
            self.drop_line(coldest);
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
        self.frames.bytes() + self.order.bytes()
    }
}
