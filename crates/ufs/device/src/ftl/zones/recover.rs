// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a checkpoint says of zones, and what recovery makes of that and of the data, trims and records found since.
//!
//! Within a zone the sequence numbers of blocks rise, because they were accepted in order. So the written part of a
//! zone ends at the first block that was not found or is older than the one before it: such a block is what an earlier
//! power cut left behind a lost one. What lies behind that end is trimmed.

use super::{Condition, Unit, Zone, Zones};
use crate::ids::Lpn;
use std::collections::BTreeMap;

/// A zone in a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) struct ZoneState {
    /// Blocks from its start on that were in flash.
    pub in_flash: u32,
    /// What else there is to say.
    pub more: More,
}

/// What a checkpoint says of a zone besides its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) enum More {
    Nothing,
    /// It was finished when so many blocks were written.
    FinishedAt(u32),
    /// It was being reset: what it held may be trimmed in part.
    Resets,
}

impl ZoneState {
    pub(in crate::ftl) const EMPTY: ZoneState = ZoneState { in_flash: 0, more: More::Nothing };
    /// Bytes in flash.
    pub(in crate::ftl) const BYTES: u64 = 8;

    /// The two numbers in flash.
    pub(in crate::ftl) fn to_numbers(self) -> [u32; 2] {
        let more = match self.more {
            More::Nothing => u32::MAX,
            More::Resets => u32::MAX - 1,
            More::FinishedAt(written) => written,
        };
        [self.in_flash, more]
    }

    /// The state of two numbers, of a zone of `blocks`; `None` if they are none.
    pub(in crate::ftl) fn from_numbers([in_flash, more]: [u32; 2], blocks: u32) -> Option<ZoneState> {
        let more = match more {
            u32::MAX => More::Nothing,
            RESETS => More::Resets,
            written if written <= blocks => More::FinishedAt(written),
            _ => return None,
        };
        (in_flash <= blocks).then_some(ZoneState { in_flash, more })
    }
}

const RESETS: u32 = u32::MAX - 1;

/// What recovery found since the checkpoint.
pub(in crate::ftl) struct Found<'a, E> {
    /// Sequence number of the checkpoint.
    pub sequence: u32,
    /// Newest sequence number of each block whose data was found.
    pub newest: &'a BTreeMap<Lpn, (u32, E)>,
    /// Trims that the journal names: first logical page, the one behind the last, sequence number.
    pub trims: Vec<(Lpn, Lpn, u32)>,
    /// Zones that were finished: first logical page, blocks written then, sequence number.
    pub finished: Vec<(Lpn, u32, u32)>,
}

impl Zones {
    /// The zones as a checkpoint keeps them. `waiting` are logical pages whose data is not in flash.
    pub(in crate::ftl) fn states(&self, waiting: impl Iterator<Item = Lpn>) -> Vec<ZoneState> {
        let mut states = Vec::new();
        let mut begins = Vec::new();
        for unit in &self.units {
            begins.push(states.len());
            states.extend(unit.zones.iter().map(|zone| ZoneState {
                in_flash: zone.written,
                more: match zone.condition {
                    _ if zone.resets => More::Resets,
                    Condition::Full => More::FinishedAt(zone.written),
                    _ => More::Nothing,
                },
            }));
        }
        for lpn in waiting {
            let Some((unit, begin)) = self.units.iter().zip(&begins).find(|(unit, _)| unit.holds(lpn)) else {
                continue;
            };
            let at = lpn - unit.base;
            let state = &mut states[begin + (at / unit.config.blocks) as usize];
            state.in_flash = state.in_flash.min(at % unit.config.blocks);
        }
        states
    }

    /// SRAM was lost; the zones are those that recovery finds from the checkpoint's `states` on. Returns the blocks to
    /// be trimmed, a first logical page and the one behind the last: what lies behind write pointers.
    pub(in crate::ftl) fn recover<E>(&mut self, states: &[ZoneState], found: &Found<E>) -> Vec<(Lpn, Lpn)> {
        self.resets.clear();
        let mut gone = Vec::new();
        let mut states = states.iter().copied();
        for unit in &mut self.units {
            for zone in 0..unit.zones.len() {
                let state = states.next().unwrap_or(ZoneState::EMPTY);
                let (recovered, rest) = unit.recover(zone, state, found);
                unit.zones[zone] = recovered;
                gone.extend(rest);
            }
        }
        gone
    }
}

impl Unit {
    /// A zone after a power cut, and the logical pages behind its write pointer if something may be there.
    fn recover<E>(&self, zone: usize, state: ZoneState, found: &Found<E>) -> (Zone, Option<(Lpn, Lpn)>) {
        let first = self.first(zone);
        let end = first + self.config.blocks;
        let trims = || found.trims.iter().filter(|trim| trim.0 < end && trim.1 > first);
        let trimmed = trims().map(|trim| trim.2).max();
        let was_reset = trimmed.is_some_and(|sequence| sequence > found.sequence);
        let starts_anew = was_reset || state.more == More::Resets;
        let mut written = if starts_anew { 0 } else { state.in_flash };
        let after = match state.more {
            More::Resets => found.sequence.max(trimmed.unwrap_or(0)),
            _ => trimmed.unwrap_or(0),
        };
        let mut before = after;
        while written < self.config.blocks
            && let Some((sequence, _)) = found.newest.get(&(first + written))
            && *sequence > before
        {
            before = *sequence;
            written += 1;
        }
        let finishes = found.finished.iter().filter(|finish| finish.0 == first && (!was_reset || finish.2 > after));
        let known = match state.more {
            More::FinishedAt(written) if !starts_anew => Some(written),
            _ => None,
        };
        let is_finished = finishes.map(|finish| finish.1).chain(known).any(|at| written >= at);
        let condition = match written {
            _ if is_finished => Condition::Full,
            0 => Condition::Empty,
            n if n == self.config.blocks => Condition::Full,
            _ => Condition::Closed,
        };
        let is_left = starts_anew || found.newest.range(first + written..end).next().is_some();
        let rest = (is_left && first + written < end).then_some((first + written, end));
        (Zone { written, condition, resets: false }, rest)
    }
}
