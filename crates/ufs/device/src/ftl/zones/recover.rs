// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a checkpoint says of zones, and what recovery makes of that and of the data, trims and records found since.
//!
//! A zone goes on with whole programs as long as the next was found, in a place behind that of the one before it: a
//! program that an earlier power cut left behind a lost one lies before what was written after that. Behind its last
//! whole program, a zone goes on block by block. Sequence numbers rise, because blocks were accepted in order; what an
//! earlier power cut left is older than the block before it.

use super::{Condition, Extent, Unit, Zone, Zones};
use crate::config::DeviceConfig;
use crate::ftl::map::Entry;
use crate::ftl::space::{Space, State, Stream, Superblock};
use crate::ids::{Lpn, SuperblockId};
use readpath_flash::Ppn;
use std::collections::BTreeMap;

/// A zone in a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) struct ZoneState {
    /// The superblock in which it begins.
    pub begins: Option<SuperblockId>,
    /// Blocks from its start on that lie in whole programs.
    pub placed: u32,
    /// It was finished when so many blocks were written.
    pub finished: Option<u32>,
}

/// The zones of all units in a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::ftl) struct ZoneStates {
    /// One after the other.
    pub zones: Vec<ZoneState>,
    /// Parts of zones that do not follow from where these begin: zone, first block, place.
    pub others: Vec<(u32, u32, Extent)>,
    /// Blocks that lie in no whole program, in order.
    pub rests: Vec<(Lpn, Ppn)>,
}

impl ZoneState {
    pub(in crate::ftl) const EMPTY: ZoneState = ZoneState { begins: None, placed: 0, finished: None };
}

impl ZoneStates {
    /// Zones that were never written.
    pub(in crate::ftl) fn empty(zones: usize) -> Self {
        ZoneStates { zones: vec![ZoneState::EMPTY; zones], ..ZoneStates::default() }
    }

    /// Bytes in flash.
    pub(in crate::ftl) fn bytes(&self) -> u64 {
        match self.zones.len() as u64 {
            0 => 0,
            zones => 8 + zones * 12 + self.others.len() as u64 * 16 + self.rests.len() as u64 * 8,
        }
    }
}

impl ZoneStates {
    /// Whether a device can have them: places lie in the flash, and only zones have rests.
    pub(in crate::ftl) fn are_possible(&self, config: &DeviceConfig) -> bool {
        let program = config.zone_program_blocks();
        let most = config.zone_slices() / program;
        let mut others = self.others.iter().peekable();
        for (zone, state) in (0..).zip(&self.zones) {
            let mut starts = vec![(0, 0)];
            while let Some(&(_, from, extent)) = others.next_if(|other| other.0 == zone) {
                starts.push((from, extent.program));
            }
            let ends = starts.iter().skip(1).map(|start| start.0).chain([state.placed]);
            for (&(from, first), end) in starts.iter().zip(ends) {
                if first > most
                    || from > end
                    || from > 0 && from == end
                    || (end - from).div_ceil(program) > most - first
                {
                    return false;
                }
            }
        }
        let zones_from = Lpn(config.mapped_blocks() as u32);
        others.next().is_none() && self.rests.first().is_none_or(|(lpn, _)| *lpn >= zones_from)
    }
}

/// What recovery found since the checkpoint.
pub(in crate::ftl) struct Found<'a> {
    /// Sequence number of the checkpoint.
    pub sequence: u32,
    /// Newest sequence number and place of each block whose data was found.
    pub newest: &'a BTreeMap<Lpn, (u32, Entry)>,
    /// Trims that the journal names: first logical page, the one behind the last, sequence number.
    pub trims: &'a [(Lpn, Lpn, u32)],
    /// Zones that were finished: first logical page, blocks written then, sequence number.
    pub finished: &'a [(Lpn, u32, u32)],
    /// Superblocks as the journal says.
    pub table: &'a [Superblock],
}

impl Found<'_> {
    /// The program of a zone that a slice is in, and the block within.
    fn program_of(&self, space: &Space, ppn: Ppn) -> Option<(Extent, u32)> {
        let (superblock, program, block) = space.program_of(ppn);
        let state = self.table[superblock.index()].state;
        let is_zone = matches!(state, State::Open(Stream::Zone) | State::Closed(Stream::Zone));
        is_zone.then_some((Extent { superblock, program }, block))
    }

    /// Orders programs of zones by when they began.
    fn order(&self, at: Extent) -> (u32, u32) {
        (self.table[at.superblock.index()].opened_at, at.program)
    }
}

/// A zone from a checkpoint.
struct Before {
    state: ZoneState,
    others: Vec<(u32, Extent)>,
    rests: BTreeMap<u32, Ppn>,
}

impl Zones {
    /// The zones as a checkpoint keeps them. `rests` are all blocks that lie in no whole program.
    pub(in crate::ftl) fn states(&self, rests: impl Iterator<Item = (Lpn, Ppn)>) -> ZoneStates {
        let mut zones = Vec::new();
        for unit in &self.units {
            zones.extend((unit.first_zone..).zip(&unit.zones).map(|(number, zone)| ZoneState {
                begins: self.placed.begins(number),
                placed: self.placed.blocks(number),
                finished: (zone.condition == Condition::Full).then_some(zone.written),
            }));
        }
        ZoneStates { zones, others: self.placed.others().collect(), rests: rests.collect() }
    }

    /// SRAM was lost; the zones are those that recovery finds from the checkpoint's `states` on. Returns the blocks
    /// that lie in no whole program.
    pub(in crate::ftl) fn recover(&mut self, states: &ZoneStates, found: &Found, space: &Space) -> Vec<(Lpn, Ppn)> {
        self.resets.clear();
        self.tails.clear();
        self.writes_to.clear();
        self.refresh = None;
        (0..self.count()).for_each(|zone| _ = self.placed.clear(zone));
        let mut rests = Vec::new();
        for at in 0..self.units.len() {
            for zone in 0..self.units[at].zones.len() {
                let number = self.units[at].first_zone + zone as u32;
                let first = self.units[at].first(zone);
                let end = first + self.units[at].config.blocks;
                let from = states.others.partition_point(|&(zone, ..)| zone < number);
                let others = states.others[from..].iter().take_while(|&&(zone, ..)| zone == number);
                let from = states.rests.partition_point(|&(lpn, _)| lpn < first);
                let kept = states.rests[from..].iter().take_while(|&&(lpn, _)| lpn < end);
                let before = Before {
                    state: states.zones.get(number as usize).copied().unwrap_or(ZoneState::EMPTY),
                    others: others.map(|&(_, from, extent)| (from, extent)).collect(),
                    rests: kept.map(|&(lpn, ppn)| (lpn - first, ppn)).collect(),
                };
                let recovered = self.recover_zone((at, zone), before, found, space, &mut rests);
                self.units[at].zones[zone] = recovered;
            }
        }
        rests
    }

    fn recover_zone(
        &mut self,
        (at, zone): (usize, usize),
        mut before: Before,
        found: &Found,
        space: &Space,
        rests: &mut Vec<(Lpn, Ppn)>,
    ) -> Zone {
        let unit = &self.units[at];
        let (number, first, capacity) = (unit.first_zone + zone as u32, unit.first(zone), unit.config.blocks);
        let trimmed = unit.trimmed(zone, found);
        let was_reset = trimmed.is_some_and(|sequence| sequence > found.sequence);
        if was_reset {
            before = Before { state: ZoneState::EMPTY, others: Vec::new(), rests: BTreeMap::new() };
        }
        let after = trimmed.unwrap_or(0);
        let finishes = || found.finished.iter().filter(|finish| finish.0 == first && (!was_reset || finish.2 > after));
        let finished: Vec<u32> = finishes().map(|finish| finish.1).chain(before.state.finished).collect();
        self.placed.restore(number, before.state.begins, before.state.placed);
        before.others.iter().for_each(|&(from, extent)| self.placed.push_other((number, from), extent));
        let newest = |block: u32| found.newest.get(&(first + block)).filter(|(sequence, _)| *sequence > after);
        // Whole programs.
        loop {
            let placed = self.placed.blocks(number);
            let program = self.placed.program();
            let last = self.placed.extent(number, placed.saturating_sub(1)).filter(|_| placed > 0);
            let last = last.map(|(from, extent)| {
                found.order(Extent { program: extent.program + (placed - 1 - from) / program, ..extent })
            });
            let starts = newest(placed).and_then(|(_, entry)| found.program_of(space, entry.mapping().flash()?));
            let Some((extent, 0)) = starts.filter(|_| placed < capacity) else { break };
            let whole = |blocks: u32| {
                (1..blocks).all(|i| {
                    let place = newest(placed + i).and_then(|(_, entry)| entry.mapping().flash());
                    place == Some(space.slice_of_program(extent.superblock, extent.program, i))
                })
            };
            let most = program.min(capacity - placed);
            let shorter = finished.iter().map(|end| end.saturating_sub(placed)).filter(|&blocks| blocks < most);
            let blocks = std::iter::once(most).chain(shorter).find(|&blocks| blocks > 0 && whole(blocks));
            match blocks {
                Some(blocks) if last.is_none_or(|last| last < found.order(extent)) => {
                    self.placed.extend(number, blocks, extent);
                }
                _ => break,
            }
        }
        // Rests.
        let placed = self.placed.blocks(number);
        let mut written = placed;
        // What was read back for a program has the number of a checkpoint at least, as has all that follows it.
        let mut oldest = placed.checked_sub(1).and_then(newest).map_or(0, |(sequence, _)| *sequence);
        while written < capacity {
            let ppn = match newest(written) {
                Some((sequence, entry)) if *sequence >= oldest => {
                    oldest = *sequence;
                    entry.mapping().flash()
                }
                Some(_) => None,
                None => before.rests.get(&written).copied(),
            };
            let Some(ppn) = ppn else { break };
            rests.push((first + written, ppn));
            written += 1;
        }
        let is_finished = finished.iter().any(|&at| written >= at);
        let condition = match written {
            _ if is_finished => Condition::Full,
            0 => Condition::Empty,
            n if n == capacity => Condition::Full,
            _ => Condition::Closed,
        };
        // It goes on in its superblock, if that has room.
        let last = self.placed.extent(number, placed.saturating_sub(1)).filter(|_| placed > 0);
        if let Some((_, extent)) = last
            && placed < capacity
            && found.table[extent.superblock.index()].state == State::Open(Stream::Zone)
            && !(condition == Condition::Full && written == placed)
        {
            self.writes_to.insert(number, (extent.superblock, 0));
        }
        // What is left of a full zone is programmed; its tail may be empty.
        if condition == Condition::Full && written > placed {
            self.tails.of(number, written);
        }
        Zone { written, condition, resets: false }
    }
}

impl Unit {
    /// Number of the newest trim of a zone.
    fn trimmed(&self, zone: usize, found: &Found) -> Option<u32> {
        let first = self.first(zone);
        let end = first + self.config.blocks;
        found.trims.iter().filter(|trim| trim.0 < end && trim.1 > first).map(|trim| trim.2).max()
    }
}
