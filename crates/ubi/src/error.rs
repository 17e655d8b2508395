// SPDX-License-Identifier: MIT OR Apache-2.0
//! What UBI says when it cannot do what was asked.

use crate::mtd::{GeometryError, MtdError};

/// An error of UBI. Places are erase blocks (PEB) and bytes from their start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UbiError {
    /// Flash below.
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
        /// What is wrong and what would be right.
        what: String,
    },
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
        /// What is wrong and what would be right.
        what: String,
    },
    /// No erase block is left.
    #[error("no free PEB: {0}")]
    NoSpace(String),
    /// UBI has gone read-only, or was attached so.
    #[error("UBI is read-only: {0}")]
    ReadOnly(String),
}

/// Bytes from flash as text for messages: what would not show, or steer a terminal, is escaped.
pub fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\'' | '"' => out.push(c),
            c => out.extend(c.escape_debug()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(printable("a b'\"é".as_bytes()), "a b'\"é");
        assert_eq!(printable(b"\x1b[2J\n\xff\\"), "\\u{1b}[2J\\n\u{fffd}\\\\");
    }
}
