// SPDX-License-Identifier: MIT OR Apache-2.0
//! Contents of a simulated NAND: bytes, programmed sub-pages, and flips, for pages that have any. Pages are numbered
//! through the device. It knows no faults and no blocks.

use readpath_ubi::mtd::Geometry;

/// A page without a frame: erased, without flips.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Frame {
    data: Box<[u8]>,
    /// One count for each ECC step.
    flips: Box<[u8]>,
    /// One bit for each sub-page.
    programmed: u16,
    flipped: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Store {
    page_bytes: u32,
    subpage_bytes: u32,
    step_bytes: u32,
    /// Frame of each page.
    index: Vec<u32>,
    frames: Vec<Frame>,
    /// Free frames: an erased page leaves its memory to the next programmed one.
    spare: Vec<u32>,
}

impl Store {
    pub(super) fn new(geometry: &Geometry, step_bytes: u32) -> Self {
        let pages = geometry.pebs as usize * geometry.pages_per_peb() as usize;
        Store {
            page_bytes: geometry.page_bytes,
            subpage_bytes: geometry.subpage_bytes,
            step_bytes,
            index: vec![NONE; pages],
            frames: Vec::new(),
            spare: Vec::new(),
        }
    }

    pub(super) fn pages(&self) -> u32 {
        self.index.len() as u32
    }

    pub(super) fn data_bytes(&self) -> u64 {
        self.frames.len() as u64 * u64::from(self.page_bytes)
    }

    fn frame(&self, page: u32) -> Option<&Frame> {
        self.frames.get(self.index[page as usize] as usize)
    }

    fn frame_mut(&mut self, page: u32) -> &mut Frame {
        let slot = self.index[page as usize];
        if slot != NONE {
            return &mut self.frames[slot as usize];
        }
        let slot = self.spare.pop().unwrap_or_else(|| {
            self.frames.push(Frame {
                data: vec![0xFF; self.page_bytes as usize].into(),
                flips: vec![0; (self.page_bytes / self.step_bytes) as usize].into(),
                programmed: 0,
                flipped: false,
            });
            self.frames.len() as u32 - 1
        });
        self.index[page as usize] = slot;
        &mut self.frames[slot as usize]
    }

    /// Copies the contents of the page from `column` on.
    #[inline]
    pub(super) fn data(&self, page: u32, column: u32, out: &mut [u8]) {
        match self.frame(page) {
            Some(frame) => out.copy_from_slice(&frame.data[column as usize..][..out.len()]),
            None => out.fill(0xFF),
        }
    }

    /// Flips of each step, if there are any.
    #[inline]
    pub(super) fn flips(&self, page: u32) -> Option<&[u8]> {
        self.frame(page).filter(|f| f.flipped).map(|f| &f.flips[..])
    }

    pub(super) fn is_programmed(&self, page: u32) -> bool {
        self.frame(page).is_some_and(|f| f.programmed != 0)
    }

    fn mask(&self, column: u32, len: u32) -> u16 {
        let (first, count) = (column / self.subpage_bytes, len / self.subpage_bytes);
        (((1u32 << count) - 1) << first) as u16
    }

    pub(super) fn can_program(&self, page: u32, column: u32, len: u32) -> bool {
        self.frame(page).is_none_or(|f| f.programmed & self.mask(column, len) == 0)
    }

    /// Programs whole sub-pages; false if they were programmed before.
    pub(super) fn program(&mut self, page: u32, column: u32, data: &[u8]) -> bool {
        let mask = self.mask(column, data.len() as u32);
        let frame = self.frame_mut(page);
        let free = frame.programmed & mask == 0;
        if free {
            frame.programmed |= mask;
            frame.data[column as usize..][..data.len()].copy_from_slice(data);
        }
        free
    }

    pub(super) fn erase(&mut self, page: u32) {
        let slot = std::mem::replace(&mut self.index[page as usize], NONE);
        if slot != NONE {
            let frame = &mut self.frames[slot as usize];
            frame.data.fill(0xFF);
            if frame.flipped {
                frame.flips.fill(0);
            }
            (frame.programmed, frame.flipped) = (0, false);
            self.spare.push(slot);
        }
    }

    /// Adds flips to a step, to at most `most`.
    pub(super) fn flip(&mut self, page: u32, step: u32, bits: u8, most: u8) {
        let frame = self.frame_mut(page);
        let flips = &mut frame.flips[step as usize];
        *flips = flips.saturating_add(bits).min(most.max(*flips));
        frame.flipped |= *flips > 0;
    }
}
