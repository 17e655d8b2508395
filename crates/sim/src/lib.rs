// SPDX-License-Identifier: MIT OR Apache-2.0
//! Virtual time: runs a workload on a stack as fast as the processor allows, and measures what a user of the modelled
//! system would have seen. The same inputs and seed give the same bits.

pub mod attack;
pub mod beforehand;
pub mod bench;
mod claims;
pub mod compare;
pub mod document;
mod events;
mod execute;
pub mod experiment;
mod fio_json;
pub mod fit;
mod launches;
pub mod live;
mod map_rows;
mod measure;
pub mod policies;
pub mod power_cuts;
mod rate;
pub mod replay;
mod request;
mod run;
mod tap;
pub mod trace_info;
pub mod ubi;
mod unused_hpb;

pub use events::{Counts, EventError, Span};
pub use execute::{CutShort, ExecuteError, LUN, PhaseOutput, RunOutput, Setup, UnitOutput, execute, sram};
pub use fio_json::fio_json;
pub use measure::{GroupStats, JobStats, KindStats, PhaseStats};
pub use run::{Observer, RunError, Runner};
pub use tap::{TRACE_IO_LIMIT, Tap};
