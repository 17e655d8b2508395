// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this room against its public surface, in one program: linking is what costs.

mod booster;
mod closed_forms;
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
mod oracle;
mod pacing;
mod power;
mod prototype;
mod prototype_errors;
mod read_buffers;
mod reads;
mod settings;
mod trims;
mod upkeep;
mod verification;
mod vopr;
mod wear;
mod wire;
mod worn_out;
mod write_amplification;
