// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a study or question cannot be made, or its results cannot be used.

use readpath_config::ConfigFileError;
use readpath_lab::question::AskError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a study or question cannot be made, or its results cannot be used.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The study file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    /// The study as a whole is impossible.
    #[error("{0}")]
    Study(String),
    /// No point that was tried can be made, so the study is wrong, not a point.
    #[error("none of {tried} points of the study that were tried can be made; point {point} ({settings}): {error}")]
    NoPoint {
        /// How many.
        tried: u64,
        /// The first that was tried.
        point: u64,
        /// Its settings.
        settings: String,
        /// Why.
        error: String,
    },
    /// A segment in the folder does not belong to the study.
    #[error("{}: {message}", path.display())]
    Segment {
        /// The segment.
        path: PathBuf,
        /// What is wrong and what would be right.
        message: String,
    },
    /// A file or folder cannot be used.
    #[error("{}: {what}: {error}", path.display())]
    Io {
        /// Its path.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// A question has no answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Every point of a question failed.
    #[error("{0}")]
    AllFailed(String),
    /// The work was interrupted; its points are kept.
    #[error("interrupted; the points that were made are kept")]
    Interrupted,
    /// The text is not a shard.
    #[error("shard {0:?}: expected I/N with I from 1 to N, such as 2/8")]
    Shard(String),
}

impl SweepError {
    /// Whether the user's input is at fault.
    pub fn is_usage(&self) -> bool {
        !matches!(self, SweepError::Io { what: "cannot be written", .. })
    }
}
