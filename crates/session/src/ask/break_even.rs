// SPDX-License-Identifier: MIT OR Apache-2.0
//! The least value of a key with which a workload is served as well as by another variant. Each round of the search is
//! a comparison; the answer is one of all of them.

use super::Ready;
use super::compare::{TraceBasis, layout};
use crate::args::{BreakEven as BreakEvenArgs, HPB_OFF};
use crate::inputs::is_stdin;
use crate::kinds::{self, Kind};
use crate::presets::{overrides, preset};
use crate::runs::mark;
use crate::variants::{pair, split};
use crate::{typed, usage};
use anyhow::{Result, anyhow};
use readpath_config::GivenKey;
use readpath_config::experiment::Variant;
use readpath_lab::compare::{Basis, BreakEven, Grid, Seeds, Wanted};
use readpath_lab::runs::Shared;
use std::sync::Arc;

const MAP_CACHE: &str = "map_cache.size_kib";
/// Least size of a map cache and distance of sizes that are tried, in KiB, by default.
const CACHE_STEP_KIB: u64 = 64;

/// The question of a search.
///
/// # Errors
/// When an option or the workload is wrong.
pub fn question(args: &BreakEvenArgs, ready: Ready) -> Result<BreakEven> {
    let grid = grid(args)?;
    if !(0.0..=1000.0).contains(&args.within) {
        return Err(usage(anyhow!("--within: {} must be a number of percent from 0 to 1000", args.within)));
    }
    if matches!(&*args.key, "hpb" | "policy") {
        return Err(usage(anyhow!("--key {}: its values are no numbers", args.key)));
    }
    if is_stdin(&args.workload) {
        return Err(usage(anyhow!(
            "the workload is read for every round, which standard input cannot be; give a file"
        )));
    }
    let (against, keys) = with_host("--against", &args.against)?;
    let against = Variant::of_keys(&against, &keys).map_err(usage)?;
    let (_, with) = with_host("--with", &args.with)?;
    if is_of_host(&args.key) && with.iter().any(|given| given.key == "hpb" && given.text == "off") {
        return Err(usage(anyhow!("--key {0}: only a host with HPB has it; give --with hpb=dcm or another", args.key)));
    }
    let seeds = Seeds::new(args.seed, args.seeds);
    let seeds =
        seeds.ok_or_else(|| usage(anyhow!("--seed: {} seeds from {} on go beyond 64 bits", args.seeds, args.seed)))?;
    let wanted = Wanted {
        key: args.key.clone(),
        grid,
        against,
        with,
        metric: args.metric.clone(),
        within: args.within,
        whole_only: !args.precondition.is_empty(),
    };
    let shared = ready(Vec::new())?;
    let basis = if kinds::is_job_file(&args.workload) { job(args)? } else { trace(args, &wanted.against, &shared)? };
    BreakEven::new(basis, wanted, seeds, &args.workload.display().to_string()).map_err(mark)
}

fn job(args: &BreakEvenArgs) -> Result<Basis> {
    let before = (!args.precondition.is_empty()).then_some("--precondition");
    if let Some(option) = before.or(args.how.given()) {
        let name = args.workload.display();
        return Err(usage(anyhow!("{option} is for traces, but {name} is a fio job")));
    }
    kinds::check(&args.workload, Kind::Job)?;
    Ok(Basis::Experiment {
        experiment: Arc::new(typed::of_job(&args.workload, &args.device, args.fill, Vec::new())),
        set: overrides(&args.making.set)?,
        case: None,
        read: args.making.reader(),
    })
}

fn trace(args: &BreakEvenArgs, against: &Variant, shared: &Shared) -> Result<Basis> {
    let read = TraceBasis {
        how: &args.how,
        before: &args.precondition,
        file: &args.workload,
        device: &args.device,
        set: &args.making.set,
        layout: layout(args.fill)?,
    };
    read.check(std::slice::from_ref(against))?;
    read.basis(shared)
}

fn grid(args: &BreakEvenArgs) -> Result<Grid> {
    let (mut from, mut to, mut step) = (args.from, args.to, args.step);
    if args.key == MAP_CACHE {
        let device = preset(&args.device, &args.making.set)?.device;
        let map_kib = u64::from(device.map_pages()) * u64::from(device.map_page_bytes) / 1024;
        from = from.or(Some(CACHE_STEP_KIB));
        step = step.or(Some(CACHE_STEP_KIB));
        to = to.or(Some(map_kib.max(2 * CACHE_STEP_KIB)));
    }
    let (Some(from), Some(to)) = (from, to) else {
        return Err(usage(anyhow!("--from and --to are needed for --key {}: between which values is it?", args.key)));
    };
    let step = step.unwrap_or(1);
    match to.checked_sub(from).map(|span| span.div_ceil(step)) {
        None | Some(0) if args.to.is_none() => {
            Err(usage(anyhow!("--from {from} must be less than {to}, the whole map")))
        }
        None | Some(0) => Err(usage(anyhow!("--to {to} must be more than --from {from}"))),
        Some(_) => Ok(Grid { from, to, step }),
    }
}

/// The keys after `option`, and how they name a variant; without HPB where they say nothing of it.
fn with_host(option: &str, keys: &str) -> Result<(String, Vec<GivenKey>)> {
    let keys = keys.trim();
    if keys.is_empty() {
        return Err(usage(anyhow!("{option}: is empty; expected KEY=VALUE")));
    }
    let mut given = Vec::new();
    for part in split(keys) {
        let (key, value) = pair(part).ok_or_else(|| usage(anyhow!("{option}: {part:?} is not KEY=VALUE")))?;
        given.push(GivenKey::new(key, value, option));
    }
    if given.iter().any(|given| matches!(&*given.key, "hpb" | "policy")) {
        return Ok((keys.to_owned(), given));
    }
    if let Some(GivenKey { key, .. }) = given.iter().find(|given| is_of_host(&given.key)) {
        return Err(usage(anyhow!("{option} {keys}: {key} is of a host with HPB; add hpb=dcm or another")));
    }
    given.push(GivenKey::new("hpb", "off", option));
    Ok((format!("{keys},{HPB_OFF}"), given))
}

fn is_of_host(key: &str) -> bool {
    Variant::host_keys().contains(&key)
}
