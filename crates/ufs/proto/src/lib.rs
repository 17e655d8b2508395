// SPDX-License-Identifier: MIT OR Apache-2.0
//! UFS on the wire and in types: UPIUs, command descriptor blocks, HPB notifications, descriptors and queries.
//!
//! [`typed`] is the interface between host and device inside a process; bytes exist only at an edge, where [`upiu`]
//! and [`cdb`] translate in both directions. This crate knows layouts and ranges of fields. It does not know what a
//! device or a host does with a command, holds no state and never reads time.

#![warn(unreachable_pub)]

pub mod booster;
pub mod cdb;
pub mod desc;
pub mod groups;
pub mod hpb;
mod names;
pub mod query;
pub mod rpmb;
pub mod scsi;
pub mod transfer;
pub mod typed;
pub mod uic;
pub mod upiu;
pub mod zones;

#[cfg(test)]
mod testing;
