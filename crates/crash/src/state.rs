// SPDX-License-Identifier: MIT OR Apache-2.0
//! A state: a content for each touched block. It does not know which states are permitted.

use crate::base::{BLOCK, Base, Block};
use crate::error::CrashError;
use crate::log::{Log, Piece, digest, range};
use readpath_kit::Ns;
use std::ops::Range;

/// The content of a touched block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    /// As it was before.
    Before,
    Zeros,
    /// A version of the log.
    Version(u32),
    /// Made of several.
    Own(Box<Block>),
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    cells: Vec<Cell>,
    /// When power goes.
    now: Ns,
}

impl State {
    /// Nothing has changed when power goes.
    pub(crate) fn before(log: &Log, now: Ns) -> State {
        State { cells: vec![Cell::Before; log.blocks.len()], now }
    }

    /// When power goes.
    pub fn time(&self) -> Ns {
        self.now
    }

    /// The words of the last mark before power goes.
    pub(crate) fn mark<'a>(&self, log: &'a Log) -> &'a str {
        log.mark(self.now).map_or("", |mark| &mark.words)
    }

    /// A change reaches the disk, or the part of it in `only`.
    pub(crate) fn apply(
        &mut self,
        log: &Log,
        base: &Base,
        change: usize,
        only: Option<Range<u64>>,
    ) -> Result<(), CrashError> {
        let all = range(&log.changes[change]);
        let meant = only.map_or(all.clone(), |only| only.start.max(all.start)..only.end.min(all.end));
        for (place, number, piece) in log.pieces(change) {
            let first = u64::from(number) * BLOCK as u64;
            let is_whole = meant.start <= first && first + BLOCK as u64 <= meant.end;
            match piece {
                Piece::Whole(version) if is_whole => self.cells[place] = Cell::Version(version),
                Piece::Zeros if is_whole => self.cells[place] = Cell::Zeros,
                _ if meant.start >= first + BLOCK as u64 || meant.end <= first => {}
                _ => {
                    if !matches!(self.cells[place], Cell::Own(_)) {
                        let mut block = Box::new([0; BLOCK]);
                        self.read(log, base, number, &mut block)?;
                        self.cells[place] = Cell::Own(block);
                    }
                    if let Cell::Own(block) = &mut self.cells[place] {
                        log.patch(change, meant.clone(), number, block);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a block of the disk.
    ///
    /// # Errors
    /// The image cannot be read.
    pub fn read(&self, log: &Log, base: &Base, number: u32, to: &mut Block) -> Result<(), CrashError> {
        match log.blocks.binary_search(&number).map_or(&Cell::Before, |place| &self.cells[place]) {
            Cell::Before => return base.read(number, to),
            Cell::Zeros => to.fill(0),
            &Cell::Version(version) => to.copy_from_slice(log.version(version).0),
            Cell::Own(block) => *to = **block,
        }
        Ok(())
    }

    /// Whether a block is known to read as zeros.
    pub(crate) fn is_hole(&self, log: &Log, base: &Base, number: u32) -> bool {
        match log.blocks.binary_search(&number).map_or(&Cell::Before, |place| &self.cells[place]) {
            Cell::Before => base.is_hole(number),
            Cell::Zeros => true,
            Cell::Version(_) | Cell::Own(_) => false,
        }
    }

    pub(crate) fn cell(&self, place: usize) -> &Cell {
        &self.cells[place]
    }

    pub(crate) fn set(&mut self, place: usize, cell: Cell) {
        self.cells[place] = cell;
    }

    /// A digest of the content of a touched block.
    pub(crate) fn cell_digest(&self, log: &Log, place: usize) -> u128 {
        match &self.cells[place] {
            Cell::Before => log.before[place],
            Cell::Zeros => log.zeros,
            &Cell::Version(version) => log.version(version).1,
            Cell::Own(block) => digest(&block[..]),
        }
    }

    /// A digest of the content, and of what was marked.
    pub fn digest(&self, log: &Log) -> u128 {
        let of = |place| self.cell_digest(log, place).wrapping_mul(log.factors[place]);
        let mark = digest(self.mark(log).as_bytes());
        (0..self.cells.len()).fold(mark, |sum, place| sum.wrapping_add(of(place)))
    }
}
