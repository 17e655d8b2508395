// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of UBI.

use crate::mtd::{GeometryError, MtdError};

/// An error of UBI. Places are erase blocks (PEB) and bytes from their start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UbiError {
    /// An error of the flash.
    #[error(transparent)]
    Mtd(#[from] MtdError),
    /// Sizes that do not fit together.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// An erase block has contents that make the device unusable.
    #[error("PEB {peb} offset {offset}: {what}")]
    Peb {
        /// Erase block.
        peb: u32,
        /// Byte from its start.
        offset: u32,
        /// The fault, and what would be valid.
        what: String,
    },
    /// Wrong sizes of PEBs, pages or sub-pages would explain this error.
    #[error(transparent)]
    Sizes(Box<UbiError>),
    /// The device as a whole cannot be attached.
    #[error("{0}")]
    Refused(String),
    /// No such volume.
    #[error("no volume {0}")]
    NoVolume(String),
    /// A logical block, range or size that the volume does not have.
    #[error("volume {volume} LEB {lnum}: {what}")]
    Leb {
        /// Volume.
        volume: u32,
        /// Logical block.
        lnum: u32,
        /// The fault, and what would be valid.
        what: String,
    },
}

impl UbiError {
    /// The same error, marked as one that wrong sizes may explain.
    pub(crate) fn doubting_sizes(self) -> UbiError {
        UbiError::Sizes(Box::new(self))
    }
}

/// Bytes from flash as text in one line that cannot control a terminal: backslashes are doubled, control and other
/// invisible characters become `\n`, `\t`, `\u{1b}`, and bytes that are not UTF-8 `\xff`. Distinct names stay
/// distinct.
pub fn printable(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        // Quotes are not escaped; an escaped one always follows its own backslash.
        out += &chunk.valid().escape_debug().to_string().replace("\\'", "'").replace("\\\"", "\"");
        out.extend(chunk.invalid().iter().map(|b| format!("\\x{b:02x}")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(printable("a b'\"é".as_bytes()), "a b'\"é");
        assert_eq!(printable(b"\x1b[2J\n\xff\\"), "\\u{1b}[2J\\n\\xff\\\\");
        // C1 controls, as UTF-8 and as a byte; a letter and its accent; quotes behind backslashes.
        assert_eq!(printable(b"\xc2\x9b1m \x9b e\xcc\x81"), "\\u{9b}1m \\x9b e\u{301}");
        assert_eq!(printable(b"\\' \\\\\" x\\n"), "\\\\' \\\\\\\\\" x\\\\n");
    }
}
