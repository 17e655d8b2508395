// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a command fails: by a mistake of the user's, because it was interrupted, or otherwise; and what is said of it.

use readpath_lab::experiment::ExperimentError;
use std::io;

/// A mistake of the user, as opposed to a failure of the run.
#[derive(Debug, thiserror::Error)]
#[error("{}", describe(.0))]
struct Usage(anyhow::Error);

/// Exit status of a command that found damage in what it looked into, as fsck has it.
const DAMAGED: u8 = 4;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(pub String);

/// Exit status of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

#[derive(Debug, thiserror::Error)]
#[error("interrupted; nothing was written")]
pub struct Interrupted;

/// The same of what keeps what it has made, in words that say so.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unfinished(pub String);

/// Marks an error as the user's.
pub fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    anyhow::Error::new(Usage(error.into()))
}

/// Marks what is the user's mistake, or wish.
pub fn classify(error: ExperimentError) -> anyhow::Error {
    if error.is_interruption() {
        anyhow::Error::new(Interrupted)
    } else if error.is_usage() {
        usage(error)
    } else {
        error.into()
    }
}

/// The exit status that an error means.
pub fn status(error: &anyhow::Error) -> u8 {
    match () {
        () if error.is::<Usage>() => 2,
        () if error.is::<Damaged>() => DAMAGED,
        () if error.is::<Interrupted>() || error.is::<Unfinished>() => INTERRUPTED,
        () => 1,
    }
}

/// An error with its causes, each of which is told once: some repeat what caused them.
pub fn describe(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string).filter(|c| !c.is_empty()) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Whether an error only says that nobody reads our output any more.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
