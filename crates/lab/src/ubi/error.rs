// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why there is no document of replays.

use super::document::label;
use readpath_ubi::cache::TooLarge;
use readpath_ubi::stream::{Outcome, Setup, Stream, run};

/// A replay that cannot be, or a document that must not.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A figure or name that a document may not have.
    #[error(transparent)]
    Document(#[from] readpath_results::Error),
    /// Too much to plan.
    #[error("{case}: {variant}: {source}")]
    TooLarge {
        /// The stream.
        case: String,
        /// The cache.
        variant: String,
        /// What is too much.
        source: TooLarge,
    },
}

/// Replays the stream called `case`.
pub(super) fn replay(case: &str, stream: &Stream, setup: &Setup) -> Result<Outcome, Error> {
    run(&stream.records, setup).map_err(|source| Error::TooLarge {
        case: case.to_owned(),
        variant: label(&setup.variant),
        source,
    })
}
