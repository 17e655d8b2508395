// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath compare`: finds out what kind of workload it was given, makes variants and seeds of what was typed, has
//! all of them run and shows the differences. What they mean is worked out elsewhere.

use crate::args::{Compare, Fill, TraceHow};
use crate::ask::{Asking, Files, choose, mark, stoppable};
use crate::inputs::{self, read_text};
use crate::live::Live;
use crate::presets::{overrides, preset};
use crate::variants::Typed;
use crate::{cases, dry_run, output, typed, usage};
use anyhow::{Result, anyhow};
use readpath_config::experiment::{Experiment, Layout, Variant};
use readpath_lab::compare::{Basis, Comparison, Seeds, replay_variants};
use readpath_lab::replay::ReplayOptions;
use readpath_lab::runs::Shared;
use readpath_report::{TableSpec, comparison};
use readpath_results::Metric;
use readpath_results::metric::{self, Figure::*, Requests::*};
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

/// Seeds, where nobody says how many.
const SEEDS: u32 = 5;
/// The device of jobs and traces, where nobody names one.
const DEVICE: &str = "ufs21-64g";

/// Lines of the table, where a document has them; all metrics are in the document and on the page.
static METRICS: [Metric; 28] = [
    RandomRead.of(Throughput),
    Read.of(Throughput),
    Read.of(Iops),
    RandomRead.of(LatencyMean),
    RandomRead.of(LatencyP50),
    RandomRead.of(LatencyP99),
    Read.of(LatencyMean),
    Read.of(LatencyP50),
    Read.of(LatencyP99),
    RandomWrite.of(Throughput),
    Write.of(Throughput),
    Write.of(Iops),
    RandomWrite.of(LatencyMean),
    RandomWrite.of(LatencyP50),
    RandomWrite.of(LatencyP99),
    Write.of(LatencyMean),
    Write.of(LatencyP50),
    Write.of(LatencyP99),
    Trim.of(LatencyMean),
    Flush.of(LatencyMean),
    metric::MAP_HIT_RATIO,
    metric::HPB_HIT_RATIO,
    metric::MAP_LOADS,
    metric::DEVICE_MAP_MEMORY,
    metric::HOST_MEMORY,
    metric::WRITE_AMPLIFICATION,
    metric::MOST_OUTSTANDING,
    metric::VIRTUAL_DURATION,
];

enum Kind {
    Job,
    Experiment(Box<Experiment>),
    Trace,
}

pub fn main(args: &Compare) -> Result<()> {
    let inputs = [&args.workload].into_iter().chain(&args.precondition).map(PathBuf::as_path).collect();
    let files = Files { folder: args.basics.out.clone(), inputs, ..Files::default() };
    let spec = output::limited(TableSpec::of(&METRICS), output::terminal_width());
    let spec = spec.headed(&metric::HOST_MEMORY, "map, host");
    let (asking, question) = match kind(args)? {
        Kind::Trace => of_trace(args, files)?,
        Kind::Job => of_plans(args, None, files)?,
        Kind::Experiment(experiment) => of_plans(args, Some(*experiment), files)?,
    };
    match asking {
        Some(asking) => {
            asking.answer(&question, |answer, _| comparison::table(&answer.document, &spec) + "\n").map(drop)
        }
        None => dry_run::show(&question, args.basics.json),
    }
}

fn kind(args: &Compare) -> Result<Kind> {
    let name = args.workload.to_string_lossy();
    let extension = args.workload.extension().unwrap_or_default();
    let builtin = readpath_config::experiments().iter().any(|e| e.name == name) && !args.workload.exists();
    Ok(match () {
        () if args.trace => Kind::Trace,
        () if args.fio || extension == "fio" => Kind::Job,
        () if builtin => Kind::Experiment(readpath_config::experiment::load(&name, &read_text).map_err(usage)?.into()),
        () if extension == "toml" => {
            let text = inputs::text(&args.workload)?;
            Kind::Experiment(readpath_config::experiment::parse(&text, &name).map_err(usage)?.into())
        }
        () => Kind::Trace,
    })
}

fn choices(args: &Compare) -> Typed<'_> {
    Typed { named: &args.variant, varied: &args.vary, policy: &args.policy, map_cache: &args.map_cache, hpb: &args.hpb }
}

fn seeds(args: &Compare, first: u64, count: u32) -> Result<Seeds> {
    let first = args.seed.unwrap_or(first);
    let count = args.seeds.unwrap_or(count);
    Seeds::new(first, count).ok_or_else(|| usage(anyhow!("--seed: {count} seeds from {first} on go beyond 64 bits")))
}

fn base(args: &Compare, variants: &[Variant]) -> Result<String> {
    let mut list: Vec<String> = variants.iter().map(|variant| variant.name.clone()).collect();
    choose(&mut list, |name| name, "--base", args.base.as_deref())?;
    Ok(list.swap_remove(0))
}

/// A command that has begun, if it is no dry run, and its question.
type Begun<'a> = (Option<Asking<'a>>, Comparison);

fn begin<'a>(args: &'a Compare, files: Files<'a>) -> Result<Option<Asking<'a>>> {
    (!args.dry_run).then(|| Asking::plain(&args.basics, files)).transpose()
}

fn of_plans<'a>(args: &'a Compare, experiment: Option<Experiment>, files: Files<'a>) -> Result<Begun<'a>> {
    let what = if experiment.is_some() { "an experiment" } else { "a fio job" };
    let before = (!args.precondition.is_empty()).then_some("--precondition");
    if let Some(option) = before.or(args.how.given()) {
        let name = args.workload.display();
        return Err(usage(anyhow!(
            "{option} is for traces, but {name} is taken for {what} (--trace if it is a trace)"
        )));
    }
    let experiment = match experiment {
        Some(experiment) => of_file(args, experiment)?,
        None => typed::of_job(
            &args.workload,
            args.device.as_deref().unwrap_or(DEVICE),
            args.preload.unwrap_or(Fill::Sequential),
            choices(args).variants()?,
        ),
    };
    let seeds = seeds(args, experiment.seed, SEEDS)?;
    let variants = experiment.variants.clone();
    let base = base(args, &variants)?;
    choose(&mut experiment.workload.runs(), |case| case, "--case", args.case.as_deref())?;
    let basis = Basis::Experiment {
        experiment: Arc::new(experiment),
        set: overrides(&args.basics.set)?,
        case: args.case.clone(),
        read: Arc::new(read_text),
    };
    let question = Comparison::new(basis, &variants, &base, seeds).map_err(mark)?;
    Ok((begin(args, files)?, question))
}

/// An experiment as its file has it, but for the variants if others were typed.
fn of_file(args: &Compare, mut experiment: Experiment) -> Result<Experiment> {
    for (given, option) in [(args.device.is_some(), "--device"), (args.preload.is_some(), "--preload")] {
        if given {
            let name = &experiment.name;
            return Err(usage(anyhow!("{option} is not for experiments: '{name}' says in its file what it runs on")));
        }
    }
    if !choices(args).is_empty() {
        experiment.variants = choices(args).variants()?;
        // What has been published belongs to the variants of the file.
        experiment.published.clear();
    }
    // Runs are reduced to their figures one by one, where a claim speaks of two. The differences are what is shown
    // here.
    experiment.claims.clear();
    Ok(experiment)
}

fn of_trace<'a>(args: &'a Compare, files: Files<'a>) -> Result<Begun<'a>> {
    if args.case.is_some() {
        return Err(usage(anyhow!("--case is for experiments; a trace is one case")));
    }
    let layout = layout(args.preload.unwrap_or(Fill::Sequential))?;
    let seeds = seeds(args, 1, if layout == Layout::Random { SEEDS } else { 1 })?;
    let device = args.device.as_deref().unwrap_or(DEVICE);
    let variants = choices(args).variants()?;
    let base = base(args, &variants)?;
    let read = TraceBasis {
        how: &args.how,
        before: &args.precondition,
        file: &args.workload,
        device,
        set: &args.basics.set,
        layout,
    };
    read.check(&variants)?;
    let asking = begin(args, files)?;
    let shared = match &asking {
        Some(asking) => asking.shared().clone(),
        None => stoppable(&Live::default())?,
    };
    let question = Comparison::new(read.basis(&shared)?, &variants, &base, seeds).map_err(mark)?;
    Ok((asking, question))
}

/// The order of what a trace reads before it writes it.
pub fn layout(preload: Fill) -> Result<Layout> {
    preload.layout().ok_or_else(|| {
        let message = "what a trace reads before it writes it was there, so sequential or random is needed";
        usage(anyhow!("--preload none is for jobs: {message}"))
    })
}

/// A trace that variants are compared under, as it was named.
pub struct TraceBasis<'a> {
    pub how: &'a TraceHow,
    pub before: &'a [PathBuf],
    pub file: &'a PathBuf,
    pub device: &'a str,
    pub set: &'a [String],
    pub layout: Layout,
}

impl TraceBasis<'_> {
    /// Looks at all options before a file is read.
    pub fn check(&self, variants: &[Variant]) -> Result<()> {
        cases::mode(self.how)?;
        cases::prepare(self.how, 1)?;
        inputs::only_one_stdin([self.file].into_iter().chain(self.before))?;
        let name = cases::names(slice::from_ref(self.file))?.remove(0);
        let preset = preset(self.device, self.set)?;
        replay_variants(&name, variants, &preset, !self.how.units.is_empty()).map(drop).map_err(mark)
    }

    /// Reads it.
    pub fn basis(&self, shared: &Shared) -> Result<Basis> {
        let files = slice::from_ref(self.file);
        let preset = preset(self.device, self.set)?;
        let cases = cases::cases(self.how, self.before, files, &cases::names(files)?, &preset.device.lus, shared)?;
        let texts = cases::texts(self.how, (self.before, files), self.device, self.layout, &cases);
        let case = cases.into_iter().next().expect("a file is a case");
        let (mode, layout) = (cases::mode(self.how)?, self.layout);
        let options = ReplayOptions { mode, layout, seed: 0, encoded: false, over_time: true };
        Ok(Basis::Trace { case: Arc::new(case), preset: Box::new(preset), options, texts: Box::new(texts) })
    }
}
