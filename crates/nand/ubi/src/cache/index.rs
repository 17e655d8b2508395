// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the line of a page: a flat table with open addressing, as in a kernel. A table with an entry for every page
//! of the device would need no probing, but for 4 GiB it would be larger than the cache.

use super::Page;

/// No page: erase block and page number of all ones, which no device has.
pub(super) const NONE: u64 = u64::MAX;
const EMPTY: u32 = u32::MAX;

/// Pages of numbered lines, found by page.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Line numbers; at most half of the slots are in use.
    slots: Vec<u32>,
    shift: u32,
    /// Page of each line, or [`NONE`].
    pages: Vec<u64>,
    len: u32,
}

impl Index {
    /// For lines `0..lines`, all without a page.
    pub(super) fn new(lines: u32) -> Index {
        let slots = Index::slots_for(lines);
        Index {
            slots: vec![EMPTY; slots],
            shift: 64 - slots.trailing_zeros(),
            pages: vec![NONE; lines as usize],
            len: 0,
        }
    }

    fn slots_for(lines: u32) -> usize {
        (lines as usize * 2).next_power_of_two().max(2)
    }

    /// How many lines have a page.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn lines(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Page of a line, or [`NONE`].
    #[inline]
    pub(super) fn page(&self, line: u32) -> u64 {
        self.pages[line as usize]
    }

    #[inline]
    fn home(&self, page: u64) -> usize {
        (Page(page).hash() >> self.shift) as usize
    }

    /// The line of a page.
    #[inline]
    pub(super) fn find(&self, page: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(page);
        loop {
            let line = self.slots[at];
            if line == EMPTY {
                return None;
            }
            if self.pages[line as usize] == page {
                return Some(line);
            }
            at = (at + 1) & mask;
        }
    }

    /// Gives a line without a page one that has no line.
    pub(super) fn insert(&mut self, page: u64, line: u32) {
        debug_assert!(self.pages[line as usize] == NONE && self.find(page).is_none());
        let mask = self.slots.len() - 1;
        let mut at = self.home(page);
        while self.slots[at] != EMPTY {
            at = (at + 1) & mask;
        }
        self.slots[at] = line;
        self.pages[line as usize] = page;
        self.len += 1;
    }

    /// Removes the page of a line.
    pub(super) fn remove(&mut self, line: u32) {
        let mask = self.slots.len() - 1;
        let mut hole = self.home(self.pages[line as usize]);
        while self.slots[hole] != line {
            hole = (hole + 1) & mask;
        }
        self.pages[line as usize] = NONE;
        self.len -= 1;
        // Entries that probed past the hole move up, so that no search ends at it too early.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let moved = self.slots[at];
            if moved == EMPTY {
                break;
            }
            let home = self.home(self.pages[moved as usize]);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.slots[hole] = moved;
                hole = at;
            }
        }
        self.slots[hole] = EMPTY;
    }

    /// Lines that hold one of `pages` pages from `first` on. Examines pages or lines, whichever are fewer. Allocates
    /// only if there are such lines.
    pub(super) fn in_range(&self, first: Page, pages: u32) -> Vec<u32> {
        let range = first.0..first.0 + u64::from(pages);
        if pages <= self.lines() {
            range.filter_map(|page| self.find(page)).collect()
        } else {
            (0..self.lines()).filter(|&line| range.contains(&self.page(line))).collect()
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        Index::bytes_for(self.lines())
    }

    /// Bytes of memory for `lines` lines.
    pub(super) fn bytes_for(lines: u32) -> u64 {
        (Index::slots_for(lines) * size_of::<u32>() + lines as usize * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_vector(ops in proptest::collection::vec((0u64..40, 0u32..8), 0..400), scale in 0u32..3) {
            let mut index = Index::new(8);
            let mut model = [NONE; 8];
            for (page, line) in ops {
                // Also pages that share their low or high bits.
                let page = page << (scale * 16);
                let line = line as usize;
                if model[line] != NONE {
                    index.remove(line as u32);
                    model[line] = NONE;
                } else if !model.contains(&page) {
                    index.insert(page, line as u32);
                    model[line] = page;
                }
                prop_assert_eq!(index.len() as usize, model.iter().filter(|p| **p != NONE).count());
                for p in 0u64..40 {
                    let p = p << (scale * 16);
                    prop_assert_eq!(index.find(p).map(|l| l as usize), model.iter().position(|m| *m == p));
                }
            }
        }
    }
}
