// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory of a host, accessed by its controller.

use thiserror::Error;

/// A byte of a transfer is outside of memory, or not accessible in this way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{bytes} bytes at {address:#x} are not all memory of the host")]
pub struct Unreachable {
    /// Start of the transfer.
    pub address: u64,
    /// Length of the transfer.
    pub bytes: usize,
}

/// Memory of a host. Implementations check every address: they come from the host, which is not trusted.
pub trait GuestMem {
    /// Reads bytes.
    ///
    /// # Errors
    /// Not all of them are memory. The contents of `bytes` are then undefined.
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unreachable>;

    /// Writes bytes.
    ///
    /// # Errors
    /// Not all of them are memory that may be written. Some may have been written.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Unreachable>;
}

/// Memory of a simulated host, from `base` on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ram {
    base: u64,
    bytes: Vec<u8>,
}

impl Ram {
    /// Memory of `bytes` zeros.
    pub fn new(base: u64, bytes: usize) -> Ram {
        Ram { base, bytes: vec![0; bytes] }
    }

    #[inline(always)]
    fn range(&self, address: u64, bytes: usize) -> Result<std::ops::Range<usize>, Unreachable> {
        let unreachable = Unreachable { address, bytes };
        let from = usize::try_from(address.wrapping_sub(self.base)).map_err(|_| unreachable)?;
        let end = from.checked_add(bytes).filter(|end| *end <= self.bytes.len()).ok_or(unreachable)?;
        Ok(from..end)
    }
}

impl GuestMem for Ram {
    #[inline(always)]
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unreachable> {
        bytes.copy_from_slice(&self.bytes[self.range(address, bytes.len())?]);
        Ok(())
    }

    #[inline(always)]
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Unreachable> {
        let range = self.range(address, bytes.len())?;
        self.bytes[range].copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_ends_where_it_ends() {
        let mut ram = Ram::new(0x1000, 16);
        let mut two = [9; 2];
        assert_eq!(ram.write(0x100E, &[1, 2]), Ok(()));
        assert_eq!((ram.read(0x100E, &mut two), two), (Ok(()), [1, 2]));
        for address in [0xFFF, 0x100F, 0, u64::MAX, u64::MAX - 1] {
            let unreachable = Unreachable { address, bytes: 2 };
            assert_eq!(ram.read(address, &mut two), Err(unreachable));
            assert_eq!(ram.write(address, &two), Err(unreachable));
        }
    }
}
