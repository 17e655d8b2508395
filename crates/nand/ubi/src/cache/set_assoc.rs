// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each page may be in a few lines only, its set; the least recently used of the set is evicted, as in hardware
//! caches.

use super::index::NONE;
use super::{Answer, Page, Policy, Touch};

/// Lines of a set.
const WAYS: u32 = 4;

/// Sets of four lines; lines that do not fill a set stay unused.
#[derive(Clone, Debug)]
pub struct SetAssoc {
    /// Page and time of the last touch of each line, set after set.
    lines: Vec<(u64, u64)>,
    ways: u32,
    sets: u32,
    clock: u64,
    /// Lines with a page.
    held: u32,
}

impl SetAssoc {
    /// At most `lines` lines.
    pub fn new(lines: u32) -> SetAssoc {
        let mut cache = SetAssoc { lines: vec![(NONE, 0); lines as usize], ways: 0, sets: 0, clock: 0, held: 0 };
        cache.shape(lines);
        cache
    }

    fn shape(&mut self, lines: u32) {
        self.ways = WAYS.min(lines);
        self.sets = lines.checked_div(self.ways).unwrap_or(0);
    }

    #[inline]
    fn set_of(&self, page: Page) -> std::ops::Range<usize> {
        // The high half of the hash times the number of sets gives a set without a division.
        let set = ((page.hash() >> 32) * u64::from(self.sets)) >> 32;
        let from = set as usize * self.ways as usize;
        from..from + self.ways as usize
    }
}

impl Policy for SetAssoc {
    #[inline]
    fn touch(&mut self, touch: &Touch) -> Answer {
        if self.sets == 0 {
            return Answer::Bypass;
        }
        self.clock += 1;
        let range = self.set_of(touch.page);
        let from = range.start;
        let set = &mut self.lines[range];
        let mut oldest = 0;
        for i in 0..set.len() {
            if set[i].0 == touch.page.0 {
                set[i].1 = self.clock;
                return Answer::Hit((from + i) as u32);
            }
            if set[i].1 < set[oldest].1 {
                oldest = i;
            }
        }
        self.held += u32::from(set[oldest].0 == NONE);
        set[oldest] = (touch.page.0, self.clock);
        Answer::Fill((from + oldest) as u32)
    }

    fn abandon(&mut self, line: u32) {
        self.lines[line as usize] = (NONE, 0);
        self.held -= 1;
    }

    fn invalidate(&mut self, first: Page, pages: u32) -> u32 {
        let range = first.0..first.0 + u64::from(pages);
        let gone = self.lines.iter_mut().filter(|line| range.contains(&line.0));
        let n = gone.map(|line| *line = (NONE, 0)).count() as u32;
        self.held -= n;
        n
    }

    /// With another number of sets pages belong to other lines, so all are evicted.
    fn resize(&mut self, lines: u32, freed: &mut dyn FnMut(u32)) {
        let lines = lines.min(self.lines.len() as u32);
        let (ways, sets) = (self.ways, self.sets);
        self.shape(lines);
        if (ways, sets) != (self.ways, self.sets) {
            self.lines.fill((NONE, 0));
            self.held = 0;
            (0..self.lines.len() as u32).for_each(freed);
        }
    }

    fn resident(&self) -> u32 {
        self.held
    }

    fn line_of(&self, page: Page) -> Option<u32> {
        self.set_of(page).find(|&i| self.lines[i].0 == page.0).map(|i| i as u32)
    }

    fn metadata_bytes(&self) -> u64 {
        (self.lines.len() * size_of::<(u64, u64)>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that each set of a cache of `lines` lines would get.
    fn shares(lines: u32, pages: impl Iterator<Item = Page>) -> Vec<u32> {
        let cache = SetAssoc::new(lines);
        let mut shares = vec![0; cache.sets as usize];
        pages.for_each(|page| shares[cache.set_of(page).start / WAYS as usize] += 1);
        shares
    }

    #[test]
    fn each_set_gets_a_fair_share_of_neighbours() {
        for lines in [61, 64, 256, 1000] {
            let sets = lines / WAYS;
            for (peb, number) in [(0, 0), (2, 1), (17, 200), (1000, 127), (65_000, 3)] {
                let blocks = shares(lines, (0..8 * sets).map(|i| Page::new(peb + i, number)));
                let pages = shares(lines, (0..8 * sets).map(|i| Page::new(peb, number + i)));
                let both = shares(lines, (0..8 * sets).map(|i| Page::new(peb + i / 4, number + i % 4)));
                for shares in [blocks, pages, both] {
                    let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
                    assert!(*least >= 4 && *most <= 12, "{lines} lines, from {peb}:{number}: {shares:?}");
                }
            }
        }
    }
}
