// SPDX-License-Identifier: MIT OR Apache-2.0
//! NAND flash: geometry, timing, and the schedulers that decide when a die and its channel finish an operation.
//!
//! This crate knows dies, channels, planes, blocks, pages and 4 KiB slices. It does not know logical addresses, maps,
//! hosts or UFS, and it holds no data: it answers only *where* a slice is and *when* an operation ends.

#![warn(unreachable_pub)]

mod geometry;
mod sched;

pub use geometry::{Geometry, GeometryError, Place, PlaneReads, Ppn, ServersOfSlices};
pub use sched::{
    AnySched, DieSched, Done, Exact, FlashOp, Lean, OpId, OpKind, Queued, Scheduler, Servers, SuspendTiming,
};
