// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that run a workload on a modelled device.

use super::common::{Common, Target};
use clap::{Args, ValueEnum};
use readpath_session::args::{OwnImages, TraceHow};
use std::path::PathBuf;

/// Arguments of `reproduce`.
#[derive(Args, Debug)]
pub struct Reproduce {
    /// iozone, tiobench, appstart, mixed, chunk, memory, verification, rivals, rivals_apps, hmb, policies, ubi,
    /// or all
    pub name: String,
    /// Folder of recorded traces. policies and hmb read mobile/X_exec.csv.gz (each after its X_precond.csv.gz) and
    /// block/*, hmb also a single file; ubi reads recorded read streams; all takes a folder with mobile, block and
    /// ubi, or some of them
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// hmb: addresses of traces beyond the device are folded onto it (policies always does so)
    #[arg(long, requires = "traces")]
    pub fold: bool,
    #[command(flatten)]
    pub own: OwnImages,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunFile {
    /// The experiment file (TOML)
    pub file: PathBuf,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `iozone`.
#[derive(Args, Debug)]
pub struct Iozone {
    #[command(flatten)]
    pub target: Target,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub common: Common,
    /// The iozone command line after `--`, for example: -- -r 4k -+n -i2 -ecI -t 16 -l 16 -u 16 -s 64m
    #[arg(last = true, required = true, value_name = "IOZONE ARGUMENTS")]
    pub args: Vec<String>,
}

/// How `fio` prints.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum FioFormat {
    /// Tables
    Normal,
    /// fio's own JSON, for its plotting tools; needs one --hpb mode (such as off or dcm) or one policy
    Json,
    /// json with latency bins
    #[value(name = "json+")]
    JsonPlus,
}

/// Arguments of `fio`.
#[derive(Args, Debug)]
pub struct Fio {
    /// The job file; - for standard input
    #[arg(required_unless_present = "options")]
    pub job: Option<PathBuf>,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub common: Common,
    /// Events during the run, one a line: time in ms, a comma, then suspend, resume, hardware-reset, power-cycle[,TIME
    /// without power] or pressure,BYTES
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "normal")]
    pub output_format: FioFormat,
    /// Print to FILE instead of the terminal
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The job as options of fio after `--` instead of a file, for example: -- --name=a --rw=randread --size=1g
    #[arg(last = true, conflicts_with = "job", value_name = "FIO OPTIONS")]
    pub options: Vec<String>,
}

/// What loses power.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loses {
    /// Host and device: the host probes the device again
    Everything,
    /// The device only: the host keeps its HPB entries until the device resets them
    Device,
}

/// Arguments of `power`.
#[derive(Args, Debug)]
pub struct Power {
    /// A fio job file; with --trace a block trace
    #[arg(value_name = "FILE")]
    pub workload: PathBuf,
    /// Replay FILE, a block trace (- for standard input)
    #[arg(long)]
    pub trace: bool,
    /// Number of power cuts, at random moments
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub cuts: u32,
    /// What loses power
    #[arg(long, value_enum, default_value = "everything")]
    pub loses: Loses,
    /// Time without power
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub off: String,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub how: TraceHow,
    #[command(flatten)]
    pub common: Common,
}
