// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meta stream: map pages that are written back, the journal, and checkpoints. Its units hold one or several parts,
//! each as long as a map page.
//!
//! *Order.* A superblock is written only after flash names it, so recovery finds every unit. The journal names those of
//! data; the next one of the meta stream stands in the spare areas of the last unit of the one before it, where no
//! other record can be in its way. A checkpoint is put together when no program is in progress: otherwise a slice
//! programmed after it could be older than what the checkpoint, or a map page before it, already says, and recovery
//! would take it for news. Its anchor is programmed when all its parts are in flash.

use super::{Part, Step};
use crate::back::{Hardware, Job, Op};
use crate::ftl::durable::{Held, Logged, Record};
use crate::ftl::map::{Change, Entry, Settled, Taken};
use crate::ftl::{Effect, Ftl, Mapping, Paid, Stream};
use crate::ids::{MapPage, SuperblockId};
use readpath_flash::{OpId, Ppn};
use readpath_kit::{BLOCK_BYTES, Ns};

impl Ftl {
    /// Begins to write map pages back, when the table of changes fills or a superblock of the map is to be given up.
    pub(in crate::ftl) fn write_back(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.choose_meta_victim();
        while self.meta.pages_under_way < self.settings.map_write_pages && hw.ops().has_room() {
            let page = if let Some(page) = self.meta.rewrite.pop_front() {
                let lies_in_victim =
                    self.map.directory(page).is_some_and(|at| Some(self.space.of(at)) == self.meta.victim);
                if !lies_in_victim || self.map.changes().is_being_written(page) {
                    continue;
                }
                page
            } else if self.map.wants_write_back() || (self.settles_changes && self.map.has_changes()) {
                let Some(page) = self.map.worth_writing() else { return };
                page
            } else {
                return;
            };
            self.map.begin_write(page);
            self.meta.pages_under_way += 1;
            match (self.map.directory(page), self.map.missing(page).or_else(|| self.map.cached(page))) {
                (Some(ppn), None) => {
                    self.meta.loading += 1;
                    hw.stats().write_back_loads += 1;
                    self.space.begin(now, Op { lpn: page.0, ..Op::new(Job::WriteBackLoad, ppn) }, hw);
                }
                (_, paid) => paid.into_iter().for_each(|paid| self.queue_map_page(paid)),
            }
        }
    }

    /// When the map takes all superblocks that it may, the one with the fewest map pages is to be given up.
    fn choose_meta_victim(&mut self) {
        if self.meta.victim.is_some() || !self.space.meta_may_take_at_most(1) {
            return;
        }
        let pins = &self.meta.pins;
        let Some(victim) = self.space.meta_victim(|sb| pins[sb.index()] == 0) else {
            // Journal and checkpoints hold them all, until the next checkpoint is there.
            self.checkpoint.due |= self.space.meta_may_take_at_most(0);
            return;
        };
        if self.space.is_empty(victim) {
            return self.discard(victim);
        }
        self.meta.victim = Some(victim);
        let (map, space) = (&self.map, &self.space);
        let inside = |&page: &MapPage| map.directory(page).is_some_and(|at| space.of(at) == victim);
        self.meta.rewrite.extend(map.all_pages().filter(inside));
    }

    /// A map page that is to be written back has been read.
    pub(crate) fn write_back_loaded(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        self.meta.loading -= 1;
        self.queue_map_page(Paid::by_load(&op));
        self.program_meta(now, hw);
    }

    /// A map page that SRAM knows waits for its unit.
    fn queue_map_page(&mut self, paid: Paid) {
        let before = self.map.written_at(paid);
        self.meta.queue.push_back(Part::to_be_put_together(paid, before));
    }

    /// Programs units of the meta stream, as far as there is something to write and nothing to wait for.
    pub(crate) fn program_meta(&mut self, now: Ns, hw: &mut impl Hardware) {
        const JOURNAL_LIMIT: usize = 512;
        if self.journal.pending() > JOURNAL_LIMIT {
            self.journal.want(self.journal.newest());
        }
        let parts = self.meta.parts_per_unit;
        while self.meta.in_flight < self.geometry.dies() {
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
            self.begin_meta_program(now, first, journal, next, hw);
        }
    }

    fn may_add_journal(&self) -> bool {
        self.journal.pending() > 0 && !self.meta.journal_under_way && !self.checkpoint.first
    }

    /// The next unit of the meta stream; and if it is the last of its superblock, the next one, which it has to name.
    fn meta_unit(&mut self) -> Option<(Ppn, Option<Part>)> {
        self.space.open_of(Stream::Meta)?;
        if self.meta.next_under_way {
            return None;
        }
        let last = self.space.units_left(Stream::Meta) == 1;
        if last && self.space.erased() == 0 {
            return None;
        }
        let first = self.space.next_unit(Stream::Meta, self.sequence)?;
        if !last || self.checkpoint.first {
            return Some((first, None));
        }
        self.ticks += 1;
        let opened_at = self.ticks;
        let superblock = self.space.open(Stream::Meta, opened_at).expect("an erased superblock was seen above");
        self.meta.next_under_way = true;
        Some((first, Some(Part::Next { superblock, opened_at })))
    }

    fn begin_meta_program(&mut self, now: Ns, first: Ppn, journal: bool, next: Option<Part>, hw: &mut impl Hardware) {
        let index = match self.meta.programs.iter().position(Vec::is_empty) {
            Some(index) => index,
            None => {
                self.meta.programs.push(Vec::new());
                self.meta.programs.len() - 1
            }
        };
        let mut parts = std::mem::take(&mut self.meta.programs[index]);
        let sb = self.space.of(first);
        if journal {
            self.meta.journal_under_way = true;
            parts.push(self.journal_part(sb, hw));
        }
        // Before the first anchor nothing leads to this superblock: a map page beside the checkpoint's last part would
        // be lost with the checkpoint, and with it what was given up for its sake.
        let first_only = self.checkpoint.first;
        while parts.len() < self.meta.parts_per_unit
            && self.meta.queue.front().is_some_and(|part| !first_only || matches!(part, Part::Checkpoint))
            && let Some(part) = self.meta.queue.pop_front()
        {
            let part = match part {
                Part::Map { page, before, .. } => {
                    hw.stats().map_writes += 1;
                    // Its spare area says how references changed since the checkpoint.
                    self.meta.pin(self.checkpoint.age, sb);
                    self.put_together(page, before)
                }
                part => {
                    self.meta.pin(self.checkpoint.age, sb);
                    hw.stats().checkpoint_writes += 1;
                    part
                }
            };
            parts.push(part);
        }
        while journal && parts.len() < self.meta.parts_per_unit && self.journal.pending() > 0 {
            parts.push(self.journal_part(sb, hw));
        }
        if next.is_some() {
            self.meta.pin(self.checkpoint.age, sb);
        }
        parts.extend(next);
        self.meta.programs[index] = parts;
        self.meta.in_flight += 1;
        self.meta.journal_came_last = journal;
        hw.stats().programs += 1;
        self.checkpoint.count_unit();
        self.space.begin(now, Op { index: index as u32, ..Op::new(Job::MetaProgram, first) }, hw);
    }

    /// A part of the journal, to be programmed in `sb`: as many of the oldest records as it holds.
    fn journal_part(&mut self, sb: SuperblockId, hw: &mut impl Hardware) -> Part {
        let (records, up_to) = self.journal.take((self.config.map_page_bytes / Record::BYTES) as usize);
        self.meta.pin(self.checkpoint.age, sb);
        hw.stats().journal_writes += 1;
        Part::Journal { records, up_to }
    }

    /// A map page as it is now, to be programmed.
    fn put_together(&mut self, page: Paid, before: u32) -> Part {
        self.ticks += 1;
        let taken = self.map.put_together(page);
        Part::Map { page, before, taken, put_together: self.ticks, sequence: self.sequence }
    }

    /// A unit of the meta stream has been programmed.
    pub(crate) fn meta_programmed(&mut self, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        self.space.program_ended(op.ppn);
        self.meta.in_flight -= 1;
        let mut parts = std::mem::take(&mut self.meta.programs[op.index as usize]);
        let unit = self.durable.log.len();
        self.durable.log.push(Logged::Meta { first: op.ppn, parts: 0 });
        let mut at = op.ppn;
        let mut goes_on = None;
        for part in parts.drain(..) {
            match part {
                Part::Map { page, before, taken, put_together, sequence } => {
                    let refs = self.map_page_written(page.page(), taken, before, put_together, at);
                    let (refs, fits) = self.tell_map(page.page(), (at, put_together), sequence, refs);
                    self.effects.push_back(Effect::MapPageWritten(page));
                    let held = Held::Map { page: page.page(), at, written_at: put_together, sequence, refs, fits };
                    self.durable.log.push(Logged::Part(held));
                }
                Part::Journal { records, up_to } => {
                    self.meta.journal_under_way = false;
                    self.journal.written(up_to);
                    let first = up_to + 1 - records.len() as u64;
                    self.tell_journal(at, first, &records);
                    let held = Held::Journal { first, records };
                    self.durable.log.push(Logged::Part(held));
                }
                Part::Next { superblock, opened_at } => {
                    self.meta.next_under_way = false;
                    goes_on = Some((superblock, opened_at));
                    self.durable.log.push(Logged::Part(Held::Next { superblock, opened_at }));
                }
                Part::Checkpoint => {
                    let number = self.durable.place_part(at);
                    self.tell_part(number, at);
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
        self.tell_meta_unit(goes_on, hw);
        match self.durable.log.len() - unit - 1 {
            // Parts of a checkpoint: only its anchor leads to them.
            0 => self.durable.log.truncate(unit),
            parts => self.durable.log[unit] = Logged::Meta { first: op.ppn, parts: parts as u32 },
        }
        self.discard_if_empty(self.space.of(op.ppn));
        self.journal_moved_on();
    }

    /// A map page is in flash: its changes are settled, unless there were more meanwhile. Returns how many references
    /// that changed.
    fn map_page_written(&mut self, page: MapPage, taken: Taken, before: u32, put_together: u32, at: Ppn) -> u32 {
        let refs_before = self.durable.refs();
        let mut left = taken;
        loop {
            let settled = self.map.next_merged(&mut left);
            if settled.is_empty() {
                break;
            }
            for (change, merged) in settled.iter() {
                self.settle(page, change, merged, before, put_together);
            }
        }
        // Both places may lie in one superblock, which must not look empty in between.
        self.space.add_ref(at);
        if let Some(old) = self.map.written(page, at, put_together) {
            let sb = self.space.of(old);
            self.space.drop_ref(old);
            self.discard_if_empty(sb);
        }
        self.meta.pages_under_way -= 1;
        (self.durable.refs() - refs_before) as u32
    }

    /// The map page in flash, which was put together at `before` until now, says `merged` of a change.
    #[inline]
    pub(crate) fn settle(&mut self, page: MapPage, change: Change, merged: Entry, before: u32, put_together: u32) {
        // The log counts references into superblocks that have been given up as well: recovery may not know that.
        if let Mapping::Flash(ppn) = change.persisted.mapping() {
            let sb = self.space.of(ppn);
            if self.space.get(sb).opened_at <= before {
                self.durable.note_ref(sb, false);
            }
            self.space.drop_written_ref(ppn, before);
            self.discard_if_empty(sb);
        }
        if let Mapping::Flash(ppn) = merged.mapping() {
            let sb = self.space.of(ppn);
            if self.space.get(sb).opened_at <= put_together {
                self.durable.note_ref(sb, true);
            }
        }
        match self.map.settle(page, change, merged) {
            // The reference that the change held is the map page's from now on.
            Settled::Clean(old) => self.durable.note_changed(change.lpn, old),
            Settled::Stays => {
                if let Mapping::Flash(ppn) = merged.mapping() {
                    self.space.add_written_ref(ppn, put_together);
                }
            }
        }
    }

    /// Whoever waits for the journal goes on.
    fn journal_moved_on(&mut self) {
        if self.journal.is_durable(self.generations_mark) {
            self.generations_durable = self.generations_named;
        }
        let mut i = 0;
        while i < self.journal_waiters.len() {
            let (tag, mark) = self.journal_waiters[i];
            if self.journal.is_durable(mark) {
                self.journal_waiters.swap_remove(i);
                self.effects.push_back(Effect::PartInFlash(tag));
            } else {
                i += 1;
            }
        }
    }

    /// Places a map page for each of `pages` as if it had been written, at no cost in time.
    pub(in crate::ftl) fn preset_map_pages(
        &mut self,
        pages: std::ops::RangeInclusive<u32>,
    ) -> Result<(), crate::ftl::NoSpace> {
        let missing: Vec<MapPage> = pages.map(MapPage).filter(|&page| self.map.directory(page).is_none()).collect();
        let slices_each = self.config.map_page_bytes / BLOCK_BYTES;
        let mut places = Vec::new();
        self.space.preset(missing.len() as u32 * slices_each, Stream::Meta, |ppn, slices| {
            places.extend((0..slices / slices_each).map(|i| Ppn(ppn.0 + i * slices_each)));
        })?;
        for (&page, &at) in missing.iter().zip(&places) {
            self.map.place_page(page, at, self.ticks);
            self.space.add_ref(at);
        }
        Ok(())
    }
}
