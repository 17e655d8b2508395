// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block workloads: fio job files, iozone command lines and the generators behind them; recorded block traces.
//!
//! A [`Workload`] is phases that run one after another; a phase is jobs that run at the same time; a job is a stream of
//! block requests with limits and pacing. This crate knows nothing of devices, HPB or the clock: it says what is asked
//! for next, never when it is done.

#![warn(unreachable_pub)]

mod dist;
pub mod experts;
pub mod fio;
pub mod iozone;
pub mod launch;
mod spec;
mod stream;
pub mod trace;
mod zbd;

use std::sync::Arc;

use readpath_kit::Ns;

pub use dist::{Gaps, Zone};
pub use spec::{Kinds, Offsets, ReadBack, Sizes, StreamError, StreamSpec, Stride};
pub use stream::{Stream, Turn};
pub use zbd::{Zbd, ZonedUnit};

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum IoKind {
    /// Read blocks.
    Read,
    /// Write blocks.
    Write,
    /// Discard blocks (TRIM, UNMAP).
    Trim,
    /// Make everything acknowledged durable; `block` and `blocks` are zero.
    Flush,
}

/// One block request, in logical blocks of 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Io {
    /// First logical block.
    pub block: u32,
    /// Blocks, at least 1 unless it is a flush.
    pub blocks: u16,
    /// What to do.
    pub kind: IoKind,
    /// Force unit access: a write is acknowledged only when it is in flash.
    pub fua: bool,
}

/// A file of the workload: its place on a logical unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileExtent {
    /// Name as the workload gives it.
    pub name: String,
    /// The logical unit that it lies on.
    pub lun: u8,
    /// First logical block.
    pub block: u32,
    /// Length in blocks.
    pub blocks: u32,
}

/// When a job ends: at whichever limit comes first; a stream that ends by itself ends the job too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Total bytes to move.
    pub bytes: Option<u64>,
    /// Requests to make after the ramp.
    pub ios: Option<u64>,
    /// Virtual time to run, counted from the job's start, ramp included.
    pub runtime: Option<Ns>,
}

/// A pause of the submitting thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Think {
    /// Length of the pause; zero for none.
    pub time: Ns,
    /// Requests between two pauses (fio `thinktime_blocks`), at least 1.
    pub every: u32,
}

/// A job's share of the requests of all jobs with the same `id` (fio `flow`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// fio `flow_id`.
    pub id: u32,
    /// At least 1.
    pub weight: u32,
    /// How long a job that is ahead of its share sleeps before it looks again, with nothing in flight; zero if it goes
    /// on as soon as it may.
    pub sleep: Ns,
}

/// Which latencies fio's reports show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latencies {
    /// From submission to the device on, of reads, writes and trims, and those of flushes.
    pub clat: bool,
    /// From the request's start on.
    pub lat: bool,
    /// Percentiles of the former.
    pub clat_percentiles: bool,
    /// Percentiles of the latter.
    pub lat_percentiles: bool,
}

impl Default for Latencies {
    /// fio's defaults.
    fn default() -> Self {
        Latencies { clat: true, lat: true, clat_percentiles: true, lat_percentiles: false }
    }
}

/// Which jobs end with a job (fio `exitall`, `exit_what`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ends {
    /// None but itself.
    #[default]
    Itself,
    /// Those with its [`FioReport::groupid`].
    Group,
    /// All that run.
    Phase,
    /// All that run, and all phases that were to follow.
    Everything,
}

/// What fio's reports say of a job before any request is made.
#[derive(Clone, Debug, Default)]
pub struct FioReport {
    /// Its name; clones have their section's.
    pub jobname: Arc<str>,
    /// Number of the group that a barrier or `new_group` began, from 0.
    pub groupid: u32,
    /// `iodepth` as typed; the engine may have capped it.
    pub iodepth: u32,
    /// `description`, if given.
    pub description: Option<Arc<str>>,
    /// Percentiles of latency to report, ascending, each above 0 and at most 100; empty for those that reports have
    /// anyway.
    pub percentiles: Arc<[f64]>,
    /// The latencies to report.
    pub latencies: Latencies,
    /// The options of its own section as typed, in order, under fio's first name for each; `None` when it has none.
    pub options: Option<Arc<[(String, String)]>>,
}

/// A stream of requests with limits and pacing, served by one submitting thread.
#[derive(Clone, Debug)]
pub struct Job {
    /// Name, unique within the phase.
    pub name: String,
    /// Index into [`Workload::groups`]: jobs of one group are reported together.
    pub group: usize,
    /// The logical unit that it works on.
    pub lun: u8,
    /// Requests kept outstanding, at least 1.
    pub iodepth: u32,
    /// When it ends.
    pub limits: Limits,
    /// Virtual time at the start whose requests are simulated but not measured.
    pub ramp: Ns,
    /// Delay between the phase's start and the job's.
    pub start_delay: Ns,
    /// Pauses.
    pub think: Think,
    /// Upper bound on bytes per second, per kind (read, write, trim), at least 1; `None` = unbounded.
    pub rate_bytes: [Option<u64>; 3],
    /// With a seed, requests come at random times at these rates, as in a Poisson process.
    pub poisson: Option<u64>,
    /// Its share of the requests of several jobs of its phase.
    pub flow: Option<Flow>,
    /// Jobs of its phase that make no more requests once it makes none.
    pub ends: Ends,
    /// How it works on the zones of its unit; `None` if it does not know of any.
    pub zbd: Option<Zbd>,
    /// How fio's own reports speak of the job; the default for other workloads.
    pub fio: FioReport,
    /// The requests.
    pub stream: Stream,
}

/// Jobs that run at the same time. The next phase begins when all of them have ended.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Name for reports ("random read").
    pub name: String,
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// Everything that is to be run on a device.
#[derive(Clone, Debug, Default)]
pub struct Workload {
    /// Name for reports.
    pub name: String,
    /// Phases in order.
    pub phases: Vec<Phase>,
    /// Names of the reporting groups, in the order in which fio reports them.
    pub groups: Vec<String>,
    /// What iozone tests in each phase; empty for other workloads.
    pub tests: Vec<iozone::Test>,
    /// Options of fio's global sections as typed, in order; empty for other workloads.
    pub global_options: Vec<(String, String)>,
    /// Files and their places; their blocks have to be written before the first phase.
    pub files: Vec<FileExtent>,
    /// Apps that are launched, instead of phases.
    pub launches: Option<launch::Launches>,
    /// Notes for the reader of the result, such as on options that have no meaning here.
    pub notes: Vec<String>,
}
