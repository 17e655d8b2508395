// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meta stream: map pages that are written back, the journal, and checkpoints. Its units hold one or several parts,
//! each as long as a map page.
//!
//! *Order.* A superblock is written only after flash names it, so recovery finds every unit. The journal names those of
//! data; the next one of the meta stream stands in the spare areas of the last unit of the one before it, where no other
//! record can be in its way. A checkpoint is put together when no program is
//! in progress: otherwise a slice programmed after it could be older than what the checkpoint, or a map page before it,
//! already says, and recovery would take it for news. Its anchor is programmed when all its parts are in flash.

use crate::back::MediaMode;
use crate::back::Probe;
use crate::back::{Job, Op};
use crate::config::DeviceConfig;
use crate::device::UfsDevice;
use crate::ftl::{
    ANCHORS, Change, Checkpoint, Entry, Held, Logged, Mapping, Record, Spares, Stream, Superblock, Taken,
};
use crate::journal::Mark;
use crate::space::flash_entry;
use readpath_flash::{DieSched, OpId, Ppn};
use readpath_kit::{BLOCK_BYTES, Ns};
use std::collections::VecDeque;

/// Part of a unit.
#[derive(Clone, Debug)]
enum Part {
    Map {
        page: u32,
        taken: Taken,
        put_together: u32,
        sequence: u32,
    },
    Journal {
        records: Vec<Record>,
        up_to: Mark,
    },
    Checkpoint,
    /// The superblock that the stream goes on in. It stands in the spare areas and takes no room.
    Next {
        superblock: u32,
        opened_at: u32,
    },
}

impl Part {
    /// A map page as it will be when its unit is programmed.
    fn to_be_put_together(page: u32) -> Part {
        Part::Map { page, taken: Taken::NONE, put_together: 0, sequence: 0 }
    }
}

/// State of the meta stream.
pub struct Meta {
    parts_per_unit: usize,
    /// Map pages to be written whether they changed or not, because their superblock is to be given up.
    rewrite: VecDeque<u32>,
    victim: Option<u32>,
    /// Map pages on their way: being read, waiting for a unit, or being programmed.
    pages_under_way: u32,
    loading: u32,
    queue: VecDeque<Part>,
    programs: Vec<Vec<Part>>,
    in_flight: u32,
    journal_under_way: bool,
    /// The newest unit held parts of the journal.
    journal_came_last: bool,
    /// The unit that names the open superblock is not in flash yet.
    next_under_way: bool,
    /// Parts of journal and checkpoint that recovery may still need, by superblock; and in order of age.
    pins: Vec<u32>,
    pinned: VecDeque<(u64, u32)>,
    /// When each map page in flash was put together: the first words of the page itself.
    written_at: Vec<u32>,
}

impl Meta {
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let unit_bytes = config.geometry.slices_per_unit() * BLOCK_BYTES;
        Meta {
            parts_per_unit: (unit_bytes / config.map_page_bytes) as usize,
            rewrite: VecDeque::new(),
            victim: None,
            pages_under_way: 0,
            loading: 0,
            queue: VecDeque::new(),
            programs: Vec::new(),
            in_flight: 0,
            journal_under_way: false,
            journal_came_last: false,
            next_under_way: false,
            pins: vec![0; config.geometry.superblocks() as usize],
            pinned: VecDeque::new(),
            written_at: vec![0; config.map_pages() as usize],
        }
    }

    /// Whether something in a superblock may still be needed by recovery.
    pub(crate) fn is_pinned(&self, sb: u32) -> bool {
        self.pins[sb as usize] > 0
    }

    /// Whether anything is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.pages_under_way > 0 || self.in_flight > 0
    }

    /// A superblock was given up.
    pub(crate) fn given_up(&mut self, sb: u32) {
        if self.victim == Some(sb) {
            self.victim = None;
        }
    }

    fn pin(&mut self, age: u64, sb: u32) {
        self.pins[sb as usize] += 1;
        self.pinned.push_back((age, sb));
    }

    /// When a map page in flash was put together.
    pub(crate) fn written_at(&self, page: u32) -> u32 {
        self.written_at[page as usize]
    }

    /// Says when a map page in flash was put together.
    pub(crate) fn set_written_at(&mut self, page: u32, tick: u32) {
        self.written_at[page as usize] = tick;
    }

    /// Sequence numbers now count from `base` on.
    fn renumber(&mut self, base: u32) {
        for part in self.programs.iter_mut().flatten() {
            match part {
                Part::Map { sequence, .. } => *sequence = sequence.saturating_sub(base),
                Part::Journal { records, .. } => records.iter_mut().for_each(|record| record.renumber(base)),
                Part::Checkpoint | Part::Next { .. } => {}
            }
        }
    }

    /// The power is gone: what flash says stays, and `each` is told of the changes that were on their way.
    pub(crate) fn power_cut(&mut self, config: &DeviceConfig, mut each: impl FnMut(Taken)) {
        for part in self.programs.iter().flatten() {
            if let Part::Map { taken, .. } = part {
                each(*taken);
            }
        }
        let written_at = std::mem::take(&mut self.written_at);
        *self = Meta::new(config);
        self.written_at = written_at;
    }
}

/// How far the next checkpoint has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Idle,
    /// Programs in progress have to end.
    Quiet,
    /// Its parts are being programmed.
    Parts,
    /// Its anchor is being programmed.
    Anchor,
}

/// How far sequence numbers may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbers {
    /// Order is kept for so many.
    span: u32,
    /// They are counted anew from here on.
    renumber_at: u32,
}

impl Numbers {
    pub(crate) const ALL: Numbers = Numbers { span: Spares::SPAN, renumber_at: 1 << 31 };
}

/// Checkpoints and anchors.
pub struct Checkpoints {
    step: Step,
    units: u32,
    /// Checkpoints put together so far.
    age: u64,
    due: bool,
    /// Nothing but the checkpoint may be written: no journal leads to what comes before it.
    pub(crate) first: bool,
    /// Anchor that is programmed next, counted through both superblocks; flash itself shows how far it is written.
    anchor: u32,
    /// The newest of them that was not torn.
    newest: Option<u32>,
    /// It was erased, and none has been programmed since: then flash leads nowhere.
    pub(crate) lost: bool,
    /// Dies of the next anchor superblock that are being erased.
    anchor_erasing: u32,
    anchor_wanted: bool,
    /// Parts of the newest checkpoint that are not in flash yet.
    parts_left: u32,
}

impl Checkpoints {
    pub(crate) fn new() -> Self {
        Checkpoints {
            step: Step::Idle,
            units: 0,
            age: 0,
            due: false,
            first: false,
            anchor: 0,
            newest: None,
            lost: false,
            anchor_erasing: 0,
            anchor_wanted: false,
            parts_left: 0,
        }
    }

    /// Whether programs other than the checkpoint's own have to wait.
    pub(crate) fn holds_programs(&self) -> bool {
        self.step == Step::Quiet
    }

    pub(crate) fn count_unit(&mut self) {
        self.units += 1;
    }

    /// Whether the newest anchor leads to a checkpoint that is not all there: it was programmed too early.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.parts_left > 0 && self.step == Step::Idle
    }

    /// The power is gone.
    pub(crate) fn power_cut(&mut self) {
        let anchor = self.anchor + u32::from(self.step == Step::Anchor && !self.anchor_wanted);
        *self = Checkpoints { anchor, newest: self.newest, lost: self.lost, ..Checkpoints::new() };
    }

    /// Recovery has ended: a checkpoint is due, and comes before everything else if the meta stream is lost.
    pub(crate) fn after_recovery(&mut self, meta_is_lost: bool) {
        self.due = true;
        self.first = meta_is_lost;
    }
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// Begins to write map pages back, when the table of changes fills or a superblock of the map is to be given up.
    pub(crate) fn write_back(&mut self, now: Ns) {
        self.choose_meta_victim();
        while self.meta.pages_under_way < self.config.ftl.map_write_pages && self.back.dies.ops().has_room() {
            let used = self.changes.used() + self.changes_reserved;
            let page = if let Some(page) = self.meta.rewrite.pop_front() {
                let lies_in_victim =
                    self.map.directory(page).is_some_and(|at| Some(self.superblocks.of(at)) == self.meta.victim);
                if !lies_in_victim || self.changes.is_being_written(page) {
                    continue;
                }
                page
            } else if u64::from(used) * 4 > u64::from(self.changes.limit()) * 3 {
                let Some(page) = self.changes.worth_writing() else { return };
                page
            } else {
                return;
            };
            self.changes.begin_write(page);
            self.changes.each_of_page(page, |change| self.map.prefetch(change.lpn));
            self.meta.pages_under_way += 1;
            match self.map.directory(page) {
                Some(ppn) if !self.cache.is_present(page) => {
                    self.meta.loading += 1;
                    self.back.stats.write_back_loads += 1;
                    self.begin_flash(now, Op { lpn: page, ..Op::new(Job::WriteBackLoad, ppn) });
                }
                _ => self.meta.queue.push_back(Part::to_be_put_together(page)),
            }
        }
    }

    /// When the map takes all superblocks that it may, the one with the fewest map pages is to be given up.
    fn choose_meta_victim(&mut self) {
        if self.meta.victim.is_some() || self.superblocks.meta_in_use() + 1 < self.meta_superblocks {
            return;
        }
        let pins = &self.meta.pins;
        let Some(victim) = self.superblocks.meta_victim(|sb| pins[sb as usize] == 0) else {
            // Journal and checkpoints hold them all, until the next checkpoint is there.
            self.checkpoint.due |= self.superblocks.meta_in_use() >= self.meta_superblocks;
            return;
        };
        if self.superblocks.is_empty(victim) {
            return self.discard(victim);
        }
        self.meta.victim = Some(victim);
        let (map, superblocks) = (&self.map, &self.superblocks);
        let inside = |&page: &u32| map.directory(page).is_some_and(|at| superblocks.of(at) == victim);
        self.meta.rewrite.extend((0..map.pages()).filter(inside));
    }

    /// A map page that is to be written back has been read.
    pub(crate) fn write_back_loaded(&mut self, now: Ns, id: OpId) {
        let page = self.back.dies.ops().get(id).lpn;
        self.back.dies.ops_mut().free(id);
        self.meta.loading -= 1;
        self.meta.queue.push_back(Part::to_be_put_together(page));
        self.program_meta(now);
    }

    /// Programs units of the meta stream, as far as there is something to write and nothing to wait for.
    pub(crate) fn program_meta(&mut self, now: Ns) {
        const JOURNAL_LIMIT: usize = 512;
        if self.journal.pending() > JOURNAL_LIMIT {
            self.journal.want(self.journal.newest());
        }
        let parts = self.meta.parts_per_unit;
        while self.meta.in_flight < self.config.geometry.dies() {
            let writes_checkpoint = matches!(self.meta.queue.front(), Some(Part::Checkpoint));
            if (self.checkpoint.holds_programs() || self.checkpoint.first) && !writes_checkpoint {
                return;
            }
            let journal = self.journal.must_write() && !self.meta.journal_under_way && !self.checkpoint.first;
            let queued = self.meta.queue.len();
            // If a unit has one part, the journal must not take each.
            let journal = journal && (parts > 1 || queued == 0 || !self.meta.journal_came_last);
            let full = queued >= parts;
            // A unit that does not fill goes when nothing more is on its way to it.
            if !(full || journal || (queued > 0 && (self.meta.loading == 0 || writes_checkpoint))) {
                return;
            }
            let Some((first, next)) = self.meta_unit() else { return };
            let journal = journal || (queued < parts && self.may_add_journal());
            self.begin_meta_program(now, first, journal, next);
        }
    }

    fn may_add_journal(&self) -> bool {
        self.journal.pending() > 0 && !self.meta.journal_under_way && !self.checkpoint.first
    }

    /// The next unit of the meta stream; and if it is the last of its superblock, the next one, which it has to name.
    fn meta_unit(&mut self) -> Option<(Ppn, Option<Part>)> {
        self.superblocks.open_of(Stream::Meta)?;
        if self.meta.next_under_way {
            return None;
        }
        let last = self.superblocks.units_left(Stream::Meta) == 1;
        if last && self.superblocks.erased() == 0 {
            return None;
        }
        let first = self.superblocks.next_unit(Stream::Meta, self.sequence)?;
        if !last || self.checkpoint.first {
            return Some((first, None));
        }
        self.ticks += 1;
        let opened_at = self.ticks;
        let superblock = self.superblocks.open(Stream::Meta, opened_at).expect("an erased superblock was seen above");
        self.meta.next_under_way = true;
        Some((first, Some(Part::Next { superblock, opened_at })))
    }

    fn begin_meta_program(&mut self, now: Ns, first: Ppn, journal: bool, next: Option<Part>) {
        let index = match self.meta.programs.iter().position(Vec::is_empty) {
            Some(index) => index,
            None => {
                self.meta.programs.push(Vec::new());
                self.meta.programs.len() - 1
            }
        };
        let mut parts = std::mem::take(&mut self.meta.programs[index]);
        let sb = self.superblocks.of(first);
        if journal {
            self.meta.journal_under_way = true;
            parts.push(self.journal_part(sb));
        }
        // Before the first anchor nothing leads to this superblock: a map page beside the checkpoint's last part would be
        // lost with the checkpoint, and with it what was given up for its sake.
        let first_only = self.checkpoint.first;
        while parts.len() < self.meta.parts_per_unit
            && self.meta.queue.front().is_some_and(|part| !first_only || matches!(part, Part::Checkpoint))
            && let Some(part) = self.meta.queue.pop_front()
        {
            let part = match part {
                Part::Map { page, .. } => {
                    self.back.stats.map_writes += 1;
                    self.put_together(page)
                }
                part => {
                    self.meta.pin(self.checkpoint.age, sb);
                    self.back.stats.checkpoint_writes += 1;
                    part
                }
            };
            parts.push(part);
        }
        while journal && parts.len() < self.meta.parts_per_unit && self.journal.pending() > 0 {
            parts.push(self.journal_part(sb));
        }
        parts.extend(next);
        self.meta.programs[index] = parts;
        self.meta.in_flight += 1;
        self.meta.journal_came_last = journal;
        self.back.stats.programs += 1;
        self.checkpoint.count_unit();
        self.begin_flash(now, Op { index: index as u32, ..Op::new(Job::MetaProgram, first) });
    }

    /// A part of the journal, to be programmed in `sb`: as many of the oldest records as it holds.
    fn journal_part(&mut self, sb: u32) -> Part {
        let (records, up_to) = self.journal.take((self.config.map_page_bytes / Record::BYTES) as usize);
        self.meta.pin(self.checkpoint.age, sb);
        self.back.stats.journal_writes += 1;
        Part::Journal { records, up_to }
    }

    /// A map page as it is now, to be programmed.
    fn put_together(&mut self, page: u32) -> Part {
        self.ticks += 1;
        let taken = self.changes.take(page);
        let (map, buffer) = (&self.map, &self.buffer);
        self.changes.merge(taken, |lpn| flash_entry(map, buffer, lpn));
        Part::Map { page, taken, put_together: self.ticks, sequence: self.sequence }
    }

    /// A unit of the meta stream has been programmed.
    pub(crate) fn meta_programmed(&mut self, now: Ns, id: OpId) {
        let op = self.back.end(id);
        self.superblocks.program_ended(op.ppn);
        self.meta.in_flight -= 1;
        let mut parts = std::mem::take(&mut self.meta.programs[op.index as usize]);
        let unit = self.durable.log.len();
        self.durable.log.push(Logged::Meta { first: op.ppn, parts: 0 });
        let mut at = op.ppn;
        for part in parts.drain(..) {
            match part {
                Part::Map { page, taken, put_together, sequence } => {
                    let refs = self.map_page_written(page, taken, put_together, at);
                    self.renew_copy(now, page);
                    let held = Held::Map { page, at, written_at: put_together, sequence, refs };
                    self.durable.log.push(Logged::Part(held));
                }
                Part::Journal { records, up_to } => {
                    self.meta.journal_under_way = false;
                    self.journal.written(up_to);
                    let held = Held::Journal { first: up_to + 1 - records.len() as u64, records };
                    self.durable.log.push(Logged::Part(held));
                }
                Part::Next { superblock, opened_at } => {
                    self.meta.next_under_way = false;
                    self.durable.log.push(Logged::Part(Held::Next { superblock, opened_at }));
                }
                Part::Checkpoint => {
                    self.checkpoint.parts_left -= 1;
                    if self.checkpoint.parts_left == 0 && self.checkpoint.step == Step::Parts {
                        self.checkpoint.step = Step::Anchor;
                        self.checkpoint.anchor_wanted = true;
                    }
                }
            }
            at = Ppn(at.0 + self.config.map_page_bytes / BLOCK_BYTES);
        }
        self.meta.programs[op.index as usize] = parts;
        match self.durable.log.len() - unit - 1 {
            // Parts of a checkpoint: only its anchor leads to them.
            0 => self.durable.log.truncate(unit),
            parts => self.durable.log[unit] = Logged::Meta { first: op.ppn, parts: parts as u32 },
        }
        self.discard_if_empty(self.superblocks.of(op.ppn));
        self.journal_moved_on(now);
        self.pump(now);
    }

    /// A map page is in flash: its changes are settled, unless there were more meanwhile. Returns how many references
    /// that changed.
    fn map_page_written(&mut self, page: u32, taken: Taken, put_together: u32, at: Ppn) -> u32 {
        let before = std::mem::replace(&mut self.meta.written_at[page as usize], put_together);
        let refs_before = self.durable.refs.len();
        let mut left = taken;
        loop {
            let settled = self.changes.next_merged(&mut left);
            if settled.is_empty() {
                break;
            }
            for (change, merged) in settled.iter() {
                self.settle(page, change, merged, before, put_together);
            }
        }
        // Both places may lie in one superblock, which must not look empty in between.
        let old = self.map.directory(page);
        self.map.set_directory(page, Some(at));
        self.superblocks.add_ref(at);
        if let Some(old) = old {
            let sb = self.superblocks.of(old);
            self.superblocks.drop_ref(old);
            self.discard_if_empty(sb);
        }
        self.changes.written(page);
        self.meta.pages_under_way -= 1;
        (self.durable.refs.len() - refs_before) as u32
    }

    /// The map page in flash, which was put together at `before` until now, says `merged` of a change.
    #[inline]
    fn settle(&mut self, page: u32, change: Change, merged: Entry, before: u32, put_together: u32) {
        // The log counts references into superblocks that have been given up as well: recovery may not know that.
        if let Mapping::Flash(ppn) = change.persisted.mapping() {
            let sb = self.superblocks.of(ppn);
            if self.superblocks.get(sb).opened_at <= before {
                self.durable.refs.push((sb, false));
            }
            self.superblocks.drop_written_ref(ppn, before);
            self.discard_if_empty(sb);
        }
        if let Mapping::Flash(ppn) = merged.mapping() {
            let sb = self.superblocks.of(ppn);
            if self.superblocks.get(sb).opened_at <= put_together {
                self.durable.refs.push((sb, true));
            }
        }
        let entry = self.flash_entry(change.lpn);
        if entry.clean() == merged {
            // The reference that the change held is the map page's from now on.
            if merged.mapping().flash().is_some() {
                self.changes.names_slice(false);
            }
            self.set_flash_entry(change.lpn, entry, merged);
        } else {
            self.changes.add(page, change.lpn, merged);
            if let Mapping::Flash(ppn) = merged.mapping() {
                self.superblocks.add_written_ref(ppn, put_together);
            }
        }
    }

    /// Whoever waits for the journal goes on.
    fn journal_moved_on(&mut self, now: Ns) {
        if self.journal.is_durable(self.generations_mark) {
            self.generations_durable = self.generations_named;
        }
        let mut i = 0;
        while i < self.journal_waiters.len() {
            let (tag, mark) = self.journal_waiters[i];
            if self.journal.is_durable(mark) {
                self.journal_waiters.swap_remove(i);
                self.sync_part_done(now, tag);
            } else {
                i += 1;
            }
        }
    }

    /// Begins or goes on with a checkpoint.
    pub(crate) fn step_checkpoint(&mut self, now: Ns) {
        let waits = self.buffer_is_lent && self.changes.is_over_full() && !self.checkpoint.first;
        self.checkpoint.due |= self.order_is_long();
        let checkpoint = &mut self.checkpoint;
        if checkpoint.step == Step::Idle
            && !waits
            && checkpoint.parts_left == 0
            && (checkpoint.due || checkpoint.units >= self.config.ftl.checkpoint_after_units)
        {
            checkpoint.step = Step::Quiet;
            checkpoint.due = false;
        }
        let quiet = self.data_programs == 0 && self.meta.in_flight == 0;
        if self.checkpoint.step == Step::Quiet && (quiet || self.config.ftl.without.checkpoint_order) {
            if self.superblocks.open_of(Stream::Meta).is_none() {
                // After recovery: the checkpoint itself names the superblock that it goes to.
                self.ticks += 1;
                if self.superblocks.open(Stream::Meta, self.ticks).is_err() {
                    return;
                }
            }
            let snapshot = self.put_checkpoint_together();
            let slots = snapshot.slots;
            self.durable.begin(snapshot);
            self.checkpoint.step = Step::Parts;
            self.checkpoint.parts_left = slots;
            if self.config.ftl.without.checkpoint_order {
                self.checkpoint.step = Step::Anchor;
                self.checkpoint.anchor_wanted = true;
            }
            self.checkpoint.units = 0;
            self.checkpoint.age += 1;
            self.back.stats.checkpoints += 1;
            for _ in 0..slots {
                self.meta.queue.push_front(Part::Checkpoint);
            }
            return self.pump(now);
        }
        if self.checkpoint.anchor_wanted && self.checkpoint.anchor_erasing == 0 {
            self.checkpoint.anchor_wanted = false;
            let g = &self.config.geometry;
            let ppn = Ppn(self.checkpoint.anchor % (ANCHORS * g.units_per_superblock()) * g.slices_per_unit());
            self.back.stats.programs += 1;
            self.begin_flash(now, Op::new(Job::AnchorProgram, ppn));
        }
    }

    /// Tells every change, those on their way to flash included.
    pub(crate) fn each_change(&self, mut each: impl FnMut(Change)) {
        self.changes.each(&mut each);
        for part in self.meta.programs.iter().flatten() {
            if let Part::Map { taken, .. } = part {
                self.changes.each_of(*taken, &mut each);
            }
        }
    }

    /// The device's state of knowledge as of now.
    pub(crate) fn put_checkpoint_together(&self) -> Checkpoint {
        let bytes = self.map.directory_bytes()
            + Superblock::SRAM_BYTES * u64::from(self.config.geometry.superblocks())
            + 8 * u64::from(self.changes.used());
        Checkpoint {
            sequence: self.sequence,
            oldest: self.sequence.min(self.buffer.oldest_sequence().unwrap_or(u32::MAX)),
            ticks: self.ticks,
            generations: self.generations_named,
            journal: self.journal.newest(),
            directory: (0..self.map.pages()).map(|page| self.map.directory(page)).collect(),
            superblocks: self.superblocks.snapshot(),
            changes: None,
            places: self.changes.used(),
            trims: self.changes.trims().collect(),
            slots: bytes.div_ceil(u64::from(self.config.map_page_bytes)).max(1) as u32,
        }
    }

    /// The anchor of a checkpoint has been programmed: from now on recovery begins there.
    pub(crate) fn anchor_programmed(&mut self, now: Ns, id: OpId) {
        self.back.dies.ops_mut().free(id);
        self.durable.commit();
        self.checkpoint.step = Step::Idle;
        self.checkpoint.first = false;
        if self.buffer_is_lent {
            self.buffer_is_lent = self.durable.checkpoint.places > self.changes.limit();
            self.checkpoint.due |= self.buffer_is_lent;
        }
        self.checkpoint.newest = Some(self.checkpoint.anchor);
        self.checkpoint.lost = false;
        self.checkpoint.anchor += 1;
        while let Some(&(age, sb)) = self.meta.pinned.front()
            && age < self.checkpoint.age
        {
            self.meta.pinned.pop_front();
            self.meta.pins[sb as usize] -= 1;
            self.discard_if_empty(sb);
        }
        self.renumber_if_long();
        self.erase_other_anchors(now);
        self.pump(now);
    }

    /// When a superblock of anchors is full, the other one, which holds only what is out of date, is erased. If all anchors
    /// in the full one were torn, by one power cut after the other, it is the full one itself.
    pub(crate) fn erase_other_anchors(&mut self, now: Ns) {
        let units = self.config.geometry.units_per_superblock();
        let checkpoint = &mut self.checkpoint;
        if checkpoint.anchor == 0 || !checkpoint.anchor.is_multiple_of(units) {
            return;
        }
        if checkpoint.newest.is_some_and(|newest| newest < checkpoint.anchor - units) {
            checkpoint.anchor -= units;
        }
        let erased = checkpoint.anchor / units % ANCHORS;
        checkpoint.lost |= checkpoint.newest.is_some_and(|newest| newest / units % ANCHORS == erased);
        checkpoint.anchor_erasing = self.config.geometry.dies();
        self.superblocks.count_anchor_erase(erased);
        self.erase_dies(now, erased);
    }

    /// One die of an anchor superblock has been erased.
    pub(crate) fn anchor_erased(&mut self, now: Ns) {
        self.checkpoint.anchor_erasing -= 1;
        self.step_checkpoint(now);
    }

    /// Whether spare areas need a checkpoint soon, to forget the order of what came before it.
    #[inline]
    pub(crate) fn order_is_long(&self) -> bool {
        self.spares.span(self.sequence) >= self.numbers.span / 8 * 5
    }

    /// The order of spare areas is kept for a span of numbers, and numbers themselves have 32 bits. Long before either
    /// runs out, they are counted anew: what was programmed before the checkpoint needs no order any more.
    fn renumber_if_long(&mut self) {
        // What has left the write buffer since the checkpoint was put together still has to be told from older copies.
        let base = self.durable.checkpoint.oldest.saturating_sub(1);
        if self.spares.span(self.sequence) >= self.numbers.span / 2 {
            self.spares.forget_order(base);
            if self.spares.span(self.sequence) >= self.numbers.span / 2 {
                // A block has been in the buffer for that long. The next checkpoint finds it in flash.
                self.buffer.flush();
            }
        }
        if self.sequence < self.numbers.renumber_at {
            return;
        }
        self.sequence -= base;
        self.buffer.renumber(base);
        self.journal.renumber(base);
        self.meta.renumber(base);
        self.spares.renumber(base);
        self.collector.renumber(base);
        self.superblocks.renumber(base);
        self.durable.renumber(base);
    }

    /// Lets the order of spare areas be forgotten within `span` writes and trims, and numbers be counted anew from
    /// `renumber_at` on, so that tests see it happen. There have been none yet.
    pub fn limit_numbers(&mut self, span: u32, renumber_at: u32) {
        assert!(self.sequence == 0 && span <= Spares::SPAN, "from the beginning, and no more than spare areas hold");
        self.numbers = Numbers { span, renumber_at };
    }

    /// Places a map page for each of `pages` as if it had been written, at no cost in time.
    pub(crate) fn preset_map_pages(&mut self, pages: std::ops::RangeInclusive<u32>) -> Result<(), crate::ftl::NoSpace> {
        let missing: Vec<u32> = pages.filter(|&page| self.map.directory(page).is_none()).collect();
        let slices_each = self.config.map_page_bytes / BLOCK_BYTES;
        let mut places = Vec::new();
        self.superblocks.preset(missing.len() as u32 * slices_each, Stream::Meta, |ppn, slices| {
            places.extend((0..slices / slices_each).map(|i| Ppn(ppn.0 + i * slices_each)));
        })?;
        for (&page, &at) in missing.iter().zip(&places) {
            self.map.set_directory(page, Some(at));
            self.superblocks.add_ref(at);
            self.meta.set_written_at(page, self.ticks);
        }
        Ok(())
    }
}
