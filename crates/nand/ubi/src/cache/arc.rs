// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARC of Megiddo and Modha (FAST 2003): two lists of lines, seen once and seen again. Hits in two lists of ghosts
//! adjust their shares.

use super::frames::{Framed, Frames, Order};
use super::ghosts::Ghosts;
use super::seen::Seen;
use super::{Answer, Page};

/// The paper's cache.
pub type Arc = Framed<Shares>;

/// The order of [`Arc`]: the paper's T1, T2, B1, B2 and p.
#[derive(Clone, Debug)]
pub struct Shares {
    seen: Seen,
    once_gone: Ghosts,
    again_gone: Ghosts,
    /// Target number of lines seen once.
    target: u32,
}

impl Arc {
    /// `lines` lines, and as many ghosts in all.
    pub fn new(lines: u32) -> Arc {
        let ghosts = || Ghosts::new(lines);
        Framed::of(lines, Shares { seen: Seen::new(lines), once_gone: ghosts(), again_gone: ghosts(), target: 0 })
    }
}

impl Shares {
    /// Evicts from the list above its share; the page is remembered. In a tie `from_again` decides.
    fn choose(&mut self, frames: &Frames, from_again: bool) -> Option<u32> {
        let n = self.seen.once.len();
        let once = n > 0 && (n > self.target || (from_again && n == self.target)) || self.seen.again.is_empty();
        let line = self.seen.oldest(once)?;
        if let Some(page) = frames.page(line) {
            if once { self.once_gone.push(page) } else { self.again_gone.push(page) }
        }
        Some(line)
    }
}

impl Order for Shares {
    #[inline]
    fn hit(&mut self, line: u32) {
        if self.seen.once.contains(line) {
            self.seen.once.remove(line);
            self.seen.again.push_back(line);
        } else {
            self.seen.again.touch(line);
        }
    }

    #[inline]
    fn miss(&mut self, frames: &mut Frames, page: Page) -> Answer {
        let limit = frames.limit();
        if limit == 0 {
            return Answer::Bypass;
        }
        let (b1, b2) = (self.once_gone.len(), self.again_gone.len());
        let known = if self.once_gone.take(page) {
            self.target = (self.target + (b2 / b1).max(1)).min(limit);
            true
        } else if self.again_gone.take(page) {
            self.target = self.target.saturating_sub((b1 / b2).max(1));
            if frames.is_full()
                && let Some(line) = self.choose(frames, true)
            {
                self.dropped(line);
                frames.remove(line);
            }
            true
        } else {
            false
        };
        if !known && self.seen.once.len() + b1 >= limit {
            if self.seen.once.len() < limit {
                self.once_gone.pop();
            } else if let Some(line) = self.seen.once.front() {
                self.dropped(line);
                frames.remove(line);
            }
        } else if !known && frames.is_full() && frames.len() + b1 + b2 >= 2 * limit {
            self.again_gone.pop();
        }
        let Some(line) = self.admit(frames, page) else { return Answer::Bypass };
        self.seen.push(line, known);
        Answer::Fill(line)
    }

    fn victim(&mut self, frames: &Frames) -> Option<u32> {
        self.choose(frames, false)
    }

    fn dropped(&mut self, line: u32) {
        self.seen.remove(line);
    }

    fn forget(&mut self, first: Page, pages: u32) {
        self.once_gone.invalidate(first, pages);
        self.again_gone.invalidate(first, pages);
    }

    fn resized(&mut self, lines: u32) {
        self.target = self.target.min(lines);
        self.once_gone.set_limit(lines);
        self.again_gone.set_limit(lines);
    }

    fn bytes(&self, frames: &Frames) -> u64 {
        frames.bytes() + self.seen.bytes() + self.once_gone.bytes() + self.again_gone.bytes()
    }
}
