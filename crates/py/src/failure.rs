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

/// A text with its options as arguments of Python: `--max-idle <MS>` is `max_idle`.
fn arguments(text: &str) -> String {
    let (mut said, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("--") {
        let (before, option) = (&rest[..at], &rest[at + 2..]);
        let end = option.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(option.len());
        said.push_str(before);
        rest = &option[end..];
        if end == 0 || !(said.is_empty() || said.ends_with([' ', '(', '\''])) {
            said.push_str("--");
            said.push_str(&option[..end]);
            continue;
        }
        said.push_str(&option[..end].replace('-', "_"));
        // What the command's help calls its value.
        if let Some((value, after)) = rest.strip_prefix(" <").and_then(|rest| rest.split_once('>'))
            && value.chars().all(|c| c.is_ascii_uppercase() || "_=/|".contains(c))
        {
            rest = after;
        }
    }
    said + rest
}
