// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices as they are typed: a preset or a file, and keys of it that are changed.

use crate::inputs::read_text;
use crate::usage;
use anyhow::Result;
use readpath_config::{DevicePreset, Override};

/// What `--set` says.
pub fn overrides(set: &[String]) -> Result<Vec<Override>> {
    set.iter().map(|s| Override::from_argument(s, "--set")).collect::<Result<_, _>>().map_err(usage)
}

/// The device of that name, with what `--set` says.
pub fn preset(device: &str, set: &[String]) -> Result<DevicePreset> {
    let set = overrides(set)?;
    readpath_config::device::load(device, &read_text).and_then(|p| p.with_overrides(&set)).map_err(usage)
}
