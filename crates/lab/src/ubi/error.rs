// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays of streams, what tables call their caches, and why there is no document of them.

use readpath_ubi::cache::TooLarge;
use readpath_ubi::stream::{Outcome, Setup, Stream, run};
use readpath_ubi::variant::Variant;

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
        /// The limit that is exceeded.
        source: TooLarge,
    },
}

pub(super) fn replay(case: &str, stream: &Stream, setup: &Setup) -> Result<Outcome, Error> {
    run(&stream.records, setup).map_err(|source| Error::TooLarge {
        case: case.to_owned(),
        variant: label(&setup.variant),
        source,
    })
}

/// Name of a variant in tables.
pub(super) fn label(variant: &Variant) -> String {
    match variant.lines {
        _ if !variant.kind.has_lines() => variant.name(),
        1 => format!("{}, 1 line", variant.name()),
        n => format!("{}, {n} lines", variant.name()),
    }
}
