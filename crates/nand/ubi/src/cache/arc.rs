// SPDX-License-Identifier: MIT OR Apache-2.0
//! ARC of Megiddo and Modha (FAST 2003): two lists of lines, seen once and seen again, whose shares follow from which
//! of two lists of ghosts is asked for.

use super::frames::Frames;
use super::ghosts::Ghosts;
use super::seen::Seen;
use super::{Answer, Page, Policy, Touch};

/// The paper's T1, T2, B1, B2 and p.
#[derive(Clone, Debug)]
pub struct Arc {
    frames: Frames,
    seen: Seen,
    once_gone: Ghosts,
    again_gone: Ghosts,
    /// Lines that should be among those seen once.
    target: u32,
}

impl Arc {
    /// `lines` lines, and as many ghosts in all.
    pub fn new(lines: u32) -> Arc {
        Arc {
            frames: Frames::new(lines),
            seen: Seen::new(lines),
            once_gone: Ghosts::new(lines),
            again_gone: Ghosts::new(lines),
            target: 0,
        }
    }

    fn drop_line(&mut self, line: u32) {
        self.seen.remove(line);
        self.frames.remove(line);
    }

    /// Empties a line of the list that has more than its share, and remembers its page. In a tie `from_again` decides.
    fn replace(&mut self, from_again: bool) {
        let n = self.seen.once.len();
        let once = n > 0 && (n > self.target || (from_again && n == self.target)) || self.seen.again.is_empty();
        let line = self.seen.oldest(once);
        let Some(line) = line else { return };
        if let Some(page) = self.frames.page(line) {
            if once { self.once_gone.push(page) } else { self.again_gone.push(page) }
        }
        self.drop_line(line);
    }
}

impl Policy for Arc {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        if let Some(line) = self.frames.find(touch.page) {
            if self.seen.once.contains(line) {
                self.seen.once.remove(line);
                self.seen.again.push_back(line);
            } else {
                self.seen.again.touch(line);
            }
            return Answer::Hit(line);
        }
        let limit = self.frames.limit();
        if limit == 0 {
            return Answer::Bypass;
        }
        let (b1, b2) = (self.once_gone.len(), self.again_gone.len());
        let known = if self.once_gone.take(touch.page) {
            self.target = (self.target + (b2 / b1).max(1)).min(limit);
            true
        } else if self.again_gone.take(touch.page) {
            self.target = self.target.saturating_sub((b1 / b2).max(1));
            if self.frames.is_full() {
                self.replace(true);
            }
            true
        } else {
            false
        };
        if known {
            if self.frames.is_full() {
                self.replace(false);
            }
        } else if self.seen.once.len() + b1 >= limit {
            if self.seen.once.len() < limit {
                self.once_gone.pop();
                if self.frames.is_full() {
                    self.replace(false);
                }
            } else if let Some(line) = self.seen.once.front() {
                self.drop_line(line);
            }
        } else if self.frames.is_full() {
            if self.frames.len() + b1 + b2 >= 2 * limit {
                self.again_gone.pop();
            }
            self.replace(false);
        }
        let line = self.frames.insert(touch.page);
        self.seen.push(line, known);
        Answer::Fill(line)
    }

    fn abandon(&mut self, line: u32) {
        self.drop_line(line);
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let gone = self.frames.in_range(first, pages);
        gone.iter().for_each(|&line| self.drop_line(line));
        self.once_gone.invalidate(first, pages);
        self.again_gone.invalidate(first, pages);
        gone.len() as u32
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        self.frames.set_limit(lines);
        let lines = self.frames.limit();
        self.target = self.target.min(lines);
        while self.frames.len() > lines {
            self.replace(false);
        }
        self.once_gone.set_limit(lines);
        self.again_gone.set_limit(lines);
        self.frames.give_back(freed);
    }

    fn resident(&self) -> u32 {
        self.frames.len()
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        self.frames.find(page)
    }

    fn metadata_bytes(&self) -> u64 {
        self.frames.bytes() + self.seen.bytes() + self.once_gone.bytes() + self.again_gone.bytes()
    }
}
