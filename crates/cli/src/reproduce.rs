// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath reproduce`: finds a built-in experiment, or all of them, and has it run.

use crate::args::{Common, OwnImages, Reproduce};
use crate::experiment::{self, Files};
use crate::files::{NewFolder, check_writable, write_whole};
use crate::inputs::read_text;
use crate::stop::{self, Written};
use crate::{hmb, policies, ubi, usage};
use anyhow::{Result, anyhow};
use readpath_report::html;
use std::io::{self, Write};
use std::path::Path;

pub fn main(args: &Reproduce) -> Result<()> {
    if args.fold && args.name != hmb::NAME {
        return Err(usage(anyhow!("--fold goes with reproduce hmb; policies and all fold without it")));
    }
    if args.name == ALL {
        return reproduce_all(args);
    }
    if args.name == ubi::EXPERIMENT {
        return ubi::reproduce(args);
    }
    if !args.own.images.is_empty() {
        let name = &args.name;
        return Err(usage(anyhow!("--image goes with reproduce ubi; {name} reads no image of NAND")));
    }
    if args.own.cost.is_some() {
        return Err(usage(anyhow!("--cost goes with reproduce ubi; {} has no NAND to name", args.name)));
    }
    if args.name == policies::NAME {
        return policies::reproduce(args);
    }
    if args.name == hmb::NAME {
        return hmb::reproduce(args);
    }
    if args.traces.is_some() {
        let name = &args.name;
        return Err(usage(anyhow!(
            "--traces goes with reproduce policies, hmb and ubi; {name} runs on no recorded trace"
        )));
    }
    let others = [policies::NAME, ubi::EXPERIMENT, ALL];
    let experiment = readpath_config::experiment::load_beside(&others, &args.name, &read_text).map_err(usage)?;
    if args.dry_run {
        return experiment::dry_run(&experiment, &args.common);
    }
    let folder = args.common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(&experiment.name));
    experiment::run_and_show(&experiment, &args.common, Files { folder: Some(folder), inputs: &[], to: None }).map(drop)
}

/// The name that means every built-in experiment.
const ALL: &str = "all";

/// Every built-in experiment, each in a folder of its own, and one page of all.
fn reproduce_all(args: &Reproduce) -> Result<()> {
    let common = &args.common;
    let refused = [
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
    // It takes minutes until the first of these is wanted; who named a bad one wants to know now.
    let (recorded, hmb, ubi) = traces_of_all(common, args.traces.as_deref())?;
    let experiments = readpath_config::experiments().iter().map(|builtin| {
        let experiment = readpath_config::experiment::load(builtin.name, &read_text).map_err(usage)?;
        experiment::plans(&experiment, common).map(|_| experiment)
    });
    let experiments = experiments.collect::<Result<Vec<_>>>()?;
    if args.dry_run {
        let others = experiments.iter().filter(|experiment| experiment.name != hmb::NAME);
        others.into_iter().try_for_each(|experiment| {
            experiment::dry_run(experiment, common)?;
            Ok::<_, anyhow::Error>(writeln!(io::stdout())?)
        })?;
        hmb.dry_run(common)?;
        writeln!(io::stdout())?;
        recorded.dry_run(common)?;
        return Ok(writeln!(io::stdout(), "\nubi replays reads of streams; none of them is a run.")?);
    }
    let folder = common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(ALL));
    let _made = NewFolder::create(&folder)?;
    let page = folder.join("report.html");
    check_writable(&page)?;
    let mut documents = Vec::new();
    for experiment in experiments.into_iter().filter(|experiment| experiment.name != hmb::NAME) {
        let files = Files { folder: Some(folder.join(&experiment.name)), inputs: &[], to: None };
        documents.push(experiment::run_and_show(&experiment, common, files)?);
        writeln!(io::stdout())?;
    }
    documents.push(hmb.write_and_show(common, &folder.join(hmb::NAME))?);
    writeln!(io::stdout())?;
    documents.push(recorded.write_and_show(common, &folder.join(policies::NAME))?);
    writeln!(io::stdout())?;
    // All runs are over; replays of reads do not look whether they are to stop.
    stop::at_once(Written::Others)?;
    documents.push(ubi.write_and_show(&folder.join(ubi::EXPERIMENT), &common.basics)?);
    let all = html::pages("Readpath: all experiments", &documents)?;
    let held = stop::hold();
    write_whole(&page, all.as_bytes())?;
    held.done();
    Ok(writeln!(io::stdout(), "All of them on one page: {}", page.display())?)
}

/// What `policies`, `hmb` and `ubi` run, with all traces read: those of the folders `mobile` and `block`, and `ubi`, as
/// far as there are such.
fn traces_of_all(common: &Common, dir: Option<&Path>) -> Result<(policies::Prepared, hmb::Prepared, ubi::Prepared)> {
    const UBI: &str = ubi::EXPERIMENT;
    let has = |name: &str| dir.is_some_and(|dir| dir.join(name).is_dir());
    let traces = dir.filter(|_| policies::folders().into_iter().any(has));
    let streams = dir.filter(|_| has(UBI)).map(|dir| dir.join(UBI));
    if let (Some(dir), None, None) = (dir, traces, &streams) {
        let dir = dir.display();
        return Err(usage(anyhow!("--traces {dir}: there is none of {dir}/mobile, {dir}/block and {dir}/ubi")));
    }
    let mut recorded = policies::prepare(common, traces)?;
    let mut hmb = hmb::prepare(common, traces, true)?;
    hmb.notes.extend(traces.is_none().then(|| hmb::ONLY_SYNTHETIC.to_owned()));
    let mut ubi = ubi::prepare(streams.as_deref(), &OwnImages::default())?;
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
    Ok((recorded, hmb, ubi))
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
            let (recorded, _, ubi) = traces_of_all(&args.common, dir).expect("traces");
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
