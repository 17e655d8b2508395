// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small, fast parts that every other crate of Readpath uses: virtual time, deadline heap and tournament, divisors,
//! queues, index LRU lists, histogram, pseudo-random streams, permutations, huge-page vectors, named enums and bounds.
//!
//! This crate knows nothing about flash, UFS or workloads. It never reads a clock, starts a thread or opens a file.
//! A part belongs here only if a well-kept crate cannot give it at the speed or with the stability of values that the
//! simulator needs; each module says which crate it replaces and why.

#![warn(unreachable_pub)]

mod bound;
mod divisor;
mod heap;
mod hist;
mod huge;
mod lru;
mod named;
mod perm;
mod prng;
mod queue;
mod time;
mod tournament;

pub use bound::{Bound, range_of};
pub use divisor::Divisor;
pub use heap::DeadlineHeap;
pub use hist::Histogram;
pub use huge::{huge_vec, prefetch};
pub use lru::IndexLru;
pub use perm::Permutation;
pub use prng::Prng;
pub use queue::FrontQueue;
pub use time::Ns;
pub use tournament::Tournament;

/// Bytes of one logical block and of one physical slice: the unit of the whole address space (4 KiB).
pub const BLOCK_BYTES: u32 = 4096;
