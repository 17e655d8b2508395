// SPDX-License-Identifier: MIT OR Apache-2.0
//! The read cache of UBI in experiments: replays of recorded streams and the table of 2016, as result documents. Knows
//! neither terminals nor files.

mod document;

pub use document::{CacheCase, CacheTexts, document};
