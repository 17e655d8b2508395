// SPDX-License-Identifier: MIT OR Apache-2.0
//! The read cache of UBI in experiments: replays of recorded streams and the table of 2016, as result documents. Knows
//! neither terminals nor files.

mod beyond;
mod by_lines;
mod document;
mod error;
mod model;
mod published;
mod reproduce;
mod streams;
mod verdict;

pub use document::{CacheCase, CacheTexts, document};
pub use error::Error;
pub use published::{Configuration, Counted, Measured, PerTask, Published, Task};
pub use reproduce::{Reproduction, reproduce};
pub use streams::{TaskStream, is_attach, task_of};
