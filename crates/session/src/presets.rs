// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices as options name them: a preset or a file, with changed keys.

use crate::inputs::read_text;
use crate::usage;
use anyhow::Result;
use readpath_config::{DevicePreset, Override};

/// The keys that `--set` changes.
///
/// # Errors
/// When one is not KEY=VALUE.
pub fn overrides(set: &[String]) -> Result<Vec<Override>> {
    set.iter().map(|s| Override::from_argument(s, "--set")).collect::<Result<_, _>>().map_err(usage)
}

/// The device of that name, with the keys that `--set` changes.
///
/// # Errors
/// When there is no such device, or a key or value is wrong.
pub fn preset(device: &str, set: &[String]) -> Result<DevicePreset> {
    let set = overrides(set)?;
    readpath_config::device::load(device, &read_text).and_then(|p| p.with_overrides(&set)).map_err(usage)
}
