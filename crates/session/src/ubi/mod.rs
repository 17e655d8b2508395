// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw NAND: opens images, reads or makes streams of reads, and answers questions on them.

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
pub use replay::{Replay, cache_names, caches, cost_names};
pub use reproduce::{EXPERIMENT, Prepared, prepare};
pub use work::{Reads, Work, reads};

/// What the program takes from the reader of UBI.
pub mod nand {
    pub use readpath_ubi::{cost, device, mtd, printable};
}

/// What the program takes from the reader of UBIFS.
pub mod ubifs {
    pub use readpath_ubifs::{
        CheckReport, Compression, Entry, FileType, Inode, MountMode, Piece, ReadKind, Time, Ubifs, UbifsError, check,
    };
}
