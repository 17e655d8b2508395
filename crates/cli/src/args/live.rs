// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments that concern running simulations.

use clap::Args;
use std::path::PathBuf;

/// How other programs see a run in progress.
#[derive(Args, Debug, Default)]
pub struct LiveOptions {
    /// Offer live counters to 'readpath stats' through SOCKET [default: a socket that 'readpath stats' finds]
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true)]
    pub stats: Option<Option<PathBuf>>,
    /// Mount live HPB counters and parameters at DIR, as Linux shows them below /sys (FUSE); parameters are writable
    #[arg(long, value_name = "DIR")]
    pub sysfs: Option<PathBuf>,
    /// Keep --stats and --sysfs alive after the runs, until Ctrl-C
    #[arg(long)]
    pub hold: bool,
}

impl LiveOptions {
    /// An option that was given, if any was.
    pub fn given(&self) -> Option<&'static str> {
        let options = [(self.stats.is_some(), "--stats"), (self.sysfs.is_some(), "--sysfs"), (self.hold, "--hold")];
        options.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}

/// Arguments of `stats`.
#[derive(Args, Debug)]
pub struct Stats {
    /// Socket of the run [default: the only run with --stats]
    pub socket: Option<PathBuf>,
    /// Show every attribute, not only those of HPB
    #[arg(long)]
    pub all: bool,
    /// Print JSON on one line
    #[arg(long)]
    pub json: bool,
    /// Print again every SECONDS until the run ends
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub watch: Option<u32>,
}
