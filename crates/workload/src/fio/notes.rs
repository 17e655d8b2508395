// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes on a job file, each with its file and line. Knows no option.

use std::collections::BTreeSet;

use super::lexer::At;

/// Notes for the reader of the results, one per subject.
#[derive(Default)]
pub(super) struct Notes {
    seen: BTreeSet<String>,
    pub list: Vec<String>,
}

impl Notes {
    /// Adds a note unless there is one about `subject`; it begins with the file and line.
    pub(super) fn add(&mut self, subject: &str, at: &At, note: impl FnOnce() -> String) {
        if !self.seen.contains(subject) {
            self.seen.insert(subject.to_owned());
            self.list.push(format!("{at}: {}", note()));
        }
    }
}
