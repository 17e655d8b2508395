// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this crate against its public interface, in one program: linking is expensive.

mod attach;
mod budgets;
mod coherence;
mod common;
mod cuts;
mod fastmap;
mod fixtures;
mod kernel_fastmap;
mod model;
mod naive;
mod nand;
mod optimum;
mod policies;
mod pressure;
mod recorded;
mod ubinize;
mod uncorrectable;
mod whole_pages;
