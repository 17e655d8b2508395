// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath run`, `iozone` and `fio`: each makes an experiment of what was typed and has it run.

use crate::args::{Fio, FioFormat, Iozone, RunFile};
use crate::events::{check_pressure, read_events};
use crate::experiment::{self, Files};
use crate::{inputs, output, presets, runs, typed, usage};
use anyhow::{Result, anyhow};
use readpath_config::keeps_memory;
use readpath_lab::experiment::CaseRun;
use readpath_lab::fio_json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub fn run(args: &RunFile) -> Result<()> {
    let file = args.file.to_string_lossy();
    let text = inputs::text(&args.file)?;
    let experiment = readpath_config::experiment::parse(&text, &file).map_err(usage)?;
    if args.dry_run {
        return experiment::dry_run(&experiment, &args.common);
    }
    let folder = args.common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(&experiment.name));
    let files = Files { folder: Some(folder), inputs: &[&args.file], to: None };
    experiment::run_and_show(&experiment, &args.common, files).map(drop)
}

pub fn iozone(args: &Iozone) -> Result<()> {
    let target = &args.target;
    let variants = typed::variants(&target.host)?;
    let mut experiment = typed::of_iozone(&args.args, &target.device, target.precondition, variants);
    experiment.seed = target.seed;
    if args.dry_run {
        return experiment::dry_run(&experiment, &args.common);
    }
    let files = Files { folder: args.common.basics.out.clone(), inputs: &[], to: None };
    experiment::run_and_show(&experiment, &args.common, files).map(drop)
}

pub fn fio(args: &Fio) -> Result<()> {
    let (target, format) = (&args.target, args.output_format);
    let mut variants = typed::variants(&target.host)?;
    let host_is_given = target.host.hpb.is_some() || !target.host.policy.is_empty();
    if format != FioFormat::Normal && !host_is_given {
        // On a device without HPB all hosts are one.
        let device = presets::preset(&target.device, &args.common.basics.set)?.device;
        variants.retain(|variant| variant.hpb.is_none() || device.lus.iter().any(|unit| unit.hpb));
    }
    let mut experiment = match &args.job {
        Some(job) => typed::of_job(job, &target.device, target.precondition, variants),
        None => typed::of_fio_options(&args.options, &target.device, target.precondition, variants)?,
    };
    experiment.seed = target.seed;
    experiment.events = args.events.as_deref().map(read_events).transpose()?.unwrap_or_default();
    check_pressure(&experiment.events, experiment.variants.iter().map(|v| (&*v.name, keeps_memory(v.hpb))))?;
    if args.dry_run {
        return experiment::dry_run(&experiment, &args.common);
    }
    let inputs: Vec<&Path> =
        [args.job.as_ref(), args.events.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    let files = Files { folder: args.common.basics.out.clone(), inputs: &inputs, to: args.output.as_deref() };
    if format == FioFormat::Normal {
        return experiment::run_and_show(&experiment, &args.common, files).map(drop);
    }
    let common = &args.common.basics;
    if common.json {
        return Err(usage(anyhow!("--json prints our own document; it does not go with --output-format json")));
    }
    let plans = experiment::plans(&experiment, &args.common)?;
    if plans.len() != 1 {
        return Err(usage(anyhow!(
            "fio's JSON holds one run: choose one policy with --policy, or --hpb off, dcm, hcm, prototype-host or \
             prototype-device"
        )));
    }
    if common.prints_csv() && args.output.is_none() {
        return Err(usage(anyhow!(
            "--csv - and --output-format json both print to standard output; --output FILE helps"
        )));
    }
    let kept = files.prepare(common)?;
    let live = experiment::show(&plans, &args.common)?;
    let runs = experiment::run(plans, &args.common, &live)?;
    let only = &runs[0];
    let text = fio_json(&only.plan.workload, &only.output.phase_stats(), format == FioFormat::JsonPlus);
    let doc = experiment::finish(&experiment, &runs, &live)?;
    kept.write(&doc)?;
    if common.prints_csv() {
        output::emit(&doc.to_csv()?, None)?;
    }
    output::emit(&text, args.output.as_deref())?;
    // fio's JSON has no place for them.
    for note in &doc.notes {
        writeln!(io::stderr(), "Note: {note}").ok();
    }
    live.finish()?;
    runs::complete(runs.iter().filter_map(CaseRun::incomplete), runs.len())
}
