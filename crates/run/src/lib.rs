// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run: a workload on a stack, and what a user of the modelled system would have seen. The same inputs and seed
//! give the same bits. This crate knows stacks and workloads; it knows no files, cases, variants or tables.
//!
//! One loop drives everything ([`drive()`]): a source submits ([`Jobs`], [`Cycle`], [`Trace`], [`ReadBack`]), hooks act
//! in between ([`Schedule`], [`Watched`]), and a clock advances time ([`Virtual`]). The loop is generic; runs of
//! workloads, of traces, with power cuts and with a dishonest host are not, so that they are compiled once, here.

#![warn(unreachable_pub)]

mod age;
mod cores;
mod drive;
mod error;
mod events;
mod execute;
mod flow;
mod jobs;
mod launches;
mod live;
mod measure;
mod parts;
pub mod power_cuts;
mod rate;
mod read_back;
mod replay;
mod request;
pub mod rogue;
pub mod rules;
mod runner;
mod series;
mod stacks;
mod tap;
mod through;
mod trace;
mod watch;
mod zoned;

pub use age::{Past, age};
pub use drive::{Clock, Driven, Hooks, Pace, Port, Rest, Source, Virtual, drive};
pub use error::{LATEST, RunError};
pub use events::{Counts, EventError, LimitError, Schedule, Span, limit};
pub use execute::{
    Before, CutShort, ExecuteError, PhaseOutput, RunOutput, Setup, UnitOutput, execute, fits, precondition, ranges,
    sram,
};
pub use jobs::Jobs;
pub use launches::Cycle;
pub use live::{Board, Change, HpbView, Post, Publisher, RunState, StoreError, UnitView, View};
pub use measure::{GroupStats, JobStats, KindStats, PhaseStats};
pub use parts::{Measurement, Part, measure_parts};
pub use read_back::ReadBack;
pub use replay::{ReplayPhase, ReplayRun, Replayed, Traces, replay};
pub use request::LUN;
pub use runner::Runner;
pub use series::{Bin, Latency, Recorder, Regions, Series};
pub use stacks::{Parts, Work};
pub use tap::{TRACE_IO_LIMIT, Tap, TapFrom, TapTo, UpiuText};
pub use trace::{Mode, Trace, Units};
pub use watch::{Observer, Watched};
pub use zoned::{ZoneCounts, ZonesError, zoned_units};
