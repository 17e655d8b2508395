// SPDX-License-Identifier: MIT OR Apache-2.0
//! A row of slots, each empty or taken, that says how many are taken behind one of them. Counts of 64, of 4096 and of
//! 262,144 slots are kept beside the bits, so that a question and a change look at a few cache lines, whatever the
//! length of the row. It knows nothing of what the slots stand for.

/// See the module.
#[derive(Clone)]
pub(super) struct Ranks {
    /// A bit for each slot.
    words: Vec<u64>,
    /// Taken slots of each word, of 64 words, and of 4096 words.
    counts: [Vec<u32>; 3],
}

/// Bits of a word, words of a count, counts of the next.
const FAN: usize = 64;

impl Ranks {
    /// A row of at least so many slots, all empty.
    pub(super) fn new(slots: usize) -> Ranks {
        let words = slots.div_ceil(FAN).next_multiple_of(FAN);
        let counts = [words, words / FAN, (words / FAN).div_ceil(FAN)].map(|n| vec![0; n]);
        Ranks { words: vec![0; words], counts }
    }

    pub(super) fn slots(&self) -> usize {
        self.words.len() * FAN
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.counts.iter_mut().for_each(|counts| counts.fill(0));
    }

    #[inline]
    pub(super) fn take(&mut self, slot: usize) {
        let word = slot / FAN;
        self.words[word] |= 1 << (slot % FAN);
        self.counts[0][word] += 1;
        self.counts[1][word / FAN] += 1;
        self.counts[2][word / FAN / FAN] += 1;
    }

    /// The slot is taken.
    #[inline]
    pub(super) fn free(&mut self, slot: usize) {
        let word = slot / FAN;
        self.words[word] &= !(1 << (slot % FAN));
        self.counts[0][word] -= 1;
        self.counts[1][word / FAN] -= 1;
        self.counts[2][word / FAN / FAN] -= 1;
    }

    /// Taken slots behind `slot`.
    #[inline]
    pub(super) fn behind(&self, slot: usize) -> u32 {
        let word = slot / FAN;
        let mut sum = (self.words[word] >> (slot % FAN) >> 1).count_ones();
        let mut at = word;
        for counts in &self.counts[..2] {
            let end = (at / FAN + 1) * FAN;
            sum += counts[at + 1..end.min(counts.len())].iter().sum::<u32>();
            at /= FAN;
        }
        sum + self.counts[2][at + 1..].iter().sum::<u32>()
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
        (self.words.len() * 8 + self.counts.iter().map(Vec::len).sum::<usize>() * 4) as u64
    }
}
