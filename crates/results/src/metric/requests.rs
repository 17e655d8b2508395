// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics of requests: a figure for a kind of requests.

use super::{Better, Definition, Metric};

/// Requests that are measured together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Requests {
    /// Reads of a test at random places.
    RandomRead,
    /// Writes of a test at random places.
    RandomWrite,
    /// Reads of any other workload.
    Read,
    /// Writes of any other workload.
    Write,
    /// Trims.
    Trim,
    /// Flushes.
    Flush,
}

impl Requests {
    /// All kinds of requests.
    pub const ALL: [Self; 6] = [Self::RandomRead, Self::RandomWrite, Self::Read, Self::Write, Self::Trim, Self::Flush];

    /// Prefix of the names of their metrics.
    pub const fn name(self) -> &'static str {
        named!(self, "")
    }
}

/// Name of the requests, followed by a literal.
macro_rules! named {
    ($requests:expr, $end:literal) => {
        match $requests {
            Requests::RandomRead => concat!("random_read", $end),
            Requests::RandomWrite => concat!("random_write", $end),
            Requests::Read => concat!("read", $end),
            Requests::Write => concat!("write", $end),
            Requests::Trim => concat!("trim", $end),
            Requests::Flush => concat!("flush", $end),
        }
    };
}
use named;

macro_rules! figures {
    ($($id:ident $end:literal $unit:literal $heading:literal $better:ident $what:literal;)*) => {
        /// A figure of requests.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Figure {
            $(#[doc = concat!("`{requests}", $end, "`: ", $what, ".")] $id,)*
        }

        impl Requests {
            /// This figure of these requests.
            pub const fn of(self, figure: Figure) -> Metric {
                match figure {
                    $(Figure::$id => Metric::known(named!(self, $end), $unit),)*
                }
            }
        }

        pub(super) const DEFINITIONS: &[Definition] = &[$(Definition {
            name: concat!("{requests}", $end),
            unit: $unit,
            heading: $heading,
            better: Better::$better,
            what: $what,
        }),*];
    };
}

figures! {
    Throughput "_throughput" "MiB/s" "{requests}" More "bytes over time: of jobs, the sum of each one's own rate, its \
        ramp left out; of a trace, over `virtual_duration`";
    Iops "_iops" "1/s" "{requests} IOPS" More "requests over the time from the first one's start to the last one's end";
    Count "_requests" "" "" Neither "requests that ended; for a recorded trace, those in it";
    LatencyMean "_latency_mean" "us" "{requests} mean" Less "mean latency, from submission (of a timed trace: from \
        when the request was due) to completion at the host";
    LatencyP50 "_latency_p50" "us" "{requests} p50" Less "latency that half of the requests do not exceed";
    LatencyP99 "_latency_p99" "us" "{requests} p99" Less "latency that 99 % of the requests do not exceed";
    LatencyP99_9 "_latency_p99_9" "us" "{requests} p99.9" Less "latency that 99.9 % of the requests do not exceed";
    LatencyPercentile "_latency_p{percentile}" "us" "{requests} p{percentile}" Less "latency that this share of the \
        requests, in percent, does not exceed; of a job with `percentile_list`";
    LatencyMax "_latency_max" "us" "" Less "longest latency; shows whether a request waited for an event";
    Bytes "_bytes" "bytes" "" Neither "bytes in a recorded trace";
    MeanSize "_mean_size" "bytes" "" Neither "mean size in a recorded trace";
    Smallest "_smallest" "bytes" "" Neither "smallest size in a recorded trace";
    Largest "_largest" "bytes" "" Neither "largest size in a recorded trace";
    Sequential "_sequential" "%" "" Neither "share that begins where the request before it ended";
    InStreams "_in_streams" "%" "" Neither "share that continues one of the streams of a recorded trace";
    Unaligned "_unaligned" "%" "" Neither "share that covers a block of 4 KiB in part";
    Fua "_fua" "" "" Neither "requests with force unit access";
}
