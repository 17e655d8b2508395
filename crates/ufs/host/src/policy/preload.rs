// SPDX-License-Identifier: MIT OR Apache-2.0
//! `preload`: `lru`, and lists of sub-regions that are loaded ahead.
//! - Of a system that says which application comes to the foreground (HPBvalve, FAST 2023, is told by Android), each
//!   application's own list: what served its reads the last time.
//! - Where nobody says so, as in a trace, what is learned from the reads alone: when two sub-regions are read in the
//!   order of an earlier time, an application is recognised, and what it read next then is loaded.
//!
//! Loads ahead wait behind those that reads ask for, and share their limit of loads in flight (`inflight_map_req`).

use super::apps::Apps;
use super::lru::Lru;
use super::{MapPolicy, Touch, Wish};
use crate::ids::{Id, SubRegionId};

/// Sub-regions loaded ahead of the reader at most.
const AHEAD: u64 = 16;
/// A sub-region that is among the last so many entries of the log is not entered again.
const APART: u64 = 64;
/// A list is followed if two entries were no further apart in it: requests overtake each other.
const SKIP: u64 = 16;
const LOG: usize = 8192;
const NEVER: u32 = u32::MAX;

pub(crate) struct Preload {
    lru: Lru,
    apps: Apps,
    /// What was read, in order, as a ring; positions go on counting.
    log: Vec<SubRegionId>,
    /// Where each sub-region was entered last.
    entered: Vec<u32>,
    /// Positions in the log so far.
    head: u64,
    /// Where the one before was, the time before.
    before: Option<u64>,
    /// Positions to be loaded ahead: the next and the end.
    ahead: (u64, u64),
}

impl Preload {
    pub(crate) fn new(sub_regions: u32) -> Self {
        let log = (sub_regions as usize).clamp(64, LOG);
        Preload {
            lru: Lru::new(sub_regions),
            apps: Apps::new(sub_regions),
            log: vec![SubRegionId::new(0); log],
            entered: vec![NEVER; sub_regions as usize],
            head: 0,
            before: None,
            ahead: (0, 0),
        }
    }

    fn at(&self, position: u64) -> SubRegionId {
        self.log[(position % self.log.len() as u64) as usize]
    }

    /// Where the sub-region was entered last, if the log still has it. Positions are kept with 32 bits.
    fn entered(&self, sub_region: SubRegionId) -> Option<u64> {
        let low = self.entered[sub_region];
        if low == NEVER {
            return None;
        }
        let back = u64::from((self.head as u32).wrapping_sub(low));
        let position = self.head.checked_sub(back)?;
        (back <= self.log.len() as u64 && back > 0 && self.at(position) == sub_region).then_some(position)
    }

    fn enter(&mut self, sub_region: SubRegionId) {
        let then = self.entered(sub_region);
        if then.is_some_and(|then| self.head - then <= APART) {
            return;
        }
        let slot = (self.head % self.log.len() as u64) as usize;
        self.log[slot] = sub_region;
        self.entered[sub_region] = self.head as u32;
        self.head += 1;
        if let (Some(then), Some(before)) = (then, self.before)
            && then > before
            && then - before <= SKIP
        {
            // The oldest entries are about to be overwritten.
            let oldest = (self.head + AHEAD).saturating_sub(self.log.len() as u64);
            self.ahead = ((then + 1).max(oldest), (then + 1 + AHEAD).min(self.head - 1));
        }
        self.before = then;
    }
}

impl MapPolicy for Preload {
    fn read(&mut self, touch: &Touch) -> Wish {
        if touch.eligible {
            self.enter(touch.sub_region);
        }
        if touch.eligible && touch.clean {
            self.apps.served(touch.sub_region);
        }
        self.lru.read(touch)
    }

    fn foreground(&mut self, app: u32) {
        self.apps.foreground(app);
        // An order that was followed until now was another application's.
        (self.before, self.ahead) = (None, (0, 0));
    }

    fn more(&mut self, held: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        while let Some(next) = self.apps.next_ahead() {
            if !held(next) {
                return Some(next);
            }
            self.lru.touch(next);
        }
        while self.ahead.0 < self.ahead.1 {
            let next = self.at(self.ahead.0);
            self.ahead.0 += 1;
            if !held(next) {
                return Some(next);
            }
            // It is about to be read: not the one to make room for the others.
            self.lru.touch(next);
        }
        None
    }

    fn loaded(&mut self, sub_region: SubRegionId) {
        self.lru.loaded(sub_region);
    }

    fn dropped(&mut self, sub_region: SubRegionId) {
        self.lru.dropped(sub_region);
    }

    fn victim(&mut self, candidate: Option<SubRegionId>, free: impl Fn(SubRegionId) -> bool) -> Option<SubRegionId> {
        self.lru.victim(candidate, free)
    }

    fn bytes(&self) -> u64 {
        self.lru.bytes() + self.apps.bytes() + (self.log.len() + self.entered.len()) as u64 * 4
    }
}
