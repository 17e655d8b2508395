// SPDX-License-Identifier: MIT OR Apache-2.0
//! All tests of this crate's public surface, in one program: linking takes most of the time of a test build.

mod fio;
mod fio_zones;
mod iozone;
mod reference;
mod streams;
mod trace_analysis;
mod trace_binary;
mod trace_common;
mod trace_faults;
mod trace_fixtures;
mod trace_formats;
mod trace_perfetto;
mod trace_real;
mod trace_replay;
mod trace_roundtrip;
mod trace_truncation;
