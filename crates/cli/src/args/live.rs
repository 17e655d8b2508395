// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options and a command for those who look into runs in progress.

use clap::Args;
use std::path::PathBuf;

/// How others may look into the runs of a command while they go on.
#[derive(Args, Debug, Default)]
pub struct LiveOptions {
    /// Let 'readpath stats' see the counters while the runs go on, through SOCKET [default: a socket of this run's own that
    /// 'readpath stats' finds]
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, require_equals = true)]
    pub stats: Option<Option<PathBuf>>,
    /// Show counters and parameters of HPB at DIR as Linux does below /sys, while the runs go on (FUSE); parameters can be
    /// written there
    #[arg(long, value_name = "DIR")]
    pub sysfs: Option<PathBuf>,
    /// When the runs are over, keep what --stats and --sysfs show until Ctrl-C
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
    /// Socket of the run [default: that of the only run with --stats]
    pub socket: Option<PathBuf>,
    /// Show every file, not only those of HPB
    #[arg(long)]
    pub all: bool,
    /// Print JSON, in one line
    #[arg(long)]
    pub json: bool,
    /// Print again every so many seconds until the run is over
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub watch: Option<u32>,
}
