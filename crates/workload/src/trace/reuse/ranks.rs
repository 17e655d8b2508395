// SPDX-License-Identifier: MIT OR Apache-2.0
//! A row of slots, each empty or taken, that says how many are taken behind one of them. Counts of 64, of 4096 and of
//! 262,144 slots are kept beside the bits, so that a query or a change touches only a few cache lines, at any length of
//! the row. It does not know what slots mean.

/// Slots, with counts of the taken ones.
#[derive(Clone)]
pub(super) struct Ranks {
    /// A bit for each slot.
    words: Vec<u64>,
    /// Taken slots of each word, 64 words together: a cache line.
    of_words: Vec<[u8; FAN]>,
    /// Taken slots of 64 words, 64 of those together.
    of_lines: Vec<[u16; FAN]>,
    /// Taken slots of 4096 words.
    of_pages: Vec<u32>,
}

/// Bits of a word, words of a count, counts of the next.
const FAN: usize = 64;

impl Ranks {
    /// A row of at least `slots` slots, all empty.
    pub(super) fn new(slots: usize) -> Ranks {
        let words = slots.div_ceil(FAN).next_multiple_of(FAN);
        let lines = words / FAN;
        let pages = lines.div_ceil(FAN);
        Ranks {
            words: vec![0; words],
            of_words: vec![[0; FAN]; lines],
            of_lines: vec![[0; FAN]; pages],
            of_pages: vec![0; pages],
        }
    }

    pub(super) fn slots(&self) -> usize {
        self.words.len() * FAN
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.of_words.fill([0; FAN]);
        self.of_lines.fill([0; FAN]);
        self.of_pages.fill(0);
    }

    #[inline]
    pub(super) fn take(&mut self, slot: usize) {
        let (word, line, page) = (slot / FAN, slot / FAN / FAN, slot / FAN / FAN / FAN);
        self.words[word] |= 1 << (slot % FAN);
        self.of_words[line][word % FAN] += 1;
        self.of_lines[page][line % FAN] += 1;
        self.of_pages[page] += 1;
    }

    #[inline]
    pub(super) fn free(&mut self, slot: usize) {
        let (word, line, page) = (slot / FAN, slot / FAN / FAN, slot / FAN / FAN / FAN);
        self.words[word] &= !(1 << (slot % FAN));
        self.of_words[line][word % FAN] -= 1;
        self.of_lines[page][line % FAN] -= 1;
        self.of_pages[page] -= 1;
    }

    #[inline]
    pub(super) fn behind(&self, slot: usize) -> u32 {
        let (word, line, page) = (slot / FAN, slot / FAN / FAN, slot / FAN / FAN / FAN);
        // Adds a whole line under a mask: this avoids a branch that may be mispredicted.
        let mut of_words = 0u16;
        for (i, &count) in (0u8..).zip(&self.of_words[line]) {
            of_words += u16::from(if i > (word % FAN) as u8 { count } else { 0 });
        }
        let mut of_lines = 0u32;
        for (i, &count) in (0u16..).zip(&self.of_lines[page]) {
            of_lines += u32::from(if i > (line % FAN) as u16 { count } else { 0 });
        }
        let of_slots = (self.words[word] >> (slot % FAN) >> 1).count_ones();
        of_slots + u32::from(of_words) + of_lines + self.of_pages[page + 1..].iter().sum::<u32>()
    }

    /// Slots that are taken, in order.
    pub(super) fn taken(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                (left != 0).then(|| {
                    left &= left - 1;
                    at * FAN + bit
                })
            })
        })
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.words.len() * 9 + self.of_words.len() * 2 + self.of_pages.len() * 4) as u64
    }
}
