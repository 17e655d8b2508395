// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this room against its public surface, in one program: linking is what costs.

mod comparison;
mod looks;
mod report;
