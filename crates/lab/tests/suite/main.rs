// SPDX-License-Identifier: MIT OR Apache-2.0
//! All tests of this crate's public surface, in one program: linking takes most of the time of a test build.

mod attack;
mod cut_short;
mod events;
mod iozone;
mod made;
mod over_time;
mod parity;
mod power_cuts;
mod probe;
mod units;
mod verification;
