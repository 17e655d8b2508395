// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device presets: shown, checked and fitted to measurements.

use clap::{Args, Subcommand};
use readpath_session::args;
use std::path::PathBuf;

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
    /// Print a JSON schema of device files, for editors and checkers
    Schema,
    /// Check device files
    Check {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Fit a device to measured throughput or latency, and say which parameters the measurements identify
    Fit(Fit),
    /// Identify a device: write fio jobs that measure it, and fit it to what they measured
    #[command(subcommand)]
    Probe(ProbeCommand),
}

/// Arguments of `device fit`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct Fit {
    #[command(flatten)]
    pub of: args::Fit,
    /// Write the fitted device to FILE
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print a result document instead of tables
    #[arg(long)]
    pub json: bool,
}

/// What `device probe` does.
#[derive(Subcommand, Debug)]
pub enum ProbeCommand {
    /// Write the fio jobs that measure a device, and a script that runs them; reads only, unless --destructive is given
    Plan(ProbePlan),
    /// Fit a device to the results of the jobs (json+), say how sure each parameter is and which job to run next
    Fit(ProbeFit),
}

/// Arguments of `device probe plan`.
#[derive(Args, Debug)]
pub struct ProbePlan {
    /// The file or disk that is measured
    #[arg(long, value_name = "FILE|DISK")]
    pub target: String,
    /// Folder for the jobs, the plan and the script; it must not have a plan
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Preset or file of a device that is like the one that is measured
    #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
    pub device: String,
    /// Change a key of the device first; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Size of the target, if it is on another machine: bytes, or with K, M, G or T
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Also write, and lose what the target holds; name the target again
    #[arg(long, value_name = "FILE|DISK")]
    pub destructive: Option<String>,
    /// Length of the sequential write that looks for the end of a WriteBooster buffer [default: half as much again as
    /// the device's buffer, or 4G]
    #[arg(long, value_name = "SIZE", requires = "destructive")]
    pub long_write: Option<String>,
    /// Also discard all of the target and write it from end to end: where a cache in SLC mode ends, direct writes, and
    /// where folding begins. The target must be all of the device
    #[arg(long, requires = "destructive")]
    pub fill: bool,
    /// Also measure which read size and queue depth the weights of a language model's experts need: random reads of 64
    /// KiB and more over the whole target. The fit predicts them
    #[arg(long)]
    pub experts: bool,
    /// Seconds that each job of reads is measured for
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Standard error of a measurement in percent; more where fio's samples scatter more
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub error: f64,
}

/// Arguments of `device probe fit`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct ProbeFit {
    #[command(flatten)]
    pub of: args::ProbeFit,
    /// Folder for result.json, report.html, the fitted device and the jobs to run next
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print a result document instead of tables
    #[arg(long)]
    pub json: bool,
}
