// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of images.

use crate::layout::FormatError;
use std::io;
use thiserror::Error;

/// Why an image cannot be used.
#[derive(Debug, Error)]
pub enum ImageError {
    /// Another process has it.
    #[error("it is in use: another process serves or writes it")]
    InUse,
    /// The file cannot be opened, read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not an image, or one of another version.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// It is shorter than its first page says.
    #[error("it has {bytes} bytes and should have {expected}: it is cut off")]
    CutOff {
        /// Bytes of the file.
        bytes: u64,
        /// Bytes according to the first page.
        expected: u64,
    },
    /// A part is damaged, or could not be written.
    #[error("{0}")]
    Contents(String),
    /// The device cannot be put into an image yet.
    #[error("{0}")]
    Busy(&'static str),
}
