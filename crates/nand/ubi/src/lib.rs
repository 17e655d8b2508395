// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw NAND behind UBI, and the read cache between them.
//!
//! This crate knows erase blocks, pages and UBI's headers and tables; it knows nothing of file systems, block
//! requests or the UFS device.

#![warn(unreachable_pub)]

pub mod attach;
pub mod cache;
pub mod cost;
pub mod device;
pub mod guess;
pub mod headers;
pub mod io;
pub mod layout;
pub mod mtd;
pub mod nand;
pub mod preset;
pub mod stream;
pub mod ubinize;
pub mod variant;
pub mod vtbl;

mod crc;
mod error;

pub use cache::{NoCache, ReadCache};
pub use device::Ubi;
pub use error::{UbiError, printable};
