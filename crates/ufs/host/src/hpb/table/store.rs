// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory for maps of sub-regions and their dirty bitmaps, one flat table each. It knows no regions and no states;
//! entries are stored unchanged and never interpreted.

use crate::hpb::HostMemory;
use fixedbitset::FixedBitSet;
use readpath_kit::{huge_vec, prefetch};
use readpath_proto::typed::HpbEntry;

/// A map of a [`MapStore`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct MapId(u32);

impl MapId {
    /// Stands for the absence of a map. A word, not an `Option`: the read path compares it with a map.
    pub(super) const NONE: MapId = MapId(u32::MAX);
}

/// A fixed number of maps of equal size.
pub(super) struct MapStore {
    entries_per_map: u32,
    entries: Vec<u64>,
    dirty: FixedBitSet,
    free: Vec<MapId>,
    maps: u32,
    peak_maps: u32,
}

impl MapStore {
    /// `maps` maps of `entries_per_map` entries. The operating system allocates the memory of a map when it is first
    /// filled.
    pub(super) fn new(maps: u32, entries_per_map: u32) -> Self {
        let entries = maps as usize * entries_per_map as usize;
        MapStore {
            entries_per_map,
            entries: huge_vec(entries),
            dirty: FixedBitSet::with_capacity(entries),
            free: (0..maps).rev().map(MapId).collect(),
            maps,
            peak_maps: 0,
        }
    }

    /// Takes a free map, all zeros and clean.
    pub(super) fn take(&mut self) -> Option<MapId> {
        let map = self.free.pop()?;
        self.peak_maps = self.peak_maps.max(self.maps - self.free.len() as u32);
        let first = self.first(map);
        self.entries[first..first + self.entries_per_map as usize].fill(0);
        self.clean(map);
        Some(map)
    }

    pub(super) fn release(&mut self, map: MapId) {
        self.free.push(map);
    }

    /// Stores the entries returned by HPB READ BUFFER; missing entries become zero.
    pub(super) fn fill(&mut self, map: MapId, bytes: &[u8]) {
        let first = self.first(map);
        let entries = &mut self.entries[first..first + self.entries_per_map as usize];
        let (words, _) = bytes.as_chunks::<8>();
        let n = words.len().min(entries.len());
        for (entry, word) in entries[..n].iter_mut().zip(words) {
            *entry = u64::from_ne_bytes(*word);
        }
        entries[n..].fill(0);
    }

    #[inline]
    pub(super) fn entry(&self, map: MapId, slot: u32) -> HpbEntry {
        HpbEntry(self.entries[self.first(map) + slot as usize].to_ne_bytes())
    }

    #[inline]
    pub(super) fn any_dirty(&self, map: MapId, slot: u32, count: u32) -> bool {
        let first = self.first(map) + slot as usize;
        if count == 1 {
            self.dirty.contains(first)
        } else {
            self.dirty.contains_any_in_range(first..first + count as usize)
        }
    }

    pub(super) fn mark_dirty(&mut self, map: MapId, slot: u32, count: u32) {
        let first = self.first(map) + slot as usize;
        self.dirty.insert_range(first..first + count as usize);
    }

    pub(super) fn clean(&mut self, map: MapId) {
        let first = self.first(map);
        self.dirty.remove_range(first..first + self.entries_per_map as usize);
    }

    #[inline]
    pub(super) fn prefetch(&self, map: MapId, slot: u32) {
        let first = self.first(map) + slot as usize;
        prefetch(&self.entries, first);
        prefetch(self.dirty.as_slice(), first / usize::BITS as usize);
    }

    pub(super) fn maps(&self) -> u32 {
        self.maps
    }

    pub(super) fn used(&self) -> u32 {
        self.maps - self.free.len() as u32
    }

    fn map_bytes(&self) -> u64 {
        u64::from(self.entries_per_map) * 8
    }

    fn bitmap_bytes(&self) -> u64 {
        u64::from(self.entries_per_map).div_ceil(8)
    }

    pub(super) fn bytes_per_map(&self) -> u64 {
        self.map_bytes() + self.bitmap_bytes()
    }

    /// Bytes of a map in the list of free ones, in use or not.
    pub(super) const fn bytes_per_free_map() -> u64 {
        size_of::<MapId>() as u64
    }

    pub(super) fn memory(&self) -> HostMemory {
        let used = u64::from(self.used());
        let (map, bitmap) = (self.map_bytes(), self.bitmap_bytes());
        HostMemory {
            map_bytes: used * map,
            bitmap_bytes: used * bitmap,
            table_bytes: 0,
            peak_bytes: u64::from(self.peak_maps) * (map + bitmap),
        }
    }

    #[inline]
    fn first(&self, map: MapId) -> usize {
        map.0 as usize * self.entries_per_map as usize
    }
}
