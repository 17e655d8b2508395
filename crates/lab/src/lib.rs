// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is asked of runs: experiments, replays, comparisons, power cuts, fits, policies, attacks and benches. It plans
//! runs, has them made side by side, and makes result documents of what they showed. It opens no file.

#![warn(unreachable_pub)]

pub mod attack;
pub mod beforehand;
pub mod bench;
mod claims;
pub mod compare;
pub mod document;
pub mod experiment;
mod fio_json;
pub mod fit;
pub mod hmb;
mod little_gain;
pub mod map_gain;
pub mod map_reuse;
mod map_rows;
mod over_time;
pub mod parity;
pub mod policies;
pub mod power_cuts;
pub mod probe;
pub mod replay;
mod spans;
pub mod trace_info;
pub mod ubi;
pub mod unused_hpb;

pub use fio_json::fio_json;
