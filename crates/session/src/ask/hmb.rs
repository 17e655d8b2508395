// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much host memory a device should get: for traces and jobs of the user's own, or for the experiment `hmb`.

use super::{Ready, experiment};
use crate::args::{Chosen, Fill, Hmb, Making, Reproduce};
use crate::failure::classify;
use crate::inputs::{is_stdin, only_one_stdin, read_text};
use crate::runs::choose;
use crate::{cases, presets, typed, usage};
use anyhow::{Context, Result, anyhow};
use readpath_config::experiment::{Layout, Variant};
use readpath_config::{DevicePreset, Override};
use readpath_lab::beforehand;
use readpath_lab::hmb::{self, HostMemory};
use readpath_lab::replay::ReplayOptions;
use readpath_results::Note;
use readpath_stack::given_host_memory;
use std::path::PathBuf;

pub use readpath_lab::hmb::NAME;

/// The key of the host's limit.
const KEY: &str = "host.max_host_mem_mib";

/// The question of the experiment.
///
/// # Errors
/// As [`experiment_of`].
pub fn question(args: &Reproduce) -> Result<HostMemory> {
    experiment_of(&args.making, &args.chosen)
}

/// The runs of the experiment that were chosen.
///
/// # Errors
/// When an option is wrong.
pub fn experiment_of(making: &Making, chosen: &Chosen) -> Result<HostMemory> {
    let experiment = readpath_config::experiment::load(NAME, &read_text).map_err(usage)?;
    let base = experiment.load_device(&read_text).map_err(usage)?;
    let given = presets::overrides(&making.set)?;
    let of_variants = experiment.variants.iter().flat_map(|variant| variant.set.iter().map(|key| key.key()));
    if let Some(key) = of_variants.into_iter().find(|key| given.iter().any(|given| given.key() == *key)) {
        return Err(usage(anyhow!("--set {key}: its variants set that key themselves; readpath hmb has --sizes")));
    }
    let base = base.with_overrides(&given).map_err(usage)?;
    let plans = experiment::plans(&experiment, making, chosen)?;
    let mut variants: Vec<Variant> = experiment.variants.clone();
    choose(&mut variants, |variant| &variant.name, "--variant", chosen.variant.as_deref())?;
    let notes = variants.iter().filter_map(|variant| less_than_named(variant, &base)).map(Note::remark).collect();
    Ok(HostMemory::of_experiment(experiment, plans, notes))
}

/// The question of traces and jobs of the user's own.
///
/// # Errors
/// When an option, a trace or a job is wrong.
pub fn own(args: &Hmb, ready: Ready) -> Result<HostMemory> {
    let base = presets::preset(&args.device, &args.making.set)?;
    if base.device.host_map().is_none() {
        let with = readpath_config::presets().iter().map(|preset| preset.name);
        let has = |name: &&str| presets::preset(name, &[]).is_ok_and(|p| p.device.host_map().is_some());
        return Err(usage(anyhow!(
            "--device {}: this device takes no host memory for its map; these do: {}",
            args.device,
            with.filter(has).collect::<Vec<_>>().join(", ")
        )));
    }
    let (variants, notes) = sizes(&args.sizes, &base)?;
    let files = files(&args.files)?;
    only_one_stdin(files.iter())?;
    let (jobs, traces): (Vec<PathBuf>, Vec<PathBuf>) =
        files.into_iter().partition(|path| path.extension().is_some_and(|extension| extension == "fio"));
    let of_job = |job: &PathBuf| {
        let experiment = typed::of_job(job, &args.device, Fill::Sequential, variants.clone());
        let plans = experiment::plans(&experiment, &args.making, &Chosen::default())?;
        Ok((experiment, plans))
    };
    let jobs = jobs.iter().map(of_job).collect::<Result<Vec<_>>>()?;
    let mode = cases::mode(&args.how)?;
    let options = ReplayOptions { mode, layout: Layout::Sequential, seed: 1, encoded: false, over_time: false };
    let names = if traces.is_empty() { Vec::new() } else { cases::names(&traces)? };
    let of_jobs = jobs.iter().flat_map(|(_, plans)| plans).map(|plan| (plan.case.clone(), plan.variant.clone()));
    let of_traces = names.iter().flat_map(|name| variants.iter().map(move |v| (name.clone(), v.name.clone())));
    let shared = ready(of_jobs.chain(of_traces).collect())?;
    let recorded = match &traces[..] {
        [] => Vec::new(),
        some => cases::cases(&args.how, &[], some, &names, &base.seen_units(), &shared)?,
    };
    let recorded = recorded.into_iter().map(|case| {
        let variants = hmb::variants(&variants, &base, &case).map_err(usage)?;
        beforehand::variants(&case.name, &variants).map_err(classify)?;
        Ok((case, variants))
    });
    let recorded = recorded.collect::<Result<Vec<_>>>()?;
    let title = format!("How much host memory for {}", base.name);
    Ok(HostMemory::of_inputs(title, jobs, recorded, &options, notes))
}

/// Files, and those of folders in order of their names.
fn files(given: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in given {
        if is_stdin(path) || !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = path.read_dir().and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let entries = entries.with_context(|| format!("{}: cannot be read", path.display())).map_err(usage)?;
        let mut within: Vec<PathBuf> = entries.into_iter().map(|e| e.path()).filter(|p| p.is_file()).collect();
        within.sort();
        if within.is_empty() {
            return Err(usage(anyhow!("{}: there is no file in this folder; give traces or fio jobs", path.display())));
        }
        files.append(&mut within);
    }
    Ok(files)
}

/// A variant for each size in MiB that the device takes of those, from the smallest; and where that is less than the
/// host would give.
fn sizes(mib: &[u64], base: &DevicePreset) -> Result<(Vec<Variant>, Vec<Note>)> {
    let mut sizes = mib.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        return Err(usage(anyhow!("--sizes: give two sizes or more, in MiB, for example 0,8,16,32")));
    }
    let (mut variants, mut notes): (Vec<Variant>, Vec<Note>) = (Vec::new(), Vec::new());
    let least = base.device.host_map().map_or(0, |map| map.minimum.div_ceil(1 << 20));
    let too_small = |mib: &u64| (1..least).contains(mib);
    for mib in sizes.extract_if(.., |mib| too_small(mib)) {
        notes.push(Note::remark(format!("--sizes {mib}: the device takes none below {least} MiB")));
    }
    if sizes.len() < 2 {
        return Err(usage(anyhow!("--sizes: the device takes none below {least} MiB; give a size that it takes")));
    }
    for mib in sizes {
        let key = Override::new(KEY, &mib.to_string(), "--sizes").map_err(usage)?;
        let mut variant = Variant::new(String::new(), None, vec![key]);
        let preset = variant.device(base).map_err(usage)?;
        let taken = given_host_memory(&preset.device, &preset.host) >> 20;
        variant.name = if taken == 0 { "no host memory".to_owned() } else { format!("{taken} MiB") };
        if taken != mib {
            notes.push(Note::remark(format!("--sizes {mib}: the device takes {taken} MiB of that")));
        }
        if variants.iter().all(|other| other.name != variant.name) {
            variants.push(variant);
        }
    }
    Ok((variants, notes))
}

/// A note, if a variant gets another amount of memory than its name says.
fn less_than_named(variant: &Variant, base: &DevicePreset) -> Option<String> {
    let preset = variant.device(base).ok()?;
    let (given, limit) = (given_host_memory(&preset.device, &preset.host), preset.host.host_memory.bytes);
    let few_pieces = variant.set.iter().any(|key| key.key() == "map_memory.max_chunks");
    let mib = |bytes: u64| bytes >> 20;
    (given != limit && !few_pieces).then(|| {
        format!("{}: the device takes {} of the {} MiB that the host would give", variant.name, mib(given), mib(limit))
    })
}
