// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this crate against its public interface, in one program: linking is expensive.

mod commands;
mod control;
mod machine;
mod maintenance;
mod misbehaviour;
