// SPDX-License-Identifier: MIT OR Apache-2.0
//! The logical-to-physical map as flash and SRAM together know it.
//!
//! One flat table stands for the translation pages in flash plus the changes to them that SRAM holds. Reading an entry
//! of it is honest only after the device has paid: the map page is in the map cache, or has just been read. The one
//! exception is [`Mapping::Buffered`], which any device knows from its write buffer's own index.
//!
//! A known debt: a write or TRIM is told by [`PageMap::set`] where the block lay before, to make that slice invalid, and
//! pays for no map page. Figures of writes are upper bounds for that reason too.

use readpath_flash::{Geometry, Ppn};
use readpath_kit::{huge_vec, prefetch};

const UNMAPPED: u32 = u32::MAX;

/// What the map says of a logical block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mapping {
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
    pub fn flash(self) -> Option<Ppn> {
        match self {
            Mapping::Flash(ppn) => Some(ppn),
            _ => None,
        }
    }
}

/// See the module.
pub struct PageMap {
    /// Entry of each logical page; the value plus one is stored, so that untouched memory (zero) means unmapped.
    entries: Vec<u32>,
    /// Global translation directory: the slice where each map page begins, or `UNMAPPED` if no map page exists.
    directory: Vec<u32>,
    entries_shift: u32,
    slices_per_map_page: u32,
}

impl PageMap {
    /// An empty map of `logical_blocks` entries, `page_entries` (a power of two) to a map page.
    pub fn new(logical_blocks: u64, page_entries: u32, slices_per_map_page: u32) -> Self {
        let pages = logical_blocks.div_ceil(u64::from(page_entries));
        PageMap {
            entries: huge_vec(logical_blocks as usize),
            directory: vec![UNMAPPED; pages as usize],
            entries_shift: page_entries.trailing_zeros(),
            slices_per_map_page,
        }
    }

    /// What the map says of `lpn`. See the module for when asking is honest.
    #[inline]
    pub fn get(&self, lpn: u32) -> Mapping {
        match self.entries[lpn as usize].wrapping_sub(1) {
            UNMAPPED => Mapping::Unmapped,
            v if v >= Geometry::MAX_SLICES => Mapping::Buffered((v - Geometry::MAX_SLICES) as u16),
            v => Mapping::Flash(Ppn(v)),
        }
    }

    /// Changes the entry of `lpn`; returns what it was.
    #[inline]
    pub fn set(&mut self, lpn: u32, mapping: Mapping) -> Mapping {
        let old = self.get(lpn);
        let value = match mapping {
            Mapping::Unmapped => UNMAPPED,
            Mapping::Buffered(slot) => Geometry::MAX_SLICES + u32::from(slot),
            Mapping::Flash(ppn) => {
                let page = self.page_of(lpn);
                self.directory[page as usize] = page * self.slices_per_map_page;
                ppn.0
            }
        };
        self.entries[lpn as usize] = value.wrapping_add(1);
        old
    }

    /// Fills `lpn..lpn + count` with slices from an iterator: state as if it had been written, at no cost in time.
    pub fn preset(&mut self, lpn: u32, count: u32, mut ppn_of: impl FnMut(u32) -> Ppn) {
        if count == 0 {
            return;
        }
        for (i, entry) in self.entries[lpn as usize..(lpn + count) as usize].iter_mut().enumerate() {
            *entry = ppn_of(i as u32).0 + 1;
        }
        for page in self.page_of(lpn)..=self.page_of(lpn + count - 1) {
            self.directory[page as usize] = page * self.slices_per_map_page;
        }
    }

    /// The map page that holds the entry of `lpn`.
    #[inline]
    pub fn page_of(&self, lpn: u32) -> u32 {
        lpn >> self.entries_shift
    }

    /// Entries of a map page.
    pub fn page_entries(&self) -> u32 {
        1 << self.entries_shift
    }

    /// The slice where a map page begins in flash; `None` if nothing in its range was ever written. The directory is
    /// SRAM.
    #[inline]
    pub fn directory(&self, page: u32) -> Option<Ppn> {
        let ppn = self.directory[page as usize];
        (ppn != UNMAPPED).then_some(Ppn(ppn))
    }

    /// Bytes of SRAM that the directory takes.
    pub fn directory_bytes(&self) -> u64 {
        self.directory.len() as u64 * 4
    }

    /// Bytes of this process's memory that the map takes.
    pub fn process_bytes(&self) -> u64 {
        self.entries.len() as u64 * 4 + self.directory_bytes()
    }

    /// Brings the entry of `lpn` near, if it exists.
    #[inline]
    pub fn prefetch(&self, lpn: u32) {
        prefetch(&self.entries, lpn as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_directory_follow_writes() {
        let mut map = PageMap::new(10_000, 4096, 4);
        assert_eq!((map.get(5000), map.directory(1)), (Mapping::Unmapped, None));
        assert_eq!(map.set(5000, Mapping::Buffered(7)), Mapping::Unmapped);
        assert_eq!((map.get(5000), map.directory(1)), (Mapping::Buffered(7), None));
        assert_eq!(map.set(5000, Mapping::Flash(Ppn(0))), Mapping::Buffered(7));
        assert_eq!((map.get(5000), map.directory(1)), (Mapping::Flash(Ppn(0)), Some(Ppn(4))));
        assert_eq!(map.set(5000, Mapping::Unmapped), Mapping::Flash(Ppn(0)));
        assert_eq!(map.get(5000), Mapping::Unmapped);
        map.preset(4095, 2, |i| Ppn(100 + i));
        assert_eq!((map.get(4095), map.get(4096)), (Mapping::Flash(Ppn(100)), Mapping::Flash(Ppn(101))));
        assert_eq!(map.directory(0), Some(Ppn(0)));
    }
}
