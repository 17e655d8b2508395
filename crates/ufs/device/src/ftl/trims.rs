// SPDX-License-Identifier: MIT OR Apache-2.0
//! TRIM: blocks that mean nothing any more.

use super::durable::Record;
use super::map::Entry;
use super::waiting::Unmap;
use super::{Effect, Ftl, Mapping};
use crate::back::{Hardware, Work};
use crate::ids::Lpn;
use readpath_kit::Ns;

impl Ftl {
    /// Carries out UNMAPs in order, as far as the table of changes and the journal have room.
    pub(super) fn drain_trims(&mut self, now: Ns, hw: &mut impl Hardware) {
        while let Some(mut unmap) = self.waiting_trims.pop_front() {
            if !self.trim_ranges(&mut unmap) {
                return self.waiting_trims.push_front(unmap);
            }
            self.answer_trim(now, &unmap, hw);
            self.unused_ranges.push(unmap.ranges);
        }
    }

    /// Goes on with the ranges of an UNMAP. False when there is no room for all.
    fn trim_ranges(&mut self, unmap: &mut Unmap) -> bool {
        while let Some(&(first, blocks)) = unmap.ranges.get(unmap.ranges_done) {
            while unmap.blocks_done < blocks {
                let pages = self.pages_to_trim();
                if pages == 0 {
                    return false;
                }
                let first = first + unmap.blocks_done;
                let end = u64::from(self.map.page_of(first).0 + pages) * u64::from(self.map.page_entries());
                let count = (end - u64::from(first.0)).min(u64::from(blocks - unmap.blocks_done)) as u32;
                self.trim(first, count);
                unmap.blocks_done += count;
            }
            unmap.ranges_done += 1;
            unmap.blocks_done = 0;
        }
        true
    }

    /// Map pages within which blocks may be trimmed now: each takes a place of the table of changes. A unit's worth of
    /// places is left to data, or trims could hold it up for ever.
    fn pages_to_trim(&self) -> u32 {
        if self.buffer_is_lent || self.journal.is_full() {
            return 0;
        }
        self.map.room().saturating_sub(self.geometry.slices_per_unit())
    }

    /// Blocks from the logical page `first` on mean nothing any more. Each counts as changed unless SRAM knows that it
    /// lay nowhere: what its map page says has not been paid for.
    pub(super) fn trim(&mut self, first: Lpn, blocks: u32) {
        self.sequence += 1;
        let record = self.journal.newest() + 1;
        let mut page = None;
        for lpn in first.run(blocks) {
            if let Mapping::Buffered(slot) = self.map.get(lpn) {
                self.buffer.kill(slot, record);
                self.map.leave_buffer(lpn, slot);
            } else if self.map.is_known_unmapped(lpn) {
                continue;
            }
            if !self.map.is_known_unmapped(lpn) {
                self.relocate(lpn, Entry::UNMAPPED);
                if page != Some(self.map.page_of(lpn)) {
                    page = Some(self.map.page_of(lpn));
                    self.map.add_trims(self.map.page_of(lpn), 1);
                }
            }
            self.note_change(lpn);
        }
        let record = Record::Trim { lpn: first, count: blocks, sequence: self.sequence };
        self.journal.trims = self.journal.push(record);
    }

    /// Map pages that the ranges of an UNMAP touch.
    fn map_pages_of(&self, ranges: &[(Lpn, u32)]) -> u64 {
        let page = |lpn: Lpn| u64::from(self.map.page_of(lpn).0);
        let touched = ranges.iter().filter(|&&(_, blocks)| blocks > 0);
        touched.map(|&(first, blocks)| page(first + (blocks - 1)) - page(first) + 1).sum()
    }

    /// UNMAP has touched its map pages, which takes the firmware its time before it answers.
    fn answer_trim(&mut self, now: Ns, unmap: &Unmap, hw: &mut impl Hardware) {
        match Ns(hw.cpu().timing().trim_map_page.0 * self.map_pages_of(&unmap.ranges)) {
            Ns::ZERO => self.effects.push_back(Effect::Done(unmap.tag)),
            cost => hw.work(now, cost, Work::Trimmed(unmap.tag)),
        }
    }
}
