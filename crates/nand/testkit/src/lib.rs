// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tests of raw NAND share: a simulated chip that keeps data and has faults, and a UBI device that writes to it as
//! Linux does. The product only reads, so nothing of it needs this room.

#![warn(unreachable_pub)]

mod chip;
mod device;
mod write;

pub use chip::{Counts, Ecc, Faults, Nand};
pub use device::{Device, NewVolume, Options, PebState, Wear, Work};
pub use write::MtdWrite;
