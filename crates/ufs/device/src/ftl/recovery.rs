// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts and recovery. A cut leaves what flash holds: data and its spare areas, map pages, the newest checkpoint
//! whose anchor is in flash, and the journal since. Recovery reads, each page paid for:
//!
//! 1. anchors, by bisection of the superblock that was written last, and the checkpoint they lead to;
//! 2. the meta stream since: map pages are known by their spare areas, which also say how references into superblocks
//!    changed; journal parts are read whole;
//! 3. the spare areas of all units programmed since: for each block the highest sequence number wins, and a unit whose
//!    check fails was torn and says nothing;
//! 4. all map pages, if the spare area of one had no room for its changes of references.
//!
//! That is bounded by what is programmed between two checkpoints ([`crate::recovery_time`]). Superblocks that were open
//! go on after what was torn. If what names the next superblock of the meta stream was lost, a new checkpoint comes
//! before everything else, because only its anchor can name one; otherwise it comes soon.

use super::durable::{Held, Logged, Record};
use super::map::Entry;
use super::recovered::Recovered;
use super::recovery_time::{Readers, What, anchor_reads};
use super::space::UNKNOWN_END;
use super::spare_refs::Refs;
use super::{Ftl, Mapping, Paid, Recovery, State, Stream, spare_refs};
use crate::back::Hardware;
use crate::config::CellMode;
use crate::ids::{MapPage, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::Ns;

impl Ftl {
    /// Brings the device back from what flash holds, beginning at `now`, not before the cut. The power may be cut again
    /// before it is ready.
    pub(crate) fn recover(&mut self, now: Ns, hw: &mut impl Hardware) -> Recovery {
        let checkpoint = self.durable.checkpoint.clone();
        let log = std::mem::take(&mut self.durable.log);
        let mut found = Recovered {
            table: checkpoint.superblocks.clone(),
            directory: checkpoint.directory.clone(),
            written_refs: Vec::new(),
            newest: Default::default(),
            changes: Vec::new(),
            trims: Vec::new(),
            stretches: vec![0; self.map.pages() as usize],
            trims_written: vec![0; self.map.pages() as usize],
            sequence: checkpoint.sequence,
            ticks: checkpoint.ticks,
            generations: checkpoint.generations,
            journal: checkpoint.journal,
            boosted_opened: 0,
        };
        let open_then = found.table.iter().filter(|sb| matches!(sb.state, State::Open(_))).count() as u32;
        let boosted = found.table.iter().filter(|sb| sb.state == State::Open(Stream::Boosted)).count() as u32;
        found.boosted_opened = boosted;
        found.written_refs = found.table.iter().map(|sb| i64::from(sb.refs)).collect();
        for change in checkpoint.changes() {
            if let Mapping::Flash(ppn) = change.entry.mapping() {
                found.written_refs[self.space.of(ppn).index()] -= 1;
            }
        }
        let mut recovery = Recovery {
            ready_at: now,
            anchor_reads: anchor_reads(&self.config),
            checkpoint_reads: checkpoint.slots,
            units_read: 0,
            end_reads: 0,
            map_page_reads: 0,
            torn: 0,
            changes: 0,
        };
        let mut readers = Readers::new(&self.config, now);
        readers.find_checkpoint(&recovery);
        let mut opened_since = 0;
        let mut refs_left = self.durable.refs_of_map_pages();
        let mut refs_fit = !self.settings.without.spare_refs;
        for (i, logged) in log.iter().enumerate() {
            let (first, whole) = match logged {
                Logged::Data { first } => {
                    self.find_data(&mut found, *first);
                    (*first, false)
                }
                Logged::Torn { first, spares } => {
                    recovery.torn += 1;
                    recovery.end_reads += 1;
                    if self.settings.without.spare_check {
                        for (i, &(lpn, sequence)) in spares.iter().enumerate() {
                            found.consider(lpn, sequence, Entry::at(Ppn(first.0 + i as u32)));
                        }
                    }
                    (*first, false)
                }
                Logged::Meta { first, parts } => {
                    let held = &log[i + 1..=i + *parts as usize];
                    (*first, held.iter().any(|h| matches!(h, Logged::Part(Held::Journal { .. }))))
                }
                Logged::Part(held) => {
                    if let Held::Map { refs, fits, .. } = held {
                        refs_fit &= fits & spare_refs::fit(&refs_left[..*refs as usize], self.config.map_page_bytes);
                    }
                    opened_since += self.find_meta(&mut found, held, &mut refs_left);
                    continue;
                }
            };
            recovery.units_read += u32::from(!matches!(logged, Logged::Torn { .. }));
            let what = match whole {
                true => What::Part,
                false if self.space.mode_of(first) == CellMode::Slc => What::SlcSpares,
                false => What::Spares,
            };
            readers.read(hw.die_of(first), what);
        }
        // Each superblock that was open is searched until, on each die, a unit turns out not to be programmed.
        let ends = (open_then + opened_since) * self.geometry.dies();
        let slc_ends = found.boosted_opened * self.geometry.dies();
        readers.read_all_dies(slc_ends, What::SlcSpares);
        readers.read_all_dies(ends.saturating_sub(slc_ends), What::Spares);
        recovery.end_reads += ends;
        self.durable.log = log;
        if !refs_fit {
            readers.wait();
            for &ppn in found.directory.iter().flatten() {
                readers.read(hw.die_of(ppn), What::Part);
                recovery.map_page_reads += 1;
            }
            self.count_refs(&mut found);
        }
        found.settle(&checkpoint, &self.map);
        let end = readers.end();
        recovery.ready_at = end;
        self.pin_what_recovery_read();
        self.take_over(found);
        recovery.changes = self.map.changes().used();
        hw.set_busy_until(end);
        self.checkpoint.after_recovery(self.space.open_of(Stream::Meta).is_none());
        self.erase_other_anchors(end, hw);
        hw.stats().recoveries += 1;
        recovery
    }

    /// The power may go again before the next checkpoint is there.
    fn pin_what_recovery_read(&mut self) {
        let units = self.durable.log.iter().filter_map(|logged| match logged {
            Logged::Meta { first, .. } => Some(first),
            _ => None,
        });
        for ppn in units.chain(&self.durable.checkpoint.places) {
            self.meta.pin(0, self.space.of(*ppn));
        }
    }

    /// Counts the references that map pages hold, all of which have been read.
    fn count_refs(&self, found: &mut Recovered) {
        found.written_refs.fill(0);
        for (page, at) in (0..).map(MapPage).zip(&found.directory) {
            let Some(at) = at else { continue };
            found.written_refs[self.space.of(*at).index()] += 1;
            let paid = Paid::by_recovery(page);
            let written_at = self.map.written_at(paid);
            for lpn in self.map.blocks_of(page) {
                if let Mapping::Flash(ppn) = self.map.translate(paid, lpn) {
                    let sb = self.space.of(ppn).index();
                    found.written_refs[sb] += i64::from(found.table[sb].opened_at <= written_at);
                }
            }
        }
    }

    fn find_data(&self, found: &mut Recovered, first: Ppn) {
        for i in 0..self.geometry.slices_per_unit() {
            let ppn = Ppn(first.0 + i);
            found.consider(self.space.spares().lpn(ppn), self.space.spares().sequence(ppn), Entry::at(ppn));
        }
    }

    /// Returns how many superblocks the journal opened. `refs` begins with those of this part.
    fn find_meta(&self, found: &mut Recovered, held: &Held, refs: &mut &[Refs]) -> u32 {
        match held {
            Held::Map { page, at, written_at, sequence, refs: count, .. } => {
                let (own, rest) = refs.split_at(*count as usize);
                *refs = rest;
                for &(sb, gained) in own {
                    found.written_refs[sb.index()] += i64::from(gained);
                }
                if let Some(old) = found.directory[page.index()].replace(*at) {
                    found.written_refs[self.space.of(old).index()] -= 1;
                }
                found.written_refs[self.space.of(*at).index()] += 1;
                found.ticks = found.ticks.max(*written_at);
                found.written(*page, *sequence);
                0
            }
            Held::Next { superblock, opened_at } => {
                found.open(Stream::Meta, *superblock, *opened_at);
                1
            }
            Held::Journal { .. } if self.settings.without.journal => 0,
            Held::Journal { first, records } => {
                for (number, record) in (*first..).zip(records) {
                    found.apply(number, record);
                }
                records.iter().filter(|record| matches!(record, Record::Open { .. })).count() as u32
            }
        }
    }

    fn take_over(&mut self, mut found: Recovered) {
        for (i, sb) in found.table.iter_mut().enumerate() {
            if let (State::Open(stream) | State::Closed(stream), true) =
                (sb.state, self.space.get(SuperblockId(i as u32)).end == UNKNOWN_END)
            {
                self.space.set_end(SuperblockId(i as u32), stream, 0);
            }
            // Each block carries its erase count; and what is programmed where nothing should be is seen when the
            // superblock is opened, and is erased again.
            let seen = *self.space.get(SuperblockId(i as u32));
            sb.erases = seen.erases;
            sb.next_unit = seen.next_unit;
            (sb.end, sb.has_table) = (seen.end, seen.has_table);
            sb.failed |= seen.failed;
            // It may have been erased since.
            if seen.mode == CellMode::Full {
                sb.mode = CellMode::Full;
            }
            let holds_data = matches!(sb.state, State::Open(_) | State::Closed(_));
            sb.refs = if holds_data { found.written_refs[i].max(0) as u32 } else { 0 };
            if sb.state == State::Erased && seen.next_unit > 0 && !matches!(seen.state, State::Erased) {
                sb.state = State::Erasing(0);
                sb.refs = 0;
            }
            // The table of bad blocks tells what was retired since; nothing would come of erasing it again.
            if seen.state == State::Retired && matches!(sb.state, State::Erasing(_)) {
                (sb.state, sb.failed) = (State::Retired, false);
            }
        }
        for (page, at) in (0..).map(MapPage).zip(&found.directory) {
            self.map.set_directory(page, *at);
        }
        self.sequence = found.sequence;
        self.ticks = found.ticks;
        self.space.restore(found.table, found.sequence);
        for change in found.changes {
            for lpn in change.blocks() {
                self.map.relocate(lpn, change.entry);
            }
            if let Mapping::Flash(ppn) = change.entry.mapping() {
                self.space.add_ref(ppn);
            }
        }
        for (page, stretches) in (0..).zip(found.stretches).filter(|&(_, stretches)| stretches > 0) {
            self.map.add_trims(MapPage(page), stretches);
        }
        self.buffer_is_lent = self.map.changes().is_over_full();
        self.generations_named = found.generations;
        self.generations_durable = found.generations;
        if self.gives_out_entries {
            // All that were named may have been given out. Entries can be handed out again as soon as more are.
            self.name_generations();
        }
        for sb in self.space.all() {
            self.discard_if_empty(sb);
        }
    }
}
