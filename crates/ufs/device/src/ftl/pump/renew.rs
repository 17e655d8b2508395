// SPDX-License-Identifier: MIT OR Apache-2.0
//! Read disturb of zones: a superblock that has been read too often is copied to another, a program at a time, so that
//! the host hardly notices.
//!
//! Only full zones are copied, and only what the newest checkpoint says of them: then recovery asks no copy where a
//! block is. The copy counts from the next checkpoint on. Until that is complete the old superblock stays, and a power
//! cut forgets the copy.

use super::Ftl;
use crate::back::{Hardware, Job, MediaOp, Op};
use crate::ftl::zones::{Renewal, Step};
use crate::ids::SuperblockId;
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

impl Ftl {
    /// The superblock of a slice of a zone has been read too often. If it cannot be copied now, later reads ask again.
    pub(super) fn begin_renewal(&mut self, ppn: Ppn) {
        let Ftl { space, zones, log, .. } = self;
        let from = space.of(ppn);
        let zone = space.spares().lpn(ppn).and_then(|lpn| zones.zone_of(lpn));
        let Some((zone, (first, end))) = zone.and_then(|(zone, _)| Some((zone, zones.placed().range_in(zone, from)?)))
        else {
            return;
        };
        let seen = zones.see(zone);
        let is_whole = seen.is_full && zones.placed().blocks(zone) == seen.written;
        let is_quiet = zones.tails().get(zone).is_none() && zones.renewal().is_none() && !space.has_renewed();
        if !is_whole || !is_quiet {
            return;
        }
        if !log.checkpoint_has_zone(zone, seen.written, space.get(from).opened_at) {
            return log.want_checkpoint();
        }
        let Ok((to, record)) = log.open_for_zone(space) else { return };
        space.renews(to);
        let step = Step::Next;
        zones.set_renewal(Some(Renewal {
            zone,
            from,
            to,
            record,
            next: first,
            end,
            sequence: 0,
            step,
            in_vain: false,
        }));
    }

    /// Whether a superblock of a zone is being copied, or waits to be discarded after that.
    pub(crate) fn copies_a_zone(&self) -> bool {
        self.zones.renewal().is_some() || self.space.has_renewed()
    }

    /// Continues the copy of a superblock, if there is one.
    pub(super) fn renew(&mut self, now: Ns, hw: &mut impl Hardware) {
        let Some(renewal) = self.zones.renewal() else { return };
        let program = self.zones.placed().program();
        let blocks = program.min(renewal.end - renewal.next);
        match renewal.step {
            Step::Next if renewal.in_vain => self.drop_renewal(renewal),
            Step::Next if blocks == 0 => {
                hw.stats().refreshed += 1;
                self.end_renewal(renewal);
            }
            Step::Next => {
                let may = self.log.announce(renewal.record).is_ok() && hw.ops().has_room();
                match may && self.space.programs_left(renewal.to) == 0 {
                    // Blocks of it are bad: another time it may be another superblock.
                    true => self.drop_renewal(renewal),
                    false if may => self.read_to_renew(renewal, blocks, now, hw),
                    false => {}
                }
            }
            Step::Read if renewal.in_vain => self.drop_renewal(renewal),
            Step::Read => {
                if self.log.may_program_zone(&self.space).is_ok() {
                    self.program_renewed(renewal, blocks, now, hw);
                }
            }
            Step::Reads(_) | Step::Programs => {}
        }
    }

    fn read_to_renew(&mut self, renewal: Renewal, blocks: u32, now: Ns, hw: &mut impl Hardware) {
        let places: Vec<Ppn> = self.places_to_renew(&renewal, blocks).collect();
        let mask = self.read_mask;
        let mut reads = 0;
        for run in places.chunk_by(|a, b| b.0 == a.0 + 1 && b.0 & mask != 0) {
            let op = Op { count: run.len() as u16, lpn: renewal.zone, ..Op::new(Job::RenewRead, run[0]) };
            self.space.begin(now, op, hw);
            reads += 1;
        }
        hw.stats().moved_reads += u64::from(reads);
        self.zones.set_renewal(Some(Renewal { step: Step::Reads(reads), ..renewal }));
    }

    /// Where the next blocks are that are copied.
    fn places_to_renew(&self, renewal: &Renewal, blocks: u32) -> impl Iterator<Item = Ppn> {
        let (zone, placed, space) = (renewal.zone, self.zones.placed(), &self.space);
        (renewal.next..renewal.next + blocks).map_while(move |block| placed.slice(space, zone, block))
    }

    /// A read for a copy has ended.
    pub(crate) fn renewal_read(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        hw.end(id);
        if let Some(Renewal { step: Step::Reads(left), .. }) = self.zones.renewal() {
            let step = if left == 1 { Step::Read } else { Step::Reads(left - 1) };
            self.zones.set_renewal(self.zones.renewal().map(|renewal| Renewal { step, ..renewal }));
        }
        self.pump(now, hw);
    }

    fn program_renewed(&mut self, renewal: Renewal, blocks: u32, now: Ns, hw: &mut impl Hardware) {
        let sequence = self.write.next_number();
        let program = self.space.take_program(renewal.to);
        let first = self.space.slice_of_program(renewal.to, program, 0);
        let units = self.space.units_of_program(first).count() as u32;
        (0..units).for_each(|_| self.log.count_unit());
        let stats = hw.stats();
        stats.programs += u64::from(units) - 1;
        stats.slices_moved += u64::from(blocks);
        stats.slices_refreshed += u64::from(blocks);
        stats.slices_padded += u64::from(self.zones.placed().program() - blocks);
        let job = Op::new(Job::RenewProgram, first);
        let op = Op { count: blocks as u16, lpn: renewal.zone, frame: units, ..job };
        self.space.program(now, op, hw);
        self.zones.set_renewal(Some(Renewal { sequence, step: Step::Programs, ..renewal }));
    }

    /// A program of a copy has ended.
    pub(crate) fn renewal_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let op = hw.end(id);
        self.space.data_program_ended(op.ppn);
        let failed = hw.program_fails();
        if failed {
            hw.stats().program_failures += 1;
            let (sb, die) = (self.space.of(op.ppn), self.geometry.die_of(op.ppn));
            self.space.zone_program_failed(sb, die, self.write.sequence());
        }
        if let Some(renewal) = self.zones.renewal() {
            match failed || renewal.in_vain {
                true => self.drop_renewal(renewal),
                false => self.renewed_in_flash(renewal, &op, hw),
            }
        }
        self.pump(now, hw);
    }

    /// A program of a copy is in flash.
    fn renewed_in_flash(&mut self, renewal: Renewal, op: &Op, hw: &mut impl Hardware) {
        let (to, program, _) = self.space.program_of(op.ppn);
        let first = self.zones.first_of(renewal.zone) + renewal.next;
        let sequence = self.log.sequence_in_flash(renewal.sequence);
        let places: Vec<Ppn> = self.places_to_renew(&renewal, u32::from(op.count)).collect();
        let unit = self.geometry.slices_per_unit();
        for (number, places) in (0..).zip(places.chunks(unit as usize)) {
            let to = self.space.slice_of_program(to, program, number * unit);
            for (i, &from) in (0..).zip(places) {
                let (ppn, lpn) = (Ppn(to.0 + i), first + number * unit + i);
                hw.emit(MediaOp::Move { from, to: ppn, lpn: lpn.0, sequence });
                self.space.spares_mut().program(ppn, lpn, renewal.sequence);
            }
            self.log.data_programmed(to, &self.space, hw);
        }
        let next = renewal.next + u32::from(op.count);
        self.zones.set_renewal(Some(Renewal { next, step: Step::Next, ..renewal }));
    }

    /// All is copied: the zone continues in the new superblock, and the old one is discarded when a checkpoint says so.
    fn end_renewal(&mut self, renewal: Renewal) {
        let Renewal { zone, from, to, .. } = renewal;
        let now = self.write.sequence();
        if let Some((first, end)) = self.zones.placed().range_in(zone, from) {
            self.zones.placed_mut().renewed(zone, from, to);
            self.space.add_refs(to, end - first);
        }
        self.space.close_for_zone(to, now);
        self.log.pin_until_checkpoint(from);
        self.zones.set_renewal(None);
        self.forget_renewed(from);
    }

    /// The copy is not needed, or failed.
    fn drop_renewal(&mut self, renewal: Renewal) {
        self.zones.set_renewal(None);
        self.forget_renewed(renewal.to);
    }

    fn forget_renewed(&mut self, sb: SuperblockId) {
        self.space.renews(sb);
        self.space.forget_zone(sb, self.write.sequence());
        self.log.discard_if_empty(&mut self.space, sb);
    }

    /// Logical pages and numbers of a program of a copy that is being torn.
    pub(super) fn renewed_spares(&self, op: &Op) -> Vec<(Option<crate::ids::Lpn>, u32)> {
        let Some(renewal) = self.zones.renewal() else { return Vec::new() };
        let first = self.zones.first_of(renewal.zone) + renewal.next;
        (0..u32::from(op.count)).map(|i| (Some(first + i), renewal.sequence)).collect()
    }
}
