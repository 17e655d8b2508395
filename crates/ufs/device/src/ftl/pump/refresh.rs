// SPDX-License-Identifier: MIT OR Apache-2.0
//! Read disturb of zones: a superblock that has been read too often is copied to another, a program at a time, so that
//! the host hardly notices.
//!
//! Only full zones are copied, and only what the newest checkpoint says of them: then recovery asks no copy where a
//! block is. The copy counts from the next checkpoint on. Until that is complete the old superblock stays, and a power
//! cut forgets the copy.

use super::Ftl;
use crate::back::{Hardware, Job, MediaOp, Op};
use crate::ftl::zones::{Refresh, Step};
use crate::ids::{Lpn, SuperblockId};
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

impl Ftl {
    /// The superblock of a slice of a zone has been read too often. If it cannot be copied now, later reads ask again.
    pub(super) fn begin_refresh(&mut self, ppn: Ppn) {
        let Ftl { space, zones, log, .. } = self;
        let from = space.of(ppn);
        let zone = space.spares().lpn(ppn).and_then(|lpn| zones.zone_of(lpn));
        let Some((zone, (first, end))) = zone.and_then(|(zone, _)| Some((zone, zones.placed().range_in(zone, from)?)))
        else {
            return;
        };
        let seen = zones.see(zone);
        let is_whole = seen.is_full && zones.placed().blocks(zone) == seen.written;
        // A copy is a duplicate from its beginning on.
        let is_quiet = zones.tails().get(zone).is_none() && !space.has_duplicate();
        if !is_whole || !is_quiet {
            return;
        }
        if !log.checkpoint_has_zone(zone, seen.written, space.get(from).opened_at) {
            return log.want_checkpoint();
        }
        let Ok((to, record)) = log.open_for_zone(space) else { return };
        space.set_duplicate(to);
        zones.set_refresh(Some(Refresh {
            zone,
            from,
            to,
            record,
            next: first,
            end,
            sequence: 0,
            step: Step::Next,
            in_vain: false,
        }));
    }

    /// Whether a superblock of a zone is being copied, or waits to be discarded after that.
    pub(crate) fn copies_a_zone(&self) -> bool {
        self.space.has_duplicate()
    }

    /// Continues the copy of a superblock, if there is one.
    pub(super) fn refresh(&mut self, now: Ns, hw: &mut impl Hardware) {
        let Some(refresh) = self.zones.refresh() else { return };
        let program = self.zones.placed().program();
        let blocks = program.min(refresh.end - refresh.next);
        match refresh.step {
            Step::Next if refresh.in_vain => self.drop_refresh(refresh),
            Step::Next if blocks == 0 => {
                hw.stats().refreshed += 1;
                self.end_refresh(refresh);
            }
            // So many blocks of it are bad. Another time it may be another superblock.
            Step::Next if self.space.programs_left(refresh.to) == 0 => self.drop_refresh(refresh),
            Step::Next => {
                if self.log.announce(refresh.record).is_ok() && hw.ops().has_room() {
                    self.read_to_refresh(refresh, blocks, now, hw);
                }
            }
            Step::Read if refresh.in_vain => self.drop_refresh(refresh),
            Step::Read => {
                if self.log.may_program_zone(&self.space).is_ok() {
                    self.program_refreshed(refresh, blocks, now, hw);
                }
            }
            Step::Reads(_) | Step::Programs => {}
        }
    }

    fn read_to_refresh(&mut self, refresh: Refresh, blocks: u32, now: Ns, hw: &mut impl Hardware) {
        let places: Vec<Ppn> = self.places_to_refresh(&refresh, blocks).collect();
        let mask = self.read_mask;
        let mut reads = 0;
        for run in places.chunk_by(|a, b| b.0 == a.0 + 1 && b.0 & mask != 0) {
            let op = Op { count: run.len() as u16, lpn: refresh.zone, ..Op::new(Job::RefreshRead, run[0]) };
            self.space.begin(now, op, hw);
            reads += 1;
        }
        hw.stats().moved_reads += u64::from(reads);
        self.zones.set_refresh(Some(Refresh { step: Step::Reads(reads), ..refresh }));
    }

    /// Where the next blocks are that are copied.
    fn places_to_refresh(&self, refresh: &Refresh, blocks: u32) -> impl Iterator<Item = Ppn> {
        let (zone, placed, space) = (refresh.zone, self.zones.placed(), &self.space);
        (refresh.next..refresh.next + blocks).map_while(move |block| placed.slice(space, zone, block))
    }

    /// A read for a copy has ended.
    pub(crate) fn refresh_read(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        hw.end(id);
        if let Some(Refresh { step: Step::Reads(left), .. }) = self.zones.refresh() {
            let step = if left == 1 { Step::Read } else { Step::Reads(left - 1) };
            self.zones.set_refresh(self.zones.refresh().map(|refresh| Refresh { step, ..refresh }));
        }
        self.pump(now, hw);
    }

    fn program_refreshed(&mut self, refresh: Refresh, blocks: u32, now: Ns, hw: &mut impl Hardware) {
        let sequence = self.write.next_number();
        let program = self.space.take_program(refresh.to);
        let first = self.space.slice_of_program(refresh.to, program, 0);
        let units = self.space.units_of_program(first).count() as u32;
        (0..units).for_each(|_| self.log.count_unit());
        let stats = hw.stats();
        stats.programs += u64::from(units) - 1;
        stats.slices_moved += u64::from(blocks);
        stats.slices_refreshed += u64::from(blocks);
        stats.slices_padded += u64::from(self.zones.placed().program() - blocks);
        let job = Op::new(Job::RefreshProgram, first);
        let op = Op { count: blocks as u16, lpn: refresh.zone, frame: units, ..job };
        self.space.program(now, op, hw);
        self.zones.set_refresh(Some(Refresh { sequence, step: Step::Programs, ..refresh }));
    }

    /// A program of a copy has ended.
    pub(crate) fn refresh_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        self.space.data_program_ended(op.ppn);
        let failed = hw.program_fails();
        if failed {
            hw.stats().program_failures += 1;
            let (sb, die) = (self.space.of(op.ppn), self.geometry.die_of(op.ppn));
            self.space.zone_program_failed(sb, die, self.write.sequence());
        }
        if let Some(refresh) = self.zones.refresh() {
            match failed {
                true => self.drop_refresh(refresh),
                false => self.refreshed_in_flash(refresh, &op, hw),
            }
        }
        self.pump(now, hw);
    }

    /// A program of a copy is in flash.
    fn refreshed_in_flash(&mut self, refresh: Refresh, op: &Op, hw: &mut impl Hardware) {
        let (to, program, _) = self.space.program_of(op.ppn);
        let first = self.zones.first_of(refresh.zone) + refresh.next;
        let sequence = self.log.sequence_in_flash(refresh.sequence);
        let places: Vec<Ppn> = self.places_to_refresh(&refresh, u32::from(op.count)).collect();
        let unit = self.geometry.slices_per_unit();
        for (number, places) in (0..).zip(places.chunks(unit as usize)) {
            let to = self.space.slice_of_program(to, program, number * unit);
            for (i, &from) in (0..).zip(places) {
                let (ppn, lpn) = (Ppn(to.0 + i), first + number * unit + i);
                hw.emit(MediaOp::Move { from, to: ppn, lpn: lpn.0, sequence });
                self.space.spares_mut().program(ppn, lpn, refresh.sequence);
            }
            self.log.data_programmed(to, &self.space, hw);
        }
        let next = refresh.next + u32::from(op.count);
        self.zones.set_refresh(Some(Refresh { next, step: Step::Next, ..refresh }));
    }

    /// All is copied: the zone continues in the new superblock, and the old one is discarded when a checkpoint says so.
    fn end_refresh(&mut self, refresh: Refresh) {
        let Refresh { zone, from, to, .. } = refresh;
        let now = self.write.sequence();
        if let Some((first, end)) = self.zones.placed().range_in(zone, from) {
            self.zones.placed_mut().refreshed(zone, from, to);
            self.space.add_refs(to, end - first);
        }
        self.space.close_for_zone(to, now);
        self.log.pin_until_checkpoint(from);
        self.zones.set_refresh(None);
        self.forget_refreshed(from);
    }

    /// The copy is not needed, or failed.
    fn drop_refresh(&mut self, refresh: Refresh) {
        self.zones.set_refresh(None);
        self.forget_refreshed(refresh.to);
    }

    fn forget_refreshed(&mut self, sb: SuperblockId) {
        self.space.set_duplicate(sb);
        self.space.forget_zone(sb, self.write.sequence());
        self.log.discard_if_empty(&mut self.space, sb);
    }

    /// Logical pages and numbers of a program of a copy that is being torn.
    pub(super) fn refreshed_spares(&self, op: &Op) -> Vec<(Option<Lpn>, u32)> {
        let Some(refresh) = self.zones.refresh() else { return Vec::new() };
        let first = self.zones.first_of(refresh.zone) + refresh.next;
        (0..u32::from(op.count)).map(|i| (Some(first + i), refresh.sequence)).collect()
    }
}
