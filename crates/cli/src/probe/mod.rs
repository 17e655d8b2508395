// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath device probe`: writes the jobs of a plan, reads what fio measured, and shows what that says of the device.
//! It runs no job itself, and knows nothing of how fits are made.

mod plan;
mod tables;

use crate::args::{ProbeCommand, ProbeFit};
use crate::fit::{Heading, write_device};
use crate::{inputs, output};
use anyhow::Result;
use readpath_session::ask::probe::Probing;
use readpath_session::lab::probe::Probe;
use readpath_session::lab::runs::Shared;
use std::io::{self, Write};
use std::sync::Arc;

/// The script of a plan.
const SCRIPT: &str = "run.sh";
/// The fitted device, and the folder of the jobs to run next.
const FITTED: &str = "fitted.toml";
const NEXT: &str = "next";

pub fn main(command: &ProbeCommand) -> Result<()> {
    match command {
        ProbeCommand::Plan(args) => plan::main(args),
        ProbeCommand::Fit(args) => fit(args),
    }
}

fn fit(args: &ProbeFit) -> Result<()> {
    let probing = Probing::read(&args.of)?;
    let folder = match &args.out {
        Some(out) => {
            plan::check_new(&out.join(NEXT))?;
            Some(output::Folder::create(out)?.apart_from(&args.of.results)?)
        }
        None => None,
    };
    let shared = Arc::new(Shared::default());
    let progress = output::Progress::start(shared.clone(), None);
    let probe = probing.probe(&shared)?;
    drop(progress);
    let mut doc = probing.document(&probe)?;
    doc.process = output::process();
    if let (Some(folder), Some(out)) = (folder, &args.out) {
        folder.write(&doc)?;
        write_device(&out.join(FITTED), &probe.fit, &heading(&probe, args))?;
        if let Some(next) = &probe.next {
            plan::write(&out.join(NEXT), next, probe.plan.jobs.len(), &probing.preset)?;
        }
    }
    let mut text = output::printed(&doc, args.json, args.out.as_deref(), || tables::of(&probe))?;
    if let (Some(out), false) = (&args.out, args.json) {
        text.push_str(&format!("Fitted device: {}\n", out.join(FITTED).display()));
        if probe.next.is_some() {
            text.push_str(&format!("Jobs to run next: {}\n", out.join(NEXT).join(SCRIPT).display()));
        }
    }
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

/// The comment in the file of the fitted device.
fn heading(probe: &Probe, args: &ProbeFit) -> Heading {
    let known = probe.known.iter().filter(|k| k.high.is_finite());
    let line = |k: &readpath_session::lab::fit::Known| {
        format!("{}: {}, {} ({})", k.param.key(), k.param.show(k.fitted), k.verdict.name(), k.interval())
    };
    let sources: Vec<_> = args.of.results.iter().map(|path| inputs::name(path)).collect();
    Heading { program: "device probe", source: sources.join(", "), lines: known.map(line).collect() }
}
