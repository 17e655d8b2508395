// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the program and the Python package share: options with their help, bounds and defaults; inputs that are opened;
//! presets, variants and cases that are made of them; files that are written; and errors with their classes.
//!
//! An option is declared once, in [`args`]: the command line is parsed by it. Errors name options as they stand there.
//! This crate must not know a terminal, a signal or Python.

pub mod args;
pub mod ask;
pub mod cases;
pub mod events;
pub mod examples;
pub mod failure;
pub mod files;
pub mod folder;
pub mod images;
pub mod inputs;
pub mod kinds;
pub mod memory;
pub mod presets;
pub mod process;
mod rooms;
pub mod runs;
pub mod studies;
pub mod traces;
pub mod typed;
pub mod ubi;
pub mod units;
pub mod variants;

pub use rooms::{config, device, lab, results, running, study, workload};

use failure::usage;
