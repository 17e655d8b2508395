// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces: how they are read, replayed, described and converted.

use super::common::{Common, Hpb, HpbHost};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// How block traces are read.
#[derive(Args, Clone, Debug)]
pub struct TraceInput {
    /// Format, if it is not recognised: msr, systor17, cloudphysics, mobile, alibaba, tencent, blkparse, blktrace,
    /// vscsi, oracle-general, lcs, fio2, fio3, ftrace-ufs, ftrace-block, perfetto-ufs, perfetto-block, trace-io, csv.
    /// Needed for oracle-general, and for alibaba and tencent without a header
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,
    /// Columns of a CSV table, for example time=0:us,op=1,offset=2:bytes,size=3:sectors
    #[arg(long, value_name = "DESCRIPTION")]
    pub columns: Option<String>,
    /// Bytes by which the numbers of objects in oracle-general and lcs count: 512 if they are sectors, 1 if bytes, 4096
    /// if blocks
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub object_bytes: Option<u32>,
    /// Skip and count rows that cannot be read or lie beyond the device, instead of refusing the trace
    #[arg(long)]
    pub lenient: bool,
    /// Take only requests to this device of the trace; in what --trace-io and `attach --trace` write, this logical unit
    /// instead of 0
    #[arg(long, value_name = "NAME", conflicts_with = "merge_devices")]
    pub trace_device: Option<String>,
    /// Take requests to all devices as requests to one
    #[arg(long)]
    pub merge_devices: bool,
}

/// When a replay submits requests.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayMode {
    /// At their recorded times, at any queue depth
    Timed,
    /// In order, at a fixed queue depth
    Closed,
}

/// Physical order of the blocks that a trace reads before it writes them.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preload {
    /// As if written in ascending order
    Sequential,
    /// As if written in random order
    Random,
}

/// The options of traces that a command has: its errors advise no others. All of them can fold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offers {
    /// What chooses the device, if anything does.
    pub device: Option<&'static str>,
    /// Those of [`TraceInput`].
    pub reading: bool,
    /// Those that change times.
    pub times: bool,
}

impl Default for Offers {
    fn default() -> Self {
        Offers { device: Some("--device"), reading: true, times: true }
    }
}

/// How block traces are read and replayed.
#[derive(Args, Clone, Debug)]
pub struct TraceHow {
    #[arg(skip)]
    pub offers: Offers,
    #[command(flatten)]
    pub input: TraceInput,
    /// When requests are submitted [default: timed]
    #[arg(long, value_enum)]
    pub mode: Option<ReplayMode>,
    /// Queue depth with --mode closed [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub iodepth: Option<u32>,
    /// Put devices of the trace on logical units of their own: sda=0,sdb=1. Requests to others are left out
    #[arg(
        long,
        value_name = "DEVICE=LUN",
        value_delimiter = ',',
        conflicts_with_all = ["trace_device", "merge_devices", "fold"]
    )]
    pub units: Vec<String>,
    /// Replay at X times the recorded speed, such as 2 or 0.5
    #[arg(long, value_name = "X")]
    pub speed: Option<String>,
    /// Shorten longer pauses between requests to TIME, such as 10ms, before --speed applies
    #[arg(long, value_name = "TIME")]
    pub max_idle: Option<String>,
    /// Fold addresses beyond the device onto it; the results then say that the trace was changed
    #[arg(long)]
    pub fold: bool,
    /// Spread requests with equal times evenly up to the next time; assumes that they came at even distances
    #[arg(long, conflicts_with = "max_idle")]
    pub spread_ties: bool,
    /// Add N sectors of 512 bytes to every address, for traces of a partition that is not aligned
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub shift_sectors: u8,
}

impl TraceHow {
    /// An option that was given, if any was.
    pub fn given(&self) -> Option<&'static str> {
        let input = &self.input;
        let options = [
            (input.format.is_some(), "--format"),
            (input.columns.is_some(), "--columns"),
            (input.object_bytes.is_some(), "--object-bytes"),
            (input.lenient, "--lenient"),
            (input.trace_device.is_some(), "--trace-device"),
            (input.merge_devices, "--merge-devices"),
            (!self.units.is_empty(), "--units"),
            (self.mode.is_some(), "--mode"),
            (self.iodepth.is_some(), "--iodepth"),
            (self.speed.is_some(), "--speed"),
            (self.max_idle.is_some(), "--max-idle"),
            (self.fold, "--fold"),
            (self.spread_ties, "--spread-ties"),
            (self.shift_sectors > 0, "--shift-sectors"),
        ];
        options.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}

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
    #[arg(long, visible_alias = "output", value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// A recording has its own device, host and times, and its report one form.
const NOT_WITH_IMAGE: [&str; 36] = [
    "units",
    "precondition",
    "format",
    "columns",
    "object_bytes",
    "lenient",
    "trace_device",
    "merge_devices",
    "mode",
    "iodepth",
    "speed",
    "max_idle",
    "fold",
    "spread_ties",
    "shift_sectors",
    "device",
    "hpb",
    "policy",
    "host_memory",
    "map_cache",
    "host_map",
    "pressure",
    "events",
    "preload",
    "seed",
    "json",
    "out",
    "set",
    "threads",
    "trace_io",
    "wire",
    "case",
    "variant",
    "stats",
    "sysfs",
    "hold",
];

/// Arguments of `replay`.
#[derive(Args, Debug)]
pub struct Replay {
    /// The traces, each on a fresh device; one may be - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Replay what `readpath serve --record` wrote on the image that it began with: same requests, same moments, same
    /// device and host. The image stays as it is
    #[arg(long, value_name = "START.img", conflicts_with_all = NOT_WITH_IMAGE)]
    pub image: Option<PathBuf>,
    /// A trace to replay before each trace, measured apart (- for standard input); repeatable
    #[arg(long, value_name = "FILE")]
    pub precondition: Vec<PathBuf>,
    #[command(flatten)]
    pub how: TraceHow,
    /// Device preset, or a device file
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    #[command(flatten)]
    pub host: HpbHost,
    /// Map cache sizes to compare, separated by commas: bytes, or with K, M or G [default: the device's]
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    pub map_cache: Vec<String>,
    /// Limit of host memory for HPB maps: bytes, or with K, M or G [default: what the device allows]
    #[arg(long, value_name = "BYTES", conflicts_with = "host_memory")]
    pub host_map: Option<String>,
    /// Change --host-memory during the trace: a file of lines TIME_MS,SIZE; not with linux-dcm and linux-hcm
    #[arg(long, value_name = "FILE", requires = "host_memory")]
    pub pressure: Option<PathBuf>,
    /// Events during the trace, one a line: time in ms, a comma, then suspend, resume, hardware-reset,
    /// power-cycle[,TIME without power] or pressure,BYTES
    #[arg(long, value_name = "FILE", conflicts_with = "pressure")]
    pub events: Option<PathBuf>,
    /// Physical order of blocks that are read before they are written
    #[arg(long, value_enum, default_value = "sequential")]
    pub preload: Preload,
    /// Seed of the random numbers
    #[arg(long, allow_negative_numbers = true, default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub common: Common,
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
        #[arg(long, visible_alias = "output", value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// How often a map of any size would hit: how much memory do these traces need?
    ///
    /// Counted in one pass over each trace, for a least-recently-used map that is filled on demand.
    Mrc(Mrc),
    /// List the UPIUs in what --trace-io or `attach --trace` wrote, one a line
    Upius {
        /// The trace; - for standard input
        file: PathBuf,
    },
    /// Whether the host of this program, told to do as Linux, decides as the one of which `attach --trace` wrote
    ///
    /// It is given the same block requests and replies. The trace begins with a device that has just been switched on.
    Parity {
        /// The trace; - for standard input
        file: PathBuf,
        /// Device preset, or a device file: that of the image
        #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
        device: String,
        /// Change a key of the device file; repeatable
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
        /// Control mode of HPB for which the device is configured: dcm or hcm
        #[arg(long, value_enum, default_value = "dcm")]
        hpb: Hpb,
    },
    /// Write a trace in another format
    Convert {
        /// The trace; - for standard input
        #[arg(value_name = "IN")]
        from: PathBuf,
        /// The file to write
        #[arg(value_name = "OUT")]
        into: PathBuf,
        /// Format to write
        #[arg(long, value_enum)]
        to: TraceFormat,
        /// File or device name in the fio log
        #[arg(long, value_name = "NAME", default_value = "device")]
        target: String,
        #[command(flatten)]
        input: TraceInput,
    },
}
