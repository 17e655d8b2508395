// SPDX-License-Identifier: MIT OR Apache-2.0
//! Evicts the least recently used page.

use super::frames::{Framed, Frames, Order};
use super::{Answer, Page};
use readpath_kit::IndexLru;

/// Lines in order of their last touch.
pub type Lru = Framed<Recency>;

/// The order of [`Lru`].
#[derive(Clone, Debug)]
pub struct Recency(IndexLru);

impl Lru {
    /// `lines` lines.
    pub fn new(lines: u32) -> Lru {
        Framed::of(lines, Recency(IndexLru::new(lines as usize)))
    }
}

impl Order for Recency {
    #[inline]
    fn hit(&mut self, line: u32) {
        self.0.touch(line);
    }

    #[inline]
    fn miss(&mut self, frames: &mut Frames, page: Page) -> Answer {
        let Some(line) = self.admit(frames, page) else { return Answer::Bypass };
        self.0.push_back(line);
        Answer::Fill(line)
    }

    fn victim(&mut self, _: &Frames) -> Option<u32> {
        self.0.front()
    }

    fn dropped(&mut self, line: u32) {
        self.0.remove(line);
    }

    fn bytes(&self, frames: &Frames) -> u64 {
        frames.bytes() + self.0.bytes()
    }
}
