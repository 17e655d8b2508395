// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that simulate: all of them make an experiment, run it and show its document.

use crate::args::{Common, Fill, Fio, FioFormat, Hpb, Iozone, Report, Reproduce, RunFile, Target};
use crate::files::{PartFile, check_writable, read_text, write_whole};
use crate::output::Folder;
use crate::{output, usage};
use anyhow::{Context, Result, anyhow};
use readpath_report::html;
use readpath_results::Document;
use readpath_sim::experiment::{self, CaseRun, ExperimentError, Plan, Shared, expected_ios, plan, run_all};
use readpath_sim::{Tap, document, execute, fio_json};
use readpath_stack::config::experiment::{
    Experiment, Fio as FioSource, Iozone as IozoneSource, Precondition, PreconditionRange, Variant, Workload,
};
use readpath_stack::config::{self, Override};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `readpath reproduce`.
pub fn reproduce(args: &Reproduce) -> Result<()> {
    let experiment = config::experiment::load(&args.name, &read_text).map_err(usage)?;
    let folder = args.common.out.clone().unwrap_or_else(|| Path::new("out").join(&experiment.name));
    run_and_show(&experiment, &args.common, Some(folder), None).map(drop)
}

/// `readpath run`.
pub fn run_file(args: &RunFile) -> Result<()> {
    let file = args.file.to_string_lossy();
    let text = read_text(&args.file).with_context(|| format!("{file}: cannot read")).map_err(usage)?;
    let experiment = config::experiment::parse(&text, &file).map_err(usage)?;
    let folder = args.common.out.clone().unwrap_or_else(|| Path::new("out").join(&experiment.name));
    run_and_show(&experiment, &args.common, Some(folder), None).map(drop)
}

/// `readpath iozone`.
pub fn iozone(args: &Iozone) -> Result<()> {
    let source = IozoneSource::Args { case: "iozone".into(), args: args.args.clone() };
    let title = format!("iozone {}", args.args.join(" "));
    let experiment = of_user("iozone_command", title, &args.target, Workload::Iozone(source));
    run_and_show(&experiment, &args.common, args.common.out.clone(), None).map(drop)
}

/// `readpath fio`.
pub fn fio(args: &Fio) -> Result<()> {
    let job = args.job.to_string_lossy().into_owned();
    let case = args.job.file_stem().map_or_else(|| "fio".into(), |s| s.to_string_lossy().into_owned());
    let source = FioSource::File { case, job: job.clone() };
    let experiment = of_user("fio_job", format!("fio {job}"), &args.target, Workload::Fio(source));
    let format = args.output_format;
    if format == FioFormat::Normal {
        return run_and_show(&experiment, &args.common, args.common.out.clone(), args.output.as_deref()).map(drop);
    }
    if args.common.json {
        return Err(usage(anyhow!("--json prints our own document; it does not go with --output-format json")));
    }
    let plans = plans(&experiment, &args.common)?;
    if plans.len() != 1 {
        return Err(usage(anyhow!("fio's JSON holds one run: choose --hpb off or --hpb dcm")));
    }
    let folder = args.common.out.as_deref().map(Folder::create).transpose()?;
    args.output.as_deref().map(check_writable).transpose()?;
    let runs = run(plans, &args.common)?;
    let only = &runs[0];
    let text = fio_json(&only.plan.workload, &only.output.phase_stats(), format == FioFormat::JsonPlus);
    if let Some(folder) = folder {
        folder.write(&finish(&experiment, &runs)?)?;
    }
    output::emit(text.as_bytes(), args.output.as_deref())?;
    // fio's JSON has no place for them.
    for note in &only.plan.workload.notes {
        writeln!(io::stderr(), "Note: {note}").ok();
    }
    complete(&runs)
}

/// `readpath report`.
pub fn report(args: &Report) -> Result<()> {
    let name = args.result.display();
    let text = std::fs::read_to_string(&args.result).with_context(|| format!("{name}: cannot read")).map_err(usage)?;
    let doc = Document::from_json(&text).with_context(|| name.to_string()).map_err(usage)?;
    write_whole(&args.html, html::page(&doc)?.as_bytes())?;
    Ok(writeln!(io::stdout(), "{}", args.html.display())?)
}

/// The experiment that a workload of the user's amounts to.
fn of_user(name: &str, title: String, target: &Target, workload: Workload) -> Experiment {
    let hpb = config::experiment::default_hpb();
    let variant = |name: &str, hpb| Variant { name: name.into(), hpb, set: Vec::new() };
    let (off, on) = (variant("HPB off", None), variant("HPB on", Some(hpb)));
    let variants = match target.hpb {
        Hpb::Off => vec![off],
        Hpb::Dcm => vec![on],
        Hpb::Both => vec![off, on],
    };
    let layout = |l| Precondition { layout: l, range: PreconditionRange::Files };
    let precondition = match target.precondition {
        Fill::Sequential => layout(config::experiment::Layout::Sequential),
        Fill::Random => layout(config::experiment::Layout::Random),
        Fill::None => Precondition { range: PreconditionRange::None, ..layout(config::experiment::Layout::Sequential) },
    };
    let mut experiment = Experiment::new(name, &title, &target.device, target.seed, precondition, workload);
    experiment.description = format!("Simulated on the device '{}'.", target.device);
    experiment.variants = variants;
    experiment
}

/// Runs an experiment, prints its table or document, to the file `to` if there is one, and writes its folder.
fn run_and_show(
    experiment: &Experiment,
    common: &Common,
    folder: Option<PathBuf>,
    to: Option<&Path>,
) -> Result<Vec<CaseRun>> {
    let plans = plans(experiment, common)?;
    let files = folder.as_deref().map(Folder::create).transpose()?;
    to.map(check_writable).transpose()?;
    let runs = run(plans, common)?;
    let doc = finish(experiment, &runs)?;
    if let Some(files) = files {
        files.write(&doc)?;
    }
    let mut out = Vec::new();
    if common.json {
        out = doc.to_json_pretty()?.into_bytes();
    } else {
        writeln!(out, "{}\n", doc.title)?;
        // A file may be read on any terminal.
        let width = if to.is_none() { output::terminal_width() } else { None };
        output::print_table(&doc, width, &mut out)?;
        for note in &doc.notes {
            writeln!(out, "Note: {note}")?;
        }
        let process = doc.process;
        writeln!(
            out,
            "{} requests simulated in {:.1} s of CPU time, {:.0} MiB at most",
            doc.simulated_ios,
            process.cpu_seconds,
            process.peak_rss_bytes as f64 / (1u64 << 20) as f64
        )?;
        if let Some(folder) = &folder {
            let (json, page) = (folder.join("result.json"), folder.join("report.html"));
            writeln!(out, "Results: {} and {}", json.display(), page.display())?;
        }
    }
    output::emit(&out, to)?;
    complete(&runs)?;
    Ok(runs)
}

/// Fails if a run is not whole. What there is of it has been shown and written by then.
fn complete(runs: &[CaseRun]) -> Result<()> {
    let mut missing = runs.iter().filter_map(CaseRun::incomplete);
    let Some(first) = missing.next() else { return Ok(()) };
    let more = match missing.count() {
        0 => String::new(),
        n => format!("; and so in {n} more of {} runs (see the notes of the results)", runs.len()),
    };
    Err(anyhow!("results are incomplete: {first}{more}"))
}

fn finish(experiment: &Experiment, runs: &[CaseRun]) -> Result<Document> {
    let mut doc = document::document(experiment, runs)?;
    doc.process = output::process();
    doc.validate()?;
    Ok(doc)
}

/// The runs that were asked for, with everything checked that can be checked without running them.
fn plans(experiment: &Experiment, common: &Common) -> Result<Vec<Plan>> {
    if common.threads == Some(0) {
        return Err(usage(anyhow!("--threads must be at least 1")));
    }
    let overrides: Vec<Override> =
        common.set.iter().map(|s| Override::from_argument(s, "--set")).collect::<Result<_, _>>().map_err(usage)?;
    let mut plans = plan(experiment, &overrides, &read_text).map_err(classify)?;
    choose(&mut plans, common)?;
    plans.iter_mut().for_each(|p| p.setup.encoded = common.wire);
    if common.trace_io.is_some() && plans.len() != 1 {
        return Err(usage(anyhow!(
            "--trace-io records one run, but this makes {}: choose one with --case, --variant or --hpb",
            plans.len()
        )));
    }
    Ok(plans)
}

fn run(mut plans: Vec<Plan>, common: &Common) -> Result<Vec<CaseRun>> {
    if let (Some(path), [_]) = (&common.trace_io, &plans[..]) {
        return Ok(vec![traced(plans.remove(0), path, common.trace_io_limit)?]);
    }
    let expected = plans.iter().map(|p| expected_ios(&p.workload)).sum::<Option<u64>>();
    let shared = Arc::new(Shared::default());
    stop_on_signal(&shared)?;
    let progress = output::Progress::start(shared.clone(), expected);
    let mut pool = rayon::ThreadPoolBuilder::new();
    if let Some(n) = common.threads {
        // More threads than runs have nothing to do.
        pool = pool.num_threads(n.min(plans.len()));
    }
    let result = pool.build()?.install(|| run_all(plans, &shared));
    drop(progress);
    result.map_err(classify)
}

/// Keeps the runs that were asked for.
fn choose(plans: &mut Vec<Plan>, common: &Common) -> Result<()> {
    for (wanted, what, of) in [
        (&common.case, "--case", (|p: &Plan| p.case.clone()) as fn(&Plan) -> String),
        (&common.variant, "--variant", |p: &Plan| p.variant.clone()),
    ] {
        let Some(wanted) = wanted else { continue };
        // In the order of the experiment, which is that of its tables: 4 GB comes before 16 GB.
        let mut known: Vec<String> = Vec::new();
        for name in plans.iter().map(of) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        plans.retain(|p| of(p) == *wanted);
        if plans.is_empty() {
            return Err(usage(anyhow!("{what} '{wanted}' is not one of: {}", known.join(", "))));
        }
    }
    Ok(())
}

/// One run with every stage of its requests recorded.
fn traced(mut plan: Plan, path: &Path, limit: u64) -> Result<CaseRun> {
    let part = PartFile::create(path)?;
    let title = format!("{}, {}", plan.case, plan.variant);
    let tap = Tap::new(&part.file, &title, Some(limit));
    let shared = Shared::default();
    stop_on_signal(&shared)?;
    let (result, tap) = execute(&plan.setup, &mut plan.workload, tap, &mut experiment::watch(&shared));
    let events = match tap {
        Some(mut tap) => tap.finish().with_context(|| format!("{}: cannot write", path.display()))?,
        None => 0,
    };
    match result {
        Ok(output) => {
            part.finish()?;
            writeln!(io::stderr(), "{}: {events} events", path.display()).ok();
            Ok(CaseRun { plan, output })
        }
        Err(error) => {
            let Plan { case, variant, .. } = plan;
            Err(classify(ExperimentError::Run { case, variant, error }))
        }
    }
}

/// Lets Ctrl-C and a request to terminate stop the runs in order, so that no file is left half written. A second one ends
/// the program at once.
pub fn stop_on_signal(shared: &Shared) -> Result<()> {
    use signal_hook::{consts, flag};
    for signal in [consts::SIGINT, consts::SIGTERM] {
        flag::register_conditional_shutdown(signal, crate::INTERRUPTED.into(), shared.stop.clone())?;
        flag::register(signal, shared.stop.clone())?;
    }
    Ok(())
}

/// Marks what is the user's mistake, or wish.
pub fn classify(error: ExperimentError) -> anyhow::Error {
    if error.is_interruption() {
        anyhow::Error::new(crate::Interrupted)
    } else if error.is_usage() {
        usage(error)
    } else {
        error.into()
    }
}
