// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this room against its public surface, in one program: linking is what costs.

mod fio;
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
