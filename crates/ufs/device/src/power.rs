// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts and recovery. A cut leaves what flash holds: data and its spare areas, map pages, the newest checkpoint whose
//! anchor is in flash, and the journal since. Recovery reads, each page paid for:
//!
//! 1. anchors, by bisection of the superblock that was written last, and the checkpoint they lead to;
//! 2. the meta stream since: map pages are known by their spare areas, journal parts are read whole;
//! 3. the spare areas of all units programmed since: for each block the highest sequence number wins, and a unit whose
//!    check fails was torn and says nothing.
//!
//! That is bounded by what is programmed between two checkpoints ([`crate::recovery_time`]). Superblocks that were open go on after what was torn. If
//! what names the next superblock of the meta stream was lost, a new checkpoint comes before everything else,
//! because only its anchor can name one; otherwise it comes soon.

use crate::back::Job;
use crate::back::Probe;
use crate::back::{MediaMode, MediaOp};
use crate::control::Target;
use crate::device::UfsDevice;
use crate::found::Found;
use crate::ftl::{Entry, Held, Logged, Mapping, Record, State, Stream};
use crate::recovery_time::{Readers, Recovery, What, anchor_reads};
use readpath_flash::{DieSched, Ppn};
use readpath_kit::Ns;

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// The power goes away at `now`. Every program in progress is torn, every erase in progress leaves its blocks undefined, and
    /// SRAM is lost. Until [`UfsDevice::recover`] the device answers nothing.
    pub fn power_cut(&mut self, now: Ns) {
        self.stalls.set(now, None, &mut self.back.stats);
        self.tear_programs();
        self.recall_changes();
        self.forget_changes();
        if let Some(sb) = self.erasing.take() {
            self.back.emit(MediaOp::Erase { first: self.superblocks.first(sb), slices: self.superblocks.slices() });
        }
        self.buffer.clear();
        self.journal = self.journal.after_power_cut();
        self.announced = [0; Stream::COUNT];
        self.journal_waiters.clear();
        if self.checkpoint.is_incomplete() || self.checkpoint.lost {
            // Where its parts should be there is nothing, or nothing leads to them.
            self.durable.checkpoint.directory.fill(None);
            self.durable.checkpoint.changes = Some(Vec::new());
            self.durable.checkpoint.trims.clear();
            (0..self.config.logical_blocks() as u32).for_each(|lpn| self.map.set(lpn, Entry::UNMAPPED));
        }
        self.checkpoint.power_cut();
        self.durable.pending = None;
        self.durable.changed.clear();
        self.data_programs = 0;
        self.changes_reserved = 0;
        self.background = Ns::NEVER;
        self.idle_from = Ns::ZERO;
        self.lately.fill(0);
        self.collector = crate::collect::Collector::new(self.map.pages(), &self.config);
        self.lose_sram();
        self.target = Target::new(&self.config);
        self.target.attention_after_reset();
    }

    /// Programs in progress become torn units.
    fn tear_programs(&mut self) {
        let slices = self.config.geometry.slices_per_unit();
        let programs: Vec<_> = self.back.dies.ops().in_progress().filter(|op| op.job.is_program()).copied().collect();
        for op in programs {
            let mut spares: Vec<(Option<u32>, u32)> = Vec::new();
            match op.job {
                Job::Program => {
                    let mut slot = op.index as u16;
                    while slot != crate::buffer::NO_SLOT {
                        let (lpn, sequence, next) = self.buffer.spare(slot);
                        spares.push((lpn, sequence));
                        slot = next;
                    }
                }
                Job::MoveProgram => {
                    spares.extend(self.collector.spares_of(op.index as u16).map(|(lpn, s)| (Some(lpn), s)));
                }
                _ => {}
            }
            self.durable.log.push(Logged::Torn { first: op.ppn, spares });
            self.back.emit(MediaOp::Torn { first: op.ppn, slices });
        }
    }

    /// Finds out what the newest checkpoint says of changes, from what they are now and what has changed since.
    fn recall_changes(&mut self) {
        if self.durable.checkpoint.changes.is_some() {
            return;
        }
        // The first that is told of a page is what it was then.
        let mut then = std::mem::take(&mut self.durable.changed);
        then.sort_by_key(|&(lpn, _)| lpn);
        then.dedup_by_key(|&mut (lpn, _)| lpn);
        let mut changes = Vec::new();
        self.each_change(|change| {
            if then.binary_search_by_key(&change.lpn, |&(lpn, _)| lpn).is_err() {
                changes.push((change.lpn, self.flash_entry(change.lpn).clean()));
            }
        });
        changes.extend(then.iter().filter(|(_, entry)| entry.is_recent()).map(|&(lpn, entry)| (lpn, entry.clean())));
        self.durable.checkpoint.changes = Some(changes);
    }

    /// The flat table goes back to what map pages in flash say.
    fn forget_changes(&mut self) {
        let held: Vec<(u32, u16)> = self.buffer.held().collect();
        for (lpn, slot) in held {
            if self.map.get(lpn) == Mapping::Buffered(slot) {
                self.map.set(lpn, self.buffer.under(slot).clean());
            }
        }
        let (meta, changes, map) = (&mut self.meta, &mut self.changes, &mut self.map);
        meta.power_cut(&self.config, |taken| {
            changes.each_of(taken, |change| map.set(change.lpn, change.persisted));
        });
        changes.clear(|change| map.set(change.lpn, change.persisted));
    }

    /// Brings the device back from what flash holds, beginning at `now`, not before the cut. The power may be cut again
    /// before it is ready.
    pub fn recover(&mut self, now: Ns) -> Recovery {
        let checkpoint = self.durable.checkpoint.clone();
        let log = std::mem::take(&mut self.durable.log);
        let mut found = Found {
            table: checkpoint.superblocks.clone(),
            directory: checkpoint.directory.clone(),
            written_refs: Vec::new(),
            newest: Default::default(),
            trims: Vec::new(),
            stretches: vec![0; self.map.pages() as usize],
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
        for (_, entry) in checkpoint.changes() {
            if let Mapping::Flash(ppn) = entry.mapping() {
                found.written_refs[self.superblocks.of(ppn) as usize] -= 1;
            }
        }
        let mut recovery = Recovery {
            ready_at: now,
            anchor_reads: anchor_reads(&self.config),
            checkpoint_reads: checkpoint.slots,
            units_read: 0,
            end_reads: 0,
            torn: 0,
            changes: 0,
        };
        let mut readers = Readers::new(&self.config, now);
        readers.find_checkpoint(&recovery);
        let mut opened_since = 0;
        let refs = std::mem::take(&mut self.durable.refs);
        let mut refs_left = refs.as_slice();
        for (i, logged) in log.iter().enumerate() {
            let (first, whole) = match logged {
                Logged::Data { first } => {
                    self.find_data(&mut found, *first);
                    (*first, false)
                }
                Logged::Torn { first, spares } => {
                    recovery.torn += 1;
                    recovery.end_reads += 1;
                    if self.config.ftl.without.spare_check {
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
                    opened_since += self.find_meta(&mut found, held, &mut refs_left);
                    continue;
                }
            };
            recovery.units_read += u32::from(!matches!(logged, Logged::Torn { .. }));
            let what = match whole {
                true => What::Part,
                false if self.superblocks.is_slc(first) => What::SlcSpares,
                false => What::Spares,
            };
            readers.read(self.back.dies.die_of(first), what);
        }
        // Each superblock that was open is searched until, on each die, a unit turns out not to be programmed.
        let ends = (open_then + opened_since) * self.config.geometry.dies();
        let slc_ends = found.boosted_opened * self.config.geometry.dies();
        readers.read_all_dies(slc_ends, What::SlcSpares);
        readers.read_all_dies(ends.saturating_sub(slc_ends), What::Spares);
        recovery.end_reads += ends;
        self.durable.log = log;
        self.durable.refs = refs;
        found.settle(&checkpoint, &self.map);
        let end = readers.end();
        recovery.ready_at = end;
        self.take_over(found);
        recovery.changes = self.changes.used();
        self.set_busy_until(end);
        self.checkpoint.after_recovery(self.superblocks.open_of(Stream::Meta).is_none());
        self.erase_other_anchors(end);
        self.back.stats.recoveries += 1;
        self.pump(end);
        recovery
    }

    fn find_data(&self, found: &mut Found, first: Ppn) {
        for i in 0..self.config.geometry.slices_per_unit() {
            let ppn = Ppn(first.0 + i);
            found.consider(self.spares.lpn(ppn), self.spares.sequence(ppn), Entry::at(ppn));
        }
    }

    /// Returns how many superblocks the journal opened. `refs` begins with those of this part.
    fn find_meta(&self, found: &mut Found, held: &Held, refs: &mut &[(u32, bool)]) -> u32 {
        match held {
            Held::Map { page, at, written_at, sequence, refs: count } => {
                let (own, rest) = refs.split_at(*count as usize);
                *refs = rest;
                for &(sb, gained) in own {
                    found.written_refs[sb as usize] += if gained { 1 } else { -1 };
                }
                if let Some(old) = found.directory[*page as usize].replace(*at) {
                    found.written_refs[self.superblocks.of(old) as usize] -= 1;
                }
                found.written_refs[self.superblocks.of(*at) as usize] += 1;
                found.ticks = found.ticks.max(*written_at);
                found.written(*sequence);
                0
            }
            Held::Next { superblock, opened_at } => {
                found.open(Stream::Meta, *superblock, *opened_at);
                1
            }
            Held::Journal { .. } if self.config.ftl.without.journal => 0,
            Held::Journal { first, records } => {
                for (number, record) in (*first..).zip(records) {
                    found.apply(number, record);
                }
                records.iter().filter(|record| matches!(record, Record::Open { .. })).count() as u32
            }
        }
    }

    fn take_over(&mut self, mut found: Found) {
        for (i, sb) in found.table.iter_mut().enumerate() {
            // Each block carries its erase count; and what is programmed where nothing should be is seen when the
            // superblock is opened, and is erased again.
            let seen = *self.superblocks.get(i as u32);
            sb.erases = seen.erases;
            sb.next_unit = seen.next_unit;
            (sb.end, sb.has_table) = (seen.end, seen.has_table);
            sb.failed |= seen.failed;
            // It may have been erased since.
            sb.slc &= seen.slc;
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
        for (page, at) in found.directory.iter().enumerate() {
            self.map.set_directory(page as u32, *at);
        }
        self.sequence = found.sequence;
        self.ticks = found.ticks;
        self.superblocks.restore(found.table, found.sequence);
        for (lpn, (_, entry)) in found.newest {
            self.changes.add(self.map.page_of(lpn), lpn, self.map.entry(lpn));
            if let Mapping::Flash(ppn) = entry.mapping() {
                self.changes.names_slice(true);
                self.superblocks.add_ref(ppn);
            }
            self.map.set(lpn, entry.recent());
        }
        for (page, stretches) in (0..).zip(found.stretches).filter(|&(_, stretches)| stretches > 0) {
            self.changes.add_trims(page, stretches);
        }
        self.buffer_is_lent = self.changes.is_over_full();
        self.generations_named = found.generations;
        self.generations_durable = found.generations;
        self.set_generation(found.generations);
        if self.hpb.iter().any(Option::is_some) {
            // All that were named may have been given out. Entries can be handed out again as soon as more are.
            self.name_generations();
            // The host may have lived on, with entries of the time before or with none, or may not know HPB at all. Whoever
            // does not know it ignores what is said.
            self.target.knows_hpb = true;
            self.target.hpb_in_use = self.hpb_enabled;
            if self.hpb_enabled {
                self.recommendations.announce_reset();
            }
        }
        let all: Vec<u32> = self.superblocks.iter().map(|(sb, _)| sb).collect();
        for sb in all {
            self.discard_if_empty(sb);
        }
    }
}
