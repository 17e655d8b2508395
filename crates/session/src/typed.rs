// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments of one workload: a fio job, options of fio or an iozone command line on a device.

use crate::args::{Fill, Hpb, HpbHost};
use crate::inputs::{self, is_stdin};
use crate::usage;
use crate::variants::Typed;
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
    let workload = Workload::Fio(Fio::File { case, job: job.to_owned() });
    Experiment { variants, ..Experiment::of_user("fio_job", &title, device, fill.layout(), workload) }
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

/// The variants of a host's options.
///
/// # Errors
/// When an option is wrong or two contradict each other.
pub fn variants(host: &HpbHost) -> Result<Vec<Variant>> {
    let hpb: Vec<Hpb> = host.hpb.into_iter().collect();
    let memory_bytes = host.memory_bytes()?;
    let typed = Typed { named: &[], varied: &[], policy: &host.policy, map_cache: &[], hpb: &hpb };
    let mut variants = typed.variants()?;
    variants.iter_mut().filter_map(|v| v.hpb.as_mut()).for_each(|hpb| hpb.memory_bytes = memory_bytes);
    Ok(variants)
}
