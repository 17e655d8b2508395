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

/// UFS Host Performance Booster in virtual time: device, host driver and experiments.
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
    /// Reproduce a published experiment and show it beside its published values
    Reproduce(Reproduce),
    /// Run an experiment file: device x host x workload x variants
    Run(RunFile),
    /// Run an iozone command line, typed as it is, on a modelled device
    Iozone(Iozone),
    /// Run a fio job file on a modelled device
    Fio(Fio),
    /// Replay recorded block traces on a modelled device
    Replay(Replay),
    /// Compare variants under one workload and several seeds: differences, and how sure they are
    Compare(Compare),
    /// Cut the power in the middle of a fio job, again and again, and check that nothing is lost that must not be
    Power(Power),
    /// Describe block traces and convert them
    #[command(subcommand)]
    Trace(TraceCommand),
    /// List, show, check and fit device presets
    #[command(subcommand)]
    Device(DeviceCommand),
    /// Raw NAND and UBI: look into images, make and replay streams of reads
    #[command(subcommand)]
    Ubi(UbiCommand),
    /// Show the counters of a run in progress that was started with --stats
    Stats(Stats),
    /// Make an HTML report from a result document
    Report(Report),
    /// Measure how fast the simulator itself is
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
    /// Change a key of the device, as if it stood in its file; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads for runs side by side [default: one per processor]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: Option<u32>,
}

/// The same, and those of commands whose runs are looked at one by one.
#[derive(Args, Debug)]
pub struct Common {
    #[command(flatten)]
    pub basics: Basics,
    /// Record stages and UPIUs of every request of one run (choose it with --case and --variant) to FILE, in the trace
    /// event format that Perfetto opens
    #[arg(long, value_name = "FILE")]
    pub trace_io: Option<PathBuf>,
    /// Requests to record at most
    #[arg(long, value_name = "N", default_value_t = readpath_run::TRACE_IO_LIMIT)]
    pub trace_io_limit: u64,
    /// Encode every request and reply to a UPIU and parse it again; slower, and the results are the same
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
    /// Name of the experiment: iozone, tiobench, appstart, mixed, chunk, memory, verification, rivals, rivals_apps, policies,
    /// ubi, or all
    pub name: String,
    /// Folder of recorded traces. For policies: mobile/X_exec.csv.gz, each behind its X_precond.csv.gz, and block/*; for
    /// ubi: recorded read streams. For all: a folder with mobile, block and ubi, or some of them
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
    /// In device control mode: the device says what to load
    Dcm,
    /// In host control mode: the host counts reads and decides itself
    Hcm,
    /// Never, and in device control mode, side by side
    Both,
    /// Never, and in each mode of the standard, side by side
    All,
    /// As the prototype of 2017 did: the host loads what responses name as changed
    PrototypeHost,
    /// The same, and responses bring changed entries
    PrototypeDevice,
    /// The prototype in both ways, side by side
    Prototype,
}

/// State of the device before the first request.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fill {
    /// The files of the workload, written in ascending order
    Sequential,
    /// The files of the workload, written in random order
    Random,
    /// Nothing was ever written
    None,
}

/// Hosts with HPB, and without.
#[derive(Args, Debug)]
pub struct HpbHost {
    /// Whether the host uses HPB [default: both; what --policy says]
    #[arg(long, value_enum)]
    pub hpb: Option<Hpb>,
    /// Policies of host memory for HPB, with commas between them: linux-dcm, linux-hcm, lru, lfu, cost-aware, preload,
    /// sram-aware, dirty-refresh
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub policy: Vec<String>,
    /// Host memory for all of HPB at most, maps, dirty bitmaps and tables: bytes, or with K, M or G
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
    /// What is on the device before the run
    #[arg(long, value_enum, default_value = "sequential")]
    pub precondition: Fill,
    /// Seed of everything random
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
    /// fio's own JSON, for its plotting tools; needs --hpb with one variant (off, dcm, hcm, prototype-host, ...), or one policy
    Json,
    /// The same with latency bins
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
    /// What happens in the middle of the run: a file with a time in ms, a comma and suspend, resume, hardware-reset,
    /// power-cycle (,TIME without power) or pressure,BYTES in each line
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "normal")]
    pub output_format: FioFormat,
    /// Print to FILE instead of the terminal, in any format
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Who loses its power.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loses {
    /// Host and device: the host finds the device anew
    Everything,
    /// The device beneath a living host, which keeps its HPB entries until it is told
    Device,
}

/// Arguments of `power`.
#[derive(Args, Debug)]
pub struct Power {
    /// The job file; its length has to be known, so no runtime, rates or pauses
    pub job: PathBuf,
    /// How often the power is cut, at random moments
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub cuts: u32,
    /// Who loses its power
    #[arg(long, value_enum, default_value = "everything")]
    pub loses: Loses,
    /// For how long the power is away
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
    /// Format, where it is not recognised: msr, systor17, cloudphysics, mobile, blkparse, blktrace, fio2, fio3, ftrace-ufs,
    /// ftrace-block, csv
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,
    /// Columns of a table, for example time=0:us,op=1,offset=2:bytes,size=3:sectors
    #[arg(long, value_name = "DESCRIPTION")]
    pub columns: Option<String>,
    /// Leave out rows that cannot be read, or that do not lie on the device of a replay, and count them, instead of refusing
    /// the trace
    #[arg(long)]
    pub lenient: bool,
    /// Take only requests to this device, named as in the trace
    #[arg(long, value_name = "NAME", conflicts_with = "merge_devices")]
    pub trace_device: Option<String>,
    /// Take requests to all devices as if they were one
    #[arg(long)]
    pub merge_devices: bool,
}

/// When a replay submits requests.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayMode {
    /// At their times, however many are outstanding
    Timed,
    /// In order, keeping a number of requests outstanding
    Closed,
}

/// In which order blocks that were read but never written lie in flash.
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
    /// A trace to replay first (- for standard input), measured apart; may be repeated, and goes before each trace
    #[arg(long, value_name = "FILE")]
    pub precondition: Vec<PathBuf>,
    #[command(flatten)]
    pub input: TraceInput,
    /// When the requests of a trace are submitted [default: timed]
    #[arg(long, value_enum)]
    pub mode: Option<ReplayMode>,
    /// Requests of a trace kept outstanding with --mode closed [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub iodepth: Option<u32>,
    /// Times as fast as recorded, such as 2 or 0.5
    #[arg(long, value_name = "X")]
    pub speed: Option<String>,
    /// Cut longer pauses between requests to this, such as 10ms, before --speed applies
    #[arg(long, value_name = "TIME")]
    pub max_idle: Option<String>,
    /// Fold addresses beyond the device onto it: it is no longer that trace, and the results say so
    #[arg(long)]
    pub fold: bool,
    /// Sectors of 512 bytes added to every address, for traces recorded behind a partition that is not aligned
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
    /// The traces; each is a case of its own, on a device of its own. One may be - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub how: TraceHow,
    /// Device preset, or a device file
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    #[command(flatten)]
    pub host: HpbHost,
    /// Sizes of the map cache to compare, with commas between them: bytes, or with K, M or G [default: the device's]
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    pub map_cache: Vec<String>,
    /// Host memory for HPB maps at most: bytes, or with K, M or G [default: what the device allows]
    #[arg(long, value_name = "BYTES", conflicts_with = "host_memory")]
    pub host_map: Option<String>,
    /// Change --host-memory during the trace: a file with a time in ms, a comma and a size in each line, for policies of
    /// this host's own
    #[arg(long, value_name = "FILE", requires = "host_memory")]
    pub pressure: Option<PathBuf>,
    /// What happens in the middle of the trace: a file with a time in ms, a comma and suspend, resume, hardware-reset,
    /// power-cycle (,TIME without power) or pressure,BYTES in each line
    #[arg(long, value_name = "FILE", conflicts_with = "pressure")]
    pub events: Option<PathBuf>,
    /// How blocks that are read before they are written lie in flash at the start
    #[arg(long, value_enum, default_value = "sequential")]
    pub preload: Preload,
    /// Seed of everything random
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
    /// Say what a trace is like: sizes, footprint, order, reuse, load over time
    Info {
        /// The trace; - for standard input
        file: PathBuf,
        #[command(flatten)]
        input: TraceInput,
        /// Print a result document instead of tables
        #[arg(long)]
        json: bool,
        /// Folder for result.json and report.html, which has the figures
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
        /// File or device that the fio log names
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
    /// Print a preset or device file, its sources and what follows from it
    Show {
        /// Preset or file
        name: String,
        /// Change a key first
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Check device files
    Check {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Fit a device to measurements of throughput or latency, and say which of its parameters they identify
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
    /// Keys of the parameters to fit, with commas between them
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
    /// Threads for runs side by side [default: one per processor]; results do not depend on it
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
    /// Show whether the cost of a request depends on the length of the run or the size of the device: runs of N, 10 N and
    /// 100 N requests, on 64 GiB and on 1 TiB
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
