// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configures a device for a variant's use of HPB, and refuses a host with HPB on a device that would not provide it.
//! It knows only the configuration of device and host.

use super::host_control::refused;
use super::variant::Variant;
use crate::device::DevicePreset;
use crate::error::Result;
use crate::overrides::Override;
use crate::tree::At;
use readpath_host::{Control, GroupUpdate, HpbOptions, ParamLimits};

/// Bytes of a map entry on the host.
const ENTRY_BYTES: u64 = 8;
const CONTROL: &str = "hpb.control";
const PROTOTYPE: &str = "hpb.prototype";
const UPDATE: &str = "hpb.prototype.update";

impl Variant {
    /// The device of this variant: `base` with its overrides, and configured for the variant's use of HPB.
    ///
    /// # Errors
    /// Names the key in `set` that is at fault, or the key of HPB that this device does not support. A variant with
    /// HPB on a device with HPB that would not provide it is an error too; on a device without any HPB the host runs
    /// without.
    pub fn device(&self, base: &DevicePreset) -> Result<DevicePreset> {
        let preset = base.with_overrides(&self.set)?;
        match &self.hpb {
            Some(options) => Wish { variant: self, options }.configure(&preset),
            None => Ok(preset),
        }
    }
}

impl DevicePreset {
    /// Bytes of the map of an HPB region, if the device has HPB.
    pub fn region_map_bytes(&self) -> Option<u64> {
        // bRegionSize is the power of two in sectors of 512 bytes, eight to a block.
        self.device.hpb.as_ref().map(|hpb| (1u64 << hpb.region_size) / 8 * ENTRY_BYTES)
    }
}

/// A variant that uses HPB.
struct Wish<'a> {
    variant: &'a Variant,
    options: &'a HpbOptions,
}

impl Wish<'_> {
    fn configure(&self, preset: &DevicePreset) -> Result<DevicePreset> {
        if let Some(update) = self.options.prototype {
            return self.prototype(preset, update);
        }
        let Some(hpb) = &preset.device.hpb else {
            return match self.options.mode {
                Some(Control::Host) => {
                    let message = format!("the device '{}' has no HPB, so it has no host control mode", preset.name);
                    Err(self.at("mode").error(CONTROL, message))
                }
                _ => Ok(preset.clone()),
            };
        };
        if hpb.prototype.is_some() {
            let message = "makes the device one of the prototype, on which a host with HPB of JESD220-3 finds none; \
                           choose hpb = prototype-host or prototype-device, or leave the table out";
            return Err(preset.locate(PROTOTYPE).error(PROTOTYPE, message));
        }
        self.has_units(preset)?;
        let configured = match self.options.mode {
            Some(mode) => self.with(preset, CONTROL, "mode", mode.name())?,
            None => preset.clone(),
        };
        self.fits(&configured)?;
        Ok(configured)
    }

    /// The device configured as a prototype, with the side that begins updates.
    fn prototype(&self, preset: &DevicePreset, update: GroupUpdate) -> Result<DevicePreset> {
        if preset.device.hpb.is_none() {
            let message = format!("the device '{}' has no HPB, so it cannot be one of its prototype", preset.name);
            return Err(self.at("prototype").error(PROTOTYPE, message));
        }
        self.has_units(preset)?;
        self.with(preset, UPDATE, "prototype", update.name())
    }

    /// Checks that a logical unit has HPB.
    fn has_units(&self, preset: &DevicePreset) -> Result<()> {
        if preset.device.lus.iter().any(|lu| lu.hpb) {
            return Ok(());
        }
        let message = format!(
            "is false, as for all logical units: variant {:?} would be called one with HPB and have none; use hpb = \
             off, or make it true",
            self.variant.name
        );
        Err(preset.locate("lu[0].hpb").error("lu[0].hpb", message))
    }

    /// The device with the variant's value of a key. It replaces the value of the device file, which is not written
    /// for one host; a different value from an override is an error.
    fn with(&self, preset: &DevicePreset, key: &str, said_by: &str, word: &str) -> Result<DevicePreset> {
        let wanted = Override { at: self.at(said_by), ..Override::new(key, word, "")? };
        if let Some((at, other)) = preset.given_beside_file(key)
            && other != word
        {
            let message = format!("is {other:?}, but variant {:?} says {word:?}; leave it out", self.variant.name);
            return Err(at.error(key, message));
        }
        preset.with_overrides(&[wanted])
    }

    /// Checks that the host's parameters and memory fit the device.
    fn fits(&self, preset: &DevicePreset) -> Result<()> {
        let (Some(hpb), Some(region)) = (&preset.device.hpb, preset.region_map_bytes()) else { return Ok(()) };
        if let Some(bytes) = self.options.max_map_bytes.filter(|&bytes| bytes < region) {
            let message = format!("{bytes} bytes do not hold the map of one region, which has {region}");
            let key = if self.variant.says("max_map_mib") { "max_map_mib" } else { "max_map" };
            return Err(self.at(key).error(key, message));
        }
        let limits = ParamLimits {
            host_control: hpb.control == Control::Host,
            // bSubRegionSize has the same unit as bRegionSize.
            entries_per_sub_region: (1 << hpb.sub_region_size) / 8,
            // The last slot is for queries.
            queue_depth: u32::from(preset.host.slots - 1),
        };
        self.options.params.check(&limits).map_err(|e| {
            let (key, message) = refused(&e);
            self.at(key).error(key, message)
        })
    }

    /// The place of a key in the variant, or of the variant itself.
    fn at(&self, key: &str) -> At {
        self.variant.place_of(key)
    }
}
