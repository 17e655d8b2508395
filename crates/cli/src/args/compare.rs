// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command lines of `compare` and `break-even`, as data.

use super::common::Basics;
use clap::Args;
use readpath_session::args::{Fill, Hpb, TraceHow, policies};
use std::path::PathBuf;

/// Arguments of `compare`.
#[derive(Args, Clone, Debug)]
pub struct Compare {
    /// A fio job file (*.fio), an experiment (*.toml, or a built-in name), or a block trace (any other file, or - for
    /// standard input)
    pub workload: PathBuf,
    /// WORKLOAD is a fio job file, whatever its name
    #[arg(long, conflicts_with = "trace")]
    pub fio: bool,
    /// WORKLOAD is a block trace, whatever its name
    #[arg(long)]
    pub trace: bool,
    /// A variant: its name, then keys of the device file or of an experiment's variant
    /// (hpb=off|dcm|hcm|prototype-host|prototype-device, order, max_map=512K, ...); repeatable
    #[arg(long, value_name = "NAME:KEY=VALUE,...")]
    pub variant: Vec<String>,
    /// Values of a key to compare, combined with all other values; repeatable
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub vary: Vec<String>,
    /// HPB modes to compare [default: off,dcm, unless --variant or --vary name them; for an experiment, those of its
    /// file]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub hpb: Vec<Hpb>,
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        help = policies("Host memory policies to compare, separated by commas")
    )]
    pub policy: Vec<String>,
    /// Map cache sizes to compare, separated by commas: bytes, or with K, M or G [default: the device's]
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    pub map_cache: Vec<String>,
    /// The baseline variant [default: the first]
    #[arg(long, value_name = "NAME")]
    pub base: Option<String>,
    /// Number of seeds [default: 5; 1 for a trace with --preload sequential, where nothing is random]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: Option<u32>,
    /// The first seed; the others follow it [default: 1, or the experiment's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Device preset, or a device file; an experiment names its own [default: ufs21-64g]
    #[arg(long, value_name = "NAME|FILE")]
    pub device: Option<String>,
    /// Physical order of a job's files, or of trace blocks that are read before they are written; not for experiments,
    /// and none only for jobs [default: sequential]
    #[arg(long, value_enum)]
    pub preload: Option<Fill>,
    /// Run only this case of an experiment
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub basics: Basics,
    /// A trace to replay first (- for standard input), measured apart; may be repeated, and goes before each trace
    #[arg(long, value_name = "FILE")]
    pub precondition: Vec<PathBuf>,
    #[command(flatten)]
    pub how: TraceHow,
}

/// Arguments of `break-even`.
#[derive(Args, Debug)]
pub struct BreakEven {
    /// A fio job file (*.fio), or a block trace (any other file)
    pub workload: PathBuf,
    /// WORKLOAD is a fio job file, whatever its name
    #[arg(long, conflicts_with = "trace")]
    pub fio: bool,
    /// WORKLOAD is a block trace, whatever its name
    #[arg(long)]
    pub trace: bool,
    /// The key whose least value is looked for; whole numbers
    #[arg(long, value_name = "KEY", default_value = "map_cache.size_kib")]
    pub key: String,
    /// The least value [default, for map_cache.size_kib: 64]
    #[arg(long, value_name = "N")]
    pub from: Option<u64>,
    /// The greatest value [default, for map_cache.size_kib: the whole map]
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,
    /// Distance of the values [default, for map_cache.size_kib: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub step: Option<u64>,
    /// What it has to be as good as: keys of the device file or the host; HPB is off unless one says
    /// otherwise
    #[arg(long, value_name = "KEY=VALUE,...", default_value = "hpb=dcm")]
    pub against: String,
    /// What goes with the key: keys of the device file or the host; HPB is off unless one says
    /// otherwise
    #[arg(long, value_name = "KEY=VALUE,...", default_value = crate::break_even::HPB_OFF)]
    pub with: String,
    /// The metric that is compared, as in result documents
    #[arg(long, value_name = "NAME", default_value = "read_latency_mean")]
    pub metric: String,
    /// How much worse the metric may be, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub within: f64,
    /// Number of seeds; means over them are compared
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// The first seed; the others follow it
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1)]
    pub seed: u64,
    /// Device preset, or a device file
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    /// Physical order of a job's files, or of trace blocks that are read before they are written; none only for jobs
    #[arg(long, value_enum, default_value = "sequential")]
    pub preload: Fill,
    #[command(flatten)]
    pub basics: Basics,
    /// A trace to replay first, measured apart; may be repeated
    #[arg(long, value_name = "FILE")]
    pub precondition: Vec<PathBuf>,
    #[command(flatten)]
    pub how: TraceHow,
}
