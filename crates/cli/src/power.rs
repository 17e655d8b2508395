// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath power`: plans the runs of a fio job as `fio` does, or of a trace as `replay` does, has the power cut in
//! the middle of each and shows what recovery took and whether all data was there.

use crate::args::{Loses, Power};
use crate::events::time_without_power;
use crate::failure::classify;
use crate::inputs::read_text;
use crate::live::Live;
use crate::output::{self, Kept};
use crate::presets::{self, overrides};
use crate::{cases, memory, runs, typed, usage};
use anyhow::{Result, anyhow};
use rayon::prelude::*;
use readpath_config::experiment::{Precondition, PreconditionRange, Variant};
use readpath_device::Probe;
use readpath_kit::Ns;
use readpath_lab::beforehand;
use readpath_lab::experiment::{self, ExperimentError, Plan, Shared, expected_ios, plan};
use readpath_lab::power_cuts::{self, Load, Moments, PowerCuts, PowerRun, PowerTexts, document};
use readpath_lab::replay::{Mode, ReplayCase};
use readpath_report::TableSpec;
use readpath_results::metric;
use readpath_results::{Metric, Note};
use readpath_run::Setup;
use readpath_stack::Tags;
use readpath_workload::Workload;
use serde_json::Value;
use std::slice;
use std::sync::Arc;

static COLUMNS: [Metric; 12] = [
    metric::POWER_CUTS,
    metric::RECOVERY_TIME_MEAN,
    metric::RECOVERY_TIME_MAX,
    metric::RECOVERY_TIME_BOUND,
    metric::RECOVERY_READS_MAX,
    metric::TORN_UNITS,
    metric::REQUESTS_IN_FLIGHT_MEAN,
    metric::BLOCKS_CHECKED,
    metric::BLOCKS_WRONG,
    metric::HPB_HIT_RATIO,
    metric::MAP_REQ_CNT,
    metric::HOST_MEMORY,
];

/// Most seconds without power in all.
const MOST_OFF_S: u64 = 1_000_000;

/// What is run: a plan for each host, and the trace that all of them replay, if it is one.
struct Planned {
    plans: Vec<Plan>,
    trace: Option<(ReplayCase, Mode)>,
    /// What the document is called and says.
    texts: PowerTexts,
    settings: Option<Value>,
}

impl Planned {
    /// Keeps the runs that `--case` and `--variant` leave.
    fn choose(&mut self, args: &Power) -> Result<()> {
        let (plans, common) = (&mut self.plans, &args.common);
        runs::choose(plans, |p| &p.case, "--case", common.case.as_deref())?;
        runs::choose(plans, |p| &p.variant, "--variant", common.variant.as_deref())?;
        plans.iter_mut().for_each(|plan| plan.setup.encoded = common.wire);
        runs::only_one_traced(common, plans.len())
    }

    fn read_trace(&mut self, args: &Power, shared: &Shared) -> Result<()> {
        if !args.trace {
            return Ok(());
        }
        let (files, first) = (slice::from_ref(&args.workload), &self.plans[0]);
        let case =
            cases::cases(&args.how, &[], files, slice::from_ref(&first.case), &first.setup.preset.device.lus, shared)?
                .remove(0);
        let layout = first.setup.precondition.layout;
        for plan in &mut self.plans {
            plan.inputs.clone_from(&case.inputs);
        }
        let of_replay = cases::texts(&args.how, (&[], files), &args.target.device, layout, slice::from_ref(&case));
        self.texts.title = of_replay.title.replacen("Replay", "Power cuts under a replay", 1);
        self.texts.description = of_replay.description;
        self.texts.notes.clone_from(&case.notes);
        self.settings = Some(of_replay.settings);
        self.trace = Some((case, cases::mode(&args.how)?));
        Ok(())
    }

    /// What the moments of the cuts are drawn from, run by run; not before a trace was read.
    fn check(&mut self, cuts: &PowerCuts) -> Result<Vec<Moments>> {
        let trace = self.trace.as_ref();
        let loads = self.plans.iter_mut().map(|plan| Planned::load(trace, &mut plan.workload));
        loads.map(|load| power_cuts::check(&load, cuts).map_err(usage)).collect()
    }

    fn load<'a>(trace: Option<&'a (ReplayCase, Mode)>, workload: &'a mut Workload) -> Load<'a> {
        match trace {
            Some((case, mode)) => Load::Trace { case, mode: *mode },
            None => Load::Workload(workload),
        }
    }

    /// Requests of all runs, if that is known.
    fn ios(&self) -> Option<u64> {
        let of = |plan: &Plan| match &self.trace {
            Some((case, _)) => Some(case.ios()),
            None => expected_ios(&plan.workload),
        };
        self.plans.iter().map(of).sum()
    }
}

pub fn main(args: &Power) -> Result<()> {
    let cuts = PowerCuts {
        cuts: args.cuts,
        loses: match args.loses {
            Loses::Everything => power_cuts::Loses::Everything,
            Loses::Device => power_cuts::Loses::Device,
        },
        off: off(&args.off, args.cuts).map_err(|e| usage(anyhow!(e)))?,
        seed: args.target.seed,
    };
    let basics = &args.common.basics;
    let mut planned = if args.trace { of_trace(args)? } else { of_job(args)? };
    planned.choose(args)?;
    if !args.trace {
        planned.check(&cuts)?;
    }
    beforehand::plans(&planned.plans).map_err(classify)?;
    check_memory(&planned.plans, basics.threads)?;
    let kept = Kept::create(basics, basics.out.as_deref(), [&args.workload])?;
    let names = planned.plans.iter().map(|plan| (plan.case.clone(), plan.variant.clone()));
    let live = Live::start(&args.common.live, names)?;
    let shared = runs::stoppable(&live)?;
    planned.read_trace(args, &shared)?;
    let runs = run(args, &mut planned, &cuts, &shared)?;
    let mut doc = document(&planned.texts, &planned.plans, &cuts, &runs)?;
    if let (Some(settings), Some(configuration)) = (planned.settings, doc.configuration.as_object_mut()) {
        configuration.insert("replay".to_owned(), settings);
    }
    doc.notes.extend(live.notes().into_iter().map(Note::remark));
    doc.process = output::process();
    doc.validate()?;
    kept.write(&doc)?;
    let spec = TableSpec::of(&COLUMNS).headed(&metric::MAP_REQ_CNT, "map loads");
    let table = || output::table(&doc, spec, output::terminal_width());
    output::show(&doc, basics, basics.out.as_deref(), None, table)?;
    live.finish()?;
    match runs.iter().map(|run| run.wrong).sum::<u64>() {
        0 => Ok(()),
        wrong => Err(anyhow!("{wrong} blocks held wrong data; see the notes of the results")),
    }
}

fn of_job(args: &Power) -> Result<Planned> {
    let target = &args.target;
    if let Some(option) = args.how.given() {
        return Err(usage(anyhow!(
            "{option} is for traces; {} is taken for a fio job without --trace",
            args.workload.display()
        )));
    }
    let variants = typed::variants(&target.host)?;
    let mut experiment = typed::of_job(&args.workload, &target.device, target.precondition, variants);
    experiment.seed = target.seed;
    let plans = plan(&experiment, &overrides(&args.common.basics.set)?, &read_text).map_err(classify)?;
    let texts = PowerTexts {
        title: format!("Power cuts under {}", experiment.title),
        description: format!("Simulated on the device '{}'.", target.device),
        notes: Vec::new(),
    };
    Ok(Planned { plans, trace: None, texts, settings: None })
}

fn of_trace(args: &Power) -> Result<Planned> {
    let target = &args.target;
    let layout = target.precondition.layout().ok_or_else(|| {
        let message = "blocks of a trace that are read before they are written have to be there";
        usage(anyhow!("--precondition none is for jobs: {message}"))
    })?;
    let files = slice::from_ref(&args.workload);
    let names = cases::names(files)?;
    // Options are looked at before the file is.
    cases::mode(&args.how)?;
    cases::prepare(&args.how, 1)?;
    let base = presets::preset(&target.device, &args.common.basics.set)?;
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
            workload: nothing(&names[0]),
            inputs: Vec::new(),
        })
    };
    let plans = typed::variants(&target.host)?.iter().map(plan_of).collect::<Result<Vec<_>>>()?;
    let texts = PowerTexts { title: String::new(), description: String::new(), notes: Vec::new() };
    Ok(Planned { plans, trace: None, texts, settings: None })
}

/// What runs beside a trace.
fn nothing(name: &str) -> Workload {
    Workload {
        name: name.to_owned(),
        phases: Vec::new(),
        groups: Vec::new(),
        tests: Vec::new(),
        global_options: Vec::new(),
        files: Vec::new(),
        launches: None,
        notes: Vec::new(),
    }
}

/// Makes the runs, or one that is recorded.
fn run(args: &Power, planned: &mut Planned, cuts: &PowerCuts, shared: &Arc<Shared>) -> Result<Vec<PowerRun>> {
    let (common, expected, moments) = (&args.common, planned.ios(), planned.check(cuts)?);
    let Planned { plans, trace, .. } = planned;
    let cutting = Cutting { trace: trace.as_ref(), cuts, moments: &moments };
    if let (Some(path), [plan]) = (&common.trace_io, &mut plans[..]) {
        let title = format!("{}, {}", plan.case, plan.variant);
        return runs::recorded(path, &title, common.recorded(), shared, |tap, shared| {
            let (run, tap) = cutting.run(plan, 0, tap, shared);
            (run.map(|run| vec![run]), tap)
        });
    }
    let count = plans.len();
    let results: Vec<Result<PowerRun, ExperimentError>> =
        runs::side_by_side(common.basics.threads, count, expected, shared, |shared| {
            plans.par_iter_mut().enumerate().map(|(at, plan)| cutting.run(plan, at, (), shared).0).collect()
        })?;
    results.into_iter().map(|result| result.map_err(classify)).collect()
}

/// What all runs have in common, and when the power may go in each.
struct Cutting<'a> {
    trace: Option<&'a (ReplayCase, Mode)>,
    cuts: &'a PowerCuts,
    moments: &'a [Moments],
}

impl Cutting<'_> {
    /// Makes the run with this place in the plan.
    fn run<P: Probe>(
        &self,
        plan: &mut Plan,
        at: usize,
        probe: P,
        shared: &Shared,
    ) -> (Result<PowerRun, ExperimentError>, Option<P>) {
        let load = Planned::load(self.trace, &mut plan.workload);
        let watch = &mut experiment::watch(shared, at);
        let (run, probe) = power_cuts::run(&plan.setup, load, self.cuts, self.moments[at], probe, watch);
        let failed = |error| ExperimentError::Run { case: plan.case.clone(), variant: plan.variant.clone(), error };
        (run.map_err(failed), probe)
    }
}

/// For how long the power is away each time. Virtual time ends not much later than what is allowed.
fn off(text: &str, cuts: u32) -> Result<Ns, String> {
    let off = time_without_power(text).map_err(|e| format!("--off: {e}"))?;
    if off.0.saturating_mul(u64::from(cuts)) > Ns::from_secs(MOST_OFF_S).0 {
        return Err(format!("--off: {cuts} times {text} without power; at most {MOST_OFF_S} s in all are possible"));
    }
    Ok(off)
}

/// Refuses runs whose tags this machine has no memory for, before it begins to swap.
fn check_memory(plans: &[Plan], threads: Option<u32>) -> Result<()> {
    let Some(available) = memory::available() else { return Ok(()) };
    let each = plans.iter().map(|p| Tags::most_bytes(&p.setup.preset.device)).max().unwrap_or(0);
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
