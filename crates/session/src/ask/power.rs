// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power cuts in the middle of a fio job or a trace: what recovery takes, and whether all data is there.

use super::Ready;
use crate::args::{Loses, Power};
use crate::events::time_without_power;
use crate::failure::classify;
use crate::kinds::{self, Kind};
use crate::presets::{self, overrides};
use crate::runs::choose;
use crate::{cases, memory, typed, usage};
use anyhow::{Result, anyhow};
use readpath_config::experiment::{Precondition, PreconditionRange, Variant};
use readpath_kit::Ns;
use readpath_lab::beforehand;
use readpath_lab::experiment::plan;
use readpath_lab::power_cuts::{self, Cutting, Cuttings, PowerCuts, PowerTexts, read_faults};
use readpath_lab::replay::{Mode, ReplayCase};
use readpath_lab::runs::{Plan, Shared};
use readpath_run::Setup;
use readpath_run::rules::{Due, RuleOrder};
use readpath_stack::Tags;
use readpath_workload::Workload;
use std::slice;
use std::sync::Arc;

/// Most seconds without power in all.
const MOST_OFF_S: u64 = 1_000_000;

/// A plan for each host, and the texts of the document.
struct Planned {
    plans: Vec<Plan>,
    texts: PowerTexts,
}

/// The question of power cuts.
///
/// # Errors
/// When an option or the workload is wrong, or the memory of this machine is not enough.
pub fn question(args: &Power, ready: Ready) -> Result<Cuttings> {
    let cuts = PowerCuts {
        cuts: args.cuts,
        loses: match args.loses {
            Loses::Everything => power_cuts::Loses::Everything,
            Loses::Device => power_cuts::Loses::Device,
        },
        off: off(&args.off, args.cuts).map_err(|e| usage(anyhow!(e)))?,
        seed: args.target.seed,
        faults: faults(args)?,
    };
    let chosen = &args.chosen;
    let is_job = kinds::is_job_file(&args.workload);
    let Planned { mut plans, mut texts } = if is_job { of_job(args)? } else { of_trace(args)? };
    choose(&mut plans, |p| &p.case, "--case", chosen.case.as_deref())?;
    choose(&mut plans, |p| &p.variant, "--variant", chosen.variant.as_deref())?;
    plans.iter_mut().for_each(|plan| plan.setup.encoded = chosen.wire);
    // The length of a trace is known only after reading it.
    let runs = if is_job { cuttings(plans.clone(), None, &cuts)? } else { Vec::new() };
    beforehand::plans(&plans).map_err(classify)?;
    check_memory(&plans, args.making.threads, args.faults.is_some())?;
    let names = plans.iter().map(|plan| (plan.case.clone(), plan.variant.clone())).collect();
    let shared = ready(names)?;
    let runs = match is_job {
        true => runs,
        false => {
            let case = read_trace(args, &mut plans, &mut texts, &shared)?;
            cuttings(plans, Some((case, cases::mode(&args.how)?)), &cuts)?
        }
    };
    Ok(Cuttings::new(texts, cuts, runs))
}

/// The rules of `--faults`.
fn faults(args: &Power) -> Result<Arc<[Due<RuleOrder>]>> {
    let Some(path) = &args.faults else { return Ok(Arc::default()) };
    let text = args.making.text(path)?;
    read_faults(&text, &path.display().to_string()).map_err(|what| usage(anyhow!(what)))
}

fn cuttings(plans: Vec<Plan>, trace: Option<(Arc<ReplayCase>, Mode)>, cuts: &PowerCuts) -> Result<Vec<Cutting>> {
    let cutting = |plan| Cutting::new(plan, trace.clone(), cuts.clone()).map_err(usage);
    plans.into_iter().map(cutting).collect()
}

/// The trace that all plans replay.
fn read_trace(args: &Power, plans: &mut [Plan], texts: &mut PowerTexts, shared: &Shared) -> Result<Arc<ReplayCase>> {
    let (files, first) = (slice::from_ref(&args.workload), &plans[0]);
    let names = slice::from_ref(&first.case);
    let case = cases::cases(&args.how, &[], files, names, &first.setup.preset.seen_units(), shared)?.remove(0);
    let layout = first.setup.precondition.layout;
    plans.iter_mut().for_each(|plan| plan.inputs.clone_from(&case.inputs));
    let of_replay = cases::texts(&args.how, (&[], files), &args.target.device, layout, slice::from_ref(&case));
    texts.title = of_replay.title.replacen("Replay", "Power cuts under a replay", 1);
    texts.description = of_replay.description;
    texts.notes.clone_from(&case.notes);
    texts.settings = Some(of_replay.settings);
    Ok(Arc::new(case))
}

fn of_job(args: &Power) -> Result<Planned> {
    let target = &args.target;
    if let Some(option) = args.how.given() {
        return Err(usage(anyhow!("{option} is for traces, but {} is a fio job", args.workload.display())));
    }
    kinds::check(&args.workload, Kind::Job)?;
    let variants = presets::hosts_of(&target.device, &[], &target.host)?;
    let mut experiment = typed::of_job(&args.workload, &target.device, target.fill, variants);
    experiment.seed = target.seed;
    let plans = plan(&experiment, &overrides(&args.making.set)?, &|path| args.making.read(path)).map_err(classify)?;
    let texts = PowerTexts {
        title: format!("Power cuts under {}", experiment.title),
        description: format!("Simulated on the device '{}'.", target.device),
        notes: Vec::new(),
        settings: None,
    };
    Ok(Planned { plans, texts })
}

fn of_trace(args: &Power) -> Result<Planned> {
    let target = &args.target;
    let layout = target.fill.layout().ok_or_else(|| {
        let message = "blocks of a trace that are read before they are written have to be there";
        usage(anyhow!("--fill none is for jobs: {message}"))
    })?;
    let files = slice::from_ref(&args.workload);
    let names = cases::names(files)?;
    // Options are looked at before the file is.
    cases::mode(&args.how)?;
    cases::prepare(&args.how, 1)?;
    let base = presets::preset(&target.device, &args.making.set)?;
    let range = PreconditionRange::None;
    let plan_of = |variant: &Variant| {
        let preset = variant.device(&base).map_err(usage)?;
        Ok(Plan {
            case: names[0].clone(),
            variant: variant.name.clone(),
            setup: Setup {
                host: variant.host(&preset),
                preset,
                precondition: Precondition { range, layout },
                seed: target.seed,
                encoded: false,
                events: Vec::new(),
                over_time: false,
            },
            // Nothing runs beside the trace.
            workload: Workload { name: names[0].clone(), ..Workload::default() },
            inputs: Vec::new(),
        })
    };
    let variants = presets::hosts_of(&target.device, &[], &target.host)?;
    let plans = variants.iter().map(plan_of).collect::<Result<Vec<_>>>()?;
    let texts = PowerTexts { title: String::new(), description: String::new(), notes: Vec::new(), settings: None };
    Ok(Planned { plans, texts })
}

/// Duration of each power cut. The limit keeps virtual time within its range.
fn off(text: &str, cuts: u32) -> Result<Ns, String> {
    let off = time_without_power(text).map_err(|e| format!("--off: {e}"))?;
    if off.0.saturating_mul(u64::from(cuts)) > Ns::from_secs(MOST_OFF_S).0 {
        return Err(format!("--off: {cuts} times {text} without power; at most {MOST_OFF_S} s in all are possible"));
    }
    Ok(off)
}

/// Refuses runs whose tags this machine has no memory for, before it begins to swap.
fn check_memory(plans: &[Plan], threads: Option<u32>, rules: bool) -> Result<()> {
    let Some(available) = memory::available() else { return Ok(()) };
    let each = plans.iter().map(|p| Tags::most_bytes(&p.setup.preset.device, rules)).max().unwrap_or(0);
    let threads = threads.map_or_else(rayon::current_num_threads, |n| n as usize);
    let together = threads.min(plans.len()).max(1) as u64;
    if each * together <= available {
        return Ok(());
    }
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let (needed, runs) = (gib(each * together), if together == 1 { "a run" } else { "runs side by side" });
    Err(usage(anyhow!(
        "every block of the device is checked, which takes {needed:.1} GiB for {runs}; this machine has {:.1} GiB \
         free. Take --threads 1 or --hpb off, or a smaller device (--set lu[0].blocks=N)",
        gib(available)
    )))
}
