// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host of a served device as text: `hpb=dcm`, `policy=lru memory=4M`. These are the keys of a variant.

use readpath_config::experiment::Variant;
use readpath_config::{DevicePreset, GivenKey};
use readpath_flash::Lean;
use readpath_host::HostConfig;
use readpath_kit::Ns;
use readpath_stack::{NoData, Stack, Typed};
use std::fmt;
use std::str::FromStr;

/// A host of a served device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host(String);

impl Host {
    /// Whether the device takes this host, and the host has the memory that it needs. Only the host knows what its
    /// tables take, so it looks at such a device, which is empty.
    ///
    /// # Errors
    /// Why it does not.
    pub fn fits(&self, base: &DevicePreset) -> Result<(), String> {
        let (preset, host) = self.of(base)?;
        if host.hpb.is_some_and(|hpb| hpb.memory_bytes.is_some() || hpb.max_map_bytes.is_some()) {
            let empty = Stack::<Lean, NoData, (), Typed>::new(&preset.device, host, preset.delays, NoData, (), Typed);
            empty.and_then(|mut stack| stack.start(Ns::ZERO)).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// The device as it is configured for this host, and the host's driver.
    ///
    /// # Errors
    /// The device has no such HPB.
    pub fn of(&self, base: &DevicePreset) -> Result<(DevicePreset, HostConfig), String> {
        let variant = variant(&self.0)?;
        let preset = variant.device(base).map_err(|error| error.to_string())?;
        let host = variant.host(&preset);
        Ok((preset, host))
    }
}

fn variant(text: &str) -> Result<Variant, String> {
    let mut keys = Vec::new();
    for word in text.split_whitespace() {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("'{word}' is not KEY=VALUE"))?;
        if key.contains('.') {
            return Err(format!("{key} is a key of the device, which was made with the image"));
        }
        keys.push(GivenKey::new(key, value, "host"));
    }
    const WHETHER: &str = "hpb=off, hpb=dcm, hpb=hcm or a policy, such as policy=lru";
    if keys.is_empty() {
        return Err(format!("needs {WHETHER}"));
    }
    if !keys.iter().any(|given| matches!(&*given.key, "hpb" | "policy")) {
        return Err(format!("does not say whether the host uses HPB; add {WHETHER}"));
    }
    let variant = Variant::of_keys("host", &keys).map_err(|error| error.to_string())?;
    match variant.set.first() {
        Some(other) => {
            Err(format!("{} is not a key of a host; there are: {}", other.key(), Variant::host_keys().join(", ")))
        }
        None => Ok(variant),
    }
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Host, String> {
        variant(text)?;
        Ok(Host(text.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
