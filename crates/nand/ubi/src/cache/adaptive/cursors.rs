// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages are often touched again in the order of their first touches: a directory is listed, then its entries are
//! visited in the order of the list. A cursor is the position of such a second pass. Cursors nest, as directories do.
//!
//! A cursor is a pair of times of the page last touched in the second pass: when it was touched in the first (`at`),
//! and when it was touched again (`moved`). Pages last touched before `at` were passed over; those between `at` and
//! `moved` are still to come.

/// The most levels kept.
const MOST: usize = 64;
/// Innermost levels that are distinguished.
const LEVELS: usize = 2;
/// Results of [`Cursors::place`]: after all cursors, and for each level passed or to come.
pub(super) const PLACES: usize = 3 + 2 * LEVELS;

/// Cursors from the outermost to the innermost; times rise in this order.
#[derive(Clone, Debug)]
pub(super) struct Cursors {
    list: Vec<(u32, u32)>,
}

impl Cursors {
    pub(super) fn new() -> Cursors {
        Cursors { list: Vec::with_capacity(MOST) }
    }

    /// At `now`, a page is touched again whose last touch was at `at`.
    pub(super) fn moved(&mut self, at: u32, now: u32) {
        // Passes that began after that page have ended.
        while self.list.last().is_some_and(|&(_, moved)| moved > at) {
            self.list.pop();
        }
        if self.list.len() == MOST {
            self.list.remove(0);
        }
        self.list.push((at, now));
    }

    /// Place of a page last touched at `last`: a number below [`PLACES`], and its distance from the cursor.
    pub(super) fn place(&self, last: u32, now: u32) -> (usize, u32) {
        for (i, &(at, moved)) in self.list.iter().rev().enumerate() {
            let level = i.min(LEVELS);
            if last > moved {
                // Touched after this cursor moved: without an inner cursor no pass has begun.
                return match i {
                    0 => (0, now - last),
                    _ => (1 + 2 * (i - 1).min(LEVELS), self.list[self.list.len() - i].0.abs_diff(last)),
                };
            }
            if last >= at {
                return (2 + 2 * level, last - at);
            }
        }
        (1 + 2 * self.list.len().saturating_sub(1).min(LEVELS), 0)
    }

    /// Forgets all cursors when times restart.
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Bytes of memory.
    pub(super) const BYTES: u64 = (MOST * size_of::<(u32, u32)>()) as u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_passes_are_told_apart() {
        let mut cursors = Cursors::new();
        assert_eq!(cursors.place(7, 10), (1, 0));
        // Touched at 1 to 100; at 101 the page of time 10 comes again, and within that 105 of 102 to 119.
        cursors.moved(10, 101);
        assert_eq!(cursors.place(5, 110), (1, 0), "passed over");
        assert_eq!(cursors.place(30, 110), (2, 20), "to come");
        assert_eq!(cursors.place(104, 110), (0, 6), "after the cursor");
        cursors.moved(105, 120);
        assert_eq!(cursors.place(103, 125), (1, 2), "passed over within");
        assert_eq!(cursors.place(110, 125), (2, 5), "to come within");
        assert_eq!(cursors.place(30, 125), (4, 20), "to come outside");
        // Back outside: the inner pass is over.
        cursors.moved(23, 150);
        assert_eq!(cursors.list, [(23, 150)]);
        assert_eq!(cursors.place(30, 151), (2, 7));
    }
}
