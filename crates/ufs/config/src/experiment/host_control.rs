// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of a variant that choose the control mode or a policy, limit the memory of HPB and set the parameters of host
//! control mode. It does not interpret them.

use crate::error::Result;
use crate::keys::{Key, Keys, fields, size, whole, words};
use readpath_host::{
    Control, ExclusiveOptions, HpbOptions, HpbParam, HpbParams, ListOrder, LongReads, ManagedPolicy, ParamError,
    ParamLimits, PolicyChoice,
};
use readpath_kit::Ns;

/// Reads the remaining keys of a variant's HPB. The host checks what depends on the device after the probe.
pub(super) fn read(k: &mut Keys<HpbOptions>, options: HpbOptions) -> Result<HpbOptions> {
    fields! { k:
        /// who decides which regions are active; the device is configured for it. By default its own configuration
        mode: words(Control::WORDS).optional();
    }
    let policy = Key::new(
        "policy",
        "[host memory policy](../policies.md); it sets the control mode. By default Linux's for the mode",
    );
    let policies = words(PolicyChoice::ALL.map(|p| (p.name(), p))).optional();
    let policy = k.key(policy, policies, |options| options.policy.map(PolicyChoice::Managed))?;
    let mode = match policy {
        Some(policy) => Some(check_policy(k, policy, mode, &options)?),
        None => mode,
    };
    let bound = "limit of all host memory that HPB of a logical unit takes";
    let memory_bytes = memory(k, ["memory_mib", "memory"], bound, |options| options.memory_bytes)?;
    let given = |keys: [&'static str; 2]| if k.has(keys[1]) { keys[1] } else { keys[0] };
    let (key, other) = (given(["memory_mib", "memory"]), given(["max_map_mib", "max_map"]));
    let message = format!("bounds maps, dirty bitmaps and tables, and {other} the maps alone; keep one of them");
    k.refuse(memory_bytes.is_some() && options.max_map_bytes.is_some(), key, message)?;
    let policy = policy.and_then(PolicyChoice::managed);
    let message = "is measured by this host's own policies only; choose one of them, or \"pre-request\"";
    k.refuse(policy.is_none() && options.long_reads == LongReads::Measured, "long_reads", message)?;
    let exclusive = exclusive(k, policy)?;
    let options = HpbOptions { mode, policy, exclusive, memory_bytes, params: params(k, policy)?, ..options };
    // Without `mode` the device chooses the mode, and the host checks again after the probe.
    let limits = ParamLimits { host_control: mode != Some(Control::Device), ..ParamLimits::WIDEST };
    if let Err(e) = options.params.check(&limits) {
        let (key, message) = refused(&e);
        k.refuse(true, key, message)?;
    }
    as_linux(k, &options)?;
    Ok(options)
}

/// Constants of the policy `exclusive`, and only of that.
fn exclusive(k: &mut Keys<HpbOptions>, policy: Option<ManagedPolicy>) -> Result<ExclusiveOptions> {
    let default = ExclusiveOptions::DEFAULT;
    let misses = "misses that are worth a load to the policy `exclusive`";
    let quiet = "time without requests after which the device counts as idle to the policy `exclusive`";
    let (misses, quiet) = (Key::new("exclusive_misses", misses), Key::new("exclusive_quiet_us", quiet));
    for key in [&misses, &quiet] {
        let stray = k.has(key.name) && policy != Some(ManagedPolicy::Exclusive);
        k.refuse(stray, key.name, "belongs to policy = \"exclusive\"".to_owned())?;
    }
    let misses = k.key(misses, whole(1..=255).or(default.misses).quiet(), |options| options.exclusive.misses)?;
    let quiet_us =
        k.key(quiet, whole(0..=1_000_000).or(default.quiet.0 / 1000).quiet(), |o| o.exclusive.quiet.0 / 1000)?;
    Ok(ExclusiveOptions { misses, quiet: Ns::from_us(quiet_us) })
}

/// A memory size under one of two names: in whole MiB, or as any size.
pub(super) fn memory(
    k: &mut Keys<HpbOptions>,
    [in_mib, in_bytes]: [&'static str; 2],
    doc: &'static str,
    of: fn(&HpbOptions) -> Option<u64>,
) -> Result<Option<u64>> {
    let odd = |options: &HpbOptions, odd| of(options).filter(|bytes| bytes.is_multiple_of(1 << 20) != odd);
    let mib = whole(1..=1 << 20).scaled(|mib| mib << 20, |bytes| bytes >> 20, "").optional();
    let whole = k.key(Key::new(in_mib, doc), mib, |options| odd(options, false))?;
    let any = k.key(Key::new(in_bytes, "the same, as any size"), size().optional(), |options| odd(options, true))?;
    k.refuse(whole.is_some() && any.is_some(), in_bytes, format!("is what {in_mib} says too; keep one of them"))?;
    Ok(whole.or(any))
}

/// Parameters of host control mode; only those that differ from Linux's are written.
fn params(k: &mut Keys<HpbOptions>, policy: Option<ManagedPolicy>) -> Result<HpbParams> {
    const DOC: &str = "[parameter of host control mode](../hpb-modes.md#parameters), under Linux's name and rule";
    let mut params = HpbParams::LINUX;
    for param in HpbParam::ALL {
        let values = whole(0..=i32::MAX as u64).or(HpbParams::LINUX.get(param)).quiet();
        *params.slot(param) = k.key(Key::new(param.name(), DOC), values, |options| options.params.get(param))?;
        if let Some(policy) = policy.filter(|_| k.has(param.name()) && !HpbParam::MANAGED.contains(&param)) {
            let (name, used) = (policy.name(), HpbParam::MANAGED.map(HpbParam::name).join(" and "));
            let message = format!(
                "belongs to Linux's host control mode (policy = \"linux-hcm\"); {name:?} decides in its own way and \
                 takes {used} only"
            );
            k.refuse(true, param.name(), message)?;
        }
    }
    Ok(params)
}

/// The key at fault when parameters are refused, and the message.
pub(super) fn refused(error: &ParamError) -> (&'static str, String) {
    let key = error.param().map_or("mode", HpbParam::name);
    let text = error.to_string();
    (key, text.strip_prefix(&format!("{key} ")).unwrap_or(&text).to_owned())
}

/// Refuses options that Linux does not have, with `strict_linux`.
fn as_linux(k: &Keys<HpbOptions>, options: &HpbOptions) -> Result<()> {
    let never = [
        ("order", options.order != ListOrder::Activation, "keeps its list by activation"),
        ("dirty_bitmap", !options.dirty_bitmap, "always marks what is written"),
        ("long_reads", options.long_reads != LongReads::First, "6.1 sends the entry of the first block only"),
    ];
    never.into_iter().try_for_each(|(key, other, linux)| {
        k.refuse(options.strict_linux && other, key, format!("does not go with strict_linux: Linux {linux}"))
    })
}

/// Checks that a policy fits the control mode.
fn check_policy(
    k: &Keys<HpbOptions>,
    policy: PolicyChoice,
    mode: Option<Control>,
    options: &HpbOptions,
) -> Result<Control> {
    let (name, takes) = (policy.name(), policy.mode());
    if let Some(other) = mode {
        let (takes, other) = (takes.name(), other.name());
        let message = format!("{name:?} takes {takes} control mode, but mode says {other}; leave mode out");
        k.refuse(takes != other, "policy", message)?;
    }
    let own = policy.managed().is_some();
    let message = format!("does as Linux does, which has no policy {name:?}");
    k.refuse(own && options.strict_linux, "strict_linux", message)?;
    let message = format!("is that of Linux's list, which policy = {name:?} does not have");
    k.refuse(own && options.order != ListOrder::Activation, "order", message)?;
    Ok(takes)
}
