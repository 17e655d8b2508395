// SPDX-License-Identifier: MIT OR Apache-2.0
//! The adaptive cache where memory is too short to learn: the least recently used page is evicted, but fills are
//! still judged. Its tables have exactly the size of those of plain LRU with as many lines, so it has no fewer lines
//! in any budget.

use super::judge::Judge;
use super::kept::{Kept, NO_LINE};
use crate::cache::index::{Index, NONE};
use crate::cache::{Answer, Page, Touch};
use readpath_kit::IndexLru;

/// Flag in a slot's line: the line holds the page.
const FILLED: u32 = 1 << 31;

/// Slots for followed pages, each with a line, filled or not.
#[derive(Clone, Debug)]
pub(super) struct Lean {
    index: Index,
    /// All slots by recency; slots without a page come first.
    order: IndexLru,
    lines: Vec<u32>,
    filled: u32,
}

impl Lean {
    /// Starts with the pages in `kept`, the coldest first; all other slots get lines of `free`. There are `slots`
    /// slots.
    pub(super) fn new(slots: u32, kept: &[Kept], mut free: impl Iterator<Item = u32>) -> Lean {
        let mut lean = Lean {
            index: Index::new(slots),
            order: IndexLru::new(slots as usize),
            lines: Vec::with_capacity(slots as usize),
            filled: 0,
        };
        let empty = slots as usize - kept.len();
        for (slot, kept) in (0..slots).zip(std::iter::repeat_n(None, empty).chain(kept.iter().map(Some))) {
            lean.order.push_back(slot);
            let filled = kept.map_or(NO_LINE, |kept| kept.line);
            if filled != NO_LINE {
                lean.filled += 1;
                lean.lines.push(filled | FILLED);
            } else {
                lean.lines.push(free.next().expect("lines are as many as slots"));
            }
            if let Some(kept) = kept {
                lean.index.insert(kept.page, slot);
            }
        }
        lean
    }

    /// Followed pages, the coldest first.
    pub(super) fn kept(&self) -> Vec<Kept> {
        let with_page = self.order.iter().filter(|&slot| self.index.page(slot) != NONE);
        let line = |slot| self.line(slot).unwrap_or(NO_LINE);
        with_page.map(|slot| Kept { page: self.index.page(slot), line: line(slot), known: None }).collect()
    }

    pub(super) fn slots(&self) -> u32 {
        self.index.lines()
    }

    /// The line of a slot, if it holds the slot's page.
    #[inline]
    fn line(&self, slot: u32) -> Option<u32> {
        let line = self.lines[slot as usize];
        (line & FILLED != 0).then_some(line & !FILLED)
    }

    fn empty(&mut self, slot: u32) -> bool {
        let line = &mut self.lines[slot as usize];
        let filled = *line & FILLED != 0;
        *line &= !FILLED;
        self.filled -= u32::from(filled);
        filled
    }

    #[inline]
    fn fill(&mut self, judge: &mut Judge, slot: u32, part_ns: u32) -> Answer {
        if !judge.fills(part_ns) {
            return Answer::Bypass;
        }
        let line = self.lines[slot as usize];
        self.lines[slot as usize] = line | FILLED;
        self.filled += 1;
        Answer::Fill(line)
    }

    #[inline]
    pub(super) fn touch(&mut self, judge: &mut Judge, touch: &Touch) -> Answer {
        let (part_ns, slots) = (touch.part_ns, self.slots());
        if let Some(slot) = self.index.find(touch.page.0) {
            self.order.touch(slot);
            judge.served(part_ns, slots);
            let Some(line) = self.line(slot) else { return self.fill(judge, slot, part_ns) };
            judge.hit(part_ns);
            return Answer::Hit(line);
        }
        judge.missed(part_ns, slots);
        let Some(slot) = self.order.front() else {
            judge.passed(part_ns);
            return Answer::Bypass;
        };
        if self.index.page(slot) != NONE {
            self.index.remove(slot);
            self.empty(slot);
        }
        self.index.insert(touch.page.0, slot);
        self.order.touch(slot);
        self.fill(judge, slot, part_ns)
    }

    /// As [`crate::cache::Policy::peek`].
    pub(super) fn peek(&mut self, judge: &mut Judge, touch: &Touch) -> Option<u32> {
        let slot = self.index.find(touch.page.0);
        if slot.is_some() {
            judge.served(touch.part_ns, self.slots());
        }
        let line = slot.and_then(|slot| self.line(slot));
        if line.is_some() {
            judge.hit(touch.part_ns)
        } else {
            judge.passed(touch.part_ns)
        }
        line
    }

    pub(super) fn line_of(&self, page: Page) -> Option<u32> {
        self.line(self.index.find(page.0)?)
    }

    /// Marks a line as empty.
    pub(super) fn abandon(&mut self, line: u32) {
        if let Some(slot) = (0..self.slots()).find(|&slot| self.line(slot) == Some(line)) {
            self.empty(slot);
        }
    }

    /// As [`crate::cache::Policy::invalidate`].
    pub(super) fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let mut emptied = 0;
        for slot in self.index.in_range(first, pages) {
            emptied += u32::from(self.empty(slot));
            self.index.remove(slot);
            self.order.remove(slot);
            self.order.push_front(slot);
        }
        emptied
    }

    pub(super) fn resident(&self) -> u32 {
        self.filled
    }

    /// Lines that hold a page.
    pub(super) fn filled_lines(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.slots()).filter_map(|slot| self.line(slot))
    }

    /// Bytes of the tables for `slots` slots.
    pub(super) fn bytes(slots: u32) -> u64 {
        Index::bytes_for(slots) + IndexLru::bytes_for(slots as usize) + u64::from(slots) * size_of::<u32>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Lru, Policy};

    #[test]
    fn it_takes_no_byte_more_than_lru() {
        for slots in [0, 1, 2, 3, 61, 64, 65, 1000] {
            let lean = Lean::new(slots, &[], 0..slots);
            let lines = (lean.lines.len() * size_of::<u32>()) as u64;
            assert_eq!(Lean::bytes(slots), lean.index.bytes() + lean.order.bytes() + lines, "{slots}");
            assert_eq!(Lean::bytes(slots), Lru::new(slots).metadata_bytes(), "{slots}");
        }
    }
}
