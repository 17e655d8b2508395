// SPDX-License-Identifier: MIT OR Apache-2.0
//! A log-structured mapper: blocks that may be overwritten, on zones that may not. Writes go to the ends of logs, each
//! with a zone of its own; cleaning copies what is valid in a zone out of it, and the zone is reset. F2FS works so with
//! six logs, because it knows nodes from data and hot files from cold ones. Here there are three: blocks that are
//! rewritten while they are young, all others that the host writes, and what cleaning moves.
//!
//! It knows blocks and zones, neither time nor commands. The map is memory of the host and never written: no metadata,
//! no checkpoints. A zone is reset only behind a flush, so that what took the place of its data is in flash.

use readpath_host::ZoneMapper;
use readpath_kit::Permutation;
use readpath_workload::ZonedUnit;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// No place, or no block.
const NONE: u32 = u32::MAX;
/// Copies of a victim in flight.
const MOST_COPIES: u32 = 4;
/// Blocks of a copy.
const MOST_BLOCKS: u32 = 128;

/// Which log a block goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heat {
    Hot,
    Warm,
    Cold,
}

/// Blocks in a row in one zone, from a place on: places count the blocks of all zones, without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub place: u32,
    pub blocks: u32,
}

/// What is to be done for cleaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Read these blocks, to write them elsewhere: [`Log::store`].
    Fetch(Run),
    /// A flush.
    Sync,
    /// Reset this zone.
    Reset(u32),
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    /// Blocks that were given out.
    given: u32,
    /// Of those, blocks that the map points to.
    valid: u32,
    /// Writes in flight.
    writes: u32,
    /// Reads and copies in flight: it is not reset meanwhile.
    users: u32,
    /// Zones that writes of the host had begun when this one was: the time by which ages count.
    begun: u32,
    /// It takes moved blocks.
    is_cold: bool,
    /// It is empty of data and on its way to be reset.
    leaves: bool,
}

#[derive(Clone, Copy, Debug)]
struct Victim {
    zone: u32,
    /// Blocks that were looked at.
    at: u32,
    copies: u32,
}

/// What a mapper has written and what it takes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct LogCounts {
    /// Blocks written for its users.
    pub written: u64,
    /// Blocks that cleaning moved.
    pub moved: u64,
    /// Bytes of its tables.
    pub map_bytes: u64,
}

/// The mapper of one unit.
#[derive(Debug)]
pub(super) struct Log {
    config: ZonedUnit,
    keep_free: u32,
    /// Place of each block.
    map: Vec<u32>,
    /// Block at each place.
    back: Vec<u32>,
    zones: Vec<Zone>,
    /// The zone at the end of each log.
    ends: [Option<u32>; 3],
    free: VecDeque<u32>,
    /// Zones that are written in part, or will be full when their last writes end.
    open: u32,
    /// Zones without data that no flush has begun for; those that the flush in flight is for; those to be reset.
    emptied: Vec<u32>,
    syncing: Vec<u32>,
    synced: Vec<u32>,
    is_syncing: bool,
    /// Zones whose reset is in flight.
    resetting: u32,
    victim: Option<Victim>,
    /// Zones that writes of the host have begun.
    begun: u32,
    counts: LogCounts,
}

impl Log {
    pub(super) fn new(config: ZonedUnit, zones: u32, mapper: ZoneMapper) -> Log {
        let places = zones * config.capacity;
        let logical = mapper.logical_blocks(zones, config.capacity);
        let zone = Zone { given: 0, valid: 0, writes: 0, users: 0, begun: 0, is_cold: false, leaves: false };
        let bytes = (u64::from(places) + u64::from(logical)) * 4 + u64::from(zones) * size_of::<Zone>() as u64;
        Log {
            config,
            keep_free: mapper.keep_free.into(),
            map: vec![NONE; logical as usize],
            back: vec![NONE; places as usize],
            zones: vec![zone; zones as usize],
            ends: [None; 3],
            free: (0..zones).collect(),
            open: 0,
            emptied: Vec::new(),
            syncing: Vec::new(),
            synced: Vec::new(),
            is_syncing: false,
            resetting: 0,
            victim: None,
            begun: 0,
            counts: LogCounts { map_bytes: bytes, ..LogCounts::default() },
        }
    }

    pub(super) fn counts(&self) -> LogCounts {
        self.counts
    }

    /// Blocks of a zone.
    pub(super) fn capacity(&self) -> u32 {
        self.config.capacity
    }

    /// The block of the unit at a place.
    pub(super) fn address(&self, place: u32) -> u32 {
        place / self.config.capacity * self.config.stride + place % self.config.capacity
    }

    fn zone_of(&self, place: u32) -> u32 {
        place / self.config.capacity
    }

    fn zone(&mut self, place: u32) -> &mut Zone {
        let zone = self.zone_of(place);
        &mut self.zones[zone as usize]
    }

    /// Blocks were written after all that were before, in no time.
    pub(super) fn preset(&mut self, first: u32, blocks: u32) {
        let mut at = first;
        while at < first + blocks {
            let Some(run) = self.room(Heat::Warm, first + blocks - at) else { return };
            self.written(at, run);
            at += run.blocks;
        }
        self.counts.written = 0;
    }

    /// The same, block by block in random order.
    pub(super) fn preset_at_random(&mut self, first: u32, blocks: u32, seed: u64) {
        let order = Permutation::new(u64::from(blocks), seed);
        (0..blocks).for_each(|i| self.preset(first + order.get(u64::from(i)) as u32, 1));
    }

    /// Where the blocks lie that were written, run by run.
    pub(super) fn read(&mut self, first: u32, blocks: u32, runs: &mut Vec<Run>) {
        runs.clear();
        for block in first..first + blocks {
            let place = self.map[block as usize];
            match runs.last_mut() {
                _ if place == NONE => {}
                Some(run) if run.place + run.blocks == place && !place.is_multiple_of(self.config.capacity) => {
                    run.blocks += 1;
                }
                _ => runs.push(Run { place, blocks: 1 }),
            }
        }
        runs.iter().for_each(|run| self.zone(run.place).users += 1);
    }

    /// A read or a copy from this place has ended.
    pub(super) fn used(&mut self, place: u32) {
        self.zone(place).users -= 1;
    }

    /// The log that a block goes to.
    pub(super) fn heat(&self, block: u32) -> Heat {
        let place = self.map[block as usize];
        if place == NONE {
            return Heat::Warm;
        }
        let zone = &self.zones[self.zone_of(place) as usize];
        let is_young = u64::from(self.begun - zone.begun) * 8 <= self.zones.len() as u64;
        if is_young && !zone.is_cold { Heat::Hot } else { Heat::Warm }
    }

    /// Whether a log may begin a zone. The last free zone, and the last that may be open, are kept for cleaning.
    fn may_begin(&self, heat: Heat) -> bool {
        match heat {
            Heat::Cold => self.open < self.config.most_open,
            _ => {
                let cleaning = u32::from(self.ends[Heat::Cold as usize].is_none());
                self.open + cleaning < self.config.most_open && self.free.len() >= 2
            }
        }
    }

    /// Room at the end of a log for some of so many blocks, if there is any.
    pub(super) fn room(&mut self, heat: Heat, blocks: u32) -> Option<Run> {
        let zone = match self.ends[heat as usize] {
            Some(zone) => zone,
            None if !self.may_begin(heat) => return None,
            None => {
                let zone = self.free.pop_front()?;
                self.open += 1;
                let is_cold = heat == Heat::Cold;
                self.begun += u32::from(!is_cold);
                let found = &mut self.zones[zone as usize];
                (found.begun, found.is_cold) = (self.begun, is_cold);
                *self.ends[heat as usize].insert(zone)
            }
        };
        let capacity = self.config.capacity;
        let found = &mut self.zones[zone as usize];
        let run = Run { place: zone * capacity + found.given, blocks: blocks.min(capacity - found.given) };
        found.given += run.blocks;
        found.writes += 1;
        if found.given == capacity {
            self.ends[heat as usize] = None;
        }
        match heat {
            Heat::Cold => self.counts.moved += u64::from(run.blocks),
            _ => self.counts.written += u64::from(run.blocks),
        }
        Some(run)
    }

    /// A write of blocks from `first` on has ended.
    pub(super) fn written(&mut self, first: u32, run: Run) {
        for (block, place) in (first..).zip(run.place..run.place + run.blocks) {
            self.forget(block);
            self.point(block, place);
        }
        self.wrote(run.place);
    }

    fn point(&mut self, block: u32, place: u32) {
        self.map[block as usize] = place;
        self.back[place as usize] = block;
        self.zone(place).valid += 1;
    }

    /// The map no longer has a block.
    fn forget(&mut self, block: u32) {
        let place = std::mem::replace(&mut self.map[block as usize], NONE);
        if place != NONE {
            self.back[place as usize] = NONE;
            self.zone(place).valid -= 1;
            self.look(self.zone_of(place));
        }
    }

    fn wrote(&mut self, place: u32) {
        let capacity = self.config.capacity;
        let zone = self.zone(place);
        zone.writes -= 1;
        if zone.given == capacity && zone.writes == 0 {
            self.open -= 1;
        }
        self.look(self.zone_of(place));
    }

    /// A full zone without data leaves.
    fn look(&mut self, zone: u32) {
        let found = &mut self.zones[zone as usize];
        if found.given == self.config.capacity && found.valid == 0 && found.writes == 0 && !found.leaves {
            found.leaves = true;
            self.emptied.push(zone);
        }
    }

    /// Blocks are discarded.
    pub(super) fn trim(&mut self, first: u32, blocks: u32) {
        (first..first + blocks).for_each(|block| self.forget(block));
    }

    /// What is to be done next, if anything.
    pub(super) fn work(&mut self) -> Option<Work> {
        if let Some(i) = self.synced.iter().position(|zone| self.zones[*zone as usize].users == 0) {
            self.resetting += 1;
            return Some(Work::Reset(self.synced.remove(i)));
        }
        if !self.emptied.is_empty() && !self.is_syncing {
            self.is_syncing = true;
            self.syncing = std::mem::take(&mut self.emptied);
            return Some(Work::Sync);
        }
        loop {
            if self.victim.is_none() {
                self.victim = self.choose();
            }
            let fetch = self.fetch();
            // A victim of which nothing is left makes room for the next.
            if fetch.is_some() || self.victim.is_some() || self.choose().is_none() {
                return fetch;
            }
        }
    }

    /// A flush has ended that [`Work::Sync`] asked for.
    pub(super) fn sync_ended(&mut self) {
        self.is_syncing = false;
        self.synced.append(&mut self.syncing);
    }

    /// A zone has been reset.
    pub(super) fn reset_ended(&mut self, zone: u32) {
        let found = &mut self.zones[zone as usize];
        (found.given, found.leaves) = (0, false);
        self.resetting -= 1;
        self.free.push_back(zone);
    }

    /// The zone that is most worth cleaning, if free zones are needed: the room that it gives for what is read and
    /// written, times its age (M. Rosenblum, J. K. Ousterhout, "The Design and Implementation of a Log-Structured File
    /// System", 1992), as F2FS does in the background. Young zones get emptier by themselves.
    fn choose(&self) -> Option<Victim> {
        let coming = self.emptied.len() + self.syncing.len() + self.synced.len() + self.resetting as usize;
        if self.free.len() + coming >= self.keep_free as usize {
            return None;
        }
        let capacity = self.config.capacity;
        let full = |zone: &Zone| zone.given == capacity && zone.writes == 0 && !zone.leaves;
        let rest = self.ends[Heat::Cold as usize].map_or(0, |end| capacity - self.zones[end as usize].given);
        let fits = |zone: &Zone| zone.valid < capacity && (!self.free.is_empty() || rest >= zone.valid);
        let worth = |zone: &Zone| {
            let age = u128::from(self.begun - zone.begun + 1);
            (u128::from(capacity - zone.valid) << 32) * age / u128::from(capacity + zone.valid)
        };
        let all = (0..).zip(&self.zones).filter(|(_, zone)| full(zone) && fits(zone));
        let (zone, _) = all.max_by_key(|(at, zone)| (worth(zone), Reverse(*at)))?;
        Some(Victim { zone, at: 0, copies: 0 })
    }

    /// The next blocks of the victim that are to be copied.
    fn fetch(&mut self) -> Option<Work> {
        let capacity = self.config.capacity;
        let victim = self.victim.as_mut().filter(|victim| victim.copies < MOST_COPIES)?;
        let base = victim.zone * capacity;
        if self.zones[victim.zone as usize].leaves {
            victim.at = capacity;
        }
        let is_valid = |at: &u32| self.back[(base + at) as usize] != NONE;
        let Some(from) = (victim.at..capacity).find(is_valid) else {
            victim.at = capacity;
            if victim.copies == 0 {
                self.victim = None;
            }
            return None;
        };
        let blocks = (from..capacity.min(from + MOST_BLOCKS)).take_while(is_valid).count() as u32;
        victim.at = from + blocks;
        victim.copies += 1;
        self.zones[victim.zone as usize].users += 1;
        Some(Work::Fetch(Run { place: base + from, blocks }))
    }

    /// Room for a part of blocks that were fetched.
    pub(super) fn store(&mut self, fetched: Run) -> Option<Run> {
        self.room(Heat::Cold, fetched.blocks)
    }

    /// A part of a copy has ended: blocks at `from` and behind are now also at `to`. Those that were written or
    /// discarded meanwhile stay where they are.
    pub(super) fn stored(&mut self, from: u32, to: Run) {
        for i in 0..to.blocks {
            let block = self.back[(from + i) as usize];
            if block != NONE {
                self.forget(block);
                self.point(block, to.place + i);
            }
        }
        self.wrote(to.place);
    }

    /// All of a copy from `place` on has ended.
    pub(super) fn copied(&mut self, place: u32) {
        self.used(place);
        let Some(victim) = &mut self.victim else { return };
        victim.copies -= 1;
        if victim.copies == 0 && victim.at == self.config.capacity {
            self.victim = None;
        }
    }
}
