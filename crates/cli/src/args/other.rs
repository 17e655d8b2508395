// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that simulate nothing of the user's: pages of results, and support for shells.

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
    pub output: PathBuf,
}

/// Arguments of `examples`.
#[derive(Args, Debug)]
pub struct Examples {
    /// Folder to write them into; made if need be. Without it they are listed
    pub dir: Option<PathBuf>,
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
