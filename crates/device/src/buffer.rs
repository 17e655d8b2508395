// SPDX-License-Identifier: MIT OR Apache-2.0
//! The write buffer: blocks that were accepted and are not in flash yet. It knows slots, their order and who waits for
//! them; not where they will go.

use std::collections::VecDeque;

/// Ends a chain of slots.
pub const NO_SLOT: u16 = u16::MAX;
/// Nobody waits for this slot.
pub const NO_TAG: u8 = u8::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Filled,
    Programming,
}

#[derive(Clone, Copy)]
struct Slot {
    state: State,
    /// Request that waits until this block is in flash, and its life.
    fua: (u8, u32),
    lpn: u32,
    /// Next slot of the same program.
    next: u16,
    seq: u64,
}

/// See the module.
pub struct WriteBuffer {
    slots: Vec<Slot>,
    free: Vec<u16>,
    filled: VecDeque<u16>,
    seq: u64,
    /// Filled slots up to this number must not wait for a full page.
    flush_below: u64,
    syncs: Vec<Sync>,
}

struct Sync {
    tag: u8,
    life: u32,
    below: u64,
    left: u32,
}

/// A slot that has left the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Freed {
    /// The logical page it held.
    pub lpn: u32,
    /// Next slot of the same program, or [`NO_SLOT`].
    pub next: u16,
    /// The request that waited for it, if any, and its life.
    pub fua: Option<(u8, u32)>,
}

impl WriteBuffer {
    /// An empty buffer of `blocks` slots.
    pub fn new(blocks: u32) -> Self {
        let free = Slot { state: State::Free, fua: (NO_TAG, 0), lpn: 0, next: NO_SLOT, seq: 0 };
        let blocks = blocks.min(u32::from(NO_SLOT)) as u16;
        WriteBuffer {
            slots: vec![free; usize::from(blocks)],
            free: (0..blocks).rev().collect(),
            filled: VecDeque::with_capacity(usize::from(blocks)),
            seq: 0,
            flush_below: 0,
            syncs: Vec::new(),
        }
    }

    /// Takes a slot for `lpn`; `fua` names the request that waits for it to reach flash.
    pub fn put(&mut self, lpn: u32, fua: Option<(u8, u32)>) -> Option<u16> {
        let slot = self.free.pop()?;
        let seq = self.seq;
        self.seq += 1;
        self.slots[usize::from(slot)] =
            Slot { state: State::Filled, fua: fua.unwrap_or((NO_TAG, 0)), lpn, next: NO_SLOT, seq };
        self.filled.push_back(slot);
        if fua.is_some() {
            self.flush_below = self.seq;
        }
        Some(slot)
    }

    /// Whether newer data of the same block may replace what `slot` holds: it is not being programmed, and nobody waits
    /// for just this data.
    pub fn may_overwrite(&self, slot: u16) -> bool {
        let s = &self.slots[usize::from(slot)];
        s.state == State::Filled && s.fua.0 == NO_TAG
    }

    /// Blocks that wait to be programmed.
    pub fn filled(&self) -> usize {
        self.filled.len()
    }

    /// Whether some filled slot must be programmed even if its page does not fill.
    pub fn must_flush(&self) -> bool {
        self.filled.front().is_some_and(|&s| self.slots[usize::from(s)].seq < self.flush_below)
    }

    /// Takes up to `count` of the oldest filled slots for a program; returns the first of the chain and how many.
    pub fn take_for_program(&mut self, count: u32) -> (u16, u32) {
        let (mut first, mut last, mut n) = (NO_SLOT, NO_SLOT, 0);
        while n < count
            && let Some(slot) = self.filled.pop_front()
        {
            self.slots[usize::from(slot)].state = State::Programming;
            match last {
                NO_SLOT => first = slot,
                l => self.slots[usize::from(l)].next = slot,
            }
            last = slot;
            n += 1;
        }
        (first, n)
    }

    /// The program of `slot` is done. Requests of SYNCHRONIZE CACHE that waited for it and for nothing else any more are
    /// handed to `synced` with their life.
    pub fn release(&mut self, slot: u16, mut synced: impl FnMut(u8, u32)) -> Freed {
        let s = &mut self.slots[usize::from(slot)];
        debug_assert_eq!(s.state, State::Programming);
        s.state = State::Free;
        let freed = Freed { lpn: s.lpn, next: s.next, fua: (s.fua.0 != NO_TAG).then_some(s.fua) };
        let seq = s.seq;
        self.free.push(slot);
        self.syncs.retain_mut(|sync| {
            if seq < sync.below {
                sync.left -= 1;
            }
            if sync.left == 0 {
                synced(sync.tag, sync.life);
            }
            sync.left > 0
        });
        freed
    }

    /// Request `tag` waits until everything accepted so far is in flash; true when it already is.
    pub fn sync(&mut self, tag: u8, life: u32) -> bool {
        let left = (self.slots.len() - self.free.len()) as u32;
        self.flush_below = self.seq;
        if left > 0 {
            self.syncs.push(Sync { tag, life, below: self.seq, left });
        }
        left == 0
    }

    /// Everything accepted so far is to be programmed, though nobody waits.
    pub fn flush(&mut self) {
        self.flush_below = self.seq;
    }

    /// Nobody waits for anything any more; what was accepted stays.
    pub fn forget_waiters(&mut self) {
        self.syncs.clear();
        self.slots.iter_mut().for_each(|s| s.fua = (NO_TAG, 0));
    }

    /// Takes out who waits and cannot be served, because there is no space.
    pub fn take_waiters(&mut self) -> Vec<(u8, u32)> {
        let mut waiters: Vec<(u8, u32)> = self.syncs.drain(..).map(|s| (s.tag, s.life)).collect();
        for &slot in &self.filled {
            waiters.push(std::mem::replace(&mut self.slots[usize::from(slot)].fua, (NO_TAG, 0)));
        }
        waiters.retain(|w| w.0 != NO_TAG);
        waiters
    }

    /// Slots in all.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}
