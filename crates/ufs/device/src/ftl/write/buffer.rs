// SPDX-License-Identifier: MIT OR Apache-2.0
//! The write buffer: blocks that were accepted and are not in flash yet. It knows slots, their order and the requests
//! that wait for them; not their destination, nor older data of the same blocks in flash.

use crate::ids::{Lpn, Mark, TagRef};
use std::collections::VecDeque;

/// Ends a chain of slots.
pub(crate) const NO_SLOT: u16 = u16::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Filled,
    Programming,
}

/// A place for a block, and what is known of the block in it.
#[derive(Clone, Copy)]
pub(in crate::ftl) struct Slot {
    state: State,
    hot: bool,
    /// Request that waits until this block is in flash.
    pub fua: TagRef,
    /// Logical page.
    pub lpn: Lpn,
    /// Next slot of the same program, or [`NO_SLOT`].
    pub next: u16,
    /// Order of acceptance, which a flush uses.
    order: u64,
    /// Orders it among writes.
    pub sequence: u32,
    /// The slot that held the block before, if it was in use then.
    older: u16,
    /// Trimmed, or overtaken by newer data: it is not mapped when it reaches flash.
    pub dead: bool,
    /// The record of the journal for its trim; 0 if newer data in flash overtook it.
    killed_by: Mark,
    /// Its trim or newer data was in flash before its program began, so the spare area names no block.
    pub void: bool,
}

impl Slot {
    const FREE: Slot = Slot {
        state: State::Free,
        hot: false,
        fua: TagRef::NONE,
        lpn: Lpn(0),
        next: NO_SLOT,
        order: 0,
        sequence: 0,
        older: NO_SLOT,
        dead: false,
        killed_by: 0,
        void: false,
    };

    /// Keeps the earliest kill record.
    fn kill(&mut self, by: Mark) {
        self.killed_by = if self.dead { self.killed_by.min(by) } else { by };
        self.dead = true;
    }
}

#[derive(Default)]
pub(in crate::ftl) struct WriteBuffer {
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Slots, behind the others, for data of zones that is read back.
    for_loads: u16,
    free_for_loads: Vec<u16>,
    /// Filled slots: cold, hot.
    filled: [VecDeque<u16>; 2],
    order: u64,
    /// Filled slots up to this order must not wait for a full page.
    flush_below: u64,
    syncs: Vec<Sync>,
}

struct Sync {
    tag: TagRef,
    below: u64,
    left: u32,
}

/// A block that enters the buffer.
#[derive(Clone, Copy, Debug)]
pub(in crate::ftl) struct Accepted {
    /// Logical page.
    pub lpn: Lpn,
    /// Orders it among writes.
    pub sequence: u32,
    /// The slot that holds an older version of the block, if any.
    pub older: Option<u16>,
    /// Whether it overwrites recently written data.
    pub hot: bool,
    /// The request that waits for it to reach flash.
    pub fua: Option<TagRef>,
    /// It is of a zone, which says when it is programmed.
    pub zoned: bool,
}

impl WriteBuffer {
    /// A buffer of `blocks`, and of `for_loads` more for data that is read back.
    pub(crate) fn new(blocks: u32, for_loads: u32) -> Self {
        let blocks = blocks.min(u32::from(NO_SLOT) - for_loads) as u16;
        let for_loads = for_loads as u16;
        let queue = || VecDeque::with_capacity(usize::from(blocks));
        WriteBuffer {
            slots: vec![Slot::FREE; usize::from(blocks + for_loads)],
            free: (0..blocks).rev().collect(),
            for_loads,
            free_for_loads: (blocks..blocks + for_loads).rev().collect(),
            filled: [queue(), queue()],
            ..WriteBuffer::default()
        }
    }

    /// Takes a slot for a block; `None` if the buffer is full.
    pub(crate) fn put(&mut self, block: Accepted) -> Option<u16> {
        let slot = self.free.pop()?;
        let order = self.order;
        self.order += 1;
        self.slots[usize::from(slot)] = Slot {
            state: State::Filled,
            hot: block.hot,
            fua: block.fua.unwrap_or(TagRef::NONE),
            lpn: block.lpn,
            order,
            sequence: block.sequence,
            older: block.older.unwrap_or(NO_SLOT),
            ..Slot::FREE
        };
        if !block.zoned {
            self.filled[usize::from(block.hot)].push_back(slot);
        }
        if block.fua.is_some() {
            self.flush_below = self.order;
        }
        Some(slot)
    }

    /// Whether newer data of the same block may replace that in `slot`: it is not being programmed, and no request
    /// waits for exactly this data.
    pub(crate) fn may_overwrite(&self, slot: u16) -> bool {
        let s = &self.slots[usize::from(slot)];
        s.state == State::Filled && s.fua == TagRef::NONE
    }

    /// Newer data has replaced that in `slot`.
    pub(crate) fn overwrite(&mut self, slot: u16, sequence: u32) {
        self.slots[usize::from(slot)].sequence = sequence;
    }

    /// Marks the data of the block in `slot` and older slots as dead: the record `by` trimmed it.
    pub(crate) fn kill(&mut self, slot: u16, by: Mark) {
        self.slots[usize::from(slot)].kill(by);
        self.kill_chain(slot, by);
    }

    fn kill_chain(&mut self, slot: u16, by: Mark) {
        let mut newer = self.slots[usize::from(slot)];
        while newer.older != NO_SLOT {
            let older = &mut self.slots[usize::from(newer.older)];
            // The slot may have been reused for another block since.
            if older.state == State::Free || older.lpn != newer.lpn || older.order >= newer.order {
                return;
            }
            older.kill(by);
            newer = *older;
        }
    }

    /// The spare areas of a program in progress, slot by slot from `first` on: logical page (if any) and sequence
    /// number.
    pub(crate) fn spares_of(&self, first: u16) -> impl Iterator<Item = (Option<Lpn>, u32)> {
        self.chain(first).map(|slot| {
            let s = &self.slots[usize::from(slot)];
            ((!s.void).then_some(s.lpn), s.sequence)
        })
    }

    /// The slots of a program, from `first` on.
    pub(crate) fn chain(&self, first: u16) -> impl Iterator<Item = u16> {
        let slot = |slot: u16| Some(slot).filter(|&slot| slot != NO_SLOT);
        std::iter::successors(slot(first), move |&at| slot(self.slots[usize::from(at)].next))
    }

    /// Logical pages in the buffer, and their slots.
    pub(crate) fn held(&self) -> impl Iterator<Item = (Lpn, u16)> {
        self.slots.iter().enumerate().filter(|(_, s)| s.state != State::Free).map(|(i, s)| (s.lpn, i as u16))
    }

    /// Number of hot or cold blocks that wait to be programmed.
    pub(crate) fn filled(&self, hot: bool) -> usize {
        self.filled[usize::from(hot)].len()
    }

    /// Whether a filled slot must be programmed even if its page does not fill.
    pub(crate) fn must_flush(&self, hot: bool) -> bool {
        self.filled[usize::from(hot)].front().is_some_and(|&s| self.slots[usize::from(s)].order < self.flush_below)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Takes up to `count` of the oldest filled slots for a program; returns the first of the chain and how many. The
    /// journal is in flash up to `durable`: a block whose trim has a later record must still be programmed with its
    /// name.
    pub(crate) fn take_for_program(&mut self, hot: bool, count: u32, durable: Mark) -> (u16, u32) {
        let (mut first, mut last, mut n) = (NO_SLOT, NO_SLOT, 0);
        while n < count
            && let Some(slot) = self.filled[usize::from(hot)].pop_front()
        {
            let taken = &mut self.slots[usize::from(slot)];
            taken.state = State::Programming;
            taken.next = NO_SLOT;
            taken.void = taken.dead && taken.killed_by <= durable;
            match last {
                NO_SLOT => first = slot,
                l => self.slots[usize::from(l)].next = slot,
            }
            last = slot;
            n += 1;
        }
        (first, n)
    }

    /// Takes slots, for blocks of these numbers, whose data is read back; `None` if there are too few.
    pub(crate) fn take_for_loads(&mut self, blocks: impl ExactSizeIterator<Item = (Lpn, u32)>) -> Option<Vec<u16>> {
        let left = self.free_for_loads.len().checked_sub(blocks.len())?;
        let slots = self.free_for_loads.split_off(left);
        for (&slot, (lpn, sequence)) in slots.iter().zip(blocks) {
            // No flush waits for data that has been in flash.
            let order = u64::MAX;
            self.slots[usize::from(slot)] = Slot { state: State::Filled, lpn, sequence, order, ..Slot::FREE };
        }
        Some(slots)
    }

    /// Slots of a zone are in a program from now on; returns the first of the chain.
    pub(crate) fn begin_program(&mut self, slots: impl DoubleEndedIterator<Item = u16>) -> u16 {
        let mut next = NO_SLOT;
        for slot in slots.rev() {
            let taken = &mut self.slots[usize::from(slot)];
            (taken.state, taken.next) = (State::Programming, next);
            next = slot;
        }
        next
    }

    /// Slots of a zone wait for another program.
    pub(crate) fn wait_again(&mut self, slots: &[u16]) {
        slots.iter().for_each(|&slot| self.slots[usize::from(slot)].state = State::Filled);
    }

    /// Whether a slot of a zone must be programmed even if it fills no program.
    pub(crate) fn must_flush_slot(&self, slot: u16) -> bool {
        self.slots[usize::from(slot)].order < self.flush_below
    }

    /// Drops the data in a slot of a zone, which no program has.
    pub(crate) fn drop_slot(&mut self, slot: u16, synced: impl FnMut(TagRef)) {
        self.slots[usize::from(slot)].state = State::Programming;
        self.release(slot, synced);
    }

    /// Logical page and sequence number of a slot.
    pub(crate) fn holds(&self, slot: u16) -> (Lpn, u32) {
        let slot = &self.slots[usize::from(slot)];
        (slot.lpn, slot.sequence)
    }

    /// A program failed: its slots, from `first` on, are programmed again, before all others.
    pub(crate) fn program_failed(&mut self, first: u16) {
        let chain: Vec<u16> = self.chain(first).collect();
        for &slot in chain.iter().rev() {
            let failed = &mut self.slots[usize::from(slot)];
            failed.state = State::Filled;
            self.flush_below = self.flush_below.max(failed.order + 1);
            self.filled[usize::from(failed.hot)].push_front(slot);
        }
    }

    /// Releases `slot` after its program, and marks older slots of its block as dead. SYNCHRONIZE CACHEs that waited
    /// only for this slot go to `synced`.
    pub(crate) fn release(&mut self, slot: u16, mut synced: impl FnMut(TagRef)) -> Slot {
        self.kill_chain(slot, 0);
        let s = &mut self.slots[usize::from(slot)];
        debug_assert_eq!(s.state, State::Programming);
        s.state = State::Free;
        let freed = *s;
        match usize::from(slot) < self.slots.len() - usize::from(self.for_loads) {
            true => self.free.push(slot),
            false => self.free_for_loads.push(slot),
        }
        self.syncs.retain_mut(|sync| {
            if freed.order < sync.below {
                sync.left -= 1;
            }
            if sync.left == 0 {
                synced(sync.tag);
            }
            sync.left > 0
        });
        freed
    }

    /// Lets request `tag` wait until everything accepted so far is in flash; true when it already is.
    pub(crate) fn sync(&mut self, tag: TagRef) -> bool {
        let left = (self.slots.len() - usize::from(self.for_loads) - self.free.len()) as u32;
        self.flush_below = self.order;
        if left > 0 {
            self.syncs.push(Sync { tag, below: self.order, left });
        }
        left == 0
    }

    /// Requests that everything accepted so far is programmed; no request waits for it.
    pub(crate) fn flush(&mut self) {
        self.flush_below = self.order;
    }

    /// Drops all waiting requests; accepted data stays.
    pub(crate) fn forget_waiters(&mut self) {
        self.syncs.clear();
        self.slots.iter_mut().for_each(|s| s.fua = TagRef::NONE);
    }

    /// Takes the waiting requests, which cannot be served for lack of space.
    pub(crate) fn take_waiters(&mut self) -> Vec<TagRef> {
        let mut waiters: Vec<TagRef> = self.syncs.drain(..).map(|s| s.tag).collect();
        for &slot in self.filled.iter().flatten() {
            waiters.push(std::mem::replace(&mut self.slots[usize::from(slot)].fua, TagRef::NONE));
        }
        waiters.retain(|w| *w != TagRef::NONE);
        waiters
    }

    pub(crate) fn clear(&mut self) {
        let for_loads = u32::from(self.for_loads);
        *self = WriteBuffer::new(self.slots.len() as u32 - for_loads, for_loads);
    }

    /// The smallest sequence number of data that has not reached flash.
    pub(crate) fn oldest_sequence(&self) -> Option<u32> {
        self.slots.iter().filter(|s| s.state != State::Free).map(|s| s.sequence).min()
    }

    /// Sequence numbers now count from `base` on.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.slots.iter_mut().for_each(|s| s.sequence = s.sequence.saturating_sub(base));
    }

    /// Number of slots.
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }
}
