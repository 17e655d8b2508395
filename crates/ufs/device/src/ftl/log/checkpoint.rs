// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checkpoints: when one is due, its contents, and the anchor that points to it. A checkpoint is put together when no
//! program is in progress; [`super::write_back`] says why.

use super::Log;
use super::durable::Checkpoint;
use super::state::{Part, Step};
use crate::back::{Hardware, Job, MediaOp, Op};
use crate::config::ANCHORS;
use crate::ftl::map::stretch::{self, Stretch};
use crate::ftl::map::{Change, Map};
use crate::ftl::space::{Space, Superblock};
use crate::ftl::write::Write;
use crate::ftl::zones::Zones;
use crate::ids::{Lpn, SuperblockId};
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

impl Log {
    /// Begins or continues a checkpoint. Returns whether one has just been put together and waits to be programmed.
    pub(crate) fn step_checkpoint(
        &mut self,
        now: Ns,
        space: &mut Space,
        map: &Map,
        (write, zones): (&Write, &Zones),
        hw: &mut impl Hardware,
    ) -> bool {
        let waits = write.is_lent() && map.changes().is_over_full() && !self.checkpoint.first;
        self.checkpoint.due |= self.order_is_long(space, write.sequence());
        let after_units = self.settings().checkpoint_after_units;
        let checkpoint = &mut self.checkpoint;
        if checkpoint.step == Step::Idle
            && !waits
            && checkpoint.parts_left == 0
            && (checkpoint.due || checkpoint.units >= after_units)
        {
            checkpoint.step = Step::Quiet;
            checkpoint.due = false;
        }
        let without_order = self.settings().without.checkpoint_order;
        let quiet = space.programs() == 0 && self.stream.in_flight == 0;
        if self.checkpoint.step == Step::Quiet && (quiet || without_order) {
            // After recovery the checkpoint itself names the superblock that it is written to.
            if self.open_meta(space).is_err() {
                return false;
            }
            let snapshot = self.put_checkpoint_together(space, map, write, zones);
            let slots = snapshot.slots;
            self.export_checkpoint(map, &snapshot);
            self.durable.begin(snapshot);
            self.checkpoint.step = if without_order { Step::Anchor } else { Step::Parts };
            self.checkpoint.anchor_wanted |= without_order;
            self.checkpoint.parts_left = slots;
            self.checkpoint.units = 0;
            self.checkpoint.age += 1;
            hw.stats().checkpoints += 1;
            for _ in 0..slots {
                self.stream.queue.push_front(Part::Checkpoint);
            }
            return true;
        }
        if self.checkpoint.anchor_wanted && self.checkpoint.anchor_erasing == 0 {
            self.checkpoint.anchor_wanted = false;
            let g = self.geometry();
            let ppn = Ppn(self.checkpoint.anchor % (ANCHORS * g.units_per_superblock()) * g.slices_per_unit());
            hw.stats().anchor_programs += 1;
            space.program(now, Op::new(Job::AnchorProgram, ppn), hw);
        }
        false
    }

    /// Passes every change to `each`, those being written back included.
    pub(crate) fn each_change(&self, map: &Map, mut each: impl FnMut(Change)) {
        map.changes().each(&mut each);
        self.stream.taken().for_each(|taken| map.changes().each_of(taken, &mut each));
    }

    /// The changed blocks and their entries, clean and in order.
    pub(super) fn changes_now(&self, map: &Map) -> Vec<Stretch> {
        let mut changes = Vec::new();
        self.each_change(map, |Change { lpn, .. }| {
            stretch::push(&mut changes, Stretch::of(lpn, map.flash_entry(lpn).clean()));
        });
        stretch::in_order(changes)
    }

    /// Puts a checkpoint of the present state together.
    pub(super) fn put_checkpoint_together(&self, space: &Space, map: &Map, write: &Write, zones: &Zones) -> Checkpoint {
        let zones = zones.states(map.rests(Lpn(0), Lpn(u32::MAX)));
        let bytes = map.directory_bytes()
            + zones.bytes()
            + Superblock::SRAM_BYTES * u64::from(self.geometry().superblocks())
            + 8 * u64::from(map.changes().used());
        Checkpoint {
            sequence: write.sequence(),
            oldest: write.oldest(),
            ticks: self.ticks,
            generations: self.generations.named(),
            journal: self.journal.newest(),
            directory: map.all_pages().map(|page| map.directory(page)).collect(),
            superblocks: space.snapshot(),
            used: map.changes().used(),
            trims: map.changes().trims().collect(),
            zones,
            slots: bytes.div_ceil(u64::from(self.config.map_page_bytes)).max(1) as u32,
            ..Checkpoint::default()
        }
    }

    /// The anchor of a checkpoint has been programmed: recovery begins there from now on. The write buffer may be
    /// `lent` to changes; returns whether it still is.
    pub(crate) fn anchor_programmed(
        &mut self,
        id: OpId,
        (space, map): (&mut Space, &Map),
        lent: bool,
        hw: &mut impl Hardware,
    ) -> bool {
        let first = hw.end(id).ppn;
        self.export_anchor(first, hw);
        self.durable.commit();
        self.checkpoint.step = Step::Idle;
        self.checkpoint.first = false;
        let lent = lent && self.durable.checkpoint.used > map.changes().limit();
        self.checkpoint.due |= lent;
        self.checkpoint.newest = Some(self.checkpoint.anchor);
        self.checkpoint.lost = false;
        self.checkpoint.anchor += 1;
        while let Some(&(age, sb)) = self.stream.pinned.front()
            && age < self.checkpoint.age
        {
            self.stream.pinned.pop_front();
            self.stream.pins[sb.index()] -= 1;
            self.discard_if_empty(space, sb);
        }
        lent
    }

    /// When a superblock of anchors is full, erases the other one, which holds only old anchors. If a series of power
    /// cuts tore all anchors in the full one, erases the full one itself.
    pub(crate) fn erase_other_anchors(&mut self, now: Ns, space: &mut Space, hw: &mut impl Hardware) {
        let units = self.geometry().units_per_superblock();
        let dies = self.geometry().dies();
        let checkpoint = &mut self.checkpoint;
        if checkpoint.anchor == 0 || !checkpoint.anchor.is_multiple_of(units) {
            return;
        }
        if checkpoint.newest.is_some_and(|newest| newest < checkpoint.anchor - units) {
            checkpoint.anchor -= units;
        }
        let erased = SuperblockId(checkpoint.anchor / units % ANCHORS);
        checkpoint.lost |= checkpoint.newest.is_some_and(|newest| newest / units % ANCHORS == erased.0);
        checkpoint.anchor_erasing = dies;
        space.count_anchor_erase(erased);
        space.erase_dies(now, erased, hw);
    }

    /// One die of an anchor superblock has been erased.
    pub(crate) fn anchor_erased(&mut self, sb: SuperblockId, space: &Space, hw: &mut impl Hardware) {
        self.checkpoint.anchor_erasing -= 1;
        if self.checkpoint.anchor_erasing == 0 {
            hw.emit(MediaOp::Erase { first: space.first(sb), slices: space.slices() });
            self.export_block(sb, space, hw);
        }
    }

    /// Whether a checkpoint is needed soon, because spare areas must forget the order of older writes.
    #[inline]
    pub(crate) fn order_is_long(&self, space: &Space, sequence: u32) -> bool {
        space.spares().span(sequence) >= self.numbers.span / 8 * 5
    }

    /// Whether spare areas should forget the order of writes before the newest checkpoint.
    fn order_is_half_full(&self, space: &Space, sequence: u32) -> bool {
        space.spares().span(sequence) >= self.numbers.span / 2
    }

    /// Spare areas keep the order within a span of sequence numbers, and the numbers have 32 bits. Long before either
    /// runs out, numbering restarts: data programmed before the checkpoint needs no order any more. Returns the
    /// number that becomes the new zero, if renumbering is due.
    pub(crate) fn forget_order(&mut self, space: &mut Space, write: &mut Write) -> Option<u32> {
        // Blocks that left the write buffer since the checkpoint still need numbers above those of older copies.
        let base = self.durable.checkpoint.oldest.saturating_sub(1);
        if self.order_is_half_full(space, write.sequence()) {
            space.spares_mut().forget_order(base);
            if self.order_is_half_full(space, write.sequence()) {
                // A block has stayed in the buffer for the whole span. Flushed, it is in flash before the next
                // checkpoint.
                write.buffer_mut().flush();
            }
        }
        (write.sequence() >= self.numbers.renumber_at).then_some(base)
    }

    /// Sequence numbers now count from `base` on.
    pub(crate) fn renumber(&mut self, base: u32) {
        self.export.renumber(base);
        self.journal.renumber(base);
        self.stream.renumber(base);
        self.durable.renumber(base);
    }
}
