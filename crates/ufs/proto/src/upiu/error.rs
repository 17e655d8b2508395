// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with the bytes of a UPIU. Knows no layout.

/// Why bytes are not the UPIU they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UpiuError {
    /// The bytes end at offset `have`.
    #[error("UPIU ends at byte {have}; at least {need} bytes are needed")]
    Short {
        /// Bytes there are.
        have: usize,
        /// Bytes there must be at least.
        need: usize,
    },
    /// A field has a value that it may not have.
    #[error("UPIU byte {offset} is {found:#x}; it must be {expected}")]
    Field {
        /// Offset of the field's first byte.
        offset: usize,
        /// The field's value.
        found: u32,
        /// What would be right.
        expected: &'static str,
    },
}
