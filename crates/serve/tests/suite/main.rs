// SPDX-License-Identifier: MIT OR Apache-2.0
//! All tests of this crate's public surface, in one program: linking takes most of the time of a test build.

mod client;
mod cuts;
mod recorded;
mod rules;
mod served;
mod units;
