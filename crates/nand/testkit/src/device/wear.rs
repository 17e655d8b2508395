// SPDX-License-Identifier: MIT OR Apache-2.0
//! States of erase blocks, and which one to take next: free, used, to be scrubbed, protected, waiting for erasure
//! (Linux, drivers/mtd/ubi/wl.c). It does no I/O and knows no logical blocks.

use readpath_ubi::attach::AttachInfo;
use std::collections::{BTreeSet, VecDeque};

/// Erasures during which a newly taken block is not moved, because it may still be being filled
/// (`UBI_PROT_QUEUE_LEN`).
const PROTECTION: usize = 10;

/// State of an erase block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PebState {
    /// Erased, with an EC header.
    Free,
    /// Holds a logical block, or is being filled.
    Used,
    /// Taken recently.
    Protected,
    /// Holds a logical block that has to be moved because of flips.
    Scrub,
    /// Holds a logical block that could not be read for a move.
    Erroneous,
    /// Waits for its erasure.
    ToErase,
    /// Damaged, kept for inspection.
    Corrupted,
    /// Belongs to an internal volume that is preserved.
    Alien,
    /// Marked bad.
    Bad,
}

#[derive(Clone, Copy, Debug)]
struct Peb {
    ec: u32,
    state: PebState,
    /// Test the block when it is erased.
    torture: bool,
}

/// The states of all blocks. Sets are ordered by erase counter, then by number.
#[derive(Clone, Debug)]
pub struct Wear {
    pebs: Vec<Peb>,
    free: BTreeSet<(u32, u32)>,
    used: BTreeSet<(u32, u32)>,
    scrub: BTreeSet<(u32, u32)>,
    /// Blocks by the erasure after which their protection ends.
    protected: [Vec<u32>; PROTECTION],
    head: usize,
    erase: VecDeque<u32>,
    pub(super) good: u32,
}

impl Wear {
    pub(super) fn new(pebs: u32, found: &AttachInfo) -> Self {
        let none = Peb { ec: 0, state: PebState::Bad, torture: false };
        let mut wear = Wear {
            pebs: vec![none; pebs as usize],
            free: BTreeSet::new(),
            used: BTreeSet::new(),
            scrub: BTreeSet::new(),
            protected: Default::default(),
            head: 0,
            erase: VecDeque::new(),
            good: pebs - found.bad.len() as u32,
        };
        for work in found.erase.iter() {
            wear.enter(work.peb, work.erase_counter, PebState::ToErase);
        }
        for &(peb, ec) in &found.free {
            wear.enter(peb, ec, PebState::Free);
        }
        for leb in found.volumes.values().flat_map(|v| v.lebs.values()) {
            wear.enter(leb.peb, leb.erase_counter, if leb.scrub { PebState::Scrub } else { PebState::Used });
        }
        for &(peb, ec) in &found.corrupted {
            wear.enter(peb, ec, PebState::Corrupted);
        }
        for &(peb, ec) in &found.fastmap {
            wear.enter(peb, ec, PebState::ToErase);
        }
        for &peb in &found.alien {
            wear.enter(peb, found.mean_ec, PebState::Alien);
        }
        wear
    }

    fn enter(&mut self, peb: u32, ec: u32, state: PebState) {
        self.pebs[peb as usize].ec = ec;
        self.set(peb, state);
    }

    /// Moves a block, which is in no set, into the set of a state.
    fn set(&mut self, peb: u32, state: PebState) {
        let key = (self.pebs[peb as usize].ec, peb);
        self.pebs[peb as usize].state = state;
        match state {
            PebState::Free => drop(self.free.insert(key)),
            PebState::Used => drop(self.used.insert(key)),
            PebState::Scrub => drop(self.scrub.insert(key)),
            PebState::Protected => self.protected[(self.head + PROTECTION - 1) % PROTECTION].push(peb),
            PebState::ToErase => self.erase.push_back(peb),
            PebState::Erroneous | PebState::Corrupted | PebState::Alien | PebState::Bad => {}
        }
    }

    /// Takes a block out of the set of its state.
    fn unset(&mut self, peb: u32) {
        let key = (self.pebs[peb as usize].ec, peb);
        match self.pebs[peb as usize].state {
            PebState::Free => drop(self.free.remove(&key)),
            PebState::Used => drop(self.used.remove(&key)),
            PebState::Scrub => drop(self.scrub.remove(&key)),
            PebState::Protected => self.protected.iter_mut().for_each(|q| q.retain(|&p| p != peb)),
            // Nearly always it is the next one; searching the queue for each erase would be slow on large devices.
            PebState::ToErase if self.erase.front() == Some(&peb) => drop(self.erase.pop_front()),
            PebState::ToErase => self.erase.retain(|&p| p != peb),
            PebState::Erroneous | PebState::Corrupted | PebState::Alien | PebState::Bad => {}
        }
    }

    /// Moves a block from one state to another.
    pub(super) fn change(&mut self, peb: u32, state: PebState) {
        self.unset(peb);
        self.set(peb, state);
    }

    /// State of a block.
    pub fn state(&self, peb: u32) -> PebState {
        self.pebs[peb as usize].state
    }

    /// Erase counter of a block.
    pub fn ec(&self, peb: u32) -> u32 {
        self.pebs[peb as usize].ec
    }

    /// Number of blocks that wait for their erasure.
    pub fn erase_count(&self) -> usize {
        self.erase.len()
    }

    /// Takes the least worn free block for data. It is protected from being moved for a while.
    pub(super) fn take(&mut self) -> Option<u32> {
        let (_, peb) = self.free.pop_first()?;
        self.set(peb, PebState::Protected);
        Some(peb)
    }

    /// Queues a block that is no longer needed for erasure.
    pub(super) fn put(&mut self, peb: u32, torture: bool) {
        self.pebs[peb as usize].torture |= torture;
        self.change(peb, PebState::ToErase);
    }

    /// Flips were found in a block: move it soon. No effect on blocks that no longer hold data.
    pub(super) fn scrub(&mut self, peb: u32) {
        if matches!(self.state(peb), PebState::Used | PebState::Protected) {
            self.change(peb, PebState::Scrub);
        }
    }

    /// Puts a block that waits for its erasure before all others.
    pub(super) fn erase_next(&mut self, peb: u32) {
        self.unset(peb);
        self.erase.push_front(peb);
    }

    /// The next block to erase, and whether to torture it. It stays in the queue.
    pub(super) fn next_erase(&self) -> Option<(u32, bool)> {
        self.erase.front().map(|&peb| (peb, self.pebs[peb as usize].torture))
    }

    /// A queued block was erased and now has this erase counter. The protection of older blocks comes closer to its
    /// end.
    pub(super) fn erased(&mut self, peb: u32, ec: u32) {
        self.unset(peb);
        self.pebs[peb as usize] = Peb { ec, state: PebState::Free, torture: false };
        self.set(peb, PebState::Free);
        let mut done = std::mem::take(&mut self.protected[self.head]);
        for peb in done.drain(..) {
            self.set(peb, PebState::Used);
        }
        self.protected[self.head] = done;
        self.head = (self.head + 1) % PROTECTION;
    }

    /// A block has gone bad.
    pub(super) fn bad(&mut self, peb: u32) {
        self.change(peb, PebState::Bad);
        self.good -= 1;
    }

    /// A move that is due: from and to. The target is no longer free.
    pub(super) fn next_move(&mut self, threshold: u32) -> Option<(u32, u32)> {
        // Not the most worn one if it is worn much more than the least worn one: it would soon wear out.
        let (least, _) = *self.free.first()?;
        let (to_ec, to) = *self.free.range(..(least.saturating_add(2 * threshold), 0)).next_back()?;
        let from = match self.scrub.first() {
            Some(&(_, from)) => from,
            None => {
                let &(from_ec, from) = self.used.first()?;
                if to_ec.saturating_sub(from_ec) < threshold {
                    return None;
                }
                from
            }
        };
        self.change(to, PebState::Used);
        Some((from, to))
    }

    /// Blocks in a state.
    pub fn count(&self, state: PebState) -> u32 {
        self.pebs.iter().filter(|p| p.state == state).count() as u32
    }

    /// Least and highest erase counter of good blocks.
    pub fn ec_range(&self) -> (u32, u32) {
        let good = || self.pebs.iter().filter(|p| p.state != PebState::Bad).map(|p| p.ec);
        (good().min().unwrap_or(0), good().max().unwrap_or(0))
    }
}
