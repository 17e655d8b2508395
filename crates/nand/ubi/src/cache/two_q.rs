// SPDX-License-Identifier: MIT OR Apache-2.0
//! 2Q of Johnson and Shasha (VLDB 1994), the full version: a page enters a short queue; only if it is asked for again
//! after it has left that queue is it kept in order of recency. Sizes are those of the paper.

use super::frames::Frames;
use super::ghosts::Ghosts;
use super::seen::Seen;
use super::{Answer, Page, Policy, Touch};

/// Two queues of lines and one of ghosts.
#[derive(Clone, Debug)]
pub struct TwoQ {
    frames: Frames,
    seen: Seen,
    /// Pages that have left the list of those seen once.
    gone: Ghosts,
}

/// Lines of the first queue: a quarter.
fn once_lines(lines: u32) -> u32 {
    (lines / 4).max(1)
}

/// Ghosts: half as many as lines.
fn ghosts(lines: u32) -> u32 {
    (lines / 2).max(1)
}

impl TwoQ {
    /// `lines` lines.
    pub fn new(lines: u32) -> TwoQ {
        TwoQ { frames: Frames::new(lines), seen: Seen::new(lines), gone: Ghosts::new(ghosts(lines)) }
    }

    fn drop_line(&mut self, line: u32) {
        self.seen.remove(line);
        self.frames.remove(line);
    }

    /// Empties a line.
    fn evict(&mut self) {
        let first = self.seen.once.len() > once_lines(self.frames.limit()) || self.seen.again.is_empty();
        let line = self.seen.oldest(first);
        let Some(line) = line else { return };
        if first && let Some(page) = self.frames.page(line) {
            self.gone.push(page);
        }
        self.drop_line(line);
    }
}

impl Policy for TwoQ {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        if let Some(line) = self.frames.find(touch.page) {
            if self.seen.again.contains(line) {
                self.seen.again.touch(line);
            }
            return Answer::Hit(line);
        }
        if self.frames.limit() == 0 {
            return Answer::Bypass;
        }
        let known = self.gone.take(touch.page);
        if self.frames.is_full() {
            self.evict();
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
        self.gone.invalidate(first, pages);
        gone.len() as u32
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        self.frames.set_limit(lines);
        while self.frames.len() > self.frames.limit() {
            self.evict();
        }
        self.gone.set_limit(ghosts(lines));
        self.frames.give_back(freed);
    }

    fn resident(&self) -> u32 {
        self.frames.len()
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        self.frames.find(page)
    }

    fn metadata_bytes(&self) -> u64 {
        self.frames.bytes() + self.seen.bytes() + self.gone.bytes()
    }
}
