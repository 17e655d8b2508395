// SPDX-License-Identifier: MIT OR Apache-2.0
//! A durable flash array: physical pages with their spare areas in a sparse file, and the payload of a stack that
//! moves real data to it and from it. Checks detect torn and damaged pages.
//!
//! This crate knows bytes and offsets. It does not know what a map, a journal or a checkpoint is: the device's
//! metadata is pages like any other, and recovery is the device's. It knows no clock, no client and no configuration
//! file; it may open files.

#![warn(unreachable_pub)]

mod array;
mod disk;
mod error;
mod image;
mod layout;
mod payload;

pub use array::{ArrayFault, Boot, Damage, FlashFile, torn};
pub use disk::{Disk, FileDisk, MemoryDisk};
pub use error::ImageError;
pub use image::{Check, Image};
pub use layout::{Format, FormatError, HEAD_BYTES, Shape, VERSION};
pub use payload::Store;
