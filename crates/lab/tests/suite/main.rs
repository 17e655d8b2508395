// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this room against its public surface, in one program: linking is what costs.

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
