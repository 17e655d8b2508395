// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spare areas: what a slice of data says of itself beside its data. This is flash: who wants to know it has to read the
//! page. Lines: logical page and sequence number (4 bytes each).

use readpath_flash::Ppn;
use readpath_kit::huge_vec;

/// Spare areas of every slice of the array.
pub struct Spares {
    /// Logical page plus one; 0 is erased or padding.
    lpn: Vec<u32>,
    /// When its data was accepted from the host; a copy made by garbage collection keeps the number.
    sequence: Vec<u32>,
}

impl Spares {
    /// All erased.
    pub fn new(slices: u32) -> Self {
        Spares { lpn: huge_vec(slices as usize), sequence: huge_vec(slices as usize) }
    }

    /// The slice now holds data of `lpn`.
    #[inline]
    pub fn program(&mut self, ppn: Ppn, lpn: u32, sequence: u32) {
        self.lpn[ppn.0 as usize] = lpn + 1;
        self.sequence[ppn.0 as usize] = sequence;
    }

    /// As if `lpn` had been written there before anything else. Its sequence number stays 0.
    #[inline]
    pub fn preset(&mut self, ppn: Ppn, lpn: u32) {
        self.lpn[ppn.0 as usize] = lpn + 1;
    }

    /// The logical page that a slice names, if it holds data.
    #[inline]
    pub fn lpn(&self, ppn: Ppn) -> Option<u32> {
        self.lpn[ppn.0 as usize].checked_sub(1)
    }

    /// The sequence number of a slice.
    #[inline]
    pub fn sequence(&self, ppn: Ppn) -> u32 {
        self.sequence[ppn.0 as usize]
    }

    /// Slices are erased, or lost in a torn program.
    pub fn erase(&mut self, first: Ppn, slices: u32) {
        let range = first.0 as usize..(first.0 + slices) as usize;
        self.lpn[range.clone()].fill(0);
        self.sequence[range].fill(0);
    }

    /// Sequence numbers now count from `base` on; what is older is 0.
    pub fn renumber(&mut self, base: u32) {
        self.sequence.iter_mut().for_each(|s| *s = s.saturating_sub(base));
    }

    /// Bytes of this process's memory if every slice were written.
    pub fn process_bytes(&self) -> u64 {
        self.lpn.len() as u64 * 8
    }
}
