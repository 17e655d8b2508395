// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by tests of raw NAND: a simulated chip with data and faults, and a UBI device that writes to it as Linux
//! does. The product only reads, so it does not depend on this crate.

#![warn(unreachable_pub)]

mod chip;
mod device;
mod write;

pub use chip::{Counts, Ecc, Faults, Nand};
pub use device::{Device, NewVolume, Options, PebState, Wear, Work};
pub use write::MtdWrite;
