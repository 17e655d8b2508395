// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that describe devices and experiments: commented TOML with units in key names.
//!
//! A file is read into a tree that knows the line of every value, overrides are put into that tree as if they had stood
//! in the file, and only then the tree is made into what the simulator takes. So every mistake, also one that the device
//! finds in itself, names file, line and key. This module opens no file: whoever calls it passes the text, or a function
//! that reads one. It knows nothing of workloads beyond their description, and runs nothing.

mod booster;
mod builtin;
mod claim;
mod configured;
mod decimal;
pub mod device;
mod echo;
mod entries;
mod error;
mod events;
pub mod experiment;
mod ftl;
mod host_control;
mod hpb2;
mod launches;
mod map_memory;
mod overrides;
mod prototype;
mod section;
mod size;
#[cfg(test)]
mod tests;
mod tree;
mod typed_variant;

pub use builtin::{Builtin, ReadFile, experiments, presets};
pub use claim::Claim;
pub use device::{DevicePreset, Scheduler};
pub use echo::DeviceEcho;
pub use error::ConfigFileError;
pub use events::{Event, EventKind, MOST_EVENTS, keeps_memory};
pub use experiment::Experiment;
pub use launches::LaunchKeys;
pub use overrides::Override;
pub use size::size;
pub use typed_variant::GivenKey;
