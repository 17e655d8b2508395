// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is handed over when tables are made anew, with or without what was learned.

use super::reuse::Known;

/// No line.
pub(super) const NO_LINE: u32 = u32::MAX;

/// A page that is followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub page: u64,
    /// Its line, or [`NO_LINE`] if it is not filled.
    pub line: u32,
    /// What was learned of it.
    pub known: Option<Known>,
}
