// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a power cut leaves: data and its spare areas, map pages, the newest checkpoint whose anchor is in flash, and
//! the journal since.

use super::buffer::NO_SLOT;
use super::collect::Collector;
use super::durable::Logged;
use super::map::Entry;
use super::map::stretch::{self, Stretch};
use super::meta::Meta;
use super::{Ftl, Stream};
use crate::back::{Hardware, Job, MediaOp};
use crate::ids::Lpn;
use readpath_kit::Ns;

impl Ftl {
    /// The power goes away at `now`: every program in progress is torn, every erase in progress leaves its blocks
    /// undefined, and SRAM is lost.
    pub(crate) fn lose_power(&mut self, now: Ns, hw: &mut impl Hardware) {
        self.stalls.set(now, None, hw.stats());
        self.tear_programs(hw);
        self.recall_changes();
        self.map.power_cut(self.buffer.held(), self.meta.taken());
        self.meta = Meta::new(&self.config);
        if let Some(sb) = self.space.power_cut() {
            hw.emit(MediaOp::Erase { first: self.space.first(sb), slices: self.space.slices() });
            self.tell_block(sb, hw);
        }
        self.buffer.clear();
        self.journal = self.journal.after_power_cut(self.durable.checkpoint.journal);
        self.announced = [0; Stream::COUNT];
        self.journal_waiters.clear();
        if self.checkpoint.is_incomplete() || self.checkpoint.lost {
            // Where its parts should be there is nothing, or nothing leads to them.
            self.durable.checkpoint.directory.fill(None);
            self.durable.checkpoint.changes = Some(Vec::new());
            self.durable.checkpoint.trims.clear();
            self.map.lose_pages();
        }
        self.checkpoint.power_cut();
        self.durable.pending = None;
        self.durable.take_changed();
        self.settles_changes = false;
        self.background = Ns::NEVER;
        self.idle_from = Ns::ZERO;
        self.written_recently.fill(0);
        self.collector = Collector::new(self.map.pages(), &self.config);
        self.waiting_writes.clear();
        self.waiting_trims.clear();
        self.effects.clear();
        self.reset_booster();
    }

    /// Programs in progress become torn units.
    fn tear_programs(&mut self, hw: &mut impl Hardware) {
        let slices = self.geometry.slices_per_unit();
        let programs: Vec<_> = hw.ops().in_progress().filter(|op| op.job.is_program()).copied().collect();
        for op in programs {
            let mut spares: Vec<(Option<Lpn>, u32)> = Vec::new();
            match op.job {
                Job::Program => {
                    let mut slot = op.index as u16;
                    while slot != NO_SLOT {
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
            hw.emit(MediaOp::Torn { first: op.ppn, slices });
        }
    }

    /// Finds out what the newest checkpoint says of changes, from what they are now and what has changed since.
    fn recall_changes(&mut self) {
        if self.durable.checkpoint.changes.is_some() {
            return;
        }
        // The first that is told of a block is what it was then.
        let changed = self.durable.take_changed();
        let mut then: Vec<(Lpn, Entry)> =
            changed.into_iter().flat_map(|was| was.blocks().map(move |lpn| (lpn, was.entry))).collect();
        then.sort_by_key(|&(lpn, _)| lpn);
        then.dedup_by_key(|&mut (lpn, _)| lpn);
        let mut changes = Vec::new();
        self.each_change(|change| {
            if then.binary_search_by_key(&change.lpn, |&(lpn, _)| lpn).is_err() {
                stretch::push(&mut changes, Stretch::of(change.lpn, self.map.flash_entry(change.lpn).clean()));
            }
        });
        for (lpn, entry) in then.into_iter().filter(|(_, entry)| entry.is_recent()) {
            stretch::push(&mut changes, Stretch::of(lpn, entry.clean()));
        }
        self.durable.checkpoint.changes = Some(stretch::in_order(changes));
    }
}
