// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tools for work on Readpath itself.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What `dev` does.
#[derive(Subcommand, Debug)]
pub enum DevCommand {
    /// Measure the speed of the simulator itself
    Bench(Bench),
    /// List the UPIUs in what --trace-io or `attach --trace-io` wrote, one a line
    Upius {
        /// The trace; - for standard input
        #[arg(value_name = "TRACE")]
        file: PathBuf,
    },
    /// Whether the host of this program, with Linux's decisions, decides as the one in a trace of `attach --trace-io`
    ///
    /// It is given the same block requests and replies. The trace begins with a device that has just been switched on.
    Parity {
        /// The trace; - for standard input
        #[arg(value_name = "TRACE")]
        file: PathBuf,
        /// Device preset, or a device file: that of the image
        #[arg(long, value_name = "NAME|FILE", default_value = "ufs21-64g")]
        device: String,
        /// Change a key of the device file; repeatable
        #[arg(long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
        /// Control mode of HPB for which the device is configured
        #[arg(long, value_name = "MODE", default_value = "dcm", value_parser = ["dcm", "hcm"])]
        hpb: String,
    },
}

/// Arguments of `dev bench`.
#[derive(Args, Debug)]
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
