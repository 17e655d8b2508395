// SPDX-License-Identifier: MIT OR Apache-2.0
//! Deadlines of up to 4096 slots in a binary heap of single 64-bit words. A heap of (time, event) tuples or boxed
//! events costs two to four times as much per event; no crate offers the packed form.

use crate::Ns;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SLOT_BITS: u32 = 12;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

/// Pending deadlines, each belonging to a numbered slot. Equal times come out in slot order, so a run never depends on
/// the order of insertion.
///
/// Times must be below [`DeadlineHeap::LATEST`] (52 days of virtual time).
#[derive(Default, Debug, Clone)]
pub struct DeadlineHeap {
    heap: BinaryHeap<Reverse<u64>>,
}

impl DeadlineHeap {
    /// The number of slots that can be told apart.
    pub const SLOTS: u32 = 1 << SLOT_BITS;
    /// The latest representable deadline.
    pub const LATEST: Ns = Ns(u64::MAX >> SLOT_BITS);

    /// An empty heap with room for `capacity` deadlines before it allocates again.
    pub fn with_capacity(capacity: usize) -> Self {
        DeadlineHeap { heap: BinaryHeap::with_capacity(capacity) }
    }

    /// Adds a deadline for `slot`.
    ///
    /// # Panics
    /// When `at` is beyond [`DeadlineHeap::LATEST`] or `slot` is not below [`DeadlineHeap::SLOTS`]: either would silently
    /// reorder the run. Whoever takes times or counts from a user bounds them first.
    #[inline]
    pub fn push(&mut self, at: Ns, slot: u32) {
        assert!(at <= Self::LATEST, "virtual time exceeds 52 days");
        assert!(slot < Self::SLOTS, "slot {slot} of {}", Self::SLOTS);
        self.heap.push(Reverse(at.0 << SLOT_BITS | u64::from(slot)));
    }

    /// The earliest deadline, or [`Ns::NEVER`].
    #[inline]
    pub fn next(&self) -> Ns {
        self.heap.peek().map_or(Ns::NEVER, |&Reverse(w)| Ns(w >> SLOT_BITS))
    }

    /// Removes and returns the earliest deadline if it is due at `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Ns) -> Option<(Ns, u32)> {
        let &Reverse(word) = self.heap.peek()?;
        let at = Ns(word >> SLOT_BITS);
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((at, (word & SLOT_MASK) as u32))
    }

    /// Forgets every deadline.
    pub fn clear(&mut self) {
        self.heap.clear();
    }

    /// How many deadlines are pending.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True when nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
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
    }
}
