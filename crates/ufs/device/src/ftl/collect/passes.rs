// SPDX-License-Identifier: MIT OR Apache-2.0
//! Garbage collection, wear levelling and the repair of disturbed data: superblocks are chosen, what is still current
//! in them moves elsewhere, then they are given up.
//!
//! The device learns what is current by paying for it, in three passes. *Spares*: the table at the end of the
//! superblock is read or, where there is none, the spare areas of all units, which gives the logical page of each
//! slice. *Maps*: every map page that covers one of them is read once (the list is sorted in SRAM), unless the map
//! cache or the table of changes has the answer. *Copy*: pages with current slices are read into a buffer and
//! programmed from there. The first two passes go over all victims before the third goes over one after the other: a
//! map page is read once for all of them. What is overwritten meanwhile is known ([`super::victims`]), and its copy is
//! dropped.

use super::{AHEAD, BETWEEN_LEVELLING, Moving, NONE, Pass, Why};
use crate::back::{Hardware, Job, MediaOp, Op};
use crate::config::CellMode;
use crate::ftl::durable::Logged;
use crate::ftl::map::Entry;
use crate::ftl::pump::Purpose;
use crate::ftl::{Ftl, Mapping, Stream, VictimPolicy};
use crate::ids::{MapPage, SuperblockId};
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

impl Ftl {
    /// Goes on with collection as far as it can without waiting.
    pub(crate) fn collect(&mut self, now: Ns, hw: &mut impl Hardware) {
        loop {
            if !self.collector.is_busy() && !self.choose_victims(hw) {
                return;
            }
            let went_on = match self.collector.pass {
                Pass::Spares => self.read_spares(now, hw),
                Pass::Maps => self.read_maps(now, hw),
                Pass::Copy => self.copy(now, hw),
            };
            if !went_on {
                return;
            }
        }
    }

    fn choose_victims(&mut self, hw: &mut impl Hardware) -> bool {
        let flush = self.next_to_flush(hw).map(|sb| (sb, Why::Flush));
        if self.space.is_short() {
            self.close_boosted();
        }
        let ftl = &self.settings;
        let spare = self.space.spare();
        let policy = ftl.victim;
        let choice = if self.space.is_short() || self.space.has_failed() {
            self.space.victim(policy, self.sequence).map(|sb| (sb, Why::Space))
        } else {
            None
        };
        let wear = |device: &mut Self| {
            // What moves may need a superblock, or two if blocks are bad, before one becomes free.
            let room = spare + 1 >= device.space.spare_for_host();
            let (percent, least) = (device.settings.wear_threshold_percent, device.settings.wear_least_erases);
            let c = &mut device.collector;
            if percent == 0 || !room || c.since_levelled < BETWEEN_LEVELLING || !std::mem::take(&mut c.wear_due) {
                return None;
            }
            let choice = device.space.look_at_wear(percent, least);
            for stream in Stream::ALL {
                if let Some(sb) = device.space.close_left_behind(stream, device.sequence) {
                    device.discard_if_empty(sb);
                }
            }
            choice.map(|sb| (sb, Why::Wear))
        };
        let disturbed = |device: &mut Self| {
            while let Some(sb) = device.collector.disturbed.pop_front() {
                // It may have been emptied for another reason, and be in use again.
                let still = device.space.is_disturbed(sb, device.settings.read_disturb_limit);
                if still && device.space.get(sb).is_movable() {
                    return Some((sb, Why::Disturb));
                }
            }
            None
        };
        let is_idle = self.host_is_idle(hw);
        let idle = |device: &mut Self| {
            if !is_idle || !device.collects_when_idle() || spare >= device.settings.collect_idle_below {
                return None;
            }
            // Unless a quarter of its units become free, the work is not worth it, and might never end.
            let unit = device.geometry.slices_per_unit();
            let pays = |&sb: &SuperblockId| {
                let sb = device.space.get(sb);
                sb.mode == CellMode::Slc || sb.refs.div_ceil(unit) * 4 <= sb.next_unit * 3
            };
            device.space.victim(policy, device.sequence).filter(pays).map(|sb| (sb, Why::Idle))
        };
        // Wear comes before space: under pressure it would never have its turn otherwise. But it frees nothing.
        let choice = wear(self).or(choice).or(flush).or_else(|| disturbed(self)).or_else(|| idle(self));
        let Some((victim, why)) = choice else { return false };
        let counter = match why {
            Why::Space => &mut hw.stats().collected,
            Why::Idle => &mut hw.stats().collected_idle,
            Why::Wear => &mut hw.stats().levelled,
            Why::Disturb => &mut hw.stats().refreshed,
            Why::Flush => &mut hw.stats().flushed,
        };
        *counter += 1;
        let mut list = vec![victim];
        // By cost and benefit the order of superblocks changes with every write, so that would be another policy.
        if why == Why::Space && policy == VictimPolicy::Greedy {
            let most = self.settings.collect_together;
            self.space.more_victims(policy, self.sequence, most, &mut list);
            hw.stats().collected += list.len() as u64 - 1;
        }
        let c = &mut self.collector;
        let emptied = c.since_levelled + list.len() as u32;
        (c.to, c.since_levelled) = match why {
            Why::Wear => (Stream::Cold, 0),
            _ if self.settings.separate_moved => (Stream::Moved, emptied),
            _ => (Stream::Host, emptied),
        };
        c.victims.begin(list.iter().map(|&sb| (sb, self.space.first(sb))));
        self.space.begin_emptying(&list);
        c.begin_pass(Pass::Spares);
        c.round += 1;
        c.granted = 0;
        c.units = list.iter().map(|&sb| self.space.get(sb).next_unit).sum();
        let unit = self.geometry.slices_per_unit();
        let freed = |&sb: &SuperblockId| {
            let sb = self.space.get(sb);
            // What was in SLC mode comes back with all its pages.
            let slices = if sb.mode == CellMode::Slc { self.space.slices() } else { sb.next_unit * unit };
            slices.saturating_sub(sb.refs)
        };
        c.freed = if matches!(why, Why::Wear | Why::Flush) { 0 } else { list.iter().map(freed).sum() };
        true
    }

    fn reads_allowed(&self, hw: &impl Hardware) -> bool {
        self.collector.reads < self.geometry.dies() && hw.ops().has_room()
    }

    /// Reads tables or spare areas; true when the pass is over.
    fn read_spares(&mut self, now: Ns, hw: &mut impl Hardware) -> bool {
        let g = self.geometry;
        while self.collector.at < self.collector.victims.len() {
            let (victim, first) = self.collector.victims.get(self.collector.at);
            let units = self.space.get(victim).next_unit;
            if self.space.get(victim).has_table {
                if !self.read_table(now, victim, first, hw) {
                    return false;
                }
                self.collector.next_victim(units);
                continue;
            }
            while self.collector.cursor < units {
                let unit = self.collector.cursor;
                if self.space.is_bad(victim, unit % g.dies()) && !self.space.get(victim).failed {
                    self.collector.cursor += 1;
                    continue;
                }
                if !self.reads_allowed(hw) {
                    return false;
                }
                self.collector.cursor += 1;
                self.collector.reads += 1;
                hw.stats().spare_reads += 1;
                self.space.begin(now, Op::new(Job::SpareRead, Ppn(first.0 + unit * g.slices_per_unit())), hw);
                self.collector.grant(1);
            }
            self.collector.next_victim(units);
        }
        let over = self.collector.reads == 0;
        if over {
            self.collector.begin_pass(Pass::Maps);
        }
        over
    }

    /// Reads the table of a victim; true when all of it is on its way. The cursor counts its units.
    fn read_table(&mut self, now: Ns, victim: SuperblockId, first: Ppn, hw: &mut impl Hardware) -> bool {
        let slices = self.geometry.slices_per_unit();
        loop {
            let next = self.space.units_of_table(victim).nth(self.collector.cursor as usize);
            let Some(unit) = next else { return true };
            if !self.reads_allowed(hw) {
                return false;
            }
            self.collector.cursor += 1;
            self.collector.reads += 1;
            hw.stats().table_reads += 1;
            let op = Op { count: slices as u16, ..Op::new(Job::TableRead, Ppn(first.0 + unit * slices)) };
            self.space.begin(now, op, hw);
        }
    }

    /// Reads the map pages that tell which slices are current; true when the pass is over.
    fn read_maps(&mut self, now: Ns, hw: &mut impl Hardware) -> bool {
        let unit = self.geometry.slices_per_unit();
        while self.collector.at < self.collector.victims.len() {
            let (victim, first) = self.collector.victims.get(self.collector.at);
            let units = self.space.get(victim).next_unit;
            let slices = units * unit;
            while self.collector.cursor < slices {
                let slice = self.collector.cursor;
                if slice + AHEAD < slices
                    && let Some(lpn) = self.space.spares().lpn(Ppn(first.0 + slice + AHEAD))
                {
                    self.map.prefetch(lpn);
                }
                let ppn = Ppn(first.0 + slice);
                if let Some(lpn) = self.space.spares().lpn(ppn) {
                    let entry = self.map.flash_entry(lpn);
                    if !entry.is_recent() && !self.covers(now, self.map.page_of(lpn), hw) {
                        return false;
                    }
                    self.collector.victims.note(self.collector.at, slice, entry.clean() == Entry::at(ppn));
                }
                self.collector.cursor += 1;
                if slice.is_multiple_of(64) {
                    self.collector.grant(unit);
                }
            }
            self.collector.next_victim(units);
        }
        let over = self.collector.reads == 0;
        if over {
            self.collector.begin_pass(Pass::Copy);
        }
        over
    }

    /// Whether a map page is in SRAM, was looked at for these victims, or is on its way now; false if it has to wait.
    #[inline]
    fn covers(&mut self, now: Ns, page: MapPage, hw: &mut impl Hardware) -> bool {
        if self.collector.seen[page.index()] == self.collector.round {
            return true;
        }
        if let Some(ppn) = self.map.directory(page)
            && self.map.cached(page).is_none()
        {
            if !self.reads_allowed(hw) {
                return false;
            }
            self.collector.reads += 1;
            hw.stats().collect_map_loads += 1;
            self.space.begin(now, Op { lpn: page.0, ..Op::new(Job::CollectMapLoad, ppn) }, hw);
        }
        self.collector.seen[page.index()] = self.collector.round;
        true
    }

    /// Moves current slices of one victim after the other; true when all are empty.
    fn copy(&mut self, now: Ns, hw: &mut impl Hardware) -> bool {
        let (victim, first) = self.collector.victims.get(self.collector.at);
        let units = self.space.get(victim).next_unit;
        let pages = units * self.geometry.planes;
        loop {
            self.read_pages_to_move(now, first, pages, hw);
            let free = self.collector.free.len();
            self.program_moved(now, self.collector.cursor == pages && self.collector.reads == 0, hw);
            // What need not move any more has left the buffer: there may be room to go on.
            if self.collector.free.len() == free || self.collector.cursor == pages {
                break;
            }
        }
        let c = &mut self.collector;
        let over = c.cursor == pages && c.reads == 0 && c.programs == 0 && c.ready.is_empty();
        if over {
            if !c.next_victim(units) {
                c.grant(1);
                c.victims.end();
            }
            debug_assert!((0..self.space.slices()).all(|i| !self.is_current(Ppn(first.0 + i))));
            self.discard(victim);
            self.begin_erase(now, hw);
        }
        over
    }

    /// Whether the map says that a slice is current, asked at no cost.
    pub(in crate::ftl) fn is_current(&self, ppn: Ppn) -> bool {
        self.space.spares().lpn(ppn).is_some_and(|lpn| self.map.flash_entry(lpn).mapping() == Mapping::Flash(ppn))
    }

    /// Reads pages of the victim with current slices, as far as there is room for them.
    fn read_pages_to_move(&mut self, now: Ns, first: Ppn, pages: u32, hw: &mut impl Hardware) {
        let per_page = self.geometry.slices_per_page();
        while self.collector.cursor < pages && self.reads_allowed(hw) {
            let slice = self.collector.cursor * per_page;
            let current = self.collector.victims.current(self.collector.at, slice, per_page);
            if current > 0 {
                if self.collector.free.len() < current.count_ones() as usize {
                    break;
                }
                self.read_to_move(now, Ppn(first.0 + slice), current, hw);
            }
            self.collector.cursor += 1;
            self.collector.grant(self.geometry.planes);
        }
    }

    /// Reads the slices of `page` whose bits are set in `current`.
    fn read_to_move(&mut self, now: Ns, page: Ppn, current: u32, hw: &mut impl Hardware) {
        let mut chain = NONE;
        let mut left = current;
        while left != 0 {
            // From the last slice on, so that the chain runs in order.
            let i = left.ilog2();
            left ^= 1 << i;
            let from = Ppn(page.0 + i);
            let lpn = self.space.spares().lpn(from).expect("a current slice names its logical page");
            let sequence = self.space.spares().sequence(from);
            let slot = self.collector.free.pop().expect("counted before");
            self.collector.moving[usize::from(slot)] = Moving { lpn, from, sequence, next: chain };
            chain = slot;
        }
        let count = current.count_ones() as u16;
        self.collector.reads += 1;
        hw.stats().moved_reads += 1;
        let op = Op { count, index: u32::from(chain), ..Op::new(Job::MoveRead, page) };
        self.space.begin(now, op, hw);
    }

    /// A spare area or a map page for collection has been read.
    pub(crate) fn collect_read_done(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        hw.ops_mut().free(id);
        self.collector.reads -= 1;
        self.collect_after_read(now, hw);
    }

    /// A page of data that moves is in the buffer.
    pub(crate) fn move_read_done(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        self.collector.reads -= 1;
        let mut slot = op.index as u16;
        while slot != NONE {
            self.collector.ready.push_back(slot);
            slot = self.collector.moving[usize::from(slot)].next;
        }
        self.collect_after_read(now, hw);
    }

    fn collect_after_read(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.collect(now, hw);
        // It may wait for room in the table of changes, or for the journal.
        self.write_back(now, hw);
        self.program_meta(now, hw);
        if self.is_stuck(hw) {
            self.pump(now, hw);
        }
    }

    /// Programs moved data, whole units at a time, or what there is if no more comes.
    fn program_moved(&mut self, now: Ns, last: bool, hw: &mut impl Hardware) {
        let unit = self.geometry.slices_per_unit() as usize;
        let stream = self.collector.to;
        loop {
            // What was overwritten since it was read need not move.
            while self.collector.ready.len() >= unit || (last && !self.collector.ready.is_empty()) {
                let n = self.collector.ready.len().min(unit);
                let c = &self.collector;
                let gone = (0..n).find(|&i| !c.victims.is_current(c.at, c.moving[usize::from(c.ready[i])].from));
                let Some(gone) = gone else { break };
                let slot = self.collector.ready.remove(gone).expect("found above");
                self.collector.free.push(slot);
            }
            let n = self.collector.ready.len().min(unit);
            if n == 0 || (n < unit && !last) {
                return;
            }
            let Ok(ppn) = self.unit_for(stream, Purpose::Move) else { return };
            let mut chain = NONE;
            for i in (0..n).rev() {
                let slot = self.collector.ready[i];
                self.collector.moving[usize::from(slot)].next = chain;
                chain = slot;
                self.map.prefetch_change(self.collector.moving[usize::from(slot)].lpn);
            }
            for _ in 0..n {
                self.collector.ready.pop_front();
            }
            self.collector.programs += 1;
            hw.stats().programs += 1;
            hw.stats().slices_moved += n as u64;
            let from = self.collector.moving[usize::from(chain)].from;
            hw.stats().slices_flushed += if self.space.mode_of(from) == CellMode::Slc { n as u64 } else { 0 };
            hw.stats().slices_padded += (unit - n) as u64;
            let op = Op { count: n as u16, index: u32::from(chain), ..Op::new(Job::MoveProgram, ppn) };
            self.space.begin(now, op, hw);
        }
    }

    /// A unit of moved data has been programmed.
    pub(crate) fn move_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        self.data_program_ended(op.ppn);
        self.collector.programs -= 1;
        let failed = hw.program_fails();
        if failed {
            self.program_went_wrong(op.ppn, hw);
        }
        let mut ppn = op.ppn;
        let mut slot = op.index as u16;
        while slot != NONE {
            let m = self.collector.moving[usize::from(slot)];
            if failed {
                self.collector.ready.push_back(slot);
            } else {
                self.space.spares_mut().program(ppn, m.lpn, m.sequence);
                hw.emit(MediaOp::Move { from: m.from, to: ppn });
                if self.collector.victims.is_current(self.collector.at, m.from) {
                    self.relocate(m.lpn, Entry::at(ppn));
                    self.note_change(m.lpn);
                }
                self.collector.free.push(slot);
            }
            slot = m.next;
            ppn = Ppn(ppn.0 + 1);
        }
        if !failed {
            self.durable.log.push(Logged::Data { first: op.ppn });
            self.tell_data(op.ppn, hw);
            self.discard_if_empty(self.space.of(op.ppn));
            self.write_table_if_full(now, op.ppn, hw);
        }
        self.pump(now, hw);
    }
}
