// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath reproduce`: a built-in experiment, all of them, or that of a file.

use crate::args::Reproduce;
use crate::ask::{Asking, Files, ask as ask_one, names};
use crate::experiment;
use crate::files::{NewFolder, check_writable, write_whole};
use crate::stop::{self, Written};
use crate::{dry_run, hmb, policies, replay, ubi, usage};
use anyhow::{Result, anyhow};
use readpath_report::html;
use readpath_session::ask;
use readpath_session::ask::reproduce::{self, ALL, Named};
use readpath_session::lab::builtin::Group;
use readpath_session::lab::question::{Answer, Question};
use readpath_session::results::Document;
use readpath_session::ubi::EXPERIMENT;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub fn main(args: &Reproduce) -> Result<()> {
    let (name, common) = (&args.of.name, &args.common);
    if name == ALL {
        return reproduce_all(args);
    }
    if let Some(group) = reproduce::group(name) {
        return reproduce_group(args, &group);
    }
    if name == EXPERIMENT {
        ubi::begin(args)?;
    }
    let traced = common.trace_io.is_some();
    let instead = match &**name {
        ask::policies::NAME if traced => Some("'readpath replay' with --policy"),
        ask::hmb::NAME if traced => Some("'readpath reproduce experiments/hmb.toml' with --case"),
        _ => None,
    };
    if let Some(instead) = instead {
        return Err(usage(anyhow!("--trace-io records a single run: use {instead}")));
    }
    let named = reproduce::named(&args.of)?;
    let name = if let Named::Runs(question) = &named { &question.experiment.name } else { name };
    let folder = common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(name));
    match named {
        Named::Runs(question) => one(*question, args, folder, experiment::tables),
        Named::Hmb(question) => one(*question, args, folder, hmb::table),
        Named::Policies(question) => one(*question, args, folder, policies::table),
        Named::Ubi(prepared) => ubi::write_and_show(&prepared, &folder, &common.basics).map(drop),
    }
}

fn one<Q: Question>(
    question: Q,
    args: &Reproduce,
    folder: PathBuf,
    tables: impl FnOnce(&Answer, Option<u16>) -> String,
) -> Result<()> {
    let common = &args.common;
    let files = Files { folder: Some(folder), inputs: vec![Path::new(&args.of.name)], to: None };
    let begin = |names| Asking::begin(&args.of.making, common, names, files);
    ask_one(begin, args.dry_run.then_some(common.basics.json), |_| Ok(question), tables).map(drop)
}

/// Refuses options of one experiment for a name that means several.
fn refuse_options_of_one(args: &Reproduce) -> Result<()> {
    let common = &args.common;
    let refused = [
        ("--json", common.basics.json),
        ("--csv", common.basics.csv.is_some()),
        ("--case", args.of.chosen.case.is_some()),
        ("--variant", args.of.chosen.variant.is_some()),
        ("--trace-io", common.trace_io.is_some()),
        ("--image", !args.of.own.images.is_empty()),
        ("--cost", args.of.own.cost.is_some()),
    ];
    let refused = refused.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
    if let Some(option) = refused.or(common.live.given()) {
        return Err(usage(anyhow!("{option} belongs to one experiment; '{}' are several", args.of.name)));
    }
    Ok(())
}

/// Experiments that answer one question together: a table for each, and one page of all.
fn reproduce_group(args: &Reproduce, group: &Group) -> Result<()> {
    refuse_options_of_one(args)?;
    let members = reproduce::members(group, &args.of.making)?;
    let traces = args.of.traces.as_deref();
    let replays = traces.map(|dir| reproduce::of_recorded(group, &args.of.making, dir)).transpose()?;
    if args.dry_run {
        for one in &members {
            dry_run::show(one, false)?;
            writeln!(io::stdout())?;
        }
        return replays.map_or(Ok(()), |replays| dry_run::show(&replays, false));
    }
    let folder = args.common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(group.name));
    let _made = NewFolder::create(&folder)?;
    let page = folder.join("report.html");
    check_writable(&page)?;
    let mut documents = Vec::new();
    let tables = if group.is_of_published { experiment::published } else { experiment::tables };
    for one in &members {
        documents.push(ask_into(one, args, &folder.join(&one.experiment.name), tables)?);
        writeln!(io::stdout())?;
    }
    if let Some(replays) = replays {
        documents.push(ask_into(&replays, args, &folder.join("recorded"), replay::tables)?);
        writeln!(io::stdout())?;
    }
    write_page(&format!("Readpath: {}", group.title), &documents, &page)
}

fn write_page(title: &str, documents: &[Document], page: &Path) -> Result<()> {
    let all = html::pages(title, documents)?;
    let held = stop::hold();
    write_whole(page, all.as_bytes())?;
    held.done();
    Ok(writeln!(io::stdout(), "All of them on one page: {}", page.display())?)
}

/// Every built-in experiment, each in a folder of its own, and one page of all.
fn reproduce_all(args: &Reproduce) -> Result<()> {
    refuse_options_of_one(args)?;
    let common = &args.common;
    // Traces are wanted minutes later; one that cannot be read is refused now.
    let prepared = reproduce::all(&args.of.making, args.of.traces.as_deref())?;
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
        documents.push(ask_into(one, args, &folder.join(&one.experiment.name), experiment::tables)?);
        writeln!(io::stdout())?;
    }
    documents.push(ask_into(&prepared.hmb, args, &folder.join(ask::hmb::NAME), hmb::table)?);
    writeln!(io::stdout())?;
    documents.push(ask_into(&prepared.policies, args, &folder.join(ask::policies::NAME), policies::table)?);
    writeln!(io::stdout())?;
    // All runs are over; replays of reads do not look whether they are to stop.
    stop::at_once(Written::Others)?;
    documents.push(ubi::write_and_show(&prepared.ubi, &folder.join(EXPERIMENT), &common.basics)?);
    write_page("Readpath: all experiments", &documents, &page)
}

fn ask_into<Q: Question>(
    question: &Q,
    args: &Reproduce,
    folder: &Path,
    tables: impl FnOnce(&Answer, Option<u16>) -> String,
) -> Result<Document> {
    let files = Files { folder: Some(folder.to_owned()), ..Files::default() };
    Asking::begin(&args.of.making, &args.common, names(question.points()), files)?.answer(question, tables)
}
