// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hand goes round the lines: a page touched since the hand's last visit stays, the first other page is evicted.

use super::frames::{Framed, Frames, Order};
use super::{Answer, Page};

/// Lines on a ring, with a bit each.
pub type Clock = Framed<Ring>;

/// The order of [`Clock`].
#[derive(Clone, Debug)]
pub struct Ring {
    touched: Vec<bool>,
    hand: u32,
}

impl Clock {
    /// `lines` lines.
    pub fn new(lines: u32) -> Clock {
        Framed::of(lines, Ring { touched: vec![false; lines as usize], hand: 0 })
    }
}

impl Order for Ring {
    #[inline]
    fn hit(&mut self, line: u32) {
        self.touched[line as usize] = true;
    }

    #[inline]
    fn miss(&mut self, frames: &mut Frames, page: Page) -> Answer {
        let Some(line) = self.admit(frames, page) else { return Answer::Bypass };
        self.touched[line as usize] = false;
        Answer::Fill(line)
    }

    /// The line that the hand finds.
    fn victim(&mut self, frames: &Frames) -> Option<u32> {
        loop {
            let line = self.hand;
            self.hand = if line + 1 == frames.most() { 0 } else { line + 1 };
            if frames.page(line).is_some() && !std::mem::take(&mut self.touched[line as usize]) {
                return Some(line);
            }
        }
    }

    fn bytes(&self, frames: &Frames) -> u64 {
        frames.bytes() + self.touched.len().div_ceil(8) as u64
    }
}
