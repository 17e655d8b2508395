// SPDX-License-Identifier: MIT OR Apache-2.0
//! The read cache of UBI in experiments: replays of recorded streams and the table of 2016, as result documents. Knows
//! neither terminals nor files.

mod document;
mod published;
mod reproduce;

pub use document::{CacheCase, CacheTexts, document};
pub use published::{Configuration, Counted, Measured, Published, StepsPerRead, Task};
pub use reproduce::{is_attach, reproduce, task_of};
