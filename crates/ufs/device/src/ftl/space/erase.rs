// SPDX-License-Identifier: MIT OR Apache-2.0
//! Superblocks that are discarded and erased, and bad blocks.

use super::{Space, State, Stream};
use crate::back::{Hardware, Job, Op};
use crate::config::CellMode;
use crate::ids::{Mark, SuperblockId};
use readpath_flash::Ppn;
use readpath_kit::Ns;

impl Space {
    /// Discards a closed superblock: it waits to be erased until the journal's `record` is in flash.
    pub(crate) fn discard(&mut self, sb: SuperblockId, record: Mark) {
        let slot = &mut self.table[sb.index()];
        debug_assert!(matches!(slot.state, State::Closed(_)) && slot.in_flight == 0);
        if let State::Closed(stream) = slot.state {
            self.meta_in_use -= u32::from(stream == Stream::Meta);
            if stream == Stream::Zone {
                self.zones.discarded(sb);
            }
            self.modes[slot.mode.index()].closed -= 1;
        }
        let good = self.shape.dies - slot.bad_dies;
        slot.state = State::Erasing(good);
        slot.refs = 0;
        self.emptying.retain(|&other| other != sb);
        self.to_erase.push_back((sb, record));
    }

    /// The record that must be in flash before the next superblock is erased; `None` if no superblock waits or one is
    /// being erased.
    pub(crate) fn waits_to_be_erased(&self) -> Option<Mark> {
        if self.erasing.is_some() {
            return None;
        }
        self.to_erase.front().map(|&(_, record)| record)
    }

    /// The superblock that is being erased.
    pub(crate) fn erasing(&self) -> Option<SuperblockId> {
        self.erasing
    }

    /// Begins to erase the good blocks of a superblock.
    pub(crate) fn erase_dies(&self, now: Ns, sb: SuperblockId, hw: &mut impl Hardware) {
        let (dies, first) = (self.shape.dies, self.first(sb));
        for die in (0..dies).filter(|&die| !self.is_bad(sb, die)) {
            let ppn = Ppn(first.0 + die * self.shape.slices_per_unit);
            let (cells, stats) = (self.mode_of(ppn), hw.stats());
            stats.erases += 1;
            stats.slc_erases += u64::from(cells != CellMode::Full);
            stats.slc_map_erases += u64::from(cells == CellMode::SlcMap);
            stats.anchor_erases += u64::from(self.get(sb).state == State::Anchor);
            self.begin(now, Op { lpn: sb.0, ..Op::new(Job::Erase, ppn) }, hw);
        }
    }

    /// Handles a power cut. Returns the superblock that was being erased.
    pub(crate) fn power_cut(&mut self) -> Option<SuperblockId> {
        self.programs = 0;
        self.emptying.clear();
        self.erasing.take()
    }

    /// Begins to erase the next superblock, on its good dies. Its contents are undefined from now on. Without good
    /// dies it is retired.
    pub(crate) fn begin_erase(&mut self) -> Option<SuperblockId> {
        let (sb, _) = self.to_erase.pop_front()?;
        let slot = &mut self.table[sb.index()];
        if slot.state == State::Erasing(0) {
            // All its blocks are bad.
            self.failed -= u32::from(std::mem::take(&mut slot.failed));
            self.zones.coming.retain(|&other| other != sb);
            slot.state = State::Retired;
            self.modes[std::mem::take(&mut slot.mode).index()].superblocks -= 1;
        } else {
            slot.erases += 1;
            self.modes[slot.mode.index()].erases += 1;
            self.erasing = Some(sb);
            let first = self.first(sb);
            self.spares.erase(first, self.shape.slices_per_superblock.get());
        }
        Some(sb)
    }

    pub(crate) fn count_anchor_erase(&mut self, sb: SuperblockId) {
        self.table[sb.index()].erases += 1;
    }

    /// One die of `sb` has been erased, or its erase `failed`; true when it was the last.
    pub(crate) fn die_erased(&mut self, sb: SuperblockId, die: u32, failed: bool) -> bool {
        if failed {
            self.mark_bad(sb, die);
        }
        let State::Erasing(left) = &mut self.table[sb.index()].state else {
            unreachable!("only superblocks that are being erased")
        };
        *left -= 1;
        if *left > 0 {
            return false;
        }
        self.erasing = None;
        self.zones.coming.retain(|&other| other != sb);
        let slot = &mut self.table[sb.index()];
        self.failed -= u32::from(std::mem::take(&mut slot.failed));
        self.modes[std::mem::take(&mut slot.mode).index()].superblocks -= 1;
        slot.next_unit = 0;
        slot.end = self.shape.units;
        if slot.bad_dies * 2 > self.shape.dies {
            slot.state = State::Retired;
        } else {
            slot.state = State::Erased;
            self.skip_bad(sb);
            self.erased.push(sb);
        }
        true
    }

    /// Marks the block of `sb` on `die` as bad; false if it was already.
    pub(super) fn mark_bad(&mut self, sb: SuperblockId, die: u32) -> bool {
        let is_news = !self.bad.put((sb.0 * self.shape.dies + die) as usize);
        if is_news {
            self.table[sb.index()].bad_dies += 1;
            self.any_bad = true;
        }
        is_news
    }

    /// Number of bad blocks of `sb`.
    pub(super) fn bad_dies(&self, sb: SuperblockId) -> u32 {
        (0..self.shape.dies).filter(|die| self.bad.contains((sb.0 * self.shape.dies + die) as usize)).count() as u32
    }

    /// Whether the block of `sb` on `die` is bad.
    #[inline]
    pub(crate) fn is_bad(&self, sb: SuperblockId, die: u32) -> bool {
        self.table[sb.index()].bad_dies > 0 && self.bad.contains((sb.0 * self.shape.dies + die) as usize)
    }
}
