// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block workloads: fio job files, iozone command lines and the generators behind them.
//!
//! A [`Workload`] is phases that run one after another; a phase is jobs that run at the same time; a job is a stream of
//! block requests with limits and pacing. This room knows nothing of devices, HPB or the clock: it says what is asked
//! for next, never when it is done.

mod dist;
pub mod fio;
pub mod iozone;
mod stream;

use std::sync::Arc;

use readpath_kit::Ns;

pub use dist::Zone;
pub use stream::{Kinds, Offsets, Sizes, Stream, StreamError, StreamSpec};

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

/// A file of the workload: its place on the logical unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileExtent {
    /// Name as the workload gives it.
    pub name: String,
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
    /// Requests to complete.
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

/// A stream of requests with limits and pacing, served by one submitting thread.
#[derive(Clone, Debug)]
pub struct Job {
    /// Name, unique within the phase.
    pub name: String,
    /// Index into [`Workload::groups`]: jobs of one group are reported together.
    pub group: usize,
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
    /// Upper bound on requests per second, per kind (read, write, trim); `None` = unbounded.
    pub rate_iops: [Option<u64>; 3],
    /// The options that made this job, as typed, for reports that echo them; empty when there were none. Clones share.
    pub options: Arc<[(String, String)]>,
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

/// Everything that is to be run on one logical unit.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Name for reports.
    pub name: String,
    /// Phases in order.
    pub phases: Vec<Phase>,
    /// Names of the reporting groups.
    pub groups: Vec<String>,
    /// Files and where they lie; what they cover is what has to be written before the first phase.
    pub files: Vec<FileExtent>,
    /// Things the reader of the result has to know, such as options that have no meaning here.
    pub notes: Vec<String>,
}
