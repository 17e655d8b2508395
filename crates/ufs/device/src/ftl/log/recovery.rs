// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts and recovery. A cut leaves what flash holds: data and its spare areas, map pages, the newest checkpoint
//! whose anchor is in flash, and the journal since. Recovery reads, paying for each page:
//!
//! 1. anchors, by bisection of the superblock that was written last, and the checkpoint of the newest;
//! 2. the meta stream since: map pages are known by their spare areas, which also say how references into superblocks
//!    changed; journal parts are read whole;
//! 3. the spare areas of all units programmed since: for each block the highest sequence number wins, and a unit
//!    whose check fails was torn and does not count;
//! 4. all map pages, if the changes of references of one did not fit into its spare area.
//!
//! The reads are bounded by what is programmed between two checkpoints ([`super::recovery_time`]). Superblocks that
//! were open continue behind torn units. If the name of the meta stream's next superblock was lost, a new checkpoint
//! comes before everything else, because only its anchor can name one; otherwise it comes soon.

use super::durable::{Checkpoint, Held, Logged, Record};
use super::recovered::{Recovered, Trimmed};
use super::recovery_time::{Readers, What, anchor_reads};
use super::spare_refs::Refs;
use super::state::MetaStream;
use super::{Log, Recovery, spare_refs};
use crate::back::Hardware;
use crate::config::CellMode;
use crate::ftl::map::stretch::{self, Stretch};
use crate::ftl::map::{Entry, Map, Mapping, Paid, Taken};
use crate::ftl::space::{Space, State, Stream, UNKNOWN_END};
use crate::ftl::write::Write;
use crate::ftl::zones::{Found, Zones};
use crate::ids::{Lpn, MapPage, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::Ns;

/// Takes what was found of zones, and finds their write pointers.
fn find_zones(space: &Space, map: &Map, zones: &mut Zones, checkpoint: &Checkpoint, found: &mut Recovered) {
    let newest = found.newest.split_off(&map.zones_from());
    let of_zones = |trim: &mut Trimmed| map.is_zoned(trim.first);
    let trims: Vec<_> =
        found.trims.extract_if(.., of_zones).map(|trim| (trim.first, trim.end, trim.sequence)).collect();
    let since = Found {
        sequence: checkpoint.sequence,
        newest: &newest,
        trims: &trims,
        finished: &found.finished,
        table: &found.table,
    };
    found.rests = zones.recover(&checkpoint.zones, &since, space);
}

impl Log {
    /// Notes that a power cut has torn the program at `first`, whose spare areas may or may not hold `spares`.
    pub(crate) fn tear(&mut self, first: Ppn, spares: Vec<(Option<Lpn>, u32)>) {
        self.durable.log.push(Logged::Torn { first, spares });
    }

    /// The changes of map pages that are being programmed.
    pub(crate) fn changes_on_their_way(&self) -> impl Iterator<Item = Taken> {
        self.stream.taken()
    }

    /// Drops what was in SRAM; [`Log::recall_changes`] must have been called before.
    pub(crate) fn power_cut(&mut self, map: &mut Map) {
        self.stream = MetaStream::new(&self.config);
        self.journal = self.journal.after_power_cut(self.durable.checkpoint.journal);
        self.announced = [0; Stream::COUNT];
        self.waiters.clear();
        if self.checkpoint.is_incomplete() || self.checkpoint.lost {
            // The parts of the checkpoint are missing, or nothing points to them.
            self.durable.checkpoint.directory.fill(None);
            self.durable.checkpoint.changes = Some(Vec::new());
            self.durable.checkpoint.trims.clear();
            map.lose_pages();
        }
        self.checkpoint.power_cut();
        self.durable.pending = None;
        self.durable.take_changed();
    }

    /// Makes the present state, of a preconditioned device, the checkpoint that power cuts return to.
    pub(crate) fn begin_with(&mut self, space: &Space, map: &Map, write: &Write, zones: &Zones) {
        let checkpoint = self.put_checkpoint_together(space, map, write, zones);
        self.durable.checkpoint = Checkpoint { changes: Some(self.changes_now(map)), ..checkpoint };
    }

    /// Computes the changes in the newest checkpoint from the present ones and the old entries noted since.
    pub(crate) fn recall_changes(&mut self, map: &Map) {
        if self.durable.checkpoint.changes.is_some() {
            return;
        }
        // The first noted entry of a block is its entry in the checkpoint.
        let changed = self.durable.take_changed();
        let mut then: Vec<(Lpn, Entry)> =
            changed.into_iter().flat_map(|was| was.blocks().map(move |lpn| (lpn, was.entry))).collect();
        then.sort_by_key(|&(lpn, _)| lpn);
        then.dedup_by_key(|&mut (lpn, _)| lpn);
        let mut changes = Vec::new();
        self.each_change(map, |change| {
            if then.binary_search_by_key(&change.lpn, |&(lpn, _)| lpn).is_err() {
                stretch::push(&mut changes, Stretch::of(change.lpn, map.flash_entry(change.lpn).clean()));
            }
        });
        for (lpn, entry) in then.into_iter().filter(|(_, entry)| entry.is_recent()) {
            stretch::push(&mut changes, Stretch::of(lpn, entry.clean()));
        }
        self.durable.checkpoint.changes = Some(stretch::in_order(changes));
    }

    /// Recovers the device from flash, beginning at `now`, not before the cut. The power may be cut again before the
    /// device is ready. Returns what recovery did, and the newest sequence number.
    pub(crate) fn recover(
        &mut self,
        now: Ns,
        space: &mut Space,
        (map, zones): (&mut Map, &mut Zones),
        hw: &mut impl Hardware,
    ) -> (Recovery, u32) {
        let checkpoint = self.durable.checkpoint.clone();
        let log = std::mem::take(&mut self.durable.log);
        let mut found = Recovered {
            table: checkpoint.superblocks.clone(),
            directory: checkpoint.directory.clone(),
            stretches: vec![0; map.pages() as usize],
            trims_written: vec![0; map.pages() as usize],
            sequence: checkpoint.sequence,
            ticks: checkpoint.ticks,
            generations: checkpoint.generations,
            journal: checkpoint.journal,
            own_cells: self.config.own_cells(),
            ..Recovered::default()
        };
        let open = found.table.iter().filter(|sb| matches!(sb.state, State::Open(_)));
        open.for_each(|sb| found.opened_in[sb.mode.index()] += 1);
        let open_then: u32 = found.opened_in.iter().sum();
        found.written_refs = found.table.iter().map(|sb| i64::from(sb.refs)).collect();
        for change in checkpoint.changes() {
            if let Mapping::Flash(ppn) = change.entry.mapping() {
                found.written_refs[space.of(ppn).index()] -= 1;
            }
        }
        for &(_, ppn) in &checkpoint.zones.rests {
            found.written_refs[space.of(ppn).index()] -= 1;
        }
        let mut recovery = Recovery {
            ready_at: now,
            anchor_reads: anchor_reads(&self.config),
            checkpoint_reads: checkpoint.slots,
            ..Recovery::default()
        };
        let mut readers = Readers::new(&self.config, now);
        readers.find_checkpoint(&recovery);
        let mut opened_since = 0;
        let mut refs_left = &self.durable.refs[..];
        let mut refs_fit = !self.settings().without.spare_refs;
        for (i, logged) in log.iter().enumerate() {
            let (first, whole) = match logged {
                Logged::Data { first } => {
                    self.find_data(space, &mut found, *first);
                    (*first, false)
                }
                Logged::Torn { first, spares } => {
                    recovery.torn += 1;
                    recovery.end_reads += 1;
                    if self.settings().without.spare_check {
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
                    opened_since += self.find_meta(space, &mut found, held, &mut refs_left);
                    continue;
                }
            };
            recovery.units_read += u32::from(!matches!(logged, Logged::Torn { .. }));
            let what = match whole {
                true => What::Part,
                false => What::Spares(space.mode_of(first)),
            };
            readers.read(hw.die_of(first), what);
        }
        // Each superblock that was open is searched until each die shows a unit that is not programmed.
        let ends = (open_then + opened_since) * self.geometry().dies();
        let ends_in = found.opened_in.map(|opened| opened * self.geometry().dies());
        for mode in [CellMode::Cache, CellMode::SlcMap] {
            readers.read_all_dies(ends_in[mode.index()], What::Spares(mode));
        }
        let others = ends_in[CellMode::Cache.index()] + ends_in[CellMode::SlcMap.index()];
        readers.read_all_dies(ends.saturating_sub(others), What::Spares(CellMode::Full));
        recovery.end_reads += ends;
        self.durable.log = log;
        if !refs_fit {
            readers.wait();
            for &ppn in found.directory.iter().flatten() {
                readers.read(hw.die_of(ppn), What::Part);
                recovery.map_page_reads += 1;
            }
            map.all_pages().for_each(|page| map.will_be_read(page));
            self.count_refs(space, map, &mut found);
        }
        find_zones(space, map, zones, &checkpoint, &mut found);
        found.settle(&checkpoint, map);
        let end = readers.end();
        recovery.ready_at = end;
        self.pin_what_recovery_read(space);
        let sequence = found.sequence;
        self.take_over(space, (map, zones), found);
        recovery.changes = map.changes().used();
        hw.set_busy_until(end);
        // A checkpoint is due, and comes before everything else if the meta stream is lost.
        (self.checkpoint.due, self.checkpoint.first) = (true, space.open_of(Stream::Meta).is_none());
        self.erase_other_anchors(end, space, hw);
        hw.stats().recoveries += 1;
        (recovery, sequence)
    }

    /// Pins what recovery read: the power may be cut again before the next checkpoint.
    fn pin_what_recovery_read(&mut self, space: &Space) {
        let units = self.durable.log.iter().filter_map(|logged| match logged {
            Logged::Meta { first, .. } => Some(first),
            _ => None,
        });
        for ppn in units.chain(&self.durable.checkpoint.places) {
            self.stream.pin(0, space.of(*ppn));
        }
    }

    /// Counts the references of map pages, all of which have been read.
    fn count_refs(&self, space: &Space, map: &Map, found: &mut Recovered) {
        found.written_refs.fill(0);
        for (page, at) in (0..).map(MapPage).zip(&found.directory) {
            let Some(at) = at else { continue };
            found.written_refs[space.of(*at).index()] += 1;
            let paid = Paid::by_recovery(page);
            let written_at = map.written_at(paid);
            for lpn in map.blocks_of(page) {
                if let Mapping::Flash(ppn) = map.translate(paid, lpn) {
                    let sb = space.of(ppn).index();
                    found.written_refs[sb] += i64::from(found.table[sb].opened_at <= written_at);
                }
            }
        }
    }

    fn find_data(&self, space: &Space, found: &mut Recovered, first: Ppn) {
        for i in 0..self.geometry().slices_per_unit() {
            let ppn = Ppn(first.0 + i);
            let (lpn, sequence) = (space.spares().lpn(ppn), space.spares().sequence(ppn));
            // A rest may be moved while its whole program begins; that counts then.
            let is_in_program = |lpn| {
                let known = found.newest.get(&lpn).filter(|(newest, _)| *newest >= sequence)?;
                space.stream_in(&found.table, known.1.mapping().flash()?)
            };
            let is_rest = space.stream_in(&found.table, ppn) != Some(Stream::Zone);
            if is_rest && lpn.is_some_and(|lpn| is_in_program(lpn) == Some(Stream::Zone)) {
                continue;
            }
            found.consider(lpn, sequence, Entry::at(ppn));
        }
    }

    /// Applies a part of the meta stream. Returns how many superblocks the journal opened. `refs` begins with the
    /// changes of references of this part.
    fn find_meta(&self, space: &Space, found: &mut Recovered, held: &Held, refs: &mut &[Refs]) -> u32 {
        match held {
            Held::Map { page, at, written_at, sequence, refs: count, .. } => {
                let (own, rest) = refs.split_at(*count as usize);
                *refs = rest;
                for &(sb, gained) in own {
                    found.written_refs[sb.index()] += i64::from(gained);
                }
                if let Some(old) = found.directory[page.index()].replace(*at) {
                    found.written_refs[space.of(old).index()] -= 1;
                }
                found.written_refs[space.of(*at).index()] += 1;
                found.ticks = found.ticks.max(*written_at);
                found.written(*page, *sequence);
                0
            }
            Held::Next { superblock, opened_at } => {
                found.open(Stream::Meta, *superblock, *opened_at);
                1
            }
            Held::Journal { .. } if self.settings().without.journal => 0,
            Held::Journal { first, records } => {
                for (number, record) in (*first..).zip(records) {
                    found.apply(number, record);
                }
                records.iter().filter(|record| matches!(record, Record::Open { .. })).count() as u32
            }
        }
    }

    fn take_over(&mut self, space: &mut Space, (map, zones): (&mut Map, &Zones), mut found: Recovered) {
        for (i, sb) in found.table.iter_mut().enumerate() {
            // It was discarded behind an anchor that the medium lost: recovery needs it until there is another.
            if matches!(sb.state, State::Erasing(_)) && self.stream.pins[i] > 0 {
                sb.state = State::Closed(Stream::Meta);
            }
            if let (State::Open(stream) | State::Closed(stream), true) =
                (sb.state, space.get(SuperblockId(i as u32)).end == UNKNOWN_END)
            {
                if stream == Stream::Zone {
                    space.count_in_programs(SuperblockId(i as u32));
                }
                space.set_end(SuperblockId(i as u32), stream, 0);
            }
            // Each block holds its erase count. Units programmed in a superblock that should be erased are seen when
            // it is opened, and it is erased again.
            let seen = *space.get(SuperblockId(i as u32));
            sb.erases = seen.erases;
            sb.next_unit = seen.next_unit;
            (sb.end, sb.has_table) = (seen.end, seen.has_table);
            sb.failed |= seen.failed;
            // The superblock may have been erased since.
            if seen.mode == CellMode::Full {
                sb.mode = CellMode::Full;
            }
            let holds_data = matches!(sb.state, State::Open(_) | State::Closed(_));
            let is_zone = matches!(sb.state, State::Open(Stream::Zone) | State::Closed(Stream::Zone));
            sb.refs = if holds_data && !is_zone { found.written_refs[i].max(0) as u32 } else { 0 };
            if sb.state == State::Erased && seen.next_unit > 0 && !matches!(seen.state, State::Erased) {
                sb.state = State::Erasing(0);
                sb.refs = 0;
            }
            // The table of bad blocks shows superblocks retired since; erasing them again would fail.
            if seen.state == State::Retired && matches!(sb.state, State::Erasing(_)) {
                (sb.state, sb.failed) = (State::Retired, false);
            }
        }
        for (page, at) in (0..).map(MapPage).zip(&found.directory) {
            map.set_directory(page, *at);
        }
        self.ticks = found.ticks;
        space.restore(found.table, found.sequence);
        for change in found.changes {
            for lpn in change.blocks() {
                map.relocate(lpn, change.entry);
            }
            if let Mapping::Flash(ppn) = change.entry.mapping() {
                space.add_ref(ppn);
            }
        }
        for (lpn, ppn) in found.rests {
            map.set_rest(lpn, Some(ppn));
            space.add_ref(ppn);
        }
        zones.hold(space);
        for (page, stretches) in (0..).zip(found.stretches).filter(|&(_, stretches)| stretches > 0) {
            map.add_trims(MapPage(page), stretches);
        }
        self.generations.recovered(found.generations, &mut self.journal);
        for sb in space.all() {
            self.discard_if_empty(space, sb);
        }
    }
}
