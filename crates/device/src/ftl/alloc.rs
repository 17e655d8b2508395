// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which slices are written next, and which superblocks may be erased: superblocks whose slices have all become
//! invalid. Collecting those that are only partly invalid is garbage collection, which is not built yet; when no erased
//! superblock is left, [`NoSpace`] says so.

use readpath_flash::{Geometry, Ppn};
use std::collections::VecDeque;

/// No erased superblock is left, and none can be had without garbage collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoSpace;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Holds the map.
    Map,
    Erased,
    /// The next units to be written.
    Open,
    Closed,
    /// Nothing valid is left; its dies are being erased, so many still to come.
    Erasing(u32),
}

/// Superblocks and their counts of valid slices.
pub struct Allocator {
    states: Vec<State>,
    valid: Vec<u32>,
    /// Units handed out whose program has not finished.
    in_flight: Vec<u32>,
    erased: VecDeque<u32>,
    open: Option<(u32, u32)>,
    to_erase: VecDeque<u32>,
    slices_per_superblock: u32,
    slices_per_unit: u32,
    units_per_superblock: u32,
    dies: u32,
}

impl Allocator {
    /// All superblocks erased but the first `map_superblocks`, which hold the map.
    pub fn new(geometry: &Geometry, map_superblocks: u32) -> Self {
        let n = geometry.superblocks();
        Allocator {
            states: (0..n).map(|sb| if sb < map_superblocks { State::Map } else { State::Erased }).collect(),
            valid: vec![0; n as usize],
            in_flight: vec![0; n as usize],
            erased: (map_superblocks..n).collect(),
            open: None,
            to_erase: VecDeque::new(),
            slices_per_superblock: geometry.slices_per_superblock(),
            slices_per_unit: geometry.slices_per_unit(),
            units_per_superblock: geometry.units_per_superblock(),
            dies: geometry.dies(),
        }
    }

    /// The next multi-plane page to be programmed. `Ok(None)`: an erase has to finish first.
    pub fn next_unit(&mut self) -> Result<Option<Ppn>, NoSpace> {
        let (sb, unit) = match self.open {
            Some(open) => open,
            None => match self.erased.pop_front() {
                Some(sb) => {
                    self.states[sb as usize] = State::Open;
                    (sb, 0)
                }
                // A superblock that is being erased will do, and so may one whose last programs turn out to be of no use.
                None if self.may_free_a_superblock() => return Ok(None),
                None => return Err(NoSpace),
            },
        };
        self.in_flight[sb as usize] += 1;
        self.open = (unit + 1 < self.units_per_superblock).then_some((sb, unit + 1));
        if self.open.is_none() {
            self.states[sb as usize] = State::Closed;
        }
        Ok(Some(Ppn(sb * self.slices_per_superblock + unit * self.slices_per_unit)))
    }

    fn may_free_a_superblock(&self) -> bool {
        let empty_soon = |sb: usize| self.valid[sb] == 0 && self.in_flight[sb] > 0;
        (0..self.states.len()).any(|sb| matches!(self.states[sb], State::Erasing(_)) || empty_soon(sb))
    }

    /// The program of the unit at `first` is done, and so many of its slices hold current data.
    pub fn programmed(&mut self, first: Ppn, valid: u32) {
        let sb = self.superblock(first);
        self.in_flight[sb] -= 1;
        self.valid[sb] += valid;
        self.consider(sb);
    }

    /// The data at `ppn` is no longer current.
    #[inline]
    pub fn invalidate(&mut self, ppn: Ppn) {
        let sb = self.superblock(ppn);
        self.valid[sb] -= 1;
        if self.valid[sb] == 0 {
            self.consider(sb);
        }
    }

    fn consider(&mut self, sb: usize) {
        if self.valid[sb] == 0 && self.in_flight[sb] == 0 && self.states[sb] == State::Closed {
            self.states[sb] = State::Erasing(self.dies);
            self.to_erase.push_back(sb as u32);
        }
    }

    /// A superblock that is to be erased now, on every die.
    pub fn take_erase(&mut self) -> Option<u32> {
        self.to_erase.pop_front()
    }

    /// One die of `sb` has been erased; true when it was the last.
    pub fn die_erased(&mut self, sb: u32) -> bool {
        let State::Erasing(left) = &mut self.states[sb as usize] else { unreachable!("only erasing superblocks") };
        *left -= 1;
        if *left > 0 {
            return false;
        }
        self.states[sb as usize] = State::Erased;
        self.erased.push_back(sb);
        true
    }

    /// Takes whole units for `slices` slices as if they had been written and all were current; returns the first slice.
    /// They are consecutive. The caller has checked that there is room.
    pub fn preset(&mut self, slices: u32) -> Result<Ppn, NoSpace> {
        let units = slices.div_ceil(self.slices_per_unit);
        let mut first = None;
        let mut left = slices;
        for _ in 0..units {
            let Some(ppn) = self.next_unit()? else { return Err(NoSpace) };
            first.get_or_insert(ppn);
            let n = left.min(self.slices_per_unit);
            self.programmed(ppn, n);
            left -= n;
        }
        first.ok_or(NoSpace)
    }

    /// Slices that hold current data.
    pub fn valid_slices(&self) -> u64 {
        self.valid.iter().map(|&v| u64::from(v)).sum()
    }

    fn superblock(&self, ppn: Ppn) -> usize {
        (ppn.0 / self.slices_per_superblock) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Geometry = Geometry {
        channels: 1,
        dies_per_channel: 2,
        planes: 1,
        blocks_per_plane: 3,
        pages_per_block: 1,
        page_bytes: 4096,
    };

    #[test]
    fn superblocks_are_reused_once_nothing_in_them_is_valid() {
        let mut a = Allocator::new(&G, 1);
        let units: Vec<Ppn> = (0..4).map(|_| a.next_unit().unwrap().unwrap()).collect();
        assert_eq!(units, [Ppn(2), Ppn(3), Ppn(4), Ppn(5)]);
        assert_eq!(a.next_unit(), Ok(None), "a program in flight may turn out to be of no use");
        a.programmed(Ppn(4), 1);
        a.programmed(Ppn(2), 1);
        assert_eq!(a.next_unit(), Err(NoSpace));
        a.invalidate(Ppn(2));
        assert_eq!(a.take_erase(), None, "the other unit is still in flight");
        a.programmed(Ppn(3), 0);
        assert_eq!(a.take_erase(), Some(1));
        assert_eq!(a.next_unit(), Ok(None), "an erase is under way");
        assert!(!a.die_erased(1));
        assert!(a.die_erased(1));
        assert_eq!(a.next_unit(), Ok(Some(Ppn(2))));
    }
}
