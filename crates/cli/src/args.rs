// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line, as data: what can be typed and what `--help` says of it.

mod compare;
mod image;
mod live;
mod ubi;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

pub use compare::Compare;
pub use image::{ImageInput, ImageSizes, OwnImages, UbiCat, UbiCheck, UbiFind, UbiLook, UbiStream, UbiWork};
pub use live::{LiveOptions, Stats};
pub use ubi::{StreamInput, UbiCommand, UbiReplay};

/// How much faster are reads with part of the flash read path cached in host memory? UFS with HPB, and UBI on raw NAND
#[derive(Parser, Debug)]
#[command(name = "readpath", version, about, long_about = None)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Reproduce a published experiment and show the error of every row
    Reproduce(Reproduce),
    /// Run an experiment file: device, host, workload and variants
    Run(RunFile),
    /// Run an iozone command line on a modelled device
    Iozone(Iozone),
    /// Run a fio job file on a modelled device
    Fio(Fio),
    /// Replay recorded block traces on a modelled device
    Replay(Replay),
    /// Compare variants under the same workload and seeds, with confidence intervals
    Compare(Compare),
    /// Cut the power at random moments of a fio job, and check all data after each recovery
    Power(Power),
    /// Describe block traces and convert them
    #[command(subcommand)]
    Trace(TraceCommand),
    /// List, show, check and fit device presets
    #[command(subcommand)]
    Device(DeviceCommand),
    /// Raw NAND with UBI and UBIFS: inspect images, make and replay read streams
    #[command(subcommand)]
    Ubi(UbiCommand),
    /// Show the counters of a running simulation that was started with --stats
    Stats(Stats),
    /// Make an HTML report from a result document
    Report(Report),
    /// Measure the speed of the simulator itself
    Bench(Bench),
}

/// Options of every command that simulates.
#[derive(Args, Debug)]
pub struct Basics {
    /// Print the result document as JSON instead of a table
    #[arg(long)]
    pub json: bool,
    /// Folder for result.json and report.html
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Change a key of the device file for this run; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Runs to simulate in parallel [default: one per processor]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
}

/// The same, and options of commands that can show single runs.
#[derive(Args, Debug)]
pub struct Common {
    #[command(flatten)]
    pub basics: Basics,
    /// Record the stages and UPIUs of every request of one run (choose it with --case and --variant) to FILE, for
    /// Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace_io: Option<PathBuf>,
    /// Record at most N requests
    #[arg(long, value_name = "N", default_value_t = readpath_run::TRACE_IO_LIMIT)]
    pub trace_io_limit: u64,
    /// Encode every request and reply as a UPIU and parse it again: slower, same results
    #[arg(long)]
    pub wire: bool,
    /// Run only this case
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// Run only this variant
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    #[command(flatten)]
    pub live: LiveOptions,
}

/// Arguments of `reproduce`.
#[derive(Args, Debug)]
pub struct Reproduce {
    /// iozone, tiobench, appstart, mixed, chunk, memory, verification, rivals, rivals_apps, policies, ubi, or all
    pub name: String,
    /// Folder of recorded traces. policies reads mobile/X_exec.csv.gz (each after its X_precond.csv.gz) and block/*;
    /// ubi reads recorded read streams; all takes a folder with mobile, block and ubi, or some of them
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    #[command(flatten)]
    pub own: OwnImages,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunFile {
    /// The experiment file (TOML)
    pub file: PathBuf,
    #[command(flatten)]
    pub common: Common,
}

/// Whether the host uses HPB.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hpb {
    /// Never
    Off,
    /// Device control mode: the device recommends what to load
    Dcm,
    /// Host control mode: the host counts reads and decides
    Hcm,
    /// off and dcm
    Both,
    /// off, dcm and hcm
    All,
    /// The prototype of 2017: the host loads the groups that responses call changed
    PrototypeHost,
    /// The prototype of 2017: responses also carry changed entries
    PrototypeDevice,
    /// prototype-host and prototype-device
    Prototype,
}

/// State of the device before the first request.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// The files of the workload, written in ascending order
    Sequential,
    /// The files of the workload, written in random order
    Random,
    /// Nothing is written before the run
    None,
}

/// Hosts with HPB, and without.
#[derive(Args, Debug)]
pub struct HpbHost {
    /// Whether and how the host uses HPB [default: both, or what --policy needs]
    #[arg(long, value_enum)]
    pub hpb: Option<Hpb>,
    /// Host memory policies, separated by commas: linux-dcm, linux-hcm, lru, lfu, cost-aware, preload, sram-aware,
    /// dirty-refresh
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Limit of all host memory for HPB (maps, dirty bitmaps, tables): bytes, or with K, M or G
    #[arg(long, value_name = "BYTES")]
    pub host_memory: Option<String>,
}

/// What a workload of the user's runs on.
#[derive(Args, Debug)]
pub struct Target {
    /// Device preset, or a device file
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    #[command(flatten)]
    pub host: HpbHost,
    /// How the device is filled before the run
    #[arg(long, value_enum, default_value = "sequential")]
    pub precondition: Fill,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Arguments of `iozone`.
#[derive(Args, Debug)]
pub struct Iozone {
    #[command(flatten)]
    pub target: Target,
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
    /// The job file
    pub job: PathBuf,
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
    /// The job file; without runtime, rates or think time, because the number of requests has to be known
    pub job: PathBuf,
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
    pub basics: Basics,
}

/// How block traces are read.
#[derive(Args, Debug)]
pub struct TraceInput {
    /// Format, if it is not recognised: msr, systor17, cloudphysics, mobile, blkparse, blktrace, fio2, fio3,
    /// ftrace-ufs, ftrace-block, csv
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,
    /// Columns of a CSV table, for example time=0:us,op=1,offset=2:bytes,size=3:sectors
    #[arg(long, value_name = "DESCRIPTION")]
    pub columns: Option<String>,
    /// Skip and count rows that cannot be read or lie beyond the device, instead of refusing the trace
    #[arg(long)]
    pub lenient: bool,
    /// Take only requests to this device of the trace
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

/// How block traces are read and replayed.
#[derive(Args, Debug)]
pub struct TraceHow {
    /// A trace to replay before each trace, measured apart (- for standard input); repeatable
    #[arg(long, value_name = "FILE")]
    pub precondition: Vec<PathBuf>,
    #[command(flatten)]
    pub input: TraceInput,
    /// When requests are submitted [default: timed]
    #[arg(long, value_enum)]
    pub mode: Option<ReplayMode>,
    /// Queue depth with --mode closed [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub iodepth: Option<u32>,
    /// Replay at X times the recorded speed, such as 2 or 0.5
    #[arg(long, value_name = "X")]
    pub speed: Option<String>,
    /// Shorten longer pauses between requests to TIME, such as 10ms, before --speed applies
    #[arg(long, value_name = "TIME")]
    pub max_idle: Option<String>,
    /// Fold addresses beyond the device onto it; the results then say that the trace was changed
    #[arg(long)]
    pub fold: bool,
    /// Add N sectors of 512 bytes to every address, for traces of a partition that is not aligned
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub shift_sectors: u8,
}

impl TraceHow {
    /// An option that was given, if any was.
    pub fn given(&self) -> Option<&'static str> {
        let input = &self.input;
        let options = [
            (!self.precondition.is_empty(), "--precondition"),
            (input.format.is_some(), "--format"),
            (input.columns.is_some(), "--columns"),
            (input.lenient, "--lenient"),
            (input.trace_device.is_some(), "--trace-device"),
            (input.merge_devices, "--merge-devices"),
            (self.mode.is_some(), "--mode"),
            (self.iodepth.is_some(), "--iodepth"),
            (self.speed.is_some(), "--speed"),
            (self.max_idle.is_some(), "--max-idle"),
            (self.fold, "--fold"),
            (self.shift_sectors > 0, "--shift-sectors"),
        ];
        options.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}

/// Arguments of `replay`.
#[derive(Args, Debug)]
pub struct Replay {
    /// The traces, each on a fresh device; one may be - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
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
    #[arg(long, default_value_t = 1)]
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
    /// Describe a trace: sizes, footprint, order, reuse, load over time
    Info {
        /// The trace; - for standard input
        file: PathBuf,
        #[command(flatten)]
        input: TraceInput,
        /// Print a result document instead of tables
        #[arg(long)]
        json: bool,
        /// Folder for result.json and report.html
        #[arg(long, visible_alias = "output", value_name = "DIR")]
        out: Option<PathBuf>,
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

/// Commands about device presets.
#[derive(Subcommand, Debug)]
pub enum DeviceCommand {
    /// List the presets that come with the program
    List,
    /// Show a preset or device file with its sources, and what follows from it
    Show {
        /// Preset or file
        name: String,
        /// Change a key first; repeatable
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Check device files
    Check {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Fit a device to measured throughput or latency, and say which parameters the measurements identify
    Fit(Fit),
}

/// Arguments of `device fit`.
#[derive(Args, Debug)]
pub struct Fit {
    /// The measurements (CSV): range, queue depth, HPB, metric and value
    #[arg(value_name = "MEASUREMENTS.csv")]
    pub measurements: PathBuf,
    /// Preset or file of the device to start from
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    /// Keys of the parameters to fit, separated by commas
    #[arg(long, value_name = "KEY,KEY,...", value_delimiter = ',')]
    pub params: Vec<String>,
    /// Write the fitted device to FILE
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Requests to simulate for each measurement, after the warm-up
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    pub ios: u32,
    /// Print a result document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Runs to simulate in parallel [default: one per processor]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// Arguments of `report`.
#[derive(Args, Debug)]
pub struct Report {
    /// The result document
    pub result: PathBuf,
    /// The page to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub html: PathBuf,
}

/// Arguments of `bench`.
#[derive(Args, Debug)]
#[command(after_help = crate::bench::list())]
pub struct Bench {
    /// Only benches whose name contains this
    pub filter: Option<String>,
    /// Check that the cost of a request is constant: runs of N, 10 N and 100 N requests, on 64 GiB and on 1 TiB
    #[arg(long)]
    pub flat: bool,
    /// Requests of each bench [default: 4000000; with --flat 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=1_000_000_000_000))]
    pub ios: Option<u64>,
    /// Repetitions; the fastest counts [default: 5; with --flat 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,
    /// Print a result document
    #[arg(long)]
    pub json: bool,
}
