// SPDX-License-Identifier: MIT OR Apache-2.0
//! The crate's tests: states and rules against a model of its own, a store with classic mistakes, and what can go
//! wrong.

mod device;
mod mistakes;
mod recorded;
mod rules;
mod tried;
