// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads of one block that are under way together, with nothing else: rows of a table, where the long way has commands,
//! slots and operations. They use link, firmware, map cache and flash as those do, event by event, and take the same
//! numbers of operations, which decide what of equal times comes first. Nothing that can be seen differs from the long
//! way: before anybody looks, [`UfsDevice::end_rows`] makes of the rows what it would have.

use crate::back::{Hardware, Job, MediaMode, NO_OP, OneRead, Op, Probe};
use crate::device::UfsDevice;
use crate::front::{Kind, Slot, TAGS};
use crate::ftl::FrameState;
use crate::ids::{Lpn, MapPage, TagRef};
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::{BLOCK_BYTES, DeadlineHeap, Ns};
use readpath_proto::typed::HpbEntry;

/// The numbers of operations are below this.
const OPS: usize = DeadlineHeap::SLOTS as usize;
/// In [`Together::of`]: a load of a map page into the frame of the other bits.
const LOAD: u32 = 1 << 31;

/// Why the block of a row still lies where it did when the read arrived.
const UNCHANGED: &str = "only reads are under way";

/// Where a read is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// On its way to the device.
    Link,
    /// It waits for its page of the map.
    Map,
    /// It waits for a frame, as each has another page on its way.
    Frame,
    /// At its die or channel.
    Flash,
    /// On its way to the host.
    Reply,
}

/// A read, by its tag; aligned so that its address is a shift of that.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Row {
    block: u32,
    lpn: Lpn,
    ppn: Ppn,
    /// The entry that came with it, as a word: bytes would go through memory.
    entry: Option<u64>,
    op: OpId,
    /// The operation of the read behind which it waits for the same page of the map.
    next: OpId,
    /// The load of that page, if it is this row of which [`UfsDevice::end_rows`] makes it.
    load: OpId,
    lun: u8,
    /// Of a unit with zones: which logical page it reads is found when it arrives.
    zoned: bool,
    stage: Stage,
}

impl Row {
    const NONE: Row = Row {
        block: 0,
        lpn: Lpn(0),
        ppn: Ppn(0),
        entry: None,
        op: NO_OP,
        next: NO_OP,
        load: NO_OP,
        lun: 0,
        zoned: false,
        stage: Stage::Reply,
    };
}

/// Reads in the order in which they reach something, with their times. There are never more than tags, and places that
/// are not in use have no time.
struct Line {
    /// The time of the first, or [`Ns::NEVER`].
    first: Ns,
    ring: [(Ns, u8); TAGS],
    /// Places of the first and behind the last, which count on: a length would be stored together with the first.
    head: usize,
    end: usize,
}

impl Line {
    const EMPTY: Line = Line { first: Ns::NEVER, ring: [(Ns::NEVER, 0); TAGS], head: 0, end: 0 };

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.head == self.end
    }

    #[inline(always)]
    fn push(&mut self, at: Ns, tag: u8) {
        self.ring[self.end % TAGS] = (at, tag);
        self.end += 1;
        self.first = self.first.min(at);
    }

    #[inline(always)]
    fn first_tag(&self) -> u8 {
        self.ring[self.head % TAGS].1
    }

    #[inline(always)]
    fn pop(&mut self) -> u8 {
        let (at, tag) = &mut self.ring[self.head % TAGS];
        let tag = *tag;
        *at = Ns::NEVER;
        self.head += 1;
        self.first = self.ring[self.head % TAGS].0;
        tag
    }

    fn drain(&mut self) -> impl Iterator<Item = (Ns, u8)> + use<'_> {
        (self.head..self.end).map(|_| (self.first, self.pop()))
    }
}

/// Reads that are under way together.
pub(super) struct Together {
    /// A bit for each tag.
    under_way: u64,
    arrivals: Line,
    replies: Line,
    rows: [Row; TAGS],
    /// By operation: the tag of a read, or a [`LOAD`].
    of: [u32; OPS],
}

impl Together {
    pub(super) fn new() -> Box<Together> {
        Box::new(Together {
            under_way: 0,
            arrivals: Line::EMPTY,
            replies: Line::EMPTY,
            rows: [Row::NONE; TAGS],
            of: [0; OPS],
        })
    }

    fn row(&mut self, tag: u8) -> &mut Row {
        &mut self.rows[usize::from(tag) % TAGS]
    }

    fn tags(&self) -> impl Iterator<Item = u8> + use<> {
        let under_way = self.under_way;
        (0..TAGS as u8).filter(move |tag| under_way >> tag & 1 == 1)
    }
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Makes rows of the commands under way, if they are reads that can be rows and nothing else goes on. Until
    /// [`UfsDevice::end_rows`] only the methods of this module may be called, and those that count or look at the map.
    pub fn begin_rows(&mut self) -> bool {
        let is_plain = self.may_read_alone && self.hpb.has_nothing_to_tell() && !self.front.has_starved();
        // Then no operation is announced to any die, so that all reads can be planned ahead.
        let is_quiet = self.back.cpu().next() == Ns::NEVER && self.back.writes() == 0 && self.back.plans_reads();
        if P::ACTIVE || M::ACTIVE || !is_plain || !is_quiet || self.front.target().query.exceptions_wanted() != 0 {
            return false;
        }
        let Some(rows) = self.rows() else { return false };
        self.together.under_way = 0;
        for (tag, row) in rows {
            self.together.under_way |= 1 << tag;
            self.together.rows[usize::from(tag)] = row;
            if row.op != NO_OP {
                self.together.of[usize::from(row.op) % OPS] = u32::from(tag);
            }
            if row.load != NO_OP {
                self.together.of[usize::from(row.load) % OPS] = LOAD | self.back.ops().get(row.load).frame;
            }
            self.front.slot_mut(tag).active = false;
        }
        for &(at, tag) in self.front.take_arrivals().iter() {
            self.together.arrivals.push(at, tag.tag);
        }
        for &(at, tag) in self.front.take_replies().iter() {
            self.together.replies.push(at, tag.tag);
        }
        self.find_soon();
        true
    }

    /// The rows for the commands under way, if all of them can be rows.
    fn rows(&self) -> Option<Vec<(u8, Row)>> {
        let mut rows = Vec::new();
        for tag in (0..TAGS as u8).filter(|&tag| !self.front.is_free(tag)) {
            rows.push((tag, self.row_of(self.front.slot(tag))?));
        }
        let mut placed = 0;
        for &(_, tag) in self.front.arrivals() {
            self.alive(&mut rows, tag)?.stage = Stage::Link;
            placed += 1;
        }
        for &(_, tag) in self.front.replies() {
            self.alive(&mut rows, tag)?.stage = Stage::Reply;
            placed += 1;
        }
        for (id, op) in self.back.ops().numbered().filter(|(_, op)| op.job != Job::MapLoad) {
            let row = self.alive(&mut rows, op.tag).filter(|_| op.job == Job::HostRead)?;
            (row.op, row.ppn) = (id, op.ppn);
            placed += 1;
        }
        if placed != rows.len() {
            return None;
        }
        // What waits for a page of the map or a frame was not told apart yet.
        for id in self.ftl.map().all_stalled() {
            let (_, row) = rows.iter_mut().find(|(_, row)| row.op == id)?;
            (row.ppn, _) = self.ftl.map().placed(row.lpn)?;
            row.stage = Stage::Frame;
        }
        for (id, load) in self.back.ops().numbered().filter(|(_, op)| op.job == Job::MapLoad) {
            let mut waiting = self.ftl.map().waiting(load.frame);
            if waiting == NO_OP {
                return None;
            }
            let mut begun = id;
            while waiting != NO_OP {
                let op = self.back.ops().get(waiting);
                let (ppn, _) = self.ftl.map().placed(Lpn(op.lpn))?;
                let (_, row) = rows.iter_mut().find(|(_, row)| row.op == waiting)?;
                (row.stage, row.ppn, row.next) = (Stage::Map, ppn, op.next);
                row.load = std::mem::replace(&mut begun, NO_OP);
                waiting = op.next;
            }
        }
        Some(rows)
    }

    /// The row of a command that has not been dropped.
    fn alive<'a>(&self, rows: &'a mut [(u8, Row)], of: TagRef) -> Option<&'a mut Row> {
        let row = rows.iter_mut().find(|(tag, _)| *tag == of.tag && self.front.is_alive(of));
        row.map(|(_, row)| row)
    }

    /// The row of a command, as if it was at its die.
    fn row_of(&self, slot: &Slot) -> Option<Row> {
        let &Slot { kind, lun, lba, hpb, .. } = slot;
        let is_read = matches!(kind, Kind::Read | Kind::HpbRead) && (slot.flags, slot.blocks) == (0, 1);
        let is_whole = slot.expected_bytes == BLOCK_BYTES && slot.outcome.is_none();
        let is_special = slot.missed || slot.is_cut || hpb.read_id != 0 || hpb.listed || hpb.checked;
        if !is_read || !is_whole || is_special {
            return None;
        }
        let HpbEntry(entry) = hpb.entry;
        let entry = (kind == Kind::HpbRead).then(|| u64::from_ne_bytes(entry));
        let (lpn, zoned) = self.can_be_row(lun, lba, entry.is_some())?;
        if hpb.hinted && !zoned {
            return None;
        }
        // One of a zone that has arrived counts its blocks without gaps.
        let lpn = if hpb.hinted { slot.lpn } else { lpn };
        Some(Row { block: lba as u32, lpn, entry, lun, zoned, stage: Stage::Flash, ..Row::NONE })
    }

    /// Whether a read of a block can be a row: its logical page, and whether its unit has zones. Then the page is found
    /// on arrival.
    #[inline(always)]
    fn can_be_row(&self, lun: u8, lba: u64, with_entry: bool) -> Option<(Lpn, bool)> {
        if usize::from(lun) >= self.front.units() {
            return None;
        }
        if self.front.target().is_direct(lun) {
            return Some((self.front.lpn_of(lun, lba, 1)?, false));
        }
        let may = self.front.is_zoned(lun) && self.front.target().is_ready(lun) && !with_entry;
        may.then_some((Lpn(0), true))
    }

    /// The tags of the rows, a bit each.
    pub fn rows_under_way(&self) -> u64 {
        self.together.under_way
    }

    /// Makes commands, slots and operations of the rows again.
    pub fn end_rows(&mut self) {
        for tag in self.together.tags() {
            let Row { block, lpn, ppn, entry, op, next, load, lun, zoned, stage } = *self.together.row(tag);
            let has_come = stage != Stage::Link;
            let base = self.front.base(lun);
            let slot = self.front.slot_mut(tag);
            slot.begin(lun);
            (slot.kind, slot.flags) = (if entry.is_some() { Kind::HpbRead } else { Kind::Read }, 0);
            (slot.blocks, slot.expected_bytes, slot.hpb.hinted) = (1, BLOCK_BYTES, zoned && has_come);
            slot.lba = u64::from(if slot.hpb.hinted { lpn - base } else { block });
            if let Some(entry) = entry {
                slot.hpb.entry = HpbEntry(entry.to_ne_bytes());
            }
            let is_read = stage == Stage::Reply;
            (slot.lpn, slot.issued) = (lpn, u32::from(has_come));
            (slot.left, slot.in_flight) = (u32::from(!is_read), u32::from(!is_read && has_come));
            let tag = self.front.tag_ref(tag);
            let read = Op { tag, count: 1, lpn: lpn.0, ..Op::new(Job::HostRead, ppn) };
            match stage {
                Stage::Map => *self.back.ops_mut().get_mut(op) = Op { next, ppn: Ppn(0), ..read },
                Stage::Frame => *self.back.ops_mut().get_mut(op) = Op { ppn: Ppn(0), ..read },
                Stage::Flash => *self.back.ops_mut().get_mut(op) = read,
                Stage::Link | Stage::Reply => {}
            }
            if load != NO_OP && stage == Stage::Map {
                let page = self.ftl.map().page_of(lpn);
                let frame = self.together.of[usize::from(load) % OPS] & !LOAD;
                let (_, at) = self.ftl.map().placed(lpn).expect(UNCHANGED);
                *self.back.ops_mut().get_mut(load) = Op { count: 1, lpn: page.0, frame, ..Op::new(Job::MapLoad, at) };
            }
        }
        for (at, tag) in self.together.arrivals.drain() {
            self.front.will_arrive(at, self.front.tag_ref(tag));
            self.back.cpu_mut().wake_at(at);
        }
        for (at, tag) in self.together.replies.drain() {
            self.front.will_be_told(at, self.front.tag_ref(tag));
        }
        self.together.under_way = 0;
    }

    /// Submits a read of one block at `now`, as [`UfsDevice::submit_read`]; `entry` as a word. False if it can be no
    /// row: nothing has changed then.
    #[inline(always)]
    pub fn submit_together(&mut self, now: Ns, lun: u8, tag: u8, block: u32, entry: Option<u64>) -> bool {
        let Some((lpn, zoned)) = self.can_be_row(lun, u64::from(block), entry.is_some()) else { return false };
        let at = self.front.down_from(self.front.at_link(now)) + self.front.link().request;
        let row = self.together.row(tag);
        // The other fields follow on its way.
        (row.block, row.lpn, row.entry, row.lun, row.zoned, row.stage) = (block, lpn, entry, lun, zoned, Stage::Link);
        let other = self.back.next_event().min(self.together.arrivals.first);
        // As in `link_down`: nothing comes between.
        if self.together.replies.is_empty() && at < other {
            if !self.arrive_together(at, tag) {
                return false;
            }
        } else {
            self.together.arrivals.push(at, tag);
        }
        self.front.set_down_free(at);
        self.back.cpu_mut().command_at(at);
        self.together.under_way |= 1 << (tag % TAGS as u8);
        true
    }

    /// Handles events in order until a reply reaches the host or `limit` comes, as [`UfsDevice::advance_to_reply`].
    /// `None` if something else comes before: the rows have to end.
    #[inline(always)]
    pub fn advance_together(&mut self, limit: Ns) -> Option<Ns> {
        let other = self.back.cpu().next().min(self.rare);
        loop {
            let reply = self.together.replies.first.min(limit);
            let arrival = self.together.arrivals.first;
            let flash = self.back.next_flash();
            let at = flash.min(arrival);
            if other <= at && other <= reply && other != Ns::NEVER {
                return None;
            }
            // An event at the time of a reply is handled first, and flash before what arrives.
            if at > reply || at == Ns::NEVER {
                return Some(reply);
            }
            if flash == at {
                self.flash_together(at);
            } else if self.arrive_together(at, self.together.arrivals.first_tag()) {
                self.together.arrivals.pop();
            } else {
                return None;
            }
        }
    }

    /// The tag of the next read whose reply has reached the host by `now`.
    #[inline(always)]
    pub fn take_together(&mut self, now: Ns) -> Option<u8> {
        if self.together.replies.first > now || self.together.replies.is_empty() {
            return None;
        }
        let tag = self.together.replies.pop();
        self.together.under_way &= !(1 << (tag % TAGS as u8));
        Some(tag)
    }

    /// A read arrives; false if it has to go the long way: nothing has changed then.
    #[inline(always)]
    fn arrive_together(&mut self, at: Ns, tag: u8) -> bool {
        let Row { block, lpn, entry, lun, zoned, .. } = *self.together.row(tag);
        if zoned {
            return self.arrive_in_zone(at, tag, lun, block);
        }
        if let Some(entry) = entry {
            let Some(ppn) = self.by_word(lun, block, entry) else { return false };
            self.back.stats().hpb_reads += 1;
            self.back.stats().hpb_hits += 1;
            if self.hpb.notes(1) {
                self.hpb.note_read(lun, block);
            }
            self.together.row(tag).op = self.back.ops_mut().take_number();
            self.read_together(at, self.hpb_command, tag, ppn);
        } else {
            if self.hpb.notes(1) {
                return false;
            }
            let Some((ppn, place)) = self.ftl.map().placed(lpn) else { return false };
            let page = self.ftl.map().page_of(lpn);
            let state = self.ftl.map_mut().look_up(page);
            let id = self.back.ops_mut().take_number();
            let row = self.together.row(tag);
            (row.op, row.ppn) = (id, ppn);
            if let FrameState::Present(_) = state {
                self.back.stats().map_hits += 1;
                self.read_together(at, self.read_extra + self.map_access, tag, ppn);
            } else {
                self.back.stats().map_misses += 1;
                self.back.cpu_mut().occupy(at, self.read_extra);
                self.together.of[usize::from(id) % OPS] = u32::from(tag);
                self.wait_together(at, tag, state, (page, place));
            }
        }
        true
    }

    /// A read of a unit with zones arrives, as [`UfsDevice::arrive_together`].
    #[inline(never)]
    fn arrive_in_zone(&mut self, at: Ns, tag: u8, lun: u8, block: u32) -> bool {
        let Some((lpn, ppn)) = self.ftl.in_zone(lun, block).filter(|_| !self.hpb.notes(1)) else { return false };
        self.back.stats().zone_hits += 1;
        let id = self.back.ops_mut().take_number();
        let row = self.together.row(tag);
        (row.lpn, row.op) = (lpn, id);
        self.read_together(at, self.read_extra, tag, ppn);
        true
    }

    /// [`UfsDevice::by_entry`] of a word. Not inlined: within the loop that all events pass, the compiler makes of the
    /// cipher's small functions calls.
    #[inline(never)]
    pub(super) fn by_word(&self, lun: u8, block: u32, entry: u64) -> Option<Ppn> {
        self.by_entry(lun, block, HpbEntry(entry.to_ne_bytes()))
    }

    /// A read waits for its page of the map, which SRAM has not got and which lies at `place`.
    #[inline(always)]
    fn wait_together(&mut self, now: Ns, tag: u8, state: FrameState, (page, place): (MapPage, Ppn)) {
        let id = self.together.row(tag).op;
        let taken = match state {
            FrameState::Loading(frame) => Some(frame),
            _ => self.ftl.map_mut().take_frame(page),
        };
        let Some(frame) = taken else {
            self.ftl.map_mut().stall(id);
            self.together.row(tag).stage = Stage::Frame;
            return;
        };
        let next = self.ftl.map_mut().wait_in(frame, id);
        let row = self.together.row(tag);
        (row.next, row.load, row.stage) = (next, NO_OP, Stage::Map);
        if state == FrameState::Absent {
            self.back.stats().map_loads += 1;
            let load = self.back.ops_mut().take_number();
            self.together.of[usize::from(load) % OPS] = LOAD | frame;
            self.together.row(tag).load = load;
            self.back.read_one(now, Ns::ZERO, load, OneRead::MapPage, place);
        }
    }

    /// Reads the block of a row from flash, under the number that it has.
    #[inline(always)]
    fn read_together(&mut self, now: Ns, extra: Ns, tag: u8, ppn: Ppn) {
        self.back.stats().data_reads += 1;
        let row = self.together.row(tag);
        (row.ppn, row.stage) = (ppn, Stage::Flash);
        let id = row.op;
        self.together.of[usize::from(id) % OPS] = u32::from(tag);
        let what = OneRead::Block(self.cells_of(ppn));
        self.back.read_one(now, extra, id, what, ppn);
    }

    /// An operation ends, or goes on to its next stage.
    #[inline(always)]
    fn flash_together(&mut self, now: Ns) {
        let Some(done) = self.back.poll_flash(now) else { return };
        let of = self.together.of[usize::from(done.op) % OPS];
        self.back.ops_mut().free(done.op);
        if of & LOAD != 0 {
            return self.loaded_together(now, of & !LOAD);
        }
        let tag = of as u8;
        let link = *self.front.link();
        let (_, end) = self.front.reserve_up(done.at, link.block + link.response);
        self.together.row(tag).stage = Stage::Reply;
        self.together.replies.push(self.front.at_host(end), tag);
    }

    /// A page of the map is in SRAM: reads that wait for it go on, in order of arrival.
    #[inline(always)]
    fn loaded_together(&mut self, now: Ns, frame: u32) {
        let mut chain = self.ftl.map_mut().end_load(frame);
        // The chain is last in, first out.
        let mut ordered = NO_OP;
        while chain != NO_OP {
            let tag = self.together.of[usize::from(chain) % OPS] as u8;
            let row = self.together.row(tag);
            (chain, row.next, ordered) = (row.next, ordered, chain);
        }
        while ordered != NO_OP {
            let tag = self.together.of[usize::from(ordered) % OPS] as u8;
            let Row { ppn, next, .. } = *self.together.row(tag);
            self.ftl.map_mut().count_lookups(1);
            // On the long way, the number is given back and taken again.
            self.read_together(now, Ns::ZERO, tag, ppn);
            ordered = next;
        }
        if self.ftl.map().stalled() > 0 {
            self.look_up_stalled(now);
        }
    }

    /// Reads that wait for a frame look their pages of the map up again, in order.
    #[inline(never)]
    fn look_up_stalled(&mut self, now: Ns) {
        let mut left = self.ftl.map().stalled();
        while left > 0 && self.ftl.map().can_take_frame() {
            self.look_up_together(now);
            left -= 1;
        }
        // The others go on waiting, but for those whose page is on its way by now. The long way looks each of them up.
        let Together { of, rows, .. } = &*self.together;
        let map = self.ftl.map();
        let finds = |id: OpId| {
            let tag = of[usize::from(id) % OPS] as usize;
            map.is_on_its_way(map.page_of(rows[tag % TAGS].lpn))
        };
        if map.all_stalled().any(finds) {
            (0..left).for_each(|_| self.look_up_together(now));
        }
    }

    /// The first read that waits for a frame looks its page of the map up again.
    #[inline(never)]
    fn look_up_together(&mut self, now: Ns) {
        let Some(id) = self.ftl.map_mut().next_stalled() else { return };
        let tag = self.together.of[usize::from(id) % OPS] as u8;
        let Row { lpn, ppn, .. } = *self.together.row(tag);
        let page = self.ftl.map().page_of(lpn);
        match self.ftl.map_mut().look_up(page) {
            FrameState::Present(_) => {
                self.ftl.map_mut().count_lookups(1);
                self.read_together(now, Ns::ZERO, tag, ppn);
            }
            state => {
                let (_, place) = self.ftl.map().placed(lpn).expect(UNCHANGED);
                self.wait_together(now, tag, state, (page, place));
            }
        }
    }
}
