// SPDX-License-Identifier: MIT OR Apache-2.0
//! State that is carried over when tables are rebuilt, with or without learned data.

use super::reuse::Known;

pub(super) const NO_LINE: u32 = u32::MAX;

/// A followed page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    pub page: u64,
    /// Its line, or [`NO_LINE`] if it is not filled.
    pub line: u32,
    /// Learned data of the page.
    pub known: Option<Known>,
}
