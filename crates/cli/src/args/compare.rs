// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of `compare`, as data.

use super::{Basics, Fill, Hpb, TraceHow};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `compare`.
#[derive(Args, Debug)]
pub struct Compare {
    /// What is run: a fio job file (*.fio), an experiment (*.toml, or the name of a built-in one), or a block trace (any
    /// other file, or - for standard input)
    pub workload: PathBuf,
    /// WORKLOAD is a fio job file, whatever its name
    #[arg(long, conflicts_with = "trace")]
    pub fio: bool,
    /// WORKLOAD is a block trace, whatever its name
    #[arg(long)]
    pub trace: bool,
    /// A variant: its name, and keys of the device or of an experiment's variant (hpb=off|dcm|hcm|
    /// prototype-host|prototype-device, order, max_map=512K, ...); may be repeated
    #[arg(long, value_name = "NAME:KEY=VALUE,...")]
    pub variant: Vec<String>,
    /// Values of a key to compare, each with everything else that is compared; may be repeated
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub vary: Vec<String>,
    /// Whether the host uses HPB [default: off,dcm, unless --variant or --vary say; an experiment: as in its file]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub hpb: Vec<Hpb>,
    /// Policies of host memory to compare, with commas between them: linux-dcm, linux-hcm, lru, lfu, cost-aware, preload,
    /// sram-aware, dirty-refresh
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Sizes of the map cache to compare, with commas between them: bytes, or with K, M or G [default: the device's]
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    pub map_cache: Vec<String>,
    /// The variant that the others are compared with [default: the first]
    #[arg(long, value_name = "NAME")]
    pub base: Option<String>,
    /// How many seeds [default: 5; 1 for a trace whose preloaded blocks lie in order, because nothing is drawn then]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: Option<u32>,
    /// The first seed; the others follow it [default: 1, or the experiment's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Device preset, or a device file; an experiment names its own [default: ufs21-64g]
    #[arg(long, value_name = "NAME|FILE")]
    pub device: Option<String>,
    /// How the files of a job, or blocks of a trace that are read before they are written, lie in flash at the start; an
    /// experiment says so itself, and none is for jobs [default: sequential]
    #[arg(long, value_enum)]
    pub preload: Option<Fill>,
    /// Run only this case of an experiment
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    #[command(flatten)]
    pub basics: Basics,
    #[command(flatten)]
    pub how: TraceHow,
}
