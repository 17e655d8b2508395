// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deadlines of up to 4096 slots in a binary heap of single 64-bit words. A heap of (time, event) tuples or boxed
//! events costs two to four times as much per event; no crate offers the packed form. The earliest deadline lies
//! outside of the heap: with one operation in progress the heap itself is never touched.

use crate::Ns;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SLOT_BITS: u32 = 12;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;
/// Stands for no deadline; later than every word that [`DeadlineHeap::push`] makes.
const NONE: u64 = u64::MAX;

/// Pending deadlines, each belonging to a numbered slot. Equal times come out in slot order, so a run never depends on
/// the order of insertion.
///
/// Times must be below [`DeadlineHeap::LATEST`] (52 days of virtual time).
#[derive(Debug, Clone)]
pub struct DeadlineHeap {
    /// The earliest deadline, or `NONE`.
    first: u64,
    /// All other deadlines; empty when `first` is `NONE`.
    rest: BinaryHeap<Reverse<u64>>,
}

impl Default for DeadlineHeap {
    fn default() -> Self {
        Self::with_capacity(0)
    }
}

impl DeadlineHeap {
    /// Slots are numbered below this.
    pub const SLOTS: u32 = 1 << SLOT_BITS;
    /// The latest representable deadline.
    pub const LATEST: Ns = Ns((NONE >> SLOT_BITS) - 1);

    /// An empty heap with room for `capacity` deadlines before it allocates again.
    pub fn with_capacity(capacity: usize) -> Self {
        DeadlineHeap { first: NONE, rest: BinaryHeap::with_capacity(capacity) }
    }

    /// Adds a deadline for `slot`.
    ///
    /// # Panics
    /// When `at` is beyond [`DeadlineHeap::LATEST`] or `slot` is not below [`DeadlineHeap::SLOTS`]: either would
    /// silently reorder the run. Times and counts from a user have to be bounded first.
    #[inline(always)]
    pub fn push(&mut self, at: Ns, slot: u32) {
        assert!(at <= Self::LATEST, "virtual time exceeds 52 days");
        assert!(slot < Self::SLOTS, "slot {slot} of {}", Self::SLOTS);
        let word = at.0 << SLOT_BITS | u64::from(slot);
        let later = word.max(self.first);
        self.first = word.min(self.first);
        if later != NONE {
            self.rest.push(Reverse(later));
        }
    }

    /// The earliest deadline, or [`Ns::NEVER`].
    #[inline(always)]
    pub fn next(&self) -> Ns {
        if self.first == NONE { Ns::NEVER } else { Ns(self.first >> SLOT_BITS) }
    }

    /// Removes and returns the earliest deadline if it is due at `now`.
    #[inline(always)]
    pub fn pop_due(&mut self, now: Ns) -> Option<(Ns, u32)> {
        let due = (Ns(self.first >> SLOT_BITS), (self.first & SLOT_MASK) as u32);
        if due.0 > now || self.first == NONE {
            return None;
        }
        self.first = self.rest.pop().map_or(NONE, |Reverse(word)| word);
        Some(due)
    }

    /// Forgets every deadline.
    pub fn clear(&mut self) {
        self.first = NONE;
        self.rest.clear();
    }

    /// How many deadlines are pending.
    pub fn len(&self) -> usize {
        self.rest.len() + usize::from(self.first != NONE)
    }

    /// True when nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pops_in_time_then_slot_order(mut items in proptest::collection::vec((0u64..50, 0u32..4096), 0..200)) {
            let mut heap = DeadlineHeap::default();
            for &(t, s) in &items {
                heap.push(Ns(t), s);
            }
            items.sort_unstable();
            let mut out = Vec::new();
            while let Some((t, s)) = heap.pop_due(Ns::NEVER) {
                out.push((t.0, s));
            }
            prop_assert_eq!(out, items);
        }
    }

    #[test]
    fn what_is_not_due_stays() {
        let mut heap = DeadlineHeap::default();
        heap.push(Ns(10), 3);
        assert_eq!(heap.pop_due(Ns(9)), None);
        assert_eq!(heap.next(), Ns(10));
        assert_eq!(heap.pop_due(Ns(10)), Some((Ns(10), 3)));
        assert_eq!(heap.next(), Ns::NEVER);
        assert_eq!(heap.pop_due(Ns::NEVER), None);
    }

    #[test]
    fn the_latest_deadline_is_none_the_less_a_deadline() {
        let mut heap = DeadlineHeap::default();
        heap.push(DeadlineHeap::LATEST, DeadlineHeap::SLOTS - 1);
        assert_eq!((heap.next(), heap.len()), (DeadlineHeap::LATEST, 1));
        assert_eq!(heap.pop_due(Ns::NEVER), Some((DeadlineHeap::LATEST, DeadlineHeap::SLOTS - 1)));
        assert!(heap.is_empty());
    }
}
