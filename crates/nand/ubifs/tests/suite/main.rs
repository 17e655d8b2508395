// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every test of this crate against its public interface, in one program: linking is expensive.

mod accounts;
mod around;
mod common;
mod damage;
mod erased;
mod fastmap;
mod fixtures;
mod guest;
mod holes;
mod images;
mod journal;
mod left_behind;
mod streams;
mod through_caches;
