// SPDX-License-Identifier: MIT OR Apache-2.0
//! Data transfers with the pieces of memory that a PRDT describes. Each entry is read once, when its turn comes: a
//! host that changes it meanwhile affects only its own memory.

use crate::memory::{GuestMem, Unreachable};
use readpath_proto::transfer::{PRDT_ENTRY_BYTES, PrdtEntry};

/// The most entries of a table: 32 MiB in pages of 4 KiB, the limit of a command.
const MOST_ENTRIES: u16 = 1 << 13;

/// Why data did not move completely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PrdtError {
    /// An entry, or the table, is not in memory, or there are too many.
    Unreachable,
    /// The table describes less memory than the data needs.
    Short,
}

impl From<Unreachable> for PrdtError {
    fn from(_: Unreachable) -> Self {
        PrdtError::Unreachable
    }
}

/// A PRDT: its address, and its number of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Prdt {
    pub address: u64,
    pub entries: u16,
}

impl Prdt {
    /// Calls `move_piece` with the address and the bytes of each piece that data of `bytes` bytes takes, in order.
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
