// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map: where each logical block is, which entries SRAM knows to have changed, the map cache, and loads of map
//! pages with their waiters.
//!
//! It may not know superblocks, the journal, or the data in the write buffer, except the slot of a block.
//!
//! *What may be known.* The table always shows the present: a move is noted at once. Outside of flash translation two
//! questions have an answer: what SRAM knows ([`Map::known`]), and what a map page says whose read was paid for
//! ([`Map::translate`]). Only the loads here create the proof of that, [`Paid`].

mod cache;
mod changes;
mod loads;
mod page_map;
mod rests;
mod runs;
pub(in crate::ftl) mod stretch;
#[cfg(test)]
pub(in crate::ftl) mod tests;

pub(crate) use cache::FrameState;
pub(crate) use changes::Changes;
pub(in crate::ftl) use changes::{Change, Merged, Taken};
pub(crate) use loads::{PageAt, Paid};
pub(in crate::ftl) use page_map::Entry;
pub(crate) use page_map::Mapping;

use crate::config::DeviceConfig;
use crate::config::FtlConfig;
use crate::ftl::preset::Preset;
use crate::ids::{Lpn, MapPage};
use cache::MapCache;
use page_map::PageMap;
use readpath_flash::{OpId, Ppn};
use rests::Rests;
use runs::Runs;
use std::collections::VecDeque;

/// Kind of the map.
enum Kind {
    /// Block by block, in map pages.
    Pages(PageMap),
}

pub(crate) struct Map {
    kind: Kind,
    cache: MapCache,
    runs: Runs,
    /// First operation waiting for the page in each frame.
    waiters: Vec<OpId>,
    /// Reads that found a load in progress in every frame.
    stalled: VecDeque<OpId>,
    /// By slot of the write buffer, the entry in flash of the block whose newest data is in that slot.
    under: Vec<Entry>,
    changes: Changes,
    /// Places of the table of changes that programs in progress will take.
    reserved: u32,
    /// When each map page in flash was put together. The page's spare area holds this and is loaded with it into
    /// SRAM.
    written_at: Vec<u32>,
    /// Logical pages from here on belong to zones.
    zones_from: Lpn,
    rests: Rests,
    mapped_end: Lpn,
}

/// Outcome of a change whose map page was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) enum Settled {
    /// The map page now has the block's entry, which was this until now.
    Clean(Entry),
    /// The entry changed again meanwhile, and stays in the table of changes.
    Stays,
}

impl Map {
    /// Nothing is mapped.
    pub(in crate::ftl) fn new(config: &DeviceConfig) -> Self {
        let pages = PageMap::new(config.mapped_blocks(), config.map_page_entries());
        Map::of(pages, config.map_cache_frames(), config.map_runs_bytes, config.write_buffer_blocks, &config.ftl)
    }

    fn of(pages: PageMap, cache_frames: u32, runs_bytes: u32, buffer_slots: u32, settings: &FtlConfig) -> Self {
        let cache = MapCache::new(pages.pages(), cache_frames);
        Map {
            waiters: loads::no_waiters(&cache),
            cache,
            runs: Runs::new(runs_bytes),
            stalled: VecDeque::new(),
            under: vec![Entry::UNMAPPED; buffer_slots as usize],
            changes: Changes::new(pages.pages(), pages.page_entries(), settings),
            reserved: 0,
            written_at: vec![0; pages.pages() as usize],
            zones_from: Lpn(pages.blocks()),
            rests: Rests::default(),
            mapped_end: Lpn(0),
            kind: Kind::Pages(pages),
        }
    }

    #[inline(always)]
    fn table(&self) -> &PageMap {
        let Kind::Pages(table) = &self.kind;
        table
    }

    #[inline(always)]
    fn table_mut(&mut self) -> &mut PageMap {
        let Kind::Pages(table) = &mut self.kind;
        table
    }

    /// What SRAM knows of a block: the write buffer's index or the table of changes. `None` if only its map page knows.
    #[inline(always)]
    pub(crate) fn known(&self, lpn: Lpn) -> Option<Mapping> {
        if self.table().is_preset(lpn) {
            return None;
        }
        let entry = self.table().entry(lpn);
        match entry.mapping() {
            buffered @ Mapping::Buffered(_) => Some(buffered),
            mapping if entry.is_recent() => Some(mapping),
            _ => None,
        }
    }

    /// Where a block is whose map page has been paid for.
    #[inline(always)]
    pub(crate) fn translate(&self, paid: Paid, lpn: Lpn) -> Mapping {
        debug_assert_eq!(self.page_of(lpn), paid.page(), "another map page has been paid for");
        self.get(lpn)
    }

    /// The entry of a block in flash according to its map page, without the write buffer.
    #[inline]
    pub(crate) fn translate_in_flash(&self, paid: Paid, lpn: Lpn) -> Mapping {
        debug_assert_eq!(self.page_of(lpn), paid.page(), "another map page has been paid for");
        self.flash_entry(lpn).mapping()
    }

    /// Where a block is, at no cost: not for decisions of the device.
    #[inline(always)]
    pub(in crate::ftl) fn get(&self, lpn: Lpn) -> Mapping {
        self.table().entry(lpn).mapping()
    }

    /// Logical pages from here on belong to zones.
    pub(in crate::ftl) fn zones_from(&self) -> Lpn {
        self.zones_from
    }

    /// Whether a logical page belongs to a zone: then only rests have entries, which SRAM knows.
    #[inline]
    pub(in crate::ftl) fn is_zoned(&self, lpn: Lpn) -> bool {
        lpn >= self.zones_from
    }

    /// Where a block of a zone lies that is in no whole program.
    pub(in crate::ftl) fn rest(&self, lpn: Lpn) -> Option<Ppn> {
        self.rests.get(lpn)
    }

    /// Such blocks from `first` on, before `end`, in order.
    pub(in crate::ftl) fn rests(&self, first: Lpn, end: Lpn) -> impl Iterator<Item = (Lpn, Ppn)> {
        self.rests.range(first, end)
    }

    /// Moves such a block to `to`, or forgets it; returns where it was.
    pub(in crate::ftl) fn set_rest(&mut self, lpn: Lpn, to: Option<Ppn>) -> Option<Ppn> {
        debug_assert!(self.is_zoned(lpn));
        self.rests.set(lpn, to)
    }

    /// The entry of `lpn` in flash and in the table of changes, without the write buffer.
    #[inline]
    pub(in crate::ftl) fn flash_entry(&self, lpn: Lpn) -> Entry {
        if self.is_zoned(lpn) {
            return self.rest(lpn).map_or(Entry::UNMAPPED, Entry::at).recent();
        }
        flash_entry(self.table(), &self.under, lpn)
    }

    #[inline]
    fn set_flash_entry(&mut self, lpn: Lpn, entry: Entry) {
        match self.get(lpn) {
            Mapping::Buffered(slot) => self.under[usize::from(slot)] = entry,
            _ => self.table_mut().set(lpn, entry),
        }
    }

    /// Whether SRAM knows that a block is unmapped: by the table of changes, or because it has no map page.
    pub(in crate::ftl) fn is_known_unmapped(&self, lpn: Lpn) -> bool {
        let page = self.page_of(lpn);
        match self.known(lpn) {
            Some(mapping) => mapping == Mapping::Unmapped,
            None => self.directory(page).is_none() && !self.changes.is_being_written(page),
        }
    }

    /// The newest data of a block is in this slot of the write buffer.
    #[inline]
    pub(in crate::ftl) fn enter_buffer(&mut self, lpn: Lpn, slot: u16) {
        self.under[usize::from(slot)] = self.flash_entry(lpn);
        self.table_mut().set(lpn, Entry::buffered(slot));
    }

    /// The newest data of a block is no longer in this slot, if it was.
    #[inline]
    pub(in crate::ftl) fn leave_buffer(&mut self, lpn: Lpn, slot: u16) {
        if self.get(lpn) == Mapping::Buffered(slot) {
            let under = self.under[usize::from(slot)];
            self.table_mut().set(lpn, under);
        }
    }

    /// Moves `lpn` in flash to `to` (clean), which goes into the table of changes. Returns the old entry.
    #[inline]
    pub(in crate::ftl) fn relocate(&mut self, lpn: Lpn, to: Entry) -> Entry {
        let old = self.flash_entry(lpn);
        if !old.is_recent() {
            self.changes.add(self.page_of(lpn), lpn, old);
        } else if old.mapping().flash().is_some() {
            self.changes.names_slice(false);
        }
        if to.mapping().flash().is_some() {
            self.changes.names_slice(true);
        }
        self.runs.cut(self.table().page_of(lpn), lpn);
        self.set_flash_entry(lpn, to.recent());
        old
    }

    /// Adds trimmed stretches within `page`, each of which takes a place of the table of changes.
    pub(in crate::ftl) fn add_trims(&mut self, page: MapPage, stretches: u32) {
        self.changes.add_trims(page, stretches);
    }

    /// Chooses a page whose changes are worth writing back, in turn.
    pub(in crate::ftl) fn worth_writing(&mut self) -> Option<MapPage> {
        self.changes.worth_writing()
    }

    /// `page` is going to be written back: it is not offered again until then.
    pub(in crate::ftl) fn begin_write(&mut self, page: MapPage) {
        self.changes.begin_write(page);
        self.changes.each_of_page(page, |change| self.prefetch(change.lpn));
    }

    /// Puts a map page together in its present state. Its changes keep their places until it is in flash.
    pub(in crate::ftl) fn put_together(&mut self, paid: Paid) -> Taken {
        let taken = self.changes.take(paid.page());
        let (Kind::Pages(table), under) = (&self.kind, &self.under);
        self.changes.merge(taken, |lpn| flash_entry(table, under, lpn));
        taken
    }

    /// Settles a change whose map page in flash now says `merged`.
    #[inline]
    pub(in crate::ftl) fn settle(&mut self, page: MapPage, change: Change, merged: Entry) -> Settled {
        let entry = self.flash_entry(change.lpn);
        if entry.clean() != merged {
            self.changes.add(page, change.lpn, merged);
            return Settled::Stays;
        }
        if merged.mapping().flash().is_some() {
            self.changes.names_slice(false);
        }
        self.set_flash_entry(change.lpn, merged);
        Settled::Clean(entry)
    }

    /// All changes of `page` are settled; it begins at `at` and was put together at `tick`. Returns its old place.
    pub(in crate::ftl) fn written(&mut self, page: MapPage, at: Ppn, tick: u32) -> Option<Ppn> {
        let old = self.directory(page);
        self.place_page(page, at, tick);
        self.changes.written(page);
        old
    }

    /// Recovery has found where a map page begins.
    pub(in crate::ftl) fn set_directory(&mut self, page: MapPage, at: Option<Ppn>) {
        self.table_mut().set_directory(page, at);
    }

    /// A map page begins at `at` and was put together at `tick`.
    pub(in crate::ftl) fn place_page(&mut self, page: MapPage, at: Ppn, tick: u32) {
        self.table_mut().set_directory(page, Some(at));
        self.written_at[page.index()] = tick;
    }

    pub(in crate::ftl) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Takes some of the merged changes, each with its entry in the new map page. Empty when none is left.
    pub(in crate::ftl) fn next_merged(&mut self, taken: &mut Taken) -> Merged {
        self.changes.next_merged(taken)
    }

    /// Reserves places of the table of changes for a unit of data, if there is room.
    pub(in crate::ftl) fn reserve(&mut self, unit: u32) {
        self.reserved += unit;
    }

    /// A unit of data has used its reserved places, or does not need them.
    pub(in crate::ftl) fn release(&mut self, unit: u32) {
        self.reserved -= unit;
    }

    /// Places of the table of changes that are neither used nor reserved.
    pub(in crate::ftl) fn room(&self) -> u32 {
        self.changes.room().saturating_sub(self.reserved)
    }

    /// Whether the table of changes is so full that map pages have to be written back.
    pub(in crate::ftl) fn wants_write_back(&self) -> bool {
        u64::from(self.changes.used() + self.reserved) * 4 > u64::from(self.changes.limit()) * 3
    }

    /// Whether a place of the table of changes is used or reserved.
    pub(in crate::ftl) fn has_changes(&self) -> bool {
        self.changes.used() + self.reserved > 0
    }

    /// When a map page in flash was put together, according to its spare area.
    pub(in crate::ftl) fn written_at(&self, paid: Paid) -> u32 {
        self.put_together_at(paid.page())
    }

    /// [`Map::written_at`] at no cost: not for decisions of the device.
    pub(in crate::ftl) fn put_together_at(&self, page: MapPage) -> u32 {
        self.written_at[page.index()]
    }

    /// The slice where a map page begins; `None` if there is no such page yet. The directory is SRAM.
    #[inline(always)]
    pub(in crate::ftl) fn directory(&self, page: MapPage) -> Option<Ppn> {
        self.table().directory(page)
    }

    /// The map page of a block.
    #[inline(always)]
    pub(crate) fn page_of(&self, lpn: Lpn) -> MapPage {
        self.table().page_of(lpn)
    }

    /// The logical page after the last of a map page.
    pub(in crate::ftl) fn end_of(&self, page: MapPage) -> Lpn {
        self.table().end_of(page)
    }

    /// The logical pages of a map page.
    pub(in crate::ftl) fn blocks_of(&self, page: MapPage) -> impl Iterator<Item = Lpn> + use<> {
        self.table().blocks_of(page)
    }

    /// Entries of a map page.
    #[inline(always)]
    pub(crate) fn page_entries(&self) -> u32 {
        self.table().page_entries()
    }

    pub(in crate::ftl) fn all_pages(&self) -> impl Iterator<Item = MapPage> + use<> {
        (0..self.pages()).map(MapPage)
    }

    /// Number of map pages.
    pub(in crate::ftl) fn pages(&self) -> u32 {
        self.table().pages()
    }

    /// Prefetches the memory that the translation of a block touches.
    #[inline(always)]
    pub(crate) fn prefetch(&self, lpn: Lpn) {
        self.table().prefetch(lpn);
    }

    /// Prefetches the memory that [`Map::relocate`] touches.
    #[inline]
    pub(in crate::ftl) fn prefetch_change(&self, lpn: Lpn) {
        if !self.is_zoned(lpn) {
            self.prefetch(lpn);
            self.changes.prefetch(self.page_of(lpn));
        }
    }

    /// Bytes of SRAM that the directory takes.
    pub(in crate::ftl) fn directory_bytes(&self) -> u64 {
        self.table().directory_bytes()
    }

    /// Bytes of this process's memory that grow with the size of the modelled device.
    pub(in crate::ftl) fn process_bytes(&self) -> u64 {
        self.table().process_bytes()
    }

    /// Makes the entries of a range clean, as if it had been written. Returns whether the formula stands for some of
    /// them.
    pub(in crate::ftl) fn preset(&mut self, preset: &Preset) -> bool {
        let (first, blocks) = preset.range();
        self.runs.clear();
        self.mapped_end = self.mapped_end.max(first + blocks);
        self.table_mut().preset(preset)
    }

    /// On a device that was never written, no block from here on is mapped.
    pub(in crate::ftl) fn mapped_end(&self) -> Lpn {
        self.mapped_end
    }

    /// Counts `n` lookups of entries.
    #[inline(always)]
    pub(crate) fn count_lookups(&mut self, n: u32) {
        self.table_mut().count_lookups(n);
    }

    /// Many entries of a map page will be read, and perhaps again.
    pub(crate) fn will_be_read(&mut self, page: MapPage) {
        self.table_mut().will_be_read(page);
    }

    /// For a new device: loads a map page found at `at`, with these entries from its first block on.
    pub(in crate::ftl) fn load_page(
        &mut self,
        page: MapPage,
        at: Ppn,
        tick: u32,
        entries: impl Iterator<Item = Entry>,
    ) {
        self.blocks_of(page).zip(entries).for_each(|(lpn, entry)| self.table_mut().set(lpn, entry));
        self.mapped_end = self.mapped_end.max(self.end_of(page));
        self.place_page(page, at, tick);
    }

    /// SRAM is lost: entries are those of map pages in flash. `held` are blocks and slots of the write buffer,
    /// `on_their_way` the changes being written back.
    pub(in crate::ftl) fn power_cut(
        &mut self,
        held: impl Iterator<Item = (Lpn, u16)>,
        on_their_way: impl Iterator<Item = Taken>,
    ) {
        let zones_from = self.zones_from;
        for (lpn, slot) in held.filter(|&(lpn, _)| lpn < zones_from) {
            self.leave_buffer(lpn, slot);
        }
        self.rests.clear();
        let Kind::Pages(table) = &mut self.kind;
        for taken in on_their_way {
            self.changes.each_of(taken, |change| table.set(change.lpn, change.persisted));
        }
        self.changes.clear(|change| table.set(change.lpn, change.persisted));
        self.cache = MapCache::new(self.pages(), self.cache.frames());
        self.waiters = loads::no_waiters(&self.cache);
        self.runs.clear();
        self.stalled.clear();
        self.reserved = 0;
    }

    /// Forgets all map pages: nothing in flash leads to them any more.
    pub(in crate::ftl) fn lose_pages(&mut self) {
        self.table_mut().forget_entries();
    }
}

#[inline]
fn flash_entry(table: &PageMap, under: &[Entry], lpn: Lpn) -> Entry {
    let entry = table.entry(lpn);
    match entry.mapping() {
        Mapping::Buffered(slot) => under[usize::from(slot)],
        _ => entry,
    }
}
