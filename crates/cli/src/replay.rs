// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath replay`: makes the variants that were asked for, has them run on traces and shows the document.

use crate::args::{Hpb, Preload, Replay as ReplayArgs};
use crate::ask::{Asking, Files, choose, only_one_traced};
use crate::events::{check_pressure, read_events, read_limits};
use crate::failure::classify;
use crate::presets::preset;
use crate::variants::Typed;
use crate::{cases, inputs, output, recording, usage};
use anyhow::{Result, anyhow};
use readpath_config::experiment::Layout;
use readpath_config::{DevicePreset, keeps_memory, size};
use readpath_lab::beforehand;
use readpath_lab::replay::{Replay, ReplayOptions, ReplayVariant, Replays};
use readpath_lab::runs::ExperimentError;
use readpath_report::TableSpec;
use readpath_results::Metric;
use readpath_results::metric::{self, Figure::*, Requests::*};
use readpath_run::ExecuteError;
use std::path::PathBuf;
use std::sync::Arc;

static COLUMNS: [Metric; 17] = [
    metric::REQUESTS,
    metric::MAP_HIT_RATIO,
    metric::HPB_HIT_RATIO,
    metric::MAP_LOADS,
    Read.of(LatencyMean),
    Read.of(LatencyP50),
    Read.of(LatencyP99),
    Read.of(LatencyP99_9),
    Write.of(LatencyMean),
    Write.of(LatencyP99),
    Flush.of(LatencyMean),
    Trim.of(LatencyMean),
    metric::DEVICE_MAP_MEMORY,
    metric::HOST_MEMORY,
    metric::WRITE_AMPLIFICATION,
    metric::MOST_OUTSTANDING,
    metric::VIRTUAL_DURATION,
];

pub fn main(args: &ReplayArgs) -> Result<()> {
    if let Some(image) = &args.image {
        return recording::main(args, image);
    }
    let common = &args.common;
    let mut variants = variants(args)?;
    choose(&mut variants, |v| &v.name, "--variant", common.variant.as_deref())?;
    let mut files: Vec<(PathBuf, String)> = args.files.iter().cloned().zip(cases::names(&args.files)?).collect();
    choose(&mut files, |f| &f.1, "--case", common.case.as_deref())?;
    only_one_traced(common, files.len() * variants.len())?;
    let (files, names): (Vec<PathBuf>, Vec<String>) = files.into_iter().unzip();
    let layout = match args.preload {
        Preload::Sequential => Layout::Sequential,
        Preload::Random => Layout::Random,
    };
    let mode = cases::mode(&args.how)?;
    let options = ReplayOptions { mode, layout, seed: args.seed, encoded: common.wire, over_time: true };
    // Options are looked at before a file is, and files before traces are read.
    cases::prepare(&args.how, 1)?;
    inputs::only_one_stdin(files.iter().chain(&args.precondition))?;
    beforehand::variants(&names[0], &variants).map_err(|error| match option_at_fault(args, &error) {
        Some(option) => usage(anyhow!("{option}: {error}")),
        None => classify(error),
    })?;
    let planned = names.iter().flat_map(|name| variants.iter().map(move |v| (name.clone(), v.name.clone())));
    let given = [&args.pressure, &args.events].into_iter().flatten();
    let inputs = files.iter().chain(&args.precondition).chain(given).map(PathBuf::as_path).collect();
    let asking =
        Asking::begin(common, planned, Files { folder: common.basics.out.clone(), inputs, ..Files::default() })?;
    let units = &variants[0].preset.device.lus;
    let cases = cases::cases(&args.how, &args.precondition, &files, &names, units, asking.shared())?;
    let texts = cases::texts(&args.how, (&args.precondition, &files), &args.device, layout, &cases);
    let (cases, variants): (Vec<_>, Vec<_>) =
        (cases.into_iter().map(Arc::new).collect(), variants.into_iter().map(Arc::new).collect());
    let question = Replays::new(texts, Replay::all(&cases, &variants, &options));
    let spec = TableSpec::of(&COLUMNS).headed(&metric::HOST_MEMORY, "map, host");
    asking.answer(&question, |answer, width| output::table(&answer.document, spec, width)).map(drop)
}

/// The option that asked for what was not possible, where only the host knows.
fn option_at_fault(args: &ReplayArgs, error: &ExperimentError) -> Option<String> {
    let ExperimentError::Run { error, .. } = error else { return None };
    let with = |option: &str, file: &Option<PathBuf>| Some(format!("{option} {}", file.as_ref()?.display()));
    match error {
        error if error.is_memory_of_host() => {
            let given = [("--host-memory", &args.host.host_memory), ("--host-map", &args.host_map)];
            given.into_iter().find(|(_, value)| value.is_some()).map(|(option, _)| option.to_owned())
        }
        ExecuteError::Limit { .. } => with("--pressure", &args.pressure),
        ExecuteError::Event(_) => with("--events", &args.events),
        _ => None,
    }
}

fn variants(args: &ReplayArgs) -> Result<Vec<ReplayVariant>> {
    let preset = preset(&args.device, &args.common.basics.set)?;
    let max_map_bytes = host_map(args, &preset)?;
    let memory_bytes = args.host.memory_bytes()?;
    let limits = args.pressure.as_deref().map(read_limits).transpose()?.unwrap_or_default();
    let events = args.events.as_deref().map(read_events).transpose()?.unwrap_or_default();
    let hpb: Vec<Hpb> = args.host.hpb.into_iter().collect();
    let typed = Typed { named: &[], varied: &[], policy: &args.host.policy, map_cache: &args.map_cache, hpb: &hpb };
    let mut list = Vec::new();
    for variant in typed.variants()? {
        let mut variant = ReplayVariant::new(&variant, &preset).map_err(usage)?;
        if let Some(hpb) = &mut variant.host.hpb {
            hpb.max_map_bytes = max_map_bytes;
            hpb.memory_bytes = memory_bytes;
        }
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

fn host_map(args: &ReplayArgs, preset: &DevicePreset) -> Result<Option<u64>> {
    let Some(text) = &args.host_map else { return Ok(None) };
    let bytes = size(text).map_err(|e| usage(anyhow!("--host-map: {e}")))?;
    if args.host.hpb == Some(Hpb::Off) {
        return Err(usage(anyhow!("--host-map is memory for HPB, which --hpb off does not use")));
    }
    if matches!(args.host.hpb, Some(Hpb::Prototype | Hpb::PrototypeHost | Hpb::PrototypeDevice)) {
        // Its groups are the device's of each variant, and its host knows what one takes.
        return Ok(Some(bytes));
    }
    match preset.region_map_bytes() {
        Some(region) if bytes < region => {
            Err(usage(anyhow!("--host-map: {bytes} bytes do not hold the map of one region, which has {region}")))
        }
        _ => Ok(Some(bytes)),
    }
}
