// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far collection has come: which pass it is in, and what is on its way. It knows neither time nor what flash
//! holds.

mod passes;
mod victims;

use super::space::Stream;
use crate::config::DeviceConfig;
use crate::ids::{Lpn, SuperblockId};
use readpath_flash::Ppn;
use std::collections::VecDeque;
use victims::Victims;

const NONE: u16 = u16::MAX;
/// Slices whose map entries are fetched ahead of their turn.
const AHEAD: u32 = 24;
/// Superblocks emptied for other reasons between two that are emptied to level wear. After a long time in which nothing
/// was level the host would wait for many in a row otherwise; a few percent of all is what levelling needs.
const BETWEEN_LEVELLING: u32 = 3;

/// Why a superblock is emptied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    Space,
    Idle,
    Wear,
    Disturb,
    Flush,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pass {
    Spares,
    Maps,
    Copy,
}

/// A slice on its way.
#[derive(Clone, Copy, Debug)]
struct Moving {
    lpn: Lpn,
    from: Ppn,
    sequence: u32,
    next: u16,
}

/// See the module.
pub(super) struct Collector {
    victims: Victims,
    /// Where their data goes.
    to: Stream,
    pass: Pass,
    /// The victim that the pass has come to, by its place among them, and the units of those before it and of all.
    at: usize,
    units_before: u32,
    units: u32,
    /// Next unit (spares), slice (maps) or page (copy) of it.
    cursor: u32,
    reads: u32,
    programs: u32,
    /// Slices that the victims give up, as far as their references tell, and how many of them the host was let have.
    freed: u32,
    granted: u32,
    /// Slices that the host may program while space is short.
    pub(crate) credit: u32,
    /// Round in which a map page was looked at last.
    seen: Vec<u32>,
    round: u32,
    moving: Vec<Moving>,
    free: Vec<u16>,
    ready: VecDeque<u16>,
    wear_due: bool,
    /// Superblocks emptied since one was emptied to level wear.
    since_levelled: u32,
    disturbed: VecDeque<SuperblockId>,
}

impl Collector {
    pub(crate) fn new(map_pages: u32, config: &DeviceConfig) -> Self {
        let buffer_blocks = config.ftl.move_buffer_blocks;
        let nothing = Moving { lpn: Lpn(0), from: Ppn(0), sequence: 0, next: NONE };
        Collector {
            victims: Victims::new(config.ftl.collect_together, config.geometry.slices_per_superblock()),
            to: Stream::Moved,
            pass: Pass::Spares,
            at: 0,
            units_before: 0,
            units: 0,
            cursor: 0,
            reads: 0,
            programs: 0,
            freed: 0,
            granted: 0,
            credit: 0,
            seen: vec![0; map_pages as usize],
            round: 0,
            moving: vec![nothing; buffer_blocks as usize],
            free: (0..buffer_blocks as u16).rev().collect(),
            ready: VecDeque::with_capacity(buffer_blocks as usize),
            wear_due: false,
            since_levelled: 0,
            disturbed: VecDeque::new(),
        }
    }

    /// No map entry points to `ppn` any more.
    #[inline]
    pub(crate) fn gone(&mut self, ppn: Ppn) {
        self.victims.gone(ppn);
    }

    /// Whether something is being read from it.
    pub(crate) fn is_reading(&self) -> bool {
        self.reads > 0
    }

    /// Whether a superblock is being emptied.
    pub(crate) fn is_busy(&self) -> bool {
        !self.victims.is_empty()
    }

    /// Erase counts have changed.
    pub(crate) fn look_at_wear(&mut self) {
        self.wear_due = true;
    }

    /// A superblock was read very often.
    pub(crate) fn disturbed(&mut self, sb: SuperblockId) {
        if !self.disturbed.contains(&sb) {
            self.disturbed.push_back(sb);
        }
    }

    /// Sequence numbers now count from `base` on.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.moving.iter_mut().for_each(|m| m.sequence = m.sequence.saturating_sub(base));
    }

    /// What the spare areas of a program in progress say, slice by slice.
    pub(crate) fn spares_of(&self, first: u16) -> impl Iterator<Item = (Lpn, u32)> {
        std::iter::successors(Some(first).filter(|&s| s != NONE), |&s| {
            Some(self.moving[usize::from(s)].next).filter(|&n| n != NONE)
        })
        .map(|s| (self.moving[usize::from(s)].lpn, self.moving[usize::from(s)].sequence))
    }

    /// Lets the host have its share of what the victims free, in step with the work: a quarter for each of the first
    /// two passes, the rest for the copying. The cursor has `per_unit` steps to a unit.
    fn grant(&mut self, per_unit: u32) {
        let of = u64::from(self.units.max(1)) * u64::from(per_unit);
        let done = (u64::from(self.units_before) * u64::from(per_unit) + u64::from(self.cursor)).min(of);
        let quarters = match self.pass {
            Pass::Spares => done,
            Pass::Maps => of + done,
            Pass::Copy => 2 * of + 2 * done,
        };
        let target = (u64::from(self.freed) * quarters / (4 * of)) as u32;
        self.credit += target.saturating_sub(self.granted);
        self.granted = self.granted.max(target);
    }

    /// The pass goes on with the next victim; false if that was the last, and the next pass begins with the first.
    fn next_victim(&mut self, units: u32) -> bool {
        self.cursor = 0;
        self.units_before += units;
        self.at += 1;
        self.at < self.victims.len()
    }

    fn begin_pass(&mut self, pass: Pass) {
        (self.pass, self.at, self.cursor, self.units_before) = (pass, 0, 0, 0);
    }
}
