// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages are often touched again in the order in which they were touched before: a directory is listed, then its
//! entries are visited in the order of the list. A cursor is how far such a second pass has come. Cursors nest, as
//! directories do.
//!
//! A cursor is a pair of times: when the page that was touched last in the second pass had been touched in the first
//! (`at`), and when it was touched again (`moved`). Pages whose last touch lies before `at` were passed over; those
//! between `at` and `moved` are still to come.

/// Levels that are kept.
const MOST: usize = 64;
/// Levels from the innermost on that are distinguished.
const LEVELS: usize = 2;
/// What [`Cursors::place`] distinguishes: after all cursors, and for each level passed or to come.
pub(super) const PLACES: usize = 3 + 2 * LEVELS;

/// Cursors from the outermost to the innermost; times rise along them.
#[derive(Clone, Debug)]
pub(super) struct Cursors {
    list: Vec<(u32, u32)>,
}

impl Cursors {
    pub(super) fn new() -> Cursors {
        Cursors { list: Vec::with_capacity(MOST) }
    }

    /// At `now`, a page was touched again that had last been touched at `at`.
    pub(super) fn moved(&mut self, at: u32, now: u32) {
        // Passes that began after that are over.
        while self.list.last().is_some_and(|&(_, moved)| moved > at) {
            self.list.pop();
        }
        if self.list.len() == MOST {
            self.list.remove(0);
        }
        self.list.push((at, now));
    }

    /// Where a page stands that was last touched at `last`: a number below [`PLACES`], and how far it is from the
    /// cursor.
    pub(super) fn place(&self, last: u32, now: u32) -> (usize, u32) {
        for (i, &(at, moved)) in self.list.iter().rev().enumerate() {
            let level = i.min(LEVELS);
            if last > moved {
                // After this cursor moved: unless there is a cursor within, nothing has begun.
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

    /// Forgets all: times begin anew.
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    /// Bytes that it keeps.
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
