// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device presets: shown, checked and fitted.

use clap::{Args, Subcommand};
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
    #[arg(long, value_name = "N", default_value_t = 20_000,
        value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    pub ios: u32,
    /// Print a result document instead of tables
    #[arg(long)]
    pub json: bool,
    /// Runs to simulate in parallel [default: one per processor]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}
