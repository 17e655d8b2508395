// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hand goes round the lines: what was touched since its last visit stays, the first that was not goes.

use super::frames::Frames;
use super::{Answer, Page, Policy, Touch};

/// Lines on a ring, with a bit each.
#[derive(Clone, Debug)]
pub struct Clock {
    frames: Frames,
    touched: Vec<bool>,
    hand: u32,
}

impl Clock {
    /// `lines` lines.
    pub fn new(lines: u32) -> Clock {
        Clock { frames: Frames::new(lines), touched: vec![false; lines as usize], hand: 0 }
    }

    /// Empties the line that the hand finds; there is a page in one.
    fn evict(&mut self) {
        loop {
            let line = self.hand;
            self.hand = if line + 1 == self.frames.most() { 0 } else { line + 1 };
            if self.frames.page(line).is_some() && !std::mem::take(&mut self.touched[line as usize]) {
                return self.frames.remove(line);
            }
        }
    }
}

impl Policy for Clock {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        if let Some(line) = self.frames.find(touch.page) {
            self.touched[line as usize] = true;
            return Answer::Hit(line);
        }
        if self.frames.limit() == 0 {
            return Answer::Bypass;
        }
        if self.frames.is_full() {
            self.evict();
        }
        let line = self.frames.insert(touch.page);
        self.touched[line as usize] = false;
        Answer::Fill(line)
    }

    fn abandon(&mut self, line: u32) {
        self.frames.remove(line);
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let gone = self.frames.in_range(first, pages);
        gone.iter().for_each(|&line| self.frames.remove(line));
        gone.len() as u32
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        self.frames.set_limit(lines);
        while self.frames.len() > self.frames.limit() {
            self.evict();
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
        self.frames.bytes() + self.touched.len().div_ceil(8) as u64
    }
}
