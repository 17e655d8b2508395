// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logical-to-physical map as flash and SRAM together know it. It knows neither time nor the cost of a lookup.
//!
//! One flat table stands for the map pages in flash and the changes in SRAM. An entry is one of
//! - *clean*: the map page in flash has it; it may be used only after that page was paid for;
//! - *recent*: it changed since its map page was written, so it is in the table of changes
//!   ([`Changes`](super::Changes)), which is SRAM, and using it costs nothing;
//! - *buffered*: the newest data is in the write buffer, whose index is SRAM. The block's entry in flash is kept with
//!   the buffer slot.

use crate::ids::{Lpn, MapPage};
use readpath_flash::{Geometry, Ppn};
use readpath_kit::{huge_vec, prefetch};

const NOWHERE: u32 = u32::MAX;

/// Place of a logical block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mapping {
    /// Never written, or trimmed.
    Unmapped,
    /// In this slot of the write buffer, not yet in flash.
    Buffered(u16),
    /// In this slice.
    Flash(Ppn),
}

impl Mapping {
    /// The slice, if the block is in flash.
    #[inline]
    pub(crate) fn flash(self) -> Option<Ppn> {
        match self {
            Mapping::Flash(ppn) => Some(ppn),
            _ => None,
        }
    }
}

/// One entry of the table: 0 is clean and unmapped (untouched memory); the top bit marks recent entries; the rest is
/// a slice plus one, 0 for unmapped, or one of the highest values for a buffer slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub(crate) struct Entry(u32);

const RECENT: u32 = 1 << 31;
const FIRST_SLOT: u32 = RECENT - (1 << 16);
const _: () = assert!(Geometry::MAX_SLICES < FIRST_SLOT);

impl Entry {
    /// Clean and unmapped.
    pub(crate) const UNMAPPED: Entry = Entry(0);

    /// Clean, in a slice.
    #[inline]
    pub(crate) fn at(ppn: Ppn) -> Entry {
        Entry(ppn.0 + 1)
    }

    /// In a slot of the write buffer.
    #[inline]
    pub(crate) fn buffered(slot: u16) -> Entry {
        Entry(FIRST_SLOT + u32::from(slot))
    }

    /// The same place as a recent entry.
    #[inline]
    pub(crate) fn recent(self) -> Entry {
        Entry(self.0 | RECENT)
    }

    /// The same place as a clean entry.
    #[inline]
    pub(crate) fn clean(self) -> Entry {
        Entry(self.0 & !RECENT)
    }

    /// Whether SRAM holds it as a change.
    #[inline]
    pub(crate) fn is_recent(self) -> bool {
        self.0 & RECENT != 0
    }

    /// The place that it names.
    #[inline]
    pub(crate) fn mapping(self) -> Mapping {
        match self.0 & !RECENT {
            0 => Mapping::Unmapped,
            v if v >= FIRST_SLOT => Mapping::Buffered((v - FIRST_SLOT) as u16),
            v => Mapping::Flash(Ppn(v - 1)),
        }
    }
}

pub(in crate::ftl) struct PageMap {
    /// [`Entry`] as a number: untouched memory is zero.
    entries: Vec<u32>,
    /// Global translation directory: the slice where each map page begins, or `NOWHERE` if no map page exists.
    directory: Vec<u32>,
    entries_shift: u32,
}

impl PageMap {
    /// An empty map of `logical_blocks` entries, `page_entries` (a power of two) to a map page.
    pub(crate) fn new(logical_blocks: u64, page_entries: u32) -> Self {
        let pages = logical_blocks.div_ceil(u64::from(page_entries));
        PageMap {
            entries: huge_vec(logical_blocks as usize),
            directory: vec![NOWHERE; pages as usize],
            entries_shift: page_entries.trailing_zeros(),
        }
    }

    /// The entry of `lpn`. The caller must be allowed to know it.
    #[inline]
    pub(crate) fn entry(&self, lpn: Lpn) -> Entry {
        Entry(self.entries[lpn.index()])
    }

    #[inline]
    pub(crate) fn set(&mut self, lpn: Lpn, entry: Entry) {
        self.entries[lpn.index()] = entry.0;
    }

    /// Fills `lpn..lpn + count` with clean entries for the slices that `ppn_of` names.
    pub(crate) fn preset(&mut self, lpn: Lpn, count: u32, mut ppn_of: impl FnMut(u32) -> Ppn) {
        for (i, entry) in self.entries[lpn.index()..(lpn + count).index()].iter_mut().enumerate() {
            *entry = Entry::at(ppn_of(i as u32)).0;
        }
    }

    /// The map page that holds the entry of `lpn`.
    #[inline]
    pub(crate) fn page_of(&self, lpn: Lpn) -> MapPage {
        MapPage(lpn.0 >> self.entries_shift)
    }

    /// The logical page after the last of a map page.
    pub(crate) fn end_of(&self, page: MapPage) -> Lpn {
        let end = u64::from(page.0 + 1) << self.entries_shift;
        Lpn(end.min(u64::from(u32::MAX)) as u32)
    }

    /// The logical pages of a map page.
    pub(crate) fn blocks_of(&self, page: MapPage) -> impl Iterator<Item = Lpn> + use<> {
        let first = page.0 << self.entries_shift;
        let end = self.end_of(page).0.min(self.entries.len() as u32);
        Lpn(first).run(end - first)
    }

    /// Entries of a map page.
    #[inline]
    pub(crate) fn page_entries(&self) -> u32 {
        1 << self.entries_shift
    }

    /// Number of logical pages.
    pub(crate) fn blocks(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Number of map pages.
    pub(crate) fn pages(&self) -> u32 {
        self.directory.len() as u32
    }

    /// The slice where a map page begins in flash; `None` if it was never written. The directory is SRAM.
    #[inline]
    pub(crate) fn directory(&self, page: MapPage) -> Option<Ppn> {
        let ppn = self.directory[page.index()];
        (ppn != NOWHERE).then_some(Ppn(ppn))
    }

    /// Sets the place of a map page.
    pub(crate) fn set_directory(&mut self, page: MapPage, at: Option<Ppn>) {
        self.directory[page.index()] = at.map_or(NOWHERE, |ppn| ppn.0);
    }

    /// Bytes of SRAM that the directory takes.
    pub(crate) fn directory_bytes(&self) -> u64 {
        self.directory.len() as u64 * 4
    }

    /// Bytes of this process's memory that the map takes.
    pub(crate) fn process_bytes(&self) -> u64 {
        self.entries.len() as u64 * 4 + self.directory_bytes()
    }

    /// Makes every entry clean and unmapped; the directory stays.
    pub(crate) fn forget_entries(&mut self) {
        self.entries.fill(0);
    }

    /// Prefetches the entry of `lpn`, if it exists.
    #[inline]
    pub(crate) fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.entries, lpn.index());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_what_they_say_beside_how_it_is_known() {
        for (entry, mapping) in [
            (Entry::UNMAPPED, Mapping::Unmapped),
            (Entry::at(Ppn(0)), Mapping::Flash(Ppn(0))),
            (Entry::at(Ppn(Geometry::MAX_SLICES - 1)), Mapping::Flash(Ppn(Geometry::MAX_SLICES - 1))),
            (Entry::buffered(0), Mapping::Buffered(0)),
            (Entry::buffered(u16::MAX), Mapping::Buffered(u16::MAX)),
        ] {
            assert_eq!(entry.mapping(), mapping);
            assert_eq!(entry.recent().mapping(), mapping);
            assert!(entry.recent().is_recent() && !entry.is_recent());
            assert_eq!(entry.recent().clean(), entry);
        }
    }

    #[test]
    fn pages_and_directory() {
        let mut map = PageMap::new(10_000, 4096);
        assert_eq!(
            (map.entry(Lpn(5000)).mapping(), map.directory(MapPage(1)), map.pages()),
            (Mapping::Unmapped, None, 3)
        );
        map.set_directory(MapPage(1), Some(Ppn(4)));
        assert_eq!(map.directory(MapPage(1)), Some(Ppn(4)));
        map.preset(Lpn(4095), 2, |i| Ppn(100 + i));
        assert_eq!(
            ([4095, 4096].map(|lpn| map.entry(Lpn(lpn)).mapping())),
            [100, 101].map(|ppn| Mapping::Flash(Ppn(ppn)))
        );
    }
}
