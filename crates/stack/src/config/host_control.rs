// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who controls HPB: keys of a variant that choose the control mode or a policy, limit its memory and set the parameters of
//! host control mode, and the device that is configured for it. What they do is the business of the host.

use super::device::DevicePreset;
use super::error::ConfigFileError;
use super::experiment::{odd_bytes, whole_mib};
use super::overrides::Override;
use super::section::Section;
use super::tree::At;
use readpath_host::{Control, HpbOptions, HpbParam, HpbParams, ListOrder, ManagedPolicy, ParamLimits, PolicyChoice};
use serde::Serialize;
use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, ConfigFileError>;

/// Keys of a variant that are read here: mode, policy and memory, and the parameters by their names in Linux's `hpb_params`.
pub(super) const KEYS: [&str; 13] = [
    "mode",
    "policy",
    "memory_mib",
    "memory",
    "requeue_timeout_ms",
    "activation_thld",
    "normalization_factor",
    "eviction_thld_enter",
    "eviction_thld_exit",
    "read_timeout_ms",
    "read_timeout_expiries",
    "timeout_polling_interval_ms",
    "inflight_map_req",
];

pub(super) const MODES: [(&str, Control); 2] = [("device", Control::Device), ("host", Control::Host)];

/// Parameters that a policy of this host's own heeds: the others are rules of Linux's.
const MANAGED_PARAMS: [HpbParam; 2] = [HpbParam::RequeueTimeoutMs, HpbParam::InflightMapReq];

/// Reads the keys of a variant that are there. What depends on the device is checked when the host has found it.
pub(super) fn read(s: &Section, options: &mut HpbOptions) -> Result<()> {
    if s.has("mode") {
        options.mode = Some(s.word("mode", &MODES)?);
    }
    if s.has("policy") {
        read_policy(s, options)?;
    }
    options.memory_bytes = s.memory("memory_mib", "memory")?;
    if options.memory_bytes.is_some() && options.max_map_bytes.is_some() {
        let key = if s.has("memory") { "memory" } else { "memory_mib" };
        let other = if s.has("max_map") { "max_map" } else { "max_map_mib" };
        return Err(s.error(
            key,
            format!("bounds maps, dirty bitmaps and tables, and {other} the maps alone; keep one of them"),
        ));
    }
    for param in HpbParam::ALL {
        if s.has(param.name()) {
            if let Some(policy) = options.policy
                && !MANAGED_PARAMS.contains(&param)
            {
                let (name, used) = (policy.name(), MANAGED_PARAMS.map(HpbParam::name).join(" and "));
                let message = format!(
                    "belongs to Linux's host control mode (policy = \"linux-hcm\"); {name:?} decides in its own way and takes \
                     {used} only"
                );
                return Err(s.error(param.name(), message));
            }
            *options.params.slot(param) = s.integer(param.name(), 0..=i32::MAX as u64)?;
        }
    }
    // Where the device says who is in control, the host is asked when it has found it.
    let host_control = options.mode != Some(Control::Device);
    options.params.check(&ParamLimits { host_control, ..ParamLimits::WIDEST }).map_err(|e| {
        let key = e.param().map_or("mode", HpbParam::name);
        let text = e.to_string();
        s.error(key, text.strip_prefix(&format!("{key} ")).unwrap_or(&text))
    })
}

/// A policy says which control mode it takes.
fn read_policy(s: &Section, options: &mut HpbOptions) -> Result<()> {
    let words = PolicyChoice::ALL.map(|p| (p.name(), p));
    let policy = s.word("policy", &words)?;
    let (name, mode) = (policy.name(), policy.mode());
    if let Some(other) = options.mode
        && other != mode
    {
        let message =
            format!("{name:?} takes {} control mode, but mode says {}; leave mode out", mode.name(), other.name());
        return Err(s.error("policy", message));
    }
    options.mode = Some(mode);
    options.policy = policy.managed();
    if options.policy.is_some() && options.strict_linux {
        return Err(s.error("strict_linux", format!("does as Linux does, which has no policy {name:?}")));
    }
    if options.policy.is_some() && options.order != ListOrder::Activation {
        return Err(s.error("order", format!("is that of Linux's list, which policy = {name:?} does not have")));
    }
    Ok(())
}

/// The same keys as they are written: what is not as usual.
#[derive(Serialize)]
pub(super) struct Keys {
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_mib: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
    #[serde(flatten)]
    params: BTreeMap<&'static str, u32>,
}

impl Keys {
    pub(super) fn of(options: &HpbOptions) -> Keys {
        let changed = HpbParam::ALL.into_iter().filter(|&p| options.params.get(p) != HpbParams::LINUX.get(p));
        Keys {
            mode: options.mode.map(Control::name),
            policy: options.policy.map(ManagedPolicy::name),
            memory_mib: whole_mib(options.memory_bytes),
            memory: odd_bytes(options.memory_bytes),
            params: changed.map(|p| (p.name(), options.params.get(p))).collect(),
        }
    }
}

/// Bytes of a map entry on the host.
const ENTRY_BYTES: u64 = 8;

impl DevicePreset {
    /// Bytes of the map of an HPB region, if the device has HPB.
    pub fn region_map_bytes(&self) -> Option<u64> {
        // bRegionSize is the power of two in sectors of 512 bytes, eight to a block.
        self.device.hpb.as_ref().map(|hpb| (1u64 << hpb.region_size) / 8 * ENTRY_BYTES)
    }

    /// The device as its maker or its user would have configured it for a host with these options: bHPBControl as they want
    /// it. `origin` names whoever wants it, for errors.
    ///
    /// # Errors
    /// When the device does not offer that mode, or no HPB at all, or the host may not hold even one region.
    pub fn configured_for(&self, hpb: Option<&HpbOptions>, origin: &str) -> Result<DevicePreset> {
        if let Some(update) = hpb.and_then(|options| options.prototype) {
            // Its groups are not regions; its host knows what one takes.
            return self.as_prototype(update, origin);
        }
        if let (Some(region), Some(bytes)) = (self.region_map_bytes(), hpb.and_then(|options| options.max_map_bytes))
            && bytes < region
        {
            let message = format!("{bytes} bytes do not hold the map of one region, which has {region}");
            return Err(At { file: origin.into(), line: 0, column: 0 }.error("max_map", message));
        }
        let Some(mode) = hpb.and_then(|options| options.mode) else { return Ok(self.clone()) };
        let wanted = Override::new("hpb.control", mode.name(), origin)?;
        match self.device.hpb {
            Some(_) => self.with_overrides(&[wanted]),
            // A host that may use device control mode, which is nothing special, does without.
            None if mode == Control::Device => Ok(self.clone()),
            None => {
                let message = format!("the device '{}' has no HPB, so it has no host control mode", self.name);
                Err(wanted.at.error("hpb.control", message))
            }
        }
    }
}
