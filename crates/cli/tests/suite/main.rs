// SPDX-License-Identifier: MIT OR Apache-2.0
//! All tests of this crate's public surface, in one program: linking takes most of the time of a test build.

mod attach;
mod bad_input;
mod bench_flat;
mod comfort;
mod commands;
mod common;
mod compare;
mod documents;
mod dramless;
mod examples;
mod experiments;
mod fio;
mod fit;
mod hmb;
mod images;
mod inputs;
mod map_reuse;
mod outputs;
mod pages;
mod policies;
mod probe;
mod replay;
mod stats;
mod sweep;
mod sysfs;
mod trace_inputs;
mod ubi;
mod ubi_attach;
mod ubi_images;
mod ubi_output;
mod ubi_reproduce;
mod ubi_stop;
mod upius;
mod verification;
mod wrong_inputs;
