// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces replayed on variants of a device.

use super::Ready;
use super::compare::layout;
use crate::args::Replay as Args;
use crate::events::{check_pressure, read_events, read_limits};
use crate::failure::classify;
use crate::presets::{hosts_of, preset};
use crate::runs::choose;
use crate::{cases, inputs, usage};
use anyhow::{Result, anyhow};
use readpath_config::keeps_memory;
use readpath_lab::beforehand;
use readpath_lab::replay::{Replay, ReplayOptions, ReplayVariant, Replays};
use readpath_lab::runs::ExperimentError;
use readpath_run::ExecuteError;
use std::path::PathBuf;
use std::sync::Arc;

/// The question of replays.
///
/// # Errors
/// When an option or a trace is wrong.
pub fn question(args: &Args, ready: Ready) -> Result<Replays> {
    let chosen = &args.chosen;
    let mut variants = variants(args)?;
    choose(&mut variants, |v| &v.name, "--variant", chosen.variant.as_deref())?;
    let mut files: Vec<(PathBuf, String)> = args.files.iter().cloned().zip(cases::names(&args.files)?).collect();
    choose(&mut files, |f| &f.1, "--case", chosen.case.as_deref())?;
    let (files, names): (Vec<PathBuf>, Vec<String>) = files.into_iter().unzip();
    let layout = layout(args.fill)?;
    let mode = cases::mode(&args.how)?;
    let options = ReplayOptions { mode, layout, seed: args.seed, encoded: chosen.wire, over_time: true };
    // Options are checked before a file is, and files before traces are read.
    cases::prepare(&args.how, 1)?;
    inputs::only_one_stdin(files.iter().chain(&args.precondition))?;
    beforehand::variants(&names[0], &variants).map_err(|error| match option_at_fault(args, &error) {
        Some(option) => usage(anyhow!("{option}: {error}")),
        None => classify(error),
    })?;
    let planned = names.iter().flat_map(|name| variants.iter().map(move |v| (name.clone(), v.name.clone())));
    let shared = ready(planned.collect())?;
    let units = &variants[0].preset.seen_units();
    let cases = cases::cases(&args.how, &args.precondition, &files, &names, units, &shared)?;
    let texts = cases::texts(&args.how, (&args.precondition, &files), &args.device, layout, &cases);
    let (cases, variants): (Vec<_>, Vec<_>) =
        (cases.into_iter().map(Arc::new).collect(), variants.into_iter().map(Arc::new).collect());
    Ok(Replays::new(texts, Replay::all(&cases, &variants, &options)))
}

/// The option behind an error that only the host can detect.
fn option_at_fault(args: &Args, error: &ExperimentError) -> Option<String> {
    let ExperimentError::Run { error, .. } = error else { return None };
    let with = |option: &str, file: &Option<PathBuf>| Some(format!("{option} {}", file.as_ref()?.display()));
    match error {
        error if error.is_memory_of_host() => {
            let given = [("--host-memory", args.host.host_memory.is_some()), ("--vary", !args.host.vary.is_empty())];
            given.into_iter().find(|(_, given)| *given).map(|(option, _)| option.to_owned())
        }
        ExecuteError::Limit { .. } => with("--pressure", &args.pressure),
        ExecuteError::Event(_) => with("--events", &args.events),
        _ => None,
    }
}

fn variants(args: &Args) -> Result<Vec<ReplayVariant>> {
    let preset = preset(&args.device, &args.making.set)?;
    let limits = args.pressure.as_deref().map(read_limits).transpose()?.unwrap_or_default();
    let events = args.events.as_deref().map(read_events).transpose()?.unwrap_or_default();
    let mut list = Vec::new();
    for variant in hosts_of(&args.device, &[], &args.host)? {
        let mut variant = ReplayVariant::new(&variant, &preset).map_err(usage)?;
        if !limits.is_empty() && variant.host.hpb.is_none_or(|hpb| hpb.policy.is_none()) {
            let message =
                "has a host that does not change its memory in use; choose policies other than linux-dcm and linux-hcm";
            return Err(usage(anyhow!("--pressure: variant '{}' {message}", variant.name)));
        }
        variant.limits.clone_from(&limits);
        variant.events.clone_from(&events);
        list.push(variant);
    }
    check_pressure(&events, list.iter().map(|v| (&*v.name, keeps_memory(v.host.hpb))))?;
    Ok(list)
}
