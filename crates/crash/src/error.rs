// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong.

use readpath_device::{ConfigError, LoadError};
use readpath_store::ImageError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why states cannot be tried.
#[derive(Debug, Error)]
pub enum CrashError {
    /// The recording does not have what is needed, or does not belong to the image.
    #[error("{0}")]
    Recording(String),
    /// The device cannot exist.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device cannot begin from the image.
    #[error("the device cannot begin from the image: {0}")]
    Load(#[from] LoadError),
    /// The image cannot be opened.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A block of the image cannot be read.
    #[error("block {block} of the image: {what}")]
    Block {
        /// The block.
        block: u32,
        /// Why.
        what: String,
    },
    /// No state has this name.
    #[error("'{name}' names no state: {what}")]
    Name {
        /// The name.
        name: String,
        /// Why.
        what: String,
    },
    /// The program that checks a state cannot be started.
    #[error("{program}: cannot be started: {error}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// The program does not survive a state in which nothing is lost.
    #[error(
        "CHECK does not survive the state after the last request, in which nothing is lost ({how}); it ended with:\n{said}"
    )]
    Whole {
        /// How it ended.
        how: String,
        /// The end of what it said.
        said: String,
    },
    /// A file of kept outcomes cannot be used.
    #[error("{path}: {what}")]
    Kept {
        /// The file.
        path: PathBuf,
        /// Why.
        what: String,
    },
    /// The system refuses what every state needs.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It was to stop.
    #[error("interrupted")]
    Interrupted,
}
