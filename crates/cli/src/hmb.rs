// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath reproduce hmb`: the experiment of that name, recorded traces on its device, and how much host memory each
//! of them needs. What is compared, and how sure that is, is known elsewhere.

use crate::args::{Common, Reproduce};
use crate::dry_run::{self, Planned};
use crate::failure::classify;
use crate::inputs::read_text;
use crate::live::Live;
use crate::output::{self, Kept, NOTHING};
use crate::{cases, experiment, policies, presets, runs, usage};
use anyhow::{Result, anyhow};
use readpath_config::DevicePreset;
use readpath_config::experiment::{Experiment, Layout, Variant};
use readpath_device::LuConfig;
use readpath_lab::experiment::{CaseRun, ExperimentError, Plan, Shared, expected_ios, run_all};
use readpath_lab::hmb::{self, Study};
use readpath_lab::replay::{self, Mode, ReplayCase, ReplayOptions, ReplayTexts, ReplayVariant};
use readpath_lab::{beforehand, document};
use readpath_report::TableSpec;
use readpath_results::metric::{self, Figure, Requests::Read, Requests::Write};
use readpath_results::{Document, Metric, Note};
use readpath_stack::given_host_memory;
use std::path::Path;

pub use readpath_lab::hmb::NAME;

/// Said of a result without recorded traces.
pub const ONLY_SYNTHETIC: &str = "Without --traces only synthetic requests were run.";

static COLUMNS: [Metric; 10] = [
    Read.of(Figure::Iops),
    Write.of(Figure::Iops),
    Read.of(Figure::Throughput),
    Read.of(Figure::LatencyMean),
    Read.of(Figure::LatencyP99),
    metric::MAP_HIT_RATIO,
    metric::MAP_LOADS,
    metric::HOST_MEMORY,
    metric::MEMORY_WOULD_SAVE,
    metric::MEMORY_WOULD_SAVE_ERROR,
];

/// All that is to be run.
pub struct Prepared {
    experiment: Experiment,
    plans: Vec<Plan>,
    traces: Vec<(ReplayCase, Vec<ReplayVariant>)>,
    /// What the result has to say of what was left out.
    pub notes: Vec<String>,
}

pub fn reproduce(args: &Reproduce) -> Result<()> {
    if args.common.trace_io.is_some() {
        return Err(usage(anyhow!(
            "--trace-io records a single run: use 'readpath run experiments/hmb.toml' with --case"
        )));
    }
    let folder = args.common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(NAME));
    let mut prepared = prepare(&args.common, args.traces.as_deref(), args.fold)?;
    if args.traces.is_none() {
        prepared.notes.push(ONLY_SYNTHETIC.to_owned());
    }
    if args.dry_run {
        return prepared.dry_run(&args.common);
    }
    prepared.write_and_show(&args.common, &folder).map(drop)
}

/// Reads all that is to be run: the experiment, and the traces of a folder or a single one. With `fold` addresses
/// beyond the device are folded onto it; otherwise they are errors.
pub fn prepare(common: &Common, traces: Option<&Path>, fold: bool) -> Result<Prepared> {
    let mut experiment = readpath_config::experiment::load(NAME, &read_text).map_err(usage)?;
    let base = experiment.load_device(&read_text).map_err(usage)?;
    let given = presets::overrides(&common.basics.set)?;
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
    let of_trace = common.case.as_ref().is_some_and(|wanted| recorded.iter().any(|case| case.name == *wanted));
    if let Some(wanted) = &common.case {
        let of_experiment = experiment.workload.runs().into_iter().map(str::to_owned);
        let mut names: Vec<String> = of_experiment.chain(recorded.iter().map(|case| case.name.clone())).collect();
        runs::choose(&mut names, |name| name, "--case", Some(wanted))?;
        recorded.retain(|case| case.name == *wanted);
    }
    let mut plans = if of_trace { Vec::new() } else { experiment::plans(&experiment, common)? };
    if plans.is_empty() {
        // Nothing is run that they speak of.
        experiment.claims.clear();
    }
    hmb::mark(&mut plans);
    let mut variants: Vec<Variant> = experiment.variants.clone();
    runs::choose(&mut variants, |variant| &variant.name, "--variant", common.variant.as_deref())?;
    let with_variants = |case: ReplayCase| {
        let variants = hmb::variants(&variants, &base, &case).map_err(usage)?;
        beforehand::variants(&case.name, &variants).map_err(classify)?;
        Ok((case, variants))
    };
    let traces = recorded.into_iter().map(with_variants).collect::<Result<_>>()?;
    let notes = variants.iter().filter_map(|variant| less_than_named(variant, &base)).collect();
    Ok(Prepared { experiment, plans, traces, notes })
}

/// What a variant gets, if that is not what its host would give: then it is not what its name says.
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

impl Prepared {
    /// Shows all runs and makes none.
    pub fn dry_run(&self, common: &Common) -> Result<()> {
        let of_trace = |(case, variants): &(ReplayCase, Vec<ReplayVariant>)| {
            variants.iter().map(|v| Planned::of_replay(case, &v.name, 1)).collect::<Vec<_>>()
        };
        let mut list = Planned::of_plans(&self.plans);
        list.extend(self.traces.iter().flat_map(of_trace));
        dry_run::show(&self.experiment.title, &list, common.basics.json)
    }

    /// Makes all runs, writes `folder` and prints what became of them.
    pub fn write_and_show(self, common: &Common, folder: &Path) -> Result<Document> {
        let Prepared { experiment, plans, traces, notes } = self;
        let expected = plans.iter().map(|plan| expected_ios(&plan.workload)).sum::<Option<u64>>();
        let of_traces: u64 = traces.iter().map(|(case, variants)| case.ios() * variants.len() as u64).sum();
        let count = plans.len() + traces.iter().map(|(_, variants)| variants.len()).sum::<usize>();
        let names = |case: &ReplayCase, variants: &[ReplayVariant]| {
            variants.iter().map(|v| (case.name.clone(), v.name.clone())).collect::<Vec<_>>()
        };
        let planned = plans.iter().map(|p| (p.case.clone(), p.variant.clone()));
        let planned = planned.chain(traces.iter().flat_map(|(case, variants)| names(case, variants)));
        let live = Live::start(&common.live, planned)?;
        let shared = runs::stoppable(&live)?;
        let kept = Kept::create(&common.basics, Some(folder), NOTHING)?;
        let options = ReplayOptions {
            mode: Mode::Timed,
            layout: Layout::Sequential,
            seed: experiment.seed,
            encoded: common.wire,
            over_time: false,
        };
        let expected = expected.map(|ios| ios + of_traces);
        let (mut made, replayed) = runs::side_by_side(common.basics.threads, count, expected, &shared, |shared| {
            let made = run_all(plans, shared)?;
            let replay = |(case, variants): (ReplayCase, Vec<ReplayVariant>)| {
                let (runs, failures) = replay::run_all(std::slice::from_ref(&case), &variants, &options, shared)?;
                // Sizes are compared: without one of them the recommendation would mislead.
                match failures.into_iter().next() {
                    Some(error) => Err(error),
                    None => Ok((case, variants, runs)),
                }
            };
            let replayed = traces.into_iter().map(replay).collect::<Result<Vec<_>, ExperimentError>>()?;
            Ok::<_, ExperimentError>((made, replayed))
        })?
        .map_err(classify)?;
        let mut study = Study::default();
        study.take(&mut made);
        let mut doc = document::document(&experiment, &made)?;
        for (i, (case, mut variants, mut runs)) in replayed.into_iter().enumerate() {
            study.take_replays(&case.name, &mut variants, &mut runs);
            let texts =
                ReplayTexts { title: case.name.clone(), description: String::new(), settings: serde_json::Value::Null };
            let of_trace = replay::document(&texts, std::slice::from_ref(&case), &variants, &options, &runs)?;
            doc.absorb(of_trace, &format!("trace_{}_", i + 1));
        }
        study.conclude(&mut doc)?;
        doc.notes.extend(notes.into_iter().chain(live.notes()).map(Note::remark));
        doc.process = output::process();
        doc.validate()?;
        kept.write(&doc)?;
        let table = || output::table(&doc, TableSpec::of(&COLUMNS), output::terminal_width());
        output::show(&doc, &common.basics, Some(folder), None, table)?;
        live.finish()?;
        runs::complete(made.iter().filter_map(CaseRun::incomplete), made.len())?;
        Ok(doc)
    }
}
