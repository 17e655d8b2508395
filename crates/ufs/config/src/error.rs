// SPDX-License-Identifier: MIT OR Apache-2.0
//! The error of configuration: a place and a message.

use std::fmt;

/// The result of reading a file or a part of it.
pub(crate) type Result<T> = std::result::Result<T, ConfigFileError>;

/// An error in a configuration file, or in an override of one of its keys.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct ConfigFileError {
    /// The file as the caller named it, or the source of the text (`--set`).
    pub file: String,
    /// Line, from 1; 0 if there is none, because the text is not from a file or the file could not be read.
    pub line: usize,
    /// Column in characters, from 1; 0 when there is none.
    pub column: usize,
    /// Dotted path of the key (`lu[0].blocks`); empty if no key is at fault.
    pub key: String,
    /// The fault, and what would be valid.
    pub message: String,
}

impl fmt::Display for ConfigFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The known name with the least edit distance from a mistyped one, if that distance is small.
pub(crate) fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed: String = typed.chars().take(64).collect();
    let length = typed.chars().count();
    let most = if length < 4 { 1 } else { (length / 3).clamp(2, 4) };
    known
        .into_iter()
        .map(|k| (strsim::levenshtein(&typed, k), k))
        .filter(|(d, _)| *d <= most)
        .min_by_key(|(d, _)| *d)
        .map(|x| x.1)
}
