// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions made of their options. Who makes their points, and how the answer is shown, is decided elsewhere.

mod asked;
pub mod break_even;
pub mod compare;
mod elsewhere;
pub mod experiment;
pub mod fit;
pub mod hmb;
pub mod policies;
pub mod power;
pub mod probe;
pub mod replay;
pub mod reproduce;

pub use asked::{Asked, Asker};
pub use elsewhere::Elsewhere;

use anyhow::Result;
use readpath_lab::runs::Shared;
use std::sync::Arc;

/// Called when the options of a question are checked, before its traces are read, with case and variant of the runs
/// that are known by then. It returns what runs and the reading of traces share.
pub type Ready<'a> = &'a mut dyn FnMut(Vec<(String, String)>) -> Result<Arc<Shared>>;
