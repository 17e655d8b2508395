// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this crate against its public interface, in one program: linking is expensive.

mod common;
mod errors;
mod hpb2;
mod probe;
mod queue;
mod zones;
