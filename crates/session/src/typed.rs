// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments of one workload: a fio job, options of fio or an iozone command line on a device.

use crate::args::Fill;
use crate::inputs::{self, is_stdin};
use crate::usage;
use anyhow::Result;
use readpath_config::experiment::{Experiment, Fio, Iozone, Variant, Workload};
use readpath_workload::fio;
use std::path::Path;

/// The experiment of a fio job file on a device, with seed 1.
pub fn of_job(job: &Path, device: &str, fill: Fill, variants: Vec<Variant>) -> Experiment {
    let case = match job.file_stem() {
        _ if is_stdin(job) => inputs::name(job),
        stem => stem.map_or_else(|| "fio".into(), |s| s.to_string_lossy().into_owned()),
    };
    let title = format!("fio {}", inputs::name(job));
    let workload = Workload::Fio(Fio::File { case, job: job.to_owned(), defaults: String::new() });
    Experiment { variants, ..Experiment::of_user("fio_job", &title, device, fill.layout(), workload) }
}

/// The experiment of a fio job file whose jobs have defaults typed in options of fio, with seed 1.
///
/// # Errors
/// When the options are not those of a job.
pub fn of_job_with(
    job: &Path,
    options: &[String],
    device: &str,
    fill: Fill,
    variants: Vec<Variant>,
) -> Result<Experiment> {
    let mut experiment = of_job(job, device, fill, variants);
    if let Workload::Fio(Fio::File { defaults, .. }) = &mut experiment.workload
        && !options.is_empty()
    {
        *defaults = fio::defaults(options).map_err(usage)?;
        experiment.title = format!("{} {}", experiment.title, options.join(" "));
    }
    Ok(experiment)
}

/// The experiment of a job in options of fio, with seed 1.
///
/// # Errors
/// When the options are not those of a job.
pub fn of_fio_options(options: &[String], device: &str, fill: Fill, variants: Vec<Variant>) -> Result<Experiment> {
    let fio::Typed { name: case, text } = fio::of_arguments(options).map_err(usage)?;
    let title = format!("fio {}", options.join(" "));
    let workload = Workload::Fio(Fio::Text { case, text });
    Ok(Experiment { variants, ..Experiment::of_user("fio_job", &title, device, fill.layout(), workload) })
}

/// The experiment of an iozone command line on a device, with seed 1.
pub fn of_iozone(args: &[String], device: &str, fill: Fill, variants: Vec<Variant>) -> Experiment {
    let source = Iozone::Args { case: "iozone".into(), args: args.to_vec() };
    let title = format!("iozone {}", args.join(" "));
    let workload = Workload::Iozone(source);
    Experiment { variants, ..Experiment::of_user("iozone_command", &title, device, fill.layout(), workload) }
}
