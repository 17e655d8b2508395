// SPDX-License-Identifier: MIT OR Apache-2.0
//! The buffer through which valid data moves: slices that are read, ready to be programmed, or being programmed. It
//! knows neither victims nor the map.

use crate::ids::Lpn;
use readpath_flash::Ppn;
use std::collections::VecDeque;

/// Ends a chain of slices.
pub(super) const END: u16 = u16::MAX;

/// A slice in the move buffer.
#[derive(Clone, Copy, Debug)]
pub(in crate::ftl) struct Moving {
    /// Logical page.
    pub lpn: Lpn,
    /// Slice that it was read from.
    pub from: Ppn,
    /// Sequence number of its data.
    pub sequence: u32,
    next: u16,
}

pub(super) struct MoveBuffer {
    slots: Vec<Moving>,
    free: Vec<u16>,
    ready: VecDeque<u16>,
}

impl MoveBuffer {
    pub(super) fn new(slices: u32) -> Self {
        MoveBuffer {
            slots: vec![Moving { lpn: Lpn(0), from: Ppn(0), sequence: 0, next: END }; slices as usize],
            free: (0..slices as u16).rev().collect(),
            ready: VecDeque::with_capacity(slices as usize),
        }
    }

    /// Free slots.
    pub(super) fn room(&self) -> usize {
        self.free.len()
    }

    /// Number of slices ready to be programmed.
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Takes a slot for a slice that is read, and puts it before `chain`; returns the new head of the chain.
    pub(super) fn take(&mut self, lpn: Lpn, from: Ppn, sequence: u32, chain: u16) -> u16 {
        let slot = self.free.pop().expect("the caller has seen that there is room");
        self.slots[usize::from(slot)] = Moving { lpn, from, sequence, next: chain };
        slot
    }

    /// Takes the next slice from the chain, if there is one.
    pub(super) fn next(&self, chain: &mut u16) -> Option<(u16, Moving)> {
        let slot = *chain;
        if slot == END {
            return None;
        }
        let moving = self.slots[usize::from(slot)];
        *chain = moving.next;
        Some((slot, moving))
    }

    /// Marks the slice in `slot` as ready to be programmed.
    pub(super) fn is_ready(&mut self, slot: u16) {
        self.ready.push_back(slot);
    }

    pub(super) fn free(&mut self, slot: u16) {
        self.free.push(slot);
    }

    /// Drops ready slices of the first `unit` that are no longer current (`is_current`), as long as later ones take
    /// their place, or if none will come (`last`). Returns how many slices of the unit are left.
    pub(super) fn drop_gone(&mut self, unit: usize, last: bool, is_current: impl Fn(Ppn) -> bool) -> usize {
        while self.ready.len() >= unit || (last && !self.ready.is_empty()) {
            let n = self.ready.len().min(unit);
            let gone = (0..n).find(|&i| !is_current(self.slots[usize::from(self.ready[i])].from));
            let Some(gone) = gone else { break };
            let slot = self.ready.remove(gone).expect("found above");
            self.free.push(slot);
        }
        self.ready.len().min(unit)
    }

    /// Takes the first `n` ready slices as a chain, in order; `each` gets their logical pages, the last first.
    pub(super) fn take_ready(&mut self, n: usize, mut each: impl FnMut(Lpn)) -> u16 {
        let mut chain = END;
        for i in (0..n).rev() {
            let slot = self.ready[i];
            let moving = &mut self.slots[usize::from(slot)];
            moving.next = chain;
            chain = slot;
            each(moving.lpn);
        }
        self.ready.drain(..n);
        chain
    }

    /// Sequence numbers now count from `base` on.
    pub(super) fn renumber(&mut self, base: u32) {
        self.slots.iter_mut().for_each(|m| m.sequence = m.sequence.saturating_sub(base));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_leave_in_the_order_in_which_they_were_read_unless_they_are_gone() {
        let mut b = MoveBuffer::new(6);
        let mut chain = END;
        for i in (0..6).rev() {
            chain = b.take(Lpn(10 + i), Ppn(i), i, chain);
        }
        assert_eq!((b.room(), b.ready()), (0, 0));
        while let Some((slot, _)) = b.next(&mut chain) {
            b.is_ready(slot);
        }
        assert_eq!(b.drop_gone(4, false, |ppn| ppn.0 % 3 != 1), 4, "slices 1 and 4 are gone");
        assert_eq!((b.room(), b.ready()), (2, 4));
        let mut seen = Vec::new();
        let mut chain = b.take_ready(4, |lpn| seen.push(lpn.0));
        assert_eq!(seen, [15, 13, 12, 10]);
        let moved: Vec<_> = std::iter::from_fn(|| b.next(&mut chain)).map(|(_, m)| (m.from.0, m.sequence)).collect();
        assert_eq!(moved, [0, 2, 3, 5].map(|i| (i, i)));
        let last = b.take(Lpn(1), Ppn(1), 1, END);
        b.is_ready(last);
        assert_eq!((b.drop_gone(4, false, |_| false), b.drop_gone(4, true, |_| false)), (1, 0), "only the last unit");
        assert_eq!(b.room(), 2);
    }
}
