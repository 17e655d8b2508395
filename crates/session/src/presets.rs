// SPDX-License-Identifier: MIT OR Apache-2.0
//! Devices as options name them: a preset or a file, with changed keys.

use crate::args::Hosts;
use crate::inputs::read_text;
use crate::kinds::{self, Kind};
use crate::usage;
use anyhow::Result;
use readpath_config::experiment::Variant;
use readpath_config::{DevicePreset, Override};
use std::path::Path;

/// The keys that `--set` changes.
///
/// # Errors
/// When one is not KEY=VALUE.
pub fn overrides(set: &[String]) -> Result<Vec<Override>> {
    set.iter().map(|s| Override::from_argument(s, "--set")).collect::<Result<_, _>>().map_err(usage)
}

/// The variants that options choose. On a device that comes without HPB all hosts are equal, so unless they say how HPB
/// is used there is one for each combination of the rest. `set` changes keys of the device.
///
/// # Errors
/// When there is no such device, or as [`Hosts::variants`].
pub fn hosts_of(device: &str, set: &[String], hosts: &Hosts) -> Result<Vec<Variant>> {
    let mut variants = hosts.variants()?;
    let said = hosts.vary.iter().any(|text| text.contains("hpb") || text.contains("policy"));
    let chosen = said || !hosts.hpb.is_empty() || !hosts.policy.is_empty() || hosts.host_memory.is_some();
    if !chosen && !preset(device, set)?.device.lus.iter().any(|unit| unit.hpb) {
        variants.retain(|variant| variant.hpb.is_none());
    }
    Ok(variants)
}

/// The device of that name, with the keys that `--set` changes.
///
/// # Errors
/// When there is no such device, or a key or value is wrong.
pub fn preset(device: &str, set: &[String]) -> Result<DevicePreset> {
    let set = overrides(set)?;
    kinds::check(Path::new(device), Kind::Device)?;
    readpath_config::device::load(device, &read_text).and_then(|p| p.with_overrides(&set)).map_err(usage)
}
