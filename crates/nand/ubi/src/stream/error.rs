// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a read stream, where, and what would be right; and the account of lines that a lenient reader
//! left out.

use std::fmt;

/// A stream that cannot be read. Displayed as `file:line: field: message`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct StreamError {
    /// File as the caller named it.
    pub file: String,
    /// Line from 1, after decompression; 0 for the file as a whole.
    pub line: u64,
    /// The field at fault; empty when the line as a whole is meant.
    pub field: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Lines that a lenient reader left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Skips {
    /// How many.
    pub count: u64,
    /// The first of them: its line and what was wrong there.
    pub first: Option<(u64, String)>,
}

impl Skips {
    pub(super) fn note(&mut self, fault: &StreamError) {
        self.count += 1;
        if self.first.is_none() {
            let field = if fault.field.is_empty() { String::new() } else { format!("{}: ", fault.field) };
            self.first = Some((fault.line, format!("{field}{}", fault.message)));
        }
    }
}

/// At most 40 bytes of a line, printable.
pub(super) fn excerpt(text: &[u8]) -> String {
    let head = &text[..text.len().min(40)];
    let more = if text.len() > head.len() { "..." } else { "" };
    format!("\"{}{more}\"", head.escape_ascii())
}
