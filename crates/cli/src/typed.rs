// SPDX-License-Identifier: MIT OR Apache-2.0
//! A workload that was typed, as the experiment that it amounts to.

use crate::args::{Fill, Hpb, HpbHost};
use crate::inputs::{self, is_stdin};
use crate::variants::Typed;
use anyhow::Result;
use readpath_config::experiment::{
    Experiment, Fio, Iozone, Layout, Precondition, PreconditionRange, Variant, Workload,
};
use std::path::Path;

/// The experiment that a fio job file on a device amounts to, with seed 1.
pub fn of_job(job: &Path, device: &str, fill: Fill, variants: Vec<Variant>) -> Experiment {
    let case = match job.file_stem() {
        _ if is_stdin(job) => inputs::name(job),
        stem => stem.map_or_else(|| "fio".into(), |s| s.to_string_lossy().into_owned()),
    };
    let title = format!("fio {}", inputs::name(job));
    let job = job.to_owned();
    of_user("fio_job", title, device, fill, variants, Workload::Fio(Fio::File { case, job }))
}

/// The experiment that an iozone command line on a device amounts to, with seed 1.
pub fn of_iozone(args: &[String], device: &str, fill: Fill, variants: Vec<Variant>) -> Experiment {
    let source = Iozone::Args { case: "iozone".into(), args: args.to_vec() };
    let title = format!("iozone {}", args.join(" "));
    of_user("iozone_command", title, device, fill, variants, Workload::Iozone(source))
}

fn of_user(
    name: &str,
    title: String,
    device: &str,
    fill: Fill,
    variants: Vec<Variant>,
    workload: Workload,
) -> Experiment {
    let range = if fill == Fill::None { PreconditionRange::None } else { PreconditionRange::Files };
    let precondition = Precondition { layout: fill.layout().unwrap_or(Layout::Sequential), range };
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
