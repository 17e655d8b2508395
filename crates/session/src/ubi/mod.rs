// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw NAND: images that are opened, streams of reads that are read or made, and what is asked of them.

mod attach;
mod boot;
mod bytes;
mod open;
mod own;
mod replay;
mod reproduce;
mod streams;
mod work;

pub use attach::{Attached, kind, remarks};
pub use boot::lines;
pub use open::{Opened, Volume, findings, open_volume, volume, wrong};
pub use replay::{Replay, caches};
pub use reproduce::{EXPERIMENT, Prepared, prepare};
pub use work::{Reads, Work, reads};
