// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of maps of a unit: states of regions and sub-regions, the map and dirty bits of each sub-region that has
//! memory, and the bytes of all of them. It knows neither control modes, policies, commands nor time: the drivers
//! above it (`linux`, `managed`) decide what is loaded and dropped.

mod store;
#[cfg(test)]
mod tests;

use super::{HostMemory, RegionState, SubRegionState};
use crate::ids::{Id, RegionId, SubRegionId};
use readpath_proto::hpb::HpbGeometry;
use readpath_proto::typed::HpbEntry;
use std::ops::Range;
use store::{MapId, MapStore};

/// The maps of one logical unit, and their states.
pub(super) struct MapTable {
    geometry: HpbGeometry,
    /// Entries of a sub-region, less one.
    slot_mask: u32,
    regions: Vec<RegionState>,
    sub_regions: Vec<SubRegionState>,
    /// Map of each sub-region that has memory.
    map_of: Vec<MapId>,
    /// The map of each sub-region that is valid: the read path uses this.
    valid_map: Vec<MapId>,
    /// Loads of each sub-region that have failed in a row.
    failures: Vec<u8>,
    store: MapStore,
    pinned: Range<u32>,
}

/// The part of a request that lies in one sub-region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub sub_region: SubRegionId,
    pub block: u32,
    pub blocks: u32,
}

impl MapTable {
    /// A table with memory for `maps` maps. Pinned regions get theirs at once.
    pub(super) fn new(geometry: HpbGeometry, pinned: Range<u32>, maps: u32) -> Self {
        let (regions, sub_regions) = (geometry.regions() as usize, geometry.sub_regions() as usize);
        let mut table = MapTable {
            geometry,
            slot_mask: geometry.entries_per_sub_region() - 1,
            regions: vec![RegionState::Inactive; regions],
            sub_regions: vec![SubRegionState::Unused; sub_regions],
            map_of: vec![MapId::NONE; sub_regions],
            valid_map: vec![MapId::NONE; sub_regions],
            failures: vec![0; sub_regions],
            store: MapStore::new(maps, geometry.entries_per_sub_region()),
            pinned,
        };
        for region in table.pinned_regions() {
            table.regions[region] = RegionState::Pinned;
            for srgn in region.sub_regions(&geometry) {
                table.give_memory(srgn);
                table.sub_regions[srgn] = SubRegionState::Invalid;
            }
        }
        table
    }

    pub(super) fn geometry(&self) -> &HpbGeometry {
        &self.geometry
    }

    pub(super) fn all_regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        (0..self.geometry.regions()).map(RegionId::new)
    }

    pub(super) fn all_sub_regions(&self) -> impl Iterator<Item = SubRegionId> + use<> {
        (0..self.geometry.sub_regions()).map(SubRegionId::new)
    }

    pub(super) fn pinned_regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        self.pinned.clone().map(RegionId::new)
    }

    pub(super) fn pinned_sub_regions(&self) -> impl Iterator<Item = SubRegionId> + use<> {
        let geometry = self.geometry;
        self.pinned_regions().flat_map(move |region| region.sub_regions(&geometry))
    }

    pub(super) fn sub_regions_of(&self, region: RegionId) -> impl Iterator<Item = SubRegionId> + use<> {
        region.sub_regions(&self.geometry)
    }

    pub(super) fn region_of(&self, srgn: SubRegionId) -> RegionId {
        srgn.region(&self.geometry)
    }

    pub(super) fn is_pinned(&self, region: RegionId) -> bool {
        self.pinned.contains(&region.index())
    }

    pub(super) fn region(&self, region: RegionId) -> RegionState {
        self.regions[region]
    }

    pub(super) fn sub_region(&self, srgn: SubRegionId) -> SubRegionState {
        self.sub_regions[srgn]
    }

    /// States of all sub-regions, in the order of their addresses.
    pub(super) fn sub_region_states(&self) -> &[SubRegionState] {
        &self.sub_regions
    }

    pub(super) fn is_valid(&self, srgn: SubRegionId) -> bool {
        self.sub_regions[srgn] == SubRegionState::Valid
    }

    pub(super) fn is_loading(&self, srgn: SubRegionId) -> bool {
        self.sub_regions[srgn] == SubRegionState::Issued
    }

    /// Whether any sub-region of `region` is being loaded.
    pub(super) fn is_loading_any(&self, region: RegionId) -> bool {
        self.sub_regions_of(region).any(|srgn| self.is_loading(srgn))
    }

    pub(super) fn has_memory(&self, srgn: SubRegionId) -> bool {
        self.map_of[srgn] != MapId::NONE
    }

    /// The parts of a request, one for each sub-region that it touches. Blocks beyond the unit are left out.
    #[inline]
    pub(super) fn parts(&self, block: u32, blocks: u32) -> impl Iterator<Item = Part> + use<> {
        let (geometry, mask) = (self.geometry, self.slot_mask);
        let end = (u64::from(block) + u64::from(blocks)).min(u64::from(geometry.logical_blocks())) as u32;
        let mut at = block;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let blocks = (end - at).min(mask + 1 - (at & mask));
            let part = Part { sub_region: SubRegionId::of_block(&geometry, at), block: at, blocks };
            at += blocks;
            Some(part)
        })
    }

    /// Whether no block of the part has been written since its map was loaded. False without a valid map.
    #[inline]
    pub(super) fn is_clean(&self, part: Part) -> bool {
        let map = self.valid_map[part.sub_region];
        map != MapId::NONE && !self.store.any_dirty(map, part.block & self.slot_mask, part.blocks)
    }

    /// Whether any block of a sub-region has been written since its map was loaded.
    pub(super) fn is_dirty(&self, srgn: SubRegionId) -> bool {
        let map = self.valid_map[srgn];
        map != MapId::NONE && self.store.any_dirty(map, 0, self.slot_mask + 1)
    }

    /// The entry of `block`, if those of all `blocks` may be used.
    #[inline(always)]
    pub(super) fn usable_entry(&self, block: u32, blocks: u32) -> Option<HpbEntry> {
        let map = self.valid_map[SubRegionId::of_block(&self.geometry, block)];
        let slot = block & self.slot_mask;
        let usable = if blocks == 1 {
            map != MapId::NONE && !self.store.any_dirty(map, slot, 1)
        } else {
            self.all_clean(block, blocks)
        };
        usable.then(|| self.store.entry(map, slot))
    }

    #[inline(never)]
    fn all_clean(&self, block: u32, blocks: u32) -> bool {
        self.parts(block, blocks).all(|part| self.is_clean(part))
    }

    /// The entry of `block` as it was loaded, dirty or not; zero without memory.
    pub(super) fn stored_entry(&self, block: u32) -> HpbEntry {
        let map = self.map_of[SubRegionId::of_block(&self.geometry, block)];
        if map == MapId::NONE { HpbEntry::ZERO } else { self.store.entry(map, block & self.slot_mask) }
    }

    /// Prefetches the memory that [`MapTable::usable_entry`] touches; false if no entry is held for `block`.
    #[inline]
    pub(super) fn prefetch(&self, block: u32) -> bool {
        let map = self.valid_map[SubRegionId::of_block(&self.geometry, block)];
        if map == MapId::NONE {
            return false;
        }
        self.store.prefetch(map, block & self.slot_mask);
        true
    }

    /// Makes the entries of these blocks dirty until they are loaded again. `during_loads`: also entries that are
    /// being loaded, because the load may bring them from before this write.
    pub(super) fn mark_dirty(&mut self, block: u32, blocks: u32, during_loads: bool) {
        for part in self.parts(block, blocks) {
            let tracked = match self.sub_regions[part.sub_region] {
                SubRegionState::Valid => true,
                SubRegionState::Issued => during_loads,
                SubRegionState::Invalid | SubRegionState::Unused => false,
            };
            if tracked {
                self.store.mark_dirty(self.map_of[part.sub_region], part.block & self.slot_mask, part.blocks);
            }
        }
    }

    /// Clears the dirty bits of a sub-region with memory.
    pub(super) fn clean(&mut self, srgn: SubRegionId) {
        self.store.clean(self.map_of[srgn]);
    }

    /// INACTIVE becomes ACTIVE.
    pub(super) fn activate(&mut self, region: RegionId) {
        self.regions[region] = RegionState::Active;
    }

    /// ACTIVE becomes INACTIVE; nothing of the region has memory.
    pub(super) fn deactivate(&mut self, region: RegionId) {
        debug_assert!(!self.sub_regions_of(region).any(|srgn| self.has_memory(srgn)));
        self.regions[region] = RegionState::Inactive;
    }

    /// A load begins: ISSUED, with memory.
    pub(super) fn begin_load(&mut self, srgn: SubRegionId) {
        if !self.has_memory(srgn) {
            self.give_memory(srgn);
        }
        self.valid_map[srgn] = MapId::NONE;
        self.sub_regions[srgn] = SubRegionState::Issued;
    }

    /// A load has brought entries, or (`None`) keeps the old ones. VALID.
    pub(super) fn end_load(&mut self, srgn: SubRegionId, entries: Option<&[u8]>) {
        let map = self.map_of[srgn];
        if let Some(bytes) = entries {
            self.store.fill(map, bytes);
        }
        self.failures[srgn] = 0;
        self.sub_regions[srgn] = SubRegionState::Valid;
        self.valid_map[srgn] = map;
    }

    /// Entries must not be used, and no load is in progress: INVALID, with memory.
    pub(super) fn stop_use(&mut self, srgn: SubRegionId) {
        self.sub_regions[srgn] = SubRegionState::Invalid;
        self.valid_map[srgn] = MapId::NONE;
    }

    /// VALID becomes INVALID. Other states stay.
    pub(super) fn invalidate(&mut self, srgn: SubRegionId) {
        if self.is_valid(srgn) {
            self.stop_use(srgn);
        }
    }

    /// Counts a failed load; returns whether it was one of at most `retries` in a row. If not, the count restarts.
    pub(super) fn load_failed(&mut self, srgn: SubRegionId, retries: u8) -> bool {
        self.stop_use(srgn);
        self.failures[srgn] += 1;
        let again = self.failures[srgn] <= retries;
        if !again {
            self.failures[srgn] = 0;
        }
        again
    }

    /// Resets the count of failed loads of a sub-region.
    pub(super) fn forget_failures(&mut self, srgn: SubRegionId) {
        self.failures[srgn] = 0;
    }

    /// UNUSED: releases the memory of a sub-region, even during its load.
    pub(super) fn release(&mut self, srgn: SubRegionId) {
        self.sub_regions[srgn] = SubRegionState::Unused;
        self.valid_map[srgn] = MapId::NONE;
        let map = std::mem::replace(&mut self.map_of[srgn], MapId::NONE);
        if map != MapId::NONE {
            self.store.release(map);
        }
    }

    /// Releases all memory of a region: INACTIVE.
    pub(super) fn release_region(&mut self, region: RegionId) {
        self.sub_regions_of(region).for_each(|srgn| self.release(srgn));
        self.deactivate(region);
    }

    fn give_memory(&mut self, srgn: SubRegionId) {
        self.map_of[srgn] = self.store.take().expect("as many maps as active regions can need");
    }

    /// Number of maps with memory.
    pub(super) fn maps(&self) -> u32 {
        self.store.maps()
    }

    /// Maps in use.
    pub(super) fn used(&self) -> u32 {
        self.store.used()
    }

    /// Bytes of a map with its dirty bits.
    pub(super) fn bytes_per_map(&self) -> u64 {
        self.store.bytes_per_map()
    }

    /// Bytes of the list of free maps.
    pub(super) fn free_list_bytes(&self) -> u64 {
        u64::from(self.maps()) * MapStore::bytes_per_free_map()
    }

    /// Memory of maps, dirty bits, and the tables of this struct.
    pub(super) fn memory(&self) -> HostMemory {
        let tables = self.regions.len() + self.sub_regions.len() * (1 + 4 + 4 + 1);
        HostMemory { table_bytes: tables as u64, ..self.store.memory() }
    }
}
