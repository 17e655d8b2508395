// SPDX-License-Identifier: MIT OR Apache-2.0
//! The learned and the adaptive cache. They make three judgements, each from the past alone, without a constant tuned
//! to a stream; the learned cache makes only the first:
//!
//! - **Which page is evicted** (`learning.rs`). Of the 64 pages touched longest ago the one least likely to be
//!   touched soon, by `reuse.rs`. A directory of tags simulates plain LRU beside it; while that has missed less, the
//!   cache evicts as LRU would.
//! - **Whether caching pays** (`judge.rs`). Pages that would be filled are followed even if they are not. While their
//!   assumed savings are below the cost of filling them, nothing is filled.
//! - **How much may be risked** (`judge.rs`). A fill is an investment in future hits. It is made only while the cache
//!   stays within 2 % of the cost of part reads alone so far, so no stream costs more than that.
//!
//! The first judgement needs tables of the size of two lines. Where a budget is so small that more lines gain more,
//! it is left out, and the least recently used page is evicted (`lean.rs`).

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

/// Tables to learn with may take at most the place of one line in this many.
const LINES_FOR_TABLES: u64 = 64;

/// Pages and lines, with or without tables to learn with.
#[derive(Clone, Debug)]
enum Shape {
    Learning(Box<Learning>),
    Lean(Lean),
}

/// The order of pages and the judgement of fills.
#[derive(Clone, Debug)]
pub struct Adaptive {
    shape: Shape,
    judge: Judge,
    /// The most lines.
    most: u32,
    page_bytes: u32,
}

impl Adaptive {
    /// The adaptive cache: `lines` lines for pages with the read costs `costs`.
    pub fn new(lines: u32, costs: &CostModel) -> Adaptive {
        Adaptive::with(lines, costs, true)
    }

    /// The learned cache, which fills on every miss.
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

    /// Lines that have tables, and whether there are tables to learn with.
    fn size(&self) -> (u32, bool) {
        match &self.shape {
            Shape::Learning(learning) => (learning.lines(), true),
            Shape::Lean(lean) => (lean.slots(), false),
        }
    }

    /// Rebuilds the tables for `lines` lines; the pages touched last stay, and so does learned data.
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

    /// For each possible line, whether it is one of `lines`.
    fn marked(&self, lines: impl Iterator<Item = u32>) -> Vec<bool> {
        let mut marked = vec![false; self.most as usize];
        lines.for_each(|line| marked[line as usize] = true);
        marked
    }

    /// Passes all lines without a page, whose memory is no longer needed, to `freed`.
    fn give_back(&self, freed: &mut dyn FnMut(u32)) {
        let filled = match &self.shape {
            Shape::Learning(learning) => self.marked(learning.filled_lines()),
            Shape::Lean(lean) => self.marked(lean.filled_lines()),
        };
        (0..self.most).filter(|&line| !filled[line as usize]).for_each(freed);
    }

    /// The most lines that fit into `bytes` bytes together with their tables of `bytes_of` bytes.
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
            // Without a limit in bytes there is room for tables.
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
