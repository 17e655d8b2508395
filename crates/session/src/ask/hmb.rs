// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment `hmb`, recorded traces on its device, and how much host memory each of them needs.

use super::{experiment, policies};
use crate::args::{Chosen, Making, Reproduce};
use crate::failure::classify;
use crate::inputs::read_text;
use crate::runs::choose;
use crate::{cases, presets, usage};
use anyhow::{Result, anyhow};
use readpath_config::DevicePreset;
use readpath_config::experiment::{Layout, Variant};
use readpath_device::LuConfig;
use readpath_lab::beforehand;
use readpath_lab::hmb::{self, HostMemory};
use readpath_lab::replay::{Mode, ReplayCase, ReplayOptions};
use readpath_lab::runs::Shared;
use readpath_results::Note;
use readpath_stack::given_host_memory;
use std::path::Path;

pub use readpath_lab::hmb::NAME;

/// The note of a result without recorded traces.
pub const ONLY_SYNTHETIC: &str = "Without --traces only synthetic requests were run.";

/// The question of the experiment alone.
///
/// # Errors
/// As [`prepare`].
pub fn question(args: &Reproduce) -> Result<HostMemory> {
    let note = args.traces.is_none().then(|| ONLY_SYNTHETIC.to_owned());
    prepare(&args.making, &args.chosen, args.traces.as_deref(), args.fold, note)
}

/// Reads all that is to be run: the experiment, and the traces of a folder or a single one. With `fold` addresses
/// beyond the device are folded onto it; otherwise they are errors. `note` goes with the answer.
///
/// # Errors
/// When an option or a trace is wrong.
pub fn prepare(
    making: &Making,
    chosen: &Chosen,
    traces: Option<&Path>,
    fold: bool,
    note: Option<String>,
) -> Result<HostMemory> {
    let mut experiment = readpath_config::experiment::load(NAME, &read_text).map_err(usage)?;
    let base = experiment.load_device(&read_text).map_err(usage)?;
    let given = presets::overrides(&making.set)?;
    let of_variants = experiment.variants.iter().flat_map(|variant| variant.set.iter().map(|key| key.key()));
    if let Some(key) = of_variants.into_iter().find(|key| given.iter().any(|given| given.key() == *key)) {
        return Err(usage(anyhow!(
            "--set {key}: its variants set that key themselves; readpath fio and replay take it"
        )));
    }
    let base = base.with_overrides(&given).map_err(usage)?;
    let recorded = traces.map(|path| recorded(path, &base.device.lus, fold)).transpose()?;
    let mut recorded = recorded.unwrap_or_default();
    // A case is one of the experiment's or a trace.
    let of_trace = chosen.case.as_ref().is_some_and(|wanted| recorded.iter().any(|case| case.name == *wanted));
    if let Some(wanted) = &chosen.case {
        let of_experiment = experiment.workload.runs().into_iter().map(str::to_owned);
        let mut names: Vec<String> = of_experiment.chain(recorded.iter().map(|case| case.name.clone())).collect();
        choose(&mut names, |name| name, "--case", Some(wanted))?;
        recorded.retain(|case| case.name == *wanted);
    }
    let plans = if of_trace { Vec::new() } else { experiment::plans(&experiment, making, chosen)? };
    if plans.is_empty() {
        // Claims are about runs that are not made here.
        experiment.claims.clear();
    }
    let mut variants: Vec<Variant> = experiment.variants.clone();
    choose(&mut variants, |variant| &variant.name, "--variant", chosen.variant.as_deref())?;
    let with_variants = |case: ReplayCase| {
        let variants = hmb::variants(&variants, &base, &case).map_err(usage)?;
        beforehand::variants(&case.name, &variants).map_err(classify)?;
        Ok((case, variants))
    };
    let traces = recorded.into_iter().map(with_variants).collect::<Result<_>>()?;
    let notes = variants.iter().filter_map(|variant| less_than_named(variant, &base)).chain(note);
    let options = ReplayOptions {
        mode: Mode::Timed,
        layout: Layout::Sequential,
        seed: experiment.seed,
        encoded: chosen.wire,
        over_time: false,
    };
    Ok(HostMemory::new(experiment, plans, traces, &options, notes.map(Note::remark).collect()))
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

/// The traces of a folder as `reproduce policies` finds them, or the trace of a file.
fn recorded(path: &Path, units: &[LuConfig], fold: bool) -> Result<Vec<ReplayCase>> {
    if path.is_dir() {
        return policies::recorded(path, units, fold);
    }
    let file = [path.to_owned()];
    cases::cases(&policies::how(fold), &[], &file, &cases::names(&file)?, units, &Shared::default())
}
