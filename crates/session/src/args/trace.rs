// SPDX-License-Identifier: MIT OR Apache-2.0
//! How block traces are read and replayed.

use clap::Args;
use readpath_workload::trace::Format;

/// How block traces are read.
#[derive(Args, Clone, Debug, Default)]
pub struct TraceInput {
    /// Format, if it is not recognised
    #[arg(long, value_name = "NAME", help = format!(
        "Format, if it is not recognised: {}. Needed for oracle-general, and for alibaba and tencent without a header",
        Format::ALL.map(Format::name).join(", ")
    ))]
    pub format: Option<String>,
    /// Columns of a CSV table, for example time=0:us,op=1,offset=2:bytes,size=3:sectors
    #[arg(long, value_name = "DESCRIPTION")]
    pub columns: Option<String>,
    /// Bytes by which the numbers of objects in oracle-general and lcs count: 512 if they are sectors, 1 if bytes, 4096
    /// if blocks
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub object_bytes: Option<u32>,
    /// Bytes in which a trace of the UFS driver counts addresses: 4096, or 512 before Linux 5.14 [default: as its
    /// sequential requests show]
    #[arg(long, value_name = "BYTES")]
    pub ufs_block_bytes: Option<u32>,
    /// Skip and count rows that cannot be read or lie beyond the device, instead of refusing the trace
    #[arg(long)]
    pub lenient: bool,
    /// Take only requests to this device of the trace; in what --trace-io writes, this logical unit instead of 0
    #[arg(long, value_name = "NAME", conflicts_with = "merge_devices")]
    pub trace_device: Option<String>,
    /// Take requests to all devices as requests to one
    #[arg(long)]
    pub merge_devices: bool,
}

/// The options of traces that a command has, so that its errors advise no others. All commands have `--fold`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offers {
    /// The option that chooses the device, if there is one.
    pub device: Option<&'static str>,
    /// Those of [`TraceInput`].
    pub reading: bool,
    /// Those that change times.
    pub times: bool,
}

impl Default for Offers {
    fn default() -> Self {
        Offers { device: Some("--device"), reading: true, times: true }
    }
}

/// How block traces are read and replayed.
#[derive(Args, Clone, Debug, Default)]
pub struct TraceHow {
    /// Options that errors may advise.
    #[arg(skip)]
    pub offers: Offers,
    /// How they are read.
    #[command(flatten)]
    pub input: TraceInput,
    /// Submit requests in order, N outstanding, instead of at their times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub iodepth: Option<u32>,
    /// Put devices of the trace on logical units of their own: sda=0,sdb=1. Requests to others are left out
    #[arg(
        long,
        value_name = "DEVICE=LUN",
        value_delimiter = ',',
        conflicts_with_all = ["trace_device", "merge_devices", "fold"]
    )]
    pub units: Vec<String>,
    /// Replay at X times the recorded speed, such as 2 or 0.5
    #[arg(long, value_name = "X")]
    pub speed: Option<String>,
    /// Shorten longer pauses between requests to TIME, such as 10ms, before --speed applies
    #[arg(long, value_name = "TIME")]
    pub max_idle: Option<String>,
    /// Fold addresses beyond the device onto it
    ///
    /// The results then say that the trace was changed.
    #[arg(long)]
    pub fold: bool,
    /// Spread requests with equal times evenly up to the next time
    ///
    /// This assumes that they came at even distances.
    #[arg(long, conflicts_with = "max_idle")]
    pub spread_ties: bool,
    /// Add N sectors of 512 bytes to every address, for traces of a partition that is not aligned
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=7))]
    pub shift_sectors: u8,
}

impl TraceHow {
    /// The first option that was given, if any was.
    pub fn given(&self) -> Option<&'static str> {
        let input = &self.input;
        let options = [
            (input.format.is_some(), "--format"),
            (input.columns.is_some(), "--columns"),
            (input.object_bytes.is_some(), "--object-bytes"),
            (input.ufs_block_bytes.is_some(), "--ufs-block-bytes"),
            (input.lenient, "--lenient"),
            (input.trace_device.is_some(), "--trace-device"),
            (input.merge_devices, "--merge-devices"),
            (!self.units.is_empty(), "--units"),
            (self.iodepth.is_some(), "--iodepth"),
            (self.speed.is_some(), "--speed"),
            (self.max_idle.is_some(), "--max-idle"),
            (self.fold, "--fold"),
            (self.spread_ties, "--spread-ties"),
            (self.shift_sectors > 0, "--shift-sectors"),
        ];
        options.into_iter().find(|(given, _)| *given).map(|(_, name)| name)
    }
}
