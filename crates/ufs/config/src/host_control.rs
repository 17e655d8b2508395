// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who controls HPB: keys of a variant that choose the control mode or a policy, limit its memory and set the parameters of
//! host control mode. What they do is the business of the host.

use super::error::ConfigFileError;
use super::experiment::{odd_bytes, whole_mib};
use super::section::Section;
use readpath_host::{
    Control, HpbOptions, HpbParam, HpbParams, ListOrder, LongReads, ManagedPolicy, ParamError, ParamLimits,
    PolicyChoice,
};
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
                && !HpbParam::MANAGED.contains(&param)
            {
                let (name, used) = (policy.name(), HpbParam::MANAGED.map(HpbParam::name).join(" and "));
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
    let checked = options.params.check(&ParamLimits { host_control, ..ParamLimits::WIDEST });
    checked.map_err(|e| {
        let (key, message) = refused(&e);
        s.error(key, message)
    })?;
    as_linux(s, options)
}

/// The key at fault when parameters are refused, and what is wrong with it.
pub(super) fn refused(error: &ParamError) -> (&'static str, String) {
    let key = error.param().map_or("mode", HpbParam::name);
    let text = error.to_string();
    (key, text.strip_prefix(&format!("{key} ")).unwrap_or(&text).to_owned())
}

/// What is to do exactly as Linux does not do what Linux cannot.
fn as_linux(s: &Section, options: &HpbOptions) -> Result<()> {
    if !options.strict_linux {
        return Ok(());
    }
    let never = [
        ("order", options.order != ListOrder::Activation, "keeps its list by activation"),
        ("dirty_bitmap", !options.dirty_bitmap, "always marks what is written"),
        ("long_reads", options.long_reads != LongReads::First, "6.1 sends the entry of the first block only"),
    ];
    match never.into_iter().find(|(_, other, _)| *other) {
        Some((key, _, linux)) => Err(s.error(key, format!("does not go with strict_linux: Linux {linux}"))),
        None => Ok(()),
    }
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
