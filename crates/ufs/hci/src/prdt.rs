// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data between a device and the pieces of memory that a PRDT describes. Each entry is read once, when its turn comes:
//! a host that changes it meanwhile gets what it asked for, and reaches nothing but its own memory.

use crate::memory::{GuestMem, Unreachable};
use readpath_proto::transfer::{PRDT_ENTRY_BYTES, PrdtEntry};

/// Entries of one table: 32 MiB in pages of 4 KiB, which is the most that a command moves.
const MOST_ENTRIES: u16 = 1 << 13;

/// Why data did not move, or not all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PrdtError {
    /// An entry, or the table, is not in memory, or there are too many.
    Unreachable,
    /// The table describes less than the data.
    Short,
}

impl From<Unreachable> for PrdtError {
    fn from(_: Unreachable) -> Self {
        PrdtError::Unreachable
    }
}

/// A PRDT: where it is, and its entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Prdt {
    pub address: u64,
    pub entries: u16,
}

impl Prdt {
    /// The pieces that data of so many bytes takes, in order: `move_piece` is called with the place and the
    /// bytes of each.
    #[inline(always)]
    fn each<M: GuestMem>(
        self,
        mem: &mut M,
        bytes: usize,
        mut move_piece: impl FnMut(&mut M, u64, std::ops::Range<usize>) -> Result<(), Unreachable>,
    ) -> Result<(), PrdtError> {
        if self.entries > MOST_ENTRIES {
            return Err(PrdtError::Unreachable);
        }
        let mut done = 0;
        for i in 0..u64::from(self.entries) {
            if done == bytes {
                break;
            }
            let mut entry = [0; PRDT_ENTRY_BYTES];
            mem.read(self.address.wrapping_add(i * PRDT_ENTRY_BYTES as u64), &mut entry)?;
            let PrdtEntry { address, bytes: most } = PrdtEntry::parse(&entry);
            let piece = (bytes - done).min(most as usize);
            move_piece(mem, address, done..done + piece)?;
            done += piece;
        }
        if done == bytes { Ok(()) } else { Err(PrdtError::Short) }
    }

    /// Writes data to memory.
    pub(crate) fn scatter<M: GuestMem>(self, mem: &mut M, data: &[u8]) -> Result<(), PrdtError> {
        self.each(mem, data.len(), |mem, address, piece| mem.write(address, &data[piece]))
    }

    /// Reads data from memory.
    pub(crate) fn gather<M: GuestMem>(self, mem: &mut M, data: &mut [u8]) -> Result<(), PrdtError> {
        self.each(mem, data.len(), |mem, address, piece| mem.read(address, &mut data[piece]))
    }
}
