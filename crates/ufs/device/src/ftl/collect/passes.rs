// SPDX-License-Identifier: MIT OR Apache-2.0
//! Moves data out of superblocks that are emptied.
//!
//! The device finds out what is current by paid reads, in three passes. *Spares*: reads the table at the end of the
//! superblock or, where there is none, the spare areas of all units, which give the logical page of each slice.
//! *Maps*: reads every map page that covers one of them once (the list is sorted in SRAM), unless the map cache or
//! the table of changes has the answer. *Copy*: reads pages with current slices into a buffer and programs them from
//! there. The first two passes cover all victims before the third copies one after the other, so each map page is
//! read once for all of them. [`super::victims`] notes what is overwritten meanwhile; such copies are dropped.

use super::choice::Why;
use super::moving::END;
use super::{Around, Collect, Moving, Pass};
use crate::back::{Hardware, Job, Op};
use crate::config::CellMode;
use crate::ftl::map::{Entry, Mapping};
use crate::ftl::space::Purpose;
use crate::ids::{MapPage, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::Ns;

/// Slices whose map entries are fetched ahead of their turn.
const AHEAD: u32 = 24;

impl Around<'_> {
    /// Whether the map says that a slice is current, asked at no cost.
    fn is_current(&self, ppn: Ppn) -> bool {
        let lpn = self.space.spares().lpn(ppn);
        lpn.is_some_and(|lpn| self.map.flash_entry(lpn).mapping() == Mapping::Flash(ppn))
    }
}

impl Collect {
    /// Continues collection as far as possible without waiting.
    pub(crate) fn advance(&mut self, now: Ns, mut around: Around, hw: &mut impl Hardware) {
        let around = &mut around;
        while !self.victims.is_empty() || self.choose_victims(around, hw) {
            let went_on = match self.progress.pass {
                Pass::Spares => self.read_spares(now, around, hw),
                Pass::Maps => self.read_maps(now, around, hw),
                Pass::Copy => self.copy(now, around, hw),
            };
            if !went_on {
                return;
            }
        }
    }

    fn reads_allowed(&self, hw: &impl Hardware) -> bool {
        self.reads < self.geometry.dies() && hw.ops().has_room()
    }

    /// Reads tables or spare areas; true when the pass is over.
    fn read_spares(&mut self, now: Ns, around: &mut Around, hw: &mut impl Hardware) -> bool {
        let g = self.geometry;
        while self.progress.at < self.victims.len() {
            let (victim, first) = self.victims.get(self.progress.at);
            let units = around.space.get(victim).next_unit;
            if around.space.get(victim).has_table {
                if !self.read_table(now, around, victim, first, hw) {
                    return false;
                }
                self.progress.next_victim(units, self.victims.len());
                continue;
            }
            while self.progress.cursor < units {
                let unit = self.progress.cursor;
                if around.space.is_bad(victim, unit % g.dies()) && !around.space.get(victim).failed {
                    self.progress.cursor += 1;
                    continue;
                }
                if !self.reads_allowed(hw) {
                    return false;
                }
                self.progress.cursor += 1;
                self.reads += 1;
                hw.stats().spare_reads += 1;
                around.space.begin(now, Op::new(Job::SpareRead, Ppn(first.0 + unit * g.slices_per_unit())), hw);
                self.progress.grant(1);
            }
            self.progress.next_victim(units, self.victims.len());
        }
        let over = self.reads == 0;
        if over {
            self.progress.begin_pass(Pass::Maps);
        }
        over
    }

    /// Reads the table of a victim; true when all its reads have begun. The cursor counts its units.
    fn read_table(
        &mut self,
        now: Ns,
        around: &mut Around,
        victim: SuperblockId,
        first: Ppn,
        hw: &mut impl Hardware,
    ) -> bool {
        let slices = self.geometry.slices_per_unit();
        loop {
            let next = around.space.units_of_table(victim).nth(self.progress.cursor as usize);
            let Some(unit) = next else { return true };
            if !self.reads_allowed(hw) {
                return false;
            }
            self.progress.cursor += 1;
            self.reads += 1;
            hw.stats().table_reads += 1;
            let op = Op { count: slices as u16, ..Op::new(Job::TableRead, Ppn(first.0 + unit * slices)) };
            around.space.begin(now, op, hw);
        }
    }

    /// Reads the map pages that show which slices are current; true when the pass is over.
    fn read_maps(&mut self, now: Ns, around: &mut Around, hw: &mut impl Hardware) -> bool {
        let unit = self.geometry.slices_per_unit();
        while self.progress.at < self.victims.len() {
            let (victim, first) = self.victims.get(self.progress.at);
            let units = around.space.get(victim).next_unit;
            let slices = units * unit;
            while self.progress.cursor < slices {
                let slice = self.progress.cursor;
                if slice + AHEAD < slices
                    && let Some(lpn) = around.space.spares().lpn(Ppn(first.0 + slice + AHEAD))
                {
                    around.map.prefetch(lpn);
                }
                let ppn = Ppn(first.0 + slice);
                if let Some(lpn) = around.space.spares().lpn(ppn) {
                    let entry = around.map.flash_entry(lpn);
                    if !entry.is_recent() && !self.covers(now, around, around.map.page_of(lpn), hw) {
                        return false;
                    }
                    self.victims.note(self.progress.at, slice, entry.clean() == Entry::at(ppn));
                }
                self.progress.cursor += 1;
                if slice.is_multiple_of(64) {
                    self.progress.grant(unit);
                }
            }
            self.progress.next_victim(units, self.victims.len());
        }
        let over = self.reads == 0;
        if over {
            self.progress.begin_pass(Pass::Copy);
        }
        over
    }

    /// Whether a map page is in SRAM, was looked at in this round, or is now being loaded; false if the load has to
    /// wait.
    #[inline]
    fn covers(&mut self, now: Ns, around: &mut Around, page: MapPage, hw: &mut impl Hardware) -> bool {
        if self.seen[page.index()] == self.round {
            return true;
        }
        if let Some(ppn) = around.map.directory(page)
            && around.map.cached(page).is_none()
        {
            if !self.reads_allowed(hw) {
                return false;
            }
            self.reads += 1;
            hw.stats().collect_map_loads += 1;
            around.space.begin(now, Op { lpn: page.0, ..Op::new(Job::CollectMapLoad, ppn) }, hw);
        }
        self.seen[page.index()] = self.round;
        true
    }

    /// Moves the current slices of one victim after the other; true when all are empty.
    fn copy(&mut self, now: Ns, around: &mut Around, hw: &mut impl Hardware) -> bool {
        let (victim, first) = self.victims.get(self.progress.at);
        let units = around.space.get(victim).next_unit;
        let pages = units * self.geometry.planes;
        loop {
            self.read_pages_to_move(now, around, first, pages, hw);
            let free = self.buffer.room();
            self.program_moved(now, around, self.progress.cursor == pages && self.reads == 0, hw);
            // Slices that need not move any more have left the buffer, which may make room.
            if self.buffer.room() == free || self.progress.cursor == pages {
                break;
            }
        }
        let p = &mut self.progress;
        let over = p.cursor == pages && self.reads == 0 && self.programs == 0 && self.buffer.ready() == 0;
        if over {
            if !p.next_victim(units, self.victims.len()) {
                p.grant(1);
                self.victims.end();
            }
            debug_assert!((0..around.space.slices()).all(|i| !around.is_current(Ppn(first.0 + i))));
            around.log.discard(around.space, victim);
            around.log.begin_erase(now, around.space, hw);
        }
        over
    }

    /// Reads pages of the victim with current slices, as far as the buffer has room.
    fn read_pages_to_move(&mut self, now: Ns, around: &mut Around, first: Ppn, pages: u32, hw: &mut impl Hardware) {
        let per_page = self.geometry.slices_per_page();
        while self.progress.cursor < pages && self.reads_allowed(hw) {
            let slice = self.progress.cursor * per_page;
            let current = self.victims.current(self.progress.at, slice, per_page);
            if current > 0 {
                if self.buffer.room() < current.count_ones() as usize {
                    break;
                }
                self.read_to_move(now, around, Ppn(first.0 + slice), current, hw);
            }
            self.progress.cursor += 1;
            self.progress.grant(self.geometry.planes);
        }
    }

    /// Reads the slices of `page` whose bits are set in `current`.
    fn read_to_move(&mut self, now: Ns, around: &mut Around, page: Ppn, current: u32, hw: &mut impl Hardware) {
        let mut chain = END;
        let mut left = current;
        while left != 0 {
            // From the last slice on, so that the chain runs in order.
            let i = left.ilog2();
            left ^= 1 << i;
            let from = Ppn(page.0 + i);
            let lpn = around.space.spares().lpn(from).expect("a current slice names its logical page");
            let sequence = around.space.spares().sequence(from);
            chain = self.buffer.take(lpn, from, sequence, chain);
        }
        let count = current.count_ones() as u16;
        self.reads += 1;
        hw.stats().moved_reads += 1;
        let stays = hw.folds_on_die() && around.space.mode_of(page) == CellMode::Cache;
        let op = Op { count, index: u32::from(chain), stays, ..Op::new(Job::MoveRead, page) };
        around.space.begin(now, op, hw);
    }

    /// A spare area, a table or a map page for collection has been read.
    pub(crate) fn read_done(&mut self) {
        self.reads -= 1;
    }

    /// A page of data has been read into the buffer; `chain` links its slices.
    pub(crate) fn move_read_done(&mut self, mut chain: u16) {
        self.reads -= 1;
        while let Some((slot, _)) = self.buffer.next(&mut chain) {
            self.buffer.is_ready(slot);
        }
    }

    /// Programs moved data in whole units; with `last`, the rest too.
    fn program_moved(&mut self, now: Ns, around: &mut Around, last: bool, hw: &mut impl Hardware) {
        let unit = self.geometry.slices_per_unit();
        loop {
            // Slices overwritten since they were read need not move.
            let (victims, at) = (&self.victims, self.progress.at);
            let n = self.buffer.drop_gone(unit as usize, last, |from| victims.is_current(at, from));
            if n == 0 || (n < unit as usize && !last) {
                return;
            }
            let Around { space, map, log, sequence } = around;
            let unit_for = log.prepare_unit(space, map, self.to, Purpose::Move);
            let Ok(ppn) = unit_for.and_then(|()| log.take_unit(space, map, self.to, *sequence)) else { return };
            let chain = self.buffer.take_ready(n, |lpn| map.prefetch_change(lpn));
            let Some((_, first)) = self.buffer.next(&mut { chain }) else { return };
            self.programs += 1;
            let stats = hw.stats();
            stats.slices_moved += n as u64;
            let folds = space.mode_of(first.from) == CellMode::Cache;
            match self.why {
                _ if folds => stats.slices_flushed += n as u64,
                Why::Wear => stats.slices_levelled += n as u64,
                Why::Disturb => stats.slices_refreshed += n as u64,
                Why::Space | Why::Idle | Why::Flush => {}
            }
            stats.slices_padded += u64::from(unit) - n as u64;
            let stays = folds && hw.folds_on_die();
            let op = Op { count: n as u16, index: u32::from(chain), stays, ..Op::new(Job::MoveProgram, ppn) };
            space.program(now, op, hw);
        }
    }

    /// A unit of moved data has been programmed.
    pub(crate) fn program_done(&mut self) {
        self.programs -= 1;
    }

    /// The next slice of a programmed unit, if there is one, and whether it was current until now. It leaves the
    /// buffer, unless the program `failed`: then it waits to be programmed again.
    pub(crate) fn next_moved(&mut self, chain: &mut u16, failed: bool) -> Option<(Moving, bool)> {
        let (slot, moving) = self.buffer.next(chain)?;
        match failed {
            true => self.buffer.is_ready(slot),
            false => self.buffer.free(slot),
        }
        Some((moving, self.victims.is_current(self.progress.at, moving.from)))
    }
}
