// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated NAND that keeps data, with the faults of real ones. Only programmed pages take memory, so a large and
//! mostly empty device costs four bytes a page.
//!
//! Faults, all of them deterministic from the seed:
//! - **Flips** in an ECC step: counted, not applied to the stored data. Up to the strength of the code a read returns
//!   the correct data and reports the flips; beyond, the step's bytes are returned changed. Flips come from
//!   [`Nand::flip`], at random on reads, or from read disturb.
//! - **Program failure**: the page is left half programmed. **Erase failure**: the block is left half erased.
//! - **Power cut** during the n-th program or erase from now ([`Nand::cut_after`]). The page may be untouched, half
//!   programmed, complete but weak, or complete; the block likewise. Afterwards every operation fails until
//!   [`Nand::power_on`]. The remains of a cut read the same every time; bits that change from read to read are not
//!   modelled.

mod store;

use crate::write::MtdWrite;
use readpath_kit::Prng;
use readpath_ubi::mtd::{Geometry, GeometryError, Mtd, MtdError, ReadAt, ReadOutcome, Why};
use readpath_ubi::nand::Preset;
use std::io::{self, Write};
use store::Store;

/// The most pages of a simulated device; each takes four bytes.
const MOST_PAGES: u64 = 1 << 28;

/// Error correction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ecc {
    /// Bytes of data of a step; a power of two up to a page.
    pub step_bytes: u32,
    /// Bits that can be corrected in a step.
    pub strength: u8,
    /// Flips in a step from which on a read requests a move.
    pub threshold: u8,
}

impl Ecc {
    /// With Linux's default threshold of three quarters of the strength, rounded up.
    pub fn new(step_bytes: u32, strength: u8) -> Self {
        Ecc { step_bytes, strength, threshold: (u32::from(strength) * 3).div_ceil(4) as u8 }
    }
}

/// Random faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Programs of a page that fail, in a million.
    pub program_fails_ppm: u32,
    /// Erases that fail, in a million.
    pub erase_fails_ppm: u32,
    /// Reads after which a bit of a step of the first page flips, in a million.
    pub flips_ppm: u32,
    /// Reads of a block since its erase after which a bit of a programmed page of the block flips, each time; 0 for
    /// no read disturb.
    pub disturb_reads: u32,
    /// Random faults and disturb add no flips beyond this number per step. At the strength of the code, no data is
    /// ever lost.
    pub most_flips: u8,
}

/// Counts of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Read calls.
    pub reads: u64,
    /// Programs of pages or parts of pages.
    pub programs: u64,
    /// Erases of blocks.
    pub erases: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    erases: u32,
    reads: u32,
    bad: bool,
    worn_out: bool,
}

/// A simulated NAND.
#[derive(Clone, Debug)]
pub struct Nand {
    geometry: Geometry,
    ecc: Ecc,
    /// Random faults; can be changed at any time.
    pub faults: Faults,
    /// Counts of operations.
    pub counts: Counts,
    store: Store,
    blocks: Vec<Block>,
    random: Prng,
    /// Programs and erases until the power is cut.
    cut_in: Option<u64>,
    off: bool,
}

impl Nand {
    /// An erased device without bad blocks.
    pub fn new(geometry: Geometry, ecc: Ecc, seed: u64) -> Result<Self, GeometryError> {
        geometry.check()?;
        if !ecc.step_bytes.is_power_of_two() || ecc.step_bytes > geometry.page_bytes || ecc.step_bytes < 64 {
            let right = "a power of two from 64 bytes to a page is needed";
            return Err(GeometryError { key: "ECC step", value: ecc.step_bytes.into(), right });
        }
        let pages = u64::from(geometry.pebs) * u64::from(geometry.pages_per_peb());
        if pages > MOST_PAGES {
            return Err(GeometryError { key: "pages", value: pages, right: "at most 268435456 can be simulated" });
        }
        if ecc.strength == 0 || ecc.strength > 200 || ecc.threshold == 0 || ecc.threshold > ecc.strength {
            let right = "a strength of 1 to 200 bits and a threshold of at most that are needed";
            return Err(GeometryError { key: "ECC strength", value: ecc.strength.into(), right });
        }
        Ok(Nand {
            geometry,
            ecc,
            faults: Faults { most_flips: ecc.strength, ..Faults::default() },
            counts: Counts::default(),
            store: Store::new(&geometry, ecc.step_bytes),
            blocks: vec![Block::default(); geometry.pebs as usize],
            random: Prng::stream(seed, "nand", 0),
            cut_in: None,
            off: false,
        })
    }

    /// An erased device of a preset.
    pub fn from_preset(preset: &Preset, seed: u64) -> Result<Self, GeometryError> {
        Nand::new(preset.geometry, Ecc::new(preset.timing.ecc_step_bytes, preset.ecc_strength as u8), seed)
    }

    /// Programs an image into an erased device from its first block on; sub-pages of 0xFF stay erased.
    pub fn load(&mut self, image: &impl ReadAt) -> Result<(), MtdError> {
        let Geometry { peb_bytes, page_bytes, subpage_bytes, pebs } = self.geometry;
        let mut page = vec![0; page_bytes as usize];
        let io = |peb, e: io::Error| MtdError::Io { peb, offset: 0, message: e.to_string() };
        let bytes = image.bytes().map_err(|e| io(0, e))?;
        if bytes > self.geometry.bytes() || bytes % u64::from(page_bytes) != 0 {
            let reason = "the image is larger than the device, or not made of whole pages";
            return Err(MtdError::Invalid { peb: pebs, offset: 0, len: 0, reason });
        }
        let pages_per_peb = u64::from(peb_bytes / page_bytes);
        for index in 0..bytes / u64::from(page_bytes) {
            let peb = (index / pages_per_peb) as u32;
            image.read_exact_at(index * u64::from(page_bytes), &mut page).map_err(|e| io(peb, e))?;
            let mut part = 0;
            for piece in page.chunks_exact(subpage_bytes as usize) {
                if piece.iter().any(|&b| b != 0xFF) && !self.store.program(index as u32, part, piece) {
                    let offset = (index % pages_per_peb) as u32 * page_bytes + part;
                    let reason = "the device is not erased there";
                    return Err(MtdError::Invalid { peb, offset, len: subpage_bytes, reason });
                }
                part += subpage_bytes;
            }
        }
        Ok(())
    }

    /// Writes all data as an image, without spare areas, as `nanddump --omitoob` does.
    pub fn write_image(&self, out: &mut impl Write) -> io::Result<()> {
        let mut page = vec![0; self.geometry.page_bytes as usize];
        for index in 0..self.store.pages() {
            self.store.data(index, 0, &mut page);
            out.write_all(&page)?;
        }
        Ok(())
    }

    /// Adds `bits` flips to the step that holds byte `offset` of a block.
    ///
    /// # Panics
    /// If the device has no such place; so do the other functions that take a block and return no error.
    pub fn flip(&mut self, peb: u32, offset: u32, bits: u8) {
        let index = self.page(peb, offset);
        self.store.flip(index, offset % self.geometry.page_bytes / self.ecc.step_bytes, bits, u8::MAX);
    }

    /// From now on every program and every erase of this block fails.
    pub fn wear_out(&mut self, peb: u32) {
        self.blocks[peb as usize].worn_out = true;
    }

    /// Cuts the power during the program or erase after `operations` more of them.
    pub fn cut_after(&mut self, operations: u64) {
        self.cut_in = Some(operations);
    }

    /// Switches the power on; a pending cut is cancelled.
    pub fn power_on(&mut self) {
        self.off = false;
        self.cut_in = None;
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.off
    }

    /// How often a block was erased.
    pub fn erases(&self, peb: u32) -> u32 {
        self.blocks[peb as usize].erases
    }

    /// Bytes of memory for data.
    pub fn data_bytes(&self) -> u64 {
        self.store.data_bytes()
    }

    fn page(&self, peb: u32, offset: u32) -> u32 {
        peb * self.geometry.pages_per_peb() + offset / self.geometry.page_bytes
    }

    fn ppm(&mut self, chance: u32) -> bool {
        chance > 0 && self.random.below(1_000_000) < u64::from(chance)
    }

    /// Whether the power is cut during this operation.
    fn cut_now(&mut self) -> bool {
        match &mut self.cut_in {
            Some(0) => {
                self.cut_in = None;
                self.off = true;
                true
            }
            Some(n) => {
                *n -= 1;
                false
            }
            None => false,
        }
    }

    fn check_good(&self, peb: u32, offset: u32, len: u32) -> Result<(), MtdError> {
        if self.off {
            return Err(MtdError::PowerOff { peb });
        }
        if self.blocks[peb as usize].bad {
            return Err(MtdError::Invalid { peb, offset, len, reason: "the PEB is marked bad" });
        }
        Ok(())
    }

    /// Checks that a write is inside a block and consists of whole sub-pages.
    fn check_write(&self, peb: u32, offset: u32, len: usize) -> Result<(), MtdError> {
        self.geometry.check_range(peb, offset, len)?;
        let unit = self.geometry.subpage_bytes as usize;
        if (offset as usize).is_multiple_of(unit) && len.is_multiple_of(unit) && len > 0 {
            return Ok(());
        }
        let reason = "a write is made of whole sub-pages";
        Err(MtdError::Invalid { peb, offset, len: len as u32, reason })
    }

    /// Leaves the remains of an interrupted or failed program in sub-pages of a page.
    fn tear_program(&mut self, index: u32, column: u32, data: &[u8]) {
        let steps = |at: u32| at / self.ecc.step_bytes;
        let last = steps(column + data.len() as u32 - 1);
        match self.random.below(4) {
            0 => {}
            1 => {
                // Some cells are charged, others not.
                let mut torn = data.to_vec();
                torn.iter_mut().for_each(|b| *b |= self.random.next_u64() as u8);
                self.store.program(index, column, &torn);
                (steps(column)..=last).for_each(|step| self.store.flip(index, step, u8::MAX, u8::MAX));
            }
            2 => {
                self.store.program(index, column, data);
                let spread = u64::from(self.ecc.strength - self.ecc.threshold + 1);
                for step in steps(column)..=last {
                    let weak = self.ecc.threshold + self.random.below(spread) as u8;
                    self.store.flip(index, step, weak, self.ecc.strength);
                }
            }
            _ => {
                self.store.program(index, column, data);
            }
        }
    }

    /// Leaves the remains of an interrupted or failed erase in a block.
    fn tear_erase(&mut self, peb: u32) {
        let pages = self.geometry.pages_per_peb();
        let first = peb * pages;
        let steps = self.geometry.page_bytes / self.ecc.step_bytes;
        match self.random.below(4) {
            0 => {}
            1 => {
                // From some page on, the old contents have become unreadable.
                let intact = self.random.below(u64::from(pages)) as u32;
                for index in first + intact..first + pages {
                    if self.store.is_programmed(index) {
                        (0..steps).for_each(|step| self.store.flip(index, step, u8::MAX, u8::MAX));
                    }
                }
            }
            2 => {
                // Erased, but weakly.
                (first..first + pages).for_each(|index| self.store.erase(index));
                self.store.flip(first, 0, self.ecc.threshold, self.ecc.strength);
            }
            _ => (first..first + pages).for_each(|index| self.store.erase(index)),
        }
    }

    /// Adds random flips and disturb.
    fn disturb(&mut self, peb: u32, offset: u32) {
        let steps = u64::from(self.geometry.page_bytes / self.ecc.step_bytes);
        if self.ppm(self.faults.flips_ppm) {
            let step = self.random.below(steps) as u32;
            self.store.flip(self.page(peb, offset), step, 1, self.faults.most_flips);
        }
        let block = &mut self.blocks[peb as usize];
        block.reads = block.reads.wrapping_add(1);
        if self.faults.disturb_reads > 0 && block.reads.is_multiple_of(self.faults.disturb_reads) {
            let pages = self.geometry.pages_per_peb();
            let index = peb * pages + self.random.below(u64::from(pages)) as u32;
            let step = self.random.below(steps) as u32;
            if self.store.is_programmed(index) {
                self.store.flip(index, step, 1, self.faults.most_flips);
            }
        }
    }
}

impl Mtd for Nand {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn read(&mut self, peb: u32, offset: u32, out: &mut [u8], _why: Why) -> Result<ReadOutcome, MtdError> {
        self.geometry.check_range(peb, offset, out.len())?;
        if self.off {
            return Err(MtdError::PowerOff { peb });
        }
        self.counts.reads += 1;
        if self.faults.flips_ppm > 0 || self.faults.disturb_reads > 0 {
            self.disturb(peb, offset.min(self.geometry.peb_bytes - 1));
        }
        let (page_bytes, step_bytes) = (self.geometry.page_bytes as usize, self.ecc.step_bytes as usize);
        let mut outcome = ReadOutcome::Clean;
        let (mut index, mut column, mut rest) = (self.page(peb, offset), offset as usize % page_bytes, out);
        while !rest.is_empty() {
            let (piece, next) = rest.split_at_mut((page_bytes - column).min(rest.len()));
            self.store.data(index, column as u32, piece);
            if let Some(flips) = self.store.flips(index) {
                let (first, last) = (column / step_bytes, (column + piece.len() - 1) / step_bytes);
                for (step, &count) in (first..).zip(&flips[first..=last]) {
                    let found = match count {
                        0 => continue,
                        n if n > self.ecc.strength => ReadOutcome::Uncorrectable,
                        n if n >= self.ecc.threshold => ReadOutcome::BitFlips,
                        _ => ReadOutcome::Corrected,
                    };
                    outcome = outcome.max(found);
                    if found == ReadOutcome::Uncorrectable {
                        // Always the same bits of the page, for any part of it.
                        let start = (step * step_bytes).max(column).next_multiple_of(7) - column;
                        let end = ((step + 1) * step_bytes - column).min(piece.len());
                        piece.iter_mut().take(end).skip(start).step_by(7).for_each(|b| *b ^= 1 << (step % 8));
                    }
                }
            }
            (index, column, rest) = (index + 1, 0, next);
        }
        Ok(outcome)
    }

    fn is_bad(&mut self, peb: u32) -> bool {
        self.blocks.get(peb as usize).is_some_and(|b| b.bad)
    }
}

impl MtdWrite for Nand {
    fn write(&mut self, peb: u32, offset: u32, data: &[u8], _why: Why) -> Result<(), MtdError> {
        self.check_write(peb, offset, data.len())?;
        self.check_good(peb, offset, data.len() as u32)?;
        let page_bytes = self.geometry.page_bytes;
        let (mut index, mut column, mut rest) = (self.page(peb, offset), offset % page_bytes, data);
        while !rest.is_empty() {
            let (piece, next) = rest.split_at(((page_bytes - column) as usize).min(rest.len()));
            let at = offset + (data.len() - rest.len()) as u32;
            if !self.store.can_program(index, column, piece.len() as u32) {
                let reason = "it was programmed since the PEB was erased";
                return Err(MtdError::Invalid { peb, offset: at, len: piece.len() as u32, reason });
            }
            if self.cut_now() {
                self.tear_program(index, column, piece);
                return Err(MtdError::PowerOff { peb });
            }
            if self.blocks[peb as usize].worn_out || self.ppm(self.faults.program_fails_ppm) {
                self.tear_program(index, column, piece);
                return Err(MtdError::WriteFailed { peb, offset: at });
            }
            self.counts.programs += 1;
            self.store.program(index, column, piece);
            (index, column, rest) = (index + 1, 0, next);
        }
        Ok(())
    }

    fn erase(&mut self, peb: u32, _why: Why) -> Result<(), MtdError> {
        self.geometry.check_range(peb, 0, 0)?;
        self.check_good(peb, 0, self.geometry.peb_bytes)?;
        if self.cut_now() {
            self.tear_erase(peb);
            return Err(MtdError::PowerOff { peb });
        }
        self.counts.erases += 1;
        let block = &mut self.blocks[peb as usize];
        (block.erases, block.reads) = (block.erases + 1, 0);
        if block.worn_out || self.ppm(self.faults.erase_fails_ppm) {
            self.tear_erase(peb);
            return Err(MtdError::EraseFailed { peb });
        }
        let pages = self.geometry.pages_per_peb();
        (peb * pages..(peb + 1) * pages).for_each(|index| self.store.erase(index));
        Ok(())
    }

    fn mark_bad(&mut self, peb: u32) -> Result<(), MtdError> {
        self.geometry.check_range(peb, 0, 0)?;
        if self.off {
            return Err(MtdError::PowerOff { peb });
        }
        self.blocks[peb as usize].bad = true;
        Ok(())
    }
}
