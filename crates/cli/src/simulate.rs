// SPDX-License-Identifier: MIT OR Apache-2.0
//! `readpath iozone` and `fio`: experiments of options.

use crate::args::{Common, Fio, FioFormat, Iozone};
use crate::ask::{Asking, Files, ask, names};
use crate::{experiment, usage};
use anyhow::{Result, anyhow};
use readpath_session::args::{Chosen, Making};
use readpath_session::ask::experiment::{of, of_fio, of_iozone};
use readpath_session::lab::question::Question;
use std::path::PathBuf;

pub fn iozone(args: &Iozone) -> Result<()> {
    let files = Files { folder: args.common.basics.out.clone(), ..Files::default() };
    let question = of(of_iozone(&args.of)?, &args.of.making, &args.of.chosen)?;
    show(question, &args.of.making, &args.common, args.dry_run, files)
}

fn show<Q: Question>(question: Q, making: &Making, common: &Common, dry: bool, files: Files) -> Result<()> {
    let begin = |names| Asking::begin(making, common, names, files);
    ask(begin, dry.then_some(common.basics.json), |_| Ok(question), experiment::tables).map(drop)
}

pub fn fio(args: &Fio) -> Result<()> {
    let format = args.output_format;
    let (making, chosen): (&Making, &Chosen) = (&args.of.making, &args.of.chosen);
    let experiment = of_fio(&args.of, format != FioFormat::Normal)?;
    let inputs = [args.of.job.as_ref(), args.of.events.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    let files = Files { folder: args.common.basics.out.clone(), inputs, to: args.output.as_deref() };
    if format == FioFormat::Normal || args.dry_run {
        return show(of(experiment, making, chosen)?, making, &args.common, args.dry_run, files);
    }
    let common = &args.common.basics;
    if common.json {
        return Err(usage(anyhow!("--json prints our own document; it does not go with --output-format json")));
    }
    let question = of(experiment, making, chosen)?.with_fio_json(format == FioFormat::JsonPlus);
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
    let asking = Asking::begin(making, &args.common, names(question.points()), files)?;
    let answer = question.answer(&asking.make(&question)?).map_err(readpath_session::runs::mark)?;
    asking.show_text(answer)
}
