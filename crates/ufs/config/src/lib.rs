// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that describe devices and experiments: commented TOML with units in key names.
//!
//! A file is read into a tree that keeps the line of every value. Overrides replace values of the tree, and then the
//! configuration is made from it. So every error names file, line and key, including errors of the device's own
//! checks. This crate opens no file: callers pass the text, or a function that reads a file. It knows workloads only
//! by their description, and runs nothing.

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
