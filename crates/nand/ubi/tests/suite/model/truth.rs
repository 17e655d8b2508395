// SPDX-License-Identifier: MIT OR Apache-2.0
//! What logical blocks have to hold, and what they may hold after a power cut.

use readpath_kit::Prng;

/// A page: the number from which its bytes follow, or `None` if it cannot be read any more.
pub type Page = Option<u64>;

/// What a logical block holds: its pages from the first on; behind them it is erased.
pub type Content = Vec<Page>;

/// A logical block.
#[derive(Clone, Default, Debug)]
pub struct Leb {
    /// What it holds, if it is mapped.
    pub now: Option<Content>,
    /// What may come back after a power cut when it is not mapped: versions whose erase blocks may not be erased yet.
    pub ghosts: Vec<Content>,
}

impl Leb {
    /// Another version takes the place of this one.
    pub fn bury(&mut self) {
        self.ghosts.extend(self.now.take());
    }

    /// Whether what was found after a cut may have come back.
    pub fn may_come_back(&self, found: &Content) -> bool {
        self.ghosts.iter().any(|ghost| is_remnant(found, ghost))
    }
}

/// Whether `found` is what is left of `whole`: maybe an earlier state of it, or partly destroyed.
pub fn is_remnant(found: &Content, whole: &Content) -> bool {
    found.len() <= whole.len() && found.iter().zip(whole).all(|(f, w)| f.is_none() || f == w)
}

/// The bytes of a page.
pub fn bytes(stamp: u64, out: &mut [u8]) {
    for (i, word) in (0u64..).zip(out.chunks_exact_mut(8)) {
        word.copy_from_slice(&(stamp ^ i << 48).to_le_bytes());
    }
}

/// The stamp of a page that was read, if its bytes agree with it; stamps are never 0xFF…, so that an erased page is
/// none.
pub fn stamp(page: &[u8]) -> Option<u64> {
    let first = u64::from_le_bytes(page[..8].try_into().expect("8 bytes"));
    let all = (0u64..).zip(page.chunks_exact(8)).all(|(i, word)| word == (first ^ i << 48).to_le_bytes());
    all.then_some(first)
}

/// New stamps.
pub struct Stamps(u64);

impl Stamps {
    pub fn new() -> Self {
        Stamps(1)
    }

    /// Sometimes a page of nothing but 0xFF would be written too; file systems do so, but it cannot be told apart here.
    pub fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// A number of `0..n`, small ones more often.
pub fn small(p: &mut Prng, n: u64) -> u64 {
    let below = p.below(n) + 1;
    p.below(below)
}
