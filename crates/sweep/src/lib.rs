// SPDX-License-Identifier: MIT OR Apache-2.0
//! Studies: one question asked of many devices, hosts and workloads. A [`Plan`] says which points a study has; each is
//! one run, whose [`Record`] goes into a segment of a [`Folder`]; [`work()`] makes the points that are missing there,
//! and [`merge()`] makes tables of them.
//!
//! ```text
//!  study file ─▶ Plan ─▶ point n: settings, seed ─▶ Maker ─▶ Record ─▶ segment ─┬─▶ points.csv
//!                                                   (a run)           (per worker) └─▶ failed.csv
//! ```
//!
//! Points of a question go the same way in [`keep()`], which reads them back for its answer.
//!
//! A point depends on nothing but the plan and its number, so any worker on any machine makes the same record of it,
//! and a record that is lost is made again. This crate knows no terminal. Only [`document`] knows what a figure means.

#![warn(unreachable_pub)]

mod analysis;
mod asked;
mod design;
mod error;
mod folder;
mod maker;
mod merge;
mod plan;
mod record;
mod segment;
mod traces;
mod work;

pub use analysis::document;
pub use asked::{Keep, Kept, Round, keep};
pub use error::SweepError;
pub use folder::{Folder, Found};
pub use maker::{Maker, OfPlan};
pub use merge::{Merged, merge, unfinished};
pub use plan::{NamedTrace, Plan, Point};
pub use record::{Named, Outcome, Record};
pub use segment::{Header, SCHEMA, Segment};
pub use work::{Made, Shard, Work, work};
