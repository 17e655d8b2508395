// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in a read stream: where, what, and what would be valid; and the count of lines that a lenient reader left
//! out.

use std::fmt;

/// An unreadable stream. Displayed as `file:line: field: message`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct StreamError {
    /// File as the caller named it.
    pub file: String,
    /// Line from 1, after decompression; 0 for the file as a whole.
    pub line: u64,
    /// The field at fault; empty for the line as a whole.
    pub field: &'static str,
    /// The fault, and what would be valid.
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
    /// Number of lines.
    pub count: u64,
    /// Number and fault of the first of them.
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
