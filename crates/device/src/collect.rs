// SPDX-License-Identifier: MIT OR Apache-2.0
//! Garbage collection, wear levelling and the repair of disturbed data: a superblock is chosen, what is still current in
//! it moves elsewhere, then it is given up.
//!
//! The device learns what is current by paying for it, in three passes over the victim. *Spares*: the spare areas of all
//! units are read, which gives the logical page of each slice. *Maps*: every map page that covers one of them is read
//! once (the list is sorted in SRAM), unless the map cache or the table of changes has the answer. *Copy*: pages with
//! current slices are read into a buffer and programmed from there. A slice that is overwritten meanwhile is known from
//! the table of changes, and its copy is dropped.

use crate::device::UfsDevice;
use crate::ftl::{Entry, Logged, Mapping, Stream};
use crate::media::{MediaMode, MediaOp};
use crate::ops::{Job, Op};
use crate::probe::Probe;
use crate::space::Purpose;
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::Ns;
use std::collections::VecDeque;

const NONE: u16 = u16::MAX;
/// Slices whose map entries are fetched ahead of their turn.
const AHEAD: u32 = 24;
/// The same for pages to be copied.
const PAGES_AHEAD: u32 = 4;
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
    victim: Option<u32>,
    /// Where its data goes.
    to: Stream,
    pass: Pass,
    /// Next unit (spares), slice (maps) or page (copy).
    cursor: u32,
    reads: u32,
    programs: u32,
    /// Slices that the victim gives up, as far as its references tell, and how many of them the host was let have.
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
    pub(crate) fn new(map_pages: u32, buffer_blocks: u32) -> Self {
        let nothing = Moving { lpn: 0, from: Ppn(0), sequence: 0, next: NONE };
        Collector {
            victim: None,
            to: Stream::Moved,
            pass: Pass::Spares,
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

    /// The superblock that is being emptied.
    pub(crate) fn victim(&self) -> Option<u32> {
        self.victim
    }

    /// Whether something is being read from it.
    pub(crate) fn is_reading(&self) -> bool {
        self.reads > 0
    }

    /// Whether a superblock is being emptied.
    pub(crate) fn is_busy(&self) -> bool {
        self.victim.is_some()
    }

    /// Erase counts have changed.
    pub(crate) fn look_at_wear(&mut self) {
        self.wear_due = true;
    }

    /// A superblock was read very often.
    pub(crate) fn disturbed(&mut self, sb: u32) {
        self.disturbed.push_back(sb);
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

    /// Lets the host have its share of what this victim frees, in step with the work: a quarter for each of the first two
    /// passes, the rest for the copying.
    fn grant(&mut self, of: u32) {
        let share = |from: u64, to: u64| from * u64::from(of.max(1)) + (to - from) * u64::from(self.cursor.min(of));
        let quarters = match self.pass {
            Pass::Spares => share(0, 1),
            Pass::Maps => share(1, 2),
            Pass::Copy => share(2, 4),
        };
        let target = (u64::from(self.freed) * quarters / (4 * u64::from(of.max(1)))) as u32;
        self.credit += target.saturating_sub(self.granted);
        self.granted = self.granted.max(target);
    }
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Goes on with collection as far as it can without waiting.
    pub(crate) fn collect(&mut self, now: Ns) {
        loop {
            if self.collector.victim.is_none() && !self.choose_victim() {
                return;
            }
            let Some(victim) = self.collector.victim else { return };
            let went_on = match self.collector.pass {
                Pass::Spares => self.read_spares(now, victim),
                Pass::Maps => self.read_maps(now, victim),
                Pass::Copy => self.copy(now, victim),
            };
            if !went_on {
                return;
            }
        }
    }

    fn choose_victim(&mut self) -> bool {
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
                if device.superblocks.get(sb).is_movable() {
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
            Why::Space => &mut self.stats.collected,
            Why::Idle => &mut self.stats.collected_idle,
            Why::Wear => &mut self.stats.levelled,
            Why::Disturb => &mut self.stats.refreshed,
            Why::Flush => &mut self.stats.flushed,
        };
        *counter += 1;
        let c = &mut self.collector;
        c.victim = Some(victim);
        (c.to, c.since_levelled) = match why {
            Why::Wear => (Stream::Cold, 0),
            _ if self.config.ftl.separate_moved => (Stream::Moved, c.since_levelled + 1),
            _ => (Stream::Host, c.since_levelled + 1),
        };
        c.pass = Pass::Spares;
        c.cursor = 0;
        c.round += 1;
        c.granted = 0;
        let sb = self.superblocks.get(victim);
        c.freed = if matches!(why, Why::Wear | Why::Flush) {
            0
        } else if sb.slc {
            // It comes back with all its pages.
            self.superblocks.slices() - sb.refs
        } else {
            (sb.next_unit * self.config.geometry.slices_per_unit()).saturating_sub(sb.refs)
        };
        true
    }

    fn reads_allowed(&self) -> bool {
        self.collector.reads < self.config.geometry.dies() && self.ops.has_room()
    }

    /// Reads spare areas; true when the pass is over.
    fn read_spares(&mut self, now: Ns, victim: u32) -> bool {
        let g = self.config.geometry;
        let units = self.superblocks.get(victim).next_unit;
        while self.collector.cursor < units {
            let unit = self.collector.cursor;
            if self.superblocks.is_bad(victim, unit % g.dies()) && !self.superblocks.get(victim).failed {
                self.collector.cursor += 1;
                continue;
            }
            if !self.reads_allowed() {
                return false;
            }
            let ppn = Ppn(self.superblocks.first(victim).0 + unit * g.slices_per_unit());
            self.collector.cursor += 1;
            self.collector.reads += 1;
            self.stats.spare_reads += 1;
            self.begin_flash(now, Op::new(Job::SpareRead, ppn));
            self.collector.grant(units);
        }
        let over = self.collector.reads == 0;
        if over {
            self.collector.pass = Pass::Maps;
            self.collector.cursor = 0;
        }
        over
    }

    /// Reads the map pages that tell which slices are current; true when the pass is over.
    fn read_maps(&mut self, now: Ns, victim: u32) -> bool {
        let first = self.superblocks.first(victim);
        let slices = self.superblocks.get(victim).next_unit * self.config.geometry.slices_per_unit();
        while self.collector.cursor < slices {
            let at = self.collector.cursor;
            if at + AHEAD < slices
                && let Some(lpn) = self.spares.lpn(Ppn(first.0 + at + AHEAD))
            {
                self.map.prefetch(lpn);
            }
            if let Some(lpn) = self.spares.lpn(Ppn(first.0 + at))
                && let page = self.map.page_of(lpn)
                && self.collector.seen[page as usize] != self.collector.round
                && !self.flash_entry(lpn).is_recent()
                && let Some(ppn) = self.map.directory(page)
            {
                if !self.cache.is_present(page) {
                    if !self.reads_allowed() {
                        return false;
                    }
                    self.collector.reads += 1;
                    self.stats.collect_map_loads += 1;
                    self.begin_flash(now, Op { lpn: page, ..Op::new(Job::CollectMapLoad, ppn) });
                }
                self.collector.seen[page as usize] = self.collector.round;
            }
            self.collector.cursor += 1;
            if at.is_multiple_of(64) {
                self.collector.grant(slices);
            }
        }
        let over = self.collector.reads == 0;
        if over {
            self.collector.pass = Pass::Copy;
            self.collector.cursor = 0;
        }
        over
    }

    fn is_current(&self, ppn: Ppn) -> bool {
        self.spares.lpn(ppn).is_some_and(|lpn| self.flash_entry(lpn).mapping() == Mapping::Flash(ppn))
    }

    /// Moves current slices; true when the victim is empty.
    fn copy(&mut self, now: Ns, victim: u32) -> bool {
        let per_page = self.config.geometry.slices_per_page();
        let first = self.superblocks.first(victim);
        let pages = self.superblocks.get(victim).next_unit * self.config.geometry.slices_per_unit() / per_page;
        loop {
            self.read_pages_to_move(now, first, pages, per_page);
            let free = self.collector.free.len();
            self.program_moved(now, self.collector.cursor == pages && self.collector.reads == 0);
            // What need not move any more has left the buffer: there may be room to go on.
            if self.collector.free.len() == free || self.collector.cursor == pages {
                break;
            }
        }
        let c = &self.collector;
        let over = c.cursor == pages && c.reads == 0 && c.programs == 0 && c.ready.is_empty();
        if over {
            self.collector.grant(pages);
            self.collector.victim = None;
            debug_assert!((0..self.superblocks.slices()).all(|i| !self.is_current(Ppn(first.0 + i))));
            self.discard(victim);
            self.begin_erase(now);
        }
        over
    }

    /// Reads pages of the victim with current slices, as far as there is room for them.
    fn read_pages_to_move(&mut self, now: Ns, first: Ppn, pages: u32, per_page: u32) {
        while self.collector.cursor < pages && self.reads_allowed() {
            let page = Ppn(first.0 + self.collector.cursor * per_page);
            if self.collector.cursor + PAGES_AHEAD < pages {
                for lpn in (0..per_page).filter_map(|i| self.spares.lpn(Ppn(page.0 + PAGES_AHEAD * per_page + i))) {
                    self.map.prefetch(lpn);
                }
            }
            let current = (0..per_page).fold(0, |bits, i| bits | u32::from(self.is_current(Ppn(page.0 + i))) << i);
            if current > 0 {
                if self.collector.free.len() < current.count_ones() as usize {
                    break;
                }
                self.read_to_move(now, page, current);
            }
            self.collector.cursor += 1;
            self.collector.grant(pages);
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
        self.stats.moved_reads += 1;
        let op = Op { count, index: u32::from(chain), ..Op::new(Job::MoveRead, page) };
        self.begin_flash(now, op);
    }

    /// A spare area or a map page for collection has been read.
    pub(crate) fn collect_read_done(&mut self, now: Ns, id: OpId) {
        self.ops.free(id);
        self.collector.reads -= 1;
        self.collect(now);
        self.write_back(now);
        self.program_meta(now);
    }

    /// A page of data that moves is in the buffer.
    pub(crate) fn move_read_done(&mut self, now: Ns, id: OpId) {
        let op = *self.ops.get(id);
        self.ops.free(id);
        self.collector.reads -= 1;
        let mut slot = op.index as u16;
        while slot != NONE {
            self.collector.ready.push_back(slot);
            slot = self.collector.moving[usize::from(slot)].next;
        }
        self.collect(now);
        // It may wait for room in the table of changes, or for the journal.
        self.write_back(now);
        self.program_meta(now);
    }

    /// Programs moved data, whole units at a time, or what there is if no more comes.
    fn program_moved(&mut self, now: Ns, last: bool) {
        let unit = self.config.geometry.slices_per_unit() as usize;
        let stream = self.collector.to;
        loop {
            // What was overwritten since it was read need not move. Its entry is recent, so this is known.
            while self.collector.ready.len() >= unit || (last && !self.collector.ready.is_empty()) {
                let n = self.collector.ready.len().min(unit);
                let gone = (0..n).find(|&i| {
                    let m = self.collector.moving[usize::from(self.collector.ready[i])];
                    self.flash_entry(m.lpn).mapping() != Mapping::Flash(m.from)
                });
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
            }
            self.collector.ready.drain(..n);
            self.collector.programs += 1;
            self.stats.programs += 1;
            self.stats.slices_moved += n as u64;
            let from = self.collector.moving[usize::from(chain)].from;
            self.stats.slices_flushed += if self.superblocks.is_slc(from) { n as u64 } else { 0 };
            self.stats.slices_padded += (unit - n) as u64;
            let op = Op { count: n as u16, index: u32::from(chain), ..Op::new(Job::MoveProgram, ppn) };
            self.begin_flash(now, op);
        }
    }

    /// A unit of moved data has been programmed.
    pub(crate) fn move_programmed(&mut self, now: Ns, id: OpId) {
        let op = *self.ops.get(id);
        self.ops.free(id);
        self.data_program_ended(op.ppn);
        self.collector.programs -= 1;
        let failed = self.faults.fails(self.config.ftl.faults.program_failures_ppm);
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
                self.emit(MediaOp::Move { from: m.from, to: ppn });
                if self.flash_entry(m.lpn).mapping() == Mapping::Flash(m.from) {
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
        }
        self.pump(now);
    }

    /// Something may be worth doing once the host has been idle for a while.
    pub(crate) fn arm_background(&mut self, now: Ns) {
        if self.config.ftl.collect_idle_below > 0 || self.flushes_when_idle() {
            self.background = now + self.config.ftl.idle_after;
        }
    }

    /// Whether the host was found idle, and has sent no command since.
    pub(crate) fn host_is_idle(&self) -> bool {
        self.idle_from > self.last_command
    }

    /// The time for work in the background has come, if the host has been idle for long enough.
    pub(crate) fn background_due(&mut self, now: Ns) {
        let busy = self.slots.iter().any(|slot| slot.active);
        let idle_at = if busy { now } else { self.last_command } + self.config.ftl.idle_after;
        self.background = Ns::NEVER;
        if now < idle_at {
            self.background = idle_at;
            return;
        }
        self.idle_from = now;
        self.pump(now);
        // Should the host interrupt what is under way, it is to go on later. If nothing is, time alone changes nothing.
        if self.ops.in_use() > 0 {
            self.arm_background(now);
        }
    }
}
