// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meta stream: map pages that are written back, the journal, and checkpoints. Its units hold one or several parts,
//! each as long as a map page.
//!
//! *Order.* A superblock is written only after flash names it, so recovery finds every unit. The journal names
//! superblocks of data. The spare areas of the meta stream's last unit in a superblock name its next superblock, so
//! no other record can block that. A checkpoint is put together when no program is in progress: otherwise a slice
//! programmed after it could be older than the checkpoint, or a map page before it, and recovery would take it for
//! newer data. Its anchor is programmed when all its parts are in flash.

use super::Log;
use super::durable::{Held, Logged, Record};
use super::state::{MapPart, Part, Step};
use crate::back::{Hardware, Job, Op};
use crate::ftl::effects::{Effect, Effects};
use crate::ftl::map::{Change, Entry, Map, Mapping, Paid, Settled, Taken};
use crate::ftl::space::{NoSpace, Space, Stream};
use crate::ids::{MapPage, SuperblockId};
use readpath_flash::{OpId, Ppn};
use readpath_kit::{BLOCK_BYTES, Ns};

impl Log {
    /// Begins to write map pages back, when the table of changes fills or a superblock of the map is to be discarded.
    /// With `settles`, any change is a reason.
    pub(crate) fn write_back(
        &mut self,
        now: Ns,
        (space, map): (&mut Space, &mut Map),
        settles: bool,
        hw: &mut impl Hardware,
    ) {
        self.choose_meta_victim(space, map);
        while self.stream.pages_under_way < self.settings().map_write_pages && hw.ops().has_room() {
            let page = if let Some(page) = self.stream.rewrite.pop_front() {
                let lies_in_victim = map.directory(page).is_some_and(|at| Some(space.of(at)) == self.stream.victim);
                if !lies_in_victim || map.changes().is_being_written(page) {
                    continue;
                }
                page
            } else if map.wants_write_back() || (settles && map.has_changes()) {
                let Some(page) = map.worth_writing() else { return };
                page
            } else {
                return;
            };
            map.begin_write(page);
            self.stream.pages_under_way += 1;
            match (map.directory(page), map.missing(page).or_else(|| map.cached(page))) {
                (Some(ppn), None) => {
                    self.stream.loading += 1;
                    hw.stats().write_back_loads += 1;
                    space.begin(now, Op { lpn: page.0, ..Op::new(Job::WriteBackLoad, ppn) }, hw);
                }
                (_, paid) => paid.into_iter().for_each(|paid| self.queue_map_page(map, paid)),
            }
        }
    }

    /// When the map uses all superblocks that it may, chooses the one with the fewest map pages to be discarded.
    fn choose_meta_victim(&mut self, space: &mut Space, map: &Map) {
        if self.stream.victim.is_some() || !space.meta_may_take_at_most(1) {
            return;
        }
        let pins = &self.stream.pins;
        let Some(victim) = space.meta_victim(|sb| pins[sb.index()] == 0) else {
            // The journal and checkpoints hold all candidates until the next checkpoint is written.
            self.checkpoint.due |= space.meta_may_take_at_most(0);
            return;
        };
        if space.is_empty(victim) {
            return self.discard(space, victim);
        }
        self.stream.victim = Some(victim);
        let inside = |&page: &MapPage| map.directory(page).is_some_and(|at| space.of(at) == victim);
        self.stream.rewrite.extend(map.all_pages().filter(inside));
    }

    /// A map page that is to be written back has been read.
    pub(crate) fn write_back_loaded(&mut self, id: OpId, map: &Map, hw: &mut impl Hardware) {
        let op = hw.end(id);
        self.stream.loading -= 1;
        self.queue_map_page(map, Paid::by_load(&op));
    }

    /// Queues a map page, which SRAM holds, for its unit.
    fn queue_map_page(&mut self, map: &Map, paid: Paid) {
        let (page, before) = (paid, map.written_at(paid));
        let part = MapPart { page, before, taken: Taken::NONE, put_together: 0, sequence: 0 };
        self.stream.queue.push_back(Part::Map(part));
    }

    /// Programs units of the meta stream, as far as data is queued and no unit has to wait.
    pub(crate) fn program_meta(
        &mut self,
        now: Ns,
        (space, map): (&mut Space, &mut Map),
        sequence: u32,
        hw: &mut impl Hardware,
    ) {
        const JOURNAL_LIMIT: usize = 512;
        if self.journal.pending() > JOURNAL_LIMIT {
            self.journal.want(self.journal.newest());
        }
        let parts = self.stream.parts_per_unit;
        while self.stream.in_flight < self.geometry().dies() {
            let writes_checkpoint = matches!(self.stream.queue.front(), Some(Part::Checkpoint));
            let only_checkpoint = self.takes_checkpoint_only(space);
            if (self.checkpoint.holds_programs() || only_checkpoint) && !writes_checkpoint {
                return;
            }
            let may_add_journal = !self.stream.journal_under_way && !only_checkpoint;
            let journal = may_add_journal && self.journal.must_write();
            let queued = self.stream.queue.len();
            // With one part to a unit, the journal must not take every unit.
            let journal = journal && (parts > 1 || queued == 0 || !self.stream.journal_came_last);
            let full = queued >= parts;
            // An incomplete unit is programmed when no more parts are being loaded for it.
            if !(full || journal || (queued > 0 && (self.stream.loading == 0 || writes_checkpoint))) {
                return;
            }
            let Some((first, next)) = self.meta_unit(space, sequence) else { return };
            let journal = journal || (queued < parts && may_add_journal && self.journal.pending() > 0);
            self.begin_meta_program(now, (space, map), sequence, (first, journal, next), hw);
        }
    }

    /// Whether the stream takes nothing but parts of a checkpoint: no journal leads to other units, or they could fill
    /// the last superblock before the checkpoint frees one.
    fn takes_checkpoint_only(&self, space: &Space) -> bool {
        self.checkpoint.first || (self.checkpoint.step != Step::Idle && space.meta_may_take_at_most(0))
    }

    /// The next unit of the meta stream. If it is the last of its superblock, also the next superblock, which it has
    /// to name.
    fn meta_unit(&mut self, space: &mut Space, sequence: u32) -> Option<(Ppn, Option<Part>)> {
        space.open_of(Stream::Meta)?;
        if self.stream.next_under_way {
            return None;
        }
        let last = space.units_left(Stream::Meta) == 1;
        if last && space.erased() == 0 {
            return None;
        }
        let first = space.next_unit(Stream::Meta, sequence)?;
        if !last || self.checkpoint.first {
            return Some((first, None));
        }
        self.ticks += 1;
        let opened_at = self.ticks;
        let superblock = space.open(Stream::Meta, opened_at).expect("an erased superblock was seen above");
        self.stream.next_under_way = true;
        Some((first, Some(Part::Next { superblock, opened_at })))
    }

    fn begin_meta_program(
        &mut self,
        now: Ns,
        (space, map): (&Space, &mut Map),
        sequence: u32,
        (first, journal, next): (Ppn, bool, Option<Part>),
        hw: &mut impl Hardware,
    ) {
        let index = match self.stream.programs.iter().position(Vec::is_empty) {
            Some(index) => index,
            None => {
                self.stream.programs.push(Vec::new());
                self.stream.programs.len() - 1
            }
        };
        let mut parts = std::mem::take(&mut self.stream.programs[index]);
        let sb = space.of(first);
        if journal {
            self.stream.journal_under_way = true;
            parts.push(self.journal_part(sb, hw));
        }
        // Before the first anchor no record leads to this superblock. A map page in the unit of the checkpoint's last
        // part would be lost if the checkpoint is, although older versions were discarded for it.
        let first_only = self.checkpoint.first;
        while parts.len() < self.stream.parts_per_unit
            && self.stream.queue.front().is_some_and(|part| !first_only || matches!(part, Part::Checkpoint))
            && let Some(part) = self.stream.queue.pop_front()
        {
            let part = match part {
                Part::Map(part) => {
                    hw.stats().map_writes += 1;
                    // Pinned, because its spare area holds the changes of references since the checkpoint.
                    self.stream.pin(self.checkpoint.age, sb);
                    self.put_together(map, part, sequence)
                }
                part => {
                    self.stream.pin(self.checkpoint.age, sb);
                    hw.stats().checkpoint_writes += 1;
                    part
                }
            };
            parts.push(part);
        }
        while journal && parts.len() < self.stream.parts_per_unit && self.journal.pending() > 0 {
            parts.push(self.journal_part(sb, hw));
        }
        if next.is_some() {
            self.stream.pin(self.checkpoint.age, sb);
        }
        parts.extend(next);
        self.stream.programs[index] = parts;
        self.stream.in_flight += 1;
        self.stream.journal_came_last = journal;
        hw.stats().meta_programs += 1;
        self.checkpoint.units += 1;
        space.program(now, Op { index: index as u32, ..Op::new(Job::MetaProgram, first) }, hw);
    }

    /// A part of the journal, to be programmed in `sb`, with as many of the oldest records as fit.
    fn journal_part(&mut self, sb: SuperblockId, hw: &mut impl Hardware) -> Part {
        let (records, up_to) = self.journal.take((self.config.map_page_bytes / Record::BYTES) as usize);
        self.stream.pin(self.checkpoint.age, sb);
        hw.stats().journal_writes += 1;
        Part::Journal { records, up_to }
    }

    /// A map page as it is now, to be programmed.
    fn put_together(&mut self, map: &mut Map, part: MapPart, sequence: u32) -> Part {
        self.ticks += 1;
        Part::Map(MapPart { taken: map.put_together(part.page), put_together: self.ticks, sequence, ..part })
    }

    /// A unit of the meta stream has been programmed.
    pub(crate) fn meta_programmed(
        &mut self,
        id: OpId,
        (space, map): (&mut Space, &mut Map),
        effects: &mut Effects,
        hw: &mut impl Hardware,
    ) {
        let op = hw.end(id);
        space.program_ended(op.ppn);
        self.stream.in_flight -= 1;
        let mut parts = std::mem::take(&mut self.stream.programs[op.index as usize]);
        let unit = self.durable.log.len();
        self.durable.log.push(Logged::Meta { first: op.ppn, parts: 0 });
        let mut at = op.ppn;
        let mut goes_on = None;
        for part in parts.drain(..) {
            match part {
                Part::Map(part) => {
                    let refs = self.map_page_written(space, map, &part, at);
                    let (refs, fits) = self.export_map(map, &part, at, refs);
                    effects.push(Effect::MapPageWritten(part.page));
                    let MapPart { page, put_together, sequence, .. } = part;
                    let held = Held::Map { page: page.page(), at, written_at: put_together, sequence, refs, fits };
                    self.durable.log.push(Logged::Part(held));
                }
                Part::Journal { records, up_to } => {
                    self.stream.journal_under_way = false;
                    self.journal.written(up_to);
                    let first = up_to + 1 - records.len() as u64;
                    self.export_journal(at, first, &records);
                    let held = Held::Journal { first, records };
                    self.durable.log.push(Logged::Part(held));
                }
                Part::Next { superblock, opened_at } => {
                    self.stream.next_under_way = false;
                    goes_on = Some((superblock, opened_at));
                    self.durable.log.push(Logged::Part(Held::Next { superblock, opened_at }));
                }
                Part::Checkpoint => {
                    let number = self.durable.place_part(at);
                    self.export_part(number, at);
                    self.checkpoint.parts_left -= 1;
                    if self.checkpoint.parts_left == 0 && self.checkpoint.step == Step::Parts {
                        self.checkpoint.step = Step::Anchor;
                        self.checkpoint.anchor_wanted = true;
                    }
                }
            }
            at = Ppn(at.0 + self.config.map_page_bytes / BLOCK_BYTES);
        }
        self.stream.programs[op.index as usize] = parts;
        self.export_meta_unit(goes_on, hw);
        match self.durable.log.len() - unit - 1 {
            // Parts of a checkpoint are not logged: its anchor names them.
            0 => self.durable.log.truncate(unit),
            parts => self.durable.log[unit] = Logged::Meta { first: op.ppn, parts: parts as u32 },
        }
        self.discard_if_empty(space, space.of(op.ppn));
        self.journal_moved_on(effects);
    }

    /// Settles the changes of a map page that has reached flash, except those that changed again. Returns how many
    /// references changed.
    fn map_page_written(&mut self, space: &mut Space, map: &mut Map, part: &MapPart, at: Ppn) -> u32 {
        let refs_before = self.durable.refs.len();
        let mut left = part.taken;
        loop {
            let settled = map.next_merged(&mut left);
            if settled.is_empty() {
                break;
            }
            for (change, merged) in settled.iter() {
                self.settle(space, map, part, (change, merged));
            }
        }
        // Added first: both places may lie in one superblock, which must not look empty in between.
        space.add_ref(at);
        if let Some(old) = map.written(part.page.page(), at, part.put_together) {
            let sb = space.of(old);
            space.drop_ref(old);
            self.discard_if_empty(space, sb);
        }
        self.stream.pages_under_way -= 1;
        (self.durable.refs.len() - refs_before) as u32
    }

    /// Settles a change: the map page in flash, whose version before was put together at `before`, now says `merged`.
    #[inline]
    fn settle(
        &mut self,
        space: &mut Space,
        map: &mut Map,
        &MapPart { page, before, put_together, .. }: &MapPart,
        (change, merged): (Change, Entry),
    ) {
        // The log also counts references into discarded superblocks: recovery may not know that they are discarded.
        if let Mapping::Flash(ppn) = change.persisted.mapping() {
            let sb = space.of(ppn);
            if space.get(sb).opened_at <= before {
                self.durable.note_ref(sb, false);
            }
            space.drop_written_ref(ppn, before);
            self.discard_if_empty(space, sb);
        }
        if let Mapping::Flash(ppn) = merged.mapping() {
            let sb = space.of(ppn);
            if space.get(sb).opened_at <= put_together {
                self.durable.note_ref(sb, true);
            }
        }
        match map.settle(page.page(), change, merged) {
            // The reference of the change becomes the map page's.
            Settled::Clean(old) => self.durable.note_changed(change.lpn, old),
            Settled::Stays => {
                if let Mapping::Flash(ppn) = merged.mapping() {
                    space.add_written_ref(ppn, put_together);
                }
            }
        }
    }

    /// Places a map page for each of `pages` as if it had been written, in no time.
    pub(crate) fn preset_map_pages(
        &mut self,
        (space, map): (&mut Space, &mut Map),
        pages: std::ops::RangeInclusive<u32>,
    ) -> Result<(), NoSpace> {
        let missing: Vec<MapPage> = pages.map(MapPage).filter(|&page| map.directory(page).is_none()).collect();
        let slices_each = self.config.map_page_bytes / BLOCK_BYTES;
        let mut places = Vec::new();
        space.preset(missing.len() as u32 * slices_each, Stream::Meta, |ppn, slices| {
            places.extend((0..slices / slices_each).map(|i| Ppn(ppn.0 + i * slices_each)));
        })?;
        for (&page, &at) in missing.iter().zip(&places) {
            map.place_page(page, at, self.ticks);
            space.add_ref(at);
        }
        Ok(())
    }
}
