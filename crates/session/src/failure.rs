// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classes of errors: a mistake of the user, damage that was found, an interruption, or a failure. Each has an exit
//! status.

use readpath_lab::runs::ExperimentError;
use std::io;

/// A mistake of the user, as opposed to a failure of the run.
#[derive(Debug, thiserror::Error)]
#[error("{}", describe(.0))]
struct Usage(anyhow::Error);

/// Exit status of a command that found damage, as fsck(8) has it.
const DAMAGED: u8 = 4;

/// Damage that a command found.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Damaged(pub String);

/// Exit status of a search that found what it looked for.
const FOUND: u8 = 3;

/// Some states were not survived.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotSurvived(pub String);

/// Exit status of a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

/// The command was to stop, and has written nothing.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; nothing was written")]
pub struct Interrupted;

/// The command was interrupted, and the message says which results are kept.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unfinished(pub String);

/// The command has made its share, and others have theirs to make before there is an answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Partial(pub String);

/// A program that this one started has failed. The command fails with the same status.
#[derive(Debug, thiserror::Error)]
#[error("the program of {program} ended with status {status}")]
pub struct Ended {
    /// The option that names the program.
    pub program: &'static str,
    /// Its exit status; 128 and the signal if a signal ended it.
    pub status: u8,
}

/// Marks an error as a mistake of the user.
pub fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    anyhow::Error::new(Usage(error.into()))
}

/// The class of an error of runs.
pub fn classify(error: ExperimentError) -> anyhow::Error {
    if error.is_interruption() {
        anyhow::Error::new(Interrupted)
    } else if error.is_usage() {
        usage(error)
    } else {
        error.into()
    }
}

/// The exit status of an error.
pub fn status(error: &anyhow::Error) -> u8 {
    if let Some(ended) = error.downcast_ref::<Ended>() {
        return ended.status;
    }
    match () {
        () if error.is::<Usage>() => 2,
        () if error.is::<Partial>() => 0,
        () if error.is::<Damaged>() => DAMAGED,
        () if error.is::<NotSurvived>() => FOUND,
        () if error.is::<Interrupted>() || error.is::<Unfinished>() => INTERRUPTED,
        () => 1,
    }
}

/// An error with its causes; a cause that the text ends with already is left out.
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

/// Whether the reader of our output has closed it.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}
