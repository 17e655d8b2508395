// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map: where each logical block is, which entries SRAM knows to have changed, map pages in SRAM, their loads and
//! what waits for them.
//!
//! It may not know superblocks, the journal, or the data in the write buffer; of that it knows only the slot of a
//! block.
//!
//! *What may be known.* The table is kept as it will be found: a move is noted at once. Outside of flash translation
//! two questions have an answer: what SRAM knows ([`Map::known`]), and what a map page says whose read was paid for
//! ([`Map::translate`]). Only the loads here make the proof of that, [`Paid`].

mod cache;
mod changes;
mod loads;
mod page_map;
pub(in crate::ftl) mod stretch;
#[cfg(test)]
pub(in crate::ftl) mod tests;

pub(crate) use cache::FrameState;
pub(crate) use changes::Changes;
pub(in crate::ftl) use changes::{Change, Merged, Taken};
pub(crate) use loads::{InReadBuffer, Paid};
pub(in crate::ftl) use page_map::Entry;
pub(crate) use page_map::Mapping;

use super::FtlConfig;
use crate::config::DeviceConfig;
use crate::ids::{Lpn, MapPage};
use cache::MapCache;
use page_map::PageMap;
use readpath_flash::{OpId, Ppn};
use std::collections::VecDeque;

/// How logical blocks are mapped.
enum Kind {
    /// Block by block, in map pages.
    Pages(PageMap),
}

/// See the module.
pub(in crate::ftl) struct Map {
    kind: Kind,
    cache: MapCache,
    /// First operation waiting for the page in each frame.
    waiters: Vec<OpId>,
    /// Reads whose map page found every frame taken by a load.
    stalled: VecDeque<OpId>,
    /// By slot of the write buffer, what flash holds of the block whose newest data is there.
    under: Vec<Entry>,
    changes: Changes,
    /// Places of the table of changes that programs in progress will take.
    reserved: u32,
    /// When each map page in flash was put together. Its spare area says so and comes with it into SRAM.
    written_at: Vec<u32>,
}

/// What becomes of a change whose map page was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ftl) enum Settled {
    /// The map page says what the block's entry says, which was this until now.
    Clean(Entry),
    /// It changed again meanwhile, and stays in the table of changes.
    Stays,
}

impl Map {
    /// Nothing is mapped.
    pub(crate) fn new(config: &DeviceConfig) -> Self {
        let pages = PageMap::new(config.logical_blocks(), config.map_page_entries());
        Map::of(pages, config.map_cache_frames(), config.write_buffer_blocks, &config.ftl)
    }

    fn of(pages: PageMap, cache_frames: u32, buffer_slots: u32, settings: &FtlConfig) -> Self {
        let cache = MapCache::new(pages.pages(), cache_frames);
        Map {
            waiters: loads::no_waiters(&cache),
            cache,
            stalled: VecDeque::new(),
            under: vec![Entry::UNMAPPED; buffer_slots as usize],
            changes: Changes::new(pages.pages(), pages.page_entries(), settings),
            reserved: 0,
            written_at: vec![0; pages.pages() as usize],
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
        let entry = self.table().entry(lpn);
        match entry.mapping() {
            buffered @ Mapping::Buffered(_) => Some(buffered),
            mapping if entry.is_recent() => Some(mapping),
            _ => None,
        }
    }

    /// Where a block is, whose map page has been paid for.
    #[inline(always)]
    pub(crate) fn translate(&self, paid: Paid, lpn: Lpn) -> Mapping {
        debug_assert_eq!(self.page_of(lpn), paid.page(), "another map page has been paid for");
        self.get(lpn)
    }

    /// What the map page of a block says as far as flash is concerned, whatever the write buffer holds.
    #[inline]
    pub(crate) fn translate_in_flash(&self, paid: Paid, lpn: Lpn) -> Mapping {
        debug_assert_eq!(self.page_of(lpn), paid.page(), "another map page has been paid for");
        self.flash_entry(lpn).mapping()
    }

    /// Where a block is, at no cost: for what is not a decision of the device.
    #[inline]
    pub(crate) fn get(&self, lpn: Lpn) -> Mapping {
        self.table().entry(lpn).mapping()
    }

    /// What flash, and the changes that SRAM holds, say of `lpn`, whatever the write buffer holds.
    #[inline]
    pub(crate) fn flash_entry(&self, lpn: Lpn) -> Entry {
        flash_entry(self.table(), &self.under, lpn)
    }

    #[inline]
    fn set_flash_entry(&mut self, lpn: Lpn, entry: Entry) {
        match self.get(lpn) {
            Mapping::Buffered(slot) => self.under[usize::from(slot)] = entry,
            _ => self.table_mut().set(lpn, entry),
        }
    }

    /// Whether SRAM knows that a block lies nowhere: the table of changes says so, or there is no map page that could
    /// say otherwise.
    pub(crate) fn is_known_unmapped(&self, lpn: Lpn) -> bool {
        let page = self.page_of(lpn);
        match self.known(lpn) {
            Some(mapping) => mapping == Mapping::Unmapped,
            None => self.directory(page).is_none() && !self.changes.is_being_written(page),
        }
    }

    /// The newest data of a block is in this slot of the write buffer.
    #[inline]
    pub(crate) fn enter_buffer(&mut self, lpn: Lpn, slot: u16) {
        self.under[usize::from(slot)] = self.flash_entry(lpn);
        self.table_mut().set(lpn, Entry::buffered(slot));
    }

    /// The newest data of a block is no longer in this slot, if it was.
    #[inline]
    pub(crate) fn leave_buffer(&mut self, lpn: Lpn, slot: u16) {
        if self.get(lpn) == Mapping::Buffered(slot) {
            let under = self.under[usize::from(slot)];
            self.table_mut().set(lpn, under);
        }
    }

    /// As far as flash is concerned, `lpn` is now at `to` (clean), which goes into the table of changes. Returns what
    /// its entry was.
    #[inline]
    pub(crate) fn relocate(&mut self, lpn: Lpn, to: Entry) -> Entry {
        let old = self.flash_entry(lpn);
        if !old.is_recent() {
            self.changes.add(self.page_of(lpn), lpn, old);
        } else if old.mapping().flash().is_some() {
            self.changes.names_slice(false);
        }
        if to.mapping().flash().is_some() {
            self.changes.names_slice(true);
        }
        self.set_flash_entry(lpn, to.recent());
        old
    }

    /// Stretches within `page` were trimmed: so many further places of the table of changes.
    pub(crate) fn add_trims(&mut self, page: MapPage, stretches: u32) {
        self.changes.add_trims(page, stretches);
    }

    /// A page whose changes are worth writing back, taken in turn.
    pub(crate) fn worth_writing(&mut self) -> Option<MapPage> {
        self.changes.worth_writing()
    }

    /// `page` is going to be written: it is not offered again before that is done.
    pub(crate) fn begin_write(&mut self, page: MapPage) {
        self.changes.begin_write(page);
        self.changes.each_of_page(page, |change| self.prefetch(change.lpn));
    }

    /// Puts a map page together as it is now. Its changes keep their places until it is in flash.
    pub(crate) fn put_together(&mut self, paid: Paid) -> Taken {
        let taken = self.changes.take(paid.page());
        let (Kind::Pages(table), under) = (&self.kind, &self.under);
        self.changes.merge(taken, |lpn| flash_entry(table, under, lpn));
        taken
    }

    /// The map page in flash says `merged` of a change.
    #[inline]
    pub(crate) fn settle(&mut self, page: MapPage, change: Change, merged: Entry) -> Settled {
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

    /// All changes of `page` are settled: it begins at `at`, and was put together at `tick`. Returns where it was.
    pub(crate) fn written(&mut self, page: MapPage, at: Ppn, tick: u32) -> Option<Ppn> {
        let old = self.directory(page);
        self.place_page(page, at, tick);
        self.changes.written(page);
        old
    }

    /// Recovery has found where a map page begins.
    pub(crate) fn set_directory(&mut self, page: MapPage, at: Option<Ppn>) {
        self.table_mut().set_directory(page, at);
    }

    /// A map page begins at `at` and was put together at `tick`.
    pub(crate) fn place_page(&mut self, page: MapPage, at: Ppn, tick: u32) {
        self.table_mut().set_directory(page, Some(at));
        self.written_at[page.index()] = tick;
    }

    /// The table of changes, to look at.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Takes some of the changes that were merged, each with what the map page now says. Empty when none is left.
    pub(crate) fn next_merged(&mut self, taken: &mut Taken) -> Merged {
        self.changes.next_merged(taken)
    }

    /// Reserves places of the table of changes for a unit of data, if there is room.
    pub(crate) fn reserve(&mut self, unit: u32) {
        self.reserved += unit;
    }

    /// A unit of data has taken its places, or needs none.
    pub(crate) fn release(&mut self, unit: u32) {
        self.reserved -= unit;
    }

    /// Places of the table of changes that neither changes nor programs in progress take.
    pub(crate) fn room(&self) -> u32 {
        self.changes.room().saturating_sub(self.reserved)
    }

    /// Whether the table of changes is so full that map pages have to be written back.
    pub(crate) fn wants_write_back(&self) -> bool {
        u64::from(self.changes.used() + self.reserved) * 4 > u64::from(self.changes.limit()) * 3
    }

    /// Whether a program in progress or a change takes a place of the table of changes.
    pub(crate) fn has_changes(&self) -> bool {
        self.changes.used() + self.reserved > 0
    }

    /// When a map page in flash was put together, which its spare area says.
    pub(crate) fn written_at(&self, paid: Paid) -> u32 {
        self.put_together_at(paid.page())
    }

    /// The same at no cost: for what is not a decision of the device.
    pub(crate) fn put_together_at(&self, page: MapPage) -> u32 {
        self.written_at[page.index()]
    }

    /// The slice where a map page begins; `None` if there is no such page yet. The directory is SRAM.
    #[inline(always)]
    pub(crate) fn directory(&self, page: MapPage) -> Option<Ppn> {
        self.table().directory(page)
    }

    /// The map page of a block.
    #[inline(always)]
    pub(crate) fn page_of(&self, lpn: Lpn) -> MapPage {
        self.table().page_of(lpn)
    }

    /// The logical page behind the last of a map page.
    pub(crate) fn end_of(&self, page: MapPage) -> Lpn {
        self.table().end_of(page)
    }

    /// The logical pages of a map page.
    pub(crate) fn blocks_of(&self, page: MapPage) -> impl Iterator<Item = Lpn> + use<> {
        self.table().blocks_of(page)
    }

    /// Entries of a map page.
    #[inline(always)]
    pub(crate) fn page_entries(&self) -> u32 {
        self.table().page_entries()
    }

    /// Every map page.
    pub(crate) fn all_pages(&self) -> impl Iterator<Item = MapPage> + use<> {
        (0..self.pages()).map(MapPage)
    }

    /// Map pages.
    pub(crate) fn pages(&self) -> u32 {
        self.table().pages()
    }

    /// Brings near what the translation of a block will touch.
    #[inline(always)]
    pub(crate) fn prefetch(&self, lpn: Lpn) {
        self.table().prefetch(lpn);
    }

    /// Brings near what [`Map::relocate`] will touch.
    #[inline]
    pub(crate) fn prefetch_change(&self, lpn: Lpn) {
        self.prefetch(lpn);
        self.changes.prefetch(self.page_of(lpn));
    }

    /// Bytes of SRAM that the directory takes.
    pub(crate) fn directory_bytes(&self) -> u64 {
        self.table().directory_bytes()
    }

    /// Bytes of this process's memory that grow with the size of the modelled device.
    pub(crate) fn process_bytes(&self) -> u64 {
        self.table().process_bytes()
    }

    /// Fills `lpn..lpn + count` with clean entries for the slices that `ppn_of` names, as if they had been written.
    pub(crate) fn preset(&mut self, lpn: Lpn, count: u32, ppn_of: impl FnMut(u32) -> Ppn) {
        self.table_mut().preset(lpn, count, ppn_of);
    }

    /// Of a new device: a map page was found at `at`, with these entries from its first block on.
    pub(crate) fn load_page(&mut self, page: MapPage, at: Ppn, tick: u32, entries: impl Iterator<Item = Entry>) {
        self.blocks_of(page).zip(entries).for_each(|(lpn, entry)| self.table_mut().set(lpn, entry));
        self.place_page(page, at, tick);
    }

    /// SRAM is lost: entries are what map pages in flash say. `held` are blocks and slots of the write buffer,
    /// `on_their_way` the changes whose map pages are being written.
    pub(crate) fn power_cut(
        &mut self,
        held: impl Iterator<Item = (Lpn, u16)>,
        on_their_way: impl Iterator<Item = Taken>,
    ) {
        for (lpn, slot) in held {
            self.leave_buffer(lpn, slot);
        }
        let Kind::Pages(table) = &mut self.kind;
        for taken in on_their_way {
            self.changes.each_of(taken, |change| table.set(change.lpn, change.persisted));
        }
        self.changes.clear(|change| table.set(change.lpn, change.persisted));
        self.cache = MapCache::new(self.pages(), self.cache.frames());
        self.waiters = loads::no_waiters(&self.cache);
        self.stalled.clear();
        self.reserved = 0;
    }

    /// Nothing in flash leads to a map page any more.
    pub(crate) fn lose_pages(&mut self) {
        self.table_mut().forget_entries();
    }
}

/// See [`Map::flash_entry`].
#[inline]
fn flash_entry(table: &PageMap, under: &[Entry], lpn: Lpn) -> Entry {
    let entry = table.entry(lpn);
    match entry.mapping() {
        Mapping::Buffered(slot) => under[usize::from(slot)],
        _ => entry,
    }
}
