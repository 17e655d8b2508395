// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logical-to-physical map as flash and SRAM together know it. It knows neither time nor the cost of a lookup.
//!
//! One flat table stands for the map pages in flash and the changes in SRAM. An entry is one of
//! - *clean*: the map page in flash has it; it may be used only after that page was paid for;
//! - *recent*: it changed since its map page was written, so it is in the table of changes
//!   ([`Changes`](super::Changes)), which is SRAM, and using it costs nothing;
//! - *buffered*: the newest data is in the write buffer, whose index is SRAM. The block's entry in flash is kept with
//!   the buffer slot.
//!
//! Where nothing has changed since the device was preconditioned, formulas stand for parts of the table.

use crate::ftl::preset::Preset;
use crate::ids::{Lpn, MapPage};
use readpath_flash::{Geometry, Ppn};
use readpath_kit::{huge_vec, prefetch};

const NOWHERE: u32 = u32::MAX;
/// The most parts of the table, and the fewest entries of one. One formula stands for all entries of a part, or none.
const PARTS: usize = 1 << 14;
const PART: usize = 16;
/// A formula that is slow serves one lookup for so many blocks of its range at most; then the table is filled.
const BLOCKS_PER_SLOW_LOOKUP: u32 = 4;

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
    /// By part, which of `presets` stands for it, plus one; 0 if none does.
    preset_of: Vec<u8>,
    /// Entries of a part, as a power of two.
    part_shift: u32,
    presets: Vec<Preset>,
    /// Lookups until slow formulas give way to the table; 0 if none stands for anything.
    slow_lookups: u32,
    /// Global translation directory: the slice where each map page begins, or `NOWHERE` if no map page exists.
    directory: Vec<u32>,
    entries_shift: u32,
}

impl PageMap {
    /// An empty map of `logical_blocks` entries, `page_entries` (a power of two) to a map page.
    pub(crate) fn new(logical_blocks: u64, page_entries: u32) -> Self {
        let pages = logical_blocks.div_ceil(u64::from(page_entries));
        let part = (logical_blocks as usize).div_ceil(PARTS).next_power_of_two().max(PART);
        PageMap {
            entries: huge_vec(logical_blocks as usize),
            preset_of: vec![0; (logical_blocks as usize).div_ceil(part)],
            part_shift: part.ilog2(),
            presets: Vec::new(),
            slow_lookups: 0,
            directory: vec![NOWHERE; pages as usize],
            entries_shift: page_entries.trailing_zeros(),
        }
    }

    /// Entries of a part.
    fn part(&self) -> usize {
        1 << self.part_shift
    }

    /// The formula that stands for the entries of a part.
    fn preset_of(&self, part: usize) -> Option<&Preset> {
        usize::from(self.preset_of[part]).checked_sub(1).map(|n| &self.presets[n])
    }

    /// Whether the block of `lpn` lies where it did when the device was preconditioned.
    #[inline(always)]
    pub(crate) fn is_preset(&self, lpn: Lpn) -> bool {
        self.preset_of[lpn.index() >> self.part_shift] != 0
    }

    /// The entry of `lpn`. The caller must be allowed to know it.
    #[inline(always)]
    pub(crate) fn entry(&self, lpn: Lpn) -> Entry {
        match self.preset_of[lpn.index() >> self.part_shift] {
            0 => Entry(self.entries[lpn.index()]),
            n => self.preset_entry(n, lpn),
        }
    }

    /// Not inlined, so that looking into the table stays short.
    #[inline(never)]
    fn preset_entry(&self, n: u8, lpn: Lpn) -> Entry {
        Entry::at(self.presets[usize::from(n) - 1].slice(lpn))
    }

    #[inline]
    pub(crate) fn set(&mut self, lpn: Lpn, entry: Entry) {
        if self.is_preset(lpn) {
            self.fill(lpn.index() >> self.part_shift);
        }
        self.entries[lpn.index()] = entry.0;
    }

    /// Fills the entries of a part, if a formula stands for them.
    #[cold]
    fn fill(&mut self, part: usize) {
        let Some(n) = usize::from(std::mem::take(&mut self.preset_of[part])).checked_sub(1) else { return };
        let first = part << self.part_shift;
        let entries = &mut self.entries[first..first + (1 << self.part_shift)];
        for (lpn, entry) in (first as u32..).map(Lpn).zip(entries) {
            *entry = Entry::at(self.presets[n].slice(lpn)).0;
        }
    }

    /// Makes the entries of a range clean, as a formula gives them. Returns whether that stands for some of them.
    pub(crate) fn preset(&mut self, preset: &Preset) -> bool {
        let (first, blocks) = preset.range();
        let (from, to) = (first.index(), (first + blocks).index());
        let part = self.part();
        let parts = from.div_ceil(part)..to / part;
        let stands = !parts.is_empty() && self.presets.len() < usize::from(u8::MAX);
        if stands {
            self.presets.push(preset.clone());
            self.preset_of[parts.clone()].fill(self.presets.len() as u8);
            if preset.is_slow() {
                self.slow_lookups = self.slow_lookups.max(blocks / BLOCKS_PER_SLOW_LOOKUP).max(1);
            }
        }
        let filled = if stands { [from..parts.start * part, parts.end * part..to] } else { [from..to, to..to] };
        for lpn in filled.into_iter().flatten().map(|lpn| Lpn(lpn as u32)) {
            self.set(lpn, Entry::at(preset.slice(lpn)));
        }
        stands
    }

    /// Counts `n` lookups. After many, the table replaces slow formulas.
    #[inline(always)]
    pub(crate) fn count_lookups(&mut self, n: u32) {
        if self.slow_lookups > 0 {
            self.count_slow_lookups(n);
        }
    }

    #[inline(never)]
    fn count_slow_lookups(&mut self, n: u32) {
        self.slow_lookups = self.slow_lookups.saturating_sub(n);
        if self.slow_lookups == 0 {
            self.fill_slow(0..self.preset_of.len());
        }
    }

    /// Many entries of a map page will be read, and perhaps again: the table is filled.
    pub(crate) fn will_be_read(&mut self, page: MapPage) {
        let (first, end) = ((page.0 as usize) << self.entries_shift, self.end_of(page).index());
        let parts = first / self.part()..end.div_ceil(self.part()).min(self.preset_of.len());
        parts.for_each(|part| self.fill(part));
    }

    /// Fills parts for which slow formulas stand.
    fn fill_slow(&mut self, parts: std::ops::Range<usize>) {
        for part in parts {
            if self.preset_of(part).is_some_and(Preset::is_slow) {
                self.fill(part);
            }
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
        self.preset_of.fill(0);
        self.slow_lookups = 0;
        self.entries.fill(0);
    }

    /// Prefetches the entry of `lpn`, if it exists.
    #[inline]
    pub(crate) fn prefetch(&self, lpn: Lpn) {
        if self.preset_of.get(lpn.index() >> self.part_shift).is_some_and(|n| *n == 0) {
            prefetch(&self.entries, lpn.index());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftl::preset::{Layout, SliceRun};
    use readpath_kit::Prng;

    /// A map with formulas says what a list would, whatever changes, and slow formulas give way to the table in time.
    #[test]
    fn formulas_stand_for_what_a_table_would_hold() {
        for seed in 0..60 {
            let rng = &mut Prng::new(seed);
            let blocks = 1 + rng.below(if seed % 2 == 0 { 300 } else { 40_000 }) as u32;
            let mut map = PageMap::new(blocks.into(), 4096);
            let mut list = vec![Entry::UNMAPPED; blocks as usize];
            let (mut next, mut stood) = (0, 0);
            for _ in 0..rng.below(5) {
                let first = rng.below(u64::from(blocks)) as u32;
                let length = 1 + rng.below(u64::from(blocks - first)) as u32;
                let layout = if rng.below(2) == 0 { Layout::Sequential } else { Layout::Random };
                let run = SliceRun { before: 0, first: Ppn(next), slices: length };
                let preset = Preset::new(Lpn(first), length, layout, seed, vec![run]);
                stood += u32::from(map.preset(&preset));
                Lpn(first).run(length).for_each(|lpn| list[lpn.index()] = Entry::at(preset.slice(lpn)));
                next += length;
            }
            let is_equal =
                |map: &PageMap, list: &[Entry]| Lpn(0).run(blocks).all(|lpn| map.entry(lpn) == list[lpn.index()]);
            assert!(is_equal(&map, &list), "seed {seed}: {stood} formulas");
            for _ in 0..20 {
                let lpn = Lpn(rng.below(u64::from(blocks)) as u32);
                let entry = [Entry::UNMAPPED, Entry::at(Ppn(lpn.0)), Entry::buffered(3)][rng.below(3) as usize];
                map.set(lpn, entry);
                list[lpn.index()] = entry;
                assert!(!map.is_preset(lpn));
            }
            let page = rng.below(u64::from(map.pages())) as u32;
            map.will_be_read(MapPage(page));
            assert!(!map.blocks_of(MapPage(page)).any(|lpn| map.is_preset(lpn)));
            let slow = |map: &PageMap, part: usize| map.preset_of(part).is_some_and(Preset::is_slow);
            map.count_lookups(1 + rng.below(100) as u32);
            assert!(is_equal(&map, &list), "seed {seed}: changed");
            map.count_lookups(blocks);
            assert!(is_equal(&map, &list), "seed {seed}: counted");
            assert!(!(0..map.preset_of.len()).any(|part| slow(&map, part)), "seed {seed}: a slow formula still stands");
            map.forget_entries();
            assert!(Lpn(0).run(blocks).all(|lpn| map.entry(lpn) == Entry::UNMAPPED));
        }
    }

    /// Formulas stand for whole parts, as many as there may be; what is behind is filled in.
    #[test]
    fn only_so_many_formulas_stand_for_parts() {
        let blocks = 300 * PART as u32;
        let mut map = PageMap::new(blocks.into(), 4096);
        for part in 0..300 {
            let first = part * PART as u32;
            let run = SliceRun { before: 0, first: Ppn(first + 7), slices: PART as u32 };
            let preset = Preset::new(Lpn(first), PART as u32, Layout::Sequential, 0, vec![run]);
            assert_eq!(map.preset(&preset), part < 255, "part {part}");
        }
        assert!(Lpn(0).run(blocks).all(|lpn| map.entry(lpn) == Entry::at(Ppn(lpn.0 + 7))));
    }

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
        let run = SliceRun { before: 0, first: Ppn(100), slices: 2 };
        map.preset(&Preset::new(Lpn(4095), 2, Layout::Sequential, 0, vec![run]));
        assert_eq!(
            ([4095, 4096].map(|lpn| map.entry(Lpn(lpn)).mapping())),
            [100, 101].map(|ppn| Mapping::Flash(Ppn(ppn)))
        );
    }
}
