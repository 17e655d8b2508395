// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cache of the RFC of 2016: each erase block has one line, `peb mod lines`, and collisions evict. With one line
//! it keeps the last page read.

use super::index::NONE;
use super::{Answer, Page, Policy, Touch};

/// One line for each remainder of the erase block's number.
#[derive(Clone, Debug)]
pub struct Direct {
    pages: Vec<u64>,
    lines: u32,
    /// Lines with a page.
    held: u32,
}

impl Direct {
    /// `lines` lines; a prime number spreads erase blocks best.
    pub fn new(lines: u32) -> Direct {
        Direct { pages: vec![NONE; lines as usize], lines, held: 0 }
    }
}

impl Policy for Direct {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        if self.lines == 0 {
            return Answer::Bypass;
        }
        let line = touch.page.peb() % self.lines;
        let held = &mut self.pages[line as usize];
        if *held == touch.page.0 {
            return Answer::Hit(line);
        }
        self.held += u32::from(*held == NONE);
        *held = touch.page.0;
        Answer::Fill(line)
    }

    fn abandon(&mut self, line: u32) {
        self.pages[line as usize] = NONE;
        self.held -= 1;
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let range = first.0..first.0 + u64::from(pages);
        match first.peb().checked_rem(self.lines) {
            Some(line) if range.contains(&self.pages[line as usize]) => {
                self.abandon(line);
                1
            }
            _ => 0,
        }
    }

    /// With another number of lines pages belong to other lines, so all are evicted.
    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        if lines != self.lines {
            self.pages.fill(NONE);
            self.held = 0;
            (0..self.lines).for_each(freed);
            self.lines = lines.min(self.pages.len() as u32);
        }
    }

    fn resident(&self) -> u32 {
        self.held
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        let line = page.peb().checked_rem(self.lines)?;
        (self.pages[line as usize] == page.0).then_some(line)
    }

    fn metadata_bytes(&self) -> u64 {
        (self.pages.len() * size_of::<u64>()) as u64
    }
}
