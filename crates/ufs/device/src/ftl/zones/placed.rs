// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the data of zones lies in flash, as far as it fills whole programs: 8 bytes a zone say in which superblock a
//! zone begins, and how many blocks of it are there. The place of a block follows from its number. Only where a zone
//! continues elsewhere, in another superblock or behind a torn program, does a small table say so.
//!
//! It may not know write pointers, buffered data or rests.

use crate::ftl::space::Space;
use crate::ids::SuperblockId;
use readpath_flash::Ppn;
use readpath_kit::Divisor;

/// A part of a zone whose programs lie one behind the other in a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) struct Extent {
    /// Superblock.
    pub superblock: SuperblockId,
    /// Number of its first program.
    pub program: u32,
}

/// 8 bytes of SRAM.
#[derive(Clone, Copy, Default)]
struct At {
    /// Number of the superblock in which the zone begins, plus one; 0 if it has none.
    begins: u32,
    /// Blocks in whole programs.
    blocks: u32,
}

pub(in crate::ftl) struct Placed {
    zones: Vec<At>,
    /// By zone, the parts that do not follow from its beginning: first block and place, in order.
    others: Vec<Vec<(u32, Extent)>>,
    /// How many these are.
    used: u32,
    /// Blocks of a program.
    program: Divisor,
    /// Room in the table of other parts.
    most_others: u32,
}

impl Placed {
    pub(super) fn new(zones: usize, program: u32, most_others: u32) -> Self {
        Placed {
            zones: vec![At::default(); zones],
            others: vec![Vec::new(); zones],
            used: 0,
            program: Divisor::new(program.max(1)),
            most_others,
        }
    }

    /// Blocks of a program.
    pub(crate) fn program(&self) -> u32 {
        self.program.get()
    }

    /// Number of blocks of a zone, from its start on, that lie in whole programs.
    #[inline]
    pub(crate) fn blocks(&self, zone: u32) -> u32 {
        self.zones[zone as usize].blocks
    }

    /// The part of a zone that a block lies in, or would lie in, and the block with which that begins.
    #[inline]
    pub(crate) fn extent(&self, zone: u32, block: u32) -> Option<(u32, Extent)> {
        let others = &self.others[zone as usize];
        if let Some(last) = others.partition_point(|(from, _)| *from <= block).checked_sub(1) {
            return Some(others[last]);
        }
        let superblock = SuperblockId(self.zones[zone as usize].begins.checked_sub(1)?);
        Some((0, Extent { superblock, program: 0 }))
    }

    /// The slice of a block that lies in a whole program.
    #[inline]
    pub(crate) fn slice(&self, space: &Space, zone: u32, block: u32) -> Option<Ppn> {
        if block >= self.blocks(zone) {
            return None;
        }
        let (from, extent) = self.extent(zone, block)?;
        let at = block - from;
        let (program, block) = (self.program.divide(at), self.program.remainder(at));
        Some(space.slice_of_program(extent.superblock, extent.program + program, block))
    }

    /// For tests: whether the parts are counted rightly.
    pub(crate) fn is_counted(&self) -> bool {
        self.others.iter().map(|parts| parts.len() as u32).sum::<u32>() == self.used
    }

    /// Whether the table has room for one more part of zones.
    pub(crate) fn has_room(&self) -> bool {
        self.used < self.most_others
    }

    /// The next `blocks` of a zone are in a program of a superblock.
    pub(crate) fn extend(&mut self, zone: u32, blocks: u32, to: Extent) {
        let from = self.blocks(zone);
        let follows = self.extent(zone, from).is_some_and(|(first, extent)| {
            extent.superblock == to.superblock && extent.program + self.program.divide(from - first) == to.program
        });
        if !follows {
            if from == 0 {
                self.zones[zone as usize].begins = to.superblock.0 + 1;
            }
            if from > 0 || to.program > 0 {
                self.push_other((zone, from), to);
            }
        }
        self.zones[zone as usize].blocks += blocks;
    }

    /// The parts of a zone: first block and place of each.
    pub(crate) fn extents(&self, zone: u32) -> Vec<(u32, Extent)> {
        let others = &self.others[zone as usize];
        let begin = self.extent(zone, 0).filter(|_| others.first().is_none_or(|(from, _)| *from > 0));
        begin.into_iter().chain(others.iter().copied()).collect()
    }

    /// Parts that do not follow from the beginnings of their zones, all in order: zone, first block, place.
    pub(crate) fn others(&self) -> impl Iterator<Item = (u32, u32, Extent)> + '_ {
        let zones = (0..).zip(&self.others);
        zones.flat_map(|(zone, parts)| parts.iter().map(move |&(from, extent)| (zone, from, extent)))
    }

    /// The superblock in which a zone begins.
    pub(crate) fn begins(&self, zone: u32) -> Option<SuperblockId> {
        self.zones[zone as usize].begins.checked_sub(1).map(SuperblockId)
    }

    /// The blocks of a zone that lie in a superblock: the first, and the one behind the last.
    pub(crate) fn range_in(&self, zone: u32, superblock: SuperblockId) -> Option<(u32, u32)> {
        let extents = self.extents(zone);
        let is_there = |(_, extent): &(u32, Extent)| extent.superblock == superblock;
        let first = extents.iter().position(is_there)?;
        let behind = extents[first..].iter().find(|part| !is_there(part));
        Some((extents[first].0, behind.map_or(self.blocks(zone), |(from, _)| *from)))
    }

    /// What a zone has in one superblock is in another now, from its first program on.
    pub(crate) fn refreshed(&mut self, zone: u32, from: SuperblockId, to: SuperblockId) {
        let Some((first, _)) = self.range_in(zone, from) else { return };
        let others = &mut self.others[zone as usize];
        self.used -= others.len() as u32;
        others.retain(|(_, extent)| extent.superblock != from);
        match first {
            0 => self.zones[zone as usize].begins = to.0 + 1,
            _ => {
                let at = others.partition_point(|(block, _)| *block < first);
                others.insert(at, (first, Extent { superblock: to, program: 0 }));
            }
        }
        self.used += others.len() as u32;
    }

    /// A zone is empty. Returns its superblocks.
    pub(crate) fn clear(&mut self, zone: u32) -> Vec<SuperblockId> {
        let mut superblocks: Vec<_> = self.extents(zone).into_iter().map(|(_, extent)| extent.superblock).collect();
        superblocks.dedup();
        self.zones[zone as usize] = At::default();
        self.used -= std::mem::take(&mut self.others[zone as usize]).len() as u32;
        superblocks
    }

    /// A checkpoint has this of a zone, which is empty: where it begins and how many blocks it has.
    pub(super) fn restore(&mut self, zone: u32, begins: Option<SuperblockId>, blocks: u32) {
        self.zones[zone as usize] = At { begins: begins.map_or(0, |sb| sb.0 + 1), blocks };
    }

    /// A zone continues with this block at another place than where it would; behind all parts that it has.
    pub(super) fn push_other(&mut self, (zone, from): (u32, u32), extent: Extent) {
        self.others[zone as usize].push((from, extent));
        self.used += 1;
    }
}
