// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw NAND behind UBI, and the read cache between them.
//!
//! This room knows erase blocks, pages and UBI's headers and tables; it knows nothing of file systems, block requests or
//! the UFS device.

pub mod cache;
pub mod cost;
pub mod preset;
pub mod stream;
pub mod variant;
