// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run: a workload on a stack in virtual time, and what a user of the modelled system would have seen. The same inputs
//! and seed give the same bits. This room knows stacks and workloads; it knows no files, cases, variants or tables.

pub mod events;
pub mod execute;
mod launches;
pub mod live;
pub mod measure;
mod rate;
pub mod request;
pub mod run;
mod tap;

pub use events::{Counts, EventError, Span};
pub use execute::{CutShort, ExecuteError, LUN, PhaseOutput, RunOutput, Setup, UnitOutput, execute, sram};
pub use measure::{GroupStats, JobStats, KindStats, PhaseStats};
pub use run::{Observer, RunError, Runner};
pub use tap::{TRACE_IO_LIMIT, Tap};
