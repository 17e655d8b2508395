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
    /// memory (HMB) and by HPB; and with all of a zoned device's small map in SRAM
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
