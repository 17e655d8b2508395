// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that simulate: all of them make an experiment, run it and show its document.

use crate::args::{Common, Fill, Fio, FioFormat, Hpb, HpbHost, Iozone, OwnImages, Report, Reproduce, RunFile};
use crate::events::{check_pressure, read_events};
use crate::files::{NewFolder, check_not_input, check_writable, read_document, read_text, write_whole};
use crate::live::Live;
use crate::output::Folder;
use crate::ubi::stop::{self, Written};
use crate::variants::Typed;
use crate::{attacks, output, policies, runs, usage};
use anyhow::{Context, Result, anyhow};
use readpath_config::experiment::{
    Experiment, Fio as FioSource, Iozone as IozoneSource, Precondition, PreconditionRange, Variant, Workload,
};
use readpath_config::{Override, keeps_memory};
use readpath_lab::experiment::{self, CaseRun, ExperimentError, Plan, Shared, expected_ios, plan, run_all};
use readpath_lab::{beforehand, document, fio_json};
use readpath_report::html;
use readpath_results::Document;
use readpath_run::execute;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// `readpath reproduce`.
pub fn reproduce(args: &Reproduce) -> Result<()> {
    if args.name == ALL {
        return reproduce_all(args);
    }
    if args.name == crate::ubi::EXPERIMENT {
        return crate::ubi::reproduce(args);
    }
    if !args.own.images.is_empty() {
        let name = &args.name;
        return Err(usage(anyhow!("--image goes with reproduce ubi; {name} reads no image of NAND")));
    }
    if args.name == policies::NAME {
        return policies::reproduce(args);
    }
    if args.traces.is_some() {
        let name = &args.name;
        return Err(usage(anyhow!("--traces goes with reproduce policies and ubi; {name} runs on no recorded trace")));
    }
    let others = [policies::NAME, crate::ubi::EXPERIMENT, ALL];
    let experiment = readpath_config::experiment::load_beside(&others, &args.name, &read_text).map_err(usage)?;
    let folder = args.common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(&experiment.name));
    run_and_show(&experiment, &args.common, Files { folder: Some(folder), inputs: &[], to: None }).map(drop)
}

/// The name that means every built-in experiment.
const ALL: &str = "all";

/// Every built-in experiment, each in a folder of its own, and one page of all.
fn reproduce_all(args: &Reproduce) -> Result<()> {
    let common = &args.common;
    let refused = [
        ("--json", common.basics.json),
        ("--case", common.case.is_some()),
        ("--variant", common.variant.is_some()),
        ("--trace-io", common.trace_io.is_some()),
        ("--image", !args.own.images.is_empty()),
    ];
    let refused = refused.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
    if let Some(option) = refused.or(common.live.given()) {
        return Err(usage(anyhow!("{option} belongs to one experiment; 'all' are several")));
    }
    // It takes minutes until the first of these is wanted; who named a bad one wants to know now.
    let (recorded, ubi) = traces_of_all(common, args.traces.as_deref())?;
    let experiments = readpath_config::experiments().iter().map(|builtin| {
        let experiment = readpath_config::experiment::load(builtin.name, &read_text).map_err(usage)?;
        plans(&experiment, common).map(|_| experiment)
    });
    let experiments = experiments.collect::<Result<Vec<_>>>()?;
    let folder = common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(ALL));
    let _made = NewFolder::create(&folder)?;
    let page = folder.join("report.html");
    check_writable(&page)?;
    let mut documents = Vec::new();
    for experiment in experiments {
        let files = Files { folder: Some(folder.join(&experiment.name)), inputs: &[], to: None };
        documents.push(run_and_show(&experiment, common, files)?);
        writeln!(io::stdout())?;
    }
    documents.push(recorded.write_and_show(common, &folder.join(policies::NAME))?);
    writeln!(io::stdout())?;
    // All runs are over; replays of reads do not look whether they are to stop.
    stop::at_once(Written::Others)?;
    documents.push(ubi.write_and_show(&folder.join(crate::ubi::EXPERIMENT), false)?);
    let all = html::pages("Readpath: all experiments", &documents)?;
    let held = stop::hold();
    write_whole(&page, all.as_bytes())?;
    held.done();
    Ok(writeln!(io::stdout(), "All of them on one page: {}", page.display())?)
}

/// What `policies` and `ubi` run, with all traces read: those of the folders `mobile` and `block`, and `ubi`, as far as there
/// are such.
fn traces_of_all(common: &Common, dir: Option<&Path>) -> Result<(policies::Prepared, crate::ubi::Prepared)> {
    const UBI: &str = crate::ubi::EXPERIMENT;
    let has = |name: &str| dir.is_some_and(|dir| dir.join(name).is_dir());
    let traces = dir.filter(|_| policies::FOLDERS.into_iter().any(has));
    let streams = dir.filter(|_| has(UBI)).map(|dir| dir.join(UBI));
    if let (Some(dir), None, None) = (dir, traces, &streams) {
        let dir = dir.display();
        return Err(usage(anyhow!("--traces {dir}: there is none of {dir}/mobile, {dir}/block and {dir}/ubi")));
    }
    let mut recorded = policies::prepare(common, traces)?;
    let mut ubi = crate::ubi::prepare(streams.as_deref(), &OwnImages::default())?;
    match dir.map(Path::display) {
        None => recorded.notes.push(policies::ONLY_BUILT_IN.to_owned()),
        Some(dir) => {
            if traces.is_none() {
                recorded.notes.push(format!(
                    "--traces {dir}: has no folder mobile or block; only the built-in workloads were run."
                ));
            }
            if streams.is_none() {
                ubi.notes.push(format!("--traces {dir}: has no folder {UBI}; no recorded stream was replayed."));
            }
        }
    }
    Ok((recorded, ubi))
}

/// `readpath run`.
pub fn run_file(args: &RunFile) -> Result<()> {
    let file = args.file.to_string_lossy();
    let text = read_text(&args.file).with_context(|| format!("{file}: cannot read")).map_err(usage)?;
    let experiment = readpath_config::experiment::parse(&text, &file).map_err(usage)?;
    let folder = args.common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(&experiment.name));
    let files = Files { folder: Some(folder), inputs: &[&args.file], to: None };
    run_and_show(&experiment, &args.common, files).map(drop)
}

/// `readpath iozone`.
pub fn iozone(args: &Iozone) -> Result<()> {
    let source = IozoneSource::Args { case: "iozone".into(), args: args.args.clone() };
    let title = format!("iozone {}", args.args.join(" "));
    let (target, workload) = (&args.target, Workload::Iozone(source));
    let variants = variants(&target.host)?;
    let mut experiment = of_user("iozone_command", title, &target.device, target.precondition, variants, workload);
    experiment.seed = target.seed;
    let files = Files { folder: args.common.basics.out.clone(), inputs: &[], to: None };
    run_and_show(&experiment, &args.common, files).map(drop)
}

/// `readpath fio`.
pub fn fio(args: &Fio) -> Result<()> {
    let target = &args.target;
    let mut experiment = of_job(&args.job, &target.device, target.precondition, variants(&target.host)?);
    experiment.seed = target.seed;
    experiment.events = args.events.as_deref().map(read_events).transpose()?.unwrap_or_default();
    check_pressure(&experiment.events, experiment.variants.iter().map(|v| (&*v.name, keeps_memory(v.hpb))))?;
    let inputs: Vec<&Path> =
        [Some(&args.job), args.events.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    let files = Files { folder: args.common.basics.out.clone(), inputs: &inputs, to: args.output.as_deref() };
    let format = args.output_format;
    if format == FioFormat::Normal {
        return run_and_show(&experiment, &args.common, files).map(drop);
    }
    if args.common.basics.json {
        return Err(usage(anyhow!("--json prints our own document; it does not go with --output-format json")));
    }
    let plans = plans(&experiment, &args.common)?;
    if plans.len() != 1 {
        return Err(usage(anyhow!(
            "fio's JSON holds one run: choose one policy with --policy, or --hpb off, dcm, hcm, prototype-host or \
             prototype-device"
        )));
    }
    let folder = files.prepare()?;
    let live = show(&plans, &args.common)?;
    let runs = run(plans, &args.common, &live)?;
    let only = &runs[0];
    let text = fio_json(&only.plan.workload, &only.output.phase_stats(), format == FioFormat::JsonPlus);
    let doc = finish(&experiment, &runs, &live)?;
    if let Some(folder) = folder {
        folder.write(&doc)?;
    }
    output::emit(text.as_bytes(), args.output.as_deref())?;
    // fio's JSON has no place for them.
    for note in &doc.notes {
        writeln!(io::stderr(), "Note: {note}").ok();
    }
    live.finish()?;
    complete(runs.iter().filter_map(CaseRun::incomplete), runs.len())
}

/// `readpath report`.
pub fn report(args: &Report) -> Result<()> {
    let name = args.result.display();
    check_not_input(&args.html, &args.result)?;
    let text = read_document(&args.result).with_context(|| format!("{name}: cannot read")).map_err(usage)?;
    let doc = Document::from_json(&text).with_context(|| name.to_string()).map_err(usage)?;
    write_whole(&args.html, html::page(&doc)?.as_bytes())?;
    Ok(writeln!(io::stdout(), "{}", args.html.display())?)
}

/// The experiment that a fio job file on a device amounts to, with seed 1.
pub fn of_job(job: &Path, device: &str, fill: Fill, variants: Vec<Variant>) -> Experiment {
    let case = job.file_stem().map_or_else(|| "fio".into(), |s| s.to_string_lossy().into_owned());
    let title = format!("fio {}", job.display());
    let job = job.to_owned();
    of_user("fio_job", title, device, fill, variants, Workload::Fio(FioSource::File { case, job }))
}

/// The experiment that a workload of the user's amounts to, with seed 1.
fn of_user(
    name: &str,
    title: String,
    device: &str,
    fill: Fill,
    variants: Vec<Variant>,
    workload: Workload,
) -> Experiment {
    let layout = |l| Precondition { layout: l, range: PreconditionRange::Files };
    let precondition = match fill {
        Fill::Sequential => layout(readpath_config::experiment::Layout::Sequential),
        Fill::Random => layout(readpath_config::experiment::Layout::Random),
        Fill::None => {
            Precondition { range: PreconditionRange::None, ..layout(readpath_config::experiment::Layout::Sequential) }
        }
    };
    let mut experiment = Experiment::new(name, &title, device, 1, precondition, workload);
    experiment.description = format!("Simulated on the device '{device}'.");
    experiment.variants = variants;
    experiment
}

/// Hosts of a workload of the user's, each a variant.
pub fn variants(host: &HpbHost) -> Result<Vec<Variant>> {
    let hpb: Vec<Hpb> = host.hpb.into_iter().collect();
    let memory_bytes = host.memory_bytes()?;
    let typed = Typed { named: &[], varied: &[], policy: &host.policy, map_cache: &[], hpb: &hpb };
    let mut variants = typed.variants()?;
    variants.iter_mut().filter_map(|v| v.hpb.as_mut()).for_each(|hpb| hpb.memory_bytes = memory_bytes);
    Ok(variants)
}

/// The files of a command that simulates.
struct Files<'a> {
    /// For the document and its page.
    folder: Option<PathBuf>,
    /// What was read, and so is not to be written to.
    inputs: &'a [&'a Path],
    /// For what is printed, instead of standard output.
    to: Option<&'a Path>,
}

impl Files<'_> {
    /// Sees to it that everything can be written.
    fn prepare(&self) -> Result<Option<Folder>> {
        if let Some(to) = self.to {
            self.inputs.iter().try_for_each(|input| check_not_input(to, input))?;
            check_writable(to)?;
        }
        self.folder.as_deref().map(|folder| Folder::create(folder)?.apart_from(self.inputs)).transpose()
    }
}

/// Runs an experiment, prints its table or document and writes its folder.
fn run_and_show(experiment: &Experiment, common: &Common, files: Files) -> Result<Document> {
    let plans = plans(experiment, common)?;
    let (prepared, to) = (files.prepare()?, files.to);
    let live = show(&plans, common)?;
    let runs = run(plans, common, &live)?;
    let mut doc = finish(experiment, &runs, &live)?;
    // A table of their own: they are counted, where everything else is timed.
    let costs = doc.clone();
    let attacks = attacks::document(experiment, common, &runs)?;
    if let Some(attacks) = &attacks {
        doc.rows.extend_from_slice(&attacks.rows);
        doc.notes.extend_from_slice(&attacks.notes);
        doc.simulated_ios += attacks.simulated_ios;
        doc.process = output::process();
        doc.validate()?;
    }
    // What took long is shown also if it cannot be written.
    let written = prepared.map_or(Ok(()), |folder| folder.write(&doc));
    let mut out = Vec::new();
    if common.basics.json {
        out = doc.to_json_pretty()?.into_bytes();
    } else {
        writeln!(out, "{}\n", doc.title)?;
        // A file may be read on any terminal.
        let width = if to.is_none() { output::terminal_width() } else { None };
        output::print_table(&costs, width, &mut out)?;
        if let Some(attacks) = &attacks {
            attacks::print(attacks, width, &mut out)?;
        }
        for note in &doc.notes {
            writeln!(out, "Note: {note}")?;
        }
        output::print_end(&doc, files.folder.as_deref().filter(|_| written.is_ok()), &mut out)?;
    }
    output::emit(&out, to)?;
    written?;
    live.finish()?;
    complete(runs.iter().filter_map(CaseRun::incomplete), runs.len())?;
    Ok(doc)
}

/// Fails if something is missing of any of `runs` runs. What there is of it has been shown and written by then.
pub fn complete(mut missing: impl Iterator<Item = String>, runs: usize) -> Result<()> {
    let Some(first) = missing.next() else { return Ok(()) };
    let more = match missing.count() {
        0 => String::new(),
        n => format!("; and so in {n} more of {runs} runs (see the notes of the results)"),
    };
    Err(anyhow!("results are incomplete: {first}{more}"))
}

fn finish(experiment: &Experiment, runs: &[CaseRun], live: &Live) -> Result<Document> {
    let mut doc = document::document(experiment, runs)?;
    doc.notes.extend(live.notes());
    doc.process = output::process();
    doc.validate()?;
    Ok(doc)
}

/// The runs that were asked for, with everything checked that can be checked without running them.
fn plans(experiment: &Experiment, common: &Common) -> Result<Vec<Plan>> {
    let overrides: Vec<Override> = common
        .basics
        .set
        .iter()
        .map(|s| Override::from_argument(s, "--set"))
        .collect::<Result<_, _>>()
        .map_err(usage)?;
    let mut plans = plan(experiment, &overrides, &read_text).map_err(classify)?;
    runs::choose(&mut plans, |p| &p.case, "--case", common.case.as_deref())?;
    runs::choose(&mut plans, |p| &p.variant, "--variant", common.variant.as_deref())?;
    plans.iter_mut().for_each(|p| p.setup.encoded = common.wire);
    runs::only_one_traced(common, plans.len())?;
    beforehand::plans(&plans).map_err(classify)?;
    Ok(plans)
}

/// Lets others see the runs that are planned, if that was asked for.
fn show(plans: &[Plan], common: &Common) -> Result<Live> {
    Live::start(&common.live, plans.iter().map(|p| (p.case.clone(), p.variant.clone())))
}

fn run(mut plans: Vec<Plan>, common: &Common, live: &Live) -> Result<Vec<CaseRun>> {
    if let (Some(path), [_]) = (&common.trace_io, &plans[..]) {
        return Ok(vec![traced(plans.remove(0), path, common.trace_io_limit, live)?]);
    }
    let expected = plans.iter().map(|p| expected_ios(&p.workload)).sum::<Option<u64>>();
    let count = plans.len();
    let result = runs::side_by_side(common.basics.threads, count, expected, &runs::stoppable(live)?, |shared| {
        run_all(plans, shared)
    })?;
    result.map_err(classify)
}

/// One run with every stage of its requests recorded.
fn traced(mut plan: Plan, path: &Path, limit: u64, live: &Live) -> Result<CaseRun> {
    let title = format!("{}, {}", plan.case, plan.variant);
    runs::recorded(path, &title, limit, &*runs::stoppable(live)?, |tap, shared| {
        let (result, tap) = execute(&plan.setup, &mut plan.workload, tap, &mut experiment::watch(shared, 0));
        let run = match result {
            Ok(output) => Ok(CaseRun { plan, output }),
            Err(error) => Err(ExperimentError::Run { case: plan.case, variant: plan.variant, error }),
        };
        (run, tap)
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;
    use std::fs;

    /// Each part says in its own result what the folder has not.
    #[test]
    fn notes_of_a_folder_of_traces_that_lacks_some() {
        let room = tempfile::tempdir().expect("a folder");
        let path = |name: &str| room.path().join(name);
        let notes = |dir: Option<&Path>| {
            let Command::Reproduce(args) = Cli::parse_from(["readpath", "reproduce", "all"]).command else { panic!() };
            let (recorded, ubi) = traces_of_all(&args.common, dir).expect("traces");
            let of = |notes: Vec<String>| notes.join(" ").replace(&room.path().display().to_string(), "DIR");
            (of(recorded.notes), of(ubi.notes))
        };
        assert_eq!(notes(None), (policies::ONLY_BUILT_IN.to_owned(), String::new()));
        for name in ["ubi", "block"] {
            fs::create_dir(path(name)).expect("a folder");
        }
        fs::write(path("ubi/x_find.csv"), "R,1,0,64,,find\n").expect("a stream");
        let table = "time_ns,op,offset_bytes,size_bytes,process,latency_ns\n0,R,0,4096,,\n";
        fs::write(path("block/x.csv"), table).expect("a trace");
        let no_mobile = "--traces DIR: has no folder mobile; left out.".to_owned();
        assert_eq!(notes(Some(room.path())), (no_mobile.clone(), String::new()));
        fs::rename(path("ubi"), path("other")).expect("another name");
        let no_ubi = "--traces DIR: has no folder ubi; no recorded stream was replayed.".to_owned();
        assert_eq!(notes(Some(room.path())), (no_mobile, no_ubi));
        fs::rename(path("other"), path("ubi")).expect("its name");
        fs::remove_dir_all(path("block")).expect("the folder");
        let only_ubi = "--traces DIR: has no folder mobile or block; only the built-in workloads were run.".to_owned();
        assert_eq!(notes(Some(room.path())), (only_ubi, String::new()));
    }
}
