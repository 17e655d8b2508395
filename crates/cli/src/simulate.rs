// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath run`, `iozone` and `fio`: each makes an experiment of what was typed and has it run.

use crate::args::{Fio, FioFormat, Iozone, RunFile};
use crate::ask::{Asking, Files, names};
use crate::events::{check_pressure, read_events};
use crate::{experiment, inputs, presets, typed, usage};
use anyhow::{Result, anyhow};
use readpath_config::keeps_memory;
use readpath_lab::question::Question;
use std::path::{Path, PathBuf};

pub fn run(args: &RunFile) -> Result<()> {
    let file = args.file.to_string_lossy();
    let text = inputs::text(&args.file)?;
    let experiment = readpath_config::experiment::parse(&text, &file).map_err(usage)?;
    let folder = args.common.basics.out.clone().unwrap_or_else(|| Path::new("out").join(&experiment.name));
    let files = Files { folder: Some(folder), inputs: vec![&args.file], to: None };
    experiment::ask(experiment, &args.common, args.dry_run, files).map(drop)
}

pub fn iozone(args: &Iozone) -> Result<()> {
    let target = &args.target;
    let variants = typed::variants(&target.host)?;
    let mut experiment = typed::of_iozone(&args.args, &target.device, target.precondition, variants);
    experiment.seed = target.seed;
    let files = Files { folder: args.common.basics.out.clone(), ..Files::default() };
    experiment::ask(experiment, &args.common, args.dry_run, files).map(drop)
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
    let inputs = [args.job.as_ref(), args.events.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    let files = Files { folder: args.common.basics.out.clone(), inputs, to: args.output.as_deref() };
    if format == FioFormat::Normal || args.dry_run {
        return experiment::ask(experiment, &args.common, args.dry_run, files).map(drop);
    }
    let common = &args.common.basics;
    if common.json {
        return Err(usage(anyhow!("--json prints our own document; it does not go with --output-format json")));
    }
    let question = experiment::question(experiment, &args.common)?.with_fio_json(format == FioFormat::JsonPlus);
    if question.points().len() != 1 {
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
    let asking = Asking::begin(&args.common, names(question.points()), files)?;
    let answer = question.answer(&asking.make(&question)?).map_err(crate::ask::mark)?;
    asking.show_text(answer)
}
