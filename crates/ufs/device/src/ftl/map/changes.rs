// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of changes: entries of the map that differ from their map page in flash, ordered by map page so that one
//! write-back settles many. It knows neither time nor where map pages lie.
//!
//! The modelled device holds, for each change, the logical page, its new slice and two links (12 bytes, see
//! [`Changes::sram_bytes`]), and for each trimmed stretch its bounds. The entry that the map page in flash has
//! instead is kept here for the simulation only: it is the entry after a power cut, and what a write-back learns when
//! it reads the page.

use super::Entry;
use crate::config::{CHANGE_BYTES, FtlConfig};
use crate::ids::{Lpn, MapPage};
use fixedbitset::FixedBitSet;
use readpath_kit::prefetch;

const NIL: u32 = u32::MAX;

/// A changed entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    /// Logical page.
    pub lpn: Lpn,
    /// The entry in the map page in flash; clean.
    pub persisted: Entry,
}

/// Changes of one map page: as many as a cache line holds, because they are visited together. A chunk that is being
/// written back is followed by another without changes: the clean entries that the new map page has.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Chunk {
    len: u32,
    next: u32,
    changes: [Change; Chunk::LEN],
}

impl Chunk {
    const LEN: usize = 7;
    const EMPTY: Chunk =
        Chunk { len: 0, next: NIL, changes: [Change { lpn: Lpn(0), persisted: Entry::UNMAPPED }; Chunk::LEN] };

    fn changes(&self) -> &[Change] {
        &self.changes[..self.len as usize]
    }
}

const _: () = assert!(size_of::<Chunk>() == 64);

#[derive(Default)]
pub(crate) struct Changes {
    /// Its address space covers the most chunks there can be: a TRIM may change every entry of the map, and growing
    /// the vector by doubling would for a moment take more memory than all else.
    chunks: Vec<Chunk>,
    /// First unused chunk.
    free: u32,
    /// First chunk of each map page, the only one that need not be full.
    head: Vec<u32>,
    count: Vec<u32>,
    /// Trimmed stretches by map page; below, those whose map page is being written back.
    trims: Vec<u32>,
    trims_taken: Vec<u32>,
    dirty: FixedBitSet,
    /// Pages that are being written back: their further changes wait.
    busy: FixedBitSet,
    dirty_pages: u32,
    total: u32,
    in_flash: u32,
    trim_count: u32,
    limit: u32,
    hand: u32,
}

impl Changes {
    /// An empty table for a map of `pages` pages of `page_entries` entries each.
    pub(crate) fn new(pages: u32, page_entries: u32, settings: &FtlConfig) -> Self {
        let mut chunks = Vec::new();
        // A page being written back has its changes, their merged entries, and newer changes. Untouched memory is not
        // allocated; if the address space is not available, the vector grows as others do.
        let most_pages = pages as usize + 2 * settings.map_write_pages as usize;
        chunks.try_reserve_exact(most_pages * page_entries.div_ceil(Chunk::LEN as u32) as usize).ok();
        Changes {
            chunks,
            free: NIL,
            head: vec![NIL; pages as usize],
            count: vec![0; pages as usize],
            trims: vec![0; pages as usize],
            trims_taken: vec![0; pages as usize],
            dirty: FixedBitSet::with_capacity(pages as usize),
            busy: FixedBitSet::with_capacity(pages as usize),
            limit: settings.map_changes,
            ..Changes::default()
        }
    }

    /// Adds a change of an entry of `page`, clean until now; `persisted` is the clean entry.
    pub(crate) fn add(&mut self, page: MapPage, lpn: Lpn, persisted: Entry) {
        let change = Change { lpn, persisted: persisted.clean() };
        let mut head = self.head[page.index()];
        if head == NIL || self.chunks[head as usize].len as usize == Chunk::LEN {
            head = self.take_chunk(head);
            self.head[page.index()] = head;
        }
        let chunk = &mut self.chunks[head as usize];
        chunk.changes[chunk.len as usize % Chunk::LEN] = change;
        chunk.len += 1;
        self.count[page.index()] += 1;
        self.total += 1;
        self.mark(page);
    }

    /// Prefetches the memory that [`Changes::add`] touches for `page`.
    #[inline]
    pub(crate) fn prefetch(&self, page: MapPage) {
        prefetch(&self.chunks, self.head[page.index()] as usize);
    }

    /// Takes an empty chunk and links it before `next`.
    fn take_chunk(&mut self, next: u32) -> u32 {
        let index = self.free;
        if index == NIL {
            self.chunks.push(Chunk { next, ..Chunk::EMPTY });
            return self.chunks.len() as u32 - 1;
        }
        let chunk = &mut self.chunks[index as usize];
        self.free = chunk.next;
        chunk.len = 0;
        chunk.next = next;
        index
    }

    fn mark(&mut self, page: MapPage) {
        if !self.busy.contains(page.index()) && !self.dirty.put(page.index()) {
            self.dirty_pages += 1;
        }
    }

    /// Counts that a change now names a slice (`true`), or no longer does.
    #[inline]
    pub(crate) fn names_slice(&mut self, names: bool) {
        if names {
            self.in_flash += 1;
        } else {
            self.in_flash -= 1;
        }
    }

    /// Adds trimmed stretches within `page`.
    pub(crate) fn add_trims(&mut self, page: MapPage, stretches: u32) {
        self.trims[page.index()] += stretches;
        self.trim_count += stretches;
        self.mark(page);
    }

    /// Map pages with trimmed stretches, and how many; without those being written back.
    pub(crate) fn trims(&self) -> impl Iterator<Item = (MapPage, u32)> {
        self.pages().map(|page| (MapPage(page as u32), self.trims[page])).filter(|&(_, stretches)| stretches > 0)
    }

    /// A superset of the map pages with changes or trims that have not been taken: few of all.
    fn pages(&self) -> impl Iterator<Item = usize> {
        (&self.dirty | &self.busy).into_ones()
    }

    /// Takes the changes of `page` out, to be written back. They keep their places until they are in flash.
    pub(crate) fn take(&mut self, page: MapPage) -> Taken {
        let page = page.index();
        let first = std::mem::replace(&mut self.head[page], NIL);
        self.total -= std::mem::take(&mut self.count[page]);
        self.trims_taken[page] += std::mem::take(&mut self.trims[page]);
        self.unmark(page);
        Taken(first)
    }

    fn unmark(&mut self, page: usize) {
        self.dirty_pages -= u32::from(self.dirty.contains(page));
        self.dirty.remove(page);
    }

    /// `page` is going to be written back: it is not offered again until [`Changes::written`].
    pub(crate) fn begin_write(&mut self, page: MapPage) {
        self.busy.insert(page.index());
        self.unmark(page.index());
    }

    /// `page` has been written back; newer changes are offered from now on.
    pub(crate) fn written(&mut self, page: MapPage) {
        self.busy.remove(page.index());
        self.trim_count -= std::mem::take(&mut self.trims_taken[page.index()]);
        if self.count[page.index()] > 0 || self.trims[page.index()] > 0 {
            self.mark(page);
        }
    }

    pub(crate) fn is_being_written(&self, page: MapPage) -> bool {
        self.busy.contains(page.index())
    }

    /// Notes the clean entry that the new map page has for each change; `entry_of` gives it by logical page.
    pub(crate) fn merge(&mut self, taken: Taken, mut entry_of: impl FnMut(Lpn) -> Entry) {
        let mut at = taken.0;
        while at != NIL {
            let chunk = self.chunks[at as usize];
            let behind = self.take_chunk(chunk.next);
            for (change, merged) in chunk.changes().iter().zip(&mut self.chunks[behind as usize].changes) {
                merged.persisted = entry_of(change.lpn).clean();
            }
            self.chunks[at as usize].next = behind;
            at = chunk.next;
        }
    }

    /// Takes some of the merged changes, each with its entry in the new map page; the rest stays in `taken`. Empty
    /// when none is left.
    pub(crate) fn next_merged(&mut self, taken: &mut Taken) -> Merged {
        let at = taken.0;
        if at == NIL {
            return Merged { chunk: Chunk::EMPTY, merged: Chunk::EMPTY };
        }
        let chunk = self.chunks[at as usize];
        let merged = self.chunks[chunk.next as usize];
        taken.0 = merged.next;
        self.chunks[chunk.next as usize].next = self.free;
        self.free = at;
        Merged { chunk, merged }
    }

    /// Passes every change that has not been taken to `each`.
    pub(crate) fn each(&self, mut each: impl FnMut(Change)) {
        for page in self.pages() {
            self.each_of(Taken(self.head[page]), &mut each);
        }
    }

    /// Passes every change of `page` that has not been taken to `each`.
    pub(crate) fn each_of_page(&self, page: MapPage, each: impl FnMut(Change)) {
        self.each_of(Taken(self.head[page.index()]), each);
    }

    /// Passes every change of a chain to `each`.
    pub(crate) fn each_of(&self, taken: Taken, mut each: impl FnMut(Change)) {
        let mut at = taken.0;
        while at != NIL {
            let chunk = &self.chunks[at as usize];
            chunk.changes().iter().for_each(|&change| each(change));
            at = chunk.next;
        }
    }

    /// Places of the table that are free.
    pub(crate) fn room(&self) -> u32 {
        self.limit.saturating_sub(self.used())
    }

    /// Places of the table in use.
    pub(crate) fn used(&self) -> u32 {
        self.in_flash + self.trim_count
    }

    /// Whether the changes exceed the places, as only recovery can cause.
    pub(crate) fn is_over_full(&self) -> bool {
        self.used() > self.limit
    }

    /// Places of the table.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// A page with at least as many changes as the mean of changed pages, taken in turn.
    pub(crate) fn worth_writing(&mut self) -> Option<MapPage> {
        if self.dirty_pages == 0 {
            return None;
        }
        let mean = self.total / self.dirty_pages.max(1);
        let pages = self.head.len() as u32;
        // Pages being written back count in the total but are not offered, so no page may reach the mean.
        let good = |page: &usize| self.count[*page] >= mean || self.trims[*page] > 0;
        let hand = self.hand as usize;
        let found = self
            .dirty
            .ones_in(hand..pages as usize)
            .find(good)
            .or_else(|| self.dirty.ones_in(0..hand).find(good))
            .or_else(|| self.dirty.ones_in(0..pages as usize).next())?;
        self.hand = (found as u32 + 1) % pages;
        Some(MapPage(found as u32))
    }

    /// Bytes of SRAM: the changes, and for each map page the first of them and their number.
    pub(crate) fn sram_bytes(&self) -> u64 {
        u64::from(self.limit) * CHANGE_BYTES + self.head.len() as u64 * 4
    }

    /// Drops everything; `each` gets the changes.
    pub(crate) fn clear(&mut self, mut each: impl FnMut(Change)) {
        for page in 0..self.head.len() as u32 {
            let taken = self.take(MapPage(page));
            self.each_of(taken, &mut each);
        }
        self.chunks.clear();
        self.busy.clear();
        self.free = NIL;
        self.in_flash = 0;
        self.trims_taken.fill(0);
        self.trim_count = 0;
    }
}

/// Changes of one map page that is being written back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken(u32);

impl Taken {
    /// No changes.
    pub(crate) const NONE: Taken = Taken(NIL);
}

/// Changes that have been written back, from [`Changes::next_merged`].
pub(crate) struct Merged {
    chunk: Chunk,
    merged: Chunk,
}

impl Merged {
    /// Each change, and its clean entry in the new map page.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Change, Entry)> {
        self.chunk.changes().iter().zip(&self.merged.changes).map(|(change, merged)| (*change, merged.persisted))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunk.len == 0
    }
}

/// The ones of part of a bit set, in ascending order, a word at a time.
trait OnesIn {
    fn ones_in(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = usize>;
}

impl OnesIn for FixedBitSet {
    fn ones_in(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = usize> {
        const BITS: usize = usize::BITS as usize;
        let words = self.as_slice();
        let first = range.start / BITS;
        let end = range.end.div_ceil(BITS).min(words.len());
        (first..end.max(first)).flat_map(move |w| {
            let mut word = words[w];
            if w == first {
                word &= usize::MAX << (range.start % BITS);
            }
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
                word &= word - 1;
                Some(w * BITS + bit)
            })
            .take_while(move |&i| i < range.end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readpath_flash::Ppn;

    fn limited_to(map_changes: u32) -> FtlConfig {
        FtlConfig { map_changes, ..FtlConfig::DEFAULT }
    }

    #[test]
    fn many_changes_of_one_page_are_all_handed_over() {
        let mut changes = Changes::new(2, 40, &limited_to(100));
        for round in 0..3 {
            (0..40).for_each(|lpn| changes.add(MapPage(1), Lpn(lpn), Entry::at(Ppn(lpn))));
            let mut lpns = Vec::new();
            changes.each_of_page(MapPage(1), |change| lpns.push(change.lpn));
            lpns.sort_unstable();
            assert!(lpns.iter().copied().eq(Lpn(0).run(40)), "round {round}: {lpns:?}");
            let mut taken = changes.take(MapPage(1));
            changes.merge(taken, |_| Entry::UNMAPPED);
            let mut left = 40;
            loop {
                let merged = changes.next_merged(&mut taken);
                if merged.is_empty() {
                    break;
                }
                left -= merged.iter().count();
            }
            assert_eq!((left, changes.chunks.len()), (0, 2 * 40usize.div_ceil(Chunk::LEN)), "chunks are used again");
        }
    }

    #[test]
    fn the_table_never_moves_whatever_changes() {
        const ENTRIES: u32 = 15;
        let settings = limited_to(8);
        let mut changes = Changes::new(20, ENTRIES, &settings);
        let room = changes.chunks.capacity();
        let all_of = |changes: &mut Changes, page: u32| {
            (0..ENTRIES).for_each(|i| changes.add(MapPage(page), Lpn(page * ENTRIES + i), Entry::UNMAPPED));
        };
        (0..20).for_each(|page| all_of(&mut changes, page));
        for page in 0..settings.map_write_pages {
            changes.begin_write(MapPage(page));
            let taken = changes.take(MapPage(page));
            changes.merge(taken, |_| Entry::UNMAPPED);
            all_of(&mut changes, page);
        }
        assert_eq!((changes.chunks.len(), changes.chunks.capacity()), (36 * 3, room));
    }

    #[test]
    fn trims_keep_their_places_until_they_are_in_flash() {
        let mut changes = Changes::new(4, 8, &limited_to(100_000));
        (0..70_000).for_each(|_| changes.add_trims(MapPage(2), 1));
        assert_eq!((changes.room(), changes.trims().collect::<Vec<_>>()), (30_000, vec![(MapPage(2), 70_000)]));
        changes.begin_write(MapPage(2));
        changes.take(MapPage(2));
        changes.add_trims(MapPage(2), 5);
        assert_eq!((changes.room(), changes.trims().collect::<Vec<_>>()), (29_995, vec![(MapPage(2), 5)]));
        changes.written(MapPage(2));
        assert_eq!((changes.room(), changes.worth_writing()), (99_995, Some(MapPage(2))));
        changes.take(MapPage(2));
        changes.clear(|_| ());
        assert_eq!(changes.room(), 100_000);
    }

    #[test]
    fn changes_are_taken_by_map_page() {
        let mut changes = Changes::new(300, 8, &limited_to(8));
        for (page, lpn) in [(1, 10), (1, 11), (299, 20), (1, 12)] {
            changes.add(MapPage(page), Lpn(lpn), Entry::at(Ppn(lpn)));
            changes.names_slice(true);
        }
        assert_eq!((changes.room(), changes.worth_writing()), (4, Some(MapPage(1))));
        let mut taken = changes.take(MapPage(1));
        changes.merge(taken, |lpn| Entry::at(Ppn(lpn.0 + 100)));
        let merged = changes.next_merged(&mut taken);
        let seen: Vec<_> = merged.iter().map(|(c, m)| (c.lpn, c.persisted, m)).collect();
        assert_eq!(seen, [10, 11, 12].map(|lpn| (Lpn(lpn), Entry::at(Ppn(lpn)), Entry::at(Ppn(lpn + 100)))));
        assert!(changes.next_merged(&mut taken).is_empty());
        assert_eq!(changes.worth_writing(), Some(MapPage(299)));
        assert_eq!(changes.worth_writing(), Some(MapPage(299)), "the hand comes round");
        changes.add_trims(MapPage(0), 1);
        assert_eq!(changes.room(), 3);
        let mut left = 0;
        changes.clear(|_| left += 1);
        assert_eq!((left, changes.worth_writing(), changes.room()), (1, None, 8));
    }
}
