// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath reproduce`: finds a built-in experiment, or all of them, and has it run.

use crate::args::{Common, OwnImages, Reproduce};
use crate::ask::{self, Asking, Files};
use crate::experiment;
use crate::files::{NewFolder, check_writable, write_whole};
use crate::inputs::read_text;
use crate::stop::{self, Written};
use crate::{dry_run, hmb, policies, ubi, usage};
use anyhow::{Result, anyhow};
use readpath_lab::builtin::{self, Builtin, Kind};
use readpath_lab::experiment::Experimenting;
use readpath_lab::hmb::HostMemory;
use readpath_lab::policies::Policies;
use readpath_lab::question::{Answer, Question};
use readpath_report::html;
use readpath_results::Document;
use std::io::{self, Write};
use std::path::Path;

pub fn main(args: &Reproduce) -> Result<()> {
    if args.name == ALL {
        return reproduce_all(args);
    }
    let kind = builtin::find(&args.name).map(|builtin| builtin.kind);
    check_options(args, kind)?;
    match kind {
        Some(Kind::Ubi) => ubi::reproduce(args),
        Some(Kind::Policies) => policies::reproduce(args),
        Some(Kind::Hmb) => hmb::reproduce(args),
        // An unknown name is refused where files are looked for.
        Some(Kind::File { .. }) | None => {
            let others: Vec<&str> =
                builtin::BUILTINS.iter().filter(|b| !b.is_file()).map(|b| b.name).chain([ALL]).collect();
            let experiment =
                readpath_config::experiment::load_beside(&others, &args.name, &read_text).map_err(usage)?;
            let folder = args.common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(&experiment.name));
            let files = Files { folder: Some(folder), ..Files::default() };
            experiment::ask(experiment, &args.common, args.dry_run, files).map(drop)
        }
    }
}

/// Refuses options that belong to other experiments.
fn check_options(args: &Reproduce, kind: Option<Kind>) -> Result<()> {
    let name = &args.name;
    if args.fold && kind != Some(Kind::Hmb) {
        return Err(usage(anyhow!("--fold goes with reproduce hmb; policies and all fold without it")));
    }
    if kind == Some(Kind::Ubi) {
        return Ok(());
    }
    if !args.own.images.is_empty() {
        return Err(usage(anyhow!("--image goes with reproduce ubi; {name} reads no image of NAND")));
    }
    if args.own.cost.is_some() {
        return Err(usage(anyhow!("--cost goes with reproduce ubi; {name} has no NAND to name")));
    }
    if args.traces.is_some() && !matches!(kind, Some(Kind::Policies | Kind::Hmb)) {
        return Err(usage(anyhow!(
            "--traces goes with reproduce policies, hmb and ubi; {name} runs on no recorded trace"
        )));
    }
    Ok(())
}

/// The name that means every built-in experiment.
const ALL: &str = "all";

/// Every built-in experiment, each in a folder of its own, and one page of all.
fn reproduce_all(args: &Reproduce) -> Result<()> {
    let common = &args.common;
    let refused = [
        ("--fold", args.fold),
        ("--json", common.basics.json),
        ("--csv", common.basics.csv.is_some()),
        ("--case", common.case.is_some()),
        ("--variant", common.variant.is_some()),
        ("--trace-io", common.trace_io.is_some()),
        ("--image", !args.own.images.is_empty()),
        ("--cost", args.own.cost.is_some()),
    ];
    let refused = refused.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
    if let Some(option) = refused.or(common.live.given()) {
        return Err(usage(anyhow!("{option} belongs to one experiment; 'all' are several")));
    }
    // Traces are wanted minutes later; one that cannot be read is refused now.
    let prepared = prepare_all(common, args.traces.as_deref())?;
    if args.dry_run {
        for one in prepared.files.iter() {
            dry_run::show(one, false)?;
            writeln!(io::stdout())?;
        }
        dry_run::show(&prepared.hmb, false)?;
        writeln!(io::stdout())?;
        dry_run::show(&prepared.policies, false)?;
        return Ok(writeln!(io::stdout(), "\nubi replays reads of streams; none of them is a run.")?);
    }
    let folder = common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(ALL));
    let _made = NewFolder::create(&folder)?;
    let page = folder.join("report.html");
    check_writable(&page)?;
    let mut documents = Vec::new();
    for one in &prepared.files {
        documents.push(ask_into(one, common, &folder.join(&one.experiment.name), experiment::tables)?);
        writeln!(io::stdout())?;
    }
    documents.push(ask_into(&prepared.hmb, common, &folder.join(hmb::NAME), hmb::table)?);
    writeln!(io::stdout())?;
    documents.push(ask_into(&prepared.policies, common, &folder.join(policies::NAME), policies::table)?);
    writeln!(io::stdout())?;
    // All runs are over; replays of reads do not look whether they are to stop.
    stop::at_once(Written::Others)?;
    documents.push(ubi::write_and_show(&prepared.ubi, &folder.join(ubi::EXPERIMENT), &common.basics)?);
    let all = html::pages("Readpath: all experiments", &documents)?;
    let held = stop::hold();
    write_whole(&page, all.as_bytes())?;
    held.done();
    Ok(writeln!(io::stdout(), "All of them on one page: {}", page.display())?)
}

fn ask_into<Q: Question>(
    question: &Q,
    common: &Common,
    folder: &Path,
    tables: impl FnOnce(&Answer, Option<u16>) -> String,
) -> Result<Document> {
    let files = Files { folder: Some(folder.to_owned()), ..Files::default() };
    Asking::begin(common, ask::names(question.points()), files)?.answer(question, tables)
}

/// Everything that `all` asks.
struct All {
    files: Vec<Experimenting>,
    hmb: HostMemory,
    policies: Policies,
    ubi: ubi::Prepared,
}

/// All of it, with all traces read: those of the folders `mobile` and `block`, and `ubi`, as far as there are such.
fn prepare_all(common: &Common, dir: Option<&Path>) -> Result<All> {
    const UBI: &str = ubi::EXPERIMENT;
    let has = |name: &str| dir.is_some_and(|dir| dir.join(name).is_dir());
    let traces = dir.filter(|_| policies::folders().into_iter().any(has));
    let streams = dir.filter(|_| has(UBI)).map(|dir| dir.join(UBI));
    if let (Some(dir), None, None) = (dir, traces, &streams) {
        let dir = dir.display();
        return Err(usage(anyhow!("--traces {dir}: there is none of {dir}/mobile, {dir}/block and {dir}/ubi")));
    }
    let without_traces = match dir.map(Path::display) {
        None => Some(policies::ONLY_BUILT_IN.to_owned()),
        Some(dir) => traces
            .is_none()
            .then(|| format!("--traces {dir}: has no folder mobile or block; only the built-in workloads were run.")),
    };
    let policies = policies::prepare(common, traces, without_traces)?;
    let hmb = hmb::prepare(common, traces, true, traces.is_none().then(|| hmb::ONLY_SYNTHETIC.to_owned()))?;
    let mut ubi = ubi::prepare(streams.as_deref(), &OwnImages::default())?;
    if let (Some(dir), None) = (dir, &streams) {
        let dir = dir.display();
        ubi.notes.push(format!("--traces {dir}: has no folder {UBI}; no recorded stream was replayed."));
    }
    let file = |builtin: &Builtin| {
        let experiment = readpath_config::experiment::load(builtin.name, &read_text).map_err(usage)?;
        experiment::question(experiment, common)
    };
    let is_plain = |builtin: &&Builtin| matches!(builtin.kind, Kind::File { .. });
    let files = builtin::BUILTINS.iter().filter(is_plain).map(file).collect::<Result<_>>()?;
    Ok(All { files, hmb, policies, ubi })
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
            let all = prepare_all(&args.common, dir).expect("traces");
            let of = |notes: Vec<String>| notes.join(" ").replace(&room.path().display().to_string(), "DIR");
            (of(all.policies.notes().iter().map(ToString::to_string).collect()), of(all.ubi.notes))
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
