// SPDX-License-Identifier: MIT OR Apache-2.0
//! The experiment `policies`: every policy on every trace with every size of host memory.

use crate::args::{Chosen, Making, Offers, Reproduce, TraceHow};
use crate::failure::classify;
use crate::inputs::read_text;
use crate::presets::{overrides, preset};
use crate::runs::choose;
use crate::{cases, usage};
use anyhow::{Context, Result, anyhow};
use readpath_device::LuConfig;
use readpath_lab::beforehand;
use readpath_lab::policies::{BUILTIN, Contender, Launched, Policies, PoliciesPlan, applications};
use readpath_lab::replay::ReplayCase;
use readpath_lab::runs::Shared;
use readpath_results::Note;
use readpath_run::LUN;
use std::path::{Path, PathBuf};

/// Name of the experiment.
pub const NAME: &str = "policies";
/// The note of a result without recorded traces.
pub const ONLY_BUILT_IN: &str = "Without --traces DIR only the built-in workloads were run.";

/// Folders of recorded traces: with pairs of a trace and the one replayed before it, and with single ones.
pub fn folders() -> [&'static str; 2] {
    let plan = PoliciesPlan::builtin();
    [&plan.folder_of_pairs, &plan.folder_of_singles]
}

/// The question of the experiment alone.
///
/// # Errors
/// As [`prepare`].
pub fn question(args: &Reproduce) -> Result<Policies> {
    let note = args.traces.is_none().then(|| ONLY_BUILT_IN.to_owned());
    prepare(&args.making, &args.chosen, args.traces.as_deref(), note)
}

/// Reads all that is to be run, recorded traces too if there is a folder of them. `note` goes with the answer.
///
/// # Errors
/// When an option or a trace is wrong.
pub fn prepare(making: &Making, chosen: &Chosen, traces: Option<&Path>, note: Option<String>) -> Result<Policies> {
    let plan = PoliciesPlan::builtin();
    let preset = preset(&plan.device, &making.set)?;
    let blocks = preset.seen_units()[usize::from(LUN)].blocks;
    let on_device = |c: Contender| c.on(&preset).map(|variant| (c, variant));
    let mut contenders: Vec<_> =
        Contender::all().into_iter().map(on_device).collect::<Result<_, _>>().map_err(usage)?;
    choose(&mut contenders, |(_, variant)| &variant.name, "--variant", chosen.variant.as_deref())?;
    let mut launched = launched(making, chosen.wire)?;
    if let Some(wanted) = &chosen.variant {
        launched.keep_variant(wanted);
    }
    let mut cases = vec![builtin(blocks, plan.seed)?];
    let mut notes = Vec::new();
    if let Some(dir) = traces {
        cases.extend(recorded(dir, &preset.seen_units(), true)?);
        let missing = folders().into_iter().filter(|name| !dir.join(name).exists());
        notes.extend(missing.map(|name| format!("--traces {}: has no folder {name}; left out.", dir.display())));
    }
    choose_cases(&mut cases, &mut launched, chosen.case.as_deref())?;
    if let Some(first) = cases.first() {
        beforehand::variants(&first.name, contenders.iter().map(|(_, variant)| variant)).map_err(classify)?;
    }
    beforehand::plans(&launched.plans).map_err(classify)?;
    let notes = notes.into_iter().chain(note).map(Note::remark).collect();
    Ok(Policies::new(contenders, cases, launched, chosen.wire, notes))
}

/// The launches of applications with every policy.
fn launched(making: &Making, wire: bool) -> Result<Launched> {
    let experiment =
        readpath_config::experiment::load(&PoliciesPlan::builtin().launches.experiment, &read_text).map_err(usage)?;
    let set = overrides(&making.set)?;
    let mut launched = Launched::new(&experiment, &set, &read_text).map_err(classify)?;
    launched.plans.iter_mut().for_each(|plan| plan.setup.encoded = wire);
    Ok(launched)
}

/// Keeps the case that was asked for, if one was: a trace, or the launches.
fn choose_cases(cases: &mut Vec<ReplayCase>, launched: &mut Launched, wanted: Option<&str>) -> Result<()> {
    let Some(wanted) = wanted else { return Ok(()) };
    if wanted == launched.case() {
        cases.clear();
        return Ok(());
    }
    let mut names: Vec<String> = cases.iter().map(|c| c.name.clone()).chain([launched.case().to_owned()]).collect();
    choose(&mut names, |name| name, "--case", Some(wanted))?;
    cases.retain(|case| case.name == wanted);
    launched.plans.clear();
    Ok(())
}

fn builtin(blocks: u32, seed: u64) -> Result<ReplayCase> {
    let trace = applications(blocks, seed).map_err(|e| usage(anyhow!("{BUILTIN}: {e}")))?;
    Ok(ReplayCase::new(BUILTIN, Vec::new(), trace, blocks))
}

/// The traces of a folder, in order of their names. With `fold` addresses beyond the device are folded onto it;
/// otherwise they are errors.
///
/// # Errors
/// When a trace cannot be read, or there is none.
pub(super) fn recorded(dir: &Path, units: &[LuConfig], fold: bool) -> Result<Vec<ReplayCase>> {
    let (mut cases, [pairs, singles]) = (Vec::new(), folders());
    for exec in files_in(&dir.join(pairs))? {
        let name = exec.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some((app, rest)) = name.split_once("_exec.") else { continue };
        let before = exec.with_file_name(format!("{app}_precond.{rest}"));
        let precondition = if before.exists() { vec![before] } else { Vec::new() };
        cases.extend(cases::cases(&how(fold), &precondition, &[exec], &[app.to_owned()], units, &Shared::default())?);
    }
    for file in files_in(&dir.join(singles))? {
        let names = cases::names(std::slice::from_ref(&file))?;
        cases.extend(cases::cases(&how(fold), &[], &[file], &names, units, &Shared::default())?);
    }
    if cases.is_empty() {
        let dir = dir.display();
        return Err(usage(anyhow!("--traces {dir}: there is no trace in {dir}/mobile (X_exec.csv.gz) or {dir}/block")));
    }
    Ok(cases)
}

/// Files of a folder; none if it does not exist.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(dir).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let entries = entries.with_context(|| format!("{}: cannot be read", dir.display())).map_err(usage)?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|e| e.path()).filter(|p| p.is_file()).collect();
    files.sort();
    Ok(files)
}

/// How recorded traces are read.
pub(super) fn how(fold: bool) -> TraceHow {
    TraceHow { offers: Offers { device: None, reading: false, times: false }, fold, ..TraceHow::default() }
}
