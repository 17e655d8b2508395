// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checkpoints: when one is due, what it says, and the anchor that leads to it. It is put together when no program is
//! in progress; see `write_back.rs` for why.

use super::{Numbers, Part, Step};
use crate::back::{Hardware, Job, MediaOp, Op};
use crate::ftl::durable::{Checkpoint, Record};
use crate::ftl::map::Change;
use crate::ftl::map::stretch::{self, Stretch};
use crate::ftl::space::Spares;
use crate::ftl::{ANCHORS, FIRST_GENERATIONS, Ftl, Stream, Superblock};
use crate::ids::SuperblockId;
use readpath_flash::{OpId, Ppn};
use readpath_kit::Ns;

impl Ftl {
    /// Begins or goes on with a checkpoint.
    pub(in crate::ftl) fn step_checkpoint(&mut self, now: Ns, hw: &mut impl Hardware) {
        let waits = self.buffer_is_lent && self.map.changes().is_over_full() && !self.checkpoint.first;
        self.checkpoint.due |= self.order_is_long();
        let checkpoint = &mut self.checkpoint;
        if checkpoint.step == Step::Idle
            && !waits
            && checkpoint.parts_left == 0
            && (checkpoint.due || checkpoint.units >= self.settings.checkpoint_after_units)
        {
            checkpoint.step = Step::Quiet;
            checkpoint.due = false;
        }
        let quiet = self.space.programs() == 0 && self.meta.in_flight == 0;
        if self.checkpoint.step == Step::Quiet && (quiet || self.settings.without.checkpoint_order) {
            if self.space.open_of(Stream::Meta).is_none() {
                // After recovery: the checkpoint itself names the superblock that it goes to.
                self.ticks += 1;
                if self.space.open(Stream::Meta, self.ticks).is_err() {
                    return;
                }
            }
            let snapshot = self.put_checkpoint_together();
            let slots = snapshot.slots;
            self.tell_checkpoint(&snapshot);
            self.durable.begin(snapshot);
            self.checkpoint.step = Step::Parts;
            self.checkpoint.parts_left = slots;
            if self.settings.without.checkpoint_order {
                self.checkpoint.step = Step::Anchor;
                self.checkpoint.anchor_wanted = true;
            }
            self.checkpoint.units = 0;
            self.checkpoint.age += 1;
            hw.stats().checkpoints += 1;
            for _ in 0..slots {
                self.meta.queue.push_front(Part::Checkpoint);
            }
            return self.pump(now, hw);
        }
        if self.checkpoint.anchor_wanted && self.checkpoint.anchor_erasing == 0 {
            self.checkpoint.anchor_wanted = false;
            let g = &self.geometry;
            let ppn = Ppn(self.checkpoint.anchor % (ANCHORS * g.units_per_superblock()) * g.slices_per_unit());
            hw.stats().programs += 1;
            self.space.begin(now, Op::new(Job::AnchorProgram, ppn), hw);
        }
    }

    /// Tells every change, those on their way to flash included.
    pub(in crate::ftl) fn each_change(&self, mut each: impl FnMut(Change)) {
        self.map.changes().each(&mut each);
        self.meta.taken().for_each(|taken| self.map.changes().each_of(taken, &mut each));
    }

    /// What is known of every block that changed, clean and in order.
    pub(in crate::ftl) fn changes_now(&self) -> Vec<Stretch> {
        let mut changes = Vec::new();
        self.each_change(|Change { lpn, .. }| {
            stretch::push(&mut changes, Stretch::of(lpn, self.map.flash_entry(lpn).clean()));
        });
        stretch::in_order(changes)
    }

    /// The device's state of knowledge as of now.
    pub(in crate::ftl) fn put_checkpoint_together(&self) -> Checkpoint {
        let bytes = self.map.directory_bytes()
            + Superblock::SRAM_BYTES * u64::from(self.geometry.superblocks())
            + 8 * u64::from(self.map.changes().used());
        Checkpoint {
            sequence: self.sequence,
            oldest: self.sequence.min(self.buffer.oldest_sequence().unwrap_or(u32::MAX)),
            ticks: self.ticks,
            generations: self.generations_named,
            journal: self.journal.newest(),
            directory: self.map.all_pages().map(|page| self.map.directory(page)).collect(),
            superblocks: self.space.snapshot(),
            changes: None,
            used: self.map.changes().used(),
            trims: self.map.changes().trims().collect(),
            slots: bytes.div_ceil(u64::from(self.config.map_page_bytes)).max(1) as u32,
            places: Vec::new(),
        }
    }

    /// The anchor of a checkpoint has been programmed: from now on recovery begins there.
    pub(crate) fn anchor_programmed(&mut self, now: Ns, id: OpId, hw: &mut impl Hardware) {
        let first = hw.end(id).ppn;
        self.tell_anchor(first, hw);
        self.durable.commit();
        self.checkpoint.step = Step::Idle;
        self.checkpoint.first = false;
        if self.buffer_is_lent {
            self.buffer_is_lent = self.durable.checkpoint.used > self.map.changes().limit();
            self.checkpoint.due |= self.buffer_is_lent;
        }
        self.checkpoint.newest = Some(self.checkpoint.anchor);
        self.checkpoint.lost = false;
        self.checkpoint.anchor += 1;
        while let Some(&(age, sb)) = self.meta.pinned.front()
            && age < self.checkpoint.age
        {
            self.meta.pinned.pop_front();
            self.meta.pins[sb.index()] -= 1;
            self.discard_if_empty(sb);
        }
        self.renumber_if_long();
        self.erase_other_anchors(now, hw);
        self.pump(now, hw);
    }

    /// When a superblock of anchors is full, the other one, which holds only what is out of date, is erased. If all
    /// anchors in the full one were torn, by one power cut after the other, it is the full one itself.
    pub(in crate::ftl) fn erase_other_anchors(&mut self, now: Ns, hw: &mut impl Hardware) {
        let units = self.geometry.units_per_superblock();
        let checkpoint = &mut self.checkpoint;
        if checkpoint.anchor == 0 || !checkpoint.anchor.is_multiple_of(units) {
            return;
        }
        if checkpoint.newest.is_some_and(|newest| newest < checkpoint.anchor - units) {
            checkpoint.anchor -= units;
        }
        let erased = SuperblockId(checkpoint.anchor / units % ANCHORS);
        checkpoint.lost |= checkpoint.newest.is_some_and(|newest| newest / units % ANCHORS == erased.0);
        checkpoint.anchor_erasing = self.geometry.dies();
        self.space.count_anchor_erase(erased);
        self.space.erase_dies(now, erased, hw);
    }

    /// One die of an anchor superblock has been erased.
    pub(in crate::ftl) fn anchor_erased(&mut self, now: Ns, sb: SuperblockId, hw: &mut impl Hardware) {
        self.checkpoint.anchor_erasing -= 1;
        if self.checkpoint.anchor_erasing == 0 {
            hw.emit(MediaOp::Erase { first: self.space.first(sb), slices: self.space.slices() });
            self.tell_block(sb, hw);
        }
        self.step_checkpoint(now, hw);
    }

    /// Whether spare areas need a checkpoint soon, to forget the order of what came before it.
    #[inline]
    pub(in crate::ftl) fn order_is_long(&self) -> bool {
        self.space.spares().span(self.sequence) >= self.numbers.span / 8 * 5
    }

    /// The order of spare areas is kept for a span of numbers, and numbers themselves have 32 bits. Long before either
    /// runs out, they are counted anew: what was programmed before the checkpoint needs no order any more.
    fn renumber_if_long(&mut self) {
        // What has left the write buffer since the checkpoint was put together still has to be told from older copies.
        let base = self.durable.checkpoint.oldest.saturating_sub(1);
        if self.space.spares().span(self.sequence) >= self.numbers.span / 2 {
            self.space.spares_mut().forget_order(base);
            if self.space.spares().span(self.sequence) >= self.numbers.span / 2 {
                // A block has been in the buffer for that long. The next checkpoint finds it in flash.
                self.buffer.flush();
            }
        }
        if self.sequence < self.numbers.renumber_at {
            return;
        }
        self.sequence -= base;
        self.told.renumber(base);
        self.buffer.renumber(base);
        self.journal.renumber(base);
        self.meta.renumber(base);
        self.space.spares_mut().renumber(base);
        self.collector.renumber(base);
        self.space.renumber(base);
        self.durable.renumber(base);
    }

    /// Lets the order of spare areas be forgotten within `span` writes and trims, and numbers be counted anew from
    /// `renumber_at` on, so that tests see it happen. There have been none yet.
    pub(crate) fn limit_numbers(&mut self, span: u32, renumber_at: u32) {
        assert!(self.sequence == 0 && span <= Spares::SPAN, "from the beginning, and no more than spare areas hold");
        self.numbers = Numbers { span, renumber_at };
    }

    /// Has the journal name more generations.
    pub(in crate::ftl) fn name_generations(&mut self) {
        self.generations_named += FIRST_GENERATIONS;
        self.generations_mark = self.journal.push(Record::Generations { up_to: self.generations_named });
        self.journal.want(self.generations_mark);
    }

    /// Whether the hand-out number `next` may be used: no number is used twice under one key, not even after a power
    /// cut, so the journal names numbers before they are used, long ahead.
    pub(crate) fn reserve_generation(&mut self, next: u64) -> bool {
        if next + FIRST_GENERATIONS / 2 > self.generations_named {
            self.name_generations();
        }
        next <= self.generations_durable
    }
}
