// SPDX-License-Identifier: MIT OR Apache-2.0
//! A state: a content for each touched block. It does not know which states are permitted.

use crate::base::{BLOCK, Base, Block};
use crate::error::CrashError;
use crate::log::{Digest, Log, Piece, digest, range};
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
}

impl State {
    /// Nothing has changed.
    pub(crate) fn before(log: &Log) -> State {
        State { cells: vec![Cell::Before; log.blocks.len()] }
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
    pub(crate) fn read(&self, log: &Log, base: &Base, number: u32, to: &mut Block) -> Result<(), CrashError> {
        match log.blocks.binary_search(&number).map_or(&Cell::Before, |place| &self.cells[place]) {
            Cell::Before => return base.read(number, to),
            Cell::Zeros => to.fill(0),
            &Cell::Version(version) => to.copy_from_slice(log.version(version).0),
            Cell::Own(block) => *to = **block,
        }
        Ok(())
    }

    /// A digest of the content.
    pub(crate) fn digest(&self, log: &Log) -> Digest {
        let zeros = digest(&[0; BLOCK]);
        let of = |(place, cell): (usize, &Cell)| match cell {
            Cell::Before => log.before[place],
            Cell::Zeros => zeros,
            &Cell::Version(version) => log.version(version).1,
            Cell::Own(block) => digest(&block[..]),
        };
        let cells = self.cells.iter().enumerate();
        cells.fold(0, |sum, cell| sum.wrapping_add(of(cell).wrapping_mul(log.factors[cell.0])))
    }
}
