// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes of raw flash. It knows no times and no error correction.

use super::MtdError;

/// The most erase blocks accepted: 128 GiB of 128 KiB blocks. It bounds the memory kept for each block, whatever an
/// image claims.
pub(crate) const MAX_PEBS: u32 = 1 << 20;
/// Bytes of the largest erase block that is accepted.
pub(crate) const MAX_PEB_BYTES: u32 = 64 << 20;

/// Sizes of a device: all are powers of two but the number of erase blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bytes of an erase block.
    pub peb_bytes: u32,
    /// Bytes of a page: the unit of programming, and UBI's min_io_size.
    pub page_bytes: u32,
    /// Bytes that can be programmed at a time inside a page; `page_bytes` if sub-pages cannot be programmed (MLC).
    pub subpage_bytes: u32,
    /// Erase blocks.
    pub pebs: u32,
}

/// An impossible geometry, or one that this crate does not support.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key} = {value}: {right}")]
pub struct GeometryError {
    /// The size at fault.
    pub key: &'static str,
    /// Its value.
    pub value: u64,
    /// The valid values.
    pub right: &'static str,
}

impl Geometry {
    /// Checks the sizes against each other and against this crate's limits.
    pub fn check(&self) -> Result<(), GeometryError> {
        let wrong = |key, value: u32, right| Err(GeometryError { key, value: value.into(), right });
        if !self.page_bytes.is_power_of_two() || !(256..=64 << 10).contains(&self.page_bytes) {
            return wrong("page size", self.page_bytes, "a power of two from 256 to 65536 bytes is needed");
        }
        if !self.subpage_bytes.is_power_of_two()
            || self.subpage_bytes > self.page_bytes
            || self.page_bytes / self.subpage_bytes > 16
            || self.subpage_bytes < 64
        {
            return wrong("sub-page size", self.subpage_bytes, "a power of two, 1 to 1/16 of a page, is needed");
        }
        if !self.peb_bytes.is_power_of_two() || self.peb_bytes > MAX_PEB_BYTES {
            return wrong("PEB size", self.peb_bytes, "a power of two up to 64 MiB is needed");
        }
        if self.peb_bytes / self.page_bytes < 4 {
            return wrong("PEB size", self.peb_bytes, "at least four pages are needed");
        }
        if self.pebs == 0 || self.pebs > MAX_PEBS {
            return wrong("number of PEBs", self.pebs, "1 to 1048576 are needed");
        }
        Ok(())
    }

    /// Pages of an erase block.
    pub fn pages_per_peb(&self) -> u32 {
        self.peb_bytes / self.page_bytes
    }

    /// Bytes of the device.
    pub fn bytes(&self) -> u64 {
        u64::from(self.peb_bytes) * u64::from(self.pebs)
    }

    /// Checks that a read or write stays inside of a block.
    pub fn check_range(&self, peb: u32, offset: u32, len: usize) -> Result<(), MtdError> {
        let fits = u64::from(offset) + len as u64 <= u64::from(self.peb_bytes);
        if peb < self.pebs && fits {
            return Ok(());
        }
        let reason = if fits { "there is no such PEB" } else { "it has to stay inside of the PEB" };
        Err(MtdError::Invalid { peb, offset, len: len.try_into().unwrap_or(u32::MAX), reason })
    }
}
