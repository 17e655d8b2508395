// SPDX-License-Identifier: MIT OR Apache-2.0
//! The learned and the adaptive cache. Three judgements, each made from the past alone, with no figure chosen for a
//! stream; the learned cache makes only the first:
//!
//! - **Which page goes** (`learning.rs`). Of the 64 pages touched longest ago the one least likely to be touched soon,
//!   by `reuse.rs`. A directory of tags follows plain LRU beside it; while that has missed less, the cache does as LRU
//!   would.
//! - **Whether caching pays** (`judge.rs`). Pages that would be filled are followed even if they are not. While what
//!   they would have saved is less than what filling them costs, nothing is filled.
//! - **What may be risked** (`judge.rs`). A fill is an advance on hits to come. It is made only while the cache stays
//!   within 2 % of what part reads alone would have cost so far, so no stream costs more than that.
//!
//! The first judgement needs tables of the size of two lines. Where a budget is so small that lines would do more, it
//! is not made, and the least recently used page goes (`lean.rs`).

mod cursors;
mod judge;
mod kept;
mod lean;
mod learning;
mod reuse;

use super::{Answer, Page, Policy, Touch};
use crate::cost::CostModel;
use judge::Judge;
use kept::NO_LINE;
use lean::Lean;
use learning::Learning;

/// Tables to learn with may take the place of one line of so many.
const LINES_FOR_TABLES: u64 = 64;

/// Pages and lines, with tables to learn with or without.
#[derive(Clone, Debug)]
enum Shape {
    Learning(Box<Learning>),
    Lean(Lean),
}

/// What chooses pages, and what judges fills.
#[derive(Clone, Debug)]
pub struct Adaptive {
    shape: Shape,
    judge: Judge,
    /// Lines that there are at most.
    most: u32,
    page_bytes: u32,
}

impl Adaptive {
    /// The adaptive cache: `lines` lines for pages of which a read costs what `costs` says.
    pub fn new(lines: u32, costs: &CostModel) -> Adaptive {
        Adaptive::with(lines, costs, true)
    }

    /// The learned cache, which fills whatever it misses.
    pub fn learned(lines: u32, costs: &CostModel) -> Adaptive {
        Adaptive::with(lines, costs, false)
    }

    fn with(lines: u32, costs: &CostModel, frugal: bool) -> Adaptive {
        let learning = Learning::new(lines, costs.page_bytes, &[], 0..lines);
        Adaptive {
            shape: Shape::Learning(Box::new(learning)),
            judge: Judge::new(costs, frugal),
            most: lines,
            page_bytes: costs.page_bytes,
        }
    }

    /// Lines that there are tables for, and whether there are those to learn with.
    fn size(&self) -> (u32, bool) {
        match &self.shape {
            Shape::Learning(learning) => (learning.lines(), true),
            Shape::Lean(lean) => (lean.slots(), false),
        }
    }

    /// Makes the tables anew, for `lines` lines; the pages touched last stay, and so does what was learned.
    fn reshape(&mut self, lines: u32, learns: bool) {
        if (lines, learns) == self.size() {
            return;
        }
        let kept = match &self.shape {
            Shape::Learning(learning) => learning.kept(),
            Shape::Lean(lean) => lean.kept(),
        };
        let kept = &kept[kept.len().saturating_sub(lines as usize)..];
        let used = self.marked(kept.iter().map(|kept| kept.line).filter(|&line| line != NO_LINE));
        let free = (0..self.most).filter(|&line| !used[line as usize]);
        let page_bytes = self.page_bytes;
        let old = std::mem::replace(&mut self.shape, Shape::Lean(Lean::new(0, &[], 0..0)));
        self.shape = match (old, learns) {
            (_, false) => Shape::Lean(Lean::new(lines, kept, free)),
            (Shape::Lean(_), true) => Shape::Learning(Box::new(Learning::new(lines, page_bytes, kept, free))),
            (Shape::Learning(old), true) => Shape::Learning(Box::new(old.with_lines(lines, page_bytes, kept, free))),
        };
    }

    /// For each line that there may be, whether it is one of `lines`.
    fn marked(&self, lines: impl Iterator<Item = u32>) -> Vec<bool> {
        let mut marked = vec![false; self.most as usize];
        lines.for_each(|line| marked[line as usize] = true);
        marked
    }

    /// Names all lines without a page, whose memory is no longer needed.
    fn give_back(&self, freed: &mut dyn FnMut(u32)) {
        let filled = match &self.shape {
            Shape::Learning(learning) => self.marked(learning.filled_lines()),
            Shape::Lean(lean) => self.marked(lean.filled_lines()),
        };
        (0..self.most).filter(|&line| !filled[line as usize]).for_each(freed);
    }

    /// Most lines for which there is room beside their tables, of `bytes_of` bytes, in `bytes` bytes.
    fn room(&self, bytes: u64, bytes_of: fn(u32) -> u64) -> u32 {
        let (mut low, mut high) = (0, self.most);
        while low < high {
            let middle = high - (high - low) / 2;
            let all = bytes_of(middle) + u64::from(middle) * u64::from(self.page_bytes);
            if all <= bytes { low = middle } else { high = middle - 1 }
        }
        low
    }
}

impl Policy for Adaptive {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        match &mut self.shape {
            Shape::Learning(learning) => learning.touch(&mut self.judge, touch),
            Shape::Lean(lean) => lean.touch(&mut self.judge, touch),
        }
    }

    fn peek(&mut self, touch: &Touch) -> Option<u32> {
        match &mut self.shape {
            Shape::Learning(learning) => learning.peek(&mut self.judge, touch),
            Shape::Lean(lean) => lean.peek(&mut self.judge, touch),
        }
    }

    fn abandon(&mut self, line: u32) {
        match &mut self.shape {
            Shape::Learning(learning) => learning.abandon(line),
            Shape::Lean(lean) => lean.abandon(line),
        }
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        match &mut self.shape {
            Shape::Learning(learning) => learning.invalidate(first, pages),
            Shape::Lean(lean) => lean.invalidate(first, pages),
        }
    }

    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        let lines = lines.min(self.most);
        match &mut self.shape {
            Shape::Learning(learning) if lines <= learning.lines() => learning.set_limit(lines),
            Shape::Lean(lean) if lines <= lean.slots() => self.reshape(lines, false),
            // Nothing is said of bytes, so there is room for tables.
            _ => self.reshape(lines, true),
        }
        self.give_back(freed);
    }

    fn fit(&mut self, bytes: u64, _line_bytes: u32, _most: u32, freed: &mut dyn FnMut(u32)) {
        let (learning, lean) = (self.room(bytes, Learning::bytes), self.room(bytes, Lean::bytes));
        let learns = u64::from(learning) * LINES_FOR_TABLES > u64::from(lean) * (LINES_FOR_TABLES - 1);
        let lines = if learns { learning } else { lean };
        self.reshape(lines, learns);
        self.resize(lines, freed);
    }

    fn resident(&self) -> u32 {
        match &self.shape {
            Shape::Learning(learning) => learning.resident(),
            Shape::Lean(lean) => lean.resident(),
        }
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        match &self.shape {
            Shape::Learning(learning) => learning.line_of(page),
            Shape::Lean(lean) => lean.line_of(page),
        }
    }

    fn metadata_bytes(&self) -> u64 {
        match self.size() {
            (lines, true) => Learning::bytes(lines),
            (lines, false) => Lean::bytes(lines),
        }
    }
}
