// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that describe devices and experiments: commented TOML with units in key names.
//!
//! A file is read into a tree that knows the line of every value, overrides are put into that tree as if they had stood
//! in the file, and only then the tree is made into what the simulator takes. So every mistake, also one that the
//! device finds in itself, names file, line and key. This module opens no file: the caller passes the text, or a
//! function that reads one. It knows nothing of workloads beyond their description, and runs nothing.

#![warn(unreachable_pub)]

mod builtin;
mod decimal;
pub mod device;
mod error;
pub mod experiment;
mod keys;
mod overrides;
mod size;
pub mod study;
#[cfg(test)]
mod tests;
mod tree;

pub use builtin::{Builtin, ReadFile, experiments, presets};
pub use device::DevicePreset;
pub use error::ConfigFileError;
pub use experiment::{Claim, Event, EventKind, Experiment, GivenKey, LaunchKeys, MOST_EVENTS, keeps_memory};
pub use overrides::Override;
pub use size::{size, time};
