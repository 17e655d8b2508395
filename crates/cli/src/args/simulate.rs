// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that ask a question: its options, and how the answer is shown.

use super::common::{Basics, Common};
use clap::{Args, ValueEnum};
use readpath_session::args;
use std::path::PathBuf;

/// Arguments of `reproduce`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct Reproduce {
    #[command(flatten)]
    pub of: args::Reproduce,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `iozone`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct Iozone {
    #[command(flatten)]
    pub of: args::Iozone,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub common: Common,
}

/// How `fio` prints.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum FioFormat {
    /// Tables
    Normal,
    /// fio's own JSON, for its plotting tools; needs one --hpb mode (such as off or dcm) or one policy
    Json,
    /// json with latency bins
    #[value(name = "json+")]
    JsonPlus,
}

/// Arguments of `fio`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct Fio {
    #[command(flatten)]
    pub of: args::Fio,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "normal")]
    pub output_format: FioFormat,
    /// Print to FILE instead of the terminal
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `replay`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct Replay {
    #[command(flatten)]
    pub of: args::Replay,
    /// Replay what `readpath serve --record` wrote on the image that it began with: same requests, same moments, same
    /// device and host. The image stays as it is
    #[arg(long, value_name = "START.img", conflicts_with_all = NOT_WITH_IMAGE)]
    pub image: Option<PathBuf>,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `power`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct Power {
    #[command(flatten)]
    pub of: args::Power,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `hmb`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct Hmb {
    #[command(flatten)]
    pub of: args::Hmb,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub basics: Basics,
}

/// Arguments of `compare`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct Compare {
    #[command(flatten)]
    pub of: args::Compare,
    /// Say which runs there would be and how many requests they have, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub basics: Basics,
}

/// Arguments of `break-even`.
#[derive(Args, Debug)]
// The options within have this name already.
#[group(skip)]
pub struct BreakEven {
    #[command(flatten)]
    pub of: args::BreakEven,
    #[command(flatten)]
    pub basics: Basics,
}

/// A recording has its own device, host and times, and its report one form.
const NOT_WITH_IMAGE: [&str; 35] = [
    "units",
    "precondition",
    "format",
    "columns",
    "object_bytes",
    "ufs_block_bytes",
    "lenient",
    "trace_device",
    "merge_devices",
    "iodepth",
    "speed",
    "max_idle",
    "fold",
    "spread_ties",
    "shift_sectors",
    "device",
    "hpb",
    "policy",
    "host_memory",
    "vary",
    "pressure",
    "events",
    "fill",
    "seed",
    "json",
    "out",
    "set",
    "threads",
    "trace_io",
    "wire",
    "case",
    "variant",
    "stats",
    "sysfs",
    "hold",
];
