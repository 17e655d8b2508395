// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions about runs: experiments, replays, comparisons, power cuts, fits, policies, attacks and benches. It plans
//! runs, makes them side by side, and makes result documents of what they showed. It opens no file.

#![warn(unreachable_pub)]

pub mod attack;
pub mod beforehand;
pub mod bench;
pub mod builtin;
pub mod compare;
pub mod experiment;
mod figures;
mod fio_json;
pub mod fit;
pub mod fragment;
pub mod hmb;
mod life;
mod little_gain;
mod long_write;
pub mod map_gain;
mod map_model;
pub mod map_reuse;
mod map_rows;
mod means;
mod over_time;
pub mod parity;
pub mod policies;
pub mod power_cuts;
pub mod probe;
pub mod question;
pub mod replay;
pub mod runs;
mod saving;
mod spans;
pub mod trace_info;
pub mod ubi;
mod unused_hpb;
mod verdict;
