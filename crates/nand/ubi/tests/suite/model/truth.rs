// SPDX-License-Identifier: MIT OR Apache-2.0
//! Required contents of logical blocks, and possible contents after a power cut.

use readpath_kit::Prng;

/// A page: the stamp that determines its bytes, or `None` if it is unreadable.
pub type Page = Option<u64>;

/// Contents of a logical block: its pages from the first on; behind them it is erased.
pub type Content = Vec<Page>;

/// A logical block.
#[derive(Clone, Default, Debug)]
pub struct Leb {
    /// Its contents, if it is mapped.
    pub now: Option<Content>,
    /// Versions that may return after a power cut while it is unmapped, because their erase blocks may not be erased
    /// yet.
    pub ghosts: Vec<Content>,
}

impl Leb {
    /// Another version replaces this one.
    pub fn bury(&mut self) {
        self.ghosts.extend(self.now.take());
    }

    /// Whether contents found after a cut may be an old version.
    pub fn may_come_back(&self, found: &Content) -> bool {
        self.ghosts.iter().any(|ghost| is_remnant(found, ghost))
    }
}

/// Whether `found` is a remnant of `whole`: an earlier state of it, or partly destroyed.
pub fn is_remnant(found: &Content, whole: &Content) -> bool {
    found.len() <= whole.len() && found.iter().zip(whole).all(|(f, w)| f.is_none() || f == w)
}

/// The bytes of a page.
pub fn bytes(stamp: u64, out: &mut [u8]) {
    for (i, word) in (0u64..).zip(out.chunks_exact_mut(8)) {
        word.copy_from_slice(&(stamp ^ i << 48).to_le_bytes());
    }
}

/// The stamp of a page, if all its bytes agree with it; stamps are never 0xFF…, so an erased page has none.
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

    /// File systems may also write pages of only 0xFF, which could not be distinguished here.
    pub fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// A number of `0..n`, small ones with higher probability.
pub fn small(p: &mut Prng, n: u64) -> u64 {
    let below = p.below(n) + 1;
    p.below(below)
}
