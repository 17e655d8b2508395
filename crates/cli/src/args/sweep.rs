// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of studies.

use clap::{Args, Subcommand};
use readpath_session::study::Shard;
use std::path::PathBuf;

/// What `readpath sweep` takes.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Sweep {
    /// Something else than making a study.
    #[command(subcommand)]
    pub command: Option<SweepCommand>,
    /// The study file
    #[arg(value_name = "STUDY.toml", required = true)]
    pub file: Option<PathBuf>,
    /// Folder of the results [default: out/NAME]; points that it holds are not made again
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Say how many points there are and about how long they take, and make none
    #[arg(long)]
    pub dry_run: bool,
    /// Print every point as CSV, and make none
    #[arg(long, conflicts_with = "dry_run")]
    pub list: bool,
    /// Make every Nth point only, beginning with the Ith: for a batch system, whose jobs have I from 1 to N
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Make points again that have failed
    #[arg(long)]
    pub retry_failed: bool,
    /// Set a key for all points; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Points to make in parallel [default: one per processor]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
}

/// Other things to do with studies.
#[derive(Subcommand, Debug)]
pub enum SweepCommand {
    /// Make the tables of what several folders hold of one study
    Merge(Merge),
}

/// What `readpath sweep merge` takes.
#[derive(Args, Debug)]
pub struct Merge {
    /// Folders of results, such as those of shards
    #[arg(value_name = "DIR", required = true)]
    pub folders: Vec<PathBuf>,
    /// Folder for points.csv and failed.csv
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}
