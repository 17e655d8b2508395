// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifies a device by measuring it: which fio jobs to run, what their results say, and which job to run next.
//!
//! A [`Plan`] is the jobs, made for a device that is taken to be near the one that is measured. [`read`] takes what fio
//! printed, checks that it is what was planned, and gives [`Reading`]s. [`probe`] fits the device to most of them and
//! predicts the others. This module prints nothing and opens no file; `docs/probe.md` describes it.

mod cliff;
mod jobs;
mod names;
mod plan;
mod readings;
mod report;
mod solve;
pub mod study;
#[cfg(test)]
mod tests;

pub use cliff::{Cliff, cliff};
pub use jobs::JobFile;
pub use names::PlanError;
pub use plan::{Ask, Job, Plan, SCHEMA};
pub use readings::{Reading, ReadingError, read};
pub use solve::{Compared, Probe, ProbeOptions, default_params, probe};
