// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a call gives nothing, as Python has it.

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::{PyErr, create_exception};
use readpath_lab::experiment::ExperimentError;
use std::error::Error as StdError;

create_exception!(
    readpath,
    Error,
    PyValueError,
    "What was asked for cannot be, or a run failed. The text is that of the command ``readpath``."
);

/// Why a call gives nothing.
#[derive(Debug)]
pub enum Failure {
    /// In words.
    Wrong(String),
    /// Somebody wanted it to stop.
    Interrupted,
}

impl Failure {
    /// An error with its causes, each of which is told once: some repeat what caused them.
    pub fn of(error: &dyn StdError) -> Failure {
        let mut text = String::new();
        let mut next = Some(error);
        while let Some(error) = next {
            next = error.source();
            let cause = error.to_string();
            if text.is_empty() {
                text = cause;
            } else if !text.ends_with(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        Failure::Wrong(text)
    }

    /// The same of runs, which may have been stopped.
    pub fn of_runs(error: &ExperimentError) -> Failure {
        if error.is_interruption() { Failure::Interrupted } else { Failure::of(error) }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Wrong(text) => Error::new_err(text),
            Failure::Interrupted => PyKeyboardInterrupt::new_err(()),
        }
    }
}
