// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data of zones in the write buffer: of each zone the slots of its last blocks, in order, and the programs that they
//! are in. Programs end in any order, but count in order of blocks: a zone ends where the first is missing.
//!
//! It may not know where data lies, nor what slots hold.

use readpath_flash::Ppn;
use std::collections::VecDeque;

/// What a program is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) enum Kind {
    /// A whole program of a zone.
    Whole,
    /// Blocks that do not fill one.
    Rest,
}

/// State of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Open,
    Done,
}

/// A program of the next slots of a zone.
#[derive(Clone, Copy, Debug)]
pub(in crate::ftl) struct Sent {
    pub kind: Kind,
    pub first: Ppn,
    pub blocks: u32,
    outcome: Outcome,
}

/// Data of a zone in the write buffer.
#[derive(Default)]
pub(in crate::ftl) struct Tail {
    pub zone: u32,
    /// The block of the first slot.
    pub first: u32,
    slots: VecDeque<u16>,
    /// The first slots, of rests that are read back for a program; and reads of them in progress. Rests stay in flash
    /// until the program is there.
    loaded: u32,
    loads: u32,
    sent: VecDeque<Sent>,
    sent_blocks: u32,
}

#[derive(Default)]
pub(in crate::ftl) struct Tails {
    tails: Vec<Tail>,
    unused: Vec<Tail>,
}

impl Tails {
    #[inline]
    fn at(&self, zone: u32) -> Option<usize> {
        self.tails.iter().position(|tail| tail.zone == zone)
    }

    #[inline]
    pub(crate) fn get(&self, zone: u32) -> Option<&Tail> {
        self.tails.iter().find(|tail| tail.zone == zone)
    }

    pub(crate) fn get_mut(&mut self, zone: u32) -> Option<&mut Tail> {
        self.tails.iter_mut().find(|tail| tail.zone == zone)
    }

    /// The tail of a zone; a new one begins with block `first`.
    pub(crate) fn of(&mut self, zone: u32, first: u32) -> &mut Tail {
        let at = self.at(zone).unwrap_or_else(|| {
            let mut tail = self.unused.pop().unwrap_or_default();
            (tail.zone, tail.first) = (zone, first);
            self.tails.push(tail);
            self.tails.len() - 1
        });
        &mut self.tails[at]
    }

    /// Number of tails.
    pub(crate) fn len(&self) -> usize {
        self.tails.len()
    }

    /// The `index`-th of the tails.
    pub(crate) fn nth(&mut self, index: usize) -> &mut Tail {
        &mut self.tails[index]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Tail> {
        self.tails.iter()
    }

    /// Removes the tail of a zone; returns its slots.
    pub(crate) fn remove(&mut self, zone: u32) -> Vec<u16> {
        let Some(at) = self.at(zone) else { return Vec::new() };
        let mut tail = self.tails.remove(at);
        let slots = tail.slots.drain(..).collect();
        tail.sent.clear();
        (tail.loaded, tail.loads, tail.sent_blocks) = (0, 0, 0);
        self.unused.push(tail);
        slots
    }

    pub(crate) fn clear(&mut self) {
        self.tails.clear();
    }
}

impl Tail {
    /// The block behind the last.
    pub(crate) fn end(&self) -> u32 {
        self.first + self.slots.len() as u32
    }

    /// The first block that no program has yet.
    pub(crate) fn next(&self) -> u32 {
        self.first + self.sent_blocks
    }

    /// Whether rests were read back that are in no program yet.
    pub(crate) fn has_loaded(&self) -> bool {
        self.loaded > self.sent_blocks
    }

    /// Number of blocks that no program has yet.
    pub(crate) fn waiting(&self) -> u32 {
        self.slots.len() as u32 - self.sent_blocks
    }

    /// The slot of a block that is nowhere else.
    #[inline]
    pub(crate) fn slot(&self, block: u32) -> Option<u16> {
        if block < self.first + self.loaded {
            return None;
        }
        self.slots.get((block - self.first) as usize).copied()
    }

    /// The slot of the first block that no program has yet, and that was not read back.
    pub(crate) fn next_slot(&self) -> Option<u16> {
        self.slots.get(self.sent_blocks.max(self.loaded) as usize).copied()
    }

    /// Slots of blocks that no program has yet.
    pub(crate) fn next_slots(&self, blocks: u32) -> impl Iterator<Item = u16> + '_ {
        self.slots.iter().skip(self.sent_blocks as usize).take(blocks as usize).copied()
    }

    pub(crate) fn push(&mut self, slot: u16) {
        self.slots.push_back(slot);
    }

    /// Blocks before the first are being read into these slots. No program is open.
    pub(crate) fn load(&mut self, slots: &[u16]) {
        debug_assert!(self.sent.is_empty() && self.loaded == 0);
        slots.iter().rev().for_each(|slot| self.slots.push_front(*slot));
        self.first -= slots.len() as u32;
        self.loaded = slots.len() as u32;
    }

    /// One more read of blocks before the first has begun.
    pub(crate) fn load_begins(&mut self) {
        self.loads += 1;
    }

    /// A read has ended.
    pub(crate) fn load_ended(&mut self) {
        self.loads -= 1;
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.loads > 0
    }

    /// Blocks in whole programs that have not been applied.
    pub(crate) fn in_whole_programs(&self) -> u32 {
        self.sent.iter().filter(|sent| sent.kind == Kind::Whole).map(|sent| sent.blocks).sum()
    }

    /// Whether operations are in progress.
    pub(crate) fn is_busy(&self) -> bool {
        self.loads > 0 || self.sent.iter().any(|sent| sent.outcome == Outcome::Open)
    }

    /// Whether a program of a kind has not been applied.
    pub(crate) fn has_sent(&self, kind: Kind) -> bool {
        self.sent.iter().any(|sent| sent.kind == kind)
    }

    pub(crate) fn is_sending(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The next `blocks` are in a program.
    pub(crate) fn send(&mut self, kind: Kind, first: Ppn, blocks: u32) {
        self.sent.push_back(Sent { kind, first, blocks, outcome: Outcome::Open });
        self.sent_blocks += blocks;
    }

    /// A program has ended. False if it does not count any more, because one before it failed.
    pub(crate) fn ended(&mut self, first: Ppn) -> bool {
        let sent = self.sent.iter_mut().find(|sent| sent.first == first && sent.outcome == Outcome::Open);
        sent.map(|sent| sent.outcome = Outcome::Done).is_some()
    }

    /// A program failed: its blocks, and those behind them, need others. Returns their slots, and the programs that
    /// had ended in vain.
    pub(crate) fn failed(&mut self, first: Ppn) -> (Vec<u16>, Vec<Ppn>) {
        let open = |sent: &Sent| sent.first == first && sent.outcome == Outcome::Open;
        let Some(at) = self.sent.iter().position(open) else { return Default::default() };
        let gone = self.sent.split_off(at);
        let blocks = gone.iter().map(|sent| sent.blocks).sum();
        self.sent_blocks -= blocks;
        let in_vain = gone.iter().filter(|sent| sent.outcome == Outcome::Done).map(|sent| sent.first);
        (self.next_slots(blocks).collect(), in_vain.collect())
    }

    /// Takes the first program if it has ended, with its slots.
    pub(crate) fn take_done(&mut self, slots: &mut Vec<u16>) -> Option<Sent> {
        let sent = *self.sent.front().filter(|sent| sent.outcome == Outcome::Done)?;
        self.sent.pop_front();
        self.sent_blocks -= sent.blocks;
        self.first += sent.blocks;
        self.loaded = self.loaded.saturating_sub(sent.blocks);
        slots.clear();
        slots.extend(self.slots.drain(..sent.blocks as usize));
        Some(sent)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}
