// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host driver, link and device as one stack that any runner can drive, and nothing else.
//!
//! A runner submits block requests, advances time to [`Stack::next_deadline`] and takes completions. A type parameter
//! ([`Payload`]) decides what happens to data, another one ([`Wire`]) whether requests travel as values or as bytes.
//! This crate knows no workload, no configuration file and no clock.

#![warn(unreachable_pub)]

mod host_memory;
pub mod medium;
mod payload;
mod stack;
mod tags;
mod watched;
mod wire;

pub use host_memory::{given_host_memory, host_memory_ask};
pub use medium::Units;
pub use payload::{Fault, NoData, Payload, Ruled};
pub use stack::{Hold, Stack, StackError};
pub use tags::{ReadCheck, Tags};
pub use wire::{AnyWire, Crossed, Encoded, Typed, Wire, WireError};
