// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts and recovery. A cut leaves what flash holds: data and its spare areas, map pages, the newest checkpoint whose
//! anchor is in flash, and the journal since. Recovery reads, each page paid for:
//!
//! 1. anchors, by bisection of the superblock that was written last, and the checkpoint they lead to;
//! 2. the meta stream since: map pages are known by their spare areas, journal parts are read whole;
//! 3. the spare areas of all units programmed since: for each block the highest sequence number wins, and a unit whose
//!    check fails was torn and says nothing.
//!
//! That is bounded by what is programmed between two checkpoints. Superblocks that were open go on after what was torn. If
//! the record that names the next superblock of the meta stream was lost, a new checkpoint comes before everything else,
//! because only its anchor can name one; otherwise it comes soon.

use crate::control::Target;
use crate::device::UfsDevice;
use crate::ftl::{ANCHORS, Entry, Held, Logged, Mapping, Record, State, Stream, Superblock};
use crate::journal::Mark;
use crate::media::{MediaMode, MediaOp};
use crate::ops::Job;
use crate::probe::Probe;
use readpath_flash::{DieSched, OpKind, Ppn};
use readpath_kit::Ns;
use std::collections::BTreeMap;

/// What recovery did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// When the device is ready.
    pub ready_at: Ns,
    /// Pages read to find the newest anchor.
    pub anchor_reads: u32,
    /// Pages of the checkpoint.
    pub checkpoint_reads: u32,
    /// Units programmed since the checkpoint whose spare areas or journal were read.
    pub units_read: u32,
    /// Units found not programmed, or torn, where the search for them ended.
    pub end_reads: u32,
    /// Of those, torn.
    pub torn: u32,
    /// Entries of the table of changes after recovery.
    pub changes: u32,
}

/// Servers of the array as recovery uses them: everything is known to wait from the beginning, in order.
struct Readers {
    now: Ns,
    firmware: Ns,
    dies: Vec<Ns>,
    channels: Vec<Ns>,
}

impl<S: DieSched, M: MediaMode, P: Probe> UfsDevice<S, M, P> {
    /// The power goes away. Every program in progress is torn, every erase in progress leaves its blocks undefined, and
    /// SRAM is lost. Until [`UfsDevice::recover`] the device answers nothing.
    pub fn power_cut(&mut self) {
        self.tear_programs();
        self.forget_changes();
        if let Some(sb) = self.erasing.take() {
            self.emit(MediaOp::Erase { first: self.superblocks.first(sb), slices: self.superblocks.slices() });
        }
        self.buffer.clear();
        self.journal = self.journal.after_power_cut();
        self.announced = [0; Stream::COUNT];
        self.journal_waiters.clear();
        if self.checkpoint.is_incomplete() {
            // Where its parts should be there is nothing.
            self.durable.checkpoint.directory.fill(None);
            self.durable.checkpoint.changes.clear();
            (0..self.config.logical_blocks() as u32).for_each(|lpn| self.map.set(lpn, Entry::UNMAPPED));
        }
        self.checkpoint.power_cut();
        self.durable.pending = None;
        self.data_programs = 0;
        self.changes_reserved = 0;
        self.background = Ns::NEVER;
        self.lately.fill(0);
        self.collector = crate::collect::Collector::new(self.map.pages(), self.config.ftl.move_buffer_blocks);
        self.lose_sram();
        self.target = Target::new(&self.config);
    }

    /// Programs in progress become torn units.
    fn tear_programs(&mut self) {
        let slices = self.config.geometry.slices_per_unit();
        let programs: Vec<_> = self.ops.in_progress().filter(|op| op.job.is_program()).copied().collect();
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
            self.emit(MediaOp::Torn { first: op.ppn, slices });
        }
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
        meta.power_cut(|taken| {
            let mut rest = taken;
            while let Some((change, next)) = changes.get(rest) {
                map.set(change.lpn, change.persisted);
                rest = next;
            }
        });
        changes.clear(|change| map.set(change.lpn, change.persisted));
    }

    /// Brings the device back from what flash holds, beginning at `now`, not before the cut. The power may be cut again
    /// before it is ready.
    pub fn recover(&mut self, now: Ns) -> Recovery {
        let checkpoint = self.durable.checkpoint.clone();
        let log = std::mem::take(&mut self.durable.log);
        let mut found = Found {
            table: checkpoint.superblocks,
            directory: checkpoint.directory,
            written_refs: Vec::new(),
            newest: BTreeMap::new(),
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
        for (_, entry) in &checkpoint.changes {
            if let Mapping::Flash(ppn) = entry.mapping() {
                found.written_refs[self.superblocks.of(ppn) as usize] -= 1;
            }
        }
        let mut recovery = Recovery {
            ready_at: now,
            anchor_reads: ANCHORS + self.config.geometry.units_per_superblock().ilog2() + 1,
            checkpoint_reads: checkpoint.slots,
            units_read: 0,
            end_reads: 0,
            torn: 0,
            changes: 0,
        };
        let (read, slc_read) = (self.config.flash.read, self.slc_time(OpKind::Read));
        let mut readers = self.readers(now);
        for _ in 0..recovery.anchor_reads {
            readers.now = self.recovery_read(&mut readers, Ppn(0), None);
        }
        let mut end = readers.now;
        for i in 0..checkpoint.slots {
            let at = Ppn(i * self.config.geometry.slices_per_unit());
            end = end.max(self.recovery_read(&mut readers, at, None));
        }
        readers.now = end;
        let mut opened_since = 0;
        for logged in &log {
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
                Logged::Meta { held } => {
                    opened_since += self.find_meta(&mut found, held);
                    let at = held.iter().find_map(|h| if let Held::Map { at, .. } = h { Some(*at) } else { None });
                    (at.unwrap_or_default(), held.iter().any(|h| matches!(h, Held::Journal { .. })))
                }
            };
            recovery.units_read += u32::from(!matches!(logged, Logged::Torn { .. }));
            let spares = (!whole).then(|| if self.superblocks.is_slc(first) { slc_read } else { read });
            end = end.max(self.recovery_read(&mut readers, first, spares));
        }
        // Each superblock that was open is searched until, on each die, a unit turns out not to be programmed.
        let ends = (open_then + opened_since) * self.config.geometry.dies();
        let slc_ends = found.boosted_opened * self.config.geometry.dies();
        for i in 0..ends {
            let at = Ppn(i * self.config.geometry.slices_per_unit());
            let read = if i < slc_ends { slc_read } else { read };
            end = end.max(self.recovery_read(&mut readers, at, Some(read)));
        }
        recovery.end_reads += ends;
        self.durable.log = log;
        found.settle(checkpoint.sequence, &checkpoint.changes);
        recovery.changes = found.newest.len() as u32;
        recovery.ready_at = end;
        self.take_over(found);
        self.set_busy_until(end);
        self.checkpoint.after_recovery(self.superblocks.open_of(Stream::Meta).is_none());
        self.erase_other_anchors(end);
        self.stats.recoveries += 1;
        self.pump(end);
        recovery
    }

    fn find_data(&self, found: &mut Found, first: Ppn) {
        for i in 0..self.config.geometry.slices_per_unit() {
            let ppn = Ppn(first.0 + i);
            found.consider(self.spares.lpn(ppn), self.spares.sequence(ppn), Entry::at(ppn));
        }
    }

    /// Returns how many superblocks the journal opened.
    fn find_meta(&self, found: &mut Found, held: &[Held]) -> u32 {
        let mut opened = 0;
        for held in held {
            match held {
                Held::Map { page, at, written_at, refs } => {
                    for &(sb, gained) in refs {
                        found.written_refs[sb as usize] += if gained { 1 } else { -1 };
                    }
                    if let Some(old) = found.directory[*page as usize].replace(*at) {
                        found.written_refs[self.superblocks.of(old) as usize] -= 1;
                    }
                    found.written_refs[self.superblocks.of(*at) as usize] += 1;
                    found.ticks = found.ticks.max(*written_at);
                }
                Held::Journal { .. } if self.config.ftl.without.journal => {}
                Held::Journal { first, records } => {
                    for (number, record) in (*first..).zip(records) {
                        opened += u32::from(matches!(record, Record::Open { .. }));
                        found.apply(number, record);
                    }
                }
            }
        }
        opened
    }

    fn take_over(&mut self, mut found: Found) {
        for (i, sb) in found.table.iter_mut().enumerate() {
            // Each block carries its erase count; and what is programmed where nothing should be is seen when the
            // superblock is opened, and is erased again.
            let seen = *self.superblocks.get(i as u32);
            sb.erases = seen.erases;
            sb.next_unit = seen.next_unit;
            sb.failed |= seen.failed;
            // It may have been erased since.
            sb.slc &= seen.slc;
            let holds_data = matches!(sb.state, State::Open(_) | State::Closed(_));
            sb.refs = if holds_data { found.written_refs[i].max(0) as u32 } else { 0 };
            if sb.state == State::Erased && seen.next_unit > 0 && !matches!(seen.state, State::Erased) {
                sb.state = State::Erasing(0);
                sb.refs = 0;
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
        self.generations_named = found.generations;
        self.generations_durable = found.generations;
        self.set_generation(found.generations);
        let all: Vec<u32> = self.superblocks.iter().map(|(sb, _)| sb).collect();
        for sb in all {
            self.discard_if_empty(sb);
        }
    }

    fn readers(&self, now: Ns) -> Readers {
        let g = &self.config.geometry;
        Readers { now, firmware: now, dies: vec![now; g.dies() as usize], channels: vec![now; g.channels as usize] }
    }

    /// Reads a unit's spare areas, with the tR that is given, or a whole part of the meta stream; returns when that is done.
    fn recovery_read(&self, readers: &mut Readers, at: Ppn, spares: Option<Ns>) -> Ns {
        let t = &self.config.flash;
        let die = self.config.geometry.die_of(at);
        let channel = self.config.geometry.channel_of(die) as usize;
        readers.firmware = readers.firmware.max(readers.now) + self.config.firmware.flash_op;
        let die = &mut readers.dies[die as usize];
        *die = (*die).max(readers.firmware) + spares.unwrap_or(t.map_read);
        let transfer = if spares.is_some() { self.spare_transfer() } else { t.map_transfer };
        readers.channels[channel] = readers.channels[channel].max(*die) + transfer;
        readers.channels[channel]
    }
}

/// What recovery knows so far.
struct Found {
    table: Vec<Superblock>,
    directory: Vec<Option<Ppn>>,
    /// References that map pages hold, by superblock.
    written_refs: Vec<i64>,
    /// Newest sequence number and entry of each block that changed.
    newest: BTreeMap<u32, (u32, Entry)>,
    sequence: u32,
    ticks: u32,
    generations: u64,
    /// Records up to this one are part of the checkpoint.
    journal: Mark,
    /// Superblocks of the WriteBooster buffer that were open, or were opened since.
    boosted_opened: u32,
}

impl Found {
    /// A slice says that it holds `lpn`. Of equals, a copy and what it was made from, the later is right: the earlier may
    /// have been erased.
    fn consider(&mut self, lpn: Option<u32>, sequence: u32, entry: Entry) {
        let Some(lpn) = lpn else { return };
        self.sequence = self.sequence.max(sequence);
        let newest = self.newest.entry(lpn).or_insert((sequence, entry));
        if sequence >= newest.0 {
            *newest = (sequence, entry);
        }
    }

    /// Puts what was found together with the changes that the checkpoint knows. Data found is newer, because nothing was
    /// being programmed when the checkpoint was put together. Trims found may be older: those that the journal in SRAM
    /// held then. What they did is part of the checkpoint, and newer data may be as well.
    fn settle(&mut self, checkpoint_sequence: u32, changes: &[(u32, Entry)]) {
        self.newest.retain(|_, (sequence, entry)| *entry != Entry::UNMAPPED || *sequence > checkpoint_sequence);
        for &(lpn, entry) in changes {
            self.newest.entry(lpn).or_insert((0, entry));
        }
    }

    fn apply(&mut self, number: Mark, record: &Record) {
        self.boosted_opened += u32::from(matches!(record, Record::Open { stream: Stream::Boosted, .. }));
        match *record {
            // Trims have to be compared with data that was accepted before the checkpoint and programmed after it; the
            // others have had their effect.
            Record::Open { .. } | Record::Erase { .. } if number <= self.journal => {}
            Record::Open { stream, superblock, opened_at } => {
                for sb in &mut self.table {
                    if sb.state == State::Open(stream) {
                        sb.state = State::Closed(stream);
                        sb.closed_at = self.sequence;
                    }
                }
                let sb = &mut self.table[superblock as usize];
                sb.state = State::Open(stream);
                sb.opened_at = opened_at;
                sb.slc = stream == Stream::Boosted;
                sb.reads = 0;
                self.written_refs[superblock as usize] = 0;
                self.ticks = self.ticks.max(opened_at);
            }
            Record::Erase { superblock } => {
                self.table[superblock as usize].state = State::Erasing(0);
                self.written_refs[superblock as usize] = 0;
            }
            Record::Trim { lpn, count, sequence } => {
                for lpn in lpn..lpn + count {
                    self.consider(Some(lpn), sequence, Entry::UNMAPPED);
                }
            }
            Record::Generations { up_to } => self.generations = self.generations.max(up_to),
        }
    }
}
