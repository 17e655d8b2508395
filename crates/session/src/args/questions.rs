// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the questions: what is asked, without how the answer is shown.

use super::{Chosen, Fill, Hosts, Making, OwnImages, TraceHow};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `--with` and `--against` of a host without HPB.
pub const HPB_OFF: &str = "hpb=off";

/// Device and host of a workload.
#[derive(Args, Debug)]
pub struct Target {
    /// Device preset, or a device file
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    /// The host.
    #[command(flatten)]
    pub host: Hosts,
    /// Order in which files of a job, or what a trace reads first, were written before
    #[arg(long, value_enum, value_name = "ORDER", default_value = "sequential")]
    pub fill: Fill,
    /// Seed of the random numbers
    #[arg(long, allow_negative_numbers = true, default_value_t = 1)]
    pub seed: u64,
}

/// An experiment.
#[derive(Args, Debug)]
pub struct Reproduce {
    /// iozone, tiobench, appstart, mixed, chunk, memory, verification, rivals, rivals_apps, zones, devices, hmb,
    /// hmb_map, raspberry_memory, policies, ubi, all, or an experiment file (*.toml)
    #[arg(value_name = "NAME|FILE")]
    pub name: String,
    /// Folder of recorded traces. policies and zones read mobile/X_exec.csv.gz (each after its X_precond.csv.gz) and
    /// block/*; ubi reads recorded read streams; all takes a folder with mobile, block and ubi, or some of them
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// Images of NAND.
    #[command(flatten)]
    pub own: OwnImages,
    /// Its device keys and threads.
    #[command(flatten)]
    pub making: Making,
    /// Which of its runs are made, and how.
    #[command(flatten)]
    pub chosen: Chosen,
}

/// An iozone command line on a device.
#[derive(Args, Debug)]
pub struct Iozone {
    /// Device and host.
    #[command(flatten)]
    pub target: Target,
    /// Its device keys and threads.
    #[command(flatten)]
    pub making: Making,
    /// Which of its runs are made, and how.
    #[command(flatten)]
    pub chosen: Chosen,
    /// The iozone command line after `--`, for example: -- -r 4k -+n -i2 -ecI -t 16 -l 16 -u 16 -s 64m
    #[arg(last = true, required = true, value_name = "IOZONE ARGUMENTS")]
    pub args: Vec<String>,
}

/// A fio job on a device.
#[derive(Args, Debug)]
pub struct Fio {
    /// The job file; - for standard input
    #[arg(required_unless_present = "options")]
    pub job: Option<PathBuf>,
    /// Device and host.
    #[command(flatten)]
    pub target: Target,
    /// Its device keys and threads.
    #[command(flatten)]
    pub making: Making,
    /// Which of its runs are made, and how.
    #[command(flatten)]
    pub chosen: Chosen,
    /// Events during the run, one a line: time in ms, a comma, then suspend, resume, hardware-reset, power-cycle[,TIME
    /// without power] or pressure,BYTES
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Options of fio after `--`: the job itself, for example -- --name=a --rw=randread --size=1g, or defaults for JOB
    #[arg(last = true, value_name = "FIO OPTIONS")]
    pub options: Vec<String>,
}

/// Block traces on a device.
#[derive(Args, Debug)]
pub struct Replay {
    /// The traces, each on a fresh device; one may be - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A trace to replay before each trace, measured apart (- for standard input); repeatable
    #[arg(long, value_name = "FILE")]
    pub precondition: Vec<PathBuf>,
    /// How traces are read and replayed.
    #[command(flatten)]
    pub how: TraceHow,
    /// Device preset, or a device file
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    /// The host.
    #[command(flatten)]
    pub host: Hosts,
    /// Change --host-memory during the trace: a file of lines TIME_MS,SIZE; not with linux-dcm and linux-hcm
    #[arg(long, value_name = "FILE", requires = "host_memory")]
    pub pressure: Option<PathBuf>,
    /// Events during the trace, one a line: time in ms, a comma, then suspend, resume, hardware-reset,
    /// power-cycle[,TIME without power] or pressure,BYTES
    #[arg(long, value_name = "FILE", conflicts_with = "pressure")]
    pub events: Option<PathBuf>,
    /// Order in which files of a job, or what a trace reads first, were written before
    #[arg(long, value_enum, value_name = "ORDER", default_value = "sequential")]
    pub fill: Fill,
    /// Seed of the random numbers
    #[arg(long, allow_negative_numbers = true, default_value_t = 1)]
    pub seed: u64,
    /// Its device keys and threads.
    #[command(flatten)]
    pub making: Making,
    /// Which of its runs are made, and how.
    #[command(flatten)]
    pub chosen: Chosen,
}

/// Sizes of host memory under traces and jobs.
#[derive(Args, Debug)]
pub struct Hmb {
    /// Block traces and fio job files (*.fio), each a case of its own, or folders of them; one may be - for standard
    /// input
    #[arg(required = true, value_name = "TRACE|JOB|DIR")]
    pub files: Vec<PathBuf>,
    /// Device preset, or a device file
    #[arg(long, value_name = "NAME|FILE", default_value = "nvme-dramless-512g")]
    pub device: String,
    /// Sizes of host memory to compare, in MiB, separated by commas
    #[arg(long, value_name = "MIB", value_delimiter = ',', default_value = "0,4,8,16,32,64,128")]
    pub sizes: Vec<u64>,
    /// How traces are read and replayed.
    #[command(flatten)]
    pub how: TraceHow,
    /// Its device keys and threads.
    #[command(flatten)]
    pub making: Making,
}

/// Variants under one workload.
#[derive(Args, Clone, Debug)]
pub struct Compare {
    /// A fio job file, an experiment (*.toml, or a built-in name), or a block trace (- for standard input)
    pub workload: PathBuf,
    /// The variants; of an experiment those of its file, if none are given.
    #[command(flatten)]
    pub host: Hosts,
    /// The baseline variant [default: the first]
    #[arg(long, value_name = "NAME")]
    pub base: Option<String>,
    /// Number of seeds [default: 5; 1 for a trace with --fill sequential, where nothing is random]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: Option<u32>,
    /// The first seed; the others follow it [default: 1, or the experiment's]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Device preset, or a device file; an experiment names its own [default: ufs21-64g]
    #[arg(long, value_name = "NAME|FILE")]
    pub device: Option<String>,
    /// Order in which files of a job, or what a trace reads first, were written before [default: sequential, or what an
    /// experiment says]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub fill: Option<Fill>,
    /// Run only this case of an experiment
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// Its device keys and threads.
    #[command(flatten)]
    pub making: Making,
    /// A trace to replay first (- for standard input), measured apart; may be repeated, and goes before each trace
    #[arg(long, value_name = "FILE")]
    pub precondition: Vec<PathBuf>,
    /// How traces are read and replayed.
    #[command(flatten)]
    pub how: TraceHow,
}

/// The least value of a key.
#[derive(Args, Debug)]
pub struct BreakEven {
    /// A fio job file, or a block trace (- for standard input)
    pub workload: PathBuf,
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
    /// The variant to match: keys of the device file or the host; HPB is off unless a key sets it
    #[arg(long, value_name = "KEY=VALUE,...", default_value = "hpb=dcm")]
    pub against: String,
    /// Keys set for every value of the key: keys of the device file or the host; HPB is off unless a
    /// key sets it
    #[arg(long, value_name = "KEY=VALUE,...", default_value = HPB_OFF)]
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
    /// Order in which files of a job, or what a trace reads first, were written before
    #[arg(long, value_enum, value_name = "ORDER", default_value = "sequential")]
    pub fill: Fill,
    /// Its device keys and threads.
    #[command(flatten)]
    pub making: Making,
    /// A trace to replay first, measured apart; may be repeated
    #[arg(long, value_name = "FILE")]
    pub precondition: Vec<PathBuf>,
    /// How traces are read and replayed.
    #[command(flatten)]
    pub how: TraceHow,
}

/// Attacks on HPB entries.
#[derive(Args, Debug)]
pub struct Attack {
    /// Device preset, or a device file, whose times a small device is attacked with
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    /// Seed of the random numbers
    #[arg(long, allow_negative_numbers = true, default_value_t = 1)]
    pub seed: u64,
    /// Its device keys and threads.
    #[command(flatten)]
    pub making: Making,
}

/// What loses power.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loses {
    /// Host and device: the host probes the device again
    Everything,
    /// The device only: the host keeps its HPB entries until the device resets them
    Device,
}

/// Power cuts under a workload.
#[derive(Args, Debug)]
pub struct Power {
    /// A fio job file, or a block trace (- for standard input)
    pub workload: PathBuf,
    /// Number of power cuts, at random moments
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub cuts: u32,
    /// What loses power
    #[arg(long, value_enum, default_value = "everything")]
    pub loses: Loses,
    /// Time without power
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub off: String,
    /// Rules for requests, each behind the virtual time when it is due: error, slow, drop, torn, misdirect, corrupt, as
    /// for a served device
    #[arg(long, value_name = "FILE")]
    pub faults: Option<PathBuf>,
    /// Device and host.
    #[command(flatten)]
    pub target: Target,
    /// How traces are read and replayed.
    #[command(flatten)]
    pub how: TraceHow,
    /// Its device keys and threads.
    #[command(flatten)]
    pub making: Making,
    /// Which of its runs are made, and how.
    #[command(flatten)]
    pub chosen: Chosen,
}

/// Measurements, and the device that is fitted to them.
#[derive(Args, Debug)]
pub struct Fit {
    /// The measurements (CSV): range, queue depth, HPB, metric and value
    #[arg(value_name = "MEASUREMENTS.csv")]
    pub measurements: PathBuf,
    /// Preset or file of the device to start from
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    /// Change a key of the device first; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Keys of the parameters to fit, separated by commas
    #[arg(long, value_name = "KEY,KEY,...", value_delimiter = ',')]
    pub params: Vec<String>,
    /// Requests to simulate for each measurement, after the warm-up
    #[arg(long, value_name = "N", default_value_t = 20_000,
        value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    pub ios: u32,
    /// Runs to simulate in parallel [default: one per processor]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}

/// Results of the jobs of a probe, and the device that is fitted to them.
#[derive(Args, Debug)]
pub struct ProbeFit {
    /// What fio wrote with --output-format=json+
    #[arg(value_name = "RESULTS.json", required = true)]
    pub results: Vec<PathBuf>,
    /// Folder of the plan
    #[arg(long, value_name = "DIR")]
    pub plan: PathBuf,
    /// Keys of the parameters to fit, separated by commas
    #[arg(long, value_name = "KEY,KEY,...", value_delimiter = ',')]
    pub params: Vec<String>,
    /// Requests to simulate for each job, after the warm-up
    #[arg(long, value_name = "N", default_value_t = 4000,
        value_parser = clap::value_parser!(u32).range(500..=10_000_000))]
    pub ios: u32,
    /// Runs to simulate in parallel [default: one per processor]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
}
