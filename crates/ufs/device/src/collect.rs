// SPDX-License-Identifier: MIT OR Apache-2.0
//! Garbage collection, wear levelling and the repair of disturbed data: superblocks are chosen, what is still current in
//! them moves elsewhere, then they are given up.
//!
//! The device learns what is current by paying for it, in three passes. *Spares*: the table at the end of the superblock is
//! read or, where there is none, the spare areas of all units, which gives the logical page of each slice. *Maps*: every map page that covers one of them is read once (the list is
//! sorted in SRAM), unless the map cache or the table of changes has the answer. *Copy*: pages with current slices are
//! read into a buffer and programmed from there. The first two passes go over all victims before the third goes over one
//! after the other: a map page is read once for all of them. What is overwritten meanwhile is known ([`Victims`]), and
//! its copy is dropped.

use crate::back::Probe;
use crate::back::{Job, Op};
use crate::back::{MediaMode, MediaOp};
use crate::config::DeviceConfig;
use crate::device::UfsDevice;
use crate::ftl::{Entry, Logged, Mapping, Stream, VictimPolicy};
use crate::space::Purpose;
use crate::victims::Victims;
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::Ns;
use std::collections::VecDeque;

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
    lpn: u32,
    from: Ppn,
    sequence: u32,
    next: u16,
}

/// See the module.
pub struct Collector {
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
    disturbed: VecDeque<u32>,
}

impl Collector {
    pub(crate) fn new(map_pages: u32, config: &DeviceConfig) -> Self {
        let buffer_blocks = config.ftl.move_buffer_blocks;
        let nothing = Moving { lpn: 0, from: Ppn(0), sequence: 0, next: NONE };
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

    /// Whether `sb` is being emptied, or about to be.
    pub(crate) fn is_emptying(&self, sb: u32) -> bool {
        self.victims.contains_from(if self.pass == Pass::Copy { self.at } else { 0 }, sb)
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
    pub(crate) fn disturbed(&mut self, sb: u32) {
        if !self.disturbed.contains(&sb) {
            self.disturbed.push_back(sb);
        }
    }

    /// Sequence numbers now count from `base` on.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.moving.iter_mut().for_each(|m| m.sequence = m.sequence.saturating_sub(base));
    }

    /// What the spare areas of a program in progress say, slice by slice.
    pub(crate) fn spares_of(&self, first: u16) -> impl Iterator<Item = (u32, u32)> {
        std::iter::successors(Some(first).filter(|&s| s != NONE), |&s| {
            Some(self.moving[usize::from(s)].next).filter(|&n| n != NONE)
        })
        .map(|s| (self.moving[usize::from(s)].lpn, self.moving[usize::from(s)].sequence))
    }

    /// Lets the host have its share of what the victims free, in step with the work: a quarter for each of the first two
    /// passes, the rest for the copying. The cursor has `per_unit` steps to a unit.
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

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Goes on with collection as far as it can without waiting.
    pub(crate) fn collect(&mut self, now: Ns) {
        loop {
            if !self.collector.is_busy() && !self.choose_victims() {
                return;
            }
            let went_on = match self.collector.pass {
                Pass::Spares => self.read_spares(now),
                Pass::Maps => self.read_maps(now),
                Pass::Copy => self.copy(now),
            };
            if !went_on {
                return;
            }
        }
    }

    fn choose_victims(&mut self) -> bool {
        let flush = self.next_to_flush().map(|sb| (sb, Why::Flush));
        if self.space_is_short() {
            self.close_boosted();
        }
        let ftl = &self.config.ftl;
        let spare = self.spare_superblocks();
        let policy = ftl.victim;
        let choice = if self.space_is_short() || self.superblocks.has_failed() {
            self.superblocks.victim(policy, self.sequence).map(|sb| (sb, Why::Space))
        } else {
            None
        };
        let wear = |device: &mut Self| {
            // What moves may need a superblock, or two if blocks are bad, before one becomes free.
            let room = spare + 1 >= device.spare_for_host();
            let (percent, least) = (device.config.ftl.wear_threshold_percent, device.config.ftl.wear_least_erases);
            let c = &mut device.collector;
            if percent == 0 || !room || c.since_levelled < BETWEEN_LEVELLING || !std::mem::take(&mut c.wear_due) {
                return None;
            }
            let choice = device.superblocks.look_at_wear(percent, least);
            for stream in Stream::ALL {
                if let Some(sb) = device.superblocks.close_left_behind(stream, device.sequence) {
                    device.discard_if_empty(sb);
                }
            }
            choice.map(|sb| (sb, Why::Wear))
        };
        let disturbed = |device: &mut Self| {
            while let Some(sb) = device.collector.disturbed.pop_front() {
                // It may have been emptied for another reason, and be in use again.
                let still = device.superblocks.is_disturbed(sb, device.config.ftl.read_disturb_limit);
                if still && device.superblocks.get(sb).is_movable() {
                    return Some((sb, Why::Disturb));
                }
            }
            None
        };
        let idle = |device: &mut Self| {
            if !device.host_is_idle() || spare >= device.config.ftl.collect_idle_below {
                return None;
            }
            // Unless a quarter of its units become free, the work is not worth it, and might never end.
            let unit = device.config.geometry.slices_per_unit();
            let pays = |&sb: &u32| {
                let sb = device.superblocks.get(sb);
                sb.slc || sb.refs.div_ceil(unit) * 4 <= sb.next_unit * 3
            };
            device.superblocks.victim(policy, device.sequence).filter(pays).map(|sb| (sb, Why::Idle))
        };
        // Wear comes before space: under pressure it would never have its turn otherwise. But it frees nothing.
        let choice = wear(self).or(choice).or(flush).or_else(|| disturbed(self)).or_else(|| idle(self));
        let Some((victim, why)) = choice else { return false };
        let counter = match why {
            Why::Space => &mut self.back.stats.collected,
            Why::Idle => &mut self.back.stats.collected_idle,
            Why::Wear => &mut self.back.stats.levelled,
            Why::Disturb => &mut self.back.stats.refreshed,
            Why::Flush => &mut self.back.stats.flushed,
        };
        *counter += 1;
        let mut list = vec![victim];
        // By cost and benefit the order of superblocks changes with every write, so that would be another policy.
        if why == Why::Space && policy == VictimPolicy::Greedy {
            let most = self.config.ftl.collect_together;
            self.superblocks.more_victims(policy, self.sequence, most, &mut list);
            self.back.stats.collected += list.len() as u64 - 1;
        }
        let c = &mut self.collector;
        let emptied = c.since_levelled + list.len() as u32;
        (c.to, c.since_levelled) = match why {
            Why::Wear => (Stream::Cold, 0),
            _ if self.config.ftl.separate_moved => (Stream::Moved, emptied),
            _ => (Stream::Host, emptied),
        };
        c.victims.begin(list.iter().map(|&sb| (sb, self.superblocks.first(sb))));
        c.begin_pass(Pass::Spares);
        c.round += 1;
        c.granted = 0;
        c.units = list.iter().map(|&sb| self.superblocks.get(sb).next_unit).sum();
        let unit = self.config.geometry.slices_per_unit();
        let freed = |&sb: &u32| {
            let sb = self.superblocks.get(sb);
            // What was in SLC mode comes back with all its pages.
            let slices = if sb.slc { self.superblocks.slices() } else { sb.next_unit * unit };
            slices.saturating_sub(sb.refs)
        };
        c.freed = if matches!(why, Why::Wear | Why::Flush) { 0 } else { list.iter().map(freed).sum() };
        true
    }

    fn reads_allowed(&self) -> bool {
        self.collector.reads < self.config.geometry.dies() && self.back.dies.ops().has_room()
    }

    /// Reads tables or spare areas; true when the pass is over.
    fn read_spares(&mut self, now: Ns) -> bool {
        let g = self.config.geometry;
        while self.collector.at < self.collector.victims.len() {
            let (victim, first) = self.collector.victims.get(self.collector.at);
            let units = self.superblocks.get(victim).next_unit;
            if self.superblocks.get(victim).has_table {
                if !self.read_table(now, victim, first) {
                    return false;
                }
                self.collector.next_victim(units);
                continue;
            }
            while self.collector.cursor < units {
                let unit = self.collector.cursor;
                if self.superblocks.is_bad(victim, unit % g.dies()) && !self.superblocks.get(victim).failed {
                    self.collector.cursor += 1;
                    continue;
                }
                if !self.reads_allowed() {
                    return false;
                }
                self.collector.cursor += 1;
                self.collector.reads += 1;
                self.back.stats.spare_reads += 1;
                self.begin_flash(now, Op::new(Job::SpareRead, Ppn(first.0 + unit * g.slices_per_unit())));
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
    fn read_table(&mut self, now: Ns, victim: u32, first: Ppn) -> bool {
        let slices = self.config.geometry.slices_per_unit();
        loop {
            let next = self.superblocks.units_of_table(victim).nth(self.collector.cursor as usize);
            let Some(unit) = next else { return true };
            if !self.reads_allowed() {
                return false;
            }
            self.collector.cursor += 1;
            self.collector.reads += 1;
            self.back.stats.table_reads += 1;
            let op = Op { count: slices as u16, ..Op::new(Job::TableRead, Ppn(first.0 + unit * slices)) };
            self.begin_flash(now, op);
        }
    }

    /// Reads the map pages that tell which slices are current; true when the pass is over.
    fn read_maps(&mut self, now: Ns) -> bool {
        let unit = self.config.geometry.slices_per_unit();
        while self.collector.at < self.collector.victims.len() {
            let (victim, first) = self.collector.victims.get(self.collector.at);
            let units = self.superblocks.get(victim).next_unit;
            let slices = units * unit;
            while self.collector.cursor < slices {
                let slice = self.collector.cursor;
                if slice + AHEAD < slices
                    && let Some(lpn) = self.spares.lpn(Ppn(first.0 + slice + AHEAD))
                {
                    self.map.prefetch(lpn);
                }
                let ppn = Ppn(first.0 + slice);
                if let Some(lpn) = self.spares.lpn(ppn) {
                    let entry = self.flash_entry(lpn);
                    if !entry.is_recent() && !self.covers(now, self.map.page_of(lpn)) {
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
    fn covers(&mut self, now: Ns, page: u32) -> bool {
        if self.collector.seen[page as usize] == self.collector.round {
            return true;
        }
        if let Some(ppn) = self.map.directory(page)
            && !self.cache.is_present(page)
        {
            if !self.reads_allowed() {
                return false;
            }
            self.collector.reads += 1;
            self.back.stats.collect_map_loads += 1;
            self.begin_flash(now, Op { lpn: page, ..Op::new(Job::CollectMapLoad, ppn) });
        }
        self.collector.seen[page as usize] = self.collector.round;
        true
    }

    /// Moves current slices of one victim after the other; true when all are empty.
    fn copy(&mut self, now: Ns) -> bool {
        let (victim, first) = self.collector.victims.get(self.collector.at);
        let units = self.superblocks.get(victim).next_unit;
        let pages = units * self.config.geometry.planes;
        loop {
            self.read_pages_to_move(now, first, pages);
            let free = self.collector.free.len();
            self.program_moved(now, self.collector.cursor == pages && self.collector.reads == 0);
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
            debug_assert!((0..self.superblocks.slices()).all(|i| !self.is_current(Ppn(first.0 + i))));
            self.discard(victim);
            self.begin_erase(now);
        }
        over
    }

    /// Whether the map says that a slice is current, asked at no cost.
    fn is_current(&self, ppn: Ppn) -> bool {
        self.spares.lpn(ppn).is_some_and(|lpn| self.flash_entry(lpn).mapping() == Mapping::Flash(ppn))
    }

    /// Reads pages of the victim with current slices, as far as there is room for them.
    fn read_pages_to_move(&mut self, now: Ns, first: Ppn, pages: u32) {
        let per_page = self.config.geometry.slices_per_page();
        while self.collector.cursor < pages && self.reads_allowed() {
            let slice = self.collector.cursor * per_page;
            let current = self.collector.victims.current(self.collector.at, slice, per_page);
            if current > 0 {
                if self.collector.free.len() < current.count_ones() as usize {
                    break;
                }
                self.read_to_move(now, Ppn(first.0 + slice), current);
            }
            self.collector.cursor += 1;
            self.collector.grant(self.config.geometry.planes);
        }
    }

    /// Reads the slices of `page` whose bits are set in `current`.
    fn read_to_move(&mut self, now: Ns, page: Ppn, current: u32) {
        let mut chain = NONE;
        let mut left = current;
        while left != 0 {
            // From the last slice on, so that the chain runs in order.
            let i = left.ilog2();
            left ^= 1 << i;
            let from = Ppn(page.0 + i);
            let lpn = self.spares.lpn(from).expect("a current slice names its logical page");
            let sequence = self.spares.sequence(from);
            let slot = self.collector.free.pop().expect("counted before");
            self.collector.moving[usize::from(slot)] = Moving { lpn, from, sequence, next: chain };
            chain = slot;
        }
        let count = current.count_ones() as u16;
        self.collector.reads += 1;
        self.back.stats.moved_reads += 1;
        let op = Op { count, index: u32::from(chain), ..Op::new(Job::MoveRead, page) };
        self.begin_flash(now, op);
    }

    /// A spare area or a map page for collection has been read.
    pub(crate) fn collect_read_done(&mut self, now: Ns, id: OpId) {
        self.back.dies.ops_mut().free(id);
        self.collector.reads -= 1;
        self.collect_after_read(now);
    }

    /// A page of data that moves is in the buffer.
    pub(crate) fn move_read_done(&mut self, now: Ns, id: OpId) {
        let op = self.back.end(id);
        self.collector.reads -= 1;
        let mut slot = op.index as u16;
        while slot != NONE {
            self.collector.ready.push_back(slot);
            slot = self.collector.moving[usize::from(slot)].next;
        }
        self.collect_after_read(now);
    }

    fn collect_after_read(&mut self, now: Ns) {
        self.collect(now);
        // It may wait for room in the table of changes, or for the journal.
        self.write_back(now);
        self.program_meta(now);
        if self.is_stuck() {
            self.pump(now);
        }
    }

    /// Programs moved data, whole units at a time, or what there is if no more comes.
    fn program_moved(&mut self, now: Ns, last: bool) {
        let unit = self.config.geometry.slices_per_unit() as usize;
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
                self.prefetch_change(self.collector.moving[usize::from(slot)].lpn);
            }
            for _ in 0..n {
                self.collector.ready.pop_front();
            }
            self.collector.programs += 1;
            self.back.stats.programs += 1;
            self.back.stats.slices_moved += n as u64;
            let from = self.collector.moving[usize::from(chain)].from;
            self.back.stats.slices_flushed += if self.superblocks.is_slc(from) { n as u64 } else { 0 };
            self.back.stats.slices_padded += (unit - n) as u64;
            let op = Op { count: n as u16, index: u32::from(chain), ..Op::new(Job::MoveProgram, ppn) };
            self.begin_flash(now, op);
        }
    }

    /// A unit of moved data has been programmed.
    pub(crate) fn move_programmed(&mut self, now: Ns, id: OpId) {
        let op = self.back.end(id);
        self.data_program_ended(op.ppn);
        self.collector.programs -= 1;
        let failed = self.back.dies.program_fails();
        if failed {
            self.program_went_wrong(op.ppn);
        }
        let mut ppn = op.ppn;
        let mut slot = op.index as u16;
        while slot != NONE {
            let m = self.collector.moving[usize::from(slot)];
            if failed {
                self.collector.ready.push_back(slot);
            } else {
                self.spares.program(ppn, m.lpn, m.sequence);
                self.back.emit(MediaOp::Move { from: m.from, to: ppn });
                if self.collector.victims.is_current(self.collector.at, m.from) {
                    self.relocate(m.lpn, Entry::at(ppn));
                    self.block_moved(m.lpn);
                }
                self.collector.free.push(slot);
            }
            slot = m.next;
            ppn = Ppn(ppn.0 + 1);
        }
        if !failed {
            self.durable.log.push(Logged::Data { first: op.ppn });
            self.discard_if_empty(self.superblocks.of(op.ppn));
            self.write_table_if_full(now, op.ppn);
        }
        self.pump(now);
    }

    /// Something may be worth doing once the host has been idle for a while.
    pub(crate) fn arm_background(&mut self, now: Ns) {
        if self.config.ftl.collect_idle_below > 0 || self.flushes_when_idle() {
            self.background = now + self.config.ftl.idle_after;
            self.find_rare();
        }
    }

    /// Whether the host was found idle, and has sent no command since.
    pub(crate) fn host_is_idle(&self) -> bool {
        self.idle_from > self.back.cpu.last_command()
    }

    /// The time for work in the background has come, if the host has been idle for long enough.
    pub(crate) fn background_due(&mut self, now: Ns) {
        let busy = self.slots.iter().any(|slot| slot.active);
        let idle_at = if busy { now } else { self.back.cpu.last_command() } + self.config.ftl.idle_after;
        self.background = Ns::NEVER;
        if now < idle_at {
            self.background = idle_at;
            self.find_rare();
            return;
        }
        self.find_rare();
        self.idle_from = now;
        self.pump(now);
        // Should the host interrupt what is under way, it is to go on later. If nothing is, time alone changes nothing.
        if self.back.dies.ops().in_use() > 0 {
            self.arm_background(now);
        }
    }
}
