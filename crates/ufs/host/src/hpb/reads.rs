// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every read and write of a unit passes (Linux `ufshpb_prep`): the entry to send along, the entries that become
//! dirty, and in host control mode the counters. Nothing is sent here.

use super::{HpbLu, LuState, MapId, RegionState, SubRegionState};
use crate::config::ListOrder;
use crate::ids::{Id, RegionId, SubRegionId};
use readpath_kit::Ns;
use readpath_proto::typed::HpbEntry;

impl HpbLu {
    /// The entry to send with a read of `blocks` blocks from `block`, if every block of it may use one.
    #[inline(always)]
    pub(crate) fn entry_for(&mut self, now: Ns, block: u32, blocks: u32) -> Option<HpbEntry> {
        let asks = blocks != self.direct_blocks;
        if asks && !self.may_have_entry(now, block, blocks) {
            return None;
        }
        let map = self.valid_map[SubRegionId::of_block(&self.geometry, block)];
        let slot = self.slot_of(block);
        let usable = if blocks == 1 {
            map != MapId::NONE && !self.store.any_dirty(map, slot, 1)
        } else {
            self.all_clean(block, blocks)
        };
        if !usable {
            self.counters.miss_cnt += 1;
            return None;
        }
        self.counters.hit_cnt += 1;
        if asks && self.options.order == ListOrder::Recency {
            self.touch(block);
        }
        Some(self.store.entry(map, slot))
    }

    /// Asks and tells those who have a say in this read. It does not return the entry itself: that would cross memory.
    #[inline(never)]
    fn may_have_entry(&mut self, now: Ns, block: u32, blocks: u32) -> bool {
        if self.is_managed() && self.asks_policy(block, blocks) {
            return false;
        }
        if self.state != LuState::Present || blocks == 0 || blocks > self.max_blocks {
            return false;
        }
        if self.mode.hcm().is_some() {
            self.note_read(now, block, blocks);
        }
        true
    }

    #[inline(never)]
    fn touch(&mut self, block: u32) {
        if self.is_managed() {
            // A policy has lists of its own.
            return;
        }
        let region = RegionId::from(self.geometry.region_of(block));
        self.list.touch(region);
    }

    #[inline(never)]
    fn all_clean(&self, block: u32, blocks: u32) -> bool {
        let mut at = block;
        let end = block + blocks;
        while at < end {
            let map = self.valid_map[SubRegionId::of_block(&self.geometry, at)];
            let slot = self.slot_of(at);
            let n = (end - at).min(self.geometry.entries_per_sub_region() - slot);
            if map == MapId::NONE || self.store.any_dirty(map, slot, n) {
                return false;
            }
            at += n;
        }
        true
    }

    /// Brings near what [`HpbLu::entry_for`] will touch; false if no entry is held for `block`.
    #[inline]
    pub(crate) fn prefetch(&self, block: u32) -> bool {
        let map = self.valid_map[SubRegionId::of_block(&self.geometry, block)];
        if map == MapId::NONE {
            return false;
        }
        self.store.prefetch(map, self.slot_of(block));
        true
    }

    /// A write or discard of these blocks is about to be sent.
    pub(crate) fn write(&mut self, block: u32, blocks: u32) {
        self.mark_dirty(block, blocks);
        let end = self.end_of(block, blocks);
        if let Some(m) = self.mode.manager_mut() {
            m.note_written(block, end.saturating_sub(block));
        }
        if self.mode.hcm().is_some() && self.state == LuState::Present {
            self.note_write(block, blocks);
        }
    }

    /// Entries of these blocks must not be used until they are loaded again.
    pub(super) fn mark_dirty(&mut self, block: u32, blocks: u32) {
        if !self.options.dirty_bitmap || (self.options.strict_linux && self.state != LuState::Present) {
            return;
        }
        let end = self.end_of(block, blocks);
        let mut at = block;
        while at < end {
            let slot = self.slot_of(at);
            let n = (end - at).min(self.geometry.entries_per_sub_region() - slot);
            let srgn = SubRegionId::of_block(&self.geometry, at);
            let tracked = match self.sub_regions[srgn] {
                SubRegionState::Valid => true,
                // What Linux forgets: the load may bring an entry from before this write.
                SubRegionState::Issued => !self.options.strict_linux,
                SubRegionState::Invalid | SubRegionState::Unused => false,
            };
            if tracked {
                self.store.mark_dirty(self.map_of[srgn], slot, n);
            }
            at += n;
        }
    }

    pub(super) fn end_of(&self, block: u32, blocks: u32) -> u32 {
        (u64::from(block) + u64::from(blocks)).min(u64::from(self.geometry.logical_blocks())) as u32
    }

    /// Sub-regions that these blocks touch.
    fn touched(&self, block: u32, blocks: u32) -> impl Iterator<Item = SubRegionId> + use<> {
        let end = self.end_of(block, blocks);
        let index = |block| self.geometry.index_of_lba(block);
        let touched = if end <= block { 0..0 } else { index(block)..index(end - 1) + 1 };
        touched.map(SubRegionId::new)
    }

    /// Host control mode: counts a read, whether there is an entry for it or not.
    #[inline(never)]
    fn note_read(&mut self, now: Ns, block: u32, blocks: u32) {
        for srgn in self.touched(block, blocks) {
            let region = srgn.region(&self.geometry);
            let Some(hcm) = self.mode.hcm_mut() else { return };
            if self.regions[region] != RegionState::Inactive {
                hcm.rewind(now, region);
            }
            if hcm.read(region, srgn) {
                self.queue_activation(srgn);
            }
        }
        let first = RegionId::from(self.geometry.region_of(block));
        if self.mode.hcm().is_some_and(|hcm| hcm.is_too_high(first, &self.geometry)) {
            self.normalize();
        }
    }

    /// Host control mode: a write makes the reads of a sub-region worthless.
    #[inline(never)]
    fn note_write(&mut self, block: u32, blocks: u32) {
        for srgn in self.touched(block, blocks) {
            let region = srgn.region(&self.geometry);
            if self.mode.hcm_mut().is_some_and(|hcm| hcm.write(region, srgn)) {
                self.queue_activation(srgn);
            }
        }
    }

    #[cold]
    fn normalize(&mut self) {
        let Some(hcm) = self.mode.hcm_mut() else { return };
        hcm.normalize(&self.geometry);
        for region in self.all_regions() {
            let unread = self.mode.hcm().is_some_and(|hcm| hcm.reads_of(region) == 0);
            if unread && self.regions[region] == RegionState::Active {
                self.queue_inactivation(region);
            }
        }
    }
}
