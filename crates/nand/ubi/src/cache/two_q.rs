// SPDX-License-Identifier: MIT OR Apache-2.0
//! 2Q of Johnson and Shasha (VLDB 1994), the full version: a page enters a short queue; only if it is asked for again
//! after it has left that queue is it kept in order of recency. Sizes are those of the paper.

use super::frames::{Framed, Frames, Order};
use super::ghosts::Ghosts;
use super::seen::Seen;
use super::{Answer, Page};

/// Two queues of lines and one of ghosts.
pub type TwoQ = Framed<Queues>;

/// The order of [`TwoQ`].
#[derive(Clone, Debug)]
pub struct Queues {
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
        Framed::of(lines, Queues { seen: Seen::new(lines), gone: Ghosts::new(ghosts(lines)) })
    }
}

impl Order for Queues {
    #[inline]
    fn hit(&mut self, line: u32) {
        if self.seen.again.contains(line) {
            self.seen.again.touch(line);
        }
    }

    #[inline]
    fn miss(&mut self, frames: &mut Frames, page: Page) -> Answer {
        if frames.limit() == 0 {
            return Answer::Bypass;
        }
        let known = self.gone.take(page);
        let Some(line) = self.admit(frames, page) else { return Answer::Bypass };
        self.seen.push(line, known);
        Answer::Fill(line)
    }

    fn victim(&mut self, frames: &Frames) -> Option<u32> {
        let first = self.seen.once.len() > once_lines(frames.limit()) || self.seen.again.is_empty();
        let line = self.seen.oldest(first)?;
        if first && let Some(page) = frames.page(line) {
            self.gone.push(page);
        }
        Some(line)
    }

    fn dropped(&mut self, line: u32) {
        self.seen.remove(line);
    }

    fn forget(&mut self, first: Page, pages: u32) {
        self.gone.invalidate(first, pages);
    }

    fn resized(&mut self, lines: u32) {
        self.gone.set_limit(ghosts(lines));
    }

    fn bytes(&self, frames: &Frames) -> u64 {
        frames.bytes() + self.seen.bytes() + self.gone.bytes()
    }
}
