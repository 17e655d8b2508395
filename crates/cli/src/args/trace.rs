// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces: how they are read, replayed, described and converted.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use readpath_session::args::TraceInput;
use std::path::PathBuf;

/// `readpath trace mrc`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("on_device").args(["check", "gain"]).multiple(true))]
pub struct Mrc {
    /// The traces; - for standard input
    #[arg(value_name = "TRACE", required = true)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub input: TraceInput,
    /// Sizes of map pages in KiB, with entries of 4 bytes: powers of two
    #[arg(long, value_name = "KIB", value_delimiter = ',', default_value = "4,16")]
    pub page_kib: Vec<u64>,
    /// Sizes of HPB regions in MiB, with entries of 8 bytes: powers of two
    #[arg(long, value_name = "MIB", value_delimiter = ',', default_value = "16")]
    pub region_mib: Vec<u64>,
    /// Follow at most N pages of each map, chosen by a hash: memory stays small, and hits are near the right ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..))]
    pub sample: Option<u32>,
    /// Add N sectors of 512 bytes to every address, for traces of a partition that is not aligned
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub shift_sectors: u8,
    /// Have the map cache of this device, a preset or a file, simulated with the same requests at depth 1 and 16, and
    /// show both
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "sample")]
    pub check: Option<String>,
    /// Replay each trace on this device, a preset or a file, with a map of the size of the knee: in SRAM, in host
    /// memory (HMB) and by HPB; and on zones behind a log-structured mapper
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "sample")]
    pub gain: Option<String>,
    /// Change a key of the device file; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "on_device")]
    pub set: Vec<String>,
    /// Fold addresses beyond the device of --check or --gain onto it
    #[arg(long, requires = "on_device")]
    pub fold: bool,
    /// Runs of --check and --gain to simulate in parallel; results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Print a result document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Folder for result.json and report.html
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `readpath trace experts`.
#[derive(Args, Debug)]
pub struct TraceExperts {
    /// A list of what was read, as CSV: token,layer,expert, or offset,length in bytes [default: experts are drawn]
    #[arg(value_name = "LIST")]
    pub list: Option<PathBuf>,
    /// The trace to write, a CSV table
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// Layers with experts
    #[arg(long, value_name = "N", default_value_t = 48)]
    pub layers: u32,
    /// Experts of a layer
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub experts: u32,
    /// Weights of an expert, such as 64K or 18M
    #[arg(long, value_name = "SIZE", default_value = "2304K")]
    pub expert_size: String,
    /// Experts of each layer that a token reads
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub per_token: u32,
    /// Tokens to draw
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub tokens: u32,
    /// Exponent of Zipf's law for the popularity of experts; 0 is even
    #[arg(long, value_name = "X", default_value_t = 0.5)]
    pub skew: f64,
    /// Length of a read: an expert is cut into so long ones
    #[arg(long, value_name = "SIZE", default_value = "512K")]
    pub read_size: String,
    /// Time from one token to the next, which the layers share evenly
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub token_time: String,
    /// Seed of the draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// Formats that traces are written in.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// A table that keeps everything
    Csv,
    /// fio's I/O log, version 3
    Fio,
}

/// Commands about block traces.
#[derive(Subcommand, Debug)]
pub enum TraceCommand {
    /// Describe a trace: sizes, working set, order, map pages with skew and reuse, load over time
    Info {
        /// The trace; - for standard input
        file: PathBuf,
        #[command(flatten)]
        input: TraceInput,
        /// Sectors of 512 bytes added to every address, for traces recorded behind a partition that is not aligned
        #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=7))]
        shift_sectors: u8,
        /// Print a result document instead of tables
        #[arg(long)]
        json: bool,
        /// Folder for result.json and report.html
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// How often a map of any size would hit: how much memory do these traces need?
    ///
    /// Counted in one pass over each trace, for a least-recently-used map that is filled on demand.
    Mrc(Mrc),
    /// Write what a language model reads of its experts as a trace
    ///
    /// For each token every layer reads some of its experts, drawn by popularity or as a list says. Replay it with
    /// --iodepth, or give it to hmb.
    Experts(TraceExperts),
    /// Write a trace in another format
    Convert {
        /// The trace; - for standard input
        #[arg(value_name = "TRACE")]
        file: PathBuf,
        /// The file to write
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
        /// Format to write
        #[arg(long, value_enum, default_value = "csv")]
        output_format: TraceFormat,
        /// File or device name in the fio log
        #[arg(long, value_name = "NAME", default_value = "device")]
        filename: String,
        #[command(flatten)]
        input: TraceInput,
    },
}
