// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of data through zones: from the write buffer into whole programs or, where a flush, a full buffer or a
//! closed zone cannot wait for one, into rests, which are read back when their program is complete. Resets and FINISH
//! ZONE.

use super::Ftl;
use crate::back::{Hardware, Job, MediaOp, Op};
use crate::ftl::Stall;
use crate::ftl::effects::Effect;
use crate::ftl::space::{Purpose, State, Stream};
use crate::ftl::write::Incoming;
use crate::ftl::zones::{Extent, Kind, Tail};
use crate::ids::{Lpn, SuperblockId, TagRef};
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;
use readpath_proto::typed::{Sense, ZoneAction};

/// What the data of a zone may do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    /// It waits for more data, or for operations in progress.
    Wait,
    /// So many blocks make a whole program.
    Whole(u32),
    /// These blocks, rests before what is in the buffer, have to be read back for one.
    Load { first: u32, end: u32 },
    /// So many blocks cannot wait for one.
    Rest(u32),
}

impl Ftl {
    /// Programs data of zones, as far as it fills programs or cannot wait. Returns the cause for which programming has
    /// to wait.
    pub(super) fn program_zones(&mut self, now: Ns, hw: &mut impl Hardware) -> Option<Stall> {
        let mut stall = None;
        for index in 0..self.zones.tails().len() {
            loop {
                match self.program_zone(index, false, now, hw) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(cause) => {
                        stall = Some(cause);
                        break;
                    }
                }
            }
        }
        // More zones are written than fit into the buffer: the one that gains most leaves it.
        let is_stuck = self.write.has_waiting() && self.write.buffer().is_full() && self.space.programs() == 0;
        if stall.is_none() && is_stuck && !self.zones.tails().iter().any(Tail::is_loading) {
            stall = self.flush_early(now, hw);
        }
        stall
    }

    /// Lets the data of one zone leave the write buffer: of that with the most. Returns what it waits for.
    #[cold]
    fn flush_early(&mut self, now: Ns, hw: &mut impl Hardware) -> Option<Stall> {
        let tails = self.zones.tails().iter().enumerate().filter(|(_, tail)| tail.waiting() > 0);
        let (index, _) = tails.max_by_key(|(index, tail)| (tail.waiting(), std::cmp::Reverse(*index)))?;
        let mut has_begun = false;
        loop {
            match self.program_zone(index, true, now, hw) {
                Ok(true) if has_begun => {}
                // One that has to wait for its first program is not counted twice.
                Ok(true) => {
                    has_begun = true;
                    hw.stats().zone_early_flushes += 1;
                }
                Ok(false) => return None,
                Err(cause) => return Some(cause),
            }
        }
    }

    /// What the data of a zone may do next. If it `leaves` the buffer, it does not wait for more.
    fn next_of_zone(&mut self, index: usize, leaves: bool) -> Next {
        let program = self.zones.placed().program();
        let tail = &*self.zones.tails_mut().nth(index);
        let (zone, next, end) = (tail.zone, tail.next(), tail.end());
        if tail.is_loading() {
            return Next::Wait;
        }
        let (next_slot, waiting, in_programs) = (tail.next_slot(), tail.waiting(), tail.in_whole_programs());
        let (sends_rest, is_sending, has_loaded) = (tail.has_sent(Kind::Rest), tail.is_sending(), tail.has_loaded());
        let seen = self.zones.see(zone);
        let planned = self.zones.placed().blocks(zone) + in_programs;
        let aim = (planned + program).min(if seen.is_full { seen.written } else { seen.capacity });
        let must = next_slot.is_some_and(|slot| self.write.buffer().must_flush_slot(slot));
        // Data that a flush waits for is programmed: the flush may be answered before the reset is in flash.
        if seen.resets && !must {
            return Next::Wait;
        }
        // What was read back does not stay: others need the room.
        let is_wanted = leaves || must || has_loaded || !seen.is_open;
        if end >= aim && aim > planned {
            let is_enough = seen.is_full || is_wanted || end - planned >= self.zones.flush_blocks(zone);
            return match () {
                // Rests on their way have to be known before they are read back.
                () if !is_enough || sends_rest => Next::Wait,
                () if next == planned => Next::Whole(aim - planned),
                () if is_sending => Next::Wait,
                () => Next::Load { first: planned, end: next },
            };
        }
        match is_wanted && waiting > 0 && end < aim {
            true => Next::Rest(waiting.min(self.geometry.slices_per_unit())),
            false => Next::Wait,
        }
    }

    /// Takes the next step for the data of a zone; false if it has to wait.
    fn program_zone(&mut self, index: usize, leaves: bool, now: Ns, hw: &mut impl Hardware) -> Result<bool, Stall> {
        let zone = self.zones.tails_mut().nth(index).zone;
        match self.next_of_zone(index, leaves) {
            Next::Wait => Ok(false),
            Next::Whole(blocks) => self.program_whole(zone, blocks, now, hw).map(|()| true),
            Next::Load { first, end } => Ok(self.load_rests(zone, first, end, now, hw)),
            Next::Rest(blocks) => self.program_rest(zone, blocks, now, hw).map(|()| true),
        }
    }

    /// The superblock for the next program of a zone, which the journal names.
    fn superblock_for(&mut self, zone: u32) -> Result<SuperblockId, Stall> {
        let Ftl { log, space, zones, write, .. } = self;
        log.may_program_zone(space)?;
        let to = match zones.writes_to(zone).filter(|(sb, _)| space.programs_left(*sb) > 0) {
            Some(to) => to,
            None => {
                if !zones.placed().has_room() {
                    return Err(Stall::Space);
                }
                let to = log.open_for_zone(space)?;
                if let Some(before) = zones.write_to(zone, Some(to)) {
                    space.close_for_zone(before, write.sequence());
                    log.discard_if_empty(space, before);
                }
                to
            }
        };
        log.announce(to.1)?;
        Ok(to.0)
    }

    /// Begins a whole program of a zone with `blocks` of data.
    fn program_whole(&mut self, zone: u32, blocks: u32, now: Ns, hw: &mut impl Hardware) -> Result<(), Stall> {
        let sb = self.superblock_for(zone)?;
        let Ftl { log, space, zones, write, .. } = self;
        let program = space.take_program(sb);
        let first = space.slice_of_program(sb, program, 0);
        let units = space.units_of_program(first).count() as u32;
        let Some(tail) = zones.tails_mut().get_mut(zone) else { return Ok(()) };
        let slots: Vec<u16> = tail.next_slots(blocks).collect();
        tail.send(Kind::Whole, first, blocks);
        let slot = write.buffer_mut().begin_program(slots.into_iter());
        (0..units).for_each(|_| log.count_unit());
        let padded = zones.placed().program() - blocks;
        let stats = hw.stats();
        stats.programs += u64::from(units) - 1;
        stats.slices_padded += u64::from(padded);
        let job = Op::new(Job::ZoneProgram, first);
        let op = Op { count: blocks as u16, index: u32::from(slot), lpn: zone, frame: units, ..job };
        space.program(now, op, hw);
        Ok(())
    }

    /// Begins to program blocks that cannot wait for a whole program.
    fn program_rest(&mut self, zone: u32, blocks: u32, now: Ns, hw: &mut impl Hardware) -> Result<(), Stall> {
        let Ftl { log, space, map, zones, write, geometry, .. } = self;
        log.prepare_unit(space, map, Stream::Rest, Purpose::Host)?;
        let first = log.take_unit(space, map, Stream::Rest, write.sequence())?;
        let Some(tail) = zones.tails_mut().get_mut(zone) else { return Ok(()) };
        let slots: Vec<u16> = tail.next_slots(blocks).collect();
        tail.send(Kind::Rest, first, blocks);
        let slot = write.buffer_mut().begin_program(slots.into_iter());
        let stats = hw.stats();
        stats.zone_rests += u64::from(blocks);
        stats.slices_padded += u64::from(geometry.slices_per_unit() - blocks);
        let op = Op { count: blocks as u16, index: u32::from(slot), lpn: zone, ..Op::new(Job::RestProgram, first) };
        space.program(now, op, hw);
        Ok(())
    }

    /// Begins to read rests back; false if the buffer has no room for them yet.
    fn load_rests(&mut self, zone: u32, first: u32, end: u32, now: Ns, hw: &mut impl Hardware) -> bool {
        let base = self.zones.first_of(zone);
        let Ftl { space, map, zones, write, .. } = self;
        let rests: Vec<(Lpn, Ppn)> = map.rests(base + first, base + end).collect();
        debug_assert_eq!(rests.len() as u32, end - first, "blocks between programs and buffer are rests");
        let blocks = rests.iter().map(|&(lpn, ppn)| (lpn, space.spares().sequence(ppn)));
        let Some(slots) = write.buffer_mut().take_for_loads(blocks) else { return false };
        let Some(tail) = zones.tails_mut().get_mut(zone) else { return false };
        tail.load(&slots);
        hw.stats().zone_rests_loaded += rests.len() as u64;
        let mask = self.read_mask;
        let mut at = 0;
        for run in rests.chunk_by(|(_, a), (_, b)| b.0 == a.0 + 1 && b.0 & mask != 0) {
            tail.load_begins();
            let job = Op::new(Job::RestRead, run[0].1);
            let op = Op { count: run.len() as u16, index: first + at, lpn: zone, ..job };
            self.space.begin(now, op, hw);
            at += run.len() as u32;
        }
        true
    }

    /// Rests have been read back.
    pub(crate) fn rests_loaded(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        if let Some(tail) = self.zones.tails_mut().get_mut(op.lpn) {
            tail.load_ended();
        }
        self.pump(now, hw);
    }

    /// A whole program of a zone has ended.
    pub(crate) fn zone_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        let sb = self.space.of(op.ppn);
        self.space.data_program_ended(op.ppn);
        if hw.program_fails() {
            hw.stats().program_failures += 1;
            self.space.zone_program_failed(sb, self.geometry.die_of(op.ppn), self.write.sequence());
            self.needs_another_program(op.lpn, op.ppn);
        } else if self.zones.tails_mut().get_mut(op.lpn).is_some_and(|tail| tail.ended(op.ppn)) {
            let (_, program, _) = self.space.program_of(op.ppn);
            let chain: Vec<u16> = self.write.buffer().chain(op.index as u16).collect();
            let unit = self.geometry.slices_per_unit() as usize;
            // A unit of padding alone leaves nothing in flash, and so is none of the numbered programs.
            for (i, slots) in (0..).zip(chain.chunks(unit)) {
                let first = self.space.slice_of_program(sb, program, i * unit as u32);
                self.data_in_flash(first, slots, hw);
            }
            self.space.hold(op.ppn);
            self.apply_programs(op.lpn);
        }
        self.log.discard_if_empty(&mut self.space, sb);
        self.pump(now, hw);
    }

    /// A program of rests has ended.
    pub(crate) fn rest_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        if self.program_failed(op.ppn, hw) {
            self.needs_another_program(op.lpn, op.ppn);
        } else if self.zones.tails_mut().get_mut(op.lpn).is_some_and(|tail| tail.ended(op.ppn)) {
            let slots: Vec<u16> = self.write.buffer().chain(op.index as u16).collect();
            self.data_in_flash(op.ppn, &slots, hw);
            self.space.hold(op.ppn);
            self.apply_programs(op.lpn);
        }
        let sb = self.space.of(op.ppn);
        self.log.discard_if_empty(&mut self.space, sb);
        self.pump(now, hw);
    }

    /// A multi-plane page at `first` holds the data of slots.
    fn data_in_flash(&mut self, first: Ppn, slots: &[u16], hw: &mut impl Hardware) {
        hw.stats().slices_programmed += slots.len() as u64;
        for (ppn, &slot) in (first.0..).map(Ppn).zip(slots) {
            let (lpn, sequence) = self.write.buffer().holds(slot);
            let in_flash = self.log.sequence_in_flash(sequence);
            hw.emit(match self.map.rest(lpn) {
                // It was read back. What cannot be read, cannot be read at its new place either.
                Some(from) => MediaOp::Move { from, to: ppn, lpn: lpn.0, sequence: in_flash },
                None => MediaOp::Program { slot, ppn, lpn: Some(lpn.0), sequence: in_flash },
            });
            self.space.spares_mut().program(ppn, lpn, sequence);
        }
        self.log.data_programmed(first, &self.space, hw);
    }

    /// The program at `first` of a zone failed: its blocks and those behind them are programmed again.
    fn needs_another_program(&mut self, zone: u32, first: Ppn) {
        if let Some(tail) = self.zones.tails_mut().get_mut(zone) {
            let (slots, in_vain) = tail.failed(first);
            self.write.buffer_mut().wait_again(&slots);
            in_vain.into_iter().for_each(|first| self.space.let_go(first));
        }
    }

    /// Programs of a zone count in the order of their blocks, as far as they have ended.
    fn apply_programs(&mut self, zone: u32) {
        let base = self.zones.first_of(zone);
        let mut slots = Vec::new();
        while let Some(tail) = self.zones.tails_mut().get_mut(zone) {
            let from = tail.first;
            let Some(sent) = tail.take_done(&mut slots) else { break };
            self.space.let_go(sent.first);
            match sent.kind {
                Kind::Whole => {
                    let (superblock, program, _) = self.space.program_of(sent.first);
                    self.zones.placed_mut().extend(zone, sent.blocks, Extent { superblock, program });
                    self.space.add_refs(superblock, sent.blocks);
                    self.forget_rests(base + from, sent.blocks);
                }
                Kind::Rest => {
                    for i in 0..sent.blocks {
                        self.place_rest(base + from + i, Some(Ppn(sent.first.0 + i)));
                    }
                }
            }
            self.free_slots(&slots, false);
        }
        let is_over = self.zones.tails().get(zone).is_none_or(Tail::is_empty);
        let seen = self.zones.see(zone);
        let placed = self.zones.placed().blocks(zone);
        // What a full zone still has as rests is going to be programmed.
        if is_over && !(seen.is_full && placed < seen.written) {
            self.zones.tails_mut().remove(zone);
        }
        if seen.is_full && placed == seen.written {
            self.end_of_zone(zone);
        }
    }

    /// Frees slots whose data is in flash, or dropped.
    fn free_slots(&mut self, slots: &[u16], dropped: bool) {
        let mut ended: Vec<TagRef> = Vec::new();
        for &slot in slots {
            match dropped {
                true => self.write.buffer_mut().drop_slot(slot, |tag| ended.push(tag)),
                false => _ = self.write.buffer_mut().release(slot, |tag| ended.push(tag)),
            }
        }
        ended.into_iter().for_each(|tag| self.effects.push(Effect::PartInFlash(tag)));
    }

    /// Nothing more is written to a zone.
    fn end_of_zone(&mut self, zone: u32) {
        if let Some(sb) = self.zones.write_to(zone, None) {
            self.space.close_for_zone(sb, self.write.sequence());
            self.log.discard_if_empty(&mut self.space, sb);
        }
    }

    /// A block of a zone that is in no whole program lies at `to` from now on, or is no longer needed.
    pub(super) fn place_rest(&mut self, lpn: Lpn, to: Option<Ppn>) {
        if let Some(ppn) = to {
            self.space.add_ref(ppn);
        }
        if let Some(old) = self.map.set_rest(lpn, to) {
            self.collect.gone(old);
            self.space.drop_ref(old);
            let sb = self.space.of(old);
            self.log.discard_if_empty(&mut self.space, sb);
        }
    }

    fn forget_rests(&mut self, first: Lpn, blocks: u32) {
        let rests: Vec<Lpn> = self.map.rests(first, first + blocks).map(|(lpn, _)| lpn).collect();
        rests.into_iter().for_each(|lpn| self.place_rest(lpn, None));
    }

    /// Empties a zone that is being reset; false if operations in progress or the journal's room forbid that yet.
    pub(super) fn empty_zone(&mut self, first: Lpn, blocks: u32) -> bool {
        let Some((zone, _)) = self.zones.zone_of(first) else { return true };
        let (tail, buffer) = (self.zones.tails().get(zone), self.write.buffer());
        let must = |tail: &Tail| tail.next_slot().is_some_and(|slot| buffer.must_flush_slot(slot));
        if self.log.journal().is_full() || tail.is_some_and(|tail| tail.is_busy() || must(tail)) {
            return false;
        }
        // The record of the trim comes before those that let superblocks be erased.
        let sequence = self.write.next_number();
        self.log.note_trim(first, blocks, sequence);
        let slots = self.zones.tails_mut().remove(zone);
        self.free_slots(&slots, true);
        self.forget_rests(first, blocks);
        let writes_to = self.zones.write_to(zone, None);
        self.zones.refresh_in_vain(zone);
        let superblocks = self.zones.placed_mut().clear(zone);
        for sb in superblocks.into_iter().chain(writes_to) {
            self.space.forget_zone(sb, sequence);
            self.log.discard_if_empty(&mut self.space, sb);
        }
        self.zones.emptied(zone);
        true
    }

    /// OPEN, CLOSE or FINISH ZONE of the zone that begins at block `lba` of a unit, or of all its zones.
    ///
    /// # Errors
    /// The rule that forbids it.
    pub(crate) fn change_zones(
        &mut self,
        now: Ns,
        (lun, lba): (u8, Option<u64>),
        action: ZoneAction,
        hw: &mut impl Hardware,
    ) -> Result<(), Sense> {
        for (first, written) in self.zones.change(lun, action, lba)? {
            let sequence = self.write.next_number();
            self.log.note_finish(first, written, sequence);
            let Some((zone, _)) = self.zones.zone_of(first) else { continue };
            match self.zones.placed().blocks(zone) == written && self.zones.tails().get(zone).is_none() {
                true => self.end_of_zone(zone),
                // What it has is programmed, with padding behind it.
                false => _ = self.zones.tails_mut().of(zone, written),
            }
        }
        self.pump(now, hw);
        Ok(())
    }

    /// RESET WRITE POINTER of the zone that begins at block `lba` of a unit, or of all its zones. Returns whether there
    /// is anything to be trimmed.
    ///
    /// # Errors
    /// If there is no such zone.
    pub(crate) fn reset_zones(
        &mut self,
        now: Ns,
        tag: TagRef,
        (lun, lba): (u8, Option<u64>),
        hw: &mut impl Hardware,
    ) -> Result<bool, Sense> {
        let ranges = self.zones.reset(tag, lun, lba)?;
        let any = !ranges.is_empty();
        if any {
            // Data that waits for room would come after the trim.
            let is_meant = |lpn: Lpn| ranges.iter().any(|&(first, blocks)| (first..first + blocks).contains(&lpn));
            for (tag, _) in self.write.take_dropped(|write| is_meant(write.lpn)) {
                self.effects.push(Effect::Unaligned(tag));
            }
            self.unmap(now, tag, ranges.into_iter(), hw);
        }
        Ok(any)
    }

    /// Writes that still wait for room in the buffer are about to be dropped: the write pointers of their zones fall
    /// back to what has been accepted, and writes behind it are refused. Units without zones keep theirs.
    pub(super) fn take_back_writes(&mut self, is_dropped: impl Fn(&Incoming) -> bool) {
        if !self.zones.any() {
            return;
        }
        for (tag, lpn) in self.write.take_dropped(|write| self.zones.holds(write.lpn) && is_dropped(write)) {
            let Some((first, blocks)) = self.zones.take_back(lpn) else { continue };
            let behind = self.write.take_dropped(|write| (first..first + blocks).contains(&write.lpn));
            self.effects.push(Effect::Refused(tag));
            behind.into_iter().for_each(|(tag, _)| self.effects.push(Effect::Unaligned(tag)));
        }
    }

    /// Places blocks of zones as if they had been written, in no time. All before them in their zones must have been.
    pub(super) fn preset_zones(
        &mut self,
        first: Lpn,
        blocks: u32,
        place: &mut Option<impl FnMut(u32, Ppn)>,
    ) -> Result<(), super::super::NoSpace> {
        let end = first + blocks;
        let mut at = first;
        self.space.sort_for_zones();
        while at < end {
            let Some((zone, block)) = self.zones.zone_of(at) else { return Ok(()) };
            let (base, capacity) = (self.zones.first_of(zone), self.zones.see(zone).capacity);
            let stop = (block + (end - at)).min(capacity);
            let program = self.zones.placed().program();
            loop {
                let from = self.zones.placed().blocks(zone);
                let left = stop.saturating_sub(from);
                // Whole programs, and what is left at the end of the zone.
                if left == 0 || (left < program && stop < capacity) {
                    break;
                }
                let to = match self.zones.writes_to(zone).filter(|(sb, _)| self.space.programs_left(*sb) > 0) {
                    Some((sb, _)) => sb,
                    None => {
                        self.end_of_zone(zone);
                        let sb = self.space.preset_for_zone()?;
                        self.zones.write_to(zone, Some((sb, 0)));
                        sb
                    }
                };
                let programs = self.space.programs_left(to).min(left / program).max(1);
                let n = left.min(programs * program);
                let extent = Extent { superblock: to, program: self.space.next_program(to) };
                self.space.preset_programs(to, programs, base + from, n);
                self.forget_rests(base + from, n);
                self.zones.placed_mut().extend(zone, n, extent);
                self.space.add_refs(to, n);
                if let Some(place) = place {
                    for i in 0..n {
                        let ppn = self.space.slice_of_program(to, extent.program + i / program, i % program);
                        place((base + from + i).0, ppn);
                    }
                }
            }
            let from = self.zones.placed().blocks(zone).max(block);
            let mut rest = Vec::new();
            self.space.preset(stop.saturating_sub(from), Stream::Rest, |ppn, n| {
                rest.extend((0..n).map(|i| Ppn(ppn.0 + i)));
            })?;
            for (lpn, ppn) in (base + from).run(rest.len() as u32).zip(rest) {
                self.space.spares_mut().preset(ppn, lpn);
                self.place_rest(lpn, Some(ppn));
                if let Some(place) = place {
                    place(lpn.0, ppn);
                }
            }
            if self.zones.placed().blocks(zone) == capacity {
                self.end_of_zone(zone);
            }
            at = base + stop;
        }
        self.log.open_meta(&mut self.space)
    }

    /// For tests: compares what is known of zones with a walk over everything, and counts the references of each
    /// superblock.
    ///
    /// # Errors
    /// The first disagreement found.
    pub(super) fn check_zones(&self, refs: &mut [u32]) -> Result<(), String> {
        if !self.zones.placed().is_counted() {
            return Err("parts of zones are not as many as counted".to_owned());
        }
        for zone in 0..self.zones.count() {
            let (base, seen) = (self.zones.first_of(zone), self.zones.see(zone));
            let placed = self.zones.placed().blocks(zone);
            let tail = self.zones.tails().get(zone);
            if seen.is_full && placed < seen.written && tail.is_none() {
                return Err(format!("zone {zone} is full, and nothing programs its rests: {placed}, {seen:?}"));
            }
            if tail.is_some_and(|tail| tail.has_loaded() && !tail.is_busy()) {
                return Err(format!("rests of zone {zone} were read back, and are not programmed"));
            }
            if placed > seen.written {
                return Err(format!("zone {zone} has {placed} blocks in flash, and {} are written", seen.written));
            }
            for lpn in base.run(seen.capacity) {
                let places = [self.zones.placed().slice(&self.space, zone, lpn - base), self.map.rest(lpn)];
                for ppn in places.into_iter().flatten() {
                    if self.space.spares().lpn(ppn) != Some(lpn) {
                        let found = self.space.spares().lpn(ppn);
                        return Err(format!("block {} of zone {zone} is at {ppn:?}, with {found:?}", lpn - base));
                    }
                    refs[self.space.of(ppn).index()] += 1;
                }
                let is_rest = places[1].is_some();
                if is_rest && (lpn - base < placed || lpn - base >= seen.written) {
                    return Err(format!("block {} of zone {zone} is no rest: {placed}, {seen:?}", lpn - base));
                }
            }
        }
        let copy = self.zones.refresh().map(|refresh| refresh.to);
        let writes_to = |zone| self.zones.writes_to(zone).map(|to| to.0);
        let goes_on = |sb| copy == Some(sb) || (0..self.zones.count()).any(|zone| writes_to(zone) == Some(sb));
        match self.space.iter().find(|(sb, at)| at.state == State::Open(Stream::Zone) && !goes_on(*sb)) {
            None => Ok(()),
            Some((sb, _)) => Err(format!("superblock {sb} is open for no zone")),
        }
    }
}
