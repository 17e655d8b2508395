// SPDX-License-Identifier: MIT OR Apache-2.0
//! All tests of this crate's public surface, in one program: linking takes most of the time of a test build.

mod booster;
mod closed_forms;
mod cores;
mod determinism;
mod drive;
mod flash_pages;
mod flush;
mod freshness;
mod generations;
mod hpb2;
mod hpb_commands;
mod hpb_protocol;
mod limits;
mod long_order;
mod map_memory;
mod map_runs;
mod oracle;
mod pacing;
mod power;
mod prototype;
mod prototype_errors;
mod read_buffers;
mod reads;
mod settings;
mod slc_cache;
mod trims;
mod upkeep;
mod verification;
mod vopr;
mod wear;
mod wire;
mod worn_out;
mod write_amplification;
mod zonemode;
mod zones;
