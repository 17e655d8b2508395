// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in the bytes of a UPIU.

/// Why bytes are not a valid UPIU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UpiuError {
    /// The bytes end at offset `have`.
    #[error("UPIU ends at byte {have}; at least {need} bytes are needed")]
    Short {
        /// Number of bytes.
        have: usize,
        /// Least number of bytes.
        need: usize,
    },
    /// A field has an invalid value.
    #[error("UPIU byte {offset} is {found:#x}; it must be {expected}")]
    Field {
        /// Offset of the field's first byte.
        offset: usize,
        /// The field's value.
        found: u32,
        /// The valid values.
        expected: &'static str,
    },
}
