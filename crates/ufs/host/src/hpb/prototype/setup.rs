// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks before a host uses a device as the prototype.

use thiserror::Error;

/// Why a device cannot be used as the prototype of HPB.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum PrototypeError {
    /// The host is configured for the prototype of HPB, but the device is none.
    #[error("the device is not a prototype of HPB (it has no attribute C1h); hpb.prototype makes it one")]
    NotOffered,
    /// The group size is invalid.
    #[error(
        "attribute C1h says that a group has {entries} entries, of a logical unit of {blocks} blocks; it must be a \
         power of two, 64 to 65536, and a unit has at most 2^31 - 1 blocks and 2^22 groups"
    )]
    Groups {
        /// Entries of a group according to the attribute.
        entries: u32,
        /// Blocks of the unit.
        blocks: u64,
    },
}

/// Checks the entries of a group for a unit of `blocks` blocks; returns the blocks as 32 bits.
pub(crate) fn check_groups(entries: u32, blocks: u64) -> Result<u32, PrototypeError> {
    let is_size = entries.is_power_of_two() && (64..=65_536).contains(&entries);
    match u32::try_from(blocks) {
        Ok(count) if is_size && count < 1 << 31 && count.div_ceil(entries) <= 1 << 22 => Ok(count),
        _ => Err(PrototypeError::Groups { entries, blocks }),
    }
}
