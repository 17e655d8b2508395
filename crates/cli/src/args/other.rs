// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that simulate nothing of the user's: pages of results, the speed of the simulator, and support for shells.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

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

/// Arguments of `completions`.
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Args, Debug)]
pub struct Man {
    /// Folder for the pages, one for each command; made if need be
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// Arguments of `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}
