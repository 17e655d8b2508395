// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines in two lists, seen once and seen again, shared by ARC and 2Q.

use readpath_kit::IndexLru;

/// Each line that holds a page is in one of the two.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Seen once, in order of arrival.
    pub once: IndexLru,
    /// Seen again, in order of recency.
    pub again: IndexLru,
}

impl Seen {
    /// Two empty lists of at most `lines` lines.
    pub(super) fn new(lines: u32) -> Seen {
        let list = || IndexLru::new(lines as usize);
        Seen { once: list(), again: list() }
    }

    /// Adds a line whose page was `known` before.
    pub(super) fn push(&mut self, line: u32, known: bool) {
        let list = if known { &mut self.again } else { &mut self.once };
        list.push_back(line);
    }

    /// A line is emptied.
    pub(super) fn remove(&mut self, line: u32) {
        let list = if self.once.contains(line) { &mut self.once } else { &mut self.again };
        list.remove(line);
    }

    /// The line that has been longest in one of the lists.
    pub(super) fn oldest(&self, once: bool) -> Option<u32> {
        if once { self.once.front() } else { self.again.front() }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.once.bytes() + self.again.bytes()
    }
}
