// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors as Python raises them.

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::{PyErr, create_exception};
use readpath_session::failure::{INTERRUPTED, describe, status};

create_exception!(
    readpath,
    Error,
    PyValueError,
    "A mistake in the arguments, or a run that failed. The text is that of the command ``readpath``."
);

/// An error of a call.
#[derive(Debug)]
pub struct Failure(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.into())
    }
}

impl From<Failure> for PyErr {
    fn from(Failure(error): Failure) -> PyErr {
        match status(&error) {
            INTERRUPTED => PyKeyboardInterrupt::new_err(()),
            _ => Error::new_err(arguments(&describe(&error))),
        }
    }
}

/// A text with its options as arguments of Python: `--max-idle` is `max_idle`.
fn arguments(text: &str) -> String {
    let named = |word: &str| match word.strip_prefix("--") {
        Some(option) if option.starts_with(|c: char| c.is_ascii_lowercase()) => {
            let end = option.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(option.len());
            option[..end].replace('-', "_") + &option[end..]
        }
        _ => word.to_owned(),
    };
    text.split_inclusive([' ', '(']).map(named).collect()
}
