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
